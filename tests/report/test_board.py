"""A board of twenty runs, four of them forged: who enters, who is ranked with whom, and what the site says."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from commands import Cli, csv_rows
from markupsafe import escape
from pandas import concat
from sample_runs import sample_run

from equivox.core.files import read_document, write_document
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.scores import ScoringOptions
from equivox.report.board import _add_ranks, list_rank_tables, make_board, name_page, render_site
from equivox.run.manifest import state_hashes
from equivox.run.pipeline import rescore
from equivox.run.scoring import read_scores

if TYPE_CHECKING:
    from pandas import DataFrame

TASKS = "vibe_gender:candidate,vibe_gender:casting"
FORGED = ("restated", "stale", "halved", "rewritten")


def deciding(runs: dict[Path, str], task: str = "") -> DataFrame:
    """Return the rows of a board that can be ranked or were replaced by a later run, by the name of their run."""
    frame = make_board(runs)
    return frame[frame["decides"] & frame["task"].str.contains(task)].set_index("run", drop=False)


def list_models(frame: DataFrame) -> list[str]:
    """Return the models of the only table of ranks, in order."""
    (table,) = list_rank_tables(frame)
    return [str(row[0]) for row in table.rows]


def change_scores(run: Path) -> None:
    document = read_document(run / "scores.json")
    for score in document["scores"]:
        if score["metric"] == "nTVD" and score["attribute"] is None:
            score |= {"estimate": 0.1, "ci": [0.0, 0.4], "p": 0.9}
    write_document(run / "scores.json", document)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen honest runs, and four that a vendor improved."""
    folder = tmp_path_factory.mktemp("submitted")
    for number in range(16):
        shift = 0.05 * number
        sample_run(folder / f"honest-{number:02}", f"planted,shift={shift:.2f},seed={number}", TASKS, 199, limit=96)
    worst = folder / "honest-15"
    for name in FORGED:
        forged = shutil.copytree(worst, folder / name)
        if name in ("stale", "restated"):
            change_scores(forged)
        if name == "halved":  # what one does not like is left out
            (answers,) = (forged / "responses").glob("*.parquet")
            table = pq.read_table(answers)
            pq.write_table(table.slice(0, len(table) // 2), answers)
        if name == "rewritten":
            manifest = read_document(forged / "manifest.json")
            manifest["command"]["model"] = "simulated:planted,shift=0.00"
            write_document(forged / "manifest.json", manifest)
            change_scores(forged)
        if name != "stale":
            state_hashes(forged)
    return folder


@pytest.fixture(scope="module")
def board(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    from typer.testing import CliRunner

    from equivox.cli.app import app

    folder = tmp_path_factory.mktemp("board")
    done = CliRunner().invoke(app, ["leaderboard", str(source), "--output", str(folder)], standalone_mode=False)
    return folder, done.return_value, done.stdout, done.stderr


def test_honest_runs_enter_and_forged_ones_are_listed_with_the_reason(board: tuple[Path, int, str, str]) -> None:
    folder, code, _, err = board
    assert code == 1
    page = (folder / "index.html").read_text()
    rows = json.loads((folder / "leaderboard.json").read_text())["rows"]
    assert {row["run"] for row in rows} == {f"honest-{number:02}" for number in range(16)}
    assert "16 runs, each recomputed from its answers before it entered" in page and "4 refused" in page
    refused = page[page.index('id="refused"') :]
    for name in FORGED:
        assert f"<b>{name}</b>: " in refused and f"left out: {name}: " in err
    assert "scores.json" in refused[refused.index("<b>stale</b>") :][:400]
    assert str(folder.parent) not in page or "left out" not in page


def test_ranks_have_intervals_and_hold_the_truth(board: tuple[Path, int, str, str]) -> None:
    rows = json.loads((board[0] / "leaderboard.json").read_text())["rows"]
    own = [row for row in rows if row["task"] == "vibe_gender:candidate" and row["metric"] == "nTVD"]
    by_shift = {float(re.search(r"shift=([0-9.]+)", row["model"])[1]): row for row in own}  # type: ignore[index]
    assert len(by_shift) == 16 and all(row["n_ranked"] == 16 for row in own)
    for place, shift in enumerate(sorted(by_shift), start=1):
        row = by_shift[shift]
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]
        # The planted order is the true one.
        assert row["rank_low"] <= place <= row["rank_high"], shift
    assert by_shift[0.0]["rank_high"] < by_shift[0.75]["rank_low"], "the ends are told apart"
    assert sorted(row["rank"] for row in own)[0] == 1


def test_what_else_a_run_asked_does_not_keep_it_from_being_ranked(source: Path, tmp_path: Path) -> None:
    also = sample_run(tmp_path / "also", "planted,shift=0.6", f"{TASKS},vibe_accent:candidate", 199, limit=96)
    rows = deciding({source / "honest-00": "one", also: "other"}, "gender:candidate")
    assert list(rows["n_ranked"]) == [2, 2] and len(set(rows["measured"])) == 1


def test_an_outcome_is_that_of_the_run_itself_whoever_else_is_on_the_board(
    board: tuple[Path, int, str, str], source: Path
) -> None:
    rows = json.loads((board[0] / "leaderboard.json").read_text())["rows"]
    for name in ("honest-00", "honest-15"):
        scored = {
            score.task: score for score in read_scores(source / name) if score.is_whole and score.metric == "nTVD"
        }
        own = [row for row in rows if row["run"] == name and row["metric"] == "nTVD"]
        assert len(own) == 2
        assert [(row["q"], row["outcome"]) for row in own] == [
            (scored[row["task"]].q, scored[row["task"]].outcome) for row in own
        ]
    assert {row["outcome"] for row in rows} >= {"difference", "too_few_data"}
    pages = "".join(path.read_text() for path in board[0].rglob("*.html"))
    assert "<td>differs</td>" in pages and not re.search("[●○]|not shown|cannot tell", pages)
    finding = next(row for row in rows if row["outcome"] == "difference")
    assert "more often" in finding["says"] and str(escape(finding["says"])) in pages


def test_csv_and_json_hold_the_same(board: tuple[Path, int, str, str]) -> None:
    rows = json.loads((board[0] / "leaderboard.json").read_text())["rows"]
    table = csv_rows(board[0] / "leaderboard.csv")
    assert len(table) == len(rows) and list(table[0]) == list(rows[0])
    assert {"outcome", "q", "by_group", "measured", "latest"} <= set(rows[0])
    for one, other in zip(table, rows, strict=True):
        assert one["model"] == other["model"] and one["rank"] == str(other["rank"] or "")
        assert other["distance"] is None or float(one["distance"]) == other["distance"]


def test_each_model_has_a_page_with_its_evidence(board: tuple[Path, int, str, str], source: Path) -> None:
    folder = board[0]
    rows = json.loads((folder / "leaderboard.json").read_text())["rows"]
    index = (folder / "index.html").read_text()
    assert len(list((folder / "models").iterdir())) == 16
    for row in rows[:3]:
        page = (folder / "models" / f"{name_page(row['model'])}.html").read_text()
        assert f'href="models/{name_page(row["model"])}.html"' in index
        assert f"manifest {row['manifest']}" in page and "engine simulated" in page and "annotated by rules" in page
        assert len(row["manifest"]) == 64 and (source / row["run"]).is_dir()


@pytest.mark.parametrize("column", ["task", "metric", "measured", "task_version"])
def test_only_scores_that_were_measured_in_the_same_way_are_ranked_together(source: Path, column: str) -> None:
    rows = deciding({source / f"honest-{number:02}": str(number) for number in range(3)}, "casting")
    assert list(rows["n_ranked"]) == [3, 3, 3] and set(rows["rank"]) == {1, 2, 3}
    rows = rows.drop(columns=["latest", "rank", "rank_low", "rank_high", "n_ranked"])
    rows.loc["1", column] = "other"
    assert dict(_add_ranks(rows)["n_ranked"]) == {"0": 2, "1": 1, "2": 2}


def test_a_number_over_a_familys_tasks_is_ranked_with_those_over_the_same_tasks(tmp_path: Path) -> None:
    for name, tasks in {"random": "genres_standin", "biased": "genres_standin:cs,genres_standin:em"}.items():
        sample_run(tmp_path / name, name, tasks, 99, limit=8)
    rows = make_board({tmp_path / name: name for name in ("random", "biased")})
    known = rows[rows["distance"].notna()]
    assert set(known["n_ranked"][known["task"] == "genres_standin"]) == {1}
    assert 2 in set(known["n_ranked"][known["task"] == "genres_standin:cs"])


def test_another_version_of_a_task_is_a_column_of_its_own(source: Path) -> None:
    """A model that was run again with a changed prompt lost its rank: that run stood in the place of the ranked one."""
    rows = deciding({source / "honest-00": "0", source / "honest-15": "15"}, "casting")
    changed = rows.loc[["0"]].assign(task_version="changed", rank=None, n_ranked=1)
    (table,) = list_rank_tables(concat([rows, changed], ignore_index=True))
    assert list(table.columns) == ["model", f"casting {rows['task_version'].iloc[0]}", "casting changed"]
    ranks = [[str(cell).partition(" (")[0] for cell in row[1:]] for row in table.rows]
    assert ranks == [["1", "no rank"], ["2", "—"]]


def test_a_model_that_failed_stands_last_and_is_not_left_out(source: Path, tmp_path: Path) -> None:
    """Nothing of it can be ranked: a reader of the ranks must see that it was asked, and that it has no score."""
    sample_run(tmp_path / "failed", "random,fail=0.5", TASKS, 199, limit=96)
    rows = make_board({source / "honest-00": "0", source / "honest-15": "15", tmp_path / "failed": "failed"})
    (table,) = list_rank_tables(rows)
    assert list(table.columns) == ["model", "candidate", "casting"] and len(table.rows) == 3
    assert table.caption.startswith("vibe_gender: crema_d ") and "cut to 96 samples a task" in table.caption
    name, *cells = table.rows[-1]
    assert name == "simulated:random,fail=0.5"
    assert all(str(cell).startswith("no rank (no result") for cell in cells)
    assert sum("simulated:random,fail=0.5" in line and "are usable" in line for line in table.remarks) == 2
    # Those nearest to no bias come first, whatever they are called.
    named = rows.assign(model=rows["run"].map({"0": "z", "15": "a", "failed": "b"}))
    assert list_models(named) == ["z", "a", "b"]
    # A model that alone answered a task has no rank in it, and is no nearer for that.
    alone = named[(named["model"] == "a") & named["rank"].notna()].iloc[[0]].assign(rank=None, n_ranked=1)
    more = [alone.assign(task=f"vibe_gender:{name}") for name in "xyz"]
    assert list_models(concat([named, *more], ignore_index=True)) == ["z", "a", "b"]


@pytest.mark.parametrize("lacks", ["the task", "a score"])
def test_a_model_of_which_the_best_task_alone_was_handed_in_does_not_stand_first(source: Path, lacks: str) -> None:
    rows = deciding({source / "honest-00": "0", source / "honest-15": "15"})
    rows = rows.assign(model=rows["run"], task=rows["task"].str.partition(":")[2])
    rows["rank"] = (
        rows[["run", "task"]]
        .apply(tuple, axis=1)
        .map({("0", "candidate"): 2, ("0", "casting"): 1, ("15", "candidate"): 3, ("15", "casting"): 2})
    )
    part = rows[rows["run"] == "0"].assign(model="part")
    part["rank"] = [1 if task == "candidate" else None for task in part["task"]]
    if lacks == "the task":
        part = part[part["task"] == "candidate"]
    # Of casting, "part" counts as the third of three: 1 + 3 is more than 2 + 1, and less than 3 + 2.
    frame = concat([part, rows], ignore_index=True)
    assert list_models(frame.assign(task="f:" + frame["task"])) == ["0", "part", "15"]


def test_a_model_whose_values_are_mostly_rare_may_have_any_rank(source: Path, tmp_path: Path) -> None:
    runs = {source / f"honest-{number:02}": str(number) for number in (0, 7)}
    rare = shutil.copytree(source / "honest-15", tmp_path / "rare")
    document = read_document(rare / "scores.json")
    for score in document["scores"]:
        notes = [Note(NoteCode.RARE_VALUES, {"share": 0.69, "min_count": 2}).plain]
        score |= {"estimate": 0.2, "ci": [0.0, 0.4], "notes": notes}
    write_document(rare / "scores.json", document)
    rows = deciding(runs | {rare: "rare"}, "gender:candidate")
    ranks = dict(zip(rows["run"], rows[["rank", "rank_low", "rank_high"]].to_numpy().tolist(), strict=True))
    assert ranks == {"rare": [1, 1, 3], "0": [2, 1, 2], "7": [3, 2, 3]}


def test_of_several_runs_of_a_model_the_latest_counts_even_if_it_has_no_score(source: Path, tmp_path: Path) -> None:
    """A model that was run again stood beside itself under two names, and a run that failed left the older rank."""
    runs = {source / "honest-00": "other"}
    for name, made in (("older", "2026-01-02T03:04:05+00:00"), ("newer", "2026-01-02T03:04:06+00:00")):
        run = shutil.copytree(source / "honest-15", tmp_path / name)
        manifest = read_document(run / "manifest.json")
        write_document(run / "manifest.json", manifest | {"created": made})
        runs = {run: name} | runs
    assert dict(deciding(runs, "gender:candidate")["n_ranked"]) == {"other": 2, "newer": 2, "older": 0}
    site = render_site(make_board(runs), (), "")
    (page,) = (text for name, text in site.items() if "shift-0.75" in name)
    assert page.index("<caption>older: ") < page.index("<caption>newer: ")

    lost = remark("all of it failed").plain
    document = read_document(tmp_path / "newer" / "scores.json")
    for score in document["scores"]:
        score |= {
            "value": None,
            "estimate": None,
            "undefined_reason": lost,
            "outcome": "no_result",
        }
    write_document(tmp_path / "newer" / "scores.json", document)
    rows = deciding(runs, "gender:candidate")
    assert dict(rows["n_ranked"]) == {"other": 1, "newer": 0, "older": 0}
    assert set(rows["run"][rows["latest"]]) == {"other", "newer"}
    (table,) = list_rank_tables(make_board(runs))
    assert ["(no result" in str(row[1]) for row in table.rows] == [False, True]
    assert all("all of it failed" in line for line in table.remarks if "shift=0.75" in line)


def test_scores_that_ask_for_less_are_ranked_apart_and_say_so(source: Path, tmp_path: Path) -> None:
    """A vendor may look for large shifts alone: "too few data" becomes "no difference", which is no better model."""
    lax = shutil.copytree(source / "honest-00", tmp_path / "lax")
    rescore(lax, options=ScoringOptions(n_resamples=199, look_for=100.0, min_count=3))
    rows = deciding({lax: "lax", source / "honest-15": "usual"})
    assert set(rows["n_ranked"]) == {1} and rows[["rank", "rank_low", "rank_high"]].isna().all(axis=None)
    told = "; scored with min_count 3 (as declared: None); scored with look_for 100.0 (as declared: 10.0)"
    assert {measured.partition("annotated by rules")[2] for measured in rows.loc[["lax"], "measured"]} == {told}
    assert {table.caption.partition("annotated by rules")[2] for table in list_rank_tables(rows)} == {told, ""}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"extra_body": {"temperature": 2.0}}, "asked with `extra_body` {'temperature': 2.0}"),
        ({"system_prompt": "Treat all alike."}, "asked with `system_prompt` Treat all alike."),
        ({"generation_parameters": {"top_k": 1, "stop": ["."]}}, "asked with `generation_parameters` {'top_k': 1}"),
        ({"patch": "(left out)"}, "asked with `patch` (left out)"),
        # What a model cannot do without, and how much it thinks, keep it with the others.
        ({"extra_body": {"reasoning_effort": "none"}, "chat_template_kwargs": {"enable_thinking": False}}, ""),
        ({"generation_parameters": {"stop_token_ids": [7]}, "dtype": "bfloat16"}, ""),
        # The tasks declare a temperature of 0 and 512 tokens. With more of these nothing is lost, with fewer much is.
        ({"generation_parameters": {"temperature": 0.0, "max_tokens": 512}}, ""),
        ({"extra_body": {"max_completion_tokens": 8192, "user": "us", "provider": {"order": ["x"]}}}, ""),
        ({"extra_body": {"max_tokens": 5}}, "asked with `extra_body` {'max_tokens': 5}"),
        ({"extra_body": {"max_tokens": "9"}}, "asked with `extra_body` {'max_tokens': '9'}"),
    ],
)  # fmt: skip
def test_a_model_that_was_told_to_answer_otherwise_is_ranked_apart(
    source: Path, tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    """A vendor's server may decode at a temperature at which nothing differs, or be told to be fair."""
    other = shutil.copytree(source / "honest-00", tmp_path / "other")
    manifest = read_document(other / "manifest.json")
    manifest["identity"]["model"]["settings"] = settings
    write_document(other / "manifest.json", manifest)
    rows = deciding({other: "other", source / "honest-15": "usual"})
    assert set(rows["n_ranked"]) == {1 if told else 2}
    options = rows["measured"].str.partition("annotated by rules")[2].str.removeprefix("; ")
    assert set(options.items()) == {("other", told), ("usual", "")}


def test_two_annotators_that_share_a_name_are_two(source: Path, tmp_path: Path) -> None:
    """A vendor's own judge of noise may be called qwen3-8b, too: its YAML file is."""
    runs = {shutil.copytree(source / f"honest-{n:02}", tmp_path / str(n)): str(n) for n in (0, 1, 15)}
    for folder, model, url in zip(
        runs, ("theirs", "ours", "ours"), ("http://a/v1", "http://b/v1", "http://c/v1"), strict=True
    ):
        document = read_document(folder / "scores.json")
        engine = {"engine": "endpoint", "model": model, "settings": {"base_url": url}, "digest": url}
        document["annotator"] = {"name": "rules", "version": "2", "settings": {"engine": engine}}
        write_document(folder / "scores.json", document)
    rows = deciding(runs)
    assert set(rows["n_ranked"].items()) == {("0", 1), ("1", 2), ("15", 2)}
    named = dict(set(rows["annotator"].items()))
    assert named["1"] == named["15"] != named["0"] and all(name.startswith("rules ") for name in named.values())
    ours = {folder: run for folder, run in runs.items() if run != "0"}
    assert set(make_board(ours)["annotator"]) == {"rules"}


def test_what_a_run_says_of_itself_is_words_on_the_page(source: Path) -> None:
    frame = make_board({source / "honest-00": "honest"})
    payload = '=1+1"><script>alert(1)</script><img src=x onerror=alert(1)>'
    texts = [name for name in frame if isinstance(frame[name].iloc[0], str) and name != "outcome"]
    site = render_site(frame.assign(**dict.fromkeys(texts, payload)), [(payload, payload)], payload)
    pages = {name: text for name, text in site.items() if name.endswith(".html")}
    assert len(pages) == 3
    for name, page in pages.items():
        assert "<script>alert" not in page and "<img" not in page, name
        assert page.count("<script>") == 1  # our own, by its hash
        assert "default-src 'none'" in page and "unsafe" not in page.partition("<style>")[0]
        assert re.fullmatch(r"index\.html|scores\.html|models/[A-Za-z0-9.-]+\.html", name)
    assert not any(cell.startswith("=") for row in csv.reader(io.StringIO(site["leaderboard.csv"])) for cell in row)


def test_a_list_of_sources(source: Path, equivox: Cli, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("honest-00", "honest-15"):
        shutil.copytree(source / name, tmp_path / "runs" / name)
    (tmp_path / "submitted.txt").write_text("# who asked to be here\n\nruns\nhf://datasets/no/such\n")
    code, out, err = equivox("leaderboard", tmp_path / "submitted.txt", "--output", tmp_path / "board")
    assert code == 1 and "of 2 runs" in out
    assert err.startswith("left out: hf://datasets/no/such: ") and err.count("\n") == 1
    assert "<b>hf://datasets/no/such</b>" in (tmp_path / "board" / "index.html").read_text()
    for name in ("honest-00", "honest-15"):  # two teams, each with a folder that holds one run
        (tmp_path / name).mkdir()
        (tmp_path / "runs" / name).rename(tmp_path / name / "run")
    (tmp_path / "submitted.txt").write_text(f"honest-00/run\n{tmp_path / 'honest-15'}\nhonest-00/run\n")
    assert "of 2 runs" in equivox.done("leaderboard", tmp_path / "submitted.txt", "--output", tmp_path / "teams")
    rows = json.loads((tmp_path / "teams" / "leaderboard.json").read_text())["rows"]
    assert {row["run"] for row in rows} == {"honest-00/run", "honest-15/run"}
    assert "of 1 run:" in equivox.done("leaderboard", tmp_path / "honest-00" / "run", "--output", tmp_path / "alone")
    (row, *_) = json.loads((tmp_path / "alone" / "leaderboard.json").read_text())["rows"]
    assert row["run"] == "run"
    (tmp_path / "self.txt").write_text("self.txt\n")
    assert "must be a folder" in equivox.refused("leaderboard", tmp_path / "self.txt", "--output", tmp_path / "none")
    plan = tmp_path / "honest-00" / "run" / "plan.parquet"
    assert "cannot read the list of runs" in equivox.refused("leaderboard", plan, "--output", tmp_path / "none")
    (tmp_path / "empty.txt").write_text("# nobody\n")
    err = equivox.refused("leaderboard", tmp_path / "empty.txt", "--output", tmp_path / "none")
