// What could not be read: failures, refusals, and what the annotator wrote instead of an annotation.
import { answer, BASE, STATUSES } from "../answer.js";
import { count, el, many, named, sought, table } from "../dom.js";
import { searchBox, taskChooser } from "../parts.js";
import { Pages, read } from "./pages.js";

const UNREAD = ["failed", "unannotated", "unparsed", "in part", "empty", "refused", "cut off", "missing"];
export const title = "Unreadable";

export const show = (app) => {
  const { task, state } = app;
  if (!task) return { element: el("p", { class: "quiet" }, "This run has no answers yet.") };
  const asked = (state.get("status") ?? "").split(",").filter((status) => UNREAD.includes(status));
  const pattern = sought(state.get("search") ?? "");
  const url = app.url(task.file);
  const number = (status, group) => task.statuses.filter(([own, where]) => own === status && (group === undefined || where === group))
    .reduce((sum, [, , n]) => sum + n, 0);
  const there = UNREAD.filter((status) => number(status) || status === "cut off" || status === "in part");
  const list = new Pages(app, {
    size: 20,
    group: false,
    ask: () => ({ url, groups: task.groups, single: true, filter: { statuses: asked.length ? asked : UNREAD, pattern, raw: true } }),
    read: (numbers) => read(url, numbers, [...BASE, ...task.columns]),
    draw: (cells) => cells.filter(Boolean).map((row) => answer(task, row, {
      raw: true, pattern, head: [...new Set([row.group, row.cluster, row.stratum])].filter(Boolean).join(", "),
      pick: (attribute, value) => app.go({ attribute, value, search: null, page: null, status: null }, { screen: "answers" }),
    })),
    summary: (found) => [`${many(found.matches.reduce((sum, n) => sum + n, 0), "answer")} of ${count(task.n)}`, found.done ? "" : ` — read ${count(found.seen)} so far`],
  });
  const rows = ["parsed", ...UNREAD].filter((status) => number(status)).map((status) => [
    STATUSES[status], ...task.groups.map((group) => count(number(status, group))), count(number(status)),
  ]);
  const element = el("div", { class: "screen unreadable" },
    taskChooser(app),
    table(`What became of the requests, by ${named(task.dimension || "group")}`, ["", ...task.groups.map((group) => group || "all"), "together"], rows,
      [...task.groups, ""].map((_, n) => n + 1)),
    el("div", { class: "bar" },
      el("div", { class: "chips", role: "group", "aria-label": "Which ones" }, there.map((status) => el("button", {
        type: "button", class: "chip", "aria-pressed": asked.includes(status) ? "true" : "false",
        onclick: () => {
          const next = asked.includes(status) ? asked.filter((one) => one !== status) : [...asked, status];
          app.go({ status: next.join(",") || null, page: null });
        },
      }, STATUSES[status], number(status) ? el("span", { class: "number" }, count(number(status))) : null))),
      searchBox(app, "Search in answers and raw words")),
    list.element);
  return list.start(element);
};
