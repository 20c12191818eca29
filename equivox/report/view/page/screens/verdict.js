// The verdict in words, the picture behind it, what moves most, and how the run was made.
import { el, named, svg } from "../dom.js";
import { largest, mover, opening } from "../parts.js";

export const title = "Verdict";

/** Return the estimate of a mark with its interval on the scale of its row; the numbers stand above. */
const line = ({ at, low, high, no_bias: noBias }) => svg("svg", { class: "strip", "aria-hidden": "true" },
  svg("line", { class: "axis", x1: 0, x2: "100%", y1: 7, y2: 7 }),
  noBias === null ? null : svg("line", { class: "zero", x1: `${noBias}%`, x2: `${noBias}%`, y1: 1, y2: 13 }),
  low === null || high === null ? null : svg("line", { class: "reach", x1: `${low}%`, x2: `${high}%`, y1: 7, y2: 7 }),
  at === null ? null : svg("circle", { class: "dot", cx: `${at}%`, cy: 7, r: 4 }));

/** Return a mark that leads to the two answers that show it best. */
const cell = (app, mark, number, kind) => {
  const { label, tasks } = app.doc.runs[number];
  if (!mark) return el("td", {});
  const task = tasks.find((one) => one.name === mark.task) ?? tasks.find((one) => one.name.startsWith(`${mark.task}:`));
  const pair = task?.telling[kind]?.rows.join("-") ?? null;
  return el("td", { class: mark.verdict.replace(" ", "-"), "data-model": label }, el(task ? "a" : "span", {
    href: task ? app.link("answers", { run: number || null, task: task.name, pair }) : null,
    title: `${mark.told}${pair ? ". A click shows the two answers that show it best" : ""}`,
  }, el("span", { class: "sign", "aria-hidden": "true" }, mark.sign), el("span", { class: "hidden" }, `${mark.verdict}:`),
  ` ${mark.text}`, mark.largest_of ? el("small", {}, ` largest of ${mark.largest_of}`) : null, mark.strip ? line(mark.strip) : null));
};

/** Return a model's name that lines may break behind its marks. */
const broken = (name) => name.split(/(?<=[:,=/])/).flatMap((part) => [part, el("wbr")]);

/** Return models by comparisons: a mark each, unequal losses of answers in the last row. */
const picture = (app) => {
  const { runs, about, lines } = app.doc.picture;
  if (!lines.length) return null;
  const common = lines.some((one) => one.common) ? " Rows without a scale: 0 to 100 % of the largest difference that there can be." : "";
  let family = "";
  const rows = lines.flatMap((one) => {
    const heading = one.family && one.family !== family
      ? [el("tr", { class: "family" }, el("th", { scope: "rowgroup", colspan: runs.length + 1 }, one.family))] : [];
    family = one.family;
    const scale = one.scale && !one.common ? el("small", {}, ` ${one.scale}`) : null;
    return [...heading, el("tr", { class: one.family ? null : "losses" }, el("th", { scope: "row" }, one.name, scale),
      one.marks.map((mark, n) => cell(app, mark, runs[n], one.family ? "outcome" : "lost")))];
  });
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The answer as a picture" },
    el("table", { class: "picture" }, el("caption", {}, about + common),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "who is answered differently?"), runs.map((n) => el("th", { scope: "col" }, broken(app.doc.runs[n].label))))),
      el("tbody", {}, rows)));
};

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
  const element = el("div", { class: "screen" },
    run.verdict ? opening(run.verdict, picture(app)) : el("p", {}, "This run is not scored yet, so there is no verdict."),
    run.marks.map((mark) => el("p", { class: "warn" }, mark)),
    app.doc.caveats.map((caveat) => el("p", { class: "warn" }, caveat)),
    run.verdict ? el("p", {}, el("a", { href: "report.html" }, "The whole report"), " has every number, figure and test, as one file to keep.") : null,
    most(app), facts(run));
  return { element };
};
