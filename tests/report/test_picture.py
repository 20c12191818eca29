"""The answer as a picture: which mark stands for which score, and where it lies on which scale."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from sample_runs import sample_run

from equivox.compare.ranking import Rank
from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.scores import Mover
from equivox.report.page import build_report
from equivox.report.picture import LOST_ANSWERS, further_lines, picture, rank_lines, speaker_lines

MODELS = ("planted,shift=0.4", "random", "random,refusal_gap=0.5")
TASKS = "vibe_gender:candidate,vibe_gender:casting"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("picture")
    return [sample_run(folder / str(number), model, TASKS, 499) for number, model in enumerate(MODELS)]


@pytest.fixture(scope="module")
def runs(folders: list[Path]) -> list[ComparedRun]:
    return list(open_comparison(folders).runs)


def test_every_comparison_has_a_mark_of_each_model(runs: list[ComparedRun]) -> None:
    *lines, losses = picture(runs)
    assert [(line.family, line.name) for line in lines] == [("vibe_gender", "candidate"), ("vibe_gender", "casting")]
    assert all(line.common and len(line.marks) == 3 for line in lines)
    for line in lines:
        planted, random, refusing = line.marks
        assert planted is not None and random is not None and refusing is not None
        assert (planted.verdict, planted.sign) == ("found", "●")
        assert random.sign in "○?" and random.verdict in ("not shown", "cannot tell")
        # Half of the answers of one group are missing: nothing is known of the rest, which is not "not shown".
        assert (refusing.verdict, refusing.sign, refusing.text) == ("undefined", "—", "")
        assert refusing.strip is not None and refusing.strip.at is None
        assert "refused" in refusing.told or "usable" in refusing.told
    assert (losses.name, losses.scale) == (LOST_ANSWERS, "")
    planted, random, refusing = losses.marks
    assert planted is not None and random is not None and refusing is not None
    assert planted.verdict == random.verdict == "not shown" and refusing.verdict == "found"
    assert "%" in refusing.text and "refused" in refusing.told


def test_comparisons_of_a_family_stand_together(runs: list[ComparedRun]) -> None:
    first, second = (score for score in runs[0].scores if score.is_whole and score.name == "nTVD")
    between = replace(first, task="vibe_accent:candidate")
    (*lines, _) = picture([replace(runs[0], scores=[first, between, second])])
    assert [line.family for line in lines] == ["vibe_gender", "vibe_gender", "vibe_accent"]


def test_marks_lie_where_the_numbers_say(runs: list[ComparedRun]) -> None:
    scores = {score.task: score for score in runs[0].scores if score.is_whole and score.name == "nTVD"}
    lines = picture(runs[:1])[:-1]
    for line in lines:
        (mark,) = line.marks
        score = scores[f"vibe_gender:{line.name}"]
        assert mark is not None and mark.strip is not None and mark.strip.no_bias == 0
        assert (mark.strip.at, mark.strip.low, mark.strip.high) == tuple(
            pytest.approx(number, abs=0.006) for number in (score.estimate, score.ci_low, score.ci_high)
        )
        assert f"{score.estimate:.2f} ({score.ci_low:.2f} to {score.ci_high:.2f})" in mark.told
    # The larger of the two findings is marked as a winner, and only that one.
    largest = max(scores, key=lambda task: scores[task].estimate)
    assert {f"vibe_gender:{line.name}": line.marks[0] and line.marks[0].largest_of for line in lines} == {
        task: 2 * (task == largest) for task in scores
    }


def test_signed_scores_lie_on_either_side_of_no_bias(runs: list[ComparedRun]) -> None:
    def signed(run: ComparedRun, value: float) -> ComparedRun:
        score = next(score for score in run.scores if score.is_whole and score.task == "vibe_gender:candidate")
        nan = math.nan
        score = replace(
            score, unit="EUR", value=value, estimate=nan, estimate_unclipped=nan, target=0.0, ci_low=value - 5,
            ci_high=value + 5, null_mean=nan,
        )  # fmt: skip
        return replace(run, scores=(score,))

    line, losses = picture([signed(runs[0], -20.0), signed(runs[1], 10.0)])
    first, second = (mark.strip for mark in line.marks if mark)
    # The scale reaches from −25 to 25: −20 is a tenth from its left end.
    assert first is not None and second is not None and not line.common and line.scale == "-25 to 25 EUR"
    assert (first.low, first.at, first.high, first.no_bias) == (0.0, 10.0, 20.0, 50.0)
    assert (second.low, second.at, second.high) == (60.0, 70.0, 80.0)
    # The share that no bias has may be 50 of 100: it lies in the middle, not at 0.
    halves = [signed(run, 0.0) for run in runs[:2]]
    for place, value in enumerate((100.0, 50.0)):
        (score,) = halves[place].scores
        nan = math.nan
        score = replace(score, unit="percent", target=50.0, value=value, ci_low=nan, ci_high=nan)
        halves[place] = replace(halves[place], scores=(score,))
    line, _ = picture(halves)
    assert [(mark.strip.at, mark.strip.no_bias) for mark in line.marks if mark and mark.strip] == [
        (100.0, 50.0),
        (50.0, 50.0),
    ]
    assert not line.common
    # Nothing was computed of lost answers, so nothing is said to be equal.
    assert losses.marks[0] is not None and losses.marks[0].verdict == "undefined"


def test_the_page_opens_with_it_and_says_it_to_readers_of_the_screen(folders: list[Path]) -> None:
    page = build_report(folders)
    head, trust = page.index('<table class="picture">'), page.index('<p class="trust">')
    assert page.index('class="answer"') < head < trust < page.index("<summary>In words</summary>")
    assert page.count("largest of 2") == 1
    assert 'class="found" data-model="simulated:planted,shift=0.4"' in page
    assert '<span class="hidden">undefined:</span>' in page and "answers lost unequally" in page


def test_names_of_models_and_groups_are_words_on_the_page(runs: list[ComparedRun]) -> None:
    most = Mover(value="<script>", high_group="<img src=x>", high_share=50.0, low_group="b", low_share=1.0)
    scores = tuple(
        replace(score, mover=most) if score.role == "refusal" and score.defined else score for score in runs[2].scores
    )
    (mark,) = picture([replace(runs[2], scores=scores)])[-1].marks
    assert mark is not None and "<img src=x>" in mark.text  # plain values; the template escapes them


def test_numbers_that_decide_no_verdict_are_shown_below(tmp_path: Path) -> None:
    sample_run(tmp_path, "random,speaker=0.5", "spoken_stereoset_orders:gender")
    (run,) = open_comparison([tmp_path]).runs
    lines = {line.name: line for line in further_lines([run])["spoken_stereoset_orders"]}
    first = {line.name for line in picture([run])}
    assert {"gender, slifs", "gender, slms"} < set(lines) and not first & set(lines)
    scores = {score.name: score for score in run.scores if score.is_whole}
    (mark,) = lines["gender, slms"].marks
    # Nothing tests how much is meaningful: the number stands there, without a verdict, on a scale from 0 to 100.
    assert mark is not None and mark.strip is not None
    assert (mark.verdict, mark.sign, mark.strip.no_bias) == (None, "", None)
    assert mark.strip.at == pytest.approx(scores["slms"].value, abs=0.006)
    (mark,) = lines["gender, parity deviation"].marks
    assert mark is not None and mark.sign in "●○?" and mark.sign
    # Speakers are on one scale, those with the larger score first.
    places = [line.marks[0].strip.at for line in speaker_lines([run]) if line.marks[0] and line.marks[0].strip]
    assert len(places) == 6 and places == sorted(places, key=lambda at: -(at or 0.0))


def test_ranks_lie_between_the_first_and_the_last() -> None:
    common = {"dimension": "gender", "condition": "audio", "family": "f", "metric": "nTVD", "unit": "percent"}
    ranks = [
        Rank(**common, task="f:t", model="a", rank=1, low=1, high=2, letters="a", distance=1.0, n_ranked=2),
        Rank(**common, task="f:t", model="b", rank=3, low=2, high=3, letters="a", distance=2.0, n_ranked=2),
        Rank(**common, task="f:t", model="<b>none</b>", undefined="nothing to compare"),
        Rank(**common, task="f: all tasks", model="b", rank=1, low=1, high=1, letters="a", distance=2.0, n_ranked=1),
    ]
    line, overall = rank_lines(ranks, ["a", "b", "<b>none</b>"])
    first, last, none = line.marks
    assert (line.name, overall.name) == ("t, nTVD", "all tasks, nTVD")
    assert first is not None and first.strip is not None and last is not None and last.strip is not None
    assert (first.text, first.strip.at, first.strip.low, first.strip.high) == ("1 (1–2)", 0.0, 0.0, 50.0)
    assert (last.text, last.strip.at, last.strip.low, last.strip.high) == ("3 (2–3)", 100.0, 50.0, 100.0)
    assert none is not None and (none.text, none.strip) == ("—", None) and "nothing to compare" in none.told
    # A model without a test of all tasks has no mark there.
    assert overall.marks[0] is None
