"use strict";
const tables = [...document.querySelectorAll("table")];
const form = document.querySelector("form");
const shown = document.getElementById("shown");
const rowsOf = (table) => [...table.tBodies[0].rows];
const findColumn = (table, name) => [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === name);

// A row is shown if it has the wanted text in each column that its table has.
const filter = () => {
  const wanted = [...form.elements].filter((control) => control.value);
  let [count, all] = [0, 0];
  for (const table of tables) {
    for (const row of rowsOf(table)) {
      row.hidden = !wanted.every(({ name, type, value }) => {
        const text = row.cells[findColumn(table, name)]?.textContent ?? value;
        return type === "search" ? text.toLowerCase().includes(value.toLowerCase()) : text === value;
      });
      count += !row.hidden;
      all += 1;
    }
  }
  shown.textContent = `${count} of ${all} rows`;
};

// A cell is sorted by its first text: as a number if all of its column are numbers. What is not known stays last.
const sort = (table, header) => {
  const down = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = rowsOf(table);
  const text = (row) => row.cells[header.cellIndex].firstChild?.textContent ?? "";
  const unknown = (row) => ["", "—", "no rank"].includes(text(row));
  const numeric = rows.every((row) => unknown(row) || /^[<-]?[\d,.]+( |\*|†|$)/.test(text(row)));
  const number = (row) => parseFloat(text(row).replace(/[<,]/g, ""));
  table.tBodies[0].append(...rows.sort((a, b) => {
    if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
    const order = numeric ? number(a) - number(b) : text(a).localeCompare(text(b));
    return down ? -order : order;
  }));
};

for (const table of tables) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sort(table, header));
    header.append(button);
  }
}
if (form) {
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
