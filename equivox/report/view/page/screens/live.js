// A run that is under way: done, failed, asked again, rate, time left, tokens and cost of model and annotator.
import { count, el, many, say, table } from "../dom.js";

export const title = "Progress";
const EVERY = 2000;

const STATES = {
  "under way": "The run is under way.",
  silent: "The run has noted nothing for a minute: it was stopped, or it hangs. The same command goes on with it.",
  unscored: "Nothing writes this run, and it is not scored. The same command goes on with it.",
  scored: "The run is done and scored.",
};
const STAGES = { generate: "The model answers", annotate: "The annotator reads the answers", score: "Scores are computed", "follow up": "The annotator is asked about findings" };

const time = (seconds) => {
  if (seconds === null) return "—";
  if (seconds >= 7200) return `${(seconds / 3600).toFixed(1)} h`;
  return seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`;
};
const or = (value, text = count) => (value === null || value === undefined ? "—" : text(value));

const noted = (found) => {
  const { noted: at } = found;
  if (!at) return null;
  const share = at.total ? at.done / at.total : 0;
  const facts = [
    ["done", `${count(at.done)} of ${count(at.total)}`], ["failed", count(at.failed)],
    ["rate", or(at.per_second, (n) => `${n >= 10 ? Math.round(n) : n.toFixed(1)} per second`)],
    ["time left", time(at.seconds_left)], ...(at.standing ? [["workers", at.standing]] : []), ["noted", `${time(at.age)} ago`],
  ];
  return el("section", {}, el("h2", {}, STAGES[at.stage] ?? at.stage),
    el("progress", { value: share, max: 1, "aria-label": `${Math.round(100 * share)} %` }),
    el("dl", { class: "tiles" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
};

const draw = (found) => [
  el("p", { class: `state ${found.state.replace(" ", "-")}` }, STATES[found.state]),
  found.problem ? el("p", { class: "warn" }, found.problem) : null,
  noted(found),
  found.phases.length ? table("Both phases", ["", "done", "failed", "asked again", "requests to the server", "prompt tokens", "answer tokens", "cost"],
    found.phases.map((phase) => [phase.who ? `${phase.name} by ${phase.who}` : phase.name, phase.total ? `${count(phase.done)} of ${count(phase.total)}` : count(phase.done),
      count(phase.failed), count(phase.again), or(phase.requests), or(phase.prompt_tokens), or(phase.completion_tokens), or(phase.cost, (n) => n.toFixed(2))]),
    [1, 2, 3, 4, 5, 6, 7]) : null,
  found.tasks.length ? table("Tasks", ["task", "requests", "answered", "failed", "missing", "cut off", "withheld"],
    found.tasks.map((task) => [task.task, ...["requested", "answered", "failed", "missing", "truncated", "withheld"].map((name) => count(task[name]))]),
    [1, 2, 3, 4, 5, 6]) : null,
].filter(Boolean);

export const show = (app) => {
  const body = el("div", {}, el("p", { class: "quiet" }, "Reading…"));
  const element = el("div", { class: "screen live" }, body);
  const before = app.run.scored;
  let timer = 0;
  let over = false;
  let state = "";
  const ask = async () => {
    try {
      const answer = await fetch(`live/${app.number}`);
      const found = await answer.json();
      if (over) return;
      body.replaceChildren(...draw(found));
      if (found.state !== state) {
        state = found.state;
        say(STATES[state]);
        if (state === "scored" && !before) await app.again();
      }
    } catch {
      if (over) return;
      if (!body.querySelector(".gone")) body.prepend(el("p", { class: "warn gone" }, `The server of this page does not answer; it is asked again every ${many(EVERY / 1000, "second")}.`));
    }
    if (!over) timer = setTimeout(ask, document.hidden ? 5 * EVERY : EVERY);
  };
  ask();
  return { element, close: () => { over = true; clearTimeout(timer); } };
};
