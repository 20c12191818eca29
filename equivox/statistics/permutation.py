"""Permutations of groups over units: the test of a comparison, and the smallest p that a design can give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equivox.core.columns import cross_count
from equivox.core.notes import LEVEL, Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.design import Design, repeat_parts, sum_parts
from equivox.statistics.distance import Norm, center
from equivox.statistics.inputs import Bools, Floats, Ints
from equivox.statistics.linearization import PRIOR, TINY

Labels = NDArray[np.integer[Any]]


def label_dtype(n_groups: int) -> type[np.uint8] | type[np.int64]:
    """Return the smallest dtype that holds a group code."""
    return np.uint8 if n_groups <= 256 else np.int64


def sizes_and_order(group: Ints, stratum: Ints | None, n_groups: int) -> tuple[Ints, Ints]:
    """Count the units of each group in each stratum (S x G), and return the group that each column counts.

    The order of columns does not depend on names.
    """
    where = np.zeros_like(group) if stratum is None else stratum
    present, code = np.unique(where, return_inverse=True)
    sizes = cross_count(code, group, (len(present), n_groups))
    order = np.lexsort(sizes)[::-1]
    return sizes[:, order], order


def count_labellings(sizes: Ints) -> int:
    """Return the number of distinct permutations of the labels: a product of multinomials.

    >>> count_labellings(np.array([[2, 2]])), count_labellings(np.array([[2, 1], [1, 1]]))
    (6, 6)
    """
    total = 1
    for row in sizes.tolist():
        left = sum(row)
        for size in row:
            total *= math.comb(left, size)
            left -= size
    return total


def all_labellings(sizes: Ints) -> Labels:
    """Enumerate every distinct permutation: one row each, the units in stratum order.

    >>> all_labellings(np.array([[1, 2]])).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    dtype = label_dtype(sizes.shape[1])
    whole = np.zeros((1, 0), dtype=dtype)
    for row in sizes.tolist():
        within = np.asarray(list(_assignments(tuple(row), sum(row))), dtype=dtype).reshape(-1, sum(row))
        whole = np.concatenate([np.repeat(whole, len(within), axis=0), np.tile(within, (len(whole), 1))], axis=1)
    return whole


def _assignments(sizes: tuple[int, ...], n_units: int) -> Iterator[list[int]]:
    """Yield every way to give `sizes[g]` of the units the label g."""

    def fill(label: int, free: tuple[int, ...], labels: list[int]) -> Iterator[list[int]]:
        if label == len(sizes):
            yield list(labels)
            return
        for chosen in itertools.combinations(free, sizes[label]):
            for unit in chosen:
                labels[unit] = label
            taken = set(chosen)
            yield from fill(label + 1, tuple(unit for unit in free if unit not in taken), labels)

    yield from fill(0, tuple(range(n_units)), [0] * n_units)


