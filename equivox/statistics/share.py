"""A share of responses with a confidence interval over clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import checks, inputs
from equivox.statistics.arrays import Floats
from equivox.statistics.inputs import LabelColumn, NumberColumn


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
    confidence: float = 0.95,
) -> Share:
    """Return the share of ones among ones and zeros, with an interval over clusters.

    Parameters
    ----------
    hits
        1 or 0 per response. A missing one is left out.
    clusters
        The unit that gave several responses, one label per response. None makes each response a cluster.
    confidence
        Coverage of the interval, between 0 and 1.

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
    The standard error of a ratio of sums over clusters, and Student's t with one degree of freedom less than clusters,
    on the scale of log odds: Korn & Graubard 1999, Analysis of Health Surveys, section 2.4. With few clusters it holds
    the true share more often than a bootstrap does (docs/statistics.md).

    Examples
    --------
    Three clusters of two answers, with 1, 1 and 2 hits. Their residuals are (-1, -1, 2)/18, so that the standard error
    is √(3/2 · 6)/18 = 1/6, which is 3/4 in log odds. Student's t with 2 degrees of freedom is 4.30.

    >>> found = cluster_share([1, 0, 0, 1, 1, 1], clusters=["a", "a", "b", "b", "c", "c"])
    >>> round(found.share, 1), round(found.low, 1), round(found.high, 1), found.n_clusters
    (66.7, 7.4, 98.1, 3)
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
    low, high, notes = _interval(sums, sizes, confidence)
    return Share(
        share=100 * float(column[known].mean()),
        low=low,
        high=high,
        n=int(known.sum()),
        n_clusters=len(sizes),
        notes=notes,
    )


def _interval(hits: Floats, sizes: Floats, confidence: float) -> tuple[float, float, tuple[str, ...]]:
    """Return the interval of a ratio of sums over clusters in percent; NaN with a note where there is none."""
    from scipy import stats

    n_clusters = len(sizes)
    if n_clusters < 2:
        return math.nan, math.nan, ("one cluster only: no interval",)
    if np.ptp(hits / sizes) == 0:
        return math.nan, math.nan, ("all clusters have the same share: no interval",)
    share = hits.sum() / sizes.sum()
    residuals = (hits - share * sizes) / sizes.sum()
    error = math.sqrt(n_clusters / (n_clusters - 1) * (residuals**2).sum())
    reach = float(stats.t.ppf(0.5 + confidence / 2, n_clusters - 1)) * error / (share * (1 - share))
    odds = math.log(share / (1 - share))
    low, high = 100 / (1 + np.exp([reach - odds, -reach - odds]))
    return float(low), float(high), ()
