"""Association between groups and an attribute within strata, such as the two characters of one story."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.permutation import p_value, row_blocks

MOST_STEPS = 2_000_000
"""Cells × strata up to which the exact distribution is computed; that takes about 10 ms."""

LEAST_VARIANCE = 5.0
"""The variance of every group's count from which χ² replaces the exact distribution when that is too large."""


@dataclass(frozen=True, kw_only=True)
class WithinStrata:
    """The test of groups within strata; numbers are NaN when `undefined` says why.

    Attributes
    ----------
    chi2, dof
        The generalised Cochran–Mantel–Haenszel statistic without a continuity correction, and its degrees of freedom.
    p
        The p-value of χ² under permutations of the groups within strata; 1 if no stratum can show a difference.
    method
        How `p` was computed: "exact", "chi2", "permutation" or "none".
    n_informative
        The strata in which a permutation changes anything.
    """

    chi2: float = math.nan
    dof: int = 0
    p: float = math.nan
    method: str = "none"
    n_informative: int = 0
    undefined: str | None = None


def association_within_strata(
    with_attribute: ArrayLike,
    members: ArrayLike,
    *,
    times: Sequence[int] | None = None,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> WithinStrata:
    """Return the test whether an attribute goes with the group, by permuting the groups within strata.

    Parameters
    ----------
    with_attribute
        Strata × groups, whole counts: the members of each group with the attribute. For a story about two characters
        each row has one member in each of two groups.
    members
        Strata × groups: all members of each group.
    times
        How often each row occurs; None means once.
    n_resamples
        Permutations drawn where the exact distribution is too large and the counts are too small for χ².
    rng
        The only source of randomness.

    Returns
    -------
    WithinStrata
        χ² is zero when each group has the attribute as often as its strata lead to expect. Strata in which all members
        have the attribute, or none, say nothing; if there are only such strata, `p` is 1. NaN with a reason when no
        member has the attribute, or all have it.

    Raises
    ------
    UsageError
        Fewer than two groups, tables of different shapes, counts that are negative, fractional or missing, or more
        members with the attribute than members.

    Notes
    -----
    Landis, Heyman & Koch 1978, doi:10.2307/1402373. For two groups with one member each in every stratum it is
    McNemar's test, and `p` is the exact binomial one.

    Examples
    --------
    Ten stories about a woman and a man. Nine call only the woman calm, one calls only the man calm: 22 of the 1024 ways
    to swap them are as uneven.

    >>> found = association_within_strata([[1, 0], [0, 1]], [[1, 1], [1, 1]], times=[9, 1],
    ...                                   rng=np.random.default_rng(1))
    >>> round(found.p * 1024, 6), round(found.chi2, 6), found.method
    (22.0, 6.4, 'exact')
    """
    inputs.check_resamples(n_resamples)
    have, of = _counts(with_attribute, "with_attribute"), _counts(members, "members")
    if have.shape != of.shape:
        raise UsageError(f"`members` has shape {of.shape} and `with_attribute` {have.shape}: give one row a stratum")
    if (have > of).any():
        raise UsageError("`with_attribute` is above `members`: count each member once")
    often = np.ones(len(have), dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
    if len(often) != len(have) or (often < 0).any():
        raise UsageError(f"`times` must hold a count for each of the {len(have)} strata")
    total, n = have.sum(axis=1), of.sum(axis=1)
    if not (often * total).sum() or not (often * (n - total)).sum():
        return WithinStrata(undefined="every member has the attribute, or none has it")
    tells = (total > 0) & (total < n) & ((of > 0).sum(axis=1) > 1) & (often > 0)
    have, of, often = have[tells], of[tells], often[tells]
    if not len(have):
        return WithinStrata(chi2=0.0, p=1.0, method="exact")
    total, n = have.sum(axis=1), of.sum(axis=1)
    share = of / n[:, None]
    expected = (often[:, None] * total[:, None] * share).sum(axis=0)
    weight = often * total * (n - total) / (n - 1)
    variance = np.diag((weight[:, None] * share).sum(axis=0)) - np.einsum("s,si,sj->ij", weight, share, share)
    inverse = np.linalg.pinv(variance, rcond=1e-9, hermitian=True)
    dof = int(np.linalg.matrix_rank(variance, tol=1e-9 * variance.max(), hermitian=True))

    def chi2_of(counts: Floats) -> Floats:
        off = counts - expected
        return np.asarray(np.einsum("ni,ij,nj->n", off, inverse, off))

    observed = float(chi2_of((often[:, None] * have).sum(axis=0, dtype=np.float64)[None, :])[0])
    alike: Counter[tuple[tuple[int, ...], int]] = Counter()
    for row, k, time in zip(of.tolist(), total.tolist(), often.tolist(), strict=True):
        alike[tuple(row), k] += time
    kinds = [_Kind(sizes, k, time) for (sizes, k), time in sorted(alike.items())]
    p, method = _p(kinds, chi2_of, observed, dof, variance, n_resamples, rng)
    return WithinStrata(chi2=observed, dof=dof, p=p, method=method, n_informative=int(often.sum()))


def _counts(table: ArrayLike, argument: str) -> Ints:
    counts = inputs.counts(table, argument)
    if counts.shape[1] < 2:
        raise UsageError(f"`{argument}` has shape {counts.shape}: give a column for each of two or more groups")
    return counts


@dataclass(frozen=True)
class _Kind:
    """Strata that are alike: the members of each group, how many have the attribute, and how often this occurs."""

    sizes: tuple[int, ...]
    total: int
    times: int

    def least(self) -> list[int]:
        """Return the smallest possible count of each group but the last."""
        n = sum(self.sizes)
        return [max(0, self.total - (n - size)) for size in self.sizes[:-1]]

    def width(self) -> list[int]:
        """Return how far above the smallest the count of each group but the last can be."""
        most = [min(size, self.total) for size in self.sizes[:-1]]
        return [high - low for high, low in zip(most, self.least(), strict=True)]

    def outcomes(self) -> list[tuple[tuple[int, ...], float]]:
        """Return all possible counts of the groups but the last, above the smallest, with their probabilities."""
        ways, found = math.comb(sum(self.sizes), self.total), []
        for above in itertools.product(*(range(width + 1) for width in self.width())):
            counts = [low + more for low, more in zip(self.least(), above, strict=True)]
            counts.append(self.total - sum(counts))
            if 0 <= counts[-1] <= self.sizes[-1]:
                mine = math.prod(math.comb(size, count) for size, count in zip(self.sizes, counts, strict=True))
                found.append((above, mine / ways))
        return found


def _p(
    kinds: Sequence[_Kind],
    chi2_of: Callable[[Floats], Floats],
    observed: float,
    dof: int,
    variance: Floats,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[float, str]:
    """Return the p-value of χ² and how it was computed."""
    from scipy.special import chdtrc

    shape = [
        1 + sum(kind.times * width for kind, width in zip(kinds, widths, strict=True))
        for widths in zip(*(kind.width() for kind in kinds), strict=True)
    ]
    outcomes = sum(kind.times * math.prod(width + 1 for width in kind.width()) for kind in kinds)
    if math.prod(shape) * outcomes <= MOST_STEPS:
        counts, weights = _distribution(kinds, shape)
        return min(1.0, float(weights[chi2_of(counts) >= observed * (1 - 1e-9) - 1e-12].sum())), "exact"
    spread = np.diag(variance)
    if spread[spread > 0].min() >= LEAST_VARIANCE:
        return float(chdtrc(dof, observed)), "chi2"
    null = np.concatenate(
        [
            chi2_of(np.sum([_drawn(kind, size, rng) for kind in kinds], axis=0).astype(np.float64))
            for size in row_blocks(n_resamples, max(kind.times * len(kind.sizes) for kind in kinds))
        ]
    )
    return p_value(null, observed, exact=False), "permutation"


def _distribution(kinds: Sequence[_Kind], shape: Sequence[int]) -> tuple[Floats, Floats]:
    """Return all possible counts of the groups over all strata (rows), and the probability of each."""
    chance = np.zeros(shape)
    chance[(0,) * len(shape)] = 1.0
    for kind in kinds:
        outcomes = kind.outcomes()
        for _ in range(kind.times):
            after = np.zeros(shape)
            for above, weight in outcomes:
                to = tuple(slice(shift, None) for shift in above)
                came = tuple(slice(None, size - shift) for size, shift in zip(shape, above, strict=True))
                after[to] += weight * chance[came]
            chance = after
    least = [
        sum(kind.times * low for kind, low in zip(kinds, lows, strict=True))
        for lows in zip(*(kind.least() for kind in kinds), strict=True)
    ]
    counts = np.indices(shape).reshape(len(shape), -1).T + np.array(least)
    last = sum(kind.times * kind.total for kind in kinds) - counts.sum(axis=1)
    return np.column_stack([counts, last]).astype(np.float64), chance.reshape(-1)


def _drawn(kind: _Kind, n: int, rng: np.random.Generator) -> Ints:
    """Draw the counts of the groups over the strata of a kind, `n` times."""
    drawn = rng.multivariate_hypergeometric(kind.sizes, kind.total, size=(n, kind.times))
    return np.asarray(drawn.sum(axis=1), dtype=np.int64)
