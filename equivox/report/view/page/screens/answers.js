// Answers side by side: one sentence a row, one column a group.
import { answer, BASE } from "../answer.js";
import { count, el, many, named, sought } from "../dom.js";
import { ends, moves, searchBox, taskChooser } from "../parts.js";
import { Pages, read } from "./pages.js";

const SIDE_BY_SIDE = 3;
export const title = "Answers";

const shownGroups = (task, state, picked) => {
  const asked = (state.get("groups") ?? "").split("\x1f").filter((group) => task.groups.includes(group));
  if (asked.length) return asked;
  if (task.groups.length <= SIDE_BY_SIDE) return task.groups;
  // Of many groups, those that differ most in the value that was picked, or in what moves most.
  const own = task.moves.find((one) => one.attribute === picked?.attribute)?.values.find((one) => one.value === picked.value);
  const most = own ?? task.moves[0]?.values[0];
  const first = most ? ends(most) : task.groups.slice(0, 2);
  return task.groups.filter((group) => first.includes(group));
};

/** Return the filter by a value: the attribute, the value, and all wordings that count as it. */
const pickedOf = (task, state) => {
  const attribute = state.get("attribute");
  const value = state.get("value");
  if (!attribute || value === null) return null;
  const own = task.moves.find((one) => one.attribute === attribute)?.values
    .find((one) => one.value === value || one.wordings.includes(value));
  return { attribute, value: own?.value ?? value, wordings: own ? [...new Set([own.value, ...own.wordings])] : [value] };
};

/** Return the two answers that show best what was found, if the address names them. */
const best = (app, url, columns, options) => {
  const { task, state } = app;
  const told = Object.values(task.telling).find((one) => one?.rows.join("-") === state.get("pair"));
  if (!told) return null;
  const cells = el("div", { class: "rows" });
  const [often, seldom] = told.shares.map((share) => `${Math.round(share)} %`);
  const shares = el("span", {});
  read(url, told.rows, columns).then((found) => {
    shares.append(el("span", {}, `${found[0].group} ${often}, ${found[1].group} ${seldom} of the answers${told.among && ` to “${told.among}”`}. `));
    cells.replaceChildren(el("article", { class: "row" }, found.map((row) => answer(task, row, options))));
  }).catch((error) => cells.replaceChildren(el("p", { class: "warn" }, error.message)));
  const close = () => app.go({ pair: null });
  return el("section", { class: "best", "aria-label": "The two answers that show it best" },
    el("h2", {}, told.attribute ? `Shown best by ${named(told.attribute)}: ${told.value}` : "Shown best by answers that are lost"),
    el("p", { class: "quiet" }, shares, "Two answers chosen because they differ; all of them are below. ", el("button", { type: "button", class: "link", onclick: close }, "Close")),
    cells);
};

export const show = (app) => {
  const { task, state } = app;
  if (!task) return { element: el("p", { class: "quiet" }, "This run has no answers yet.") };
  const picked = pickedOf(task, state);
  const groups = shownGroups(task, state, picked);
  const search = state.get("search") ?? "";
  const pattern = sought(search);
  const pick = (attribute, value) => {
    const same = picked && picked.attribute === attribute && picked.wordings.includes(value);
    app.go({ attribute: same ? null : attribute, value: same ? null : value, page: null });
  };
  const url = app.url(task.file);
  const columns = [...BASE, ...task.columns];
  const heads = groups.map((group) => el("div", { class: "heading" }, el("b", {}, group || "all answers"), el("span", {}, "…")));
  const list = new Pages(app, {
    size: 12,
    ask: () => ({
      url, groups,
      filter: { ...(picked ? { attribute: picked.attribute, wordings: picked.wordings } : {}), pattern },
    }),
    read: (numbers) => read(url, numbers, columns),
    draw: (cells) => cells.map((row) => answer(task, row, { pick, picked, pattern })),
    summary: (found) => {
      found.matches.forEach((n, at) => { heads[at].lastChild.textContent = many(n, "answer"); });
      const n = found.matches.reduce((sum, one) => sum + one, 0);
      const filters = [
        picked && el("button", { type: "button", class: "filter", onclick: () => pick(picked.attribute, picked.value) }, `${named(picked.attribute)}: ${picked.value}`, el("span", { "aria-hidden": "true" }, " ×"), el("span", { class: "hidden" }, " (remove)")),
        search && el("button", { type: "button", class: "filter", onclick: () => app.go({ search: null, page: null }) }, `“${search}”`, el("span", { "aria-hidden": "true" }, " ×"), el("span", { class: "hidden" }, " (remove)")),
      ].filter(Boolean);
      return [`${count(n)} of ${many(task.n, "answer")}`, ...(filters.length ? [" with ", ...filters] : []), found.done ? "" : ` — read ${count(found.seen)} so far`];
    },
  });
  const chooser = task.groups.length <= SIDE_BY_SIDE ? null
    : el("fieldset", { class: "groups" }, el("legend", {}, `${named(task.dimension)}: side by side`), task.groups.map((group) => el("label", {},
      el("input", {
        type: "checkbox", checked: groups.includes(group),
        onchange: (event) => {
          const next = task.groups.filter((one) => (one === group ? event.target.checked : groups.includes(one)));
          app.go({ groups: next.join("\x1f") || null, page: null });
        },
      }), ` ${group}`)));
  const grid = el("div", { class: "grid", role: "region", "aria-label": "Answers side by side", tabindex: 0 },
    el("div", { class: "headings" }, heads), list.body);
  grid.style.setProperty("--groups", String(groups.length));
  const told = task.moves.some((one) => one.values.length) || task.attributes.some((one) => one.role !== "refusal");
  const element = el("div", { class: "screen answers" },
    taskChooser(app),
    best(app, url, columns, { pick, picked, pattern }),
    task.reason ? el("p", { class: "warn" }, `The values of these answers are not known: ${task.reason}`) : null,
    el("div", { class: told ? "beside" : "" },
      told ? el("aside", { "aria-label": "What moves most" }, moves(app, task, picked, pick)) : null,
      el("div", { class: "main" },
        el("div", { class: "bar" }, searchBox(app, "Search in the answers"), chooser), list.above, grid, list.pager)));
  list.element = grid;
  return list.start(element);
};
