"""The answers of one task as a table: what the page shows of each planned request, sorted as the page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.lazy import pa, pc, pq
from equivox.core.redact import redacted_text
from equivox.core.task import Task
from equivox.core.variants import SILENCE
from equivox.run.plan import FOLLOWS, read_plan
from equivox.run.scoring import open_samples
from equivox.run.store import Store, annotation_schema, annotations_folder, response_schema

VALUES, METADATA = "values.", "metadata."
NEXT_VALUE, NEXT_ATTRIBUTE, NEXT_SEGMENT = "\x1f", "\x1e", "\x1d"
"""Separators of values, attributes and segments in the column `segments`."""

ROWS = 1024
"""Rows of a row group: the page reads one or two of them to show a screen."""


@dataclass(frozen=True, eq=False)
class RunTables:
    """Data that all tasks of a run share: plan, responses, and what the annotator wrote where it was not understood."""

    folder: Path
    annotator: str
    plan: pa.Table
    responses: pa.Table
    raw: pa.Table

    @classmethod
    def of(cls, folder: Path, annotator: str) -> RunTables:
        """Return the tables of the run in `folder`, annotated by `annotator`; RequestError if it has no plan."""
        plan = read_plan(folder)
        store = Store(folder / "responses", response_schema())
        responses = store.table(("key", "text", "error", "finish_reason", "sound")).combine_chunks()
        return cls(folder, annotator, plan, responses, _raw_words(folder, annotator))


def _raw_words(folder: Path, annotator: str) -> pa.Table:
    """Return the annotator's own words, or its error, for each response that it could not annotate."""
    table = Store(annotations_folder(folder, annotator), annotation_schema()).table(
        ("response_key", "status", "output", "segment")
    )
    unread = pc.is_in(table["status"], value_set=pa.array(["unparsed", "failed"]))
    return table.filter(pc.and_(unread, pc.is_valid(table["output"]))).combine_chunks()


def answers_table(run: RunTables, task: Task) -> tuple[pa.Table, str | None]:
    """Return the answers of `task`, and why their values are not known (None if they are).

    Columns: `key`, `sample`, `repeat`, `group`, `cluster`, `stratum`, `item`, `status`, `ended`, `text`, `error`,
    `raw` (the annotator's words where it was not understood), `media` (the SHA-256 of all that was sent), `sound` (that
    of a spoken answer), `before` (the answers
    of the turns before it, in one text), `metadata.NAME` for what the prompts name, `values.ATTRIBUTE`, and
    `segments`: the annotation of further segments in one text.
    Sorted by stratum, group and cluster.
    """
    own = run.plan.filter(pc.equal(run.plan["task"], task.name)).combine_chunks()
    place = pc.index_in(own["key"], value_set=run.responses["key"].combine_chunks())
    answered = run.responses.take(place)
    samples, reason = _samples(run, task, own)
    if samples is None:
        made = pc.if_else(pc.is_valid(answered["text"]), "unannotated", "failed")
        status = pc.if_else(pc.is_valid(place), made, "missing")
    else:
        status = _plain(samples["status"])
    columns: dict[str, Any] = {
        "key": own["key"],
        "sample": _plain(own["sample_id"]),
        "repeat": own["repeat"],
        **{name: _plain(own[name]) for name in ("group", "cluster", "stratum")},
        "item": _plain(own["item"]) if "item" in own.column_names else pa.array([""] * len(own), pa.string()),
        "status": status,
        "ended": answered["finish_reason"],
        "text": answered["text"],
        "error": _public(answered["error"]),
        "raw": _public(run.raw["output"].take(_last(own["key"], run.raw["response_key"]))),
        "media": sent_media(task, own),
        "sound": answered["sound"],
        "before": _before(run, own),
    }
    said = "".join((*task.prompt.before, task.prompt.text))
    for name in own.column_names:
        if name.startswith(METADATA) and "{" + name.removeprefix(METADATA) + "}" in said:
            columns[name] = _plain(own[name])
    if samples is not None:
        whole = [a.name for a in task.attributes if f"{VALUES}{a.name}" in samples.column_names]
        columns |= {f"{VALUES}{name}": samples[f"{VALUES}{name}"] for name in whole}
        columns["segments"] = _segments(samples, {f"{VALUES}{name}" for name in whole})
    table = pa.table(columns)
    order = pc.sort_indices(
        table.select(["stratum", "group", "cluster", "sample", "repeat"]),
        sort_keys=[(name, "ascending") for name in ("stratum", "group", "cluster", "sample", "repeat")],
    )
    return table.take(order).combine_chunks(), reason


