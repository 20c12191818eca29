// One answer a screen. Every label is sent as soon as it is given; what could not be sent stays in this browser and is sent again.
import { el, many, say } from "./dom.js";

const main = document.getElementById("main");
const help = document.getElementById("help");
const saved = document.getElementById("saved");
const UNSTATED = "unstated";
const KEYS = [
  ["1 – 9", "choose an answer to the marked question"], ["u", "unstated: the text does not say it"], ["r", "the text declines the request"],
  ["Tab, ↓ ↑", "another question"], ["Enter", "next answer"], ["Backspace", "the answer before"],
  ["h", "show the recording or picture"], ["space", "play or pause it"], ["?", "these keys"],
];

let doc = null;
let person = new URLSearchParams(location.search).get("person") ?? "";
let place = 0;
let active = 0;
let sending = Promise.resolve();
let retry = 0;
let refused = "";

const kept = () => `equivox-labels ${location.origin} ${person}`;
const item = () => doc.items[place];
const given = (one = item()) => (doc.labels[one.item] ??= {});
const isRefusal = (asked) => asked.name === "refusal";
const declined = (one) => given(one).refusal === "yes";
const isDone = (one) => one.asked.every((asked) => given(one)[asked.name]);
const first = () => Math.max(0, doc.items.findIndex((one) => !isDone(one)));

const waiting = () => JSON.parse(localStorage.getItem(kept()) ?? "[]");
const keep = (list) => (list.length ? localStorage.setItem(kept(), JSON.stringify(list)) : localStorage.removeItem(kept()));

const tell = (text, failed = false) => {
  saved.textContent = text;
  saved.classList.toggle("failed", failed);
};

/** Take one label out of those that wait; others may have come since it was sent, also from another window. */
const forget = (sent) => {
  const list = waiting();
  const at = list.findIndex((one) => JSON.stringify(one) === JSON.stringify(sent));
  if (at >= 0) list.splice(at, 1);
  keep(list);
};

/** Say that the server does not take a label, whose question is open again. */
const refuse = (sent, problem) => {
  const own = doc.labels[sent.item] ?? {};
  for (const [name, value] of Object.entries(sent.labels)) if (own[name] === value) delete own[name];
  refused = problem;
  gauge();
};

/** Send what waits, the oldest first; what cannot be sent goes on waiting, and what is wrong is refused. */
const send = () => {
  sending = sending.then(async () => {
    for (let next = waiting()[0]; next; next = waiting()[0]) {
      let status = 0, problem = "the server does not answer";
      try {
        const answer = await fetch("labels", {
          method: "POST", body: JSON.stringify({ person, ...next }),
          headers: { "content-type": "application/json", "x-equivox-token": doc.token },
        });
        status = answer.status;
        if (!answer.ok) ({ problem } = await answer.json());
      } catch { /* it is away, or what answers is no server of labels */ }
      if (![200, 400, 413].includes(status)) {
        tell(`not saved: ${problem}; it is tried again`, true);
        clearTimeout(retry);
        retry = setTimeout(send, 3000);
        return;
      }
      forget(next);
      if (status !== 200) refuse(next, problem);
    }
    tell(refused ? `not saved: ${refused}` : "saved", Boolean(refused));
  });
};

const label = (changes) => {
  Object.assign(given(), changes);
  keep([...waiting(), { item: item().item, labels: changes }]);
  refused = "";
  tell("saving…");
  send();
  gauge();
};

const gauge = () => {
  const n = doc.items.filter(isDone).length;
  document.getElementById("progress").value = doc.items.length ? n / doc.items.length : 1;
  document.getElementById("count").textContent = `${n} of ${doc.items.length} done`;
};

const mark = (n) => {
  active = n;
  main.querySelectorAll(".question-of").forEach((one, place) => one.classList.toggle("active", place === n));
};

const focusOn = (n) => {
  const fields = [...main.querySelectorAll(".question-of")];
  if (!fields[n]) return main.querySelector(".next").focus();
  mark(n);
  // A question with options is answered by keys; a field is entered only when nothing stands in it.
  const field = fields[n].querySelector("input");
  if (field && !field.value) field.focus();
  else fields[n].focus({ preventScroll: true });
  fields[n].scrollIntoView({ block: "nearest" });
};

const values = (asked) => (given()[asked.name] ?? "").split(";").map((value) => value.trim()).filter(Boolean);

