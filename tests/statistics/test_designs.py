"""Designs by hand: who is compared with whom, and with which weights."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.core.notes import NoteCode
from equivox.statistics.design import Design, build_design, standardise_mix
from equivox.statistics.groups import compare_means

MIXED = "wwxxyzv"


def build(groups: str, clusters: str | None, strata: str | None = None, blocks: str | None = None) -> Design:
    """Return the design of columns that are given as letters."""
    columns = [None if column is None else [*column] for column in (clusters, strata, blocks)]
    return build_design([*groups], *columns)


@pytest.mark.parametrize(("groups", "clusters", "kind"), [
    ("aabb", None, "nested"), ("aabb", "wxyz", "nested"), ("aabb", "wwyy", "nested"),
    ("abab", "wwxx", "crossed"), ("abcab", "wwwxx", "crossed"),
    ("ababa", "wwxxy", "crossed"), ("ababaa", "wwxxyz", "crossed"),  # no more units lack a group than are whole
    ("ababaaa", MIXED, "mixed"), ("abc", "wwx", "mixed"),  # no unit is in all three groups
])  # fmt: skip
def test_units_are_nested_crossed_or_mixed(groups: str, clusters: str | None, kind: str) -> None:
    design = build(groups, clusters)
    assert (design.crossed, design.mixed) == (kind == "crossed", kind == "mixed")


@pytest.mark.parametrize(("columns", "compared", "units"), [
    (("aabb", "wxyz"), [0, 1, 2, 3], 4), (("ababa", "wwxxy"), [0, 1, 2, 3], 2), (("ababaaa", MIXED), [*range(7)], 5),
    (("aab", "wxy", "pqp"), [0, 2], 2), (("aab", "wxy", None, "pqp"), [0, 2], 2),
    (("aabb", "wxyz", "ppqq", "pqpq"), [], 0),  # four strata of a unit
    (("aabb", "wxyz", "pppp", "pqpq"), [0, 1, 2, 3], 4), (("abab", "wwxx", None, "pqpq"), [0, 1, 2, 3], 2),
    (("aabb", "wwyy", "pqpp"), [0, 1, 2, 3], 2),  # a unit spans strata: they hold nothing
])  # fmt: skip
def test_rows_are_compared_where_their_stratum_has_all_groups(columns: Any, compared: list[int], units: int) -> None:
    design, rows, n = build(*columns), np.arange(len(columns[0])), len(set(columns[1]))
    found = design.find_compared(rows)
    assert found.tolist() == compared and design.count_units(found) == units
    left_out = [(note.code, note.values["n"], note.values["of"]) for note in design.describe_left_out(rows)]
    assert left_out == ([(NoteCode.UNITS_LEFT_OUT, n - units, n)] if units < n else [])


@pytest.mark.parametrize("clusters", ["wwvvwwvv", "wwvvyyzz"], ids=["crossed", "nested"])
@pytest.mark.parametrize(("strata", "share"), [("xxxyxyyy", 0.5), ("xyxyxyxy", None)])
def test_strata_that_units_span_in_unequal_numbers_have_a_note(clusters: str, strata: str, share: float | None) -> None:
    # 3 of 4 rows of a are in x, and 1 of 4 rows of b.
    notes = [(note.code, note.values["share"]) for note in build("aaaabbbb", clusters, strata).notes]
    assert notes == ([] if share is None else [(NoteCode.STRATA_UNEQUAL, share)])


def test_weights_by_hand() -> None:
    # Group a has 3 rows in x and 1 in y, b 1 and 3; each stratum has half of all rows. Rows of a in x count 4/2/3.
    design = build("aaaabbbb", None, "xxxyxyyy")
    assert design.compute_row_weights(np.arange(8)) == pytest.approx(np.array([2, 2, 2, 6, 6, 2, 2, 2]) / 3)
    # Without the row of b in x that stratum counts for no group.
    assert design.compute_row_weights(np.array([0, 1, 2, 3, 5, 6, 7])) == pytest.approx([0, 0, 0, 1, 1, 1, 1])
    # First attribute: strata of 4 and 4; a has 2 and 1 in them, b 2 and 3. Second: only p has both groups.
    sizes = np.array([[2.0, 1.0], [2.0, 1.0], [1.0, 0.0], [3.0, 4.0]])
    expected = [[0.5 * 3 / 2, 1], [0.5 * 5 / 2, 1], [0.5 * 3 / 1, 0], [0.5 * 5 / 3, 0]]
    assert standardise_mix(sizes, build("abab", "wxyz", "ppqq")) == pytest.approx(np.array(expected))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("pqr"), st.integers(-9, 9)), min_size=4, max_size=30))
@settings(max_examples=40)
def test_means_are_directly_standardised(rows: list[tuple[str, str, int]]) -> None:
    groups, strata, values = zip(*rows, strict=True)
    rng = np.random.default_rng(1)
    found = compare_means([*map(float, values)], groups, clusters=None, strata=strata, n_resamples=5, rng=rng)
    if found.undefined is not None:
        return
    both = [s for s in "pqr" if {("a", s), ("b", s)} <= {row[:2] for row in rows}]
    n = {s: strata.count(s) for s in both}
    for group, mean in zip("ab", found.means, strict=True):
        means = {s: np.mean([value for *of, value in rows if of == [group, s]]) for s in both}
        assert mean == pytest.approx(sum(n[s] * means[s] for s in both) / sum(n.values()), abs=1e-9)
