"""A run that was pushed to the Hub is verified from there, and from the folder that was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from sample_runs import sample_run

from equivox.run.manifest import hashes_of, read_manifest

# huggingface_hub hands files to its HTTP library in a way that the latter calls outdated.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

ADDRESS = "hf://datasets/org/answers"


@pytest.fixture
def pushed(hub: Any, tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    sample_run(tmp_path / "run", "biased", "vibe_gender:advisory", limit=24)
    equivox.done("data", "push", tmp_path / "run", "--repo", "org/answers", "-o", tmp_path / "out", "--push")
    return tmp_path / "out"


def test_a_pushed_run_is_verified_from_the_hub(pushed: Path, tmp_path: Path, hub: Any, equivox: Cli) -> None:
    assert read_manifest(pushed)["files"] == hashes_of(pushed)
    here = equivox.done("verify", pushed, "--quiet")
    assert here.startswith("verified: "), here
    there = equivox.done("verify", ADDRESS, "--quiet", "--data", "sample", "--json", tmp_path / "found.json")
    assert there.splitlines()[1] == here.splitlines()[1]  # the same manifest
    assert json.loads((tmp_path / "found.json").read_text())["run"] == ADDRESS
    before = hub.sent("^GET /api/datasets/org/answers/revision/v1")
    equivox.done("verify", f"{ADDRESS}@v1", "--quiet")
    assert (before, hub.sent("^GET /api/datasets/org/answers/revision/v1")) == (0, 1)


def test_a_change_on_the_hub_is_found(pushed: Path, hub: Any, equivox: Cli) -> None:
    files = hub.repos["dataset", "org/answers"].files
    files["scores.json"] = files["scores.json"].replace(b'"min_coverage": 0.8', b'"min_coverage": 0.1')
    code, out, _ = equivox("verify", ADDRESS, "--quiet")
    assert code == 1 and "scores.json" in out and "checksum does not fit" in out


def test_what_the_hub_does_not_give_is_one_line(pushed: Path, hub: Any, equivox: Cli) -> None:
    for address, words in (
        ("hf://datasets/org/nothing", "the Hub has no repository org/nothing"),
        ("hf://datasets/answers", "owner/name"),
        ("hf://datasets/", "owner/name"),
    ):
        assert words in equivox.refused("verify", address)
    hub.fail("^GET /api/datasets/org/answers/revision", 403)
    assert "may not read org/answers" in equivox.refused("verify", ADDRESS)
