"""Trends over the doses of a voice, on made rows: by hand, and what is missing, refused, constant or has no side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equivox.compare.doses import REFUSED, dose_trends
from equivox.compare.pairs import Asked, OpenedRun
from equivox.compare.runs import ComparedRun
from equivox.core.attributes import Attribute, Number
from equivox.core.samples import Row, Samples
from equivox.core.segments import AnnotationScheme
from equivox.core.task import Task
from equivox.core.variants import SEMITONES, vary
from equivox.metrics.numbers import METRIC as NUMBERS
from equivox.report.doses import trend_tables, trends_in_words
from equivox.tasks.registry import builtin_tasks

ADVISORY = builtin_tasks()["vibe_gender:advisory"]
Answer = str | float | None
"""A value, None for a request that failed, or "refused"."""


def opened(
    task: Task, answer: Callable[[int, float | None], Answer], doses: Sequence[float] = SEMITONES, *, plain: bool = True
) -> OpenedRun:
    """A run of 12 speakers, the first six of them women, and three recordings each; `answer(speaker, dose)`."""
    asked: dict[str, Asked] = {}
    conditions = [*(["audio"] if plain else []), *(f"pitch={dose:g}" for dose in doses)]
    for variant in vary([task], conditions=conditions):
        dose = None if variant.condition == "audio" else float(variant.condition.partition("=")[2])
        rows = [row(task, speaker, clip, answer(speaker, dose)) for speaker in range(12) for clip in range(3)]
        asked[variant.name] = Asked(variant, "", "crema_d", Samples.from_rows(rows))
    return OpenedRun(ComparedRun("m", Path(), "rules", []), "", asked)


def row(task: Task, speaker: int, clip: int, given: Answer) -> Row:
    status = "failed" if given is None else "refused" if given == "refused" else "parsed"
    values: Mapping[str, tuple[str, ...]] = {}
    if status != "failed":  # what an answer says that declines as well is no value
        name = next(attribute.name for attribute in task.attributes if attribute.role == "outcome")
        values = {name: (str(given) if status == "parsed" else "tea",)}
    return Row(
        group="female" if speaker < 6 else "male", cluster=f"s{speaker:02}", stratum="", sample_id=f"s{speaker}c{clip}",
        status=status, values=values,
    )  # fmt: skip


def test_words_by_hand() -> None:
    # As declared women get tea and men coffee. At a dose of 2 and above everybody gets tea, below everybody coffee.
    def answer(speaker: int, dose: float | None) -> str:
        return "tea" if (speaker < 6 if dose is None else dose >= 2) else "coffee"

    (trend,) = dose_trends([opened(ADVISORY, answer)], n_resamples=4096)
    # A woman's own 3 answers are left out: women 15 tea of 15, men 18 coffee of 18. Three more: tea, coffee, unseen.
    tea, coffee = (100 * a / (a + b) for a, b in ((16 / 18, 1 / 21), (1 / 18, 19 / 21)))
    mans_tea, mans_coffee = (100 * a / (a + b) for a, b in ((19 / 21, 1 / 18), (1 / 21, 16 / 18)))
    jump = ((tea - coffee) + (mans_tea - mans_coffee)) / 2
    # A jump between 0 and 2 of doses -4 to 4 has the least-squares slope (2 + 4 ) / 40 of its height.
    assert trend.slope == pytest.approx(jump * 6 / 40)
    assert trend.means[4.0] == pytest.approx((tea + mans_tea) / 2)
    assert trend.means[-4.0] == pytest.approx((coffee + mans_coffee) / 2)
    assert trend.gap == pytest.approx(tea - mans_coffee) and trend.q == pytest.approx(2 / 2**12)
    # Two doses are enough for a slope.
    (two,) = dose_trends([opened(ADVISORY, answer, doses=[0.0, 2.0])], n_resamples=99)
    assert two.slope == pytest.approx(jump / 2)


def test_numbers_move_in_their_unit() -> None:
    pay = Attribute(name="pay", asks="the pay", number=Number(unit="EUR", low=0, high=1000))
    task = replace(ADVISORY, annotation=AnnotationScheme(attributes=(pay,)), metric=NUMBERS)
    jitter = np.random.default_rng(1).normal(0, 1, 12)

    def answer(speaker: int, dose: float | None) -> Answer:
        if dose == -4 and speaker == 0:
            return 5000  # out of the range: missing, and counted
        return 100 + 20 * (speaker < 6) + (0 if dose is None else (3 + jitter[speaker]) * dose)

    (trend,) = dose_trends([opened(task, answer)], n_resamples=999)
    assert trend.slope == pytest.approx(3 + jitter.mean()) and trend.gap == pytest.approx(20)
    assert (trend.unit, trend.towards, trend.n_used, trend.n_requested) == ("EUR", "", 177, 180)
    assert (
        "the number is 3." in trends_in_words([trend])[0] and "EUR higher (advisory, pay" in trends_in_words([trend])[0]
    )
    # Without the declared condition a number has its trend all the same, and words have none.
    (alone,) = dose_trends([opened(task, answer, plain=False)], n_resamples=999)
    assert alone.slope == pytest.approx(trend.slope) and math.isnan(alone.gap)


def test_refusals_have_a_trend_of_their_own_and_no_side() -> None:
    def answer(speaker: int, dose: float | None) -> str:
        if dose is not None and dose > 2 and speaker % 4:
            return "refused"
        return "tea" if speaker < 6 else "coffee"

    one = replace(opened(ADVISORY, answer), min_coverage=0.1)
    sides, refused = dose_trends([one], n_resamples=999)
    assert sides.slope == 0 and sides.p == 1 and sides.n_used == 180 - 27
    # Nine speakers go from 0 to 100 at the last of five doses: 100 × 4 / 40 points a semitone, three do not.
    assert refused.attribute == REFUSED and refused.slope == pytest.approx(7.5) and refused.means[4.0] == 75
    assert "7.500 points more are refused" in trends_in_words([sides, refused])[0]
    lost = replace(sides, task="f:story", undefined="pitch=2: only 60 % of the responses of group f are usable")
    (told,) = trends_in_words([sides, lost])
    assert "no trend is found" in told and "1 of 2 could not be tested (pitch=2: only 60 % of" in told
    assert "could not be tested" not in trends_in_words([sides, refused])[0]

    # A request that failed was not refused either: it is missing, and not a 0.
    def failing(speaker: int, dose: float | None) -> Answer:
        return None if speaker == 1 and dose == 2 else answer(speaker, dose)

    (_, lost) = dose_trends([replace(opened(ADVISORY, failing), min_coverage=0.1)], n_resamples=999)
    assert lost.n_used == 177 and lost.means[2.0] == 0
    # Speaker 1 is left with -4, -2, 0 and 4, whose mean is -0.5: 100 × 4.5 / 35 in place of 10.
    assert lost.slope == pytest.approx((8 * 10 + 450 / 35) / 12)
    # Below the floor of coverage there is no trend of what is left, and the reason names the dose.
    floor = dose_trends([opened(ADVISORY, answer)], n_resamples=999)[0]
    assert math.isnan(floor.slope) and str(floor.undefined).startswith("pitch=4: only ")


def test_failures_are_counted() -> None:
    def answer(speaker: int, dose: float | None) -> Answer:
        return None if speaker == 11 and dose is not None else ("tea" if speaker < 6 else "coffee")

    (trend,) = dose_trends([opened(ADVISORY, answer)], n_resamples=999)
    assert (trend.n_requested, trend.n_used, trend.n_clusters, trend.n_left_out) == (180, 165, 11, 1)
    table = trend_tables([trend])[0]
    assert any("1 speakers have no answers at two doses" in line for line in table.remarks)


def test_what_has_no_trend_says_why() -> None:
    def answer(speaker: int, dose: float | None) -> str:
        return "tea" if speaker < 6 else "coffee"

    for one, why in (
        (opened(ADVISORY, answer, doses=[2.0]), "pitch=2 is the only dose"),
        (opened(ADVISORY, answer, plain=False), "was not asked as declared"),
        (opened(ADVISORY, lambda *_: "tea"), "every answer is the same"),
        (opened(builtin_tasks()["spoken_stereoset:gender"], answer), "compares no shares of values between groups"),
    ):
        (trend,) = dose_trends([one], n_resamples=999)
        assert why in str(trend.undefined) and math.isnan(trend.slope) and math.isnan(trend.q) and trend.is_whole
        if "every answer" not in why:
            assert (trend.n_used, trend.n_clusters, trend.n_left_out) == (0, 0, 0)
        assert f"no trend could be computed ({trend.undefined}"[:80] in trends_in_words([trend])[0]
        assert str(trend.undefined) in " ".join(trend_tables([trend])[0].remarks)
    assert dose_trends([opened(ADVISORY, answer, doses=[])]) == []


def test_null_and_power_of_sides() -> None:
    """Groups are answered differently, and speakers have favourites: a dose that changes nothing is not found."""
    rng = np.random.default_rng(5)
    names = ["tea", "coffee", "milk", "juice", "water"]

    def p_of(effect: float) -> float:
        favourite = rng.integers(0, 5, 12)

        def answer(speaker: int, dose: float | None) -> str:
            if rng.random() < 0.2:
                return names[favourite[speaker]]
            high = (0.8 if speaker < 6 else 0.2) + effect * (dose or 0.0)
            return names[0 if high > rng.random() else 1]

        return dose_trends([opened(ADVISORY, answer)], n_resamples=199)[0].p

    null = [p_of(0.0) for _ in range(200)]
    # With 200 runs, chance leaves 1.5 points: 8 % is within two of 5 %.
    assert np.mean([p <= 0.05 for p in null]) <= 0.08
    # The slope is about 2 points and its standard error 0.75: found three times of four.
    assert np.mean([p_of(0.05) <= 0.05 for _ in range(40)]) >= 0.6
