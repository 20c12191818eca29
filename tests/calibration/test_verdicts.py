"""Verdicts, from numbers made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from equivox.calibration.verdicts import (
    CHANCE,
    PLACES,
    Estimate,
    Finding,
    Line,
    agree,
    arrived,
    bounded,
    drawn,
    heard,
    paired_z,
    read,
    scored,
    taught,
)
from equivox.report.calibration_tables import calibration_table

OWN = Estimate(value=58.4, low=55.0, high=61.0, p=0.0001)


def line(*findings: Finding, measured: Estimate = OWN) -> Line:
    return Line(shift=60, condition="audio", planted=60, own=OWN, measured=measured, findings=findings)


def test_the_paired_z_is_the_t_statistic_of_scipy() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=50), rng.normal(0.3, size=50)
    assert paired_z(list(one), list(other)) == pytest.approx(stats.ttest_rel(one, other).statistic)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [([1.0, 2.0], [1.0, 2.0], 0.0), ([2.0, 3.0], [1.0, 2.0], math.inf), ([0.0, 1.0], [1.0, 2.0], -math.inf)],
)
def test_pairs_that_all_differ_alike(one: Sequence[float], other: Sequence[float], expected: float) -> None:
    assert paired_z(one, other) == expected


def test_one_pair_tells_nothing() -> None:
    assert math.isnan(paired_z([1.0], [0.0]))


def test_prompts_of_other_lengths_did_not_arrive() -> None:
    assert arrived(asked=9, failed={}, compared=9, other={}).passed
    found = arrived(asked=9, failed={}, compared=9, other={"30 tokens of audio where 61 are expected": 9})
    assert found.passed is False
    assert "9 of 9 prompts" in found.says
    assert "30 tokens of audio where 61" in found.says
    assert arrived(asked=9, failed={"out of memory": 1}, compared=8, other={}).passed is False
    assert arrived(asked=9, failed={}, compared=0, other={}).passed is None


def test_answers_that_speak_for_another_recording_were_not_heard() -> None:
    # 0.5 nats an answer are to be heard, with a deviation of 1 over 100 answers: a standard error of 0.1.
    noise = np.random.default_rng(2).permutation(np.linspace(-1.7, 1.7, 100))
    direct = [0.5] * 100
    assert heard(list(0.5 + noise), direct).passed
    silence = heard(list(0.0 + noise), direct)
    assert silence.passed is False
    assert "0 % of what" in silence.says
    assert heard(list(-0.5 + noise), direct).passed is False
    # More than its own is no fault of hearing: a greedy engine exaggerates.
    assert heard(list(1.5 + noise), direct).passed
    assert heard(list(noise), [0.0] * 100).passed is None


def test_answers_that_are_too_likely_were_not_drawn_at_temperature_one() -> None:
    noise = np.random.default_rng(3).permutation(np.linspace(-2, 2, 100))
    direct = [-8.0] * 100
    assert drawn(list(-8.0 + noise), direct).passed
    greedy = drawn(list(-5.0 + noise), direct)
    assert greedy.passed is False
    assert "3.00 nats likelier" in greedy.says
    assert "temperature 1" in greedy.says
    other = drawn(list(-20.0 + noise), direct)
    assert "12.00 nats less likely" in other.says


def test_an_annotator_is_judged_by_its_worst_group() -> None:
    assert read({"female": (400, 400), "male": (400, 400)}).passed
    found = read({"female": (398, 400), "male": (300, 400)})
    assert found.passed is False
    assert found.says == "of male, 75 % of the values are read right"
    assert read({"female": (11, 12), "male": (12, 12)}).passed
    assert read({}).passed is None


def test_a_measured_score_agrees_with_the_models_own() -> None:
    assert scored(Estimate(value=58.4, low=50.8, high=64.9, p=0.0001), OWN).passed
    assert scored(Estimate(value=40.0, low=33.0, high=47.0, p=0.0001), OWN).passed is False
    assert scored(Estimate(value=math.nan), OWN).passed is False
    # Halves of 4 and 3 that face each other: 5 together, 7.9 for an error of 0.2 % (3.09 deviations in place of 1.96).
    own = Estimate(value=50, low=47, high=60)
    assert agree(Estimate(value=42.2, low=20, high=46.2), own)
    assert not agree(Estimate(value=42.0, low=20, high=46.0), own)
    assert agree(own, Estimate(value=42.2, low=20, high=46.2))
    # Intervals that are points, such as ones clipped at zero.
    assert agree(Estimate(value=0, low=0, high=0), Estimate(value=2, low=2, high=2))
    assert not agree(Estimate(value=0, low=0, high=0), Estimate(value=2.1, low=2.1, high=2.1))
    assert not agree(Estimate(value=1), Estimate(value=9))


@pytest.mark.parametrize("clusters", [6, 24])
def test_scores_of_one_bias_hardly_ever_disagree_and_far_ones_do(clusters: int) -> None:
    """Means of normal clusters, with intervals from their own deviations: at most `CHANCE` of the pairs disagree."""
    rng = np.random.default_rng(4)

    def around(centre: float, n: int) -> Estimate:
        drawn = rng.normal(centre, 5 * math.sqrt(n), n)
        value, error = float(drawn.mean()), float(drawn.std(ddof=1)) / math.sqrt(n)
        return Estimate(value=value, low=value - 1.96 * error, high=value + 1.96 * error, clusters=n)

    pairs = 5_000
    alike = sum(agree(around(20, clusters), around(20, 200)) for _ in range(pairs))
    assert stats.binomtest(pairs - alike, pairs, CHANCE, alternative="greater").pvalue > 0.001
    far = sum(agree(around(20, clusters), around(70, 200)) for _ in range(500))
    assert far < (10 if clusters == 24 else 250)


def test_a_control_finds_no_difference() -> None:
    none = Estimate(value=0.8, low=0.0, high=3.0, p=0.6)
    assert scored(Estimate(value=1.0, low=0.0, high=9.0, p=0.4), none, control=True).passed
    assert scored(Estimate(value=9.0, low=4.0, high=14.0, p=0.0001), none, control=True).passed is False


def test_a_control_finds_no_difference_from_what_is_even() -> None:
    even = Estimate(value=50.5, low=45.0, high=56.0)
    assert scored(Estimate(value=52.0, low=41.0, high=63.0, p=0.7), even, control=True, even=50.0).passed
    # The intervals agree, and yet the test finds a bias.
    found = Estimate(value=64.0, low=52.0, high=70.0, p=0.0001)
    assert scored(found, even, control=True, even=50.0).passed is False
    assert scored(found, even).passed


def test_the_first_place_of_the_chain_is_named() -> None:
    late = Finding("scoring", False, "measured 1")
    early = Finding("hearing", False, "0 % heard")
    fine = Finding("arrival", True, "")
    assert line(fine, late, early).verdict == "fails at hearing: 0 % heard"
    assert line(fine, Finding("scoring", True, "")).verdict == "passes"
    assert line(fine).verdict == "cannot tell"
    assert not line(fine).passed


def test_a_model_that_learnt_too_little_is_told_last() -> None:
    assert PLACES[-1] == "teaching"
    poor = taught(60, Estimate(value=44.0, low=40.0, high=48.0))
    assert poor.passed is False
    assert "--seed" in poor.says
    assert taught(20, Estimate(value=16.0, low=14.0, high=18.0)).passed
    assert taught(20, Estimate(value=math.nan)).passed is None


def test_a_sample_without_the_rare_answers_of_tiny_probability_is_no_fault() -> None:
    """A tenth of the direct answers is at -30 nats, the others lie around -10; the engine drew none of that tenth."""
    around = [-10 + 0.1 * step for step in range(-4, 5)]
    direct = [[*around, -30.0] for _ in range(60)]
    engine = [around[number % 9] for number in range(60)]
    every = [value for own in direct for value in own]
    assert drawn(engine, [fmean(own) for own in direct]).passed is False
    assert drawn(bounded(engine, every), [fmean(bounded(own, every)) for own in direct]).passed
    likeliest = [max(own) for own in direct]  # greedy answers stay a fault
    assert drawn(bounded(likeliest, every), [fmean(bounded(own, every)) for own in direct]).passed is False


def test_a_line_that_passes_says_what_could_not_be_checked() -> None:
    """An endpoint that counts no tokens passed as if all recordings were known to have arrived."""
    unheard = heard([0.0, 0.0], [0.01, 0.0])
    intact = line(arrived(asked=2, failed={}, compared=0, other={}), unheard, Finding("scoring", True, "as it should"))
    found = {"engine": "endpoint", "task": "t", "seed": 0, "lines": [intact.as_dict()]}
    table = calibration_table(found)
    assert intact.passed and table.rows[0][-1] == "passes"
    place = f"planted {intact.shift:g}, {intact.condition}"
    assert table.remarks == [f"— {place}: arrival could not be checked: the engine counts no tokens"]