def random_labellings(sizes: Ints, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations uniformly: one row each, the units in stratum order."""
    if (sizes == sizes[0]).all():
        return _dealt(sizes[0], len(sizes), n, rng)
    alike, kind = np.unique(sizes, axis=0, return_inverse=True)
    starts = np.cumsum(sizes.sum(axis=1)) - sizes.sum(axis=1)
    found = np.empty((n, int(sizes.sum())), dtype=label_dtype(sizes.shape[1]))
    for code, row in enumerate(alike):
        # Strata of the same sizes are dealt together: there may be thousands of pairs.
        first = starts[kind.ravel() == code]
        place = (first[:, None] + np.arange(row.sum())).ravel()
        found[:, place] = _dealt(row, len(first), n, rng)
    return found


def _dealt(row: Ints, n_strata: int, n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` permutations of strata that all have the sizes `row`."""
    dtype = label_dtype(len(row))
    if row.tolist() == [1, 1]:
        found = np.empty((n, n_strata, 2), dtype=dtype)
        found[..., 0] = rng.integers(0, 2, size=(n, n_strata), dtype=np.uint8)
        found[..., 1] = 1 - found[..., 0]
        return found.reshape(n, -1)
    labels = np.repeat(np.arange(len(row), dtype=dtype), row)
    return rng.permuted(np.tile(labels, (n, n_strata, 1)), axis=2).reshape(n, -1)


def blocks(total: int, size: int) -> Iterator[int]:
    """Yield block lengths of at most `size` that add up to `total`.

    >>> list(blocks(5, 2))
    [2, 2, 1]
    """
    for start in range(0, total, size):
        yield min(size, total - start)


BLOCK_CELLS = 2**19
"""The numbers that are in memory at a time while permutations are drawn."""


def row_blocks(total: int, width: int, cells: int = BLOCK_CELLS) -> Iterator[int]:
    """Yield block lengths as `blocks` does, each of at most `cells` numbers in rows of `width`."""
    return blocks(total, max(1, cells // width))


def labellings(sizes: Ints, n_resamples: int, step: int, rng: np.random.Generator) -> Iterator[Labels]:
    """Yield permutations in blocks of at most `step`: all, if there are no more than `n_resamples`, or random ones."""
    if count_labellings(sizes) <= n_resamples:
        every = all_labellings(sizes)
        for start in range(0, len(every), step):
            yield every[start : start + step]
    else:
        for size in blocks(n_resamples, step):
            yield random_labellings(sizes, size, rng)


def all_swaps(n: int, n_resamples: int) -> bool:
    """Return whether some of `n` clusters can be swapped in at most `n_resamples` ways, so that all are counted."""
    return n <= 62 and 2**n <= n_resamples


def swaps(n: int, n_resamples: int, width: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield blocks of patterns (B x n), 1 for each of `n` clusters that is swapped: all patterns, or random ones."""
    every, start = all_swaps(n, n_resamples), 0
    for size in row_blocks(2**n if every else n_resamples, width):
        if every:
            yield (np.arange(start, start + size)[:, None] >> np.arange(n) & 1).astype(np.float64)
        else:
            yield rng.integers(0, 2, size=(size, n), dtype=np.int8).astype(np.float64)
        start += size


def p_value(null: Floats, observed: float, *, exact: bool, size: float = 1.0) -> float:
    """Return the share of permutations at least as far out as the observed one; never 0.

    An exact set contains the observed permutation; to a random set it is added: (1 + b) / (1 + B). Values within a
    relative 1e-9 are ties, and a permutation whose distance is undefined counts as at least as far out. `size` is that
    of the numbers that are permuted, in their unit: less than 1e-9 of it is what rounding leaves.

    >>> p_value(np.array([1.0, 2.0, 3.0]), 3.0, exact=False), p_value(np.array([1.0, 3.0]), 3.0, exact=True)
    (0.5, 0.5)
    """
    extreme = count_extreme(null, observed, size)
    return extreme / len(null) if exact else (1 + extreme) / (1 + len(null))


def count_extreme(null: Floats, observed: float, size: float = 1.0) -> int:
    """Count the null values that are not below the observed one, see `p_value`."""
    return len(null) - int((null < observed - 1e-9 * max(size, abs(observed))).sum())


_MOST_GROUPS = 7
"""Up to this many groups all their renamings are tried; with more, renaming is taken to change every permutation."""


@dataclass(frozen=True, kw_only=True)
class LeastP:
    """The smallest p that a permutation test can give, and the number of distinct permutations.

    `p` is between 0 and 1 and never 0. It is 1 if no permutation changes anything.
    """

    p: float
    n_permutations: int

    @property
    def too_few(self) -> Note | None:
        """Why the test can find nothing at the level .05; None if it can."""
        return None if self.p < LEVEL else Note(NoteCode.SMALLEST_P, {"p": self.p, "permutations": self.n_permutations})


NO_CHOICE = LeastP(p=1.0, n_permutations=1)
"""The least p of a design that allows one permutation only."""


def compute_least_p(sizes: Ints, *, n_resamples: int) -> LeastP:
    """Return the smallest p of a test that permutes groups over units within strata.

    Parameters
    ----------
    sizes
        Strata × groups: the number of units of each group in each stratum.
    n_resamples
        Permutations drawn. All of them are enumerated when there are no more than this.

    Returns
    -------
    LeastP
        The most extreme permutation is never alone if the statistic does not know the groups' names: renaming the
        groups gives permutations that are as extreme. `p` is their share of all permutations, and at least
        1 / (1 + n_resamples) when permutations are drawn.

    Raises
    ------
    UsageError
        `n_resamples` below 1.

    Examples
    --------
    Three speakers of each of two groups have 20 permutations, two of which are the most extreme. Two and four have 15,
    and no renaming of the groups is one of them. Five pairs of names have 32.

    >>> compute_least_p(np.array([[3, 3]]), n_resamples=10_000).too_few.values
    {'p': 0.1, 'permutations': 20}
    >>> compute_least_p(np.array([[2, 4]]), n_resamples=10_000).p == 1 / 15
    True
    >>> compute_least_p(np.array([[1, 1]] * 5), n_resamples=10_000).p
    0.0625
    """
    inputs.check_resamples(n_resamples)
    n = count_labellings(sizes)
    share = _renamings(sizes) / n
    p = share if n <= n_resamples else max(share, 1 / (1 + n_resamples))
    return LeastP(p=p, n_permutations=n)


def _renamings(sizes: Ints) -> int:
    """Count the renamings of groups that leave the sizes of every stratum as they are."""
    unlike = np.unique(sizes, axis=0)
    present = unlike[:, unlike.any(axis=0)]
    if present.shape[1] > _MOST_GROUPS:
        return 1
    return sum(
        bool((present[:, list(order)] == present).all()) for order in itertools.permutations(range(present.shape[1]))
    )


MOST_UNLIKE_COUNTS, MOST_UNLIKE_VARIANCES = 1.2, 1.7
"""Groups whose units, or whose variances between units, differ by more than this factor are unlike."""


def pool_variances(variances: Floats, members: Ints) -> Floats:
    """Return the variance between the units of each group, mixed with that of all groups (… x G).

    The mean of all groups has the weight of `PRIOR` clusters: from four clusters a group's own variance is not known
    well enough to divide by.
    """
    free = np.maximum(members - 1, 0)
    pooled = (free * variances).sum(axis=-1, keepdims=True) / max(int(free.sum()), 1)
    return np.asarray((free * variances + PRIOR * pooled) / (free + PRIOR))


def are_unlike(members: Ints, variances: Floats) -> bool:
    """Return whether groups differ in numbers of units, or in variance between units, more than permutations allow."""
    pooled = pool_variances(variances, members)
    few = members.max() > MOST_UNLIKE_COUNTS * members.min()
    return bool(few or pooled.max() > MOST_UNLIKE_VARIANCES * pooled.min())


@dataclass(frozen=True, kw_only=True)
class Permuted:
    """The p of a permutation test, whether all permutations were counted, and the smallest p that it can give."""

    p: float = math.nan
    exact: bool = False
    least: LeastP = NO_CHOICE


def permute_groups(
    sums: Floats,
    parts: Sequence[slice],
    design: Design,
    n_resamples: int,
    rng: np.random.Generator,
    *,
    sizes: Floats | None = None,
    norm: Norm | None = None,
) -> Permuted:
    """Return the p of groups exchanged between the units of a stratum, or within units that are in several groups.

    Without `norm` the statistic is Welch's: a group's deviation from the mean, with groups weighted by their inverse
    noise, is taken in units of the group's own noise; squares are summed over groups, and their roots over values. Its
    distribution without an effect hardly depends on how unlike the groups' noise is (Chung & Romano 2013,
    doi:10.1214/13-AOS1090; Hamidi et al. 2019, doi:10.7717/peerj.6794).

    Parameters
    ----------
    sums, parts, design, sizes
        As in `equivox.statistics.linearization.compute_influence`.
    norm
        The distance to compare instead; it is not studentised.

    Returns
    -------
    Permuted
        NaN where no stratum holds all groups.
    """
    cells = _Exchangeable.of(sums, parts, design, sizes)
    if cells is None:
        return Permuted()
    sizes_of_strata, label_group = sizes_and_order(cells.group, cells.stratum, design.n_groups)
    least = compute_least_p(sizes_of_strata[(sizes_of_strata > 0).all(axis=1)], n_resamples=n_resamples)
    exact = count_labellings(sizes_of_strata) <= n_resamples
    step = max(16, BLOCK_CELLS // (cells.parts[-1].stop * design.n_groups + len(cells.group)))
    code_of_group = np.argsort(label_group)
    observed = cells.measure(code_of_group[cells.group][None], label_group, norm)[0]
    drawn = labellings(sizes_of_strata, n_resamples, step, rng)
    null = np.concatenate([cells.measure(labels, label_group, norm) for labels in drawn])
    return Permuted(p=p_value(null, float(observed), exact=exact, size=1e-3), exact=exact, least=least)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Exchangeable:
    """The cells with an answer, in the order of their strata and then of their sums, which names do not change.

    All that the statistic needs of a group is a sum over its cells of `features`, K x F: what each cell has beyond the
    mean of its stratum and, for the noise, its answers, squares and products. With several strata a cell counts by how
    many of its stratum are of the group, so that all groups have one mix of strata; `features` then differ by group.
    """

    features: Sequence[Floats]
    parts: Sequence[slice]
    group: Ints
    stratum: Ints
    standardised: bool
    total: Floats

    @classmethod
    def of(cls, sums: Floats, parts: Sequence[slice], design: Design, sizes: Floats | None) -> _Exchangeable | None:
        """Return the cells with an answer; None where no stratum holds all groups."""
        n = sum_parts(sums, parts) if sizes is None else sizes
        answering: Bools = np.asarray(n.any(axis=1))
        sums, n, group = sums[answering], n[answering], design.group[answering]
        stratum = np.unique(design.stratum[answering], return_inverse=True)[1]
        order = np.lexsort([*sums.T[::-1], stratum])
        sums, n, group, stratum = sums[order], n[order], group[order], stratum[order]
        n_strata = int(stratum.max(initial=0)) + 1
        of_stratum, total = np.zeros((n_strata, n.shape[1])), np.zeros((n_strata, sums.shape[1]))
        np.add.at(of_stratum, stratum, n)
        np.add.at(total, stratum, sums)
        wide = repeat_parts(of_stratum, parts)
        mean = np.divide(total, wide, out=np.zeros_like(total), where=wide > 0)
        members = cross_count(stratum, group, (n_strata, design.n_groups)).astype(np.float64)
        complete: Bools = np.asarray((members > 0).all(axis=1))
        if not complete.any():
            return None
        beyond = sums - repeat_parts(n, parts) * mean[stratum]
        squares = sum_parts(beyond**2, parts)
        if n_strata == 1:
            features = [np.concatenate([beyond, squares, n, beyond * repeat_parts(n, parts), n**2], axis=1)]
        else:
            all_members = members.sum(axis=1, keepdims=True)
            deals = np.divide(all_members, members, out=np.zeros_like(members), where=complete[:, None])
            if (deals == deals[:, :1]).all():
                deals = deals[:, :1]
            features = [
                np.concatenate([beyond * deal[:, None], squares * deal[:, None] ** 2], axis=1)
                for deal in deals[stratum].T
            ]
        answers = n[complete[stratum]].sum(axis=0)
        return cls(
            features=features,
            parts=parts,
            group=group,
            stratum=stratum,
            standardised=n_strata > 1,
            total=np.where(answers > 0, answers, np.inf),
        )

    def measure(self, labels: Labels, label_group: Ints, norm: Norm | None) -> Floats:
        """Return the statistic under each permutation (B x K), whose codes are places in `label_group`."""
        n_groups, n_values = len(label_group), self.parts[-1].stop
        members = np.bincount(self.group, minlength=n_groups)
        deviations = np.empty((len(labels), n_groups, n_values))
        noise = np.empty((len(labels), n_groups))
        left = self.features[0].sum(axis=0)
        for place, code in enumerate(label_group.tolist()):
            if len(self.features) == 1 and place == n_groups - 1:
                sums = left
            else:
                sums = (labels == place).astype(np.float64) @ self.features[code % len(self.features)]
                left = left - sums
            deviations[:, code], noise[:, code] = self._describe_group(sums, int(members[code]))
        if norm is not None:
            return np.asarray(norm(center(deviations), self.parts))
        pooled = pool_variances(noise * members, members) / members
        weight = (1 / np.maximum(pooled, TINY))[:, :, None]
        deviations -= (weight * deviations).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        return np.asarray(np.sqrt((weight * deviations**2).sum(axis=1)).sum(axis=1))

    def _describe_group(self, sums: Floats, members: int) -> tuple[Floats, Floats]:
        """Return the mean of a group beyond that of all (B x V), and its noise summed over values (B)."""
        n_values, n_parts = self.parts[-1].stop, len(self.parts)
        squares = sums[:, n_values : n_values + n_parts]
        if self.standardised:
            mean = sums[:, :n_values] / repeat_parts(self.total[None], self.parts)
            noise = (squares / self.total**2).sum(axis=1) - (mean**2).sum(axis=1) / members
        else:
            sizes, rest = np.split(sums[:, n_values + n_parts :], [n_parts], axis=1)
            # A group may get no answer to an attribute; it then lies at the mean, without noise.
            size = np.where(sizes > 1e-9 * self.total, sizes, np.inf)
            mean = sums[:, :n_values] / repeat_parts(size, self.parts)
            crossed = sum_parts(mean * rest[:, :n_values], self.parts)
            noise = squares - 2 * crossed + sum_parts(mean**2, self.parts) * rest[:, n_values:]
            noise = (noise / size**2).sum(axis=1)
        return mean, np.maximum(noise, 0.0) * members / max(members - 1, 1)
