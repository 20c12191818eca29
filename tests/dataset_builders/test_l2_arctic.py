from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.core.errors import UsageError
from equivox.dataset_builders import L2Arctic
from equivox.dataset_builders import l2_arctic as l2_arctic_builder
from equivox.dataset_builders.l2_arctic import SPEAKERS, identity_words, words_of

NEUTRAL = ("The door is open.", "Bread is on the table.", "It rains.", "The lamp is small.")


def test_a_clip_carries_speaker_accent_and_transcript(l2_arctic: Callable[..., Path]) -> None:
    source = l2_arctic(NEUTRAL)
    clips = L2Arctic(source).clips()
    assert len(clips) == 3 * 4
    assert [c.clip_id for c in clips] == sorted(c.clip_id for c in clips)
    first = clips[0]
    assert (first.clip_id, first.speaker, first.text) == ("ABA_arctic_a0001", "ABA", "The door is open.")
    assert first.path == source / "ABA" / "wav" / "arctic_a0001.wav"
    assert first.columns == {"sentence": "arctic_a0001", "gender": "male", "accent": "arabic"}


def test_the_published_speakers_are_two_women_and_two_men_per_language() -> None:
    assert sorted(SPEAKERS) == ["arabic", "hindi", "korean", "mandarin", "spanish", "vietnamese"]
    for speakers in SPEAKERS.values():
        assert sorted(speakers.values()) == ["female", "female", "male", "male"]
    assert len({name for speakers in SPEAKERS.values() for name in speakers}) == 24


def test_a_table_in_the_source_replaces_the_published_speakers(l2_arctic: Callable[..., Path]) -> None:
    source = l2_arctic(NEUTRAL)
    (source / "speakers.csv").write_text("speaker,gender,accent\nABA,Female,Welsh\nXYZ,male,welsh\n")
    builder = L2Arctic(source)
    columns = {clip.speaker: clip.columns for clip in builder.clips()}
    assert (columns["ABA"]["gender"], columns["ABA"]["accent"]) == ("female", "welsh")
    assert (columns["BWC"]["gender"], columns["BWC"]["accent"]) == (None, None)
    lines = builder.differences()
    assert "speakers of the table without a folder: 1 (XYZ)" in lines
    assert "speakers without a row in the table (kept, gender and accent null): 2 (BWC, SKA)" in lines


def test_only_sentences_that_all_read_and_that_name_nobody_are_kept(l2_arctic: Callable[..., Path]) -> None:
    source = l2_arctic((*NEUTRAL, "She sings.", "The old lamp.", "The girl's lamp.", "An English lamp."))
    (source / "SKA" / "wav" / "arctic_a0002.wav").unlink()
    builder = L2Arctic(source)
    assert sorted({clip.columns["sentence"] for clip in builder.clips()}) == [
        "arctic_a0001",
        "arctic_a0003",
        "arctic_a0004",
        "arctic_a0005",
    ]
    lines = builder.differences()
    assert "sentences not used that not every speaker read: 1 of 8" in lines
    assert "sentences not used that name a gender, an age or a race: 3 of 8" in lines
    # "She" is somebody else; the sentence is used because the others are fewer than 600.
    assert "sentences used that say he or she, as fewer than 600 do not: 1 of 8" in lines
    assert "sentences: 600 published, 4 found" in lines
    assert "transcripts without a recording: 1 (SKA/arctic_a0002)" in lines


def test_pronouns_make_up_the_number_and_no_more(
    l2_arctic: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = l2_arctic((*NEUTRAL, "She sings.", "He sleeps.", "His old lamp."))
    for wanted, pronouns in ((4, 0), (5, 1), (6, 2), (7, 2)):
        monkeypatch.setattr(l2_arctic_builder, "SENTENCES", wanted)
        builder = L2Arctic(source)
        chosen = {str(clip.columns["sentence"]) for clip in builder.clips()}
        assert {f"arctic_a{n:04d}" for n in range(1, 5)} <= chosen and len(chosen) == 4 + pronouns
        assert "arctic_a0007" not in chosen
        left = [line for line in builder.differences() if line.startswith("sentences not used that say he or she")]
        assert left == ([f"sentences not used that say he or she: {2 - pronouns} of 7"] if pronouns < 2 else [])


def test_the_sentences_used_are_those_with_the_smallest_hash(
    l2_arctic: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = l2_arctic(NEUTRAL)
    ids = [f"arctic_a{n:04d}" for n in range(1, 5)]
    expected = sorted(sorted(ids, key=lambda i: hashlib.sha256(i.encode()).hexdigest())[:2])
    monkeypatch.setattr(l2_arctic_builder, "SENTENCES", 2)
    builder = L2Arctic(source)
    assert sorted({clip.columns["sentence"] for clip in builder.clips()}) == expected
    assert "sentences not used beyond the first 2 by SHA-256 of their id: 2 of 4" in builder.differences()


def test_damage_is_named(l2_arctic: Callable[..., Path]) -> None:
    source = l2_arctic(NEUTRAL)
    (source / "ABA" / "wav" / "notes.wav").write_bytes(b"x")
    (source / "ABA" / "wav" / "arctic_a0001.flac").write_bytes(b"x")
    (source / "ABA" / "transcript" / "arctic_a0001.txt").write_text("The door is shut.")
    (source / "SKA" / "transcript" / "arctic_a0003.txt").unlink()
    builder = L2Arctic(source)
    lines = builder.differences()
    assert "files not named arctic_a<number> or arctic_b<number>, not used: 1 (ABA/notes.wav)" in lines
    assert "second files of a clip, not used: 1 (ABA/arctic_a0001.flac)" in lines
    assert "sentences whose transcripts differ between speakers: 1 (arctic_a0001)" in lines
    assert "clips without a transcript (text null): 1 (SKA_arctic_a0003)" in lines
    assert len(builder.clips()) == 12


def test_speakers_unpacked_into_a_folder_of_their_name_are_found(l2_arctic: Callable[..., Path]) -> None:
    source = l2_arctic(NEUTRAL)
    inner = source / "ABA" / "ABA"
    inner.mkdir()
    for part in ("wav", "transcript"):
        (source / "ABA" / part).rename(inner / part)
    assert len(L2Arctic(source).clips()) == 12


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ABA.zip").write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"is not L2-ARCTIC: expected <SPEAKER>/wav/.*found ABA\.zip;"):
        L2Arctic(tmp_path)


def test_whole_words_only() -> None:
    words = identity_words()
    assert {"he", "her", "himself", "mother", "old", "chinese", "ma'am"} <= words
    assert all(word == word.lower() for word in words)
    assert not words & words_of("The shepherd's manual, other heroics, a golden manner, there, then, history.")
    assert words & words_of("It was HERS.")
    assert words & words_of("the queen\u2019s lamp")
