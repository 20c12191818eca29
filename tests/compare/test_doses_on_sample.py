"""Trends on the embedded sample: a model that listens to pitch is found, one that listens to identity is not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli, csv_rows
from sample_runs import sample_run
from scipy.stats import false_discovery_control

from equivox.compare.conditions import condition_tests
from equivox.compare.doses import Trend, dose_trends
from equivox.compare.pairs import open_runs
from equivox.compare.ranking import judge
from equivox.compare.runs import open_comparison
from equivox.core.variants import SEMITONES
from equivox.report.comparison_tables import conditions_in_words
from equivox.report.doses import trends_in_words
from equivox.report.opening import opening_of
from equivox.report.page import build_report
from equivox.report.view.document import run_document

ADVISORY, CANDIDATE = "vibe_gender:advisory", "vibe_gender:candidate"


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that hears who speaks: 96 recordings at every dose."""
    pytest.importorskip("pyworld", reason="changing a voice needs the extra [voice]")
    folder = tmp_path_factory.mktemp("identity") / "run"
    return sample_run(folder, "planted,shift=0.3", f"{ADVISORY},{CANDIDATE}", 199, limit=96, conditions="audio,pitch")


@pytest.fixture(scope="module")
def listens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that hears how high a voice is, in 24 recordings at three doses."""
    pytest.importorskip("pyworld", reason="changing a voice needs the extra [voice]")
    model, doses = "planted,shift=0.95,hears=pitch,seed=3", "audio,pitch=-4,pitch=0,pitch=4"
    return sample_run(tmp_path_factory.mktemp("listens") / "run", model, ADVISORY, 199, limit=24, conditions=doses)


def trends_of(folder: Path) -> dict[tuple[str, str], Trend]:
    found = dose_trends(open_runs(open_comparison([folder])), n_resamples=1999)
    return {(trend.task, trend.attribute): trend for trend in found}


def test_a_model_that_listens_to_pitch_is_found(listens: Path) -> None:
    trends = trends_of(listens)
    trend = trends["vibe_gender:advisory", "hobby"]
    assert trend.q < 0.05 and 0 < trend.ci_low < trend.slope and trend.towards == "female"
    assert trend.means[-4.0] < trend.means[0.0] < trend.means[4.0]
    assert (trend.n_used, trend.n_requested, trend.n_clusters, trend.n_left_out) == (72, 72, 24, 0)
    assert trend.gap > 10  # women's and men's voices are answered differently as they are
    (told,) = trends_in_words(list(trends.values()))
    assert "pitch: a trend is found: with each semitone up answers move " in told
    assert "towards those that female voices get (advisory, hobby, 95 % interval" in told


def test_a_model_that_listens_to_identity_is_not(identity: Path) -> None:
    trends = trends_of(identity)
    whole = [trend for trend in trends.values() if trend.is_whole]
    assert [trend.task for trend in whole] == [
        "vibe_gender:advisory", "vibe_gender:candidate", "vibe_gender: all tasks",
    ]  # fmt: skip
    for kept in (True, False):  # q over the trends of whole tasks, and apart from them over those of attributes
        own = [trend for trend in trends.values() if trend.is_whole == kept]
        expected = false_discovery_control([trend.p for trend in own], method="by")
        assert [trend.q for trend in own] == pytest.approx(expected.tolist())
    assert all(trend.q > 0.05 and trend.ci_low < 0 < trend.ci_high for trend in whole)
    # The bias itself is there all the time.
    assert all(trend.gap > 5 for trend in whole)
    attributes = {attribute for task, attribute in trends if task == CANDIDATE}
    assert attributes == {"", "competency", "interaction_style", "cultural_fit", "compensation"}
    (told,) = trends_in_words(list(trends.values()))
    assert "none of 3 trends is found (the widest interval: " in told
    # A trend whose slopes are all alike has no interval, which hides those of the others no more.
    unknown = replace(whole[0], ci_low=math.nan, ci_high=math.nan)
    (told_of_both,) = trends_in_words([unknown, *whole[1:]])
    assert "(the widest interval: " in told_of_both
    (told_of_it,) = trends_in_words([unknown])
    assert "no trend is found." in told_of_it and "interval" not in told_of_it
    assert told.endswith("The model may not listen to it, or the design may be too small to tell.")


def test_doses_are_tested_against_dose_0_and_that_against_the_recording(identity: Path) -> None:
    found = condition_tests(open_runs(open_comparison([identity])), n_resamples=199)
    pairs = {(test.model_a, test.model_b) for _, test in found}
    assert pairs == {("audio", "pitch=0"), *(("pitch=0", f"pitch={dose:g}") for dose in SEMITONES if dose)}
    tasks = {ADVISORY, CANDIDATE, "vibe_gender: all tasks"}
    assert {test.task for _, test in found} == tasks and {test.family for _, test in found} == {"vibe_gender"}
    assert all(test.undefined is None and test.n_clusters == 24 for _, test in found)
    again, changed = conditions_in_words(found)
    assert "vibe_gender, pitch=0 against audio: none of " in again
    assert "vibe_gender, 4 doses of pitch against pitch=0: none of " in changed


def test_commands_and_pages_show_trends(listens: Path, identity: Path, equivox: Cli, tmp_path: Path) -> None:
    out = equivox.done("compare", listens, "--resamples", 199, "--tables", tmp_path)
    assert out.count("do answers move with the pitch?") == 1 and "what does making the voice again change?" in out
    rows = csv_rows(tmp_path / "trends.csv")
    assert [(row["task"], row["attribute"], row["change"]) for row in rows] == [(ADVISORY, "hobby", "pitch")]
    assert float(rows[0]["slope"]) > 0 and float(rows[0]["mean at -4"]) < float(rows[0]["mean at 4"])
    assert "per semitone" in (tmp_path / "trends.tex").read_text()
    out = equivox.done("score", listens, "--scoring", "n_resamples=199")
    assert "do answers move with the pitch?" in out and "with each semitone up answers move" in out
    page = build_report([listens])
    assert "with each semitone up answers move" in page and "do answers move with the pitch?" in page
    told = run_document(open_comparison([listens]).runs[0])["verdict"]
    assert "with each semitone up answers move" in told["sentences"][-1]
    both = open_comparison([listens, identity])
    sentences = opening_of(both, judge(both, n_resamples=199)).sentences
    assert sum(", vibe_gender, pitch: " in sentence for sentence in sentences) == 2
