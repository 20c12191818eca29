"""The samples of one task: the group, the status and the annotation of each planned request.

The annotate stage writes them as one table per task. Metrics read the columns that they need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.annotation import AnnotatorIdentity, annotation_key
from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.core.coverage import Coverage
from equivox.core.endings import TRUNCATED, WITHHELD
from equivox.core.errors import UsageError, nearest
from equivox.core.files import read_schema, read_table
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.core.segments import WHOLE, Segment, SegmentAnnotation

if TYPE_CHECKING:
    from equivox.core.attributes import Attribute

UNANNOTATED = "unannotated"
"""The status of a response that the annotator failed on, wholly or in one segment: nothing is known of it."""

UNANSWERED = frozenset({"missing", "failed"})
"""The statuses of requests without a response: not generated yet, and failed in the engine or in its media."""

ENDED = "finish_reason"
"""The column that says how a response ended; null where the engine does not say."""

_METADATA, _STATUS, _VALUES = "metadata.", "status.", "values."


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One planned request with its status and its annotation.

    `status` is `missing` (not generated yet), `failed` (the engine or the media), or the status of the annotation of
    the whole response, whose values are in `values`; `segments` holds the annotation of every segment by its name.
    `metadata` is what the plan kept of the sample and of how it was presented.
    """

    group: str
    cluster: str
    stratum: str
    block: str = ""
    item: str = ""
    status: str
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    key: str = ""
    sample_id: str = ""
    repeat: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    segments: Mapping[str, SegmentAnnotation] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether there is a response, with any text."""
        return self.status not in UNANSWERED


def value_column(segment: str, attribute: str) -> str:
    """Return the name of the column that holds the values of an attribute of a segment.

    >>> value_column("", "occupation"), value_column("profile/1", "interests")
    ('values.occupation', 'values.profile/1.interests')
    """
    return f"{_VALUES}{segment}.{attribute}" if segment else f"{_VALUES}{attribute}"


@dataclass(frozen=True)
class Numbers:
    """What samples state: `stated` is NaN without a number; `usable` ones lie in the range, `outside` out of it."""

    stated: NDArray[np.float64]
    usable: NDArray[np.bool_]
    outside: NDArray[np.bool_]

    @property
    def kept(self) -> NDArray[np.float64]:
        """The numbers that count; NaN for all others, which are missing and never 0."""
        return np.where(self.usable, self.stated, np.nan)


SMALL = 1_000_000
"""Bytes of a table's file up to which it is read whole, once: those of some 10,000 answers."""


