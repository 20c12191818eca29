"""The builders on look-alikes of the full corpora: every count, planted damage, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from built import rows_in
from look_alike import crema_d_names, l2_arctic_prompts, make_crema_d, make_l2_arctic

from equivox.core.task import DataSource
from equivox.dataset_builders import build, open_builder
from equivox.dataset_builders.l2_arctic import identity_words, words_of
from equivox.dataset_builders.opening import open_corpus

pytestmark = pytest.mark.slow


def test_crema_d_in_full_size(tmp_path: Path) -> None:
    make_crema_d(tmp_path / "CREMA-D")
    report = build(open_builder("crema_d", tmp_path / "CREMA-D"), tmp_path / "data")
    assert (report.rows, report.differences, dict(report.problems)) == (7_442, (), {})
    record = json.loads((tmp_path / "data" / "crema_d" / "build.json").read_text())
    assert record["counts"] == {
        "clips": 7_442, "speakers": 91, "male": 48, "female": 43, "sentences": 12, "emotions": 6
    }  # fmt: skip
    corpus = open_corpus(DataSource(corpus="crema_d"), tmp_path / "data")
    assert len(corpus.samples) == 7_442
    assert all(item.columns["text"] for item in corpus.samples)


@pytest.mark.long
def test_crema_d_damage_is_found(tmp_path: Path) -> None:
    damage = make_crema_d(tmp_path / "CREMA-D", damage=True)
    report = build(open_builder("crema_d", tmp_path / "CREMA-D"), tmp_path / "data")
    assert report.rows == 7_441
    said = "\n".join([*report.differences, *(f"unusable: {name}" for name in report.problems)])
    for kind, expected in {
        "renamed file": "files not named <actor>_<sentence>_<emotion>_<level>, not used",
        "empty file": "unusable",
        "duplicate": "clips with the same content",
        "other sampling rate": "clips at 8,000 Hz instead of 16,000 Hz",
        "missing actor row": "speakers without a row in VideoDemographics.csv",
    }.items():
        (line,) = (line for line in said.splitlines() if line.startswith(expected))
        assert damage[kind] in line, kind
    assert "clips: 7,442 published, 7,441 found" in said
    assert "female: 43 published, 42 found" in said
    rows = rows_in(tmp_path / "data" / "crema_d", "clip_id", "gender", "audio_problem")
    assert {row["clip_id"] for row in rows if row["audio_problem"]} == {damage["empty file"]}
    without = {row["clip_id"].partition("_")[0] for row in rows if row["gender"] is None}
    assert without == {damage["missing actor row"]}


@pytest.mark.long
def test_l2_arctic_in_full_size(tmp_path: Path) -> None:
    make_l2_arctic(tmp_path / "l2arctic")
    report = build(open_builder("l2_arctic", tmp_path / "l2arctic"), tmp_path / "data")
    assert report.rows == 24 * 600
    record = json.loads((tmp_path / "data" / "l2_arctic" / "build.json").read_text())
    assert record["counts"] == {
        "recordings": 26_867, "clips": 14_400, "speakers": 24, "male": 12, "female": 12, "accents": 6, "sentences": 600
    }  # fmt: skip
    # What is not used is told, by reason: sentences that somebody did not read, that name a group, and the rest.
    fell = [line for line in report.differences if line.startswith("sentences not used")]
    assert [line.rpartition(": ")[2] for line in fell] == ["301 of 1,132", "99 of 1,132", "132 of 1,132"]
    rows = rows_in(tmp_path / "data" / "l2_arctic", "sentence", "text", "speaker")
    assert all(not identity_words() & words_of(row["text"]) for row in rows)
    assert {sum(row["speaker"] == speaker for row in rows) for speaker in {r["speaker"] for r in rows}} == {600}
    again = open_builder("l2_arctic", tmp_path / "l2arctic")
    assert {clip.columns["sentence"] for clip in again.clips()} == {row["sentence"] for row in rows}


@pytest.mark.long
def test_l2_arctic_damage_is_found(tmp_path: Path) -> None:
    damage = make_l2_arctic(tmp_path / "l2arctic", damage=True)
    report = build(open_builder("l2_arctic", tmp_path / "l2arctic"), tmp_path / "data")
    # A renamed file is a sentence that not all have read: the next one takes its place.
    assert report.rows == 14_400
    said = "\n".join(report.differences)
    assert damage["renamed file"] in said
    corpus = open_builder("l2_arctic", tmp_path / "l2arctic")
    used = {clip.columns["sentence"] for clip in corpus.clips()}
    assert damage["renamed file"].removesuffix(" (1)") not in used
    for kind, found in {
        "empty file": "\n".join(report.problems),
        "duplicate": said,
        "other sampling rate": said,
        "different transcript": said,
    }.items():
        assert (damage[kind] in found) == (damage[kind] in used), kind
    assert used & set(damage.values())


def test_the_names_follow_the_real_grammar() -> None:
    names = crema_d_names()
    assert (len(names), len(set(names))) == (7_442, 7_442)
    levels = {name.rpartition("_")[2] for name in names if "_IEO_" not in name or "_NEU_" in name}
    assert levels == {"XX"}
    prompts = l2_arctic_prompts()
    assert (len(prompts), len(set(prompts.values()))) == (1_132, 1_132)
    assert next(iter(prompts)) == "arctic_a0001" and list(prompts)[-1] == "arctic_b0539"


MEASURE = """
import resource, sys
from equivox.dataset_builders import build, open_builder
build(open_builder("crema_d", sys.argv[1]), sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.long
def test_a_build_stays_below_one_gibibyte(tmp_path: Path) -> None:
    """Clips of the real size: 650 MB of wav are more than a shard, and more than may be held in memory."""
    make_crema_d(tmp_path / "CREMA-D")

    noise = np.random.default_rng(0).integers(-3000, 3000, 45_000, dtype=np.int16)
    for n, name in enumerate(crema_d_names()):
        noise[:4] = n % 30_000, n // 30_000, 7, 11
        soundfile.write(tmp_path / "CREMA-D" / "AudioWAV" / f"{name}.wav", noise, 16_000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "CREMA-D"), str(tmp_path / "data")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(list((tmp_path / "data" / "crema_d").glob("*.parquet"))) == 2
    assert int(done.stdout) < 1024
