// What the page asks of the tables of answers; a worker reads them.

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let last = 0;

worker.addEventListener("message", ({ data }) => {
  const asked = waiting.get(data.id);
  if (!asked) return;
  if (data.problem) {
    waiting.delete(data.id);
    asked.problem(new Error(data.problem));
  } else if (data.part) {
    asked.part(data.part);
    if (data.part.done) waiting.delete(data.id);
  } else {
    waiting.delete(data.id);
    asked.rows(data.rows);
  }
});
worker.addEventListener("error", (event) => {
  for (const [id, asked] of waiting) {
    waiting.delete(id);
    asked.problem(new Error(event.message || "the tables of answers cannot be read here"));
  }
});

/** Ask which rows fit; `part` is called as they are found, `problem` with an error. A newer question ends an older one. */
export const query = (asked, part, problem) => {
  last += 1;
  for (const [id, other] of waiting) if (other.query) waiting.delete(id);
  waiting.set(last, { query: true, part, problem });
  worker.postMessage({ ...asked, kind: "query", id: last });
};

/** Return rows by their numbers with some columns. */
export const rows = (url, numbers, columns) => new Promise((resolve, reject) => {
  last += 1;
  waiting.set(last, { rows: resolve, problem: reject });
  worker.postMessage({ kind: "rows", id: last, url, numbers, columns });
});
