"""Scores as flat floats: names, what is NaN, and that all tasks of a family have the same keys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from sample_runs import sample_run

from equivox.core.coverage import STAGES, Coverage
from equivox.core.notes import Note, NoteCode, describe_design, remark
from equivox.core.scores import Score
from equivox.integrations.flat import EVIDENCE, flat_metrics, metric_key
from equivox.run.scoring import read_scores

COVERAGE = Coverage(requested=8, generated=8, answered=7, parsed=6, used=2)
WHOLE = Score(
    task="voices:story",
    condition="audio",
    dimension="gender",
    attribute=None,
    role="outcome",
    metric="nTVD",
    unit="percent",
    value=31.25,
    estimate=11.25,
    ci=(1.0, 40.0),
    p=0.03,
    coverage=COVERAGE,
    notes=(describe_design(null_mean=20.0),),
)

FAMILIES = (
    "vibe_gender",
    "vibe_accent",
    "spoken_stereoset",
    "spoken_stereoset_orders",
    "genres_standin",
    "genres_single_standin",
    "badf_single",
    "badf_two",
)


def test_a_score_gives_its_value_and_every_piece_of_its_evidence() -> None:
    flat = flat_metrics([WHOLE])
    assert list(flat) == [
        "ntvd",
        *(f"ntvd_{field}" for field in EVIDENCE),
        "ntvd_cannot_tell",
        "ntvd_coverage",
        "ntvd_coverage_least",
        *(f"coverage_{count}" for count in STAGES),
    ]
    assert (flat["ntvd"], flat["ntvd_null_mean"], flat["ntvd_estimate"], flat["ntvd_p"]) == (
        31.25,
        20,
        11.25,
        0.03,
    )
    # 2 used of 8 requested
    assert flat["ntvd_coverage"] == flat["ntvd_coverage_least"] == 0.25
    # All of four men are used and two of four women, who were refused.
    groups = {"requested_by_group": {"women": 4, "men": 4}, "used_by_group": {"women": 2, "men": 4}}
    uneven = flat_metrics([replace(WHOLE, coverage=replace(WHOLE.coverage, used=6, **groups))])
    assert (uneven["ntvd_coverage"], uneven["ntvd_coverage_least"]) == (0.75, 0.5)
    assert [flat[f"coverage_{count}"] for count in STAGES] == [8, 8, 7, 6, 2]
    # never tested as published: not 0, not 1
    assert math.isnan(flat["ntvd_p_published"])
    assert math.isnan(flat["ntvd_q"])


def test_a_design_that_cannot_find_anything_says_so() -> None:
    few = replace(WHOLE, p=0.4, q=1.0, notes=(Note(NoteCode.SMALLEST_P, {"p": 0.1, "permutations": 20}),))
    assert flat_metrics([few])["ntvd_cannot_tell"] == 1
    assert flat_metrics([replace(few, notes=())])["ntvd_cannot_tell"] == 0
    lost = replace(few, value=math.nan, undefined_reason=remark("only 2 of 8 are usable"))
    assert math.isnan(flat_metrics([lost])["ntvd_cannot_tell"])


def test_an_undefined_score_is_nan_under_the_same_keys() -> None:
    lost = replace(WHOLE, value=math.nan, estimate=math.nan, notes=(), undefined_reason=remark("only 2 are usable"))
    assert flat_metrics([lost]).keys() == flat_metrics([WHOLE]).keys()
    assert math.isnan(flat_metrics([lost])["ntvd"])
    # what it rests on is known all the same
    assert flat_metrics([lost])["coverage_used"] == 2


def test_attributes_and_groups_are_left_out_refusals_and_common_breakdowns_are_not() -> None:
    flat = flat_metrics(
        [
            WHOLE,
            replace(WHOLE, attribute="hobby", value=1.0),
            replace(WHOLE, subset="gender=female", value=2.0),
            replace(WHOLE, attribute="refusal", role="refusal", value=3.0),
            replace(WHOLE, metric="letter share", subset="letter=B", value=4.0),
            replace(WHOLE, metric="M1", subset="arithmetic=published", value=5.0),
            replace(WHOLE, metric="associations with q up to .05", value=6.0),
        ]
    )
    ours = ("ntvd_", "coverage")
    values = {name: v for name, v in flat.items() if v in {2, 3, 4, 5, 6} and not name.startswith(ours)}
    assert {name: v for name, v in values.items() if "ci_" not in name} == {
        "refusal_ntvd": 3,
        "letter_share_b": 4,
        "m1_arithmetic_published": 5,
        "associations_with_q_up_to_05": 6,
    }


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="one task, got none"):
        flat_metrics([])
    with pytest.raises(
        ValueError, match="got voices:story in condition audio, voices:story@silence in condition silence"
    ):
        flat_metrics([WHOLE, replace(WHOLE, task="voices:story@silence", condition="silence")])
    with pytest.raises(ValueError, match="hold ntvd of voices:story in condition audio twice"):
        flat_metrics([WHOLE, WHOLE])


def test_a_key_holds_what_every_format_takes() -> None:
    odd = replace(WHOLE, metric="share / with | odd: signs", subset="words=A,B")
    assert metric_key(odd) == "share_with_odd_signs_words_a_b"


@pytest.fixture(scope="module")
def by_task(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], dict[str, list[Score]]]:
    def run(family: str, model: str) -> dict[str, list[Score]]:
        folder = sample_run(tmp_path_factory.mktemp("flat") / "run", model, family, limit=12)
        scores = sorted(read_scores(folder), key=lambda score: score.task)
        return {task: list(own) for task, own in groupby(scores, key=lambda score: score.task) if ":" in task}

    return run


@pytest.mark.parametrize("family", FAMILIES)
def test_all_tasks_of_a_family_have_the_same_keys_whatever_was_lost(
    by_task: Callable[[str, str], dict[str, list[Score]]], family: str
) -> None:
    answered, failed = by_task(family, "random"), by_task(family, "random,fail=1")
    assert len(answered) > 1
    keys = {tuple(flat_metrics(own)) for own in (*answered.values(), *failed.values())}
    assert len(keys) == 1
    # A model that answers nothing has no number at all beside the counts: nothing is 0, 50 or 1.
    for own in failed.values():
        flat = flat_metrics(own)
        assert flat["coverage_generated"] == 0 < flat["coverage_requested"]
        numbers = {name for name, value in flat.items() if not math.isnan(value)}
        assert (
            not {
                n for n in numbers if not n.endswith(("_coverage", "_coverage_least")) and not n.startswith("coverage_")
            }
            - WORST
        )
        assert all(flat[name] == 0 for name in numbers if name.endswith(("_coverage", "_coverage_least")))


WORST = {
    f"{name}_{end}" for name in ("slifs", "slms", "slbs", "parity_deviation") for end in ("missing_low", "missing_high")
}
"""What the missing could have said, which is known without them."""


def test_flat_numbers_are_those_of_scores_json(tmp_path: Path) -> None:
    sample_run(tmp_path, "planted,shift=0.3", "vibe_gender:story")
    (whole,) = (
        score
        for score in json.loads((tmp_path / "scores.json").read_text())["scores"]
        if score["attribute"] is None and not score["subset"]
    )
    flat = flat_metrics([Score.from_dict(s) for s in json.loads((tmp_path / "scores.json").read_text())["scores"]])
    assert flat["ntvd"] == whole["value"]
    numbers = [flat[f"ntvd_{field}"] for field in ("ci_low", "ci_high", "p", "q")]
    assert numbers == [*whole["ci"], whole["p"], whole["q"]]
