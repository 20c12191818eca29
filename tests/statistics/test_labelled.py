"""Distances corrected by people's labels: hand arithmetic, an annotator who is right, and one who is wrong."""

import math
from typing import Any

import numpy as np
import pytest
from made_answers import draw_answers

from equivox.core.notes import NoteCode
from equivox.statistics import CorrectedShift, compare_groups, correct_groups, ntvd


def correct(read: Any, groups: Any, rows: Any, labels: Any, **options: Any) -> CorrectedShift:
    usual: dict[str, Any] = {"clusters": None, "min_count": 1, "min_labels": 2, "rng": np.random.default_rng(1)}
    return correct_groups(read, groups, labelled_rows=rows, labels=labels, **usual | options)


READ, GROUPS = [*"xxxyyy", *"xxyyyy"], ["a"] * 6 + ["b"] * 6
SHARES = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]


@pytest.mark.parametrize(("labels", "weights", "by_group", "wrong"), [
    # a reads x x y y where people say x y y y: λ = ½, x has ½ · ½ + ¼ - ½ · ½. b has no error: λ = 1.
    ("xyyyxy", None, [[1 / 4, 3 / 4], [1 / 3, 2 / 3]], (1, 0)), ("xxyyxy", None, [[0.5, 0.5], [1 / 3, 2 / 3]], (0, 0)),
    # Labels that contradict the annotator: λ = 0, and labels alone count, by 3, 1, 1 and 1.
    ("yyyxyy", [3, 1, 1, 1, 3, 1], [[1 / 6, 5 / 6], [0, 1]], (3, 1)),
])  # fmt: skip
def test_corrected_shares_by_hand(labels: str, weights: Any, by_group: Any, wrong: tuple[int, ...]) -> None:
    found = correct(READ, GROUPS, [0, 1, 3, 4, 6, 8], [*labels], weights=weights)
    assert found.by_group == pytest.approx(np.array(by_group)) and (found.labels, found.wrong) == ((4, 2), wrong)


def test_several_values_by_hand() -> None:
    # b: x 2, y 1, z 1 of 4 values; the last label of a has no z where the annotator has z: x 2, y 1.
    answers = [["x", "y"], ["x"], [], ["z"], ["x", "y"], ["x"], [], ["z"]] * 5
    labels = [["x", "y"], ["x"], [], [], ["x", "y"], ["x"], [], ["z"]]
    found = correct(answers, (["a"] * 4 + ["b"] * 4) * 5, range(8), labels)
    assert found.wrong == (1, 0) and found.by_group == pytest.approx(np.array([[8, 4, 0], [6, 3, 3]]) / 12)


def test_an_annotator_who_is_right_has_the_plain_shares() -> None:
    values, group, unit = draw_answers(SHARES, (10, 10), 20, (0.02, 0.02), np.random.default_rng(2))
    found, few = (correct(values, group, np.arange(0, 400, by), values[::by], clusters=unit) for by in (2, 16))
    plain = compare_groups(values, group, clusters=unit, min_count=1, n_resamples=99, rng=np.random.default_rng(1))
    assert found.by_group == pytest.approx(plain.by_group) and found.wrong == (0, 0)
    assert found.estimate == pytest.approx(plain.estimate, abs=2)
    # Errors that were not seen widen the interval.
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=6)
    assert few.high - few.low > found.high - found.low


def test_an_annotator_who_is_wrong_in_a_group_is_corrected() -> None:
    # People say the same of both groups; of the second the annotator turns every other 0 into 1.
    rng, held, estimate = np.random.default_rng(3), 0, 0.0
    for _ in range(20):
        people, group, unit = draw_answers([SHARES[0]] * 2, (10, 10), 30, (0.02, 0.02), rng)
        read = np.where((group == 1) & (people == 0) & (rng.random(600) < 0.5), 1, people)
        rows = rng.choice(600, 150, replace=False)
        found = correct(read, group, rows, people[rows], clusters=unit, rng=rng)
        estimate, held = estimate + found.estimate / 20, held + (found.low == 0)
        plain = ntvd([np.bincount(read[group == code], minlength=3) for code in range(2)])
        assert plain > 10 and found.wrong[0] == 0 < found.wrong[1]
    assert held >= 18 and estimate < 8


def test_blocks_in_unequal_numbers_are_given_one_mix() -> None:
    # Women say x, men y; group a has three women and one man, group b one and three.
    gender, group = np.repeat([*"wwwm", *"wmmm"], 6), [*"a" * 24, *"b" * 24]
    read, usual = np.where(gender == "w", "x", "y"), {"clusters": np.repeat(range(8), 6)}
    plain, equal = (
        correct(read, group, range(0, 48, 3), read[::3], **usual, blocks=blocks) for blocks in (None, gender)
    )
    assert plain.by_group == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]])) and plain.estimate > 10
    assert equal.by_group == pytest.approx(np.full((2, 2), 0.5)) and equal.estimate < 10


@pytest.mark.parametrize(("rows", "labels", "options", "code"), [
    ([0, 1, 6], "xxy", {}, NoteCode.FEW_LABELS), ([0, 1, 6, 7], "xxyy", {"min_labels": 3}, NoteCode.FEW_LABELS),
    ([0, 3, 6, 8], "xyxy", {"min_count": 10}, NoteCode.RARE_ONLY), ([0, 3, 6, 8], "xxxx", {}, NoteCode.ONE_VALUE),
    ([0, 3, 6, 8], [[], [], "x", "y"], {}, NoteCode.EMPTY_GROUP),
])  # fmt: skip
def test_no_correction_has_a_reason(rows: Any, labels: Any, options: dict[str, Any], code: NoteCode) -> None:
    found, alone = correct(READ, GROUPS, rows, [*labels], **options), correct(READ, ["a"] * 12, rows, [*labels])
    assert found.undefined is not None and found.undefined.code == code
    assert alone.undefined is not None and alone.undefined.code == NoteCode.ONE_GROUP
    assert all(map(math.isnan, (found.estimate, found.low, found.high)))
