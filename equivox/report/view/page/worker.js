// Reads the tables of answers beside the page, so that it never waits: what is asked for, and no more.
import { parquetMetadataAsync } from "./vendor/hyparquet/metadata.js";
import { parquetRead } from "./vendor/hyparquet/read.js";
import { decompress } from "./vendor/fzstd/index.js";

const UNREAD = /(?:^|\x1d)[^\x1d\x1e]*\x1e\x1e/; // a segment that was not understood
const TAIL = 1 << 19; // the end of a file holds its index; small files are read whole
const MOST = 1500; // parts of columns that are kept

const compressors = { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) };

/** Return a file of which parts are read; a server that knows no parts gives it whole. */
const openFile = async (url) => {
  const answer = await fetch(url, { headers: { Range: `bytes=-${TAIL}` } });
  if (!answer.ok) throw new Error(`${url}: the server answered ${answer.status}`);
  const last = await answer.arrayBuffer();
  const total = answer.status === 206 ? Number(/\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "")?.[1]) : last.byteLength;
  if (!Number.isFinite(total)) throw new Error(`${url}: the server did not say how long it is`);
  const begins = total - last.byteLength;
  return {
    byteLength: total,
    slice: async (start, end = total) => {
      if (start >= begins) return last.slice(start - begins, end - begins);
      const part = await fetch(url, { headers: { Range: `bytes=${start}-${end - 1}` } });
      if (part.status !== 206) throw new Error(`${url}: the server answered ${part.status} to a part`);
      return part.arrayBuffer();
    },
  };
};

const tables = new Map();
const kept = new Map(); // parts of columns, the latest used last

const opened = (url) => {
  if (!tables.has(url)) {
    const made = (async () => {
      const file = await openFile(url);
      const metadata = await parquetMetadataAsync(file);
      let from = 0;
      const groups = metadata.row_groups.map((group) => {
        const to = from + Number(group.num_rows);
        const range = [from, to];
        from = to;
        return range;
      });
      const names = new Set(metadata.schema.slice(1).map((entry) => entry.name));
      return { url, file, metadata, groups, names };
    })();
    made.catch(() => tables.delete(url)); // it is tried again when it is asked for again
    tables.set(url, made);
  }
  return tables.get(url);
};

/** Return columns of one row group: name → values. */
const columnsOf = async (table, number, names) => {
  const place = (name) => `${table.url} ${number} ${name}`;
  const wanted = names.filter((name) => table.names.has(name));
  const missing = wanted.filter((name) => !kept.has(place(name)));
  if (missing.length) {
    const [rowStart, rowEnd] = table.groups[number];
    const made = Object.fromEntries(missing.map((name) => [name, new Array(rowEnd - rowStart)]));
    await parquetRead({
      file: table.file,
      metadata: table.metadata,
      columns: missing,
      rowStart,
      rowEnd,
      compressors,
      onChunk: ({ columnName, columnData, rowStart: at }) => {
        const column = made[columnName];
        for (let n = 0; n < columnData.length; n++) column[at - rowStart + n] = columnData[n];
      },
    });
    for (const name of missing) kept.set(place(name), made[name]);
  }
  const found = {};
  for (const name of wanted) {
    const column = kept.get(place(name));
    kept.delete(place(name));
    kept.set(place(name), column);
    found[name] = column;
  }
  while (kept.size > MOST) kept.delete(kept.keys().next().value);
  return found;
};

/** Return the function that says whether row n of some columns fits. */
const fits = (filter, columns) => {
  const tests = [];
  if (filter.statuses) {
    const wanted = new Set(filter.statuses);
    tests.push((n) => wanted.has(columns.status[n]) || (wanted.has("cut off") && columns.ended[n] === "length")
      || (wanted.has("in part") && UNREAD.test(columns.segments?.[n] ?? "")));
  }
  if (filter.attribute) {
    const column = columns[`values.${filter.attribute}`] ?? [];
    const wanted = new Set(filter.wordings);
    tests.push((n) => (column[n] ?? []).some((value) => wanted.has(value)));
  }
  if (filter.changed !== undefined) {
    tests.push((n) => {
      const names = columns.changed[n] ? columns.changed[n].split("\x1f") : [];
      if (filter.changed === "") return names.length > 0;
      return filter.changed === "words" ? names.length === 0 : names.includes(filter.changed);
    });
  }
  if (filter.pattern) {
    tests.push((n) => filter.pattern.test(columns.text[n] ?? "") || filter.pattern.test(columns.error?.[n] ?? "")
      || (filter.raw && filter.pattern.test(columns.raw?.[n] ?? "")));
  }
  return (n) => tests.every((test) => test(n));
};

