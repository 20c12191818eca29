"""Two models on the same items: is one further from parity than the other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equivox.errors import RequestError
from equivox.statistics import checks
from equivox.statistics.distance import Floats, ntvd_of_counts, ntvd_of_shares
from equivox.statistics.encode import Ints, cross_count, encode_design, encode_values
from equivox.statistics.intervals import TINY, noise_of_clusters, spreads
from equivox.statistics.permutation import blocks, p_value

N_NOISE = 1_000

BLOCK_CELLS = 2**19


@dataclass(frozen=True, kw_only=True)
class ShiftComparison:
    """Difference of two models' nTVD on the same items, in percent; NaN when `undefined` says why.

    Attributes
    ----------
    difference
        ntvd_a − ntvd_b over the values kept for both. Above zero: model a lies further from parity.
    p
        Two-sided; models change places within whole clusters.
    ci_low, ci_high
        Confidence interval of the difference of the population nTVDs (clusters resampled, both models together).
    n_used, n_dropped
        Items that both models answered with a kept value, and the others.
    """

    difference: float
    ntvd_a: float
    ntvd_b: float
    p: float
    ci_low: float
    ci_high: float
    n_used: int
    n_dropped: int
    n_clusters: int
    exact: bool
    undefined: str | None


def compare_shift(
    values_a: Sequence[Sequence[str]],
    values_b: Sequence[Sequence[str]],
    groups: Sequence[str],
    *,
    clusters: Sequence[str],
    min_count: int = 10,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> ShiftComparison:
    """Compare the distribution shift of two models on the same items.

    Parameters
    ----------
    values_a, values_b
        The values each model gave to each item, in the same order of items; empty where missing. Items that one of
        the two lacks are dropped for both, and counted.
    groups, clusters
        One per item; a cluster carries one group.
    min_count
        Values seen fewer times over both models together are removed.
    n_resamples
        Swaps drawn; all 2^C are enumerated when they are no more.
    confidence
        Coverage of the interval.
    rng
        The only source of randomness.

    Returns
    -------
    ShiftComparison
        `difference` is zero when both lie equally far from parity, not when they answer alike. NaN with a reason
        when fewer than two groups or values are left or a group is empty; the interval alone is NaN when a group
        has one cluster.

    Raises
    ------
    RequestError
        As `distribution_shift`.

    Notes
    -----
    The null of the swap test is that the two models are exchangeable within a cluster, which is more than equal
    nTVD: models with equal shifts in different directions satisfy it only when their answers are exchangeable. Read
    a small p as "the models differ in shift" together with the interval. The interval takes each model's upward
    bias at its largest on one side and at its smallest on the other (docs/validity.md), so it is wide, not narrow.

    Examples
    --------
    >>> groups, speakers = ["f"] * 4 + ["m"] * 4, list("aabbccdd")
    >>> apart = [["x"]] * 4 + [["y"]] * 4
    >>> alike = [["x"], ["y"]] * 4
    >>> found = compare_shift(apart, alike, groups, clusters=speakers, min_count=1, rng=np.random.default_rng(1))
    >>> found.ntvd_a, found.ntvd_b, found.difference, found.p
    (100.0, 0.0, 100.0, 0.125)
    """
    checks.resamples(n_resamples)
    checks.share(confidence, "confidence")
    if min_count < 1:
        raise RequestError(f"`min_count` is {min_count}: use 1 to keep every value")
    design = encode_design(groups, clusters, None)
    n = len(groups)
    checks.same_length(n, values_a=values_a, values_b=values_b)
    both = encode_values([*values_a, *values_b], 2 * n, min_count, argument="values_a, values_b")
    answered = np.zeros(2 * n, dtype=bool)
    answered[both.rows] = True
    used = answered[:n] & answered[n:]
    if design.cluster_of_row is None or design.group_of_cluster is None:
        raise RequestError("`clusters` is None: name the unit that carries the group")
    item = both.rows % n
    keep = used[item]
    of_b = both.rows[keep] >= n
    shape = (len(design.group_of_cluster), len(both.values))
    counts = np.stack(
        [cross_count(design.cluster_of_row[item[keep][mine]], both.codes[keep][mine], shape) for mine in (~of_b, of_b)]
    )
    heard = counts.sum(axis=(0, 2)) > 0
    counts, group = counts[:, heard], design.group_of_cluster[heard]
    reason = _undefined(design.groups, group, counts)
    n_used, n_dropped = int(used.sum()), int(n - used.sum())
    if reason is not None:
        nan = float("nan")
        return ShiftComparison(
            difference=nan, ntvd_a=nan, ntvd_b=nan, p=nan, ci_low=nan, ci_high=nan, n_used=n_used,
            n_dropped=n_dropped, n_clusters=len(group), exact=False, undefined=reason,
        )  # fmt: skip
    n_groups = len(design.groups)
    member = (group == np.arange(n_groups)[:, None]).astype(np.float64)
    tables = member @ counts.astype(np.float64)
    ntvd_a, ntvd_b = ntvd_of_counts(tables).tolist()
    null, exact = _swapped(counts, member, n_resamples, rng)
    low, high = _interval(counts, group, tables, n_groups, confidence, rng)
    return ShiftComparison(
        difference=ntvd_a - ntvd_b,
        ntvd_a=ntvd_a,
        ntvd_b=ntvd_b,
        p=p_value(np.abs(null), abs(ntvd_a - ntvd_b), exact=exact),
        ci_low=low,
        ci_high=high,
        n_used=n_used,
        n_dropped=n_dropped,
        n_clusters=len(group),
        exact=exact,
        undefined=None,
    )


def _undefined(groups: tuple[str, ...], group: Ints, counts: Ints) -> str | None:
    if len(groups) < 2:
        return f"only one group, {groups[0]!r}: a difference needs two"
    if counts.shape[2] < 2:
        return "fewer than two values are kept: constant answers show no difference and no fairness"
    empty = [name for code, name in enumerate(groups) if not (group == code).any()]
    return f"no item that both models answered in group {', '.join(map(repr, empty))}" if empty else None


def _swapped(counts: Ints, member: Floats, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Difference of nTVD with the two models exchanged in some clusters, B."""
    order = np.lexsort([*counts[0].T, *counts[1].T])
    a, b, member = counts[0][order].astype(np.float64), counts[1][order].astype(np.float64), member[:, order]
    n_clusters = len(a)
    exact = n_clusters <= 62 and 2**n_clusters <= n_resamples
    step = max(1, BLOCK_CELLS // (len(member) * max(a.shape)))
    base_a, base_b = member @ a, member @ b
    parts, start = [], 0
    for size in blocks(2**n_clusters if exact else n_resamples, step):
        if exact:
            flips = np.arange(start, start + size)[:, None] >> np.arange(n_clusters) & 1
        else:
            flips = rng.integers(0, 2, size=(size, n_clusters), dtype=np.int8)
        start += size
        moved = np.stack([(flips * mine) @ (b - a) for mine in member], axis=1)
        parts.append(ntvd_of_counts(base_a + moved) - ntvd_of_counts(base_b - moved))
    return np.concatenate(parts), exact


def _interval(
    counts: Ints, group: Ints, tables: Floats, n_groups: int, confidence: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Difference less the difference of biases, bracketed by the sparsest and the densest spread of each model."""
    if np.bincount(group, minlength=n_groups).min() < 2:
        return float("nan"), float("nan")
    n_values = counts.shape[2]
    parts = [slice(0, n_values), slice(n_values, 2 * n_values)]
    factors = noise_of_clusters(np.concatenate([counts[0], counts[1]], axis=1), group, parts, n_groups)
    noise = np.stack([rng.standard_normal((N_NOISE, len(factor))) @ factor for factor in factors], axis=1)
    degrees = float(len(group) - n_groups)
    noise *= np.sqrt(degrees / rng.chisquare(degrees, size=(N_NOISE, 1, 1)))
    noise -= noise.mean(axis=1, keepdims=True)
    sd = np.maximum(noise.std(axis=0), TINY)
    shares = tables / tables.sum(axis=2, keepdims=True)
    deviations = shares - shares.mean(axis=1, keepdims=True)
    bias, moved = np.empty((2, 2)), []
    for model, part in enumerate(parts):
        sparse, dense = spreads(deviations[model], noise[:, :, part], sd[:, part], [slice(0, n_values)])
        for column, spread in enumerate((sparse, dense)):
            bias[model, column] = _bias(deviations[model], spread, noise[:, :, part])
        moved.append(ntvd_of_shares(deviations[model] + noise[:, :, part]))
    change = moved[0] - moved[1]
    spread_of_change = change - change.mean()
    tail = (1 - confidence) / 2
    difference = float(np.subtract(*ntvd_of_counts(tables)))
    low = difference - (bias[0].max() - bias[1].min()) - float(np.quantile(spread_of_change, 1 - tail))
    high = difference - (bias[0].min() - bias[1].max()) - float(np.quantile(spread_of_change, tail))
    return max(-100.0, low), min(100.0, high)


def _bias(deviations: NDArray[np.float64], spread: Floats, noise: Floats) -> float:
    """How far noise lengthens the observed distance when the truth is spread like `spread`."""
    observed = float(ntvd_of_shares(deviations[None])[0])
    length = float(ntvd_of_shares(spread[None])[0])
    if length == 0.0:
        return 0.0

    def longer(t: float) -> float:
        return float(ntvd_of_shares(t / length * spread + noise).mean())

    low, high = 0.0, observed
    if longer(0.0) >= observed:
        return observed
    for _ in range(20):  # bisection: the mean distance rises with t
        middle = (low + high) / 2
        low, high = (middle, high) if longer(middle) < observed else (low, middle)
    return observed - low
