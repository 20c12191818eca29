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
_PLAIN = ("key", "sample_id", "repeat", "group", "cluster", "stratum", "block", "item", "status")
"""The columns that are fields of a row, too."""


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

    The columns are `key`, `sample_id`, `repeat`, `group`, `cluster`, `stratum`, `status`, `metadata.NAME`,
    `status.SEGMENT`, `values.ATTRIBUTE` and `values.SEGMENT.ATTRIBUTE` (lists of texts; null where the segment was not
    annotated); `block` and `item` where they are known.
    """

    source: Path | pa.Table
    """The parquet file of the task, or an Arrow table of the same columns."""
    counts_as: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For open attributes: attribute → wording → the wording that it counts as."""
    others: Mapping[str, Samples] = field(default_factory=dict)
    """The same samples as further annotators annotated them, by the annotator's name."""
    annotator: AnnotatorIdentity | None = None
    """The identity of the annotator; None if it is not known."""
    follow_ups: Mapping[str, SegmentAnnotation] = field(default_factory=dict, repr=False)
    """The annotator's answers to follow-up questions, by the key of the annotation."""
    attributes: Collection[str] = ()
    """The names of the task's attributes: the values of any other are refused. Empty where they are not known."""

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
        return self._label_or_none("block")

    @cached_property
    def items(self) -> EncodedLabels | None:
        """The item of each sample, such as its sentence; None where the table has no such column, or no text in it."""
        return self._label_or_none("item")

    def _label_or_none(self, column: str) -> EncodedLabels | None:
        labels = self.label(column) if column in self.columns else None
        return labels if labels is not None and any(labels.names) else None

    @cached_property
    def status(self) -> EncodedLabels:
        """The status of each sample: missing, failed, unannotated, empty, refused, unparsed or parsed."""
        return self.label("status")

    @cached_property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether the token limit cut each response off, as far as that is known."""
        return self._has_name(ENDED, {TRUNCATED})

    def endings(self) -> dict[str, int]:
        """Return how many responses did not end as usual, by the names that `Coverage` has for them."""
        if ENDED not in self.columns:
            return {}
        ended = {"truncated": self.truncated, "withheld": self._has_name(ENDED, {WITHHELD})}
        ended["cut_in_thought"] = self.truncated & self.has_status("empty")
        return {name: int(mask.sum()) for name, mask in ended.items()}

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
        return self._has_name(f"{_STATUS}{segment}" if segment else "status", statuses)

    def _has_name(self, column: str, names: Collection[str]) -> NDArray[np.bool_]:
        if column not in self.columns:
            return np.zeros(len(self), dtype=bool)
        labels = self.status if column == "status" else self.label(column)
        return np.isin(labels.codes, [code for code, name in enumerate(labels.names) if name in names])

    def has_part(self, *statuses: str) -> NDArray[np.bool_]:
        """Return, for each sample, whether one of its segments has one of these statuses."""
        found = np.zeros(len(self), dtype=bool)
        for part, _ in self._parts(_STATUS):
            found |= self._has_name(part, statuses)
        return found

    def values(self, attribute: str, segment: str = WHOLE) -> EncodedValues:
        """Return the values of an attribute; open values are replaced by the wording that they count as.

        UsageError for an attribute of the whole answer that the task has not: no answer would seem to state it.
        """
        name = value_column(segment, attribute)
        if name not in self.columns:
            if segment == WHOLE and self.attributes and attribute not in self.attributes:
                like = nearest(attribute, self.attributes)
                raise UsageError(f"no attribute is called {attribute!r}{like}; there are {', '.join(self.attributes)}")
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
        plain = [name for name in _PLAIN if name in self.columns]
        metadata, statuses = self._parts(_METADATA), self._parts(_STATUS)
        values = [(name, *part.rpartition(".")[::2]) for name, part in self._parts(_VALUES)]
        for batch in self.read(self.columns).to_batches(max_chunksize=4096):
            for cells in batch.to_pylist():
                found = {WHOLE: cells["status"]} if cells["status"] not in UNANSWERED else {}
                found |= {segment: cells[name] for name, segment in statuses if cells[name] is not None}
                stated: dict[str, dict[str, tuple[str, ...]]] = {segment: {} for segment in found}
                for name, segment, attribute in values:
                    if cells[name] and segment in stated:
                        merged = self.counts_as.get(attribute)
                        words = cells[name] if merged is None else dict.fromkeys(merged.get(v, v) for v in cells[name])
                        stated[segment][attribute] = tuple(words)
                yield Row(
                    **{name: cells[name] for name in plain},
                    values=stated.get(WHOLE, {}),
                    metadata={name: cells[column] for column, name in metadata if cells[column] is not None},
                    segments={segment: SegmentAnnotation(status, stated[segment]) for segment, status in found.items()},
                )

    def _parts(self, kind: str) -> list[tuple[str, str]]:
        return [(name, name.removeprefix(kind)) for name in self.columns if name.startswith(kind)]

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
        return Coverage(
            requested=len(self),
            generated=int(np.sum(~self.has_status(*UNANSWERED))),
            answered=int(np.sum(self.has_status("parsed", "unparsed", *refused))),
            parsed=int(np.sum(self.has_status("parsed", *refused))),
            used=int(used.sum()),
            requested_by_group=self.groups.counts(),
            used_by_group=self.groups.counts(used),
        )


@lru_cache(maxsize=4)
def rows_of(samples: Samples) -> Sequence[Row]:
    """Return the samples one by one, as `Samples.rows`; those of two pairs are kept for the next measure."""
    return tuple(samples.rows())


def samples_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table with the columns of `Samples`."""
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in _PLAIN}
    for name in dict.fromkeys(name for row in rows for name in row.metadata):
        columns[f"{_METADATA}{name}"] = [row.metadata.get(name) for row in rows]
    segments = []
    for row in rows:
        parts = {name: part for name, part in row.segments.items() if name != WHOLE}
        whole = {WHOLE: SegmentAnnotation(row.status, row.values)} if row.answered or row.values else {}  # type: ignore[arg-type]
        segments.append({**parts, **whole})
    columns |= segment_columns(segments)
    kinds = {"repeat": pa.int32()} | {name: pa.list_(pa.string()) for name in columns if name.startswith(_VALUES)}
    return pa.table({name: pa.array(cells, kinds.get(name, pa.string())) for name, cells in columns.items()})


def segment_columns(segments: Sequence[Mapping[str, SegmentAnnotation]]) -> dict[str, list[Any]]:
    """Return the statuses and values of every segment of each response as columns; the whole's status is left out."""
    columns: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * len(segments))
    for number, parts in enumerate(segments):
        for name, annotation in parts.items():
            if name != WHOLE:
                columns[f"{_STATUS}{name}"][number] = annotation.status
            for attribute, values in annotation.values.items():
                columns[value_column(name, attribute)][number] = values
    return dict(columns)
