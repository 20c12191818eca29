"""The door to runs: what was computed here is known again, and a run from elsewhere names no files here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from equivox import measure, open_run
from equivox.compare.believing import believe
from equivox.core.errors import UsageError
from equivox.core.files import read_document, write_document
from equivox.core.progress import no_progress
from equivox.core.scores import Score, ScoringOptions
from equivox.run import opening, reproducing
from equivox.run.manifest import state_hashes
from equivox.run.opening import data_of, is_computed
from equivox.run.pipeline import rescore
from equivox.run.reproducing import run_all
from equivox.run.run_files import RunFile, settings_of
from equivox.run.scoring import read_scores
from equivox.tasks.registry import builtin_tasks, resolve_tasks

TASK = "vibe_gender:advisory"
FEW = ScoringOptions(n_resamples=99)
SOURCE = builtin_tasks()[TASK].data


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    return measure("simulated:oracle", TASK, data="sample", limit=48, output=tmp_path / "run", options=FEW).folder


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "another machine"))


def test_a_run_made_here_is_known_until_it_changes(run: Path) -> None:
    assert is_computed(run)
    note = run.parent / "cache" / "of" / "this" / "run"
    opening._write_note(note)
    opening._write_note(note)
    assert note.is_file()
    (run / "tasks.json").write_text("{}")
    assert not is_computed(run)
    with pytest.raises(UsageError, match=r"tasks\.json: changed since the run was scored"):
        believe(run)


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


def test_a_run_from_elsewhere_is_computed_once(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from equivox.compare import believing

    calls = []
    verify = believing.verify
    monkeypatch.setattr(believing, "verify", lambda *given, **named: calls.append(1) or verify(*given, **named))
    believe(run)
    assert not calls
    elsewhere(monkeypatch, tmp_path)
    assert not is_computed(run)
    believe(run)
    believe(run)
    assert len(calls) == 1


def test_scoring_a_run_from_elsewhere_does_not_make_it_known(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch, tmp_path)
    rescore(run)
    assert not is_computed(run)


def changed(folder: Path) -> None:
    write_document(folder / "manifest.json", read_document(folder / "manifest.json") | {"about": "another"})


def test_models_of_a_run_file_are_known_after_their_last_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))

    def known(output: str, seed: int) -> bool:
        # Runs of one second that answer alike would be the same run.
        file = RunFile(models=["simulated:oracle"], tasks=TASK, data="sample", limit=8, seed=seed)
        (run,) = run_all(settings_of(file, resolve_tasks), tmp_path / output, lambda _: nullcontext(no_progress))
        assert run.error is None and run.scores
        return is_computed(run.folder)

    assert known("runs", 0)
    # What lay in the folder between two stages may come from anywhere if another process left it, or if it changed.
    rescore = reproducing.rescore
    for number, between in enumerate((lambda folder: opening._UNFINISHED.clear(), changed)):

        def scored(folder: Path, then: Callable[[Path], None] = between, **given: Any) -> list[Score]:
            then(folder)
            return rescore(folder, **given)

        monkeypatch.setattr(reproducing, "rescore", scored)
        assert not known(f"changed-{number}", 1 + number)


def test_the_cache_may_be_out_of_reach(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "file"))
    assert not is_computed(run)
    believe(run)


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


def test_files_of_a_run_from_elsewhere_are_weighed_before_they_are_read(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighed: list[Path] = []
    monkeypatch.setattr(opening, "refuse_oversized", weighed.append)
    assert opening.open_run(run) is None and not weighed
    elsewhere(monkeypatch, tmp_path)
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
    assert opening.open_run(run) is None and not is_computed(run)
