"""Distances of groups: hand counts, brute-force permutations, invariances, and small worlds of known distance."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_answers import Column, draw_answers

from equivox.core.notes import Note, NoteCode
from equivox.statistics import Shift, attainable_shift, build_design, compare_attributes, compare_groups, ntvd


def shift(values: Sequence[object] | Column, groups: Sequence[Any] | Column, **options: Any) -> Shift:
    usual: dict[str, Any] = {"clusters": None, "min_count": 1, "n_resamples": 99, "rng": np.random.default_rng(1)}
    return compare_groups(values, groups, **usual | options)


def find_codes(notes: Sequence[Note | str]) -> set[NoteCode]:
    return {note.code for note in notes if isinstance(note, Note)}


def test_shares_and_counts_by_hand() -> None:
    # a: x 2, y 1; b: y 3; z occurs once. Deviations from (1/3, 2/3): half of 1/3 + 1/3, over 1/2.
    values = [["x", "y"], ["x"], None, ["y"], ["y", "y"], ["z"], []]
    found = shift(values, [*"aaabbba"], clusters=[*"stuvwxy"], min_count=2)
    assert (found.groups, found.values) == (("a", "b"), ("x", "y"))
    assert found.by_group == pytest.approx(np.array([[2 / 3, 1 / 3], [0, 1]])) and found.ntvd == pytest.approx(200 / 3)
    assert (found.n_responses, found.n_used, found.n_units) == (7, 4, 4)
    assert found.removed_values == {"z": 1} and found.removed_share == pytest.approx(1 / 7)


@pytest.mark.parametrize(("values", "groups", "options", "code"), [
    ("xyxy", "aaaa", {}, NoteCode.ONE_GROUP), ([None, [], None, math.nan], "aabb", {}, NoteCode.NOTHING_USABLE),
    ("xyxy", "aabb", {"min_count": 3}, NoteCode.RARE_ONLY), ("xxxy", "aabb", {"min_count": 2}, NoteCode.ONE_KEPT),
    ("xxxx", "aabb", {}, NoteCode.ONE_VALUE), ([["x", "y"], ["y", "x"]], "ab", {}, NoteCode.ONE_VALUE),
    (["x", "y", None, None], "aabb", {}, NoteCode.EMPTY_GROUP),
    ("xyxy", "aabb", {"blocks": [*"ppqq"]}, NoteCode.NOTHING_SHARED),
])  # fmt: skip
def test_no_distance_has_a_reason(values: Any, groups: str, options: dict[str, Any], code: NoteCode) -> None:
    found = shift([*values], [*groups], **options)
    assert found.undefined is not None and found.undefined.code == code and found.n_responses == len(groups)
    numbers = (found.ntvd, found.estimate, found.low, found.high, found.p, found.attainable_max, found.p_items)
    assert all(map(math.isnan, numbers))


@pytest.mark.parametrize(("n", "p", "least_estimate"), [(3, 2 / 20, 85), (4, 2 / 70, 85), (20, 1 / 100, 98)])
def test_groups_without_a_common_answer_have_the_least_p(n: int, p: float, least_estimate: float) -> None:
    found = shift([*"xy" * 10 * n], [*"ab" * 10 * n], clusters=np.tile(np.arange(2 * n), 10))
    assert found.p == pytest.approx(p) == pytest.approx(found.least.p)
    assert least_estimate < found.estimate <= 100 == found.attainable_max and (found.low > 0) == (p <= 0.05)
    assert (NoteCode.SMALLEST_P in find_codes(found.evidence["notes"])) == (p > 0.05)


def test_units_in_every_group_are_exchanged_within_units_and_lone_units_have_a_note() -> None:
    # Five units that say x to a and y to b: 2 of 32 exchanges are as far out. One more lacks b.
    found = shift([*"xy" * 5, "x"], [*"ab" * 5, "a"], clusters=[*"ssttuuvvwwq"])
    assert found.p == pytest.approx(2 / 32) and found.n_units == 5
    assert NoteCode.UNITS_LEFT_OUT in find_codes(found.notes)
    alone = shift([*"xyxyxx"], [*"aaaabb"], clusters=[*"sstuvv"])
    assert NoteCode.NO_NOISE in find_codes(alone.notes) and alone.p > 0.3


WORLD = draw_answers([[0.4, 0.3, 0.2, 0.1], [0.2, 0.3, 0.2, 0.3]], (5, 5), 6, (0.05, 0.05), np.random.default_rng(9))
FIELDS = ("ntvd", "estimate", "low", "high", "p", "least", "attainable_max", "noise", "n_used", "n_units", "notes")


@given(st.permutations(range(60)), st.permutations(range(10)))
@settings(max_examples=15)
def test_neither_order_nor_names_change_the_test(rows: list[int], names: list[int]) -> None:
    values, group, unit = WORLD
    plain, moved = (shift(values[order], group[order], clusters=unit[order]) for order in (range(60), rows))
    assert (moved.p, moved.low, moved.high) == (plain.p, plain.low, plain.high)
    renamed = shift(values, [f"g{1 - code}" for code in group], clusters=[f"u{names[code]}" for code in unit])
    assert (renamed.p, renamed.ntvd, renamed.estimate) == pytest.approx((plain.p, plain.ntvd, plain.estimate))
    # The ends of the interval differ by as much as between seeds.
    assert (renamed.low, renamed.high) == pytest.approx((plain.low, plain.high), abs=4)


def test_repeated_answers_are_no_more_evidence() -> None:
    many = [np.repeat(column, 5) for column in WORLD]
    plain, five, apart = shift(*WORLD[:2], clusters=WORLD[2]), shift(*many[:2], clusters=many[2]), shift(*many[:2])
    assert (five.p, five.ntvd) == pytest.approx((plain.p, plain.ntvd))
    assert apart.p < five.p and apart.high - apart.low < five.high - five.low


@pytest.mark.parametrize("nested", [True, False])
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)), min_size=2, max_size=30))
@settings(max_examples=60)
def test_numbers_are_in_range_or_undefined(nested: bool, rows: list[tuple[int, int, int]]) -> None:
    values, drawn, numbers = zip(*rows, strict=True)
    groups = drawn if nested else [code % 2 for code in drawn]
    units = [f"{g}{u}" if nested else u for g, u in zip(groups, numbers, strict=True)]
    if not nested and build_design(groups, units).mixed:
        return
    found = shift(values, groups, clusters=units, n_resamples=39)
    if found.undefined is not None:
        assert math.isnan(found.p)
        return
    most = attainable_shift(len(found.values), len(found.groups))
    assert found.attainable_max == most and 0 <= found.estimate <= most and 0 <= found.ntvd <= most + 1e-9
    assert 0 <= found.low <= found.high <= most + 1e-9 and (found.low == 0) == (found.p > 0.05)
    assert 0 < found.p <= 1 and found.least.p <= found.p + 1e-9 and found.noise >= 0


def test_samples_without_a_difference_are_rejected_at_the_level() -> None:
    rng, rejected, zero = np.random.default_rng(7), 0, 0
    for _ in range(200):
        values, group, unit = draw_answers([[0.5, 0.3, 0.2]] * 4, (3,) * 4, 8, (0.05,) * 4, rng)
        found = shift(values, group, clusters=unit, rng=rng)
        rejected, zero = rejected + (found.p <= 0.05), zero + (found.low == 0)
    assert rejected <= 12 and zero == 200 - rejected


@pytest.mark.parametrize(("moved", "sparse"), [(0.0, True), (0.2, True), (0.4, False)])
def test_the_estimate_is_near_the_truth_and_the_interval_holds_it(moved: float, sparse: bool) -> None:
    rng, truth, found = np.random.default_rng(11), 100 * moved, []
    favoured = np.eye(2, 8) if sparse else np.where(np.arange(8) % 2 == np.arange(2)[:, None], 0.25, 0.0)
    shares = (1 - moved) / 8 + moved * favoured
    assert ntvd(shares) == pytest.approx(truth)
    for _ in range(40):
        values, group, unit = draw_answers(shares, (12, 12), 20, (0.02, 0.02), rng)
        one = shift(values, group, clusters=unit, n_resamples=199, rng=rng)
        found.append((one.estimate, one.ntvd, one.low <= truth + 1e-9 <= one.high, one.p <= 0.05))
    estimate, plain, holds, small = (np.array(column) for column in zip(*found, strict=True))
    assert abs(estimate.mean() - truth) < 4
    assert not sparse or np.abs(estimate - truth).mean() < np.abs(plain - truth).mean()
    assert holds.sum() >= 36 and (small.sum() <= 5 if moved == 0 else small.sum() >= 38)


def test_gender_in_unequal_numbers_is_no_accent() -> None:
    # Women and men differ by 40 points, accents by nothing; an accent has 8 women and 2 men, the other 2 and 8.
    rng, estimate, small = np.random.default_rng(3), 0.0, 0
    woman, man = 0.1 + 0.4 * np.eye(2, 6)
    gender = np.repeat([0, 1, 0, 1], [8, 2, 2, 8])
    for _ in range(20):
        values, _, unit = draw_answers([woman, man, woman, man], (8, 2, 2, 8), 20, (0.02,) * 4, rng)
        found = shift(values, (unit >= 10).astype(int), clusters=unit, blocks=gender[unit], rng=rng)
        estimate, small = estimate + found.estimate / 20, small + (found.p <= 0.05)
        assert found.ntvd > 10
    assert estimate < 5 and small <= 3


def test_the_mean_of_attributes_leaves_out_undefined_ones() -> None:
    values, group, unit = WORLD
    columns: dict[str, Any] = {"x": values, "y": np.where(np.arange(60) % 3 == 0, "p", "q"), "none": ["same"] * 60}

    def mean(*names: str) -> Shift:
        given = {name: columns[name[0] if name != "none" else name] for name in names}
        rng = np.random.default_rng(1)
        return compare_attributes(given, group, clusters=unit, min_count=1, n_resamples=99, rng=rng)

    both, only, twice, nothing = mean("x", "y", "none"), mean("x", "none"), mean("x", "x2"), mean("none")
    each = [both.attributes[name] for name in both.defined]
    assert both.defined == ("x", "y") and both.ntvd == pytest.approx(np.mean([one.ntvd for one in each]))
    assert both.attainable_max == pytest.approx(np.mean([one.attainable_max for one in each]))
    for found, code in ((both.attributes["none"], NoteCode.ONE_VALUE), (nothing, NoteCode.NO_ATTRIBUTE)):
        assert found.undefined is not None and found.undefined.code == code and math.isnan(found.p)
    alone = shift(values, group, clusters=unit)
    assert [getattr(only, field) for field in FIELDS] == [getattr(alone, field) for field in FIELDS]
    assert twice.p == pytest.approx(alone.p, abs=0.1) and twice.ntvd == pytest.approx(alone.ntvd)


def test_sides_that_cancel_show_within_items_alone() -> None:
    # To item p group a says x and b y, to item q the reverse; each unit answers each item four times.
    rows = [(value, g, f"{g}{u}", item) for g in "ab" for u in range(5) for item in "pq"
            for value in 4 * ("x" if (g == "a") == (item == "p") else "y")]  # fmt: skip
    values, groups, units, items = map(list, zip(*rows, strict=True))
    found = shift(values, groups, clusters=units, items=items, n_resamples=999)
    assert found.p_items == pytest.approx(2 / 252) and found.p > 0.5
    assert NoteCode.WITHIN_ITEMS in find_codes(found.evidence["notes"])
    for nothing in (None, range(80)):  # no items; an answer to each item
        assert math.isnan(shift(values, groups, clusters=units, items=nothing).p_items)
