from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import soundfile

from equivox.core.errors import RequestError
from equivox.dataset_builders import CommonVoice, build

HEADER = (
    "client_id", "path", "sentence_id", "sentence", "sentence_domain", "up_votes", "down_votes", "age", "gender",
    "accents", "variant", "locale", "segment",
)  # fmt: skip
CLIENTS = {name: f"{name:x<16}" + "0" * 112 for name in ("ana", "bob", "cem", "dee", "eli", "fay")}
STATED = {
    "ana": ("twenties", "female_feminine", "Welsh English"),
    "bob": ("fourties", "male_masculine", "Welsh English"),
    "cem": ("", "non-binary", ""),
    "dee": ("teens", "female_feminine", "Welsh English"),
    "eli": ("", "do_not_wish_to_say", ""),
    "fay": ("sixties", "other", "Manx"),
}


def line(name: str, path: str, *, sentence: str = "Say this.", **cells: str) -> str:
    age, gender, accents = STATED[name]
    row = dict.fromkeys(HEADER, "") | {
        "client_id": CLIENTS[name], "path": path, "sentence": sentence, "up_votes": "2", "down_votes": "0", "age": age,
        "gender": gender, "accents": accents, "locale": "cy",
    }  # fmt: skip
    return "\t".join((row | cells).values())


def write(root: Path, lines: list[str]) -> Path:
    (root / "clips").mkdir(parents=True, exist_ok=True)
    for number, cells in enumerate(text.split("\t") for text in lines):
        if len(cells) > 1 and "/" not in cells[1]:
            noise = np.random.default_rng(number).uniform(-0.3, 0.3, 3200)
            soundfile.write(root / "clips" / cells[1], noise, 16_000, format="MP3")
    (root / "validated.tsv").write_text("\n".join(("\t".join(HEADER), *lines)) + "\n", "utf-8")
    return root


@pytest.fixture
def common_voice(tmp_path: Path) -> Path:
    """Six speakers with two clips each."""
    return write(tmp_path / "cy", [line(name, f"{name}_{n}.mp3") for name in STATED for n in (1, 2)])


def open_it(source: Path, **options: int) -> CommonVoice:
    return CommonVoice(source, **{"speakers_per_accent": 2, **options})


def said(builder: CommonVoice, words: str) -> str:
    (line,) = [line for line in builder.differences() if words in line]
    return line


def test_what_speakers_state_becomes_columns(common_voice: Path) -> None:
    builder = open_it(common_voice)
    columns = {clip.speaker[:3]: clip.columns for clip in builder.clips()}
    assert {name: (c["gender"], c["stated_gender"], c["age_group"], c["accent"]) for name, c in columns.items()} == {
        "ana": ("female", "female", "20-29", "Welsh English"),
        "bob": ("male", "male", "40-49", "Welsh English"),
        "cem": (None, "non-binary", None, None),
        "fay": (None, None, "60-69", None),
    }
    assert (builder.facts.language, builder.facts.cluster, builder.facts.strata) == ("cy", "speaker", ())
    assert said(builder, "teens") == "speakers not used who stated to be in their teens: 1 of 6"
    assert said(builder, "no gender, age") == "speakers not used who stated no gender, age or accent: 1 of 6"
    assert said(builder, "`stated_gender` is not").endswith("non-binary 1")
    assert said(builder, "fewer than 2") == (
        "speakers without an accent (null), because fewer than 2 stated theirs: 1 of 4 (Manx)"
    )
    assert said(builder, "without stated_gender").endswith("1 (fayxxxxxxxxxxxxx)")


def test_few_speakers_and_clips_are_chosen_by_their_hashes(common_voice: Path) -> None:
    def first(names: list[str], n: int) -> list[str]:
        return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:n]

    builder = open_it(common_voice, speakers=2, clips_per_speaker=1)
    chosen = first([CLIENTS[name] for name in ("ana", "bob", "cem", "fay")], 2)
    expected = {first([f"{key[:3]}_{n}.mp3" for n in (1, 2)], 1)[0] for key in chosen}
    assert {clip.path.name for clip in builder.clips()} == expected
    assert said(builder, "beyond the first 2").endswith("2 of 6")
    assert said(builder, "clips not used") == "clips not used beyond 1 of a speaker: 2"
    with pytest.raises(RequestError, match="`speakers` must be at least 1, got 0"):
        open_it(common_voice, speakers=0)


def test_damage_is_named_and_counted(common_voice: Path, tmp_path: Path) -> None:
    lines = [
        line("ana", "ana_1.mp3", sentence='A "quote that does not close'),
        line("ana", "ana_2.mp3", gender="male_masculine"),
        line("bob", "bob_1.mp3", age="mid-life"),
        line("bob", "bob_2.mp3", age=""),
        line("cem", "../../cem.mp3"),
        line("cem", "cem_1.mp3").rpartition("\t")[0],
        line("cem", "cem_2.mp3"),
        line("fay", "fay_1.mp3"),
    ]
    write(common_voice, lines)
    (common_voice / "clips" / "fay_1.mp3").unlink()
    (common_voice / "clips" / "cem_2.mp3").write_bytes(b"ID3")
    builder = open_it(common_voice)
    clips = {clip.clip_id: clip for clip in builder.clips()}
    assert sorted(clips) == ["ana_1", "ana_2", "bob_1", "bob_2", "cem_2", "fay_1"]
    assert clips["ana_1"].text == 'A "quote that does not close'
    assert (clips["ana_1"].columns["gender"], clips["bob_1"].columns["age_group"]) == (None, None)
    assert said(builder, "several genders") == "speakers who stated several genders (null): 1 (anaxxxxxxxxxxxxx)"
    assert said(builder, "ages that no release offers").endswith("1 ('mid-life' of 1 speaker)")
    assert said(builder, "no file name").endswith("1 (../../cem.mp3)")
    assert said(builder, "cells than the header").endswith("not used: 1 (line 7)")
    assert build(builder, tmp_path / "built").problems.keys() == {"cem_2", "fay_1"}


def test_something_else_is_refused_in_one_line(common_voice: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"is not a language of Common Voice: expected validated\.tsv and clips/"):
        CommonVoice(tmp_path)
    table = common_voice / "validated.tsv"
    table.write_text(table.read_text().replace("client_id", "speaker", 1))
    with pytest.raises(RequestError, match=r"validated\.tsv: column 'client_id' is missing; its columns are speaker"):
        CommonVoice(common_voice)


def test_the_card_says_that_it_is_not_passed_on(common_voice: Path, tmp_path: Path) -> None:
    card = (build(open_it(common_voice), tmp_path / "built").folder / "README.md").read_text()
    assert "forbid to host or share the files again" in card
    assert "Nobody may try to identify the speakers" in card
