"""Comparison of two models' M1 to M8 on the same NEPs, by sums over NEPs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from equivox.core.lazy import NDArray, np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.samples import Row, rows_of
from equivox.metrics.genres.measures import METRIC_OF, NarrativeMeasure, neps_of
from equivox.metrics.genres.observations import observe, pairs_of
from equivox.metrics.scoring import compare_sums

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

N_SUMS = 5
"""The number of sums that determine all eight metrics: NEPs, male, female, and the squares of both."""


def compare_narratives(
    name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator
) -> PairedValues:
    """Compare a metric of two models, narrative pair by narrative pair."""
    kept: tuple[list[Row], list[Row]] = ([], [])
    for paired in tasks:
        for a, b in zip(rows_of(paired.samples_a), rows_of(paired.samples_b), strict=True):
            if "language" in a.segments and "language" in b.segments:
                kept[0].append(a)
                kept[1].append(b)
    sums = aligned([nep_sums(name, rows) for rows in kept])
    if not len(sums[0]):
        return PairedValues(undefined="no narrative that both models told can be counted")
    return compare_sums(
        sums,
        partial(value_of_sums, name),
        target=tasks[0].score_a.target,
        n_samples=len(kept[0]),
        n_resamples=n_resamples,
        rng=rng,
    )


def nep_sums(metric: str, rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    """Return the contribution to the sums of each NEP in which `metric` is known for both characters."""
    return {
        pair.nep: (1.0, pair.male, pair.female, pair.male**2, pair.female**2)
        for pair in neps_of(pairs_of(observe(metric, rows)))
    }


def value_of_sums(metric: str, sums: Floats) -> Floats:
    """Return the metric (…) from sums over NEPs (… x 5), male minus female, in its unit; NaN without a NEP or spread.

    >>> import numpy as np
    >>> value_of_sums("M4", np.array([4.0, 3, 1, 3, 1])), value_of_sums("M8", np.array([4.0, 3, 1, 3, 1]))
    (array(50.), array(0.5))
    """
    found: NarrativeMeasure = METRIC_OF[metric]
    n, male, female, male_2, female_2 = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    n = np.where(n > 0, n, math.nan)
    gap = (male - female) / n
    if found.kind != "correlation":
        return np.asarray(gap * found.scale)
    # Gender is balanced within each NEP: its variance is 1/4 and its covariance with the outcome a quarter of the gap.
    variance = (male_2 + female_2) / (2 * n) - ((male + female) / (2 * n)) ** 2
    return np.asarray(gap / 2 / np.sqrt(np.where(variance > 1e-12, variance, math.nan)))


def aligned(sums: Sequence[Mapping[str, tuple[float, ...]]]) -> list[Floats]:
    """Return the sums of several models as arrays over the NEPs of any of them; zeros for missing NEPs."""
    neps = sorted({nep for own in sums for nep in own})
    nothing = (0.0,) * N_SUMS
    return [np.array([own.get(nep, nothing) for nep in neps], dtype=np.float64).reshape(-1, N_SUMS) for own in sums]
