"use strict";
const fields = [...document.querySelectorAll("[data-item]")];
const count = () => {
  const done = fields.filter((field) => field.value.trim()).length;
  document.getElementById("count").textContent = `${done} of ${fields.length} fields filled in`;
};
const cell = (text) => `"${text.replaceAll('"', '""')}"`;
const labels = () => {
  const given = new Map();
  for (const field of fields) {
    const key = JSON.stringify([field.dataset.item, field.dataset.attribute]);
    given.set(key, [...(given.get(key) || []), field.value.trim()].filter(Boolean));
  }
  const rows = [...given].map(([key, values]) => [...JSON.parse(key), values.join("; ")].map(cell).join(","));
  return ["item,attribute,label", ...rows].join("\r\n") + "\r\n";
};
document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  const name = document.getElementById("rater").value.trim().replace(/[^\p{L}\p{N}]+/gu, "-");
  link.href = URL.createObjectURL(new Blob([labels()], { type: "text/csv" }));
  link.download = name ? `labels-${name}.csv` : "labels.csv";
  link.click();
});
document.addEventListener("input", count);
addEventListener("beforeunload", (event) => {
  if (fields.some((field) => field.value.trim())) event.preventDefault();
});
count();