const needed = (filter) => [
  "stratum", "group",
  ...(filter.statuses ? ["status", "ended", ...(filter.statuses.includes("in part") ? ["segments"] : [])] : []),
  ...(filter.attribute ? [`values.${filter.attribute}`] : []),
  ...(filter.changed !== undefined ? ["changed"] : []),
  ...(filter.pattern ? ["text", "error", ...(filter.raw ? ["raw"] : [])] : []),
];

const TOGETHER = 12; // row groups that are read at a time: their parts come side by side

let latest = 0;
let reading = 0; // rows that are to be shown go before the search for further ones

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Send the rows of the screen that fit, stratum by stratum: for each the row number of every group, -1 for none. */
const query = async ({ id, url, groups, filter, single }) => {
  latest = id;
  const table = await opened(url);
  const place = new Map(groups.map((group, n) => [group, n]));
  const total = Number(table.metadata.num_rows);
  const matches = groups.map(() => 0);
  let stratum = null;
  let own = groups.map(() => []);
  let strata = [];
  let cells = [];
  let sent = 0;
  const emit = () => {
    const rows = Math.max(0, ...own.map((list) => list.length));
    for (let n = 0; n < rows; n++) {
      strata.push(stratum);
      for (const list of own) cells.push(list[n] ?? -1);
    }
    own = groups.map(() => []);
  };
  const send = (done, read) => {
    postMessage({ id, part: { strata, cells: Int32Array.from(cells), matches, done, read } });
    sent += strata.length;
    [strata, cells] = [[], []];
  };
  let shown = performance.now();
  for (const [number, [from]] of table.groups.entries()) {
    if (number % TOGETHER === 1) {
      const together = [...table.groups.keys()].slice(number, number + TOGETHER);
      await Promise.all(together.map((one) => columnsOf(table, one, needed(filter))));
    }
    const columns = await columnsOf(table, number, needed(filter));
    if (latest !== id) return;
    const fit = fits(filter, columns);
    for (let n = 0; n < columns.stratum.length; n++) {
      const at = place.get(columns.group[n]);
      if (at === undefined || !fit(n)) continue;
      if (columns.stratum[n] !== stratum || single) {
        emit();
        stratum = columns.stratum[n];
      }
      own[at].push(from + n);
      matches[at] += 1;
    }
    if (performance.now() - shown > 80 || (sent === 0 && strata.length > 40)) {
      const first = sent === 0;
      send(false, from + columns.stratum.length);
      await pause(first ? 25 : 0); // what the page now asks for is heard
      while (reading) await pause(2);
      if (latest !== id) return;
      shown = performance.now();
    }
  }
  emit();
  send(true, total);
};

/** Return rows with some columns, in the order of their numbers given. */
const rows = async ({ url, numbers, columns }) => {
  const table = await opened(url);
  const parts = new Map();
  for (const number of numbers) {
    const group = table.groups.findIndex(([from, to]) => number >= from && number < to);
    if (group >= 0 && !parts.has(group)) parts.set(group, null);
  }
  for (const group of parts.keys()) parts.set(group, await columnsOf(table, group, columns));
  return numbers.map((number) => {
    const group = table.groups.findIndex(([from, to]) => number >= from && number < to);
    if (group < 0) return null;
    const at = number - table.groups[group][0];
    return Object.fromEntries(Object.entries(parts.get(group)).map(([name, column]) => [name, column[at] ?? null]));
  });
};

addEventListener("message", async ({ data }) => {
  try {
    if (data.kind === "query") await query(data);
    else {
      reading += 1;
      try {
        postMessage({ id: data.id, rows: await rows(data) });
      } finally {
        reading -= 1;
      }
    }
  } catch (error) {
    postMessage({ id: data.id, problem: error.message });
  }
});
