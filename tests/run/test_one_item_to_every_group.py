"""One item given to every group: the run, its losses, its comparison and its table of power compare within items."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from commands import Cli

import equivox as eq
from equivox.compare.pairs import open_runs, paired_tests
from equivox.compare.runs import open_comparison
from equivox.core.notes import Note, NoteCode

OPTIONS = eq.ScoringOptions(min_count=1, n_resamples=999)
TASK = "vibe_gender:advisory"


def answered(effect: float, seed: int, *, items: int = 30, answers: int = 2) -> list[dict[str, Any]]:
    """CVs that differ widely in what they are told; with each, the woman is told of yoga more often by `effect`."""
    rng = random.Random(seed)
    rows = []
    for item in range(items):
        often = rng.choice((0.1, 0.9)) * (1 - effect)
        for gender in ("female", "male"):
            for place in range(answers):
                yoga = rng.random() < often + effect * (gender == "female")
                rows.append(
                    {
                        "sample_id": f"{item}/{gender}/{place}", "speaker": f"cv {item}", "gender": gender,
                        "sentence": f"s{place}", "emotion": "neutral",
                        "response": f"Try {'yoga' if yoga else 'chess'}.",
                    }
                )  # fmt: skip
    return rows


def scored(rows: list[dict[str, Any]], folder: Path) -> eq.Result:
    return eq.import_responses(rows, TASK, model=folder.name, output=folder, options=OPTIONS)


def whole(result: eq.Result) -> Any:
    return next(score for score in result.scores if score.attribute is None)


def test_a_shift_is_found_within_items_where_it_drowns_between_them(tmp_path: Path) -> None:
    rows = answered(0.2, seed=0)
    crossed = whole(scored(rows, tmp_path / "crossed"))
    apart = [{**row, "speaker": f"{row['speaker']} {row['gender']}"} for row in rows]
    nested = whole(scored(apart, tmp_path / "nested"))
    assert crossed.n_units == 30 and nested.n_units == 60
    assert crossed.value == nested.value
    assert crossed.p <= 0.01 < 0.05 < nested.p
    assert crossed.ci[0] > 0 == nested.ci[0]
    assert crossed.ci[1] - crossed.ci[0] < 0.8 * (nested.ci[1] - nested.ci[0])


def test_lost_answers_leave_their_item_out_and_are_tested_within_items(tmp_path: Path) -> None:
    rows = answered(0.2, seed=0)
    for row in rows:
        if row["gender"] == "male" and row["speaker"] in {"cv 1", "cv 2"}:
            row["response"] = None
    found = scored(rows, tmp_path / "run")
    assert Note(NoteCode.UNITS_LEFT_OUT, {"n": 2, "of": 30, "crossed": True}) in whole(found).notes
    assert whole(found).undefined_reason is None
    failures = next(score for score in found.scores if score.attribute == "failure")
    # Two of thirty items lose their answers, both for men: one of four ways to swap these two is as far to this side.
    assert failures.undefined_reason is None and failures.p >= 0.25


def test_two_models_are_compared_by_exchanging_whole_items(tmp_path: Path) -> None:
    a, b = (scored(answered(effect, seed=3), tmp_path / name) for effect, name in ((0.4, "a"), (0.0, "b")))
    tests = paired_tests(open_runs(open_comparison([a.folder, b.folder])), n_resamples=999)
    pair = next(test for test in tests if test.task == TASK)
    assert pair.n_clusters == 30
    assert pair.ci_low > 0


def test_mixed_designs_are_refused_with_their_numbers(tmp_path: Path, equivox: Cli) -> None:
    import pandas

    rows = [row for row in answered(0, seed=1) if row["gender"] == "female" or row["speaker"] < "cv 2"]
    pandas.DataFrame(rows).to_csv(tmp_path / "mixed.csv", index=False)
    error = equivox.refused("import", tmp_path / "mixed.csv", TASK, "-o", tmp_path / "run", "-q")
    assert "of 30 speaker units, 12 in 2, 18 in 1 of 2 groups of gender" in error
