"""Measures of spoken answers: hand-made sounds measure as they were made, and what is not there is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from equivox.annotate.sounds import SoundReader, _levels, _silence, measures_of, word_errors
from equivox.core.attributes import SOUND_UNITS, Attribute, Number
from equivox.core.media import encode_audio
from equivox.core.segments import SAID, SOUND, Segment
from equivox.engines.simulated_numbers import RANGES, spoken

RATE = 16_000


def wav(samples: Any, rate: int = RATE) -> bytes:
    return encode_audio(np.asarray(samples, dtype=np.float64), sampling_rate=rate, container="WAV", subtype="PCM_16")


def hum(seconds: float, amplitude: float = 0.3, hertz: float = 150.0) -> Any:
    """A sound with overtones, which is voiced."""
    place = 2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE
    return amplitude * sum(np.sin(overtone * place) / overtone for overtone in range(1, 8)) / 1.6


def quiet(seconds: float) -> Any:
    return np.zeros(round(seconds * RATE))


def measured(samples: Any, words: int = 6, wanted: Iterable[str] = tuple(SOUND_UNITS)) -> dict[str, float]:
    return measures_of(wav(samples), words, set(wanted), name="clip")


def test_hand_made_sounds_measure_as_they_were_made() -> None:
    # Two seconds of sound, one of silence, one of sound; silence around it does not count.
    found = measured(np.concatenate([quiet(0.7), hum(2), quiet(1), hum(1), quiet(0.5)]))
    assert found["seconds"] == pytest.approx(4, abs=0.04)
    assert found["words_per_second"] == pytest.approx(6 / 4, abs=0.02)
    assert found["pauses"] == pytest.approx(25, abs=1)


def test_loudness_is_the_level_of_what_is_said() -> None:
    # A sine of amplitude a has the power a²/2: -9.03 dB at 0.5; silence between does not make it quieter.
    sine = 0.5 * np.sin(2 * np.pi * 200 * np.arange(2 * RATE) / RATE)
    for samples in (sine, np.concatenate([sine, quiet(3), sine])):
        assert measured(samples, wanted=["loudness"])["loudness"] == pytest.approx(
            20 * math.log10(0.5 / 2**0.5), abs=0.1
        )
    half, whole = (measured(part * sine, wanted=["loudness"])["loudness"] for part in (0.5, 1.0))
    assert whole - half == pytest.approx(20 * math.log10(2), abs=0.05)


def test_lengths_and_pauses_are_those_of_their_levels() -> None:
    # A fifth of a second has 19 windows of 20 ms. Two of them with two fifths of silence between have 79, of which 39
    # hold nothing else: those that begin from 3200 to 9280.
    loud = np.full(3200, 0.5)
    assert measured(loud, wanted=["seconds"])["seconds"] == pytest.approx(0.19)
    found = measured(np.concatenate([loud, np.zeros(6400), loud]), wanted=["seconds", "pauses"])
    assert (found["seconds"], found["pauses"]) == pytest.approx((0.79, 100 * 39 / 79))


def test_pauses_shorter_than_a_quarter_of_a_second_are_none() -> None:
    short, long = (
        measured(np.concatenate([hum(1), quiet(gap), hum(1)]), wanted=["pauses"])["pauses"] for gap in (0.2, 0.4)
    )
    assert short == 0
    assert long == pytest.approx(100 * 0.4 / 2.4, abs=1.5)
    # 25 levels of 10 ms are a quarter of a second and count; 24 do not. Each end of the answer is no pause.
    for levels, counted in ((24, 0), (25, 25)):
        assert _silence(np.array([True] + [False] * levels + [True, False, True])) == counted


def test_levels_are_those_of_twenty_milliseconds_every_ten() -> None:
    # Of 480 samples there are two windows of 320; half of the second is silent. Fewer samples are one window.
    samples = np.concatenate([np.full(320, 0.1), np.zeros(160)])
    assert _levels(samples) == pytest.approx([-20, -20 + 10 * math.log10(0.5)])
    for n in (100, 1):
        assert _levels(samples[:n]) == pytest.approx([-20])
    assert _levels(np.zeros(0)) == _levels(np.zeros(320)) == [-150]


def test_speech_lies_at_most_35_db_below_the_loud_tenth_and_above_minus_70() -> None:
    loud = np.full(10 * 320, 0.5)
    for below, is_speech in ((34.5, True), (35.5, False)):
        quieter = np.concatenate([np.full(10 * 320, 0.5 * 10 ** (-below / 20)), loud])
        seconds = measured(quieter, wanted=["seconds"])["seconds"]
        assert seconds == pytest.approx(0.4 if is_speech else 0.2, abs=0.02)
    # Of 32,768 steps of a sample, 11 are -69.5 dB and 10 are -70.3 dB.
    for steps, is_speech in ((11.5, True), (10.5, False)):
        assert bool(measured(np.full(1600, steps / 32_768), wanted=["seconds"])) == is_speech


def test_what_is_not_there_is_missing_and_never_zero() -> None:
    assert measured(quiet(3)) == {}


@pytest.mark.parametrize("measure", RANGES)
def test_simulated_voices_sound_as_asked(measure: str) -> None:
    text = "One two three four five. Six seven eight nine ten eleven. Twelve thirteen fourteen fifteen sixteen."
    low, high = RANGES[measure]  # type: ignore[index]
    # The error of the extraction, as docs/experiments.md states it.
    most = {
        "seconds": 0.03,
        "words_per_second": 0.03,
        "pauses": 1.0,
        "loudness": 0.1,
    }
    for value in np.linspace(low, high, 5):
        found = measures_of(spoken(text, {measure: value}), 16, {measure}, name="made")
        assert found[measure] == pytest.approx(value, abs=most[measure])


def test_a_recording_at_another_rate_and_in_stereo_measures_the_same() -> None:
    from scipy.signal import resample_poly

    samples = np.concatenate([hum(1.5), quiet(0.5), hum(1)])
    other = resample_poly(samples, 3, 1)
    stereo = encode_audio(np.stack([other, other], axis=1), sampling_rate=3 * RATE, container="FLAC", subtype="PCM_16")
    wanted = set(SOUND_UNITS)
    one, two = measures_of(wav(samples), 6, wanted, name="a"), measures_of(stereo, 6, wanted, name="b")
    assert two == pytest.approx(one, rel=0.02, abs=0.05)


def test_word_errors_are_counted_as_by_hand() -> None:
    # One replaced, one left out, one added; what is written otherwise only in capitals or signs is the same word.
    assert word_errors("It is, I think, far too late.", "it is i sink far late now") == (3, 7)
    assert word_errors("", "hello") == (1, 0) and word_errors("hello there", "") == (2, 2)
    assert word_errors("a b c", "A, b; c!") == (0, 3)
    (values,) = SoundReader(lambda sha256: wav(hum(2))).read([
        Segment(name=SOUND, text=f"{'0' * 64}\none too three{SAID}One two three four.", alone=True, attributes=(
            Attribute(name="clear", asks="the errors", number=Number(measure="word_errors")),
        )),
    ])  # fmt: skip
    assert values is not None and [(one.attribute, one.value) for one in values] == [("clear", "50")]


def test_a_reader_is_known_by_what_it_measures_and_keeps_four_decimals() -> None:
    one, other = (SoundReader(lambda sha256, sound=sound: wav(sound)) for sound in (hum(1.5), quiet(1)))
    # Version 1 is part of what is stored: another version measures everything again.
    assert one == other and one.identity == {"name": "sound", "version": 1}
    level, errors = (
        Attribute(name=name, asks="it", number=Number(measure=measure))
        for name, measure in (("level", "loudness"), ("clear", "word_errors"))
    )
    text = f"{'0' * 64}\none two too{SAID}One two three."
    segments = [Segment(name=SOUND, text=text, attributes=own) for own in ((level,), (errors,), (level, errors))]
    found = [{value.attribute: value.value for value in values or ()} for values in one.read(segments)]
    assert [list(values) for values in found] == [["level"], ["clear"], ["level", "clear"]]
    # One of three words is replaced.
    assert found[1]["clear"] == "33.3333" and len(found[0]["level"].partition(".")[2]) == 4
    # What is silent or damaged has no measures.
    for nothing in (other, SoundReader(lambda sha256: b"RIFF....WAVEnothing")):
        assert list(nothing.read(segments[:1])) == [None]
