"""A run computed again from its stored responses and annotations, in a temporary folder: the run is never written.

What needs no model is made again from the responses: the annotations of `rules` and of tools, the samples, a panel's
majority, the scores and their tables. A model's annotations are read again from its stored outputs; where there is no
output, the stored annotation is taken. An annotation belongs to one text, because its key is a hash of it. What the run
states is compared with what was computed.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equivox.annotate import RULES, open_annotator
from equivox.annotate.model import read_again
from equivox.core.annotation import Annotation, Annotator, AnnotatorIdentity, Job
from equivox.core.errors import UsageError
from equivox.core.files import read_document, read_table
from equivox.core.lazy import pa
from equivox.core.progress import Progress, no_progress
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Value, check_tools
from equivox.core.task import Task
from equivox.run.annotating import annotate
from equivox.run.declarations import TASKS_FILE
from equivox.run.manifest import MANIFEST_FILE, read_manifest
from equivox.run.panel import PANEL, combine
from equivox.run.plan import PLAN_FILE
from equivox.run.scoring import follow_up
from equivox.run.store import stored_annotations

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Two numbers are equal within these; an addition in another order changes less."""


@contextmanager
def copied(run: Path) -> Iterator[Path]:
    """Yield a temporary folder with the responses, plan and tasks of `run`, without annotations and scores."""
    with TemporaryDirectory(prefix="equivox-verify-") as made:
        folder = Path(made)
        for name in (MANIFEST_FILE, TASKS_FILE, PLAN_FILE):
            shutil.copyfile(run / name, folder / name)
        (folder / "responses").mkdir()
        for path in run.glob("responses/[!.]*"):
            shutil.copyfile(path, folder / "responses" / path.name)
        yield folder


@dataclass
class Replayed(Annotator):
    """Annotator that repeats what is stored of another annotator, and reads a model's outputs again.

    A text of which nothing is stored has failed.
    """

    identity: AnnotatorIdentity
    records: Mapping[str, Mapping[str, Any]] = field(repr=False)

    @property
    def is_model(self) -> bool:
        """Whether the annotations have outputs in the form that equivox asks models for."""
        return {"engine", "prompt", "attempts"} <= set(self.identity.settings)

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the stored annotation of each job, and a failed one for a job without."""
        for job in jobs:
            record = self.records.get(job.key)
            again = read_again(job, record) if self.is_model and record is not None else None
            yield again or _stored(job, record)


def _stored(job: Job, record: Mapping[str, Any] | None) -> Annotation:
    """Return what a record holds of a job's annotation; without one, a failed annotation."""
    if record is None:
        return job.annotated("failed", output="no annotation is stored for this text", attempts=0)
    values = [Value(**value) for value in record["values"]]
    return job.annotated(record["status"], values, output=record["output"], attempts=record["attempts"])


def annotate_again(
    run: Path,
    folder: Path,
    tasks: Sequence[Task],
    identity: AnnotatorIdentity,
    options: ScoringOptions,
    *,
    annotated: Sequence[str],
    progress: Progress = no_progress,
) -> str:
    """Annotate the copy of `run` in `folder` as one of its annotators did; return what was not made again, in words.

    `annotated` names those that the copy has already. UsageError for a panel that lacks a member there.
    """
    if is_panel(identity):
        members = [str(name) for name in identity.settings["members"]]
        if absent := [member for member in members if member not in annotated]:
            raise UsageError(f"its member {absent[0]} cannot be recomputed")
        combine(folder, tasks, members)
        return ""
    check_tools(tasks)
    rules = open_annotator(RULES)
    replayed = Replayed(identity, stored_annotations(run, identity.name))
    annotator = rules if rules.identity == identity else replayed
    engine = str(read_manifest(folder)["identity"]["model"]["engine"])
    annotate(folder, tasks, annotator, engine=engine, progress=progress)
    follow_up(folder, tasks, annotator, options)
    if annotator is rules:
        return ""
    how = "read again from its stored outputs" if replayed.is_model else "taken as they are stored"
    return f"the annotations by {identity.name} were {how}; {identity.name} was not asked again"


