"""Slopes over doses and the sides of answers: by hand, against least squares, and on simulated nulls and effects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import RequestError
from equivox.statistics import DoseSlope, EncodedLabels, EncodedValues, dose_slope, group_side

DOSES = (-4.0, -2.0, 0.0, 2.0, 4.0)


def slope(values: object, doses: object, clusters: object, items: object, n_resamples: int = 999) -> DoseSlope:
    return dose_slope(
        values, doses, clusters=clusters, items=items, n_resamples=n_resamples, rng=np.random.default_rng(1)  # type: ignore[arg-type]
    )  # fmt: skip


def test_by_hand() -> None:
    # Speaker a: clip a1 rises by 1 a semitone, clip a2 (ten higher, two doses) by 2; both have their own level.
    # Least squares within clips: a1 has sum of squares 8 and products 8, a2 has 8 and 16: slope 24 / 16 = 1.5.
    # Speaker b falls by 1. The mean is 0.25, and with 2 speakers all 4 patterns have |mean| 0.25 or 1.25: p = 1.
    found = slope(
        [0, 2, 4, 10, 18, 5, 1], [-2, 0, 2, -2, 2, -2, 2], list("aaaaabb"), ["1", "1", "1", "2", "2", "3", "3"]
    )
    assert found.slope == pytest.approx(0.25) and found.p == 1 and found.exact and found.p_least == 0.5
    interval = stats.ttest_1samp([1.5, -1], 0).confidence_interval()
    assert (found.ci_low, found.ci_high) == pytest.approx((interval.low, interval.high))
    assert (found.n, found.n_missing, found.n_clusters, found.n_left_out) == (7, 0, 2, 0)
    # Clip a1 alone has a number at every dose.
    assert found.means == {-2.0: 0.0, 0.0: 2.0, 2.0: 4.0}


def test_a_speakers_slope_is_that_of_a_regression_with_a_level_for_each_clip() -> None:
    rng = np.random.default_rng(2)
    doses, clip = np.tile(DOSES, 6), np.repeat(np.arange(6), 5)
    values = rng.normal(size=30) + 3 * clip + 0.7 * doses
    kept = rng.random(30) < 0.7
    design = np.column_stack([doses, *(clip == one for one in range(6))]).astype(float)
    expected = np.linalg.lstsq(design[kept], values[kept], rcond=None)[0][0]
    found = slope(np.where(kept, values, np.nan), doses, ["a"] * 30, clip)
    assert found.slope == pytest.approx(expected) and found.n_missing == (~kept).sum()
    # Speakers who read the same clips have levels of their own in them, as if each had read clips of his own.
    speakers = np.repeat([0, 1], 15)
    shared = slope(values, doses, speakers, clip % 3)
    assert shared.slope == pytest.approx(slope(values, doses, speakers, clip).slope)
    assert shared.means == pytest.approx(slope(values, doses, speakers, clip).means)


def test_clips_that_were_answered_at_some_doses_only_are_no_effect() -> None:
    # Clip 1 is at 0, clip 2 at 10; clip 2 is answered at high doses alone: means by dose rise, and no clip does.
    values = [0.0, 0.0, 0.0, np.nan, 10.0, 10.0]
    found = slope(values * 2, [-2, 0, 2] * 4, list("aaaaaabbbbbb"), np.repeat([1, 2, 3, 4], 3))
    assert found.slope == 0 and found.p == 1 and math.isnan(found.ci_low) and found.undefined is None


def test_what_is_missing_is_counted_and_never_a_zero() -> None:
    found = slope([1, None, None, 2, 4, 6], [-1, 0, 1] * 2, list("aaabbb"), list("112333"))
    assert (found.n_missing, found.n_left_out, found.n_clusters, found.n) == (2, 1, 1, 3)
    assert found.slope == 2
    nothing = slope([None, 1, None, None, None, 2], [-1, 0, 1] * 2, list("aaabbb"), list("111222"))
    assert nothing.undefined == "nothing was answered at two doses" and math.isnan(nothing.slope)
    assert (nothing.n_left_out, nothing.n_missing) == (2, 4)
    same = slope([5, 5, 5, 5], [-1, 1, -1, 1], list("aabb"), list("1122"))
    assert "every answer is the same" in str(same.undefined) and math.isnan(same.p)
    with pytest.raises(RequestError, match="`doses` lacks a number"):
        slope([1, 2], [0, None], ["a", "a"], ["1", "1"])
    with pytest.raises(RequestError, match="`values`"):
        slope([], [], [], [])
    with pytest.raises(RequestError, match="`doses` has 1 entries, `values` has 2"):
        slope([1, 2], [0], ["a", "a"], ["1", "1"])


@given(st.floats(-3, 3), st.floats(-100, 100), st.floats(0.1, 10))
def test_it_is_the_slope_whatever_the_level_and_unit(rise: float, level: float, unit: float) -> None:
    rng = np.random.default_rng(3)
    noise, doses = rng.normal(size=60), np.tile(DOSES, 12)
    clusters, items = np.repeat(np.arange(6), 10), np.repeat(np.arange(12), 5)
    plain = slope(noise, doses, clusters, items, 99)
    moved = slope(unit * noise + level + rise * doses, doses, clusters, items, 99)
    assert moved.slope == pytest.approx(unit * plain.slope + rise, abs=1e-9)
    order = rng.permutation(60)
    assert slope(noise[order], doses[order], clusters[order], items[order], 99).slope == pytest.approx(plain.slope)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_the_numbers_changes_no_p(unit: float) -> None:
    values = np.random.default_rng(3).normal(size=60) + np.tile(DOSES, 12)
    doses, clusters, items = np.tile(DOSES, 12), np.repeat(np.arange(6), 10), np.repeat(np.arange(12), 5)
    assert slope(unit * values, doses, clusters, items).p == slope(values, doses, clusters, items).p < 0.05


@pytest.mark.parametrize("unit", [1e-9, 1e14])
def test_the_unit_of_the_doses_changes_no_p(unit: float) -> None:
    values = 50 + np.random.default_rng(3).normal(size=60) + np.tile(DOSES, 12)
    doses, clusters, items = np.tile(DOSES, 12), np.repeat(np.arange(6), 10), np.repeat(np.arange(12), 5)
    plain, moved = slope(values, doses, clusters, items), slope(values, unit * doses, clusters, items)
    assert moved.p == plain.p < 0.05
    assert (unit * moved.slope, unit * moved.ci_low) == pytest.approx((plain.slope, plain.ci_low))


def test_what_rounding_leaves_of_one_dose_or_one_number_is_no_slope() -> None:
    # Three times 0.1 have a mean that is not 0.1 in binary; neither such doses nor such numbers differ.
    alike = slope([1, 5, 3, 2, 2, 4], [0.1] * 6, list("aaabbb"), list("aaabbb"))
    assert alike.undefined == "nothing was answered at two doses"
    level = slope([0.1, 0.1, 0.1, 0.7, 0.7, 0.7], [-1.1, 0.3, 1.2] * 2, list("aaabbb"), list("aaabbb"))
    assert (level.slope, level.p) == (0.0, 1.0)
    assert math.isnan(level.ci_low)


def simulated(rng: np.random.Generator, effect: float, n_speakers: int = 12, spread: float = 0.0) -> DoseSlope:
    """Answers of 0 or 100 to 4 clips at 5 doses; speakers differ in level, and in their slope by `spread`."""
    clusters = np.repeat(np.arange(n_speakers), 20)
    doses, items = np.tile(DOSES, n_speakers * 4), np.repeat(np.arange(n_speakers * 4), 5)
    level = rng.normal(0, 15, n_speakers)[clusters] + rng.normal(0, 10, n_speakers * 4)[items]
    own = effect + spread * rng.standard_normal(n_speakers)[clusters]
    answers = 100.0 * (100 * rng.random(len(doses)) < 50 + level + own * doses)
    return dose_slope(answers, doses, clusters=clusters, items=items, n_resamples=999, rng=rng)


def test_level_power_and_coverage() -> None:
    rng = np.random.default_rng(4)
    null = [simulated(rng, 0.0) for _ in range(600)]
    assert 0.03 <= np.mean([found.p <= 0.05 for found in null]) <= 0.07
    assert np.mean([found.ci_low <= 0 <= found.ci_high for found in null]) >= 0.93
    # The standard error is about 1.05 with 12 speakers: 4 points a semitone is found nearly always.
    planted = [simulated(rng, 4.0, spread=0.5) for _ in range(200)]
    assert np.mean([found.p <= 0.05 for found in planted]) >= 0.9
    assert 0.91 <= np.mean([found.ci_low <= 4 <= found.ci_high for found in planted]) <= 0.985
    assert np.mean([found.slope for found in planted]) == pytest.approx(4, abs=0.25)


def values_of(*texts: str) -> EncodedValues:
    return EncodedValues.of([text.split() for text in texts])


def test_sides_by_hand() -> None:
    known = values_of("x", "x", "y", "y", "y", "x")
    groups, clusters = EncodedLabels.of(list("ffffmm")), EncodedLabels.of(["a", "a", "b", "b", "c", "c"])

    def side(text: str, cluster: str, group: str = "f") -> float:
        (found,) = group_side(
            values_of(text), EncodedLabels.of([cluster]), known=known, known_groups=groups, known_clusters=clusters,
            group=group,
        )  # fmt: skip
        return float(found)

    # Values x, y, and one for all that are unseen; each group counts as if it had been given all three once more.
    # A speaker d who is not known: women x 2 of 4, men x 1 of 2: (2+1)/(4+3) = 3/7 and (1+1)/(2+3) = 2/5.
    assert side("x", "d") == pytest.approx(100 * (3 / 7) / (3 / 7 + 2 / 5))
    # Speaker a (x, x) is left out: women then have x 0 of 2: 1/5 against 2/5.
    assert side("x", "a") == pytest.approx(100 * (1 / 5) / (3 / 5)) and side("x", "a", "m") == pytest.approx(200 / 3)
    # Without speaker b (y, y) women have y 0 of 2, and men 1 of 2.
    assert side("y", "b") == pytest.approx(100 * (1 / 5) / (1 / 5 + 2 / 5))
    # Mean over an answer's values; a value that nobody has: 1/7 against 1/5.
    assert side("x y", "a") == pytest.approx((side("x", "a") + side("y", "a")) / 2)
    assert side("z", "d") == pytest.approx(100 * (1 / 7) / (1 / 7 + 1 / 5))
    # Without c there is no man: nothing tells the sides. An answer without a value has none.
    assert math.isnan(side("x", "c")) and math.isnan(side("", "d"))
    # An answer of nobody that is known is of no speaker who is left out.
    (nobody,) = group_side(
        values_of("x"), EncodedLabels(codes=np.array([-1]), names=()), known=known, known_groups=groups,
        known_clusters=clusters, group="f",
    )  # fmt: skip
    assert nobody == side("x", "d")
    # One answer of each group is enough: x is 2 of 1 + 3 for women, 1 of 1 + 3 for men.
    (single,) = group_side(
        values_of("x"), EncodedLabels.of(["d"]), known=values_of("x", "y"), known_groups=EncodedLabels.of(list("fm")),
        known_clusters=EncodedLabels.of(list("ab")), group="f",
    )  # fmt: skip
    assert single == pytest.approx(200 / 3)
    # With more values than speakers, one that nobody has is 1/7 in both groups.
    (unseen,) = group_side(
        values_of("v"), EncodedLabels.of(["d"]), known=values_of(*"wxyz"), known_groups=EncodedLabels.of(list("ffmm")),
        known_clusters=EncodedLabels.of(list("aabb")), group="f",
    )  # fmt: skip
    assert unseen == pytest.approx(50)
    with pytest.raises(RequestError, match="`group` is 'q'"):
        side("x", "d", "q")


def test_of_three_groups_the_others_count_alike() -> None:
    known = values_of(*["x"] * 30, *["y"] * 30, *["z"] * 30, *["x"] * 30)
    groups = EncodedLabels.of([*"a" * 30, *"b" * 30, *"c" * 60])
    clusters = EncodedLabels.of([str(place) for place in range(120)])
    found = group_side(
        values_of("x", "y"), EncodedLabels.of(["new", "new"]), known=known, known_groups=groups,
        known_clusters=clusters, group="a",
    )  # fmt: skip
    # x: a 31/34, b 1/34, c 31/64; y: a 1/34, b 31/34, c 1/64.
    expected = [31 / 34 / (31 / 34 + (1 / 34 + 31 / 64) / 2), 1 / 34 / (1 / 34 + (31 / 34 + 1 / 64) / 2)]
    assert found.tolist() == pytest.approx([100 * one for one in expected])


def test_what_failed_at_one_dose_moves_no_mean() -> None:
    # Four speakers about 100 and eight about 0, who do not move. The four have no answer at +4.
    rng = np.random.default_rng(1)
    rows = [
        (np.nan if speaker < 4 and dose == 4 else 100.0 * (speaker < 4) + rng.normal(), dose, speaker, f"{speaker}/{n}")
        for speaker in range(12) for n in range(3) for dose in (-4, 0, 4)
    ]  # fmt: skip
    values, doses, speakers, items = zip(*rows, strict=True)
    found = dose_slope(values, doses, clusters=speakers, items=items, rng=rng)
    assert found.n_clusters == 12 and abs(found.slope) < 0.2
    # The means are of the eight that answered at every dose.
    assert list(found.means.values()) == pytest.approx([0, 0, 0], abs=1)
    none = slope([1, 2, np.nan, 3, np.nan, 5], [-1, 0, 1] * 2, list("aaabbb"), list("111222"))
    assert none.slope == 1 and none.means == {}
