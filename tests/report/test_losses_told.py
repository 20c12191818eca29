"""Whatever leaves the house says which groups lose more of their answers, and never that what is left is all."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pandas
import pytest
import yaml
from commands import Cli
from made_scores import made_score
from sample_runs import sample_run

from equivox.compare.pairs import open_runs, paired_tests
from equivox.compare.ranking import rank_all
from equivox.compare.runs import open_comparison
from equivox.core.files import read_document, write_document
from equivox.core.notes import remark
from equivox.core.scores import LargestShift, Score, ScoringOptions
from equivox.report.board import list_rank_tables, make_board
from equivox.report.failures import annotation_failures, lost_in, request_failures
from equivox.report.figures import draw_ranks
from equivox.report.frames import make_table
from equivox.report.notes import write_note
from equivox.run.pipeline import rescore


def lost(attribute: str, high: float, low: float, **given: object) -> Score:
    """Return the score of a way to lose answers: `high` percent of those to men, and `low` of those to women."""
    most = LargestShift(value="yes", high_group="men", high_share=high, low_group="women", low_share=low)
    role = "refusal" if attribute == "refusal" else "loss"
    return made_score(attribute=attribute, role=role, largest_shift=most, value=high - low, **{"p": 0.9, **given})


def test_each_way_is_told_once_and_what_may_be_chance_as_such() -> None:
    scores = [
        made_score(p=0.9),
        lost("refusal", 20.0, 10.0, q=0.001),
        lost("refusal", 40.0, 10.0, task="f:u", q=0.001),
        lost("failure", 30.0, 10.0, outcome="too_few_data"),
        lost("unannotated", 14.0, 10.0, outcome="too_few_data"),
        lost("unstated", 90.0, 10.0, subset="speaker=1", q=0.001),
        lost("truncated", 30.0, 10.0, outcome="no_difference"),
    ]
    chance = "failure: men 30 % against women 10 %, which may be chance"
    assert lost_in("f:t", scores) == f"refusal: men 20 % against women 10 %; {chance}"
    assert lost_in("f:u", scores) == "refusal: men 40 % against women 10 %"
    # A number over all tasks of a family names the worst of them.
    assert lost_in("f", scores) == f"refusal: men 40 % against women 10 %; {chance}"
    assert lost_in("g:t", scores) == ""


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without bias that declines to answer about one in ten women, and no man."""
    runs = tmp_path_factory.mktemp("refusing")
    sample_run(runs / "one", "random,refusal_gap=0.1", "vibe_gender:advisory")
    return runs


def test_errors_that_are_not_listed_are_counted() -> None:
    errors = Counter({f"error {n}": 9 - n for n in range(7)})
    assert request_failures(errors, 6)[-2:] == [
        "failed 4 times: error 5",
        "… and 1 other reason, see `responses` in the run",
    ]
    assert annotation_failures("judge", errors, Counter())[4:] == [
        "judge failed 5 times: error 4",
        "… and 2 other reasons, see `annotations/judge` in the run",
    ]
    assert request_failures(errors, 7)[-1] == "failed 3 times: error 6"


def test_every_record_names_the_refusals_of_one_group(refusing: Path, equivox: Cli, tmp_path: Path) -> None:
    run = refusing / "one"
    board = make_board({run: "one"})
    (row,) = board[board["metric"] == "nTVD"].to_dict("records")
    lost = str(row["lost"])
    assert lost.startswith("refusal: female ") and lost.endswith(" % against male 0 %")
    assert str(row["says"]).endswith(lost)
    assert "of the answers of group female are missing, 0 % of group male" in row["notes"]
    named = ("--model-repo", "org/model", "--benchmark", "org/equivox-{corpus}")
    marks = ("--mark", "modified-data", "--mark", "low-coverage")
    equivox.done("submit", run, *named, *marks, "-o", tmp_path / "hub")
    (entries,) = (tmp_path / "hub" / ".eval_results").iterdir()
    (entry,) = yaml.safe_load(entries.read_text("utf-8"))
    assert f"GROUPS LOSE ANSWERS UNEQUALLY: {lost};" in entry["notes"]
    record = json.loads((tmp_path / "hub" / "equivox.json").read_text("utf-8"))
    assert record["lost"] == {"vibe_gender-advisory": lost}
    equivox.done("data", "push", run, "--repo", "org/run", "-o", tmp_path / "pushed")
    card = (tmp_path / "pushed" / "README.md").read_text("utf-8")
    assert f"\n\nGroups lose answers to `vibe_gender:advisory` unequally: {lost}.\n\n" in card
    assert "It was scored with" not in card


def test_a_card_says_how_a_run_was_scored(refusing: Path, equivox: Cli, tmp_path: Path) -> None:
    run = shutil.copytree(refusing / "one", tmp_path / "run")
    rescore(run, options=ScoringOptions(n_resamples=99, min_coverage=0.1))
    equivox.done("data", "push", run, "--repo", "org/run", "-o", tmp_path / "pushed")
    told = "It was scored with min_coverage 0.1 (as declared: 0.8).\n\n"
    assert told in (tmp_path / "pushed" / "README.md").read_text("utf-8")


def test_a_rank_says_that_answers_of_one_group_are_missing(refusing: Path, tmp_path: Path) -> None:
    """A model that declines to answer women is nearest to no bias in what it does answer."""
    other = sample_run(tmp_path / "other", "planted,shift=0.4", "vibe_gender:advisory")
    comparison = open_comparison([refusing / "one", other])
    ranks = rank_all(comparison, paired_tests(open_runs(comparison)))
    (first,) = [rank for rank in ranks if rank.rank == 1]
    assert (first.uneven.values["group"], first.uneven.values["other_share"]) == ("female", 0)
    table = make_table(pandas.DataFrame([vars(rank) for rank in ranks]), by=("task", "model"))
    assert any(write_note(first.uneven) in remark and first.model in remark for remark in table.remarks)
    assert [text.get_text() for text in draw_ranks(ranks).axes[0].texts] == ["†"]


def test_the_cell_of_a_model_without_a_score_gives_the_reason_of_its_latest_run(refusing: Path, tmp_path: Path) -> None:
    runs = {}
    for day, reason in enumerate(("the server was down", "the judge was down"), start=1):
        folder = shutil.copytree(refusing / "one", tmp_path / f"run{day}")
        document = read_document(folder / "scores.json")
        for score in document["scores"]:
            if score["attribute"] is None:
                score |= {"value": None, "estimate": None, "undefined_reason": remark(reason).plain}
        write_document(folder / "scores.json", document)
        manifest = read_document(folder / "manifest.json")
        write_document(folder / "manifest.json", manifest | {"created": f"2026-01-0{day}T00:00:00+00:00"})
        runs[folder] = folder.name
    (table,) = list_rank_tables(make_board(runs))
    assert len(table.rows) == 1 and [line for line in table.remarks if "was down" in line] == [
        f"— {table.rows[0][0]}, vibe_gender:advisory: the judge was down"
    ]
