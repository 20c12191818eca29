"""Answers that are lost in one group alone: found in every task, in the first sentence, and never read as fair."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import Cli
from made_requests import APPLICATIONS

from equivox import measure
from equivox.core.attributes import LOSSES
from equivox.core.notes import Note, NoteCode
from equivox.core.samples import ENDED, Row, Samples
from equivox.core.scores import Score, ScoringOptions
from equivox.core.segments import SegmentAnnotation
from equivox.core.task import Task
from equivox.report.failures import lost_in
from equivox.report.notes import write_note
from equivox.run.losses import LOST, loss_scores
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import builtin_tasks

TASK = builtin_tasks()["vibe_gender:story"]
OPTIONS = ScoringOptions(n_resamples=2000)


def samples(lost: Callable[[str, int], str], *, speakers: int = 12, clips: int = 6) -> Samples:
    """Samples of two groups; `lost` gives the status of each clip of a speaker of a group."""
    return Samples.from_rows(
        [
            Row(group=group, cluster=f"{group}{speaker}", stratum="", status=lost(group, speaker * clips + clip))
            for group in ("female", "male")
            for speaker in range(speakers)
            for clip in range(clips)
        ]
    )


def scored(lost: Callable[[str, int], str], task: Task = TASK) -> dict[str, Score]:
    return {str(score.attribute): score for score in loss_scores(task, samples(lost), OPTIONS)}


@pytest.mark.parametrize(
    ("status", "attribute"),
    [("refused", "refusal"), ("failed", "failure"), ("missing", "failure"), ("empty", "failure"),
     ("unparsed", "unannotated"), ("unannotated", "unannotated")],
)  # fmt: skip
def test_each_way_to_lose_answers_of_one_group_is_found(status: str, attribute: str) -> None:
    found = scored(lambda group, clip: status if group == "female" and clip % 3 == 0 else "parsed")
    score = found[attribute]
    assert score.undefined_reason is None
    # 24 of 72 answers of women and none of men: a difference of one third, and nTVD of two groups is the difference.
    assert score.value == pytest.approx(100 / 3)
    assert score.p < 0.01
    assert (score.largest_shift.high_group, score.largest_shift.low_group) == ("female", "male")
    assert (score.largest_shift.high_share, score.largest_shift.low_share) == (pytest.approx(100 / 3), 0.0)
    others = set(found) - {attribute}
    assert others <= {"refusal"} and all(found[name].undefined_reason for name in others)


def test_a_gap_that_no_test_can_be_made_of_is_told_with_its_shares() -> None:
    # No stratum holds both groups: 8 of 12 women are refused and no man is, and nothing could be tested.
    rows = [
        Row(group=group, cluster=f"{group}{person}", stratum=f"only {group}",
            status="refused" if group == "female" and person < 8 else "parsed")
        for group in ("female", "male") for person in range(12)
    ]  # fmt: skip
    scores = loss_scores(TASK, Samples.from_rows(rows), OPTIONS)
    (refusals,) = scores
    assert refusals.undefined_reason == Note(NoteCode.NOTHING_SHARED, {"crossed": False})
    gap = f"refusal: female 67 % against male 0 %, not tested: {write_note(refusals.undefined_reason)}"
    assert lost_in(TASK.name, scores) == gap


def test_a_part_that_cannot_be_annotated_in_one_group_alone_is_found() -> None:
    # The opening of each story is annotated, and the phrases of every sixth story of women are not: 12 of 72, and of
    # men none. 83 % of their stories are left, which is enough for the metric.
    fine, lost = SegmentAnnotation("parsed", {}), SegmentAnnotation("unparsed", {})
    rows = [
        Row(group=group, cluster=f"{group}{speaker}", stratum="", status="parsed",
            segments={"phrases": lost if group == "female" and clip == 0 else fine})
        for group in ("female", "male") for speaker in range(12) for clip in range(6)
    ]  # fmt: skip
    found = loss_scores(builtin_tasks()["badf_single:gender"], Samples.from_rows(rows), OPTIONS)
    (score,) = [one for one in found if one.attribute == "unannotated"]
    assert score.value == pytest.approx(100 / 6) and score.p < 0.01
    assert score.largest_shift is not None and score.largest_shift.high_group == "female"


def with_values(task: Task, values: Callable[[str, int], Mapping[str, tuple[str, ...]]]) -> Score | None:
    """The score of annotated answers without a value, of 12 speakers with 6 clips each in two groups."""
    rows = [
        Row(group=group, cluster=f"{group}{speaker}", stratum="", status="parsed",
            values=values(group, speaker * 6 + clip))
        for group in ("female", "male") for speaker in range(12) for clip in range(6)
    ]  # fmt: skip
    found = {score.attribute: score for score in loss_scores(task, Samples.from_rows(rows), OPTIONS)}
    return found.get("unstated")


def test_a_number_out_of_the_range_in_one_group_alone_is_found() -> None:
    # Every sixth salary of women is 900,000, out of 0 to 200,000; all others are 50,000.
    task = load_task_file(Path(APPLICATIONS))[1]
    score = with_values(
        task, lambda group, clip: {"salary": ("900000",) if group == "female" and clip % 6 == 0 else ("50000",)}
    )
    assert score is not None and score.undefined_reason is None
    # 12 of 72 answers of women and none of men.
    assert score.value == pytest.approx(100 / 6)
    assert score.p < 0.01
    assert score.largest_shift is not None and score.largest_shift.high_group == "female"
    assert score.coverage.used == 144


def test_an_outcome_that_one_group_lacks_is_found_although_others_are_stated() -> None:
    def values(group: str, clip: int) -> Mapping[str, tuple[str, ...]]:
        told = {one.name: ("x",) for one in TASK.attributes if one.role == "outcome"}
        return told if group == "male" or clip % 4 else told | {"education": ()}

    score = with_values(TASK, values)
    # A quarter of the answers to women says nothing of their education.
    assert score.value == pytest.approx(25)
    assert score.p < 0.01


def test_what_no_answer_states_is_no_loss_of_one_group() -> None:
    assert with_values(TASK, lambda group, clip: {"occupation": ("nurse",), "stated_age": ()}) is None
    assert (
        with_values(TASK, lambda group, clip: {"occupation": ("nurse",), "stated_age": ("old",) if clip else ()})
        is None
    )


def test_answers_of_one_group_that_the_token_limit_cuts_off_are_found() -> None:
    rows = samples(lambda group, clip: "parsed")
    # A third of the responses to women are cut off, and none of men's; what there is of them was annotated.
    ended = ["length" if n < 72 and n % 3 == 0 else "stop" for n in range(144)]
    table = rows.read(rows.columns).append_column(ENDED, pa.array(ended).dictionary_encode())
    found = {score.attribute: score for score in loss_scores(TASK, Samples(table), OPTIONS)}
    assert found["truncated"].value == pytest.approx(100 / 3)
    assert found["truncated"].p < 0.01
    assert Samples(table).endings()["truncated"] == 24
    assert "truncated" not in {score.attribute for score in loss_scores(TASK, rows, OPTIONS)}


def test_refusals_about_single_women_are_found_where_each_sample_is_asked_about_both() -> None:
    """A task that asks about each character of a pair alone keeps who it is with the request, and tested nothing."""
    task = builtin_tasks()["genres_single:cs"]
    rows = [
        Row(
            group="", cluster=f"pair {pair}", stratum="", metadata={"character": name, "gender": gender},
            status="refused" if gender == "female" and pair % 4 == 0 else "parsed",
        )
        for pair in range(60)
        for name, gender in (("Ana", "female"), ("Ben", "male"))
    ]  # fmt: skip
    found = {score.attribute: score for score in loss_scores(task, Samples.from_rows(rows), OPTIONS)}
    refusal = found["refusal"]
    # 15 of 60 women and no man, within pairs: 15 signs that are all alike, p = 2 / 2^15.
    assert refusal.undefined_reason is None and refusal.value == pytest.approx(25)
    assert refusal.p < 0.001 and refusal.largest_shift is not None
    assert (refusal.largest_shift.high_group, refusal.largest_shift.high_share) == ("female", pytest.approx(25))
    assert refusal.coverage.requested_by_group == {"female": 60, "male": 60}


def test_no_attribute_is_called_as_a_loss_is() -> None:
    # Else the q of unequal failures would be that of a part of the task's mean, and never below the task's own.
    assert set(LOST) == {"refusal", *LOSSES}
    # Each has its words in the verdict and in the line of trust.


def test_equal_losses_are_no_finding() -> None:
    found = scored(lambda group, clip: "failed" if clip % 3 == 0 else "refused" if clip % 3 == 1 else "parsed")
    assert found["failure"].value == pytest.approx(0.0)
    assert found["failure"].p == 1.0
    # Refusals among the answers, of which two thirds are left: half of them in both groups.
    assert found["refusal"].undefined_reason.code == "too_few_usable"


def test_nothing_lost_is_told_for_refusals_alone() -> None:
    found = scored(lambda group, clip: "parsed")
    assert set(found) == {"refusal"}
    assert found["refusal"].undefined_reason.code == "no_refusals"
    assert math.isnan(found["refusal"].value)


def test_a_refusal_is_an_answer_where_refusals_are_compared() -> None:
    found = scored(lambda group, clip: "refused" if clip % 2 else "unparsed" if clip % 4 == 0 else "parsed")
    # 144 responses: 72 refusals and 36 answers that were understood, 36 that were not.
    coverage = found["refusal"].coverage
    assert (coverage.answered, coverage.parsed, coverage.used) == (144, 108, 108)


def test_what_is_not_known_lies_between_the_worst_cases() -> None:
    # Of four women two refuse, one answers, one is not heard; four men answer. Refusals of women are 2/4 or 3/4.
    told = {"female": ["refused", "refused", "parsed", "failed"], "male": ["parsed"] * 4}
    rows = samples(lambda group, clip: told[group][clip], speakers=2, clips=2)
    refusal = next(score for score in loss_scores(TASK, rows, OPTIONS) if score.attribute == "refusal")
    assert refusal.missing_bounds == pytest.approx((50, 75))


def test_a_loss_of_one_block_is_none_of_a_group_that_has_more_of_it() -> None:
    # Of each speaker of block w every second answer fails, of block m none; women are w three times in four, men m.
    rows = [
        Row(group=group, cluster=f"{group}{speaker}", stratum="", block=block,
            status="failed" if block == "w" and clip % 2 else "parsed")
        for group, blocks in (("female", "wwwm" * 3), ("male", "mmmw" * 3))
        for speaker, block in enumerate(blocks)
        for clip in range(6)
    ]  # fmt: skip
    lost = {score.attribute: score for score in loss_scores(TASK, Samples.from_rows(rows), OPTIONS)}["failure"]
    # As published: 3/8 of women's, 1/8 of men's.
    assert lost.value == pytest.approx(25)
    assert lost.estimate == pytest.approx(0, abs=0.1)
    assert lost.p > 0.5


def test_p_is_uniform_where_groups_lose_alike() -> None:
    rng = np.random.default_rng(3)
    p = []
    for _ in range(60):
        rates = np.repeat(rng.beta(1, 6, size=24), 6)
        lost = iter((rng.random(24 * 6) < rates).tolist())
        rows = samples(lambda group, clip, lost=lost: "failed" if next(lost) else "parsed")  # type: ignore[misc]
        found = loss_scores(TASK, rows, ScoringOptions(n_resamples=199))
        p += [score.p for score in found if score.attribute == "failure"]
    # Of 60 uniform p, more than 9 below .05 have a probability of .002.
    assert sum(value <= 0.05 for value in p) <= 9
    assert 0.3 < float(np.mean(p)) < 0.75


@pytest.mark.parametrize("name", ["vibe_gender:story", "badf_single:gender"])
def test_refusals_of_one_group_are_in_the_first_sentence(name: str, tmp_path: Path, equivox: Cli) -> None:
    code, out, err = equivox(
        *("run", "simulated:oracle,refusal_gap=0.4", name, "--data", "sample", "--output", tmp_path / "run", "--quiet"),
        *("--scoring", "n_resamples=999"),
    )
    assert code in (0, 1), err
    assert "DIFFERENCE FOUND" in out and "refused more often than m" in out, out
    assert equivox("report", tmp_path / "run", "-o", tmp_path / "report.html")[0] == code
    page = (tmp_path / "report.html").read_text()
    assert "refused more often than m" in page
    assert equivox("leaderboard", tmp_path, "-o", tmp_path / "board")[0] == code
    rows = json.loads((tmp_path / "board/leaderboard.json").read_text())["rows"]
    lost = [re.match(r"refusal: female (\d+) % against male 0 %", row["lost"]) for row in rows]
    assert any(found is not None and 30 < int(found[1]) < 50 for found in lost)


def test_a_gap_that_the_design_cannot_tell_is_marked_all_the_same(tmp_path: Path, equivox: Cli) -> None:
    # Three speakers of each group: 20 labellings, so that no p is below .1 (two-sided).
    run = ["run", "simulated:oracle,refusal_gap=0.4", "spoken_stereoset:gender", "--data", "sample"]
    _, out, _ = equivox(*run, "--output", tmp_path / "run", "--quiet")
    assert "DIFFERENCE FOUND" not in out
    assert "refusal: female 57 % against male 0 %, which may be chance" in " ".join(out.split())


def test_a_fair_model_refuses_alike(tmp_path: Path, equivox: Cli) -> None:
    run = ["run", "simulated:oracle,refusal=0.2", "vibe_gender:story", "--data", "sample", "--output", tmp_path / "run"]
    _, out, _ = equivox(*run, "--quiet")
    assert "refused more often" not in out


def test_a_board_leaves_out_forged_runs_and_names_them(tmp_path: Path, equivox: Cli) -> None:
    from equivox.core.files import read_document, write_document
    from equivox.run.manifest import state_hashes

    few = ScoringOptions(n_resamples=199)
    measure("simulated:planted,shift=0.5", TASK, output=tmp_path / "runs/true", data="sample", limit=96, options=few)
    for name in ("stale", "restated"):
        forged = shutil.copytree(tmp_path / "runs/true", tmp_path / "runs" / name)
        document = read_document(forged / "scores.json")
        for score in document["scores"]:
            score.update(value=0.0, estimate=0.0)
        write_document(forged / "scores.json", document)
        if name == "restated":
            state_hashes(forged)
    code, out, err = equivox("leaderboard", tmp_path / "runs", "-o", tmp_path / "board")
    assert code == 1 and "1 score of 1 run:" in out
    assert [line.partition(" cannot be used")[0] for line in err.splitlines()] == [
        f"left out: {name}: {tmp_path / 'runs' / name}" for name in ("restated", "stale")
    ]
    assert "scores.json: changed since the run was scored" in err
    assert "0.0 is stated" in err
    submit = ("submit", tmp_path / "runs/restated", "--model-repo", "o/m", "--benchmark", "o/d")
    assert "cannot be used" in equivox.refused(*submit)
