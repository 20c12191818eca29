"""Runs that are not believed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sample_runs import sample_run

from equivox.compare import believing
from equivox.compare.believing import believe
from equivox.core.errors import UsageError
from equivox.core.scores import ScoringOptions
from equivox.run import opening
from equivox.run.pipeline import rescore
from equivox.run.verifying import Verification


def test_a_run_that_another_version_computed_here_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A baseline that was scored before an upgrade has the numbers of before."""
    run = sample_run(tmp_path / "run", "oracle", "vibe_gender:advisory", 99)
    shutil.copytree(run / "annotations" / "rules", run / "annotations" / "second")
    rescore(run, annotator="second", options=ScoringOptions(n_resamples=99))
    opening.note_computed(run)
    computed: list[Path] = []
    monkeypatch.setattr(
        believing, "verify_with_labels", lambda run, **_: computed.append(run) or Verification(run=run, manifest="")
    )
    believe(run)
    assert computed == []
    monkeypatch.setattr(opening, "__version__", "99.0")
    # Scores by another annotator that this version made say nothing of the run's own.
    rescore(run, annotator="second", options=ScoringOptions(n_resamples=99))
    believe(run)
    assert computed == [run]


def test_a_run_that_was_changed_is_not_believed_and_a_file_beside_it_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sample_run(tmp_path / "run", "random", "vibe_gender:story", limit=8)
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (copy / "notes.txt").write_text("hello")
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    believe(run)
    believe(copy)
    table = next(copy.glob("tables/*/values.csv"))
    table.write_text(table.read_text() + "\n")
    with pytest.raises(UsageError, match=r"cannot be used: .*values\.csv: changed since the run was scored"):
        believe(copy)
