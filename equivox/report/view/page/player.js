// One recording plays at a time, in the bar at the foot of the page.
import { el, say } from "./dom.js";

const bar = document.getElementById("player");
const audio = document.getElementById("audio");
const playing = document.getElementById("playing");
let button = null;

const mark = (on) => button?.setAttribute("aria-pressed", on ? "true" : "false");
audio.addEventListener("play", () => mark(true));
audio.addEventListener("pause", () => mark(false));
audio.addEventListener("error", async () => {
  if (!audio.getAttribute("src")) return;
  let why = "The recording cannot be played here.";
  try {
    const answer = await fetch(audio.src);
    if (answer.status === 404) why = `No recording: ${(await answer.text()).slice(0, 300)}`;
  } catch {
    why = "The server does not answer.";
  }
  playing.replaceChildren(el("span", { class: "warn" }, why));
  say(why);
});

/** Play a recording, or pause it if it plays already. */
export const play = (address, name, from) => {
  const same = audio.getAttribute("src") === address;
  if (same && !audio.paused) {
    audio.pause();
    return;
  }
  mark(false);
  button = from;
  bar.hidden = false;
  if (!same) {
    playing.textContent = name;
    audio.setAttribute("src", address);
  }
  audio.play().catch(() => {}); // what went wrong is said by the error event
};
