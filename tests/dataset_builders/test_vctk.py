from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.core.errors import RequestError
from equivox.dataset_builders import Clip, Vctk, build

HEADER = "ID  AGE  GENDER  ACCENTS  REGION COMMENTS "
ROWS = (
    "p225  23  F    English    Southern  England",
    "p292  23  M    NorthernIrish  Belfast",
    "p280  25  F    Unknown  France (mic2 files unavailable)",
    "s5  24  F    Welsh",
)


@pytest.fixture
def vctk(tmp_path: Path, write_audio: Callable[..., None]) -> Path:
    """Four speakers, two shared sentences (001, 024) and a newspaper sentence (025) each; both microphones for 001."""
    root = tmp_path / "VCTK-Corpus-0.92"
    for n, speaker in enumerate(row.split()[0] for row in ROWS):
        (root / "txt" / speaker).mkdir(parents=True)
        for number, text in (("001", "Milk is white."), ("024", "Rain\n falls."), ("025", f"{speaker} was there.")):
            name = f"{speaker}_{number}"
            write_audio(root / "wav48_silence_trimmed" / speaker / f"{name}_mic1.flac", seed=100 * n + int(number))
            (root / "txt" / speaker / f"{name}.txt").write_text(text)
        write_audio(root / "wav48_silence_trimmed" / speaker / f"{speaker}_001_mic2.flac", seed=100 * n)
    (root / "speaker-info.txt").write_text("\n".join((HEADER, *ROWS)) + "\n")
    return root


def clips_of(source: Path) -> dict[str, Clip]:
    return {clip.clip_id: clip for clip in Vctk(source).clips()}


def said(source: Path, words: str) -> str:
    (line,) = [line for line in Vctk(source).differences() if words in line]
    return line


def test_a_clip_carries_what_the_table_says_of_its_speaker(vctk: Path) -> None:
    clips = clips_of(vctk)
    assert list(clips) == [
        f"{speaker}_{number}" for speaker in ("p225", "p280", "p292", "s5") for number in ("001", "024")
    ]
    found = clips["p292_024"]
    assert found.path == vctk / "wav48_silence_trimmed" / "p292" / "p292_024_mic1.flac"
    assert (found.speaker, found.text) == ("p292", "Rain falls.")
    assert found.columns == {
        "sentence": "024", "gender": "male", "accent": "northern irish", "age": 23, "age_group": "20-29",
        "region": "Belfast",
    }  # fmt: skip
    assert clips["p225_001"].columns["region"] == "Southern England"
    assert (clips["p280_001"].columns["accent"], clips["p280_001"].columns["region"]) == (None, "France")
    assert (clips["s5_001"].columns["accent"], clips["s5_001"].columns["region"]) == ("welsh", None)
    assert said(vctk, "without an accent") == "speakers without an accent (null): 1 (p280)"


def test_sentences_of_one_speaker_alone_are_not_used_and_counted(vctk: Path) -> None:
    # 4 speakers x 3 recordings by mic1, one of each is from a newspaper.
    assert said(vctk, "other sentences").endswith("4 of 12 by mic1")
    assert Vctk.FACTS.strata == ("sentence",)


def test_the_other_microphone_is_an_option(vctk: Path) -> None:
    builder = Vctk(vctk, microphone="mic2")
    assert [clip.path.name for clip in builder.clips()] == [
        f"{speaker}_001_mic2.flac" for speaker in ("p225", "p280", "p292", "s5")
    ]
    with pytest.raises(RequestError, match=r"`microphone` is one of mic1, mic2, got 'mic3'"):
        Vctk(vctk, microphone="mic3")


def test_damage_is_named_and_counted(vctk: Path, write_audio: Callable[..., None], tmp_path: Path) -> None:
    audio = vctk / "wav48_silence_trimmed"
    (audio / "p225" / "p225_001_mic1.flac").unlink()
    whole = (audio / "p225" / "p225_024_mic1.flac").read_bytes()
    (audio / "p225" / "p225_024_mic1.flac").write_bytes(whole[: len(whole) // 2])
    (audio / "p292" / "p292_001_mic1.flac").rename(audio / "p292" / "p292_1_mic1.flac")
    (vctk / "txt" / "s5" / "s5_001.txt").write_text("Milk is black.")
    (vctk / "txt" / "p280" / "p280_024.txt").unlink()
    write_audio(audio / "p999" / "p999_001_mic1.flac", seed=999)
    rows = [
        ROWS[0].replace("  F", "  W"),
        ROWS[1].replace("23", "adult"),
        *ROWS[2:],
        "p300  20  F  Irish  Cork",
        "p301",
    ]
    (vctk / "speaker-info.txt").write_text("\n".join((HEADER, *rows)) + "\n")
    assert said(vctk, "not named") == (
        "files not named <speaker>_<number>_<mic1|mic2>, not used: 1 (p292/p292_1_mic1.flac)"
    )
    assert said(vctk, "not that of most speakers").endswith("not used: 1 (s5_001)")
    assert said(vctk, "cannot be read").endswith("1 (line 7)")
    assert said(vctk, "without a folder").endswith("1 (p300)")
    assert said(vctk, "without a row").endswith("1 (p999)")
    assert said(vctk, "neither F nor M") == "speakers whose gender is neither F nor M (null): 1 (p225)"
    assert said(vctk, "age is no number") == "speakers whose age is no number (null): 1 (p292)"
    assert said(vctk, "without a recording").endswith("2 (p225_001, p292_001)")
    assert said(vctk, "text null").endswith("2 (p280_024, p999_001)")
    clips = clips_of(vctk)
    assert (clips["p225_024"].columns["gender"], clips["p999_001"].columns["gender"]) == (None, None)
    problems = build(Vctk(vctk), tmp_path / "built").problems
    assert list(problems) == ["p225_024"]


def test_something_else_is_refused_in_one_line(vctk: Path, tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=r"is not VCTK 0\.92: expected wav48_silence_trimmed/, txt/ and speaker-info"
    ):
        Vctk(tmp_path)
    (vctk / "speaker-info.txt").write_text("ID,AGE,SEX\np225,23,F\n")
    with pytest.raises(RequestError, match=r"the columns are ID, AGE, GENDER, ACCENTS, REGION, got 'ID,AGE,SEX'"):
        Vctk(vctk).clips()
