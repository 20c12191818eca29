"""The door to runs: what changed is named, and a run from elsewhere names no files here."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Cli

from equivox import measure, open_run
from equivox.compare import verification
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.core.scores import ScoringOptions
from equivox.run import opening
from equivox.run.manifest import state_hashes
from equivox.run.opening import data_of
from equivox.run.pipeline import rescore
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks

TASK = "vibe_gender:advisory"
FEW = ScoringOptions(n_resamples=99)
SOURCE = builtin_tasks()[TASK].data


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    return measure("simulated:oracle", TASK, data="sample", limit=48, output=tmp_path / "run", options=FEW).folder


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "another machine"))


def test_scores_with_an_unknown_field_are_damage_and_can_be_made_again(run: Path) -> None:
    before = [score.as_row() for score in read_scores(run)]
    scores = read_document(run / "scores.json")
    for score in scores["scores"]:
        score["p_decides"] = "stories"
    write_document(run / "scores.json", scores)
    with pytest.raises(UsageError, match=r"scores\.json is damaged"):
        read_scores(run)
    rescore(run)
    assert repr([score.as_row() for score in read_scores(run)]) == repr(before)


def test_a_run_from_elsewhere_names_no_files_here(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_of(run, SOURCE) == "sample"
    forged = shutil.copytree(run, tmp_path / "forged")
    manifest = read_document(forged / "manifest.json")
    manifest["command"]["data"] = "/etc"
    write_document(forged / "manifest.json", manifest)
    with pytest.raises(UsageError, match="give their folder with `--data`"):
        data_of(forged, SOURCE)
    # The sample is a part of equivox; a table of one's own is a file here.
    elsewhere(monkeypatch, tmp_path)
    assert data_of(run, SOURCE) == "sample"
    with pytest.raises(UsageError, match="was not made on this machine"):
        data_of(run, replace(SOURCE, table=Path("/etc/passwd")))


def test_further_comparisons_do_not_change_where_a_run_was_made(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(SOURCE, table=Path("/etc/passwd"))
    rescore(run, compare=[("ethnicity",)], options=FEW)
    assert data_of(run, table) == "sample"
    elsewhere(monkeypatch, tmp_path)
    rescore(run, compare=[("age_group",)], options=FEW)
    with pytest.raises(UsageError, match="was not made on this machine"):
        data_of(run, table)


def test_files_are_weighed_before_they_are_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[Path] = []
    monkeypatch.setattr(opening, "refuse_oversized", weighed.append)
    assert opening.open_run(run) is None and run / "scores.json" in weighed


def test_what_changed_is_told_in_one_line(run: Path) -> None:
    assert opening.open_run(run) is None
    document = read_document(run / "scores.json")
    write_document(run / "scores.json", document | {"answered": 3})
    told = opening.open_run(run)
    assert told is not None and "1 file is not as it was" in told and "(scores.json)" in told
    with pytest.warns(UserWarning, match="not as it was when the run was scored"):
        open_run(run)
    state_hashes(run)
    assert opening.open_run(run) is None


def test_commands_that_decide_or_publish_always_verify_and_others_name_what_changed(
    run: Path, tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[Path] = []
    verify = verification.verify
    monkeypatch.setattr(verification, "verify", lambda run, **how: verified.append(run) or verify(run, **how))
    other = measure("simulated:random", TASK, data="sample", limit=48, output=tmp_path / "other", options=FEW).folder
    hub = ("submit", run, "--model-repo", "o/m", "--benchmark", "o/d", "-o", tmp_path / "hub")
    commands: list[tuple[tuple[object, ...], list[Path]]] = [
        (("gate", run, "--baseline", other, "--margin", 50), [run, other]),
        (hub, [run]),
        (("leaderboard", tmp_path, "-o", tmp_path / "board"), [other, run]),
        (("compare", run, other), []),
        (("score", run), []),
        (("report", run, "-o", tmp_path / "report.html"), []),
    ]
    for command, names in commands:
        verified.clear()
        equivox(*command)
        assert verified == names, command
    write_document(run / "scores.json", read_document(run / "scores.json") | {"answered": 3})
    for command, _ in commands:
        if command[0] != "score":  # which makes the file again
            code, _, err = equivox(*command)
            assert "(scores.json)" in err or "scores.json: changed" in err, (command, err)
            assert (code == 2) is (command[0] in {"gate", "submit"}), command