@dataclass(frozen=True, eq=False)
class Samples:
    """All samples of one task as columns, a row per planned request, annotated by one annotator.

    Parameters
    ----------
    source
        The parquet file of the task, or an Arrow table of the same columns: `key`, `sample_id`, `repeat`, `group`,
        `cluster`, `stratum`, `status`, `metadata.NAME`, `status.SEGMENT`, `values.ATTRIBUTE` and
        `values.SEGMENT.ATTRIBUTE` (lists of texts; null where the segment was not annotated); `block` and `item` where
        they are known.
    counts_as
        For open attributes: attribute → wording → the wording that it counts as.
    others
        The same samples as further annotators annotated them, by the annotator's name.
    annotator
        The identity of the annotator; None if it is not known.
    follow_ups
        The annotator's answers to follow-up questions, by the key of the annotation.
    attributes
        The names of the task's attributes: the values of any other are refused. Empty where they are not known.
    """

    source: Path | pa.Table
    counts_as: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    others: Mapping[str, Samples] = field(default_factory=dict)
    annotator: AnnotatorIdentity | None = None
    follow_ups: Mapping[str, SegmentAnnotation] = field(default_factory=dict, repr=False)
    attributes: Collection[str] = ()

    @classmethod
    def from_rows(cls, rows: Sequence[Row], **further: Any) -> Samples:
        """Return `rows` as samples; `further` gives the other fields."""
        return cls(samples_table(rows), **further)

    def __len__(self) -> int:
        return len(self.status)

    def follow_up(self, segment: Segment) -> SegmentAnnotation | None:
        """Return the annotator's answer to a follow-up question; None if it has not been asked."""
        return None if self.annotator is None else self.follow_ups.get(annotation_key(self.annotator, segment, ""))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(read_schema(self.source).names if isinstance(self.source, Path) else self.source.column_names)

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns as an Arrow table."""
        if self._table is not None and set(columns) <= set(self._table.column_names):
            return self._table.select(list(columns))
        return read_table(self.source, columns, memory_map=True)

    @cached_property
    def _table(self) -> pa.Table | None:
        """The whole table where it is in memory or small: a file is opened anew for every other read of a column."""
        if not isinstance(self.source, Path):
            return self.source
        return read_table(self.source, memory_map=True) if self.source.stat().st_size <= SMALL else None

    def label(self, column: str) -> EncodedLabels:
        """Return one column of texts as codes."""
        return EncodedLabels.of_arrow(self.read([column]).column(column))

    @cached_property
    def groups(self) -> EncodedLabels:
        """The group of each sample."""
        return self.label("group")

    @cached_property
    def clusters(self) -> EncodedLabels:
        """The cluster of each sample."""
        return self.label("cluster")

    @cached_property
    def strata(self) -> EncodedLabels:
        """The stratum of each sample."""
        return self.label("stratum")

    @cached_property
    def blocks(self) -> EncodedLabels | None:
        """The block of each sample's cluster; None where the table has no such column, or no text in it."""
        return self._if_told("block")

    @cached_property
    def items(self) -> EncodedLabels | None:
        """The item of each sample, such as its sentence; None where the table has no such column, or no text in it."""
        return self._if_told("item")

    def _if_told(self, column: str) -> EncodedLabels | None:
        found = self.label(column) if column in self.columns else None
        return found if found is not None and any(found.names) else None

    @cached_property
    def status(self) -> EncodedLabels:
        """The status of each sample: missing, failed, unannotated, empty, refused, unparsed or parsed."""
        return self.label("status")

    @cached_property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether the token limit cut each response off, as far as that is known."""
        if ENDED not in self.columns:
            return np.zeros(len(self), dtype=bool)
        ended = self.label(ENDED)
        return np.asarray(ended.codes == (ended.names.index(TRUNCATED) if TRUNCATED in ended.names else -2))

    def endings(self) -> dict[str, int]:
        """Return how many responses did not end as usual, by the names that `Coverage` has for them."""
        if ENDED not in self.columns:
            return {}
        ended = self.label(ENDED)
        return {
            "truncated": int(self.truncated.sum()),
            "cut_in_thought": int((self.truncated & self.has_status("empty")).sum()),
            "withheld": ended.counts().get(WITHHELD, 0),
        }

    @property
    def keys(self) -> list[str]:
        """The key of each sample's response."""
        return list(self.read(["key"]).column("key").to_pylist())

    def metadata(self, name: str) -> EncodedLabels:
        """Return one column of metadata; every code is -1 when the task keeps no such column."""
        column = f"{_METADATA}{name}"
        return self.label(column) if column in self.columns else EncodedLabels(np.full(len(self), -1), ())

    def has_status(self, *statuses: str, segment: str = WHOLE) -> NDArray[np.bool_]:
        """Return, for each sample, whether its status (or that of one of its segments) is one of `statuses`."""
        if segment and f"{_STATUS}{segment}" not in self.columns:
            return np.zeros(len(self), dtype=bool)
        status = self.label(f"{_STATUS}{segment}") if segment else self.status
        wanted = [number for number, name in enumerate(status.names) if name in statuses]
        return np.isin(status.codes, wanted)

    def has_part(self, *statuses: str) -> NDArray[np.bool_]:
        """Return, for each sample, whether one of its segments has one of these statuses."""
        parts = [name.removeprefix(_STATUS) for name in self.columns if name.startswith(_STATUS)]
        found = np.zeros(len(self), dtype=bool)
        for part in parts:
            found |= self.has_status(*statuses, segment=part)
        return found

    def values(self, attribute: str, segment: str = WHOLE) -> EncodedValues:
        """Return the values of an attribute; open values are replaced by the wording that they count as.

        UsageError for an attribute of the whole answer that the task has not: no answer would seem to state it.
        """
        name = value_column(segment, attribute)
        if name not in self.columns:
            if segment == WHOLE and self.attributes and attribute not in self.attributes:
                raise UsageError(
                    f"no attribute is called {attribute!r}{nearest(attribute, self.attributes)}; there are "
                    f"{', '.join(self.attributes)}"
                )
            nothing = np.array([], dtype=np.int64)
            return EncodedValues(nothing, nothing, (), len(self))
        column = self.read([name]).column(name)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        labels = EncodedLabels.of_arrow(pc.list_flatten(column))
        found = EncodedValues(np.repeat(np.arange(len(lengths)), lengths), labels.codes, labels.names, len(lengths))
        if (merged := self.counts_as.get(attribute)) is not None:
            return found.renamed([merged.get(value, value) for value in found.names])
        return found

    def parsed_values(self, attribute: str) -> EncodedValues:
        """Return the values of an attribute in the answers that were annotated; all others have none."""
        return self.values(attribute).only(self.has_status("parsed"))

    def numbers(self, attribute: Attribute) -> Numbers:
        """Return the number of each sample; a sample states none if its answer was not parsed."""
        values, number, stated = self.parsed_values(attribute.name), attribute.number, np.full(len(self), np.nan)
        stated[values.rows] = np.array([float(name) for name in values.names], dtype=np.float64)[values.codes]
        inside = np.array([number is not None and number.holds(value) for value in stated.tolist()], dtype=bool)
        return Numbers(stated, inside & ~np.isnan(stated), ~np.isnan(stated) & ~inside)

    def rows(self) -> Iterator[Row]:
        """Yield the samples one by one, for metrics that work on single responses."""
        for batch in self.read(self.columns).to_batches(max_chunksize=4096):
            yield from self._rows(batch)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        columns = dict(zip(batch.schema.names, (column.to_pylist() for column in batch.columns), strict=True))
        metadata = {name.removeprefix(_METADATA): columns[name] for name in columns if name.startswith(_METADATA)}
        segments = {name.removeprefix(_STATUS): columns[name] for name in columns if name.startswith(_STATUS)}
        values: dict[str, list[tuple[str, Any]]] = {}
        for name in columns:
            if name.startswith(_VALUES):
                segment, _, attribute = name.removeprefix(_VALUES).rpartition(".")
                values.setdefault(segment, []).append((attribute, columns[name]))
        for number, key in enumerate(columns["key"]):
            status = columns["status"][number]
            found: dict[str, SegmentAnnotation] = {}
            if status not in UNANSWERED:
                found[WHOLE] = self._segment(status, values.get(WHOLE, ()), number)
            for segment, statuses in segments.items():
                if statuses[number] is not None:
                    found[segment] = self._segment(statuses[number], values.get(segment, ()), number)
            yield Row(
                group=columns["group"][number],
                cluster=columns["cluster"][number],
                stratum=columns["stratum"][number],
                block=columns["block"][number] if "block" in columns else "",
                item=columns["item"][number] if "item" in columns else "",
                status=status,
                values=found[WHOLE].values if WHOLE in found else {},
                key=key,
                sample_id=columns["sample_id"][number],
                repeat=columns["repeat"][number],
                metadata={name: given[number] for name, given in metadata.items() if given[number] is not None},
                segments=found,
            )

    def _segment(self, status: str, values: Sequence[tuple[str, Any]], number: int) -> SegmentAnnotation:
        found = {}
        for attribute, given in values:
            if given[number]:
                merged = self.counts_as.get(attribute)
                words = given[number] if merged is None else dict.fromkeys(merged.get(v, v) for v in given[number])
                found[attribute] = tuple(words)
        return SegmentAnnotation(status, found)  # type: ignore[arg-type]

    def design(self, used: NDArray[np.bool_] | None = None, *, strata: bool) -> dict[str, Any]:
        """Return the unit that carries the group of each sample, and what is held equal between groups.

        That is the design as every test of `equivox.statistics` takes it, of the samples in `used`, or of all. `strata`
        says whether the task has some.
        """
        columns = {"clusters": self.clusters, "strata": self.strata if strata else None, "blocks": self.blocks}
        if used is None:
            return columns
        return {name: None if column is None else column.take(used) for name, column in columns.items()}

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Samples:
        """Return the samples with these row numbers, in this order."""
        return replace(self, source=self.read(self.columns).take(pa.array(rows, pa.int64())))

    def coverage(self, used: NDArray[np.bool_], *, refusal_counts: bool = False) -> Coverage:
        """Count coverage, given which samples are used.

        With `refusal_counts` a refusal counts as an answer, because the score is about whether the model declines.
        """
        refused = {"refused"} if refusal_counts else set()
        requested, kept = self.groups.counts(), self.groups.counts(used)
        return Coverage(
            requested=len(self),
            generated=int(np.sum(~self.has_status(*UNANSWERED))),
            answered=int(np.sum(self.has_status("parsed", "unparsed", *refused))),
            parsed=int(np.sum(self.has_status("parsed", *refused))),
            used=int(used.sum()),
            requested_by_group=requested,
            used_by_group={group: kept[group] for group in requested},
        )


