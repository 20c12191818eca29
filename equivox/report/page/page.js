"use strict";
// The cards of one model are shown at a time.
const radios = [...document.querySelectorAll(".pick input")];
const models = [...document.querySelectorAll(".model")];
const show = (n) => {
  radios.forEach((radio, m) => { radio.checked = m === n; });
  models.forEach((model, m) => { model.hidden = m !== n; });
};
if (radios.length) {
  document.querySelector(".pick").hidden = false;
  radios.forEach((radio, n) => radio.addEventListener("change", () => show(n)));
  show(radios.findIndex((radio) => radio.checked));
}
// A link to a card shows the cards of its model.
const reveal = () => {
  const card = document.getElementById(location.hash.slice(1));
  const model = card?.closest(".model");
  if (!model) return;
  if (radios.length) show(models.indexOf(model));
  card.scrollIntoView({ block: "center" });
  card.focus({ preventScroll: true });
};
addEventListener("hashchange", reveal);
reveal();

// The answers of `equivox view`. Whatever comes from a run enters as text; nothing of it is ever read as HTML.
const panel = document.getElementById("answers");
const form = panel?.querySelector("form");
const [tally, pairs, unfilter, where, back, next] = ["tally", "pairs", "unfilter", "where", "back", "next"].map((id) => document.getElementById(id));
const SVG = "http://www.w3.org/2000/svg";
let page = 0;
let asked = 0;

const el = (name, given, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(given)) if (value !== false) element.setAttribute(key, value);
  element.append(...children.flat().filter((child) => child !== null && child !== ""));
  return element;
};
// A name in whatever direction turns nothing beside it.
const apart = (text) => el("bdi", {}, text);

const swatch = (colour) => {
  const svg = document.createElementNS(SVG, "svg");
  const circle = document.createElementNS(SVG, "circle");
  for (const [key, value] of [["cx", "50%"], ["cy", "50%"], ["r", "50%"]]) circle.setAttribute(key, value);
  svg.setAttribute("class", `swatch g${colour}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(circle);
  return svg;
};

const marked = (text, search) => {
  if (!search) return [text];
  const pattern = new RegExp(`(${search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "iu");
  return text.split(pattern).map((part, n) => (n % 2 ? el("mark", {}, part) : part));
};

const medium = (kind, row, number) => {
  const source = `media?${new URLSearchParams({ task: form.elements.task.value, row, number })}`;
  if (kind === "image") return el("img", { src: source, alt: "The picture that was sent", loading: "lazy" });
  const audio = el("audio", { controls: "", preload: "none", src: source, "aria-label": kind === "sound" ? "The spoken answer" : "The recording that was sent" });
  audio.addEventListener("play", () => document.querySelectorAll("audio").forEach((other) => other !== audio && other.pause()));
  audio.addEventListener("error", async () => {
    const answer = await fetch(source).catch(() => null);
    audio.replaceWith(el("p", { class: "quiet" }, answer ? (await answer.text()).slice(0, 300) : "The server does not answer."));
  });
  return audio;
};

const value = (text, picked) => {
  const button = el("button", { type: "button", "aria-pressed": picked.includes(text) }, apart(text));
  button.addEventListener("click", () => go({ value: picked.includes(text) ? "" : text }));
  return [button, " "];
};

const answer = (one, search, picked) => el("article", { class: "answer", "data-status": one.status },
  el("p", { class: "by" }, swatch(one.colour), el("b", {}, apart(one.label || "all")), " ", el("span", { class: "quiet" }, apart(one.unit),
    one.says === "read" ? "" : ` · ${one.says}`)),
  one.media.map((kind, n) => medium(kind, one.row, n)),
  el("p", { class: "words", tabindex: 0 }, marked(one.text, search)),
  one.raw ? [el("p", { class: "quiet" }, "The judge wrote"), el("pre", { class: "words raw", tabindex: 0 }, marked(one.raw, search))] : [],
  el("dl", { class: "values" }, one.values.filter(([name, [first]]) => name !== "refusal" || first !== "no").map(([name, values]) => el("div", {}, el("dt", {}, apart(name), " "), el("dd", {}, values.flatMap((text) => value(text, picked)))))),
  el("details", {}, el("summary", {}, "What was asked"),
    one.before.map(([prompt, text]) => [el("p", { class: "words" }, prompt), el("p", { class: "words before" }, text)]).flat(),
    el("p", { class: "words" }, one.prompt), el("p", {}, apart(one.about))));

const load = async () => {
  asked += 1;
  const mine = asked;
  const state = new URLSearchParams(new FormData(form));
  state.set("page", page);
  const reply = await fetch(`answers?${state}`).catch(() => null);
  if (mine !== asked) return;
  if (!reply?.ok) {
    tally.textContent = reply ? await reply.text() : "The server does not answer.";
    pairs.replaceChildren();
    return;
  }
  const found = await reply.json();
  if (mine !== asked) return;
  const { group } = form.elements;
  group.replaceChildren(el("option", { value: "" }, "all"), ...found.groups.map((name) => el("option", { value: name, selected: name === state.get("group") }, name)));
  tally.replaceChildren(...[found.tally, ...(state.get("value") ? [" with ", apart(state.get("value"))] : []), found.reason ? `. ${found.reason}` : ""]);
  unfilter.hidden = !["group", "status", "search", "value"].some((name) => state.get(name));
  pairs.replaceChildren(...found.pairs.map((pair) => el("div", { class: "pair" }, pair.map((one) => answer(one, state.get("search"), found.picked)))));
  where.textContent = `Page ${page + 1} of ${Math.max(1, found.pages)}`;
  back.disabled = page === 0;
  next.disabled = page + 1 >= found.pages;
};

const go = (changes) => {
  for (const [name, given] of Object.entries(changes)) form.elements[name].value = given;
  page = 0;
  const state = [...new FormData(form)].filter(([, given]) => given);
  history.replaceState(null, "", `#answers?${new URLSearchParams(state)}`);
  load();
};

const turn = (by) => {
  page += by;
  load().then(() => panel.scrollIntoView());
};

// What is shown stands in the address.
const follow = () => {
  const [name, query] = location.hash.slice(1).split("?");
  const state = new URLSearchParams(name === "answers" ? query : "");
  for (const field of ["group", "status", "search", "value"]) form.elements[field].value = state.get(field) ?? "";
  if (state.get("task")) form.elements.task.value = state.get("task");
  page = 0;
  load();
  if (name === "answers") panel.scrollIntoView();
};

if (panel) {
  let timer = 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => go(event.target.name === "task" ? { group: "", value: "" } : {}), event.target.name === "search" ? 250 : 0);
  });
  unfilter.addEventListener("click", () => go({ group: "", status: "", search: "", value: "" }));
  back.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  addEventListener("hashchange", () => location.hash.startsWith("#answers") && follow());
  follow();
}