/** Store a value of a question, and that the text does not decline once something else was found in it. */
const choose = (asked, value, n) => {
  const most = asked.many ? Infinity : asked.count;
  let next = [value];
  if (most > 1 && value !== UNSTATED) {
    const before = values(asked).filter((one) => one !== UNSTATED);
    next = before.includes(value) ? before.filter((one) => one !== value) : [...before, value].slice(-most);
  }
  const changes = { [asked.name]: next.join("; ") };
  if (isRefusal(asked) && value === "yes") for (const other of item().asked) if (!isRefusal(other)) changes[other.name] = UNSTATED;
  const refusal = item().asked.find(isRefusal);
  if (refusal && !isRefusal(asked) && !given().refusal) changes.refusal = "no";
  label(changes);
  show(most > 1 ? n : n + 1);
};

const question = (asked, n) => {
  const own = values(asked);
  const parts = [];
  if (asked.said) parts.push(el("p", { class: "quiet" }, "People said: ", asked.said.map((one, k) => [k ? " · " : "", el("b", {}, one)])));
  const options = asked.options.length ? asked.options : asked.said ?? [];
  if (options.length) {
    parts.push(el("div", { class: "options" }, options.map((option, k) => el("button", {
      type: "button", "aria-pressed": own.includes(option) || given()[asked.name] === option ? "true" : "false",
      onclick: () => choose(asked, option, n),
    }, k < 9 && option !== UNSTATED ? el("kbd", {}, k + 1) : option === UNSTATED ? el("kbd", {}, "u") : null, option))));
  }
  if (!asked.options.length) {
    const hint = asked.share ? "0 to 1" : asked.count > 1 || asked.many ? "values separated by ;" : "a few words";
    const field = el("input", {
      value: asked.said && options.includes(given()[asked.name]) ? "" : given()[asked.name] ?? "", autocomplete: "off", "aria-label": asked.asks,
      placeholder: asked.share ? hint : `${hint} (or unstated)`, inputmode: asked.share ? "decimal" : null,
      onchange: (event) => {
        const text = event.target.value.trim();
        if (text === (given()[asked.name] ?? "")) return;
        const refusal = item().asked.find(isRefusal);
        label({ [asked.name]: text, ...(refusal && text && !given().refusal ? { refusal: "no" } : {}) });
      },
      onkeydown: (event) => {
        if (event.key === "Enter") {
          event.preventDefault();
          event.stopPropagation();
          event.target.blur();
          focusOn(n + 1);
        }
        if (event.key === "Escape") event.target.blur();
      },
    });
    parts.push(field, el("div", { class: "options" }, el("button", {
      type: "button", "aria-pressed": given()[asked.name] === UNSTATED ? "true" : "false", onclick: () => choose(asked, UNSTATED, n),
    }, el("kbd", {}, "u"), UNSTATED)));
    if (asked.share) parts.pop();
  }
  return el("fieldset", { class: "question-of", tabindex: -1, onfocusin: () => mark(n), onmousedown: () => mark(n) },
    el("legend", {}, asked.asks, asked.count > 1 ? ` (${asked.count} values)` : ""), parts);
};

const medium = (one) => {
  if (!one.media) return null;
  const picture = !one.media.endsWith(".ogg");
  const holder = el("div", {});
  const button = el("button", { type: "button", id: "hear" }, el("kbd", {}, "h"), ` Show the ${picture ? "picture" : "recording"}`);
  button.addEventListener("click", () => {
    const address = `media/${encodeURIComponent(one.item)}`;
    holder.replaceChildren(picture ? el("img", { src: address, alt: "What the model was shown" }) : el("audio", { src: address, controls: true, preload: "auto" }));
  });
  holder.append(button, el("p", { class: "quiet" }, "It may tell who the person is. Label what the text says, and open it only if you must."));
  return holder;
};

const move = (by) => {
  document.activeElement?.blur?.();
  if (place + by >= doc.items.length) return end();
  place = Math.max(0, place + by);
  show(0);
  scrollTo(0, 0);
  say(`Answer ${place + 1} of ${doc.items.length}`);
};

const end = () => {
  const left = doc.items.filter((one) => !isDone(one)).length;
  main.replaceChildren(el("section", { class: "intro" },
    el("h2", {}, left ? `${many(left, "answer")} ${left === 1 ? "has" : "have"} an open question` : doc.items.length ? "All done. Thank you." : "There is nothing to decide: people agree."),
    el("p", {}, "Everything is saved. You may close this page."),
    el("p", { class: "moves" }, doc.items.length ? el("button", { type: "button", class: "next", onclick: () => { place = left ? first() : 0; show(0); } }, left ? "Go to the first of them" : "Look at them again") : null)));
};

