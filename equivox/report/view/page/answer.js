// One answer: the recording or picture, the words, the values, and what stands behind them when it is unfolded.
import { el, marked, named } from "./dom.js";
import { play } from "./player.js";

export const BASE = ["key", "sample", "repeat", "group", "cluster", "stratum", "status", "ended", "text", "error", "raw", "media", "sound", "before", "segments"];

/** The statuses as a reader knows them. */
export const STATUSES = {
  parsed: "read",
  unparsed: "not understood by the annotator",
  unannotated: "not annotated",
  refused: "refused",
  empty: "empty",
  failed: "request failed",
  missing: "not asked yet",
  "cut off": "cut off by the token limit",
  "in part": "not understood in part",
};

const MEDIUM = /^[0-9a-f]{64}(\.(ogg|png|jpg|webp))?$/;
const LONG = 900;

/** Return a prompt as it was sent: its placeholders are filled with the metadata that the plan kept. */
const promptOf = (row, prompt) => prompt.replace(/\{([a-z_][a-z0-9_]*)\}/g, (all, name) => row[`metadata.${name}`] ?? all);

const segmentsOf = (text) => (text ?? "").split("\x1d").filter(Boolean).map((one) => {
  const [segment, attribute, values] = one.split("\x1e");
  return { segment, attribute, values: (values ?? "").split("\x1f") };
});

/** Return the recordings or pictures that were sent, in the order of the turns. */
export const media = (task, row) => {
  const sent = (row.media ?? "").split(" ").filter((one) => MEDIUM.test(one));
  return sent.map((one, n) => medium(task, row, `media/${one}`, sent.length > 1 ? ` ${n + 1}` : ""));
};

const medium = (task, row, address, number) => {
  if (task.media === "image") {
    const picture = el("img", { src: address, alt: `Picture${number} of ${row.sample}`, loading: "lazy", decoding: "async" });
    const button = el("button", { type: "button", class: "photo", "aria-expanded": "false", title: "Larger or smaller" }, picture);
    button.addEventListener("click", () => button.setAttribute("aria-expanded", button.classList.toggle("large")));
    picture.addEventListener("error", () => button.replaceWith(el("p", { class: "quiet" }, "The picture is not there.")));
    return button;
  }
  return el("button", {
    type: "button", class: "play", "aria-label": `Play the recording${number} of ${row.cluster || row.sample}`,
    onclick: (event) => play(address, `${row.cluster || row.sample}, ${row.stratum}`, event.currentTarget),
  }, `▶ Recording${number}`);
};

/** Return the button that plays a spoken answer, null without one. */
const spoken = (row) => (!row.sound || !MEDIUM.test(row.sound) ? null : el("button", {
  type: "button", class: "play", "aria-label": `Play the answer to ${row.cluster || row.sample}`,
  onclick: (event) => play(`media/${row.sound}`, `answer to ${row.cluster || row.sample}, ${row.stratum}`, event.currentTarget),
}, "▶ Answer"));

const words = (task, row, pattern) => {
  if (row.text === null) return el("p", { class: "quiet" }, row.status === "missing" ? "Not asked yet." : row.error ?? "No answer.");
  if (!row.text.trim()) return el("p", { class: "quiet" }, "The answer is empty.");
  const whole = el("p", { class: "words" });
  const fold = row.text.length > LONG && !(pattern && pattern.test(row.text.slice(LONG)));
  whole.append(...marked(fold ? `${row.text.slice(0, LONG)}…` : row.text, pattern));
  if (!fold) return whole;
  const more = el("button", { type: "button", class: "link more" }, "All of it");
  more.addEventListener("click", () => {
    whole.replaceChildren(...marked(row.text, pattern));
    more.remove();
  });
  return [whole, more];
};

/** Return the values of an answer; a click on one is given to `pick` as attribute and value. */
const values = (task, row, { pick, picked, differs }) => {
  const lines = task.attributes
    .map((attribute) => [attribute, row[`values.${attribute.name}`]])
    .filter(([attribute, own]) => own?.length && !(attribute.role === "refusal" && own[0] === "no"));
  if (!lines.length) return null;
  return el("dl", { class: "values" }, lines.map(([attribute, own]) => el("div", { class: differs?.has(attribute.name) && "differs" },
    el("dt", { title: attribute.asks }, named(attribute.name)),
    el("dd", {}, own.map((value) => el("button", {
      type: "button", class: "value", title: `Show answers with ${named(attribute.name)}: ${value}`,
      "aria-pressed": picked && picked.attribute === attribute.name && picked.wordings.includes(value) ? "true" : "false",
      onclick: () => pick(attribute.name, value),
    }, value))))));
};

const behind = (task, row) => {
  const facts = [
    [task.strata ? named(task.strata) : "stratum", row.stratum], [named(task.cluster), row.cluster], ["sample", row.sample],
    ["repeat", row.repeat ? String(row.repeat) : ""], ["status", STATUSES[row.status] ?? row.status],
    ["ended", row.ended], ["key", row.key],
  ];
  const parts = segmentsOf(row.segments);
  return [
    el("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    task.before?.length ? [el("h4", {}, "Said before"), task.before.map((prompt, n) => [
      el("p", { class: "words" }, promptOf(row, prompt)), el("p", { class: "words before" }, (row.before ?? "").split("\x1d")[n] ?? "")])] : null,
    el("h4", {}, "Prompt"), el("p", { class: "words" }, promptOf(row, task.prompt)),
    parts.length ? [el("h4", {}, "Segments"), el("dl", { class: "facts" }, parts.map((one) => el("div", {},
      el("dt", {}, [one.segment, one.attribute].filter(Boolean).map(named).join(", ")),
      el("dd", {}, one.attribute ? one.values.join(" · ") : STATUSES[one.values[0]] ?? one.values[0]))))] : null,
  ];
};

/** Return the annotator's own words where it was not understood, null where it was. */
export const rawWords = (row, pattern) => (row.raw === null || row.raw === undefined ? null
  : [el("h4", {}, row.status === "unannotated" ? "The annotator failed" : "What the annotator wrote"), el("pre", { class: "words raw", tabindex: 0 }, marked(row.raw, pattern))]);

/** Return one answer; `options` are `pick`, `picked`, `pattern`, `differs`, `raw` (its words at once) and `head`. */
export const answer = (task, row, options = {}) => {
  if (!row) return el("div", { class: "cell none" });
  const details = el("details", {}, el("summary", {}, "More"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(...behind(task, row).flat(Infinity).filter(Boolean), ...(options.raw ? [] : [rawWords(row)].flat().filter(Boolean)));
  });
  const plain = row.status === "parsed";
  return el("div", { class: `cell${plain ? "" : " unread"}`, "data-status": row.status },
    el("p", { class: "head" },
      el("span", { class: "group" }, options.head ?? row.group),
      options.head || row.cluster === row.group ? null : el("span", { class: "cluster" }, row.cluster),
      task.media === "audio" ? media(task, row) : null, spoken(row),
      plain ? null : el("span", { class: "status" }, STATUSES[row.status] ?? row.status),
      row.ended === "length" ? el("span", { class: "status" }, STATUSES["cut off"]) : null),
    task.media === "image" ? media(task, row) : null, words(task, row, options.pattern), options.raw ? rawWords(row, options.pattern) : null,
    values(task, row, { pick: () => {}, ...options }), details);
};
