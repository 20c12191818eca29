// Screens of tables that the server computes when they are asked for: people's labels, a gate.
import { el, many, table } from "../dom.js";

/** Up to this many remarks on a table are unfolded. */
const FEW = 5;

/** Ask for a screen of a run, and put its tables, or why there are none, into `place`. */
const fill = async (place, app, screen, given = {}) => {
  place.replaceChildren(el("p", { class: "quiet" }, "Computing…"));
  const address = new URL(`results/${screen}/${app.number}?${new URLSearchParams(given)}`, document.baseURI);
  try {
    const answer = await fetch(address);
    const found = await answer.json();
    if (found.problem) throw new Error(found.problem);
    place.replaceChildren(...drawn(found));
  } catch (error) {
    place.replaceChildren(el("p", { class: "warn" }, error.message));
  }
};

const drawn = ({ tables }) =>
  tables.map((one) => el("section", {},
    one.rows.length ? table(one.caption, one.columns, one.rows, one.numbers) : null,
    one.remarks.length ? el("details", { open: one.remarks.length <= FEW }, el("summary", {}, many(one.remarks.length, "remark")),
      el("ul", {}, one.remarks.map((remark) => el("li", {}, remark)))) : null,
    one.notes.map((note) => el("p", { class: "quiet" }, note))));

const screen = (name, title, about) => ({
  title,
  offered: (doc, run) => run.screens.includes(name),
  show: (app) => {
    const place = el("div", {});
    fill(place, app, name);
    return { element: el("div", { class: "screen results" }, el("p", { class: "quiet" }, about), place) };
  },
});

export const labels = screen("labels", "Labels", "How people read some of the answers, and each score as it would be if they had read all of them.");

export const gate = {
  title: "Gate",
  offered: (doc, run) => run.screens.includes("gate"),
  show: (app) => {
    const others = app.doc.runs.map((run, n) => [n, run]).filter(([n, run]) => n !== app.number && run.scored);
    const given = Object.fromEntries(["margin", "max"].map((name) => [name, app.state.get(name) ?? ""]));
    const baseline = app.state.get("baseline") ?? String(others[0]?.[0] ?? "");
    const number = (name) => el("input", { type: "number", name, min: 0, step: "any", value: given[name] });
    const ask = (event) => {
      event.preventDefault();
      const asked = Object.fromEntries(new FormData(event.target));
      app.go({ margin: asked.margin || null, max: asked.max || null, baseline: asked.margin ? asked.baseline : null });
    };
    const form = el("form", { class: "bar", onsubmit: ask },
      others.length ? [
        el("label", {}, "Baseline ", el("select", { name: "baseline" }, others.map(([n, run]) => el("option", { value: n, selected: String(n) === baseline }, run.label)))),
        el("label", {}, "At most this much further from no bias ", number("margin")),
      ] : null,
      el("label", {}, "At most this far from no bias ", number("max")),
      el("button", { type: "submit" }, "Check"));
    const place = el("div", {});
    if (given.margin || given.max) fill(place, app, "gate", { ...given, baseline });
    return {
      element: el("div", { class: "screen results" },
        el("p", { class: "quiet" }, `Is ${app.run.label} within limits, in the unit of each number? The checks are those of `, el("code", {}, "equivox gate"),
          others.length ? "." : "; open a second run beside it to hold it against a baseline."),
        form, place),
    };
  },
};
