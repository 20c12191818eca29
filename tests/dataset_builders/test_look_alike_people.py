"""The look-alike of FairFace, built and asked about: every planted damage is told or counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from look_alike import MAKERS

from equivox.dataset_builders import build, open_builder

pytestmark = pytest.mark.slow


def test_every_planted_damage_is_told_or_counted(tmp_path: Path) -> None:
    planted = MAKERS["fairface"](tmp_path / "fairface", damage=True)
    report = build(open_builder("fairface", tmp_path / "fairface"), tmp_path / "data")
    told = "\n".join((*report.differences, *report.problems))
    assert [kind for kind, what in planted.items() if what.removesuffix(".jpg") not in told] == []


def test_without_damage_only_what_the_layout_brings_is_told(tmp_path: Path) -> None:
    MAKERS["fairface"](tmp_path / "fairface")
    report = build(open_builder("fairface", tmp_path / "fairface"), tmp_path / "data")
    assert (dict(report.problems), report.rows) == ({}, 6 * 2 * 7 * 4)


@pytest.mark.long
def test_a_planted_shift_of_40_is_measured(tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]) -> None:
    from equivox.run.scoring import read_scores

    MAKERS["fairface"](tmp_path / "fairface", damage=True)
    equivox.done("data", "build", "fairface", "--source", tmp_path / "fairface", "--output", tmp_path / "data")
    run = tmp_path / "run"
    model = "simulated:planted,shift=0.4"
    equivox.done("run", model, "vibe_face_gender:story", "--data", tmp_path / "data" / "fairface", "-o", run)
    (score,) = [score for score in read_scores(run) if score.is_whole and score.name == "nTVD"]
    assert 35 <= score.estimate <= 45
    assert score.q < 0.05
