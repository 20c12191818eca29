"use strict";
const rows = [...document.querySelectorAll("table.scores tbody tr, table.ranks-of-board tbody tr")];
const controls = [...document.querySelectorAll(".filters select")].map((select) => [select.id.slice(3), select]);
const from = document.getElementById("by-date");
const least = document.getElementById("by-used");
const most = document.getElementById("by-size");
const shown = document.getElementById("shown");
const filter = () => {
  let count = 0;
  for (const row of rows) {
    // A line of ranks has many tasks and metrics: it is hidden by what holds for all of them.
    const fits = controls.every(([name, select]) => !select.value || !(name in row.dataset) || row.dataset[name] === select.value)
      && Number(row.dataset.used) >= Number(least.value) / 100 && row.dataset.date >= from.value
      && (!most?.value || (row.dataset.size && Number(row.dataset.size) <= 1e9 * Number(most.value)));
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length} ${document.querySelector("table.scores") ? "scores" : "lines"}`;
};
const sort = (button) => {
  const header = button.closest("th");
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of document.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[header.cellIndex].dataset.sort ?? row.cells[header.cellIndex].textContent;
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    // What is undefined comes last, whichever way.
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return down ? -order : order;
  };
  document.querySelector("table.scores tbody").append(...rows.sort(compare));
};
for (const control of [...controls.map(([, select]) => select), least, from, most]) control?.addEventListener("input", filter);
for (const button of document.querySelectorAll(".scores th button")) button.addEventListener("click", () => sort(button));
filter();
