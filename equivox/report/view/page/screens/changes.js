// Two runs on the same requests: the answers that changed, side by side.
import { answer, BASE, media } from "../answer.js";
import { count, el, many, named } from "../dom.js";
import { taskChooser } from "../parts.js";
import { rows } from "../tables.js";
import { Pages, read } from "./pages.js";

export const title = "Changes";
export const offered = (doc) => doc.pair.length > 0;

const KINDS = { "": "any value", words: "only the words", status: "whether it could be read", segments: "segments" };

export const show = (app) => {
  const [first, second] = app.doc.runs;
  const pair = app.doc.pair.find((one) => one.task === app.task?.name) ?? app.doc.pair[0];
  const task = first.tasks.find((one) => one.name === pair.task);
  const other = second.tasks.find((one) => one.name === pair.task);
  const among = first.tasks.filter((one) => app.doc.pair.some((own) => own.task === one.name));
  const changed = app.state.get("changed") ?? "";
  const url = app.url(pair.file);
  const [left, right] = [app.url(task.file), app.url(other.file)];
  const list = new Pages(app, {
    size: 12,
    ask: () => ({ url, groups: task.groups, single: true, filter: { changed } }),
    read: async (numbers) => {
      const own = await read(url, numbers, ["first", "second", "changed"]);
      const known = own.filter(Boolean);
      const [ones, others] = await Promise.all([
        rows(left, known.map((row) => row.first), [...BASE, ...task.columns]),
        rows(right, known.map((row) => row.second), [...BASE, ...other.columns]),
      ]);
      const both = new Map(known.map((row, n) => [row, [ones[n], others[n], new Set((row.changed ?? "").split("\x1f").filter(Boolean))]]));
      return own.map((row) => (row ? both.get(row) : null));
    },
    draw: (cells) => cells.filter(Boolean).map(([one, two, differs]) => [
      el("p", { class: "about" }, [one.group, one.cluster !== one.group && one.cluster, one.stratum].filter(Boolean).join(", "), " ", media(task, one)),
      answer(task, { ...one, media: null }, { differs, head: first.label }),
      answer(other, { ...two, media: null }, { differs, head: second.label }),
    ]),
    summary: (found) => [`${many(found.matches.reduce((sum, n) => sum + n, 0), "answer")} differ${found.done ? "" : " so far"}, of ${count(pair.matched)} to the same request`],
    group: false,
  });
  const names = ["", "words", "status", ...task.attributes.map((one) => one.name), ...(task.columns.length ? ["segments"] : [])];
  const same = [`${count(pair.same)} equal`, `${count(pair.only_words)} differ in words alone`, `${count(pair.n - pair.only_words)} in values`];
  list.body.style.setProperty("--groups", "2");
  const element = el("div", { class: "screen changes" },
    taskChooser({ ...app, task, go: app.go }, among),
    el("p", {}, el("b", {}, first.label), " and ", el("b", {}, second.label), `: ${same.join(", ")}. `, el("a", { href: "report.html#compared" }, "The report"), " tests the models against each other."),
    app.doc.caveats.map((caveat) => el("p", { class: "warn" }, caveat)),
    el("div", { class: "bar" }, el("label", {}, "What changed ", el("select", { id: "changed", onchange: (event) => app.go({ changed: event.target.value || null, page: null }) },
      names.map((name) => el("option", { value: name, selected: name === changed }, KINDS[name] ?? named(name)))))),
    list.element);
  return list.start(element);
};
