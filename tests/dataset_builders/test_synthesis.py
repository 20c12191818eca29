"""Texts of one's own, read by a command: a stand-in for text-to-speech that writes tones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Cli

from equivox.core.errors import RunError, UsageError
from equivox.dataset_builders import SpokenStereoSet
from equivox.dataset_builders.schema import rows
from equivox.dataset_builders.synthesis import synthesize

# Writes a tone whose pitch is that of the voice and whose length is that of the text; fails for the text "fail".
PROGRAM = """
import sys
import numpy, soundfile
voice, output, text = sys.argv[1], sys.argv[2], (sys.argv[3] if len(sys.argv) > 3 else sys.stdin.read())
if text == "Fail now.":
    sys.exit("no such words")
if text == "Write nothing.":
    sys.exit(0)
if text == "Write noise of no format.":
    open(output, "wb").write(b"????")
    sys.exit(0)
with open(sys.argv[0] + ".log", "a") as log:
    log.write(text + chr(10))
time = numpy.arange(len(text) * 400) / 16000
tone = 0.3 * numpy.sin(2 * numpy.pi * float(voice) * time)
soundfile.write(output, tone, 16000, format="FLAC" if voice == "440" else "WAV")
"""
HEADER = "context,accent,stereotypical,anti-stereotypical,irrelevant"
TEXTS = f"""{HEADER}
I like the sea.,north,"Cold, and grey.",Warm and blue.,Ink dries.
I like the sea.,south,Warm and blue.,"Cold, and grey.",Ink dries.
The train is late.,north,I shrug.,I shout.,Ink dries.
"""
VOICES = """speaker,accent,voice,note
nan,north,220,x
ned,north,330,x
sue,south,440,x
"""


@pytest.fixture
def tables(tmp_path: Path) -> Callable[..., tuple[list[Path], list[Path], str]]:
    def make(texts: str = TEXTS, voices: str = VOICES) -> tuple[list[Path], list[Path], str]:
        (tmp_path / "texts.csv").write_text(texts)
        (tmp_path / "voices.csv").write_text(voices)
        (tmp_path / "tts.py").write_text(PROGRAM)
        tts = f"{sys.executable} {tmp_path / 'tts.py'} {{voice}} {{output}} {{text}}"
        return [tmp_path / "texts.csv"], [tmp_path / "voices.csv"], tts

    return make


def asked(tmp_path: Path) -> int:
    log = tmp_path / "tts.py.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_each_text_is_read_by_every_voice_of_its_group(tables: Callable[..., tuple], tmp_path: Path) -> None:
    texts, voices, tts = tables()
    made = synthesize(texts, voices, tmp_path / "mine", tts=tts)
    assert made.rows == 5 and "made now: 5 clips" in made.notes[0]
    builder = SpokenStereoSet(tmp_path / "mine")
    assert builder.differences() == []
    found = {
        (row["text"], row["speaker"], row["accent"], row["stereotypical"]) for row, audio in rows(builder)
        if audio.problem is None
    }  # fmt: skip
    assert found == {
        ("I like the sea.", "nan", "north", "Cold, and grey."),
        ("I like the sea.", "ned", "north", "Cold, and grey."),
        ("I like the sea.", "sue", "south", "Warm and blue."),
        ("The train is late.", "nan", "north", "I shrug."),
        ("The train is late.", "ned", "north", "I shrug."),
    }
    # What the command wrote keeps its format, whatever the name it was given.
    names = sorted(path.name for path in (tmp_path / "mine" / "speech" / "accent").iterdir())
    assert names == ["00000_nan.wav", "00001_ned.wav", "00002_sue.flac", "00003_nan.wav", "00004_ned.wav"]
    assert not list(tmp_path.glob(".mine*"))


def test_the_text_goes_to_the_input_of_a_command_that_does_not_name_it(
    tables: Callable[..., tuple], tmp_path: Path
) -> None:
    texts, voices, tts = tables()
    synthesize(texts, voices, tmp_path / "mine", tts=tts.removesuffix(" {text}"))
    assert (tmp_path / "tts.py.log").read_text().splitlines().count("The train is late.") == 2


def test_what_was_read_is_kept_when_something_fails(tables: Callable[..., tuple], tmp_path: Path) -> None:
    failing = TEXTS + "Fail now.,south,a,b,c\nWrite nothing.,south,a,b,c\nWrite noise of no format.,south,a,b,c\n"
    texts, voices, tts = tables(failing)
    with pytest.raises(RunError, match=r"3 clips of 8 could not be read: 00005_sue: .* ended with 1 \(no such words\)"):
        synthesize(texts, voices, tmp_path / "mine", tts=tts)
    assert not (tmp_path / "mine").exists()
    assert asked(tmp_path) == 5
    for broken, reason in (("Write nothing.", "wrote no file"), ("Write noise of no format.", "is not wav, flac")):
        texts, voices, tts = tables(f"{TEXTS}{broken},south,a,b,c\n")
        with pytest.raises(RunError, match=f"1 clip of 6 could not be read: 00005_sue: .*{reason}"):
            synthesize(texts, voices, tmp_path / "mine", tts=tts)
    texts, voices, tts = tables()
    made = synthesize(texts, voices, tmp_path / "mine", tts=tts)
    assert made.rows == 5 and "made now: 0 clips" in made.notes[0]
    assert asked(tmp_path) == 5
    assert SpokenStereoSet(tmp_path / "mine").differences() == []


def test_several_domains_share_a_folder(tables: Callable[..., tuple], tmp_path: Path) -> None:
    texts, voices, tts = tables()
    (tmp_path / "t2.csv").write_text("context,region,stereotypical,anti-stereotypical,irrelevant\nHi all.,x,a,b,c\n")
    (tmp_path / "v2.csv").write_text("speaker,region,voice\nzoe,x,550\n")
    synthesize([*texts, tmp_path / "t2.csv"], [tmp_path / "v2.csv", *voices], tmp_path / "mine", tts=tts)
    builder = SpokenStereoSet(tmp_path / "mine")
    assert set(builder.facts.demographics) == {"accent", "region"}
    assert builder.counts()["region instances"] == 1


@pytest.mark.parametrize(
    ("texts", "voices", "reason"),
    [
        ("context,accent\na,b\n", VOICES, "column 'stereotypical' is missing"),
        (HEADER + "\n", VOICES, "has no rows"),
        (TEXTS.replace("accent", "Accent of home"), VOICES, "the domain in lower case"),
        (TEXTS.replace("accent", "accent,age"), VOICES, "line 2: 5 cells, but the header has 6"),
        (TEXTS.replace("accent", "accent,age").replace(".\n", ".,old\n"), VOICES, "the domain in lower case"),
        (TEXTS.replace("I shout.", ""), VOICES, r"row 3: anti-stereotypical is empty"),
        (TEXTS, VOICES.replace("accent", "age"), r"column of one domain of the texts \(accent\)"),
        (TEXTS, VOICES.replace("speaker,", "name,"), "column 'speaker' is missing"),
        (TEXTS, VOICES.replace("ned", "n_ed"), "row 2: `speaker` must be letters"),
        (TEXTS, VOICES.replace("ned", "nan"), "row 2: the speaker 'nan' is there twice"),
        (TEXTS, VOICES.replace("south", "west"), "no voice for accent south"),
        (TEXTS, VOICES.splitlines()[0] + "\n", "has no rows"),
    ],
)
def test_tables_that_cannot_be_used_are_refused_in_one_line(
    texts: str, voices: str, reason: str, tables: Callable[..., tuple], tmp_path: Path
) -> None:
    written, spoken, tts = tables(texts, voices)
    with pytest.raises(UsageError, match=reason):
        synthesize(written, spoken, tmp_path / "mine", tts=tts)
    assert asked(tmp_path) == 0 and not list(tmp_path.glob("*mine*"))


@pytest.mark.parametrize(
    ("tts", "reason"),
    [
        ("say {text}", r"must be espeak-ng or a command with \{output\}"),
        ("", "must be espeak-ng or a command"),
        ("say '{output}", "cannot be read as a command"),
        ("say {output} {language}", r"asks for \{language\}, which no table has; known: accent, note, output"),
        ("no-such-program-here {output}", "'no-such-program-here' is not installed"),
    ],
)
def test_templates_that_cannot_be_used_are_refused(
    tts: str, reason: str, tables: Callable[..., tuple], tmp_path: Path
) -> None:
    texts, voices, _ = tables()
    with pytest.raises(UsageError, match=reason):
        synthesize(texts, voices, tmp_path / "mine", tts=tts)


def test_a_folder_that_holds_something_is_left_alone(tables: Callable[..., tuple], tmp_path: Path) -> None:
    texts, voices, tts = tables()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "other.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds files already"):
        synthesize(texts, voices, tmp_path / "mine", tts=tts)
    assert (tmp_path / "mine" / "other.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="need a table each"):
        synthesize([], voices, tmp_path / "new", tts=tts)


def test_from_texts_of_ones_own_to_scores_of_a_new_domain(
    tables: Callable[..., tuple], tmp_path: Path, equivox: Cli
) -> None:
    texts, voices, tts = tables()
    out = equivox.done("data", "make", "synthesize", texts[0], "--voices", voices[0],
                             "--tts", tts, "--output", tmp_path / "mine")  # fmt: skip
    assert "5 of 5 clips" in out
    equivox.done("data", "build", "spoken_stereoset", "--source", tmp_path / "mine", "-o", tmp_path / "data")
    run = (
        "run",
        "simulated:biased",
        "spoken_stereoset:accent,spoken_stereoset_orders:accent",
        "--scoring",
        "n_resamples=199",
    )
    out = equivox.done(*run, "--data", tmp_path / "data", "--output", tmp_path / "run")
    assert "2 tasks" in out
    equivox.done("score", tmp_path / "run", "--scoring", "n_resamples=199")
    err = equivox.refused("run", "simulated:biased", "spoken_stereoset:religion", "--data", tmp_path / "data",
                           "--output", tmp_path / "none")  # fmt: skip
    assert "needs the column 'religion'" in err


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_espeak_reads_with_the_voices_own_pitch_and_rate(tables: Callable[..., tuple], tmp_path: Path) -> None:
    header = VOICES.splitlines()[0].replace("note", "pitch,rate")
    voices = f"{header}\nnan,north,en-us+f3,60,150\nned,north,en-us+m3,30,190\nsue,south,en-gb,50,160\n"
    texts, spoken, _ = tables(TEXTS, voices)
    synthesize(texts, spoken, tmp_path / "mine")
    lengths = {row["clip_id"]: row["duration_s"] for row, audio in rows(SpokenStereoSet(tmp_path / "mine"))
               if audio.problem is None}  # fmt: skip
    assert len(lengths) == 5
    # The same words at 150 and at 190 words per minute.
    assert lengths["accent/00000_nan"] > 1.1 * lengths["accent/00001_ned"]
