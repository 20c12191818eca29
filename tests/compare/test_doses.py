"""Trends over the doses of a voice: a model that listens to pitch is found, one that listens to identity is not."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from equivox import measure
from equivox.compare.conditions import condition_tests
from equivox.compare.doses import REFUSED, Trend, dose_trends
from equivox.compare.pairs import Asked, OpenedRun, open_runs
from equivox.compare.ranking import judge
from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.attributes import Attribute, Number
from equivox.core.samples import Row, Samples
from equivox.core.scores import ScoringOptions
from equivox.core.segments import AnnotationScheme
from equivox.core.task import Task
from equivox.core.variants import SEMITONES, vary
from equivox.metrics.numbers import METRIC as NUMBERS
from equivox.report.comparison_tables import conditions_in_words
from equivox.report.doses import trend_tables, trends_in_words
from equivox.report.opening import opening_of
from equivox.report.page import build_report
from equivox.tasks.registry import builtin_tasks

Cli = Callable[..., tuple[int, str, str]]
FEW = ScoringOptions(n_resamples=199)
ADVISORY, CANDIDATE = (builtin_tasks()[f"vibe_gender:{name}"] for name in ("advisory", "candidate"))


# --- on the embedded sample ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that hears who speaks: 288 recordings at every dose."""
    pytest.importorskip("pyworld", reason="changing a voice needs the extra [voice]")
    folder = tmp_path_factory.mktemp("identity") / "run"
    measure(
        "simulated:planted,shift=0.3", "vibe_gender:advisory,vibe_gender:candidate", output=folder, data="sample",
        conditions="audio,pitch", options=FEW,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def listens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that hears how high a voice is, in 96 recordings at three doses."""
    pytest.importorskip("pyworld", reason="changing a voice needs the extra [voice]")
    folder = tmp_path_factory.mktemp("listens") / "run"
    measure(
        "simulated:planted,shift=0.6,hears=pitch", "vibe_gender:advisory", output=folder, data="sample", limit=96,
        conditions="audio,pitch=-4,pitch=0,pitch=4", options=FEW,
    )  # fmt: skip
    return folder


def trends_of(folder: Path) -> dict[tuple[str, str], Trend]:
    found = dose_trends(open_runs(open_comparison([folder])), n_resamples=1999)
    return {(trend.task, trend.attribute): trend for trend in found}


def test_a_model_that_listens_to_pitch_is_found(listens: Path) -> None:
    trends = trends_of(listens)
    trend = trends["vibe_gender:advisory", "hobby"]
    assert trend.q < 0.05 and 0 < trend.ci_low < trend.slope and trend.towards == "female"
    assert trend.means[-4.0] < trend.means[0.0] < trend.means[4.0]
    assert (trend.n_used, trend.n_requested, trend.n_clusters, trend.n_left_out) == (288, 288, 24, 0)
    assert trend.gap > 10  # women's and men's voices are answered differently as they are
    (told,) = trends_in_words(list(trends.values()))
    assert "1 of 1 trend found: with each semitone up answers move " in told
    assert "towards those that female voices get (advisory, hobby, 95 % interval" in told


def test_a_model_that_listens_to_identity_is_not(identity: Path) -> None:
    trends = trends_of(identity)
    whole = [trend for trend in trends.values() if trend.is_whole]
    assert [trend.task for trend in whole] == [
        "vibe_gender:advisory", "vibe_gender:candidate", "vibe_gender: all tasks",
    ]  # fmt: skip
    assert all(trend.q > 0.05 and trend.ci_low < 0 < trend.ci_high for trend in whole)
    # The bias itself is there all the time.
    assert all(trend.gap > 10 for trend in whole)
    attributes = {attribute for task, attribute in trends if task == CANDIDATE.name}
    assert attributes == {"", "competency", "interaction_style", "cultural_fit", "compensation"}
    (told,) = trends_in_words(list(trends.values()))
    assert "not one of 3 trends found (the widest interval: " in told
    assert told.endswith("The model may not listen to it, or the design may be too small to tell.")


def test_doses_are_tested_against_dose_0_and_that_against_the_recording(identity: Path) -> None:
    found = condition_tests(open_runs(open_comparison([identity])), n_resamples=199)
    pairs = {(test.model_a, test.model_b) for _, test in found}
    assert pairs == {("audio", "pitch=0"), *(("pitch=0", f"pitch={dose:g}") for dose in SEMITONES if dose)}
    tasks = {ADVISORY.name, CANDIDATE.name, "vibe_gender: all tasks"}
    assert {test.task for _, test in found} == tasks and {test.family for _, test in found} == {"vibe_gender"}
    assert all(test.undefined is None and test.n_clusters == 24 for _, test in found)
    again, changed = conditions_in_words(found)
    assert "vibe_gender, pitch=0 against audio: none of " in again
    assert "vibe_gender, 4 doses of pitch against pitch=0: none of " in changed


def test_commands_and_pages_show_trends(listens: Path, identity: Path, equivox: Cli, tmp_path: Path) -> None:
    code, out, error = equivox("compare", listens, "--resamples", 199, "--csv", tmp_path, "--latex", tmp_path)
    assert code == 0, error
    assert out.count("do answers move with the pitch?") == 1 and "what does making the voice again change?" in out
    rows = list(csv.DictReader((tmp_path / "trends.csv").read_text().splitlines()))
    assert [(row["task"], row["attribute"], row["change"]) for row in rows] == [(ADVISORY.name, "hobby", "pitch")]
    assert float(rows[0]["slope"]) > 0 and float(rows[0]["mean at -4"]) < float(rows[0]["mean at 4"])
    assert "per semitone" in (tmp_path / "trends.tex").read_text()
    code, out, _ = equivox("score", listens, "--scoring", "n_resamples=199")
    assert code == 0 and "do answers move with the pitch?" in out and "with each semitone up answers move" in out
    page = build_report([listens])
    assert "with each semitone up answers move" in page and "do answers move with the pitch?" in page
    both = open_comparison([listens, identity])
    sentences = opening_of(both, judge(both, n_resamples=199)).sentences
    assert sum(", vibe_gender, pitch: " in sentence for sentence in sentences) == 2


# --- on made rows -------------------------------------------------------------------------------------------------

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
    if status == "parsed":
        name = next(attribute.name for attribute in task.attributes if attribute.role == "outcome")
        values = {name: (str(given),)}
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
        assert why in str(trend.undefined) and math.isnan(trend.slope) and math.isnan(trend.q)
        assert f"no trend could be computed ({trend.undefined}"[:80] in trends_in_words([trend])[0]
        assert str(trend.undefined) in " ".join(trend_tables([trend])[0].remarks)
    assert dose_trends([opened(ADVISORY, answer, doses=[])]) == []


def test_null_and_power_of_sides() -> None:
    """Women and men are answered differently, and speakers have favourites: a dose that changes nothing is not found."""
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
