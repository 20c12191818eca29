"""The answers to one task: a row for each planned request, in pairs of groups, filtered and shown a page at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equivox.core.endings import TRUNCATED
from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np, pa, pandas, pc
from equivox.core.redact import redacted_text
from equivox.core.samples import ENDED
from equivox.core.task import Task, placeholders_of
from equivox.core.text import visible
from equivox.core.variants import SILENCE
from equivox.run.plan import FOLLOWS, read_plan
from equivox.run.scoring import open_samples
from equivox.run.store import Store, annotation_schema, annotations_folder, response_schema

VALUES, STATUS = "values.", "status."
UNREAD = "unread"
"""The filter for all answers that do not count."""

STATUSES = {
    "parsed": "read", "unparsed": "the judge could not read it", "unannotated": "not read by a judge yet",
    "refused": "refused", "empty": "empty", "failed": "the request failed", "missing": "not asked yet",
}  # fmt: skip
"""What became of a request, in words."""


@dataclass(frozen=True, eq=False)
class RunTables:
    """Data that all tasks of a run share: plan, responses, and the judge's words that could not be read, by key."""

    folder: Path
    annotator: str
    plan: pa.Table
    responses: pa.Table
    raw: Mapping[str, str]

    @classmethod
    def read(cls, folder: Path, annotator: str) -> RunTables:
        """Return the tables of a run; UsageError if it has no plan, DamageError if a file cannot be read."""
        responses = Store(folder / "responses", response_schema()).table(("key", "text", "error", ENDED, "sound"))
        annotations = Store(annotations_folder(folder, annotator), annotation_schema())
        read = annotations.table(("response_key", "status", "output"))
        unread = read.filter(pc.is_in(read["status"], value_set=pa.array(["unparsed", "failed"])))
        words = zip(unread["response_key"].to_pylist(), unread["output"].to_pylist(), strict=True)
        raw = {key: output for key, output in words if output}
        return cls(folder, annotator, read_plan(folder), responses.combine_chunks(), raw)

    def find_responses(self, keys: pa.Array) -> pa.Table:
        """Return the response to each of some requests; all null where there is none."""
        return self.responses.take(pc.index_in(keys, value_set=self.responses["key"].combine_chunks()))


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to a task of a run that need not be complete, a row for each request.

    `plan` has the requests, sorted by pair and group, and `pairs` the number of each one's pair. `samples` has status
    and values in the same order; it is None where they are not known, and `reason` then says why.
    """

    run: RunTables
    task: Task
    plan: pa.Table
    pairs: NDArray[np.int64]
    samples: pa.Table | None
    reason: str | None

    @classmethod
    def read(cls, run: RunTables, task: Task) -> Answers:
        """Return the answers to a task."""
        plan = run.plan.filter(pc.equal(run.plan["task"], task.name)).combine_chunks()
        samples, reason = _read_samples(run, task, plan)
        order, pairs = _pair(plan)
        return cls(run, task, plan.take(order), pairs, None if samples is None else samples.take(order), reason)

    @cached_property
    def responses(self) -> pa.Table:
        """The response of each row; all null where there is none."""
        return self.run.find_responses(self.plan["key"])

    @cached_property
    def groups(self) -> list[str]:
        """The groups, sorted."""
        return sorted(group or "" for group in self.plan["group"].unique().to_pylist())

    @cached_property
    def statuses(self) -> NDArray[np.object_]:
        """The status of each row."""
        if self.samples is not None:
            return np.asarray(self.samples["status"].to_numpy(), object)
        made = pc.if_else(pc.is_valid(self.responses["text"]), "unannotated", "failed")
        return np.asarray(pc.if_else(pc.is_valid(self.responses["key"]), made, "missing").to_numpy(), object)

    def match(
        self, *, values: Collection[str] = (), status: str = "", group: str = "", search: str = ""
    ) -> NDArray[np.bool_]:
        """Return which rows have one of some values, a status, a group, and words in the answer or the judge's."""
        rows = np.ones(len(self.plan), bool)
        if values:
            rows = np.zeros(len(self.plan), bool)
            samples = pa.table({}) if self.samples is None else self.samples
            for name in (name for name in samples.column_names if name.startswith(VALUES)):
                column = samples[name].combine_chunks()
                having = pc.is_in(pc.list_flatten(column), value_set=pa.array(list(values), pa.string()))
                rows[pc.list_parent_indices(column).filter(having).to_numpy()] = True
        if status:
            rows &= self.statuses != "parsed" if status == UNREAD else self.statuses == status
        if group:
            rows &= np.asarray(pc.equal(self.plan["group"], group).fill_null(False))
        if search:
            said = np.asarray(pc.match_substring(self.responses["text"], search, ignore_case=True).fill_null(False))
            judged = [key for key, words in self.run.raw.items() if search.casefold() in words.casefold()]
            rows &= said | np.asarray(pc.is_in(self.plan["key"], value_set=pa.array(judged, pa.string())))
        return rows

    def order_pairs(self, matching: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the pairs with a matching row, those first in which the groups differ in it."""
        some = np.unique(self.pairs[matching])
        differ = np.isin(some, self.pairs[~matching & (self.statuses != "missing")])
        return np.concatenate([some[differ], some[~differ]])

    def describe(self, pairs: Sequence[int]) -> list[list[dict[str, Any]]]:
        """Return the answers of some pairs as plain values, safe to show."""
        ends = [np.searchsorted(self.pairs, [pair, pair + 1]).tolist() for pair in pairs]
        return [[_make_visible(self._describe(row)) for row in range(*two)] for two in ends]

    def _describe(self, row: int) -> dict[str, Any]:
        (asked,), (got,) = self.plan.slice(row, 1).to_pylist(), self.responses.slice(row, 1).to_pylist()
        prompts = [_fill(prompt, asked) for prompt in (*self.task.prompt.before, self.task.prompt.text)]
        followed = asked.get(FOLLOWS)
        before = self.run.find_responses(pa.array(followed, pa.string()))["text"].to_pylist() if followed else []
        group, status = asked["group"] or "", self.statuses[row]
        return {
            "row": row,
            "group": group,
            "label": self.task.group_labels.get(group, group),
            "colour": self.groups.index(group) % 6,
            "unit": asked["cluster"] or "",
            "about": " · ".join(filter(None, (asked["stratum"], asked["sample_id"], asked["key"]))),
            "status": status,
            "says": STATUSES.get(status, status) + ("; cut off by the token limit" if got[ENDED] == TRUNCATED else ""),
            "text": got["text"] or redacted_text(got["error"] or ""),
            "raw": redacted_text(self.run.raw.get(asked["key"], "")),
            "media": self.list_media(row),
            "values": self._list_values(row),
            "before": list(zip(prompts, (text or "(no answer)" for text in before), strict=False)),
            "prompt": prompts[-1],
        }

    def list_media(self, row: int) -> list[str]:
        """Return the kinds of what was sent with a request, `sound` last for an answer that was spoken."""
        sent = self.plan["media_sha256"][row].as_py() or () if self.task.condition != SILENCE else ()
        kinds = [medium.kind for medium, _ in zip(self.task.media, sent, strict=False)]
        return [*kinds, *(["sound"] if self.responses["sound"][row].as_py() else [])]

    def _list_values(self, row: int) -> list[tuple[str, list[str]]]:
        """Return attributes with their values, those of a segment as `segment: attribute`, and unread segments."""
        known = {} if self.samples is None else self.samples.slice(row, 1).to_pylist()[0]
        listed = [(name.removeprefix(VALUES), known[name]) for name in known if name.startswith(VALUES) and known[name]]
        for name in (name for name in known if name.startswith(STATUS) and known[name] not in (None, "parsed")):
            listed.append((name.removeprefix(STATUS), [STATUSES.get(known[name], known[name])]))
        return [(": ".join(name.rsplit(".", 1)).replace("_", " "), list(values)) for name, values in listed]


def _read_samples(run: RunTables, task: Task, plan: pa.Table) -> tuple[pa.Table | None, str | None]:
    try:
        opened = open_samples(run.folder, [task], run.annotator)[task.name]
    except UsageError as error:
        return None, redacted_text(str(error))
    wanted = [name for name in opened.columns if name == "key" or name.startswith(("status", VALUES))]
    table = opened.read(wanted)
    if not table["key"].combine_chunks().equals(plan["key"].combine_chunks()):
        return None, f"the annotations of {task.name} are not those of its plan; annotate again"
    return table, None


def _pair(plan: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of requests by pair and group, and the number of each one's pair in this order.

    Answers about one unit make a pair where a unit is in several groups. Otherwise the answers to one stratum and item
    do, the first of each group together, then the second.
    """
    names = ["stratum", *(["item"] if "item" in plan.column_names else []), "cluster", "group", "sample_id", "repeat"]
    # Codes in the order of the texts: they sort faster than the texts do.
    texts = plan.select(names[:-1]).to_pandas().fillna("")
    columns = {name: pandas.factorize(texts[name], sort=True)[0] for name in texts}
    frame = pandas.DataFrame({**columns, "repeat": plan["repeat"].to_numpy()}).sort_values(names, kind="stable")
    crossed = len(frame.groupby(["cluster", "group"])) > frame["cluster"].nunique()
    equal = names[: names.index("group" if crossed else "cluster")]
    frame["rank"] = frame.groupby([*equal, "group"]).cumcount()
    frame["pair"] = frame.groupby([*equal, "rank"]).ngroup()
    frame = frame.sort_values(["pair", "group"], kind="stable")
    return frame.index.to_numpy(), frame["pair"].to_numpy()


def _fill(prompt: str, asked: Mapping[str, Any]) -> str:
    """Return a prompt as it was sent: a name in braces is a column of the sample, which may hold further names."""
    for _ in range(2):
        for name in placeholders_of(prompt):
            text = next((asked[c] for c in (f"metadata.{name}", f"column.{name}") if asked.get(c) is not None), None)
            prompt = prompt if text is None else prompt.replace(f"{{{name}}}", str(text))
    return prompt


def _make_visible(value: Any) -> Any:
    """Return plain values in which no text turns the direction of what stands beside it."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _make_visible(one) for key, one in value.items()}
    return [_make_visible(one) for one in value] if isinstance(value, list | tuple) else value
