"""What a signed statement says of a run, and runs that are not believed."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from sample_runs import sample_run

from equivox.compare import believing
from equivox.compare.believing import PREDICATE, believe, check_statement
from equivox.core.errors import RequestError
from equivox.core.scores import ScoringOptions
from equivox.run import opening
from equivox.run.pipeline import rescore
from equivox.run.verifying import Verification


def statement(folder: Path, **beside: str) -> dict[str, Any]:
    """A statement about the manifest 1…1 and files beside it, by their contents."""
    digests = {"manifest.json": "1" * 64}
    digests |= {name.replace("_", "."): hashlib.sha256(text.encode()).hexdigest() for name, text in beside.items()}
    return {
        "predicateType": PREDICATE,
        "subject": [{"name": name, "digest": {"sha256": value}} for name, value in digests.items()],
        "predicate": {"signed": "2026-01-01", "verdict": "verified"},
    }


def checked(folder: Path, said: dict[str, Any], manifest: str = "1" * 64) -> Verification:
    found = Verification(run=folder, manifest=manifest)
    check_statement(found, said, folder / "x.dsse.json")
    return found


def test_a_statement_that_fits_is_a_remark_with_its_time(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("the page")
    found = checked(tmp_path, statement(tmp_path, page_html="the page"))
    assert found.problems == [] and len(found.remarks) == 1
    assert found.remarks[0].endswith("signed at 2026-01-01 (as the signer says), after verify said: verified")


def test_what_does_not_fit_a_statement_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("another page")
    found = checked(tmp_path, statement(tmp_path, page_html="the page", gone_html="the page"))
    assert found.problems == [f"{tmp_path / 'page.html'} is not the file that was signed: it changed"]
    assert "gone.html was signed too, but is not beside" in found.remarks[1]
    above = statement(tmp_path)
    above["subject"].append({"name": "../page.html", "digest": {"sha256": "2" * 64}})
    (tmp_path / "in").mkdir()
    assert "../page.html was signed too" in checked(tmp_path / "in", above).remarks[1]
    other = checked(tmp_path, statement(tmp_path), manifest="3" * 64)
    (problem,) = other.problems
    assert f"it signs the manifest {'1' * 16}, here it is {'3' * 16}" in problem and other.remarks == []
    for wrong in ({"predicateType": "urn:else"}, {"subject": []}, {"subject": 3}, {"predicate": {}}):
        (problem,) = checked(tmp_path, statement(tmp_path) | wrong).problems
        assert "is signed, but it is no statement about a run" in problem


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
    with pytest.raises(RequestError, match=r"is not used, .*values\.csv: changed since the run was scored"):
        believe(copy)
