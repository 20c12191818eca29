// The verdict in words, the scores behind it, what moves most, and how the run was made.
import { el, named, table } from "../dom.js";
import { largest, mover, opening } from "../parts.js";

export const title = "Verdict";
/** Return a score with its interval on the scale of its table; the numbers stand beside it. */
const line = (score, [from, to]) => {
  const [at, low, high, target] = score.numbers;
  if (at === null || !(to > from)) return el("span", {});
  const place = (number) => (100 * (Math.max(from, Math.min(to, number)) - from)) / (to - from);
  const span = el("span", { class: "line", "aria-hidden": "true" });
  const zero = el("i", { class: "zero" });
  if (target !== null) {
    zero.style.left = `${place(target)}%`;
    span.append(zero);
  }
  if (low !== null && high !== null) {
    const reach = el("i", { class: "reach" });
    reach.style.left = `${place(low)}%`;
    reach.style.width = `${place(high) - place(low)}%`;
    span.append(reach);
  }
  const dot = el("i", { class: score.verdict === "found" ? "dot found" : "dot" });
  dot.style.left = `${place(at)}%`;
  span.append(dot);
  return span;
};

const scores = (app, family, own) => [...new Set(own.map((score) => score.name))].map((name) => {
  const rows = own.filter((score) => score.name === name);
  const numbers = rows.flatMap((score) => score.numbers).filter((number) => number !== null);
  const scale = [Math.min(0, ...numbers), Math.max(...numbers, 0)];
  const labelled = rows.some((score) => score.by_people);
  return table(`${name}, ${family}`, ["task", "estimate", "", "interval", ...(labelled ? ["with people's labels"] : []), "q", "used", ""], rows.map((score) => {
    const task = app.run.tasks.find((one) => one.name === score.task);
    const short = score.task.includes(":") ? score.task.slice(score.task.indexOf(":") + 1) : "all tasks";
    return [
      task ? el("a", { href: app.link("answers", { task: task.name }) }, short) : short,
      score.headline, line(score, scale), score.interval,
      ...(labelled ? [score.by_people || "—"] : []), score.q, score.used,
      el("span", { class: "why" }, score.why ? `${score.verdict}: ${score.why}` : ""),
    ];
  }), labelled ? [1, 3, 4, 5, 6] : [1, 3, 4, 5]);
});

const most = (app) => {
  const found = app.run.tasks.flatMap((task) => task.moves.filter((one) => one.role === "outcome" && one.values.length).map((one) => ({ task, ...one })));
  if (!found.length) return null;
  found.sort((a, b) => (parseFloat(b.headline) || 0) - (parseFloat(a.headline) || 0));
  return el("section", {}, el("h2", {}, "What moves most"),
    el("p", { class: "quiet" }, "Shares of the answers of each group. A click shows the answers."),
    el("div", { class: "cards" }, found.slice(0, 6).map(({ task, ...one }) => el("div", { class: "card" },
      el("h3", {}, named(one.attribute), el("span", { class: "number" }, one.headline)),
      el("p", { class: "quiet" }, task.name),
      el("ul", {}, one.values.slice(0, 4).map((value) => mover(one.attribute, value, largest(one.values), null,
        (attribute, picked) => app.go({ task: task.name, attribute, value: picked, search: null, page: null }, { screen: "answers" }))))))));
};

const facts = (run) => {
  const { manifest } = run;
  const rows = [
    ["model", run.label], ["annotator", run.annotator], ["data", manifest.command.data ?? "of its own"],
    ["tasks", run.tasks.map((task) => task.name).join(", ")], ["made", manifest.created], ["equivox", manifest.equivox],
    ["seed", manifest.identity.seed], ["limit", manifest.identity.limit ?? "all samples"],
  ];
  return el("section", {}, el("h2", {}, "How it was made"),
    el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
    el("details", {}, el("summary", {}, "Manifest"), el("pre", { tabindex: 0 }, JSON.stringify(manifest, null, 1))));
};

export const show = (app) => {
  const { run } = app;
  const counted = run.scores.filter((score) => score.counts);
  const families = [...new Set(counted.map((score) => score.family))];
  const element = el("div", { class: "screen" },
    run.verdict ? opening(run.verdict) : el("p", {}, "This run is not scored yet, so there is no verdict."),
    run.marks.map((mark) => el("p", { class: "warn" }, mark)),
    app.doc.caveats.map((caveat) => el("p", { class: "warn" }, caveat)),
    families.map((family) => el("section", {}, el("h2", {}, family),
      el("div", { class: "tables" }, scores(app, family, counted.filter((score) => score.family === family))))),
    most(app), facts(run));
  return { element };
};
