"""A board on the Hub: runs are sent to it, listed by a pull request, and ranked from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from huggingface_hub import HfApi
from sample_runs import sample_runs

from equivox.core.errors import UsageError
from equivox.integrations.hub.remote import LIST, listed_runs

# huggingface_hub hands files to its HTTP library in a way that the latter calls outdated.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

BOARD = ("dataset", "org/board")


@pytest.fixture
def board(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The stand-in Hub with an empty board; two runs are here."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    sample_runs(tmp_path, {name: name for name in ("biased", "random")}, "vibe_gender:advisory", limit=24)
    HfApi().create_repo("org/board", repo_type="dataset")
    return hub


def merge(hub: Any) -> None:
    """Accept the last pull request of the board."""
    hub.repos[BOARD].files |= hub.repos[BOARD].pull_requests[-1]


def test_runs_are_sent_listed_and_ranked_and_a_forged_one_is_refused(board: Any, tmp_path: Path, equivox: Cli) -> None:
    for model in ("biased", "random"):
        arguments = ("submit", tmp_path / model, "--board", "org/board", "--repo", f"lab/{model}")
        code, out, err = equivox(*arguments)
        assert code == 0 and "Nothing was uploaded" in out, err
        assert ("dataset", f"lab/{model}") not in board.repos
        code, out, err = equivox(*arguments, "--push")
        assert code == 0 and "Pull request: " in out, err
        assert not board.repos["dataset", f"lab/{model}"].private
        merge(board)
    listed = board.repos[BOARD].files[LIST].decode().splitlines()
    assert listed == [f"hf://datasets/lab/{model}@{'1' * 40}" for model in ("biased", "random")]
    out = equivox.done(*arguments, "--push")
    assert "lists it already" in out and len(board.repos[BOARD].pull_requests) == 2
    equivox.done("leaderboard", "hf://datasets/org/board", "--output", "site")
    rows = json.loads(Path("site/leaderboard.json").read_text())
    ranks = {row["model"]: row["rank"] for row in rows["rows"] if row["metric"] == "nTVD" and row["rank"]}
    assert ranks == {"simulated:random": 1, "simulated:biased": 2}
    files = board.repos["dataset", "lab/random"].files
    files["scores.json"] = files["scores.json"].replace(b'"min_coverage": 0.8', b'"min_coverage": 0.1')
    code, _, err = equivox("leaderboard", "hf://datasets/org/board", "--output", "site")
    assert code == 1 and "left out: hf://datasets/lab/random@" in err
    assert "simulated:random" not in Path("site/leaderboard.csv").read_text()


def test_a_list_of_strangers_names_no_files_here(board: Any, tmp_path: Path, equivox: Cli) -> None:
    for line in ("../biased", str(tmp_path / "biased"), "https://example.org/run", "hf://datasets/lab"):
        board.repos[BOARD].files[LIST] = f"# runs\n{line}\n".encode()
        assert "is no run on the Hub" in equivox.refused("leaderboard", "hf://datasets/org/board")
        assert not Path("leaderboard").exists()


def test_a_list_has_each_run_once_and_none_where_there_is_none(tmp_path: Path) -> None:
    assert listed_runs(tmp_path) == []
    (tmp_path / LIST).write_text("\n# a comment\nhf://datasets/a/b@main\n hf://datasets/a/b@main \nhf://datasets/c/d\n")
    assert listed_runs(tmp_path) == ["hf://datasets/a/b@main", "hf://datasets/c/d"]
    (tmp_path / "long").write_text("x" * 2_000_000)
    (tmp_path / LIST).unlink()
    (tmp_path / LIST).symlink_to(tmp_path / "long")
    with pytest.raises(UsageError, match="a link or too long"):
        listed_runs(tmp_path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--board", "org/board"), "`repo` is missing"),
        (("--board", "org/board", "--repo", "lab"), "owner/name"),
        (("--board", "board", "--repo", "lab/run"), "owner/name"),
        (("--board", "org/board", "--repo", "lab/run", "--model-repo", "lab/m"), "`model-repo` is for the Hub's"),
        (("--repo", "lab/run"), "`repo` is for `--board`"),
    ],
)
def test_wrong_requests_are_one_line(board: Any, equivox: Cli, options: tuple[str, ...], reason: str) -> None:
    assert reason in equivox.refused("submit", "biased", *options)
    assert not Path("hub").exists()
