// The explorer: which screen, which run, which task; everything of it stands in the address.
import { el, say, written } from "./dom.js";
import * as answers from "./screens/answers.js";
import * as changes from "./screens/changes.js";
import { gate, labels } from "./screens/results.js";
import * as unreadable from "./screens/unreadable.js";
import * as verdict from "./screens/verdict.js";

// A further screen is a module with `title` and `show(app)`, and `offered(doc, run)` where it is not for every run.
const SCREENS = { verdict, answers, unreadable, changes, labels, gate };
const KEYS = [
  ["j, k", "next, previous row"], ["h, l", "left, right within a row"], ["n, p", "next, previous page"], ["space", "play the recording, or enlarge the picture"],
  ["o", "unfold what stands behind the answers of a row"], ["/", "search"], ["[, ]", "previous, next task"], ["1 – 6", "screens"],
  ["x", "remove all filters"], ["Esc", "leave the search, close this list"], ["?", "these keys"],
];

const main = document.getElementById("main");
const help = document.getElementById("help");
let doc = null;
let shown = null;
let opened = "";

const parsed = () => {
  const [screen, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { screen, state: new URLSearchParams(query ?? "") };
};

const addressOf = (screen, state) => {
  const query = state.toString();
  return `#/${screen}${query ? `?${query}` : ""}`;
};

const changed = (state, changes) => {
  const next = new URLSearchParams(state);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) next.delete(name);
    else next.set(name, value);
  }
  return next;
};

const offered = (run) => Object.keys(SCREENS).filter((name) => SCREENS[name].offered?.(doc, run) ?? true);

const app = () => {
  const { screen: named, state } = parsed();
  const number = Math.min(doc.runs.length - 1, Math.max(0, Number(state.get("run")) || 0));
  const run = doc.runs[number];
  const screen = offered(run).includes(named) ? named : run.scored ? "verdict" : "answers";
  const task = run.tasks.find((one) => one.name === state.get("task")) ?? run.tasks[0] ?? null;
  return {
    doc, number, run, screen, state, task,
    url: (file) => new URL(`${doc.tables}${file}`, document.baseURI).href,
    link: (to, changes = {}) => addressOf(to, changed(new URLSearchParams(state.get("run") ? { run: state.get("run") } : {}), changes)),
    go: (changes, { screen: to = screen, keep = null } = {}) => {
      history.pushState(null, "", addressOf(to, changed(parsed().state, changes)));
      render(keep);
    },
    note: (changes) => history.replaceState(null, "", addressOf(screen, changed(parsed().state, changes))),
  };
};

const frame = (own) => {
  document.getElementById("title").textContent = written(own.run.label);
  document.title = `${own.run.label} – equivox view`;
  const chooser = document.getElementById("runs");
  chooser.hidden = doc.runs.length < 2;
  document.querySelector(".top").classList.toggle("several", doc.runs.length > 1);
  const select = document.getElementById("run");
  select.replaceChildren(...doc.runs.map((run, n) => el("option", { value: n, selected: n === own.number }, run.label)));
  select.onchange = () => own.go({ run: select.value === "0" ? null : select.value, page: null, attribute: null, value: null, groups: null });
  document.getElementById("screens").replaceChildren(...offered(own.run).map((name) => el("li", {},
    el("a", { href: addressOf(name, changed(own.state, { page: null, ...(name === "answers" ? {} : { attribute: null, value: null }) })), "aria-current": name === own.screen ? "page" : null }, SCREENS[name].title))));
};

const render = (keep = null) => {
  const own = app();
  frame(own);
  const caret = keep ? document.querySelector(keep)?.selectionStart : null;
  const next = SCREENS[own.screen].show(own);
  main.replaceChildren(next.element);
  shown = next;
  const place = `${own.screen} ${own.number}`;
  if (place !== opened) {
    scrollTo(0, 0);
    say(SCREENS[own.screen].title);
  }
  opened = place;
  if (keep) {
    const field = document.querySelector(keep);
    field?.focus();
    field?.setSelectionRange?.(caret, caret);
  }
};

const load = async () => {
  const answer = await fetch("view.json");
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.problem ?? `the server answered ${answer.status}`);
  doc = found;
};

const turnTask = (by) => {
  const own = app();
  const tasks = own.run.tasks;
  const next = tasks[tasks.indexOf(own.task) + by];
  if (next) own.go({ task: next.name, attribute: null, value: null, groups: null, page: null });
};

addEventListener("keydown", (event) => {
  if (!doc || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest("input, select, textarea")) return;
  const screens = offered(app().run);
  const actions = {
    "?": () => help.showModal(),
    "/": () => document.getElementById("search")?.focus(),
    "[": () => turnTask(-1),
    "]": () => turnTask(1),
    x: () => app().go({ attribute: null, value: null, search: null, status: null, changed: null, pair: null, page: null }),
  };
  if (shown?.key?.(event)) event.preventDefault();
  else if (event.key in actions) {
    event.preventDefault();
    actions[event.key]();
  } else if (/^[1-9]$/.test(event.key) && screens[event.key - 1]) {
    event.preventDefault();
    app().go({ page: null }, { screen: screens[event.key - 1] });
  }
});
addEventListener("hashchange", () => doc && render());
addEventListener("popstate", () => doc && render());
document.getElementById("help-open").addEventListener("click", () => help.showModal());
document.getElementById("keys").replaceChildren(...KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what))));

try {
  await load();
  render();
} catch (error) {
  main.replaceChildren(el("p", { class: "warn" }, `This page cannot be shown: ${error.message}`));
}
