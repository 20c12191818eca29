"""Permutations counted by brute force, and p-values against scipy and the noise of groups that are unlike."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from made_answers import draw_answers
from numpy.typing import NDArray
from scipy import stats

from equivox.core.notes import NoteCode
from equivox.statistics import compare_groups, compute_least_p, permutation
from equivox.statistics.design import build_design
from equivox.statistics.distance import compute_range

Floats = NDArray[np.float64]
SIZES = [[[2, 2]], [[1, 1], [1, 1], [2, 1]], [[1, 2], [1, 2]], [[1, 1, 1], [2, 1, 0]], [[3, 0]], [[2, 1, 1]]]


@pytest.mark.parametrize("sizes", SIZES)
def test_permutations_are_all_listed_and_drawn_equally_often(sizes: list[list[int]]) -> None:
    strata = [np.repeat(range(len(row)), row).tolist() for row in sizes]
    each = itertools.product(*(set(itertools.permutations(row)) for row in strata))
    brute = {tuple(itertools.chain(*whole)) for whole in each}
    every = [tuple(row) for row in permutation.all_labellings(np.array(sizes)).tolist()]
    assert set(every) == brute and len(every) == len(brute) == permutation.count_labellings(np.array(sizes))
    drawn = permutation.random_labellings(np.array(sizes), 2_000, np.random.default_rng(1))
    seen, often = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(row) for row in seen.tolist()} == brute
    assert len(often) == 1 or stats.chisquare(often).pvalue > 0.001


@pytest.mark.parametrize(("sizes", "p", "n"), [
    ([[2, 2]], 2 / 6, 6),  # the groups can be renamed
    ([[2, 4]], 1 / 15, 15),  # groups of two sizes cannot
    ([[2, 2, 2]], 6 / 90, 90), ([[1, 1]] * 5, 2 / 32, 32), ([[1, 1], [1, 2]], 1 / 6, 6),
    ([[1, 1, 1, 1]] * 2, 24 / 576, 576), ([[4, 0]], 1.0, 1),
    ([[12, 12]], 1 / 10_000, 2_704_156),  # drawn; the sample counts among the draws
])  # fmt: skip
def test_the_least_p_by_hand(sizes: list[list[int]], p: float, n: int) -> None:
    found = compute_least_p(np.array(sizes), n_resamples=9_999)
    assert found.p == pytest.approx(p) and found.n_permutations == n
    assert (None if found.too_few is None else found.too_few.code) == (NoteCode.SMALLEST_P if p >= 0.05 else None)


def permute(column: Sequence[float], groups: Sequence[object], blocks: str | None = None, n: int = 9_999) -> float:
    """Return the p of the range of means of single numbers."""
    values, rng = np.array(column, dtype=np.float64)[:, None], np.random.default_rng(1)
    design = build_design(groups, None, blocks=blocks and [*blocks])
    ones = np.ones_like(values)
    return permutation.permute_groups(values, [slice(0, 1)], design, n, rng, sizes=ones, norm=compute_range).p


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (2, 2, 3)])
def test_independent_rows_have_the_p_of_scipy(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(sizes) * 10 + sizes[0])
    samples = [rng.normal(mean, 1, n) for mean, n in enumerate(sizes)]

    def spread(*of: Floats) -> float:
        return float(np.ptp([values.mean() for values in of]))

    theirs = stats.permutation_test(samples, spread, alternative="greater", n_resamples=10_000, vectorized=False)
    assert permute([*np.concatenate(samples)], [*np.repeat(range(len(sizes)), sizes)]) == pytest.approx(theirs.pvalue)


def test_blocks_are_permuted_within_themselves() -> None:
    # Group a has 2 of 4 units in p and 1 of 2 in q: 6 · 2 permutations. Blocks count 4/6 and 2/6.
    column, null = np.array([1.0, 2.0, 4.0, 7.0, 20.0, 29.0]), {}
    for of_p, of_q in itertools.product(itertools.combinations(range(4), 2), (4, 5)):
        rest = [i for i in range(4) if i not in of_p]
        in_p = column[[*of_p]].mean() - column[rest].mean()
        null[*of_p, of_q] = abs(4 / 6 * in_p + 2 / 6 * (column[of_q] - column[9 - of_q]))
    expected = np.mean(np.array([*null.values()]) >= null[0, 3, 4] - 1e-9)
    assert permute([*column], [*"abbaab"], "ppppqq") == pytest.approx(expected)
    assert math.isnan(permute([1.0, 2.0, 3.0, 4.0], [*"aabb"], "ppqq"))


def test_welchs_statistic_by_brute_force() -> None:
    """Five units of two groups with unequal numbers of answers; the statistic as its docstring has it."""
    counts = np.array([[5.0, 1, 0], [2, 2, 2], [0, 3, 1], [0, 1, 6], [1, 0, 3]])
    n, sums = counts.sum(axis=1), counts - counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()

    def measure(of_a: tuple[int, ...]) -> float:
        sets = [*of_a], [i for i in range(5) if i not in of_a]
        k, means = np.array([3, 2]), np.array([sums[mine].sum(axis=0) / n[mine].sum() for mine in sets])
        left = [sums[mine] - n[mine][:, None] * mean for mine, mean in zip(sets, means, strict=True)]
        # The variance between units, from residuals of a ratio of sums; that of all groups has the weight of 4 units.
        squares = np.array([(rest**2).sum() / n[mine].sum() ** 2 for rest, mine in zip(left, sets, strict=True)])
        variance = k**2 / (k - 1) * squares
        weight = k / (((k - 1) * variance + 4 * ((k - 1) * variance).sum() / 3) / (k + 3))
        theta = means - weight @ means / weight.sum()
        return float(np.sqrt((weight[:, None] * theta**2).sum(axis=0)).sum())

    null = np.array([measure(of_a) for of_a in itertools.combinations(range(5), 3)])
    found = permutation.permute_groups(
        counts, [slice(0, 3)], build_design([*"aaabb"], None), 100, np.random.default_rng(1)
    )
    assert found.exact and found.least.n_permutations == 10
    assert found.p == pytest.approx(np.mean(null >= null[0] * (1 - 1e-9)))


def test_few_varied_units_against_many_equal_ones_are_tested_by_their_noise_as_well() -> None:
    rng, parts, rejected, raised = np.random.default_rng(5), [slice(0, 6)], 0, 0
    for _ in range(60):
        values, group, unit = draw_answers(np.full((2, 6), 1 / 6), (6, 30), 20, (0.3, 0.02), rng)
        found = compare_groups(values, group, clusters=unit, min_count=1, n_resamples=499, rng=rng)
        counts = np.zeros((36, 6))
        np.add.at(counts, (unit, values), 1)
        alone = permutation.permute_groups(counts, parts, build_design(group, unit), 499, rng).p
        # Both are of 499 draws, with a standard error of .022 at most.
        assert found.p > alone - 0.08
        raised, rejected = raised + (found.p > alone + 0.08), rejected + (found.p <= 0.05)
    assert raised > 5 and rejected <= stats.binom.ppf(0.99, 60, 0.05)
