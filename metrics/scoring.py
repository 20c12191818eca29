"""What several metrics share: the names of a score, its random numbers, the design, and paired tests.

Through here they use the statistics, which are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equivox.core.hashing import seed_of
from equivox.core.lazy import Later, NDArray, np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.samples import Row, Samples, rows_of
from equivox.core.task import Task

if TYPE_CHECKING:
    from equivox import statistics as statistics
else:
    statistics = Later("equivox.statistics")


def list_notes(*notes: Note | None) -> list[Note]:
    """Return those that are notes."""
    return [note for note in notes if note is not None]


def named(task: Task) -> dict[str, Any]:
    """Return the fields by which every score of a task's outcomes is named, apart from its own name."""
    return {
        "task": task.name,
        "condition": task.condition,
        "dimension": task.dimension,
        "attribute": None,
        "role": "outcome",
    }


def rng_of(*parts: object) -> np.random.Generator:
    """Return random numbers that depend on these parts alone: the same seed, task and score always give the same."""
    return np.random.default_rng(seed_of(*parts))


def find_few_units(task: Task, samples: Samples, mask: NDArray[np.bool_], min_coverage: float) -> Note | None:
    """Return why answers in `mask` leave too few units to compare, where something is held equal; None if enough.

    A unit is compared if every group has an answer of it, or one in its stratum or block. With six groups, each of
    which lost 15 % of its answers, that may be two units of five, although 85 % of the answers are used. A bias among
    the others would not be seen.
    """
    design = statistics.build_design(samples.groups, **samples.design(strata=bool(task.strata)))
    if not design.standardised or design.n_groups < 2:
        return None
    sent = design.count_units(np.arange(len(samples)))
    compared = design.count_units(design.find_compared(np.flatnonzero(mask)))
    if compared >= min_coverage * sent:
        return None
    counts = {"compared": compared, "of": sent, "needed": min_coverage, "crossed": design.crossed}
    return Note(NoteCode.FEW_UNITS, counts)


def compare_sums(
    tasks: Sequence[PairedTask],
    counts: Callable[[Row], bool],
    sums_of: Callable[[Sequence[Row]], Mapping[str, tuple[float, ...]]],
    value_of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    n_resamples: int,
    rng: np.random.Generator,
    *,
    n_sums: int,
    sizes: int | None = None,
    nothing: str,
) -> PairedValues:
    """Compare two models by a score that is a function of sums over clusters, as `equivox.statistics.compare_totals`.

    Only samples that both models answered as `counts` wants are compared. `sums_of` returns what each cluster adds to
    the `n_sums` sums, of which `sizes` is its size; `nothing` is the reason if there is no cluster.
    """
    both = [
        (a, b)
        for paired in tasks
        for a, b in zip(rows_of(paired.samples_a), rows_of(paired.samples_b), strict=True)
        if counts(a) and counts(b)
    ]
    sums = aligned([sums_of([pair[model] for pair in both]) for model in (0, 1)], n_sums)
    if not len(sums[0]):
        return PairedValues(undefined=remark(nothing))
    target = tasks[0].score_a.null_value
    found = statistics.compare_totals(
        sums[0], sums[1], value_of, target=target, sizes=sizes, n_resamples=n_resamples, rng=rng
    )
    return replace(found, n_samples=len(both))


def aligned(sums: Sequence[Mapping[str, tuple[float, ...]]], n_sums: int) -> list[NDArray[np.float64]]:
    """Return the `n_sums` sums of several models as arrays over the clusters of any of them; zeros for missing ones."""
    clusters = sorted({cluster for own in sums for cluster in own})
    nothing = (0.0,) * n_sums
    return [
        np.array([own.get(cluster, nothing) for cluster in clusters], dtype=np.float64).reshape(-1, n_sums)
        for own in sums
    ]
