// Rows of answers in pages: asked for with filters, read page by page, moved through with keys.
import { el, count, say } from "../dom.js";
import { query, rows } from "../tables.js";

/**
 * A list of rows; its page stands in the address. `ask` returns what to look for, `read(numbers)` the records of rows,
 * `draw(records)` one row, and `summary(list)` what stands above.
 */
export class Pages {
  constructor(app, { size, ask, read, draw, summary, group = true }) {
    Object.assign(this, { app, size, ask, read, draw, summary, group });
    Object.assign(this, { current: -1, strata: [], cells: [], matches: [], done: false, drawn: "" });
    this.page = Math.max(0, Number(app.state.get("page")) || 0);
    this.above = el("p", { class: "tally", "aria-live": "polite" });
    this.body = el("div", { class: "rows" });
    this.before = el("button", { type: "button", onclick: () => this.turn(-1) }, "← Before");
    this.after = el("button", { type: "button", onclick: () => this.turn(1) }, "Next →");
    this.where = el("span", { class: "where" });
    this.pager = el("nav", { class: "pager", "aria-label": "Pages" }, this.before, this.where, this.after);
    this.element = el("div", { class: "pages" }, this.above, this.body, this.pager);
  }

  get pages() {
    return Math.max(1, Math.ceil(this.strata.length / this.size));
  }

  /** Ask, and show the page of the address; return the screen, which is `element`, and answers to keys. */
  start(element) {
    const asked = this.ask();
    this.width = asked.groups.length;
    query(asked, (part) => this.add(part), (error) => this.body.replaceChildren(el("p", { class: "warn" }, error.message)));
    return { element, key: (event) => this.key(event) };
  }

  add(part) {
    for (const stratum of part.strata) this.strata.push(stratum);
    for (const cell of part.cells) this.cells.push(cell);
    Object.assign(this, { matches: part.matches, done: part.done, seen: part.read });
    this.above.replaceChildren(...this.summary(this));
    if (this.done) this.page = Math.min(this.page, this.pages - 1);
    this.show();
  }

  async show(focus = null) {
    const from = this.page * this.size;
    const to = Math.min(from + this.size, this.strata.length);
    this.where.textContent = this.strata.length ? `Page ${count(this.page + 1)} of ${count(this.pages)}${this.done ? "" : " …"}` : "";
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page >= this.pages - 1;
    this.pager.hidden = this.pages === 1;
    const state = `${from} ${to}`;
    if (this.drawn === state) return;
    if (to - from < this.size && !this.done) return; // the rest of this page is on its way
    this.drawn = state;
    const numbers = this.cells.slice(from * this.width, to * this.width);
    let found;
    try {
      found = await this.read(numbers);
    } catch (error) {
      this.body.replaceChildren(el("p", { class: "warn" }, error.message));
      return;
    }
    if (this.drawn !== state) return;
    const parts = [];
    let before = null;
    for (let n = from; n < to; n++) {
      if (this.group && this.strata[n] !== before) {
        before = this.strata[n];
        if (before) parts.push(el("h3", { class: "stratum" }, before));
      }
      const row = el("article", { class: "row", tabindex: -1, "aria-label": `Row ${n + 1}` },
        this.draw(found.slice((n - from) * this.width, (n - from + 1) * this.width)));
      row.addEventListener("focusin", () => this.select(n - from));
      parts.push(row);
    }
    if (!parts.length) parts.push(el("p", { class: "quiet" }, "No answer fits."));
    this.body.replaceChildren(...parts);
    this.body.dataset.page = this.page;
    this.current = -1;
    if (focus !== null) this.move(focus === "last" ? this.rows().length - 1 : 0, true);
    if (this.done && this.page + 1 < this.pages) { // the next page is read ahead
      this.read(this.cells.slice(to * this.width, (to + this.size) * this.width)).catch(() => {});
    }
  }

  rows() {
    return [...this.body.querySelectorAll(":scope > .row")];
  }

  select(n) {
    this.current = n;
    this.rows().forEach((row, m) => row.classList.toggle("current", m === n));
  }

  move(n, absolute = false) {
    const all = this.rows();
    const to = absolute ? n : this.current + n;
    if (to >= all.length) return void this.turn(1, "first");
    if (to < 0) return void (this.page > 0 && this.current >= 0 ? this.turn(-1, "last") : null);
    all[to].focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
    this.select(to);
  }

  turn(by, focus = null) {
    const to = this.page + by;
    if (to < 0 || to >= this.pages) return;
    this.page = to;
    this.app.note({ page: to || null });
    this.show(focus);
    if (focus === null) this.element.scrollIntoView({ block: "start" });
    say(this.where.textContent);
  }

  /** Answer a key; true if it was one of these. */
  key(event) {
    const row = this.rows()[this.current];
    const cells = row ? [...row.querySelectorAll(".cell")] : [];
    const here = Math.max(0, cells.findIndex((cell) => cell.contains(document.activeElement)));
    const actions = {
      j: () => this.move(1), ArrowDown: () => this.current >= 0 && this.move(1),
      k: () => this.move(-1), ArrowUp: () => this.current >= 0 && this.move(-1),
      n: () => this.turn(1, "first"), p: () => this.turn(-1, "first"),
      " ": () => (cells[here] ?? row)?.querySelector(".play, .photo")?.click(),
      o: () => row?.querySelectorAll("details").forEach((one) => { one.open = !one.open; }),
      l: () => cells[here + 1]?.querySelector("button, summary")?.focus(),
      h: () => cells[here - 1]?.querySelector("button, summary")?.focus(),
    };
    if (!(event.key in actions)) return false;
    if (event.key.startsWith("Arrow") && this.current < 0) return false;
    if (event.key === " " && (!row || event.target.closest("button, summary, audio, select"))) return false;
    actions[event.key]();
    return true;
  }
}

/** Return the rows of one table by their numbers; -1 is null. */
export const read = async (url, numbers, columns) => {
  const wanted = numbers.filter((number) => number >= 0);
  const found = await rows(url, wanted, columns);
  const by = new Map(wanted.map((number, n) => [number, found[n]]));
  return numbers.map((number) => by.get(number) ?? null);
};
