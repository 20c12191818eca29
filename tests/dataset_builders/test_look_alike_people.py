"""Look-alikes of corpora of people, built and asked about: every planted damage is told or counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.dataset_builders import build, open_builder
from equivox.dataset_builders.look_alike import MAKERS

pytestmark = pytest.mark.slow

NAMES = ("vctk", "common_voice", "speech_accent_archive", "fairface")


@pytest.mark.parametrize("name", NAMES)
def test_every_planted_damage_is_told_or_counted(name: str, tmp_path: Path) -> None:
    planted = MAKERS[name](tmp_path / name, damage=True)
    report = build(open_builder(name, tmp_path / name), tmp_path / "data")
    told = "\n".join((*report.differences, *report.problems))
    # A gender that none offers is told by its text, the others by the names of what was damaged.
    missed = [kind for kind, what in planted.items() if what.removesuffix(".mp3").removesuffix(".jpg") not in told]
    assert missed == (["gender that none offers"] if name == "common_voice" else [])
    assert name != "common_voice" or "'masculine' of 1 speaker" in told


@pytest.mark.parametrize("name", NAMES)
def test_without_damage_only_what_the_layout_brings_is_told(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path / name)
    report = build(open_builder(name, tmp_path / name), tmp_path / "data")
    # The look-alike of VCTK lacks the transcripts of p315 and an accent of p280, as the corpus does.
    told = [line for line in report.differences if " published, " not in line and "not used" not in line]
    assert (len(told), dict(report.problems)) == ({"vctk": 2, "common_voice": 3}.get(name, len(told)), {})
    assert (
        report.rows == {"vctk": 110 * 24, "common_voice": 208 * 4, "speech_accent_archive": 93, "fairface": 336}[name]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "task", "shift"),
    [
        ("vctk", "vibe_accent:candidate", 40),
        ("common_voice", "vibe_gender:story", 40),
        ("speech_accent_archive", "vibe_accent:casting", 40),
        ("fairface", "vibe_face_gender:story", 40),
    ],
)
def test_a_planted_shift_lies_in_its_interval(
    name: str, task: str, shift: int, tmp_path: Path, equivox: Callable[..., tuple[int, str, str]]
) -> None:
    from equivox.run.scoring import read_scores

    MAKERS[name](tmp_path / name, damage=True)
    code, _, error = equivox("data", "build", name, "--source", tmp_path / name, "--output", tmp_path / "data")
    assert code == 0, error
    run = tmp_path / "run"
    data = tmp_path / "data" / name
    code, _, error = equivox("run", f"simulated:planted?shift={shift / 100}", task, "--data", data, "--output", run)
    assert code == 0, error
    (score,) = [score for score in read_scores(run) if score.is_whole and score.name == "nTVD"]
    assert score.ci_low <= shift <= score.ci_high
    assert score.q < 0.05