def _before(run: RunTables, plan: pa.Table) -> Any:
    """Return the answers of the turns before each request as one text, with separators; null where there are none."""
    if FOLLOWS not in plan.column_names or plan[FOLLOWS].null_count == len(plan):
        return pa.nulls(len(plan), pa.string())
    texts = dict(zip(run.responses["key"].to_pylist(), run.responses["text"].to_pylist(), strict=True))
    every = plan[FOLLOWS].to_pylist()
    joined = [
        None if keys is None else NEXT_SEGMENT.join(texts.get(key) or "(no answer)" for key in keys) for keys in every
    ]
    return pa.array(joined, pa.string())


def _samples(run: RunTables, task: Task, plan: pa.Table) -> tuple[pa.Table | None, str | None]:
    try:
        opened = open_samples(run.folder, [task], run.annotator)[task.name]
    except RequestError as error:
        return None, redacted_text(str(error))
    table = opened.read(opened.columns)
    if table["key"].to_pylist() != plan["key"].to_pylist():
        return None, f"the annotations of {task.name} are not those of its plan; annotate again"
    return table, None


def _last(keys: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.Array:
    """Return for each key the place of its last occurrence in `among`; null where there is none."""
    backwards = among.combine_chunks()[::-1]
    return pc.subtract(len(backwards) - 1, pc.index_in(keys, value_set=backwards))


def _plain(column: Any) -> Any:
    """Return a column of texts that may be encoded by a dictionary as plain texts."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _public(column: Any) -> Any:
    """Return texts without credentials and local paths; each distinct text is looked at once."""
    encoded = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    shown = pa.array(
        [None if text is None else redacted_text(text) for text in encoded.dictionary.to_pylist()], pa.string()
    )
    return shown.take(encoded.indices)


def sent_media(task: Task, plan: pa.Table) -> Any:
    """Return the SHA-256 of each request's recordings or pictures, parted by spaces; null where none is sent."""
    column = plan["media_sha256"].combine_chunks()
    if not task.media or task.condition == SILENCE or not len(plan):
        return pa.nulls(len(plan), pa.string())
    sent = pc.greater(pc.list_value_length(column), 0)
    return pc.if_else(sent, pc.binary_join(column, " "), pa.scalar(None, pa.string()))


def _segments(samples: pa.Table, shown: set[str]) -> Any:
    """Return the values of all further segments as one text a row: segment, attribute and values, with separators."""
    parts: list[Any] = []
    for name in samples.column_names:
        if name.startswith(VALUES) and name not in shown:
            segment, _, attribute = name.removeprefix(VALUES).rpartition(".")
            joined = pc.binary_join(samples[name], NEXT_VALUE)
            head = f"{segment}{NEXT_ATTRIBUTE}{attribute}{NEXT_ATTRIBUTE}"
            parts.append(pc.binary_join_element_wise(head, joined, "", null_handling="emit_null"))
        elif name.startswith("status."):
            # A segment that was annotated says nothing by its status.
            unread = pc.and_kleene(pc.is_valid(samples[name]), pc.not_equal(_plain(samples[name]), "parsed"))
            head = f"{name.removeprefix('status.')}{NEXT_ATTRIBUTE}{NEXT_ATTRIBUTE}"
            text = pc.binary_join_element_wise(head, _plain(samples[name]), "", null_handling="emit_null")
            parts.append(pc.if_else(unread, text, pa.scalar(None, pa.string())))
    if not parts:
        return pa.nulls(len(samples), pa.string())
    return joined_known(parts, NEXT_SEGMENT)


def joined_known(parts: Sequence[Any], separator: str) -> Any:
    """Return the texts of each row that are not null, joined; empty where all are."""
    # pyarrow leaves a row out where every text is null; an empty one before them keeps it.
    first = pa.array([""] * len(parts[0]), pa.string())
    flat = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in parts]
    return pc.utf8_ltrim(pc.binary_join_element_wise(first, *flat, separator, null_handling="skip"), separator)


def write_answers(path: Path, table: pa.Table) -> None:
    """Write a table so that the page can read parts of it: zstd, and small row groups."""
    long = {"key", "text", "error", "raw", "segments", "before"}
    listed = [f.name for f in table.schema if pa.types.is_list(f.type)]
    few = [name for name in table.column_names if name not in long and name not in listed]
    pq.write_table(
        table.replace_schema_metadata(None),
        path,
        compression="zstd",
        compression_level=6,
        row_group_size=ROWS,
        use_dictionary=[*few, *(f"{name}.list.element" for name in listed)],
        write_statistics=["stratum", "group"],
        store_schema=False,
    )
