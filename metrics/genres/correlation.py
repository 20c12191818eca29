"""Pearson correlation of an outcome with a label, with the NEP as the unit (M7 and M8)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, Ints, LabelColumn, NumberColumn
from equivox.statistics.permutation import all_swaps, p_value, row_blocks, swaps


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Pearson's r and its two-sided cluster permutation p; NaN when `undefined` says why."""

    r: float = math.nan
    p: float = math.nan
    n: int
    n_missing: int
    n_clusters: int
    moved: str = "nothing"
    exact: bool = False
    null: Floats
    undefined: str | None = None


def correlate_within_neps(
    x: NumberColumn,
    y: NumberColumn,
    *,
    clusters: LabelColumn | None,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> Correlation:
    """Return the correlation of an outcome with a label, tested by permuting the labels of whole clusters.

    Parameters
    ----------
    x
        The label of each entry as a number (gender as 0 and 1).
    y
        The outcome of each entry. A pair with a missing label or outcome is left out and counted.
    clusters
        The unit, one label per entry. When x is constant within every cluster, labels are permuted between clusters.
        When x takes two values and varies within clusters (two characters of one pair), the two are swapped in whole
        clusters. None makes each entry a cluster.
    n_resamples, rng
        As in `equivox.statistics`.

    Returns
    -------
    Correlation
        `r` is zero when outcome and label are not linearly related. `moved` says what was permuted. NaN with a reason
        when fewer than three pairs are known, or when x or y is constant: a constant outcome is no evidence of
        fairness.

    Raises
    ------
    UsageError
        Columns that are empty or of unequal lengths, a missing cluster, or an x that varies within clusters and takes
        more than two values.

    Notes
    -----
    GENRES M7 and M8 (a NEP is a cluster). Repeated runs of one NEP are not independent pairs, and are not treated as
    such.

    Examples
    --------
    Four pairs; in each the second character leads. Two of the 16 swaps are as extreme: p = 2/16.

    >>> found = correlate_within_neps([0, 1] * 4, [0, 1] * 4, clusters=list("aabbccdd"),
    ...                             rng=np.random.default_rng(1))
    >>> round(found.r, 9), found.p, found.moved
    (1.0, 0.125, 'labels swapped within clusters')
    """
    inputs.check_resamples(n_resamples)
    label, outcome = inputs.numbers(x, "x"), inputs.numbers(y, "y")
    inputs.same_length("x", len(label), {"y": len(outcome)})
    cluster = inputs.cluster_codes(clusters, "x", len(label))
    known = ~(np.isnan(label) | np.isnan(outcome))
    label, outcome = label[known], outcome[known]
    present, code = np.unique(cluster[known], return_inverse=True)
    n, n_missing = int(known.sum()), int((~known).sum())
    reason = _undefined(label, outcome)
    if reason is not None:
        return Correlation(n=n, n_missing=n_missing, n_clusters=len(present), null=np.empty(0), undefined=reason)
    label, outcome = _unit(label), _unit(outcome)
    first = np.zeros(len(present))
    first[code] = label
    if np.array_equal(first[code], label):
        null, exact = _exchanged(first, outcome, code, n_resamples, rng), False
        moved = "labels exchanged between clusters"
    else:
        if len(np.unique(label)) > 2:
            raise UsageError("`x` varies within clusters and takes more than two values: swap needs two labels")
        null, exact = _swapped(label, outcome, code, n_resamples, rng)
        moved = "labels swapped within clusters"
    r = float((label * outcome).sum() / np.sqrt((label**2).sum()))
    return Correlation(
        r=r,
        p=p_value(np.abs(null), abs(r), exact=exact),
        n=n,
        n_missing=n_missing,
        n_clusters=len(present),
        moved=moved,
        exact=exact,
        null=null,
    )


def _unit(values: Floats) -> Floats:
    """Return values that vary, centred and of length one; the largest is 1 in between, so that no square underflows."""
    centred = values - values.mean()
    centred = centred / np.abs(centred).max()
    return np.asarray(centred / np.sqrt((centred**2).sum()))


def _undefined(label: Floats, outcome: Floats) -> str | None:
    if len(label) < 3:
        return f"{len(label)} known pair{'' if len(label) == 1 else 's'}: a correlation needs three"
    if _constant(label):
        return "`x` is constant"
    if _constant(outcome):
        return "`y` is constant: a constant outcome shows no difference and no fairness"
    return None


def _constant(values: Floats) -> bool:
    """Return whether values differ by no more than rounding leaves of them."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())


def _r(sx: Floats, sxx: Floats, sxy: Floats, n: int) -> Floats:
    """Return r from sums, for an outcome of mean 0 and length 1; constant labels give NaN."""
    spread = sxx - sx**2 / n
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 1e-12, sxy / np.sqrt(spread), np.nan)


def _exchanged(first: Floats, outcome: Floats, code: Ints, n_resamples: int, rng: np.random.Generator) -> Floats:
    sizes = np.bincount(code).astype(np.float64)
    sums = np.bincount(code, weights=outcome)
    order = np.lexsort([sums, sizes])
    sizes, sums, labels = sizes[order], sums[order], np.sort(first)
    parts = []
    for size in row_blocks(n_resamples, len(first)):
        moved = rng.permuted(np.tile(labels, (size, 1)), axis=1)
        parts.append(_r(moved @ sizes, moved**2 @ sizes, moved @ sums, len(code)))
    return np.concatenate(parts)


def _swapped(
    label: Floats, outcome: Floats, code: Ints, n_resamples: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    other = label.min() + label.max() - label
    change = [np.bincount(code, weights=w) for w in (other - label, other**2 - label**2, (other - label) * outcome)]
    n_clusters = len(change[0])
    order = np.lexsort(change)
    shift = np.stack(change, axis=1)[order]
    base = np.array([label.sum(), (label**2).sum(), (label * outcome).sum()])
    parts = []
    for pattern in swaps(n_clusters, n_resamples, n_clusters, rng):
        sums = base + pattern @ shift
        parts.append(_r(sums[:, 0], sums[:, 1], sums[:, 2], len(label)))
    return np.concatenate(parts), all_swaps(n_clusters, n_resamples)
