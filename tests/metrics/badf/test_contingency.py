"""Tables of identities and phrases against hand arithmetic, scipy, Bergsma's formula and the published tables."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import csv_rows
from scipy import stats

from equivox.core.errors import UsageError
from equivox.metrics.badf.contingency import TableTest, association_scores, association_test, cramers_v

Table = list[list[float]]


def measure(table: Table, n_resamples: int = 10_000) -> TableTest:
    return association_test(table, n_resamples=n_resamples, rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("table", "chi2", "dof", "p_exact", "method"),
    [
        # |20 · 20 - 10 · 10| = 300; (300 - 30)² · 60 / 30⁴ with Yates' correction.
        ([[20, 10], [10, 20]], 5.4, 1, float(stats.chi2.sf(5.4, 1)), "chi2"),
        # 15 expected everywhere: 4 · 25/15, without correction.
        ([[10, 20], [15, 15], [20, 10]], 20 / 3, 2, float(stats.chi2.sf(20 / 3, 2)), "chi2"),
        # Tea tasting, 3 of 4 right: 34 of 70.
        ([[3, 1], [1, 3]], 0.5, 1, 34 / 70, "Fisher"),
    ],
)
def test_tables_by_hand(table: Table, chi2: float, dof: int, p_exact: float, method: str) -> None:
    found = measure(table)
    assert (found.chi2, found.p, found.p_exact) == pytest.approx((chi2, stats.chi2.sf(chi2, dof), p_exact))
    assert (found.dof, found.method, found.sparse) == (dof, method, method != "chi2")


def test_a_sparse_larger_table_has_the_p_of_all_tables() -> None:
    # Three marks in three groups of 4: all ways to put them into 12 cells.
    found, null = measure([[3, 1], [0, 4], [0, 4]], 20_000), []
    for marks in itertools.combinations(range(12), 3):
        have = np.bincount(np.array(marks) // 4, minlength=3)
        null.append(((have - 1) ** 2 * (1 + 1 / 3)).sum())
    exact = np.mean(np.array(null) >= found.chi2 - 1e-9)
    assert found.method == "permutation" and found.p_exact == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("table", [[[0, 5], [0, 7]], [[5, 0], [7, 0]], [[0, 0], [3, 4]]])
def test_a_phrase_of_all_or_no_stories_has_no_test(table: Table) -> None:
    found = measure(table)
    assert found.undefined is not None and all(map(math.isnan, (found.p, found.p_exact, found.v, cramers_v(table))))


@pytest.mark.parametrize("transposed", [False, True])
def test_v_is_bergsmas(transposed: bool) -> None:
    table = np.array([[9, 2, 1], [3, 8, 2], [1, 2, 7], [4, 4, 3]])
    n = table.sum()
    phi2 = stats.chi2_contingency(table, correction=False).statistic / n - 3 * 2 / (n - 1)
    smaller = min(4 - 3**2 / (n - 1), 3 - 2**2 / (n - 1)) - 1
    assert cramers_v(table.T if transposed else table) == pytest.approx(math.sqrt(phi2 / smaller))
    assert cramers_v([[10, 0], [0, 10]]) == pytest.approx(1) and cramers_v([[10, 10], [10, 10]]) == 0
    assert math.isnan(cramers_v([[1, 0], [0, 1]]))  # of two answers k̃ - 1 = 0


def test_scores_by_hand() -> None:
    assert association_scores([57, 37], [7338, 7000]) == pytest.approx((20 / 7338, -20 / 7000))
    assert association_scores([11, 8, 7, 5], [56, 67, 61, 50]) == pytest.approx((6 / 56, 3 / 67, 2 / 61, 0))
    assert math.isnan(association_scores([1, 0], [10, 0])[1])
    for found, lengths, argument in (
        ([1], [2], "with_phrase"),
        ([1, -1], [2, 2], "with_phrase"),
        ([1, 1], [2], "lengths"),
    ):
        with pytest.raises(UsageError, match=f"`{argument}`"):
            association_scores(found, lengths)


@pytest.mark.parametrize(
    "table", [[[1, 2]], [[1], [2]], [[1.5, 2], [3, 4]], [[-1, 2], [3, 4]], [[math.nan, 1], [1, 1]]]
)
def test_tables_of_other_forms_are_refused(table: Table) -> None:
    with pytest.raises(UsageError, match="`table`"):
        measure(table)


@pytest.mark.paper
def test_many_identities_have_the_published_p(reference_data: Path) -> None:
    rows = csv_rows(reference_data / "badf/fixture_multi_counts_60.csv")
    assert len(rows) >= 60
    for row in rows:
        counts, n = json.loads(row["doc_freq_by_identity"]), int(row["n_docs"])
        assert measure([[count, n - count] for count in counts], 1).p == pytest.approx(float(row["p"]), abs=1e-9)
