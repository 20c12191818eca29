from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import equivox.dataset_builders.embedded
from equivox.core.errors import UsageError
from equivox.core.media import decode_audio
from equivox.dataset_builders import open_builder, sample_source
from equivox.dataset_builders.schema import rows

SAMPLE = Path(equivox.dataset_builders.embedded.ARCHIVES)
SCRIPTS = Path(__file__).resolve().parents[1] / "sample"


@pytest.mark.parametrize("name", ["crema_d", "l2_arctic"])
def test_the_sample_is_as_stated_and_usable(name: str) -> None:
    builder = open_builder(name, sample_source(name))
    assert builder.differences() == []
    assert builder.facts.licence_id == "cc0-1.0"
    table = [row for row, audio in rows(builder) if audio.problem is None and audio.sampling_rate == 16_000]
    assert len(table) == 288
    assert all(1.0 < row["duration_s"] < 6.0 and row["text"] for row in table)
    assert len({row["audio_sha256"] for row in table}) == 288


def test_genders_share_sentences_emotions_and_everything_else() -> None:
    clips = open_builder("crema_d", sample_source("crema_d")).clips()
    strata = Counter((c.columns["sentence"], c.columns["emotion"], c.columns["gender"]) for c in clips)
    assert (len(strata), set(strata.values())) == (24, {12})
    actors = {c.speaker: c.columns for c in clips}
    for column in ("age", "race", "ethnicity"):
        of = {g: Counter(a[column] for a in actors.values() if a["gender"] == g) for g in ("female", "male")}
        assert of["female"] == of["male"]


def test_accents_have_six_female_and_six_male_speakers() -> None:
    clips = open_builder("l2_arctic", sample_source("l2_arctic")).clips()
    speakers = {c.speaker: (c.columns["accent"], c.columns["gender"]) for c in clips}
    counts = Counter(speakers.values())
    assert {accent for accent, _ in counts} == {"arabic", "hindi", "korean", "mandarin", "spanish", "vietnamese"}
    assert (len(counts), set(counts.values())) == (12, {6})
    assert set(Counter(c.columns["sentence"] for c in clips).values()) == {72}


def test_the_sample_of_continuations_is_as_stated_and_swaps_the_options_between_groups() -> None:
    builder = open_builder("spoken_stereoset", sample_source("spoken_stereoset"))
    assert builder.differences() == []
    assert builder.facts.licence_id == "cc0-1.0"
    found = [(row, audio) for row, audio in rows(builder) if audio.problem is None and audio.sampling_rate == 16_000]
    assert len(found) == 96 and all(0.5 < row["duration_s"] < 5.0 for row, _ in found)
    pairs: dict[str, set[tuple[str, str]]] = {}
    for row, _ in found:
        pairs.setdefault(row["context"], set()).add((row["stereotypical"], row["anti_stereotypical"]))
    assert len(pairs) == 16
    for swapped in pairs.values():
        (first, second) = swapped
        assert first == second[::-1]


def test_the_sample_stays_small() -> None:
    sizes = {path.name: path.stat().st_size for path in SAMPLE.iterdir()}
    assert len(sizes) == 4 and sizes["spoken_stereoset.parquet"] < 1_000_000 and sum(sizes.values()) < 6_000_000


def test_the_sample_is_unpacked_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_source.cache_clear()
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "cache"))
    first = sample_source("genres")
    assert first.is_relative_to(tmp_path / "cache") and (first / "facts.json").is_file()
    made = (first / "facts.json").stat().st_mtime_ns
    sample_source.cache_clear()
    assert sample_source("genres") == first and (first / "facts.json").stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == [first.name]
    # Where nothing can be written to the cache, a temporary folder takes its place.
    sample_source.cache_clear()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EQUIVOX_CACHE", str(tmp_path / "file"))
    other = sample_source("genres")
    assert other != first and sorted(p.name for p in other.iterdir()) == sorted(p.name for p in first.iterdir())
    sample_source.cache_clear()


def test_packing_what_was_unpacked_gives_the_same_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    subprocess.run([sys.executable, SCRIPTS / "pack.py", tmp_path], check=True)  # nothing to pack
    rows = pq.read_table(SAMPLE / "crema_d.parquet").to_pylist()
    source = sample_source("crema_d")
    assert {row["path"] for row in rows} == {p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file()}
    assert all((source / row["path"]).read_bytes() == row["bytes"] for row in rows)


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(UsageError, match="no sample of 'crema'; did you mean crema_d"):
        sample_source("crema")


def test_the_script_says_what_it_needs(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, SCRIPTS / "make_sample.py", tmp_path], capture_output=True, text=True, env={"PATH": ""}
    )
    assert (run.returncode, run.stderr) == (2, "espeak-ng is missing; install it to make the sample again\n")
    assert not list(tmp_path.iterdir())


def fundamental(samples: np.ndarray) -> float:
    """Median pitch in Hz over voiced frames of 64 ms: the first strong peak of the autocorrelation."""
    found = []
    for start in range(0, len(samples) - 1024, 1024):
        frame = samples[start : start + 1024]
        correlation = np.correlate(frame, frame, "full")[1023:]
        window = correlation[40:246]  # 400 to 65 Hz at 16 kHz
        peaks = np.flatnonzero(window > 0.8 * window.max())
        if window.max() > 0.5 * correlation[0] > 0.5:
            found.append(16_000 / (40 + peaks[0]))
    return float(np.median(found))


@pytest.mark.parametrize("name", ["crema_d", "l2_arctic"])
def test_female_voices_are_higher_than_male_voices(name: str) -> None:
    pitch: dict[str, list[float]] = {"female": [], "male": []}
    for clip in open_builder(name, sample_source(name)).clips():
        if clip.columns["sentence"] in ("TTC", "arctic_a9001"):
            decoded = decode_audio(clip.path.read_bytes(), name=clip.clip_id)
            pitch[str(clip.columns["gender"])].append(fundamental(decoded))
    assert min(pitch["female"]) > 150 > max(pitch["male"])
