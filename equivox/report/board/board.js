"use strict";
const body = document.querySelector("tbody");
const rows = [...body.rows];
const controls = ["task", "metric", "version"].map((name) => [name, document.getElementById(`by-${name}`)]);
const least = document.getElementById("by-used");
const shown = document.getElementById("shown");
const filter = () => {
  let count = 0;
  for (const row of rows) {
    const fits = controls.every(([name, select]) => !select.value || row.dataset[name] === select.value)
      && Number(row.dataset.used) >= Number(least.value) / 100;
    row.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${rows.length} scores`;
};
const sort = (button) => {
  const header = button.closest("th");
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of document.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => row.cells[header.cellIndex].dataset.sort;
  const compare = (a, b) => {
    const [x, y] = [key(a), key(b)];
    // What is undefined comes last, whichever way.
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return down ? -order : order;
  };
  body.append(...rows.sort(compare));
};
for (const control of [...controls.map(([, select]) => select), least]) control.addEventListener("input", filter);
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => sort(button));
filter();