const show = (focus = null) => {
  const one = item();
  main.replaceChildren(el("article", { class: "item", "aria-label": `Answer ${place + 1}` },
    el("section", { class: "shown" },
      el("h2", {}, `Answer ${place + 1} of ${doc.items.length}`),
      one.prompt ? el("details", { class: "prompt" }, el("summary", {}, "What was asked"), el("p", { class: "words" }, one.prompt)) : null,
      el("p", { class: "words response" }, one.response), medium(one)),
    el("section", { "aria-label": "Questions" },
      el("p", { class: "quiet" }, doc.adjudicate ? "People differ here. Choose what the text itself says." : "Say what the text itself states. Where it says nothing, choose unstated."),
      one.asked.map(question),
      el("div", { class: "moves" },
        el("button", { type: "button", disabled: place === 0, onclick: () => move(-1) }, "Back"),
        el("button", { type: "button", class: "next", onclick: () => move(1) }, "Next")))));
  if (focus !== null) focusOn(focus);
  gauge();
};

const begin = async () => {
  const answer = await fetch(`label.json?${new URLSearchParams({ person })}`);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.problem);
  doc = found;
  for (const one of waiting()) Object.assign((doc.labels[one.item] ??= {}), one.labels);
  document.getElementById("person").textContent = doc.adjudicate ? "deciding" : person;
  if (waiting().length) send();
  gauge();
  if (!doc.items.length || doc.items.every(isDone)) return end();
  place = first();
  show(0);
};

const intro = (n, problem = "") => {
  const name = el("input", { id: "name", autocomplete: "off", required: true, maxlength: 40 });
  main.replaceChildren(el("section", { class: "intro" },
    el("h2", {}, `${many(n, "answer")} of language models`),
    el("p", {}, "Read each one and say what the text itself states. Do not guess. What you say is saved at once and shown to nobody else who labels. Some answers may be offensive."),
    problem ? el("p", { class: "warn" }, problem) : null,
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      person = name.value.trim();
      history.replaceState(null, "", `?${new URLSearchParams({ person })}`);
      begin().catch((error) => { person = ""; intro(n, error.message); });
    } }, el("label", {}, "Your name or initials", name), el("button", { class: "next" }, "Begin"))));
  name.focus();
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest("input, select, textarea, audio")) return;
  if (event.key === "?") return help.showModal();
  if (event.target.closest("button, summary, a") && (event.key === "Enter" || event.key === " ")) return; // presses it
  if (!doc || !main.querySelector(".item")) return;
  const asked = item().asked[active];
  const refusal = item().asked.findIndex(isRefusal);
  const audio = main.querySelector("audio");
  const actions = {
    u: () => asked && (asked.options.includes(UNSTATED) || !asked.options.length) && !asked.share && choose(asked, UNSTATED, active),
    r: () => refusal >= 0 && choose(item().asked[refusal], declined(item()) ? "no" : "yes", refusal),
    h: () => main.querySelector("#hear")?.click(),
    " ": () => (audio ? (audio.paused ? audio.play() : audio.pause()) : main.querySelector("#hear")?.click()),
    Enter: () => move(1), Backspace: () => move(-1),
    ArrowDown: () => focusOn(Math.min(active + 1, item().asked.length - 1)), ArrowUp: () => focusOn(Math.max(active - 1, 0)),
  };
  if (event.key in actions) {
    event.preventDefault();
    actions[event.key]();
  } else if (/^[1-9]$/.test(event.key) && asked) {
    const option = (asked.options.length ? asked.options : asked.said ?? [])[event.key - 1];
    if (option && option !== UNSTATED) {
      event.preventDefault();
      choose(asked, option, active);
    }
  }
});
addEventListener("beforeunload", (event) => waiting().length && event.preventDefault());
document.getElementById("help-open").addEventListener("click", () => help.showModal());
document.getElementById("keys").replaceChildren(...KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what))));

try {
  const found = await (await fetch("label.json")).json();
  if (found.problem) throw new Error(found.problem);
  if (found.adjudicate || person) await begin();
  else intro(found.items.length);
} catch (error) {
  main.replaceChildren(el("p", { class: "warn" }, `This page cannot be shown: ${error.message}`));
}
