"""Whether two engines that run one model agree: the share of the requests that both answered in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from equivox.compare.runs import ComparedRun, Comparison
from equivox.run.manifest import read_manifest
from equivox.run.plan import read_plan
from equivox.run.store import Store, response_schema

if TYPE_CHECKING:
    import pyarrow as pa

_SAME_REQUEST = ["task", "sample_id", "condition", "seed"]
"""Columns of a plan that tell its requests apart, whatever the model: each repeat and presentation has its own seed."""


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Two runs of one model on two engines: the requests that both answered, and in how many of them word for word."""

    model: str
    a: str
    b: str
    asked: int
    same: int


def parities(comparison: Comparison) -> list[Parity]:
    """Return the parity of every two runs whose models have one name and whose engines differ; empty without such."""
    return [found for pair in combinations(comparison.runs, 2) for found in _parity(*pair)]


def _parity(one: ComparedRun, other: ComparedRun) -> Iterator[Parity]:
    (engine, model), (other_engine, other_model) = (_asked(run.folder) for run in (one, other))
    if engine == other_engine or model != other_model:
        return
    import pyarrow.compute as pc

    theirs = _answers(other.folder).rename_columns([*_SAME_REQUEST, "other"])
    answers = _answers(one.folder).join(theirs, keys=_SAME_REQUEST, join_type="inner")
    same = pc.sum(pc.equal(answers["answer"], answers["other"])).as_py()
    yield Parity(model=model, a=one.model, b=other.model, asked=len(answers), same=int(same or 0))


def _asked(folder: Path) -> tuple[str, str]:
    """Return the engine of a run and the name of its model, without the folder that it lies in."""
    model = read_manifest(folder)["identity"]["model"]
    return str(model["engine"]), PurePath(str(model["model"])).name


def _answers(folder: Path) -> pa.Table:
    """Return the answered requests of a run, as `_SAME_REQUEST` tells them apart, with their answers."""
    import pyarrow as pa

    plan = read_plan(folder)
    # Columns of a dictionary cannot be joined by.
    texts = {name: plan[name].cast(pa.string()) for name in ("key", *_SAME_REQUEST)}
    responses = Store(folder / "responses", response_schema()).table(("key", "text"))
    answered = pa.table({"key": responses["key"].cast(pa.string()), "answer": responses["text"].cast(pa.string())})
    joined = pa.table(texts).join(answered.drop_null(), keys="key", join_type="inner")
    return joined.select([*_SAME_REQUEST, "answer"])