def is_panel(identity: AnnotatorIdentity) -> bool:
    """Return whether the annotations of `identity` are the majority of others."""
    return identity.name == PANEL and "members" in identity.settings


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One entry of a run that recomputing does not give; `where` is its task or file, None means "not there"."""

    where: str
    what: str
    stated: Any
    recomputed: Any


@dataclass
class Compared:
    """The differences found so far, and the count of numbers that were found equal."""

    differences: list[Difference] = field(default_factory=list)
    numbers: int = 0

    def values(self, where: str, what: str, stated: Any, recomputed: Any) -> None:
        """Compare two plain values, entry by entry: NaN equals NaN and None, other numbers within `RELATIVE`."""
        if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
            for name in dict.fromkeys((*stated, *recomputed)):
                self.values(where, f"{what} {name}".strip(), stated.get(name), recomputed.get(name))
        elif isinstance(stated, list) and isinstance(recomputed, list) and len(stated) == len(recomputed):
            for place, (one, other) in enumerate(zip(stated, recomputed, strict=True), start=1):
                self.values(where, what if one == other else f"{what} {place}", one, other)
        elif equal(stated, recomputed):
            self.numbers += _is_number(stated)
        else:
            self.differences.append(Difference(where=where, what=what, stated=stated, recomputed=recomputed))

    def tables(self, where: str, stated: pa.Table, recomputed: pa.Table) -> None:
        """Compare two tables cell by cell, and their columns and numbers of rows."""
        if stated.column_names != recomputed.column_names:
            self.values(where, "columns", stated.column_names, recomputed.column_names)
        if stated.num_rows != recomputed.num_rows:
            self.values(where, "rows", stated.num_rows, recomputed.num_rows)
            return
        for name in stated.column_names:
            if name not in recomputed.column_names:
                continue
            one, other = stated[name], recomputed[name]
            if one.type == other.type and one.equals(other):
                self.numbers += _numbers_of(one)
                continue
            for row, (own, theirs) in enumerate(zip(one.to_pylist(), other.to_pylist(), strict=True), start=1):
                self.values(where, f"{name}, row {row}", own, theirs)

    def file(self, where: str, stated: Path, recomputed: Path) -> None:
        """Compare two parquet tables, or two other files byte by byte; one that is not there differs."""
        if stated.suffix == ".parquet" and stated.is_file() and recomputed.is_file():
            self.tables(where, read_table(stated), read_table(recomputed))
            return
        contents = [path.read_bytes() if path.is_file() else None for path in (stated, recomputed)]
        if contents[0] != contents[1]:
            told = ["not there" if content is None else f"{len(content)} bytes" for content in contents]
            self.differences.append(Difference(where=where, what="the file", stated=told[0], recomputed=told[1]))

    def trees(self, run: Path, recomputed: Path, places: Sequence[Path]) -> None:
        """Compare what is at some places of a run with what a copy has there: tables, scores, folders of tables."""
        for place in places:
            if (recomputed / place).is_dir():
                self.trees(run, recomputed, _tables_in(place, run, recomputed))
            elif place.suffix == ".json":
                stated, fresh = (read_document(folder / place) for folder in (run, recomputed))
                self.values(place.as_posix(), "answered", stated.get("answered"), fresh["answered"])
                self.scores(place.as_posix(), stated["scores"], fresh["scores"])
            else:
                self.file(place.as_posix(), run / place, recomputed / place)

    def scores(self, where: str, stated: Sequence[Any], recomputed: Sequence[Any]) -> None:
        """Compare every field of every score; scores are paired by task, metric, attribute and subset."""
        one, other = _by_identity(stated), _by_identity(recomputed)
        for key in dict.fromkeys((*one, *other)):
            task, *named = key
            what = " ".join(str(part) for part in named[:-1] if part)
            if key in one and key in other:
                self.values(task, what, one[key], other[key])
            else:
                there = ["a score" if key in found else None for found in (one, other)]
                self.differences.append(
                    Difference(where=task or where, what=what, stated=there[0], recomputed=there[1])
                )


def _tables_in(place: Path, *roots: Path) -> list[Path]:
    """Return the tables in a folder of any of several trees, as seen from the trees."""
    found = {path.relative_to(root) for root in roots for path in (root / place).rglob("*.*")}
    return sorted(path for path in found if path.suffix in {".parquet", ".csv"} and not path.name.startswith("."))


def equal(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same; missing numbers are the same.

    >>> equal(1.0, 1.0 + 1e-12), equal(float("nan"), None), equal(1.0, 1.001), equal("a", "a"), equal(None, 0.0)
    (True, True, False, True, False)
    """
    one, other = (None if isinstance(v, float) and math.isnan(v) else v for v in (one, other))
    if _is_number(one) and _is_number(other):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers_of(column: pa.ChunkedArray) -> int:
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return len(column) - column.null_count if is_number else 0


def _by_identity(scores: Sequence[Any]) -> dict[tuple[Any, ...], Any]:
    """Return scores by what identifies them, and a number for those that nothing tells apart."""
    found: dict[tuple[Any, ...], Any] = {}
    for score in scores:
        key = tuple(score.get(name) for name in ("task", "name", "attribute", "subset"))
        number = 0
        while (*key, number) in found:
            number += 1
        found[*key, number] = score
    return found
