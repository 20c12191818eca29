"""Look-alikes of corpora of people, built and asked about: every planted damage is told or counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from look_alike import MAKERS

from equivox.dataset_builders import build, open_builder

pytestmark = pytest.mark.slow

NAMES = (
    pytest.param("vctk", marks=pytest.mark.long),
    "fairface",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_planted_damage_is_told_or_counted(name: str, tmp_path: Path) -> None:
    planted = MAKERS[name](tmp_path / name, damage=True)
    report = build(open_builder(name, tmp_path / name), tmp_path / "data")
    told = "\n".join((*report.differences, *report.problems))
    assert [kind for kind, what in planted.items() if what.removesuffix(".jpg") not in told] == []


@pytest.mark.parametrize("name", NAMES)
def test_without_damage_only_what_the_layout_brings_is_told(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path / name)
    report = build(open_builder(name, tmp_path / name), tmp_path / "data")
    # The look-alike of VCTK lacks the transcripts of p315 and an accent of p280, as the corpus does.
    told = [line for line in report.differences if " published, " not in line and "not used" not in line]
    assert (len(told), dict(report.problems)) == ({"vctk": 2}.get(name, len(told)), {})
    rows = {"vctk": 110 * 24, "fairface": 6 * 2 * 7 * 4}
    assert report.rows == rows[name]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("vctk", "vibe_accent:candidate"),
        ("fairface", "vibe_face_gender:story"),
    ],
)
def test_a_planted_shift_of_40_is_measured(
    name: str, task: str, tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]
) -> None:
    from equivox.run.scoring import read_scores

    MAKERS[name](tmp_path / name, damage=True)
    code, _, error = equivox("data", "build", name, "--source", tmp_path / name, "--output", tmp_path / "data")
    assert code == 0, error
    run = tmp_path / "run"
    data = tmp_path / "data" / name
    code, _, error = equivox("run", "simulated:planted?shift=0.4", task, "--data", data, "--output", run)
    assert code == 0, error
    (score,) = [score for score in read_scores(run) if score.is_whole and score.name == "nTVD"]
    assert 35 <= score.estimate <= 45
    assert score.q < 0.05
