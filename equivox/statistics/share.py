"""A share of responses with a confidence interval over clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import checks, inputs
from equivox.statistics.arrays import Floats
from equivox.statistics.inputs import LabelColumn, NumberColumn

FEW_CLUSTERS = 10
"""With fewer clusters than this, a bootstrap interval contains the true share less often than it claims."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share in percent with its interval; NaN if `undefined`, or a note on the interval, gives a reason."""

    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    n_clusters: int = 0
    undefined: str | None = None
    notes: tuple[str, ...] = ()


def cluster_share(
    hits: NumberColumn,
    *,
    clusters: LabelColumn | None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Share:
    """Return the share of ones among ones and zeros, with a BCa bootstrap interval over clusters.

    Parameters
    ----------
    hits
        1 or 0 per response. A missing one is left out.
    clusters
        The unit that gave several responses, one label per response. None makes each response a cluster.
    n_resamples
        Bootstrap draws.
    confidence
        Coverage of the interval, between 0 and 1.
    rng
        The only source of randomness.

    Returns
    -------
    Share
        In percent; zero means that there are no ones. NaN with a reason when every number is missing. Only the interval
        is NaN, with a note, when there are fewer than two clusters or all have the same share.

    Raises
    ------
    RequestError
        No numbers, a number other than 0 and 1, a missing cluster, or columns of unequal lengths.

    Notes
    -----
    Efron 1987, doi:10.1080/01621459.1987.10478410: bias-corrected and accelerated, with whole clusters resampled.

    Examples
    --------
    >>> found = cluster_share([1, 1, 0, 0, 1, 0], clusters=["a", "a", "b", "b", "c", "c"],
    ...                       rng=np.random.default_rng(1))
    >>> found.share, found.n_clusters
    (50.0, 3)
    """
    checks.share(confidence, "confidence")
    column = inputs.numbers(hits, "hits")
    known = ~np.isnan(column)
    if not np.isin(column[known], (0.0, 1.0)).all():
        raise RequestError("`hits` holds a number other than 0 and 1: use 1 for a hit, 0 for none, NaN for missing")
    cluster = inputs.cluster_codes(clusters, "hits", len(column))
    if not known.any():
        return Share(undefined="every value is missing")
    _, code = np.unique(cluster[known], return_inverse=True)
    sums = np.bincount(code, weights=column[known]).astype(np.float64)
    sizes = np.bincount(code).astype(np.float64)
    low, high, notes = share_interval(sums, sizes, n_resamples, confidence, rng)
    return Share(
        share=100 * float(column[known].mean()),
        low=low,
        high=high,
        n=int(known.sum()),
        n_clusters=len(sizes),
        notes=notes,
    )


def share_interval(
    hits: Floats, sizes: Floats, n_resamples: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float, tuple[str, ...]]:
    """Return the BCa bootstrap interval over clusters of a ratio of sums, in percent."""
    from scipy import stats

    if len(sizes) < 2:
        return math.nan, math.nan, ("one cluster only: no interval",)
    if np.ptp(hits / sizes) == 0:
        return math.nan, math.nan, ("all clusters have the same share: no interval",)

    def share_of(hit: Floats, size: Floats, axis: int = -1) -> Floats:
        return np.asarray(100 * hit.sum(axis=axis) / size.sum(axis=axis))

    found = stats.bootstrap(
        (hits, sizes), share_of, paired=True, vectorized=True, n_resamples=n_resamples, batch=500,
        confidence_level=confidence, method="BCa", rng=rng,
    ).confidence_interval  # fmt: skip
    notes = (f"fewer than {FEW_CLUSTERS} clusters: the interval is narrower than it should be",)
    return float(found.low), float(found.high), notes if len(sizes) < FEW_CLUSTERS else ()