@lru_cache(maxsize=4)
def rows_of(samples: Samples) -> Sequence[Row]:
    """Return the samples one by one, as `Samples.rows`; those of two pairs are kept for the next measure."""
    return tuple(samples.rows())


def samples_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table with the columns of `Samples`."""
    columns: dict[str, Any] = {
        name: [getattr(row, name) for row in rows]
        for name in ("key", "sample_id", "repeat", "group", "cluster", "stratum", "block", "item", "status")
    }
    for name in dict.fromkeys(name for row in rows for name in row.metadata):
        columns[f"{_METADATA}{name}"] = [row.metadata.get(name) for row in rows]
    segments = [dict(row.segments) for row in rows]
    for row, own in zip(rows, segments, strict=True):
        if row.answered or row.values:
            own[WHOLE] = SegmentAnnotation(row.status, row.values)  # type: ignore[arg-type]
        else:
            own.pop(WHOLE, None)
    columns |= segment_columns(segments)
    texts = [name for name in columns if not name.startswith(_VALUES) and name != "repeat"]
    schema = {name: pa.string() for name in texts} | {"repeat": pa.int32()}
    return pa.table({name: pa.array(given, schema.get(name, pa.list_(pa.string()))) for name, given in columns.items()})


def segment_columns(segments: Sequence[Mapping[str, SegmentAnnotation]]) -> dict[str, list[Any]]:
    """Return the statuses and values of every segment of each response as columns; the whole's status is left out."""
    n = len(segments)
    columns: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * n)
    for number, own in enumerate(segments):
        for name, annotation in own.items():
            if name != WHOLE:
                columns[f"{_STATUS}{name}"][number] = annotation.status
            for attribute, values in annotation.values.items():
                columns[value_column(name, attribute)][number] = values
    return dict(columns)
