// Elements of the page. Whatever comes from a run enters as text; nothing of it is ever read as HTML.

/** Return an element; `given` holds its attributes, listeners (`onclick`) and `class`; children are elements or texts. */
export const el = (name, given = {}, ...children) => filled(document.createElement(name), given, children);

/** Return a part of a drawing, as `el` does. */
export const svg = (name, given = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), given, children);

const filled = (element, given, children) => {
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  const there = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");
  // A paragraph of what people and models wrote has a direction of its own; options and drawings hold text alone.
  const plain = /\bwords\b/.test(given.class ?? "") || element.localName === "option" || element.namespaceURI !== document.documentElement.namespaceURI;
  element.append(...there.flatMap(plain ? written : apart));
  return element;
};

/** Return a text with what would turn the direction of what stands beside it written out; all else as it is. */
export const written = (child) => typeof child === "string"
  ? child.replace(/[\u202a-\u202e\u2066-\u2069]/g, (sign) => `\\u${sign.codePointAt(0).toString(16)}`)
  : child;

const LEFTWARDS = "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1eeff}]";
const RUNS = new RegExp(`(${LEFTWARDS}+(?:(?:[ \u00a0\u200c\u200d'’_-]+|[./"])${LEFTWARDS}+)*)`, "u");

/** Return the parts of a text, each run of words written from right to left in an element of its own; `kept_apart` says why. */
const apart = (child) => typeof child === "string" && RUNS.test(child)
  ? written(child).split(RUNS).filter(Boolean).map((part) => {
    if (!RUNS.test(part)) return part;
    const kept = document.createElement("bdi");
    kept.textContent = part;
    return kept;
  })
  : written(child);

const counts = new Intl.NumberFormat("en");

/** Return a count with separators. */
export const count = (n) => counts.format(n);

/** Return "1 answer", "2 answers". */
export const many = (n, one, more = `${one}s`) => `${count(n)} ${n === 1 ? one : more}`;

/** Return a name for readers: `economic_situation` becomes `economic situation`. */
export const named = (name) => name.replaceAll("_", " ");

/** Return a text with what was searched for marked. */
export const marked = (text, pattern) => {
  if (!pattern) return [written(text)];
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(new RegExp(pattern.source, `${pattern.flags}g`))) {
    if (!found[0]) break;
    parts.push(text.slice(from, found.index), el("mark", {}, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)].map(written);
};

/** Return the pattern of a searched text, null for none. */
export const sought = (text) => (text ? new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "iu") : null);

/** Say something to those who do not see the screen change. */
export const say = (text) => {
  document.getElementById("said").textContent = text;
};

/** Return a table; cells are texts or elements, `numbers` are the columns that stand right. */
export const table = (caption, heads, rows, numbers = []) =>
  el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head, n) => el("th", { scope: "col", class: numbers.includes(n) && "number" }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, n) =>
        el(n ? "td" : "th", { scope: n ? undefined : "row", class: numbers.includes(n) && "number" }, cell)))))));
