"""Overlap of the associations of two settings or two models: the shared ones and their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.annotate.merging import lemmas
from equivox.core.files import read_table
from equivox.core.metric import Overlap
from equivox.core.scores import NAN

Key = tuple[str, str, str, str]


def overlap(
    dimension: str, one: str, scores_one: Mapping[Key, float], other: str, scores_other: Mapping[Key, float]
) -> Overlap:
    """Compare the scores of two sets of associations.

    Phrases with the same dictionary forms count as equal. Each setting chose its own wording for a group of phrases, so
    the overlap is a lower bound.

    >>> a = {("g", "sports", "f", "calm"): 0.3, ("g", "sports", "m", "witty"): 0.1}
    >>> found = overlap("g", "a", a, "b", {("g", "sports", "f", "calm"): 0.2})
    >>> found.n_shared, found.jaccard
    (1, 0.5)
    """
    from scipy import stats

    shared = sorted(scores_one.keys() & scores_other.keys())
    either = len(scores_one.keys() | scores_other.keys())
    tau = NAN
    if len(shared) > 2:
        tau = float(stats.kendalltau([scores_one[k] for k in shared], [scores_other[k] for k in shared]).statistic)
    return Overlap(
        findings="associations",
        dimension=dimension,
        one=one,
        other=other,
        n_one=len(scores_one),
        n_other=len(scores_other),
        n_shared=len(shared),
        jaccard=len(shared) / either if either else NAN,
        rank_correlation=tau,
    )


def association_sets(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[Key, float]]:
    """Return, per dimension, the kept associations of a table with their scores."""
    found: dict[str, dict[Key, float]] = {}
    for record in records:
        dimension = _dimension(record["task"])
        if record["kept"]:
            key = (dimension, record["category"], record["identity"], lemmas(record["phrase"]))
            own = found.setdefault(dimension, {})
            own[key] = max(record["score"], own.get(key, -math.inf))
    return found


def _dimension(task: str) -> str:
    """Return the dimension of a task, in whichever condition it was asked."""
    return task.partition(":")[2].partition("@")[0]


def overlaps_of_runs(runs: Sequence[tuple[str, Path]]) -> list[Overlap]:
    """Compare every two settings and models of some runs (their labels and folders), dimension by dimension.

    Settings without a score, because their coverage was too small, are left out.
    """
    sets: list[tuple[str, dict[str, dict[Key, float]]]] = []
    for label, folder in runs:
        for summary in sorted(folder.glob("tables/badf_*/summary.parquet")):
            scored = {_dimension(r["task"]) for r in read_table(summary).to_pylist() if not r["undefined"]}
            table = summary.parent / "associations.parquet"
            found = association_sets(read_table(table).to_pylist()) if table.exists() else {}
            sets.append((f"{label} {summary.parent.name}", {name: found.get(name, {}) for name in sorted(scored)}))
    return [
        overlap(dimension, one, own, other, others[dimension])
        for place, (one, owns) in enumerate(sets)
        for other, others in sets[place + 1 :]
        for dimension, own in owns.items()
        if dimension in others
    ]
