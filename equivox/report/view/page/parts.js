// Parts that several screens share: the choice of a task, the search, and what moves most.
import { el, many, named } from "./dom.js";

/** Return the choice of a task, with its question and its prompt. */
export const taskChooser = (app, among = app.run.tasks) => {
  const { task } = app;
  const select = el("select", { id: "task", onchange: (event) => app.go({ task: event.target.value, attribute: null, value: null, groups: null, page: null }) },
    among.map((one) => el("option", { value: one.name, selected: one.name === task.name }, `${one.name} (${many(one.n, "answer")})`)));
  return el("div", { class: "task" },
    el("label", {}, "Task ", select),
    task.question ? el("p", { class: "question" }, task.question) : null,
    task.prompt ? el("details", { class: "prompt" }, el("summary", {}, "Prompt"), el("p", { class: "words" }, task.prompt)) : null);
};

/** Return the box for a search; Enter or a pause starts it. */
export const searchBox = (app, label) => {
  let timer = 0;
  const start = (text) => {
    clearTimeout(timer);
    if ((app.state.get("search") ?? "") !== text) app.go({ search: text || null, page: null }, { keep: "#search" });
  };
  const box = el("input", {
    id: "search", type: "search", value: app.state.get("search") ?? "", placeholder: `${label}  /`, "aria-label": label, autocomplete: "off", spellcheck: "false",
    oninput: (event) => {
      clearTimeout(timer);
      const text = event.target.value;
      timer = setTimeout(() => start(text), 250);
    },
    onkeydown: (event) => {
      if (event.key === "Enter") start(event.target.value);
      if (event.key === "Escape") event.target.blur();
    },
  });
  return el("form", { role: "search", onsubmit: (event) => event.preventDefault() }, box);
};

const bars = (shares, groups, most) => el("span", { class: "bars", "aria-hidden": "true" }, groups.map((group, n) => {
  const bar = el("span", { class: `bar g${n % 6}` });
  bar.style.width = `${Math.max(1, Math.min(100, (100 * (shares[group] ?? 0)) / (most || 100)))}%`;
  return bar;
}));

const told = (shares, groups) => groups.map((group) => `${group} ${shares[group] === null || shares[group] === undefined ? "—" : `${Math.round(shares[group])} %`}`).join(", ");

/** Return one value of what moves most, as a button that filters. */
export const mover = (attribute, one, most, picked, pick) => el("li", {}, el("button", {
  type: "button", class: "mover", "data-value": one.value,
  "aria-pressed": picked && picked.attribute === attribute && picked.value === one.value ? "true" : "false",
  onclick: () => pick(attribute, one.value),
}, el("span", { class: "what" }, one.value), bars(one.shares, ends(one), most), el("span", { class: "shares" }, told(one.shares, ends(one)))));

/** Return the largest share among some values, the length of the longest bar. */
export const largest = (values) => Math.max(0, ...values.flatMap((one) => Object.values(one.shares)));

/** The groups of a value, at most three: all, or those with the largest and the smallest share. */
export const ends = (one) => {
  const groups = Object.keys(one.shares).sort();
  if (groups.length <= 3) return groups;
  const ranked = [...groups].sort((a, b) => (one.shares[b] ?? 0) - (one.shares[a] ?? 0));
  return [ranked[0], ranked.at(-1)].sort();
};

/** Return what moves most in a task: attributes by their estimate, their values by the difference of the groups. */
export const moves = (app, task, picked, pick) => {
  const wide = matchMedia("(min-width: 64rem)").matches;
  const told = task.moves.filter((one) => one.values.length);
  if (!told.length) {
    return [el("h2", {}, "Filter"), el("p", { class: "quiet" }, "Click a value below an answer to see all answers with it.")];
  }
  return [
    el("h2", {}, "What moves most"),
    el("p", { class: "quiet" }, "Click a value to see the answers that have it."),
    told.map((one) => el("details", { class: "attribute", open: (wide && one.role === "outcome") || picked?.attribute === one.attribute },
      el("summary", {}, named(one.attribute), one.role === "outcome" ? el("span", { class: "number" }, one.headline) : el("span", { class: "number" }, one.role)),
      el("ul", {}, one.values.map((value) => mover(one.attribute, value, largest(one.values), picked, pick))))),
  ];
};

const SIGNS = { good: "✓", bad: "✗" };

/** Return the verdict: the question, its answer, a picture of it, why to trust it, and the same in words. */
export const opening = (verdict, picture) => el("section", { class: "verdict" },
  el("h2", {}, verdict.question),
  el("p", { class: "answer" }, verdict.answer),
  picture,
  el("ul", { class: "trust", "aria-label": "Why to trust this, and why not" }, verdict.trust.map((one) => el("li", { class: one.mark },
    SIGNS[one.mark] ? el("span", { class: "sign" }, el("span", { "aria-hidden": "true" }, SIGNS[one.mark]), el("span", { class: "hidden" }, one.mark === "good" ? "for: " : "against: ")) : null,
    one.text))),
  el("details", {}, el("summary", {}, "In words"), verdict.sentences.map((sentence) => el("p", {}, sentence))));
