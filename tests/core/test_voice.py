"""A changed voice: its pitch and its formants move as asked, its length and loudness stay; measured without WORLD."""

from __future__ import annotations

import builtins
import hashlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from equivox.core.errors import RequestError
from equivox.core.media import MediaError, decode_audio, encode_audio
from equivox.core.voice import RATE, changed_voice, median_f0

pytest.importorskip("pyworld", reason="changing a voice needs the extra [voice]")

Samples = NDArray[np.float64]
VOWEL = (660.0, 1700.0, 2400.0)
"""Formants of a vowel in Hz."""


def vowel(f0: float, seconds: float = 1.5, rate: int = RATE, formants: Sequence[float] = VOWEL) -> Samples:
    """A vowel of constant pitch: all harmonics alike, through resonances 80 Hz wide."""
    times = np.arange(round(seconds * rate)) / rate
    sound = np.sum([np.cos(2 * np.pi * k * f0 * times) for k in range(1, int(rate / 2 / f0))], axis=0)
    for formant in formants:
        radius = math.exp(-math.pi * 80 / rate)
        sound = lfilter([1], [1, -2 * radius * math.cos(2 * math.pi * formant / rate), radius**2], sound)
    return np.asarray(0.3 * sound / np.abs(sound).max())


def clip(samples: Samples, rate: int = RATE, container: str = "WAV", subtype: str = "PCM_16") -> bytes:
    return encode_audio(samples, sampling_rate=rate, container=container, subtype=subtype)


def changed(data: bytes, semitones: float, *, vocal_tract: bool = False) -> Samples:
    made = changed_voice(data, semitones=semitones, vocal_tract=vocal_tract, name="clip")
    return decode_audio(made, name="clip").astype(np.float64)


def pitch(samples: Samples) -> float:
    """The F0 of the middle of a sound in Hz, by the first great peak of its autocorrelation."""
    middle = samples[len(samples) // 4 : 3 * len(samples) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 4 * len(middle))) ** 2
    window = np.abs(np.fft.rfft(np.hanning(len(middle)), 4 * len(middle))) ** 2
    alike = np.fft.irfft(spectrum) / np.maximum(np.fft.irfft(window), 1e-9)
    lags = np.arange(RATE // 700, RATE // 50)
    near = alike[lags] > 0.9 * alike[lags].max()
    first = int(np.flatnonzero(near)[0])
    while alike[lags[first + 1]] > alike[lags[first]]:
        first += 1
    lag = int(lags[first])
    before, at, after = alike[lag - 1 : lag + 2]
    return float(RATE / (lag + (before - after) / (2 * (before - 2 * at + after))))


def resonances(samples: Samples, order: int = 12) -> list[float]:
    """The three lowest formants in Hz, by linear prediction."""
    middle = samples[len(samples) // 4 : 3 * len(samples) // 4]
    middle = np.append(middle[0], middle[1:] - 0.5 * middle[:-1]) * np.hamming(len(middle))
    r = np.correlate(middle, middle, "full")[len(middle) - 1 :][: order + 1]
    matrix = r[np.abs(np.subtract.outer(np.arange(order), np.arange(order)))]
    roots = np.roots(np.append(1, -np.linalg.solve(matrix, r[1:])))
    sharp = roots[(roots.imag > 0) & (np.abs(roots) > 0.9)]
    found = sorted(np.angle(sharp) * RATE / (2 * math.pi))
    return [float(one) for one in found if one > 200][:3]


@pytest.mark.parametrize("f0", [95.0, 180.0, 260.0])
@pytest.mark.parametrize("semitones", [-4.0, -2.0, 0.0, 2.0, 4.0, 12.0])
def test_pitch_moves_as_asked_and_length_and_loudness_stay(f0: float, semitones: float) -> None:
    data = clip(vowel(f0))
    before, after = decode_audio(data, name="clip").astype(np.float64), changed(data, semitones)
    assert 12 * math.log2(pitch(before) / f0) == pytest.approx(0, abs=0.05)
    assert 12 * math.log2(pitch(after) / f0) == pytest.approx(semitones, abs=0.1)
    assert len(after) == len(before)
    assert np.sqrt((after**2).mean()) == pytest.approx(np.sqrt((before**2).mean()), rel=1e-3)


@pytest.mark.parametrize("semitones", [-4.0, 4.0])
def test_formants_stay_with_the_pitch_and_move_by_a_third_with_the_vocal_tract(semitones: float) -> None:
    data = clip(vowel(110.0))
    for vocal_tract, moved in ((False, 0.0), (True, semitones / 3)):
        found = resonances(changed(data, semitones, vocal_tract=vocal_tract))
        shifts = [12 * math.log2(one / formant) for one, formant in zip(found, VOWEL, strict=True)]
        assert shifts == pytest.approx([moved] * 3, abs=0.6), vocal_tract
    # Pitch moves alike.
    assert pitch(changed(data, semitones, vocal_tract=True)) == pytest.approx(110 * 2 ** (semitones / 12), rel=0.005)


@pytest.mark.parametrize(
    ("rate", "container", "subtype"),
    [(8_000, "WAV", "PCM_16"), (44_100, "MP3", "MPEG_LAYER_III"), (22_050, "FLAC", "PCM_16"), (48_000, "OGG", "OPUS")],
)
def test_other_formats_and_stereo(rate: int, container: str, subtype: str) -> None:
    sound = vowel(140.0, rate=rate)
    data = clip(np.stack([sound, 0.5 * sound], axis=1), rate, container, subtype)
    made = changed(data, -3)
    assert len(made) == len(decode_audio(data, name="clip"))
    assert 12 * math.log2(pitch(made) / 140) == pytest.approx(-3, abs=0.1)


def test_the_same_bytes_every_time_and_in_any_thread() -> None:
    data = clip(vowel(150.0, 0.6))

    def digest(semitones: float) -> str:
        made = changed_voice(data, semitones=semitones, vocal_tract=True, name="clip")
        return hashlib.sha256(made).hexdigest()

    once = [digest(semitones) for semitones in (-2, 0, 2)]
    assert len(set(once)) == 3
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(digest, [-2, 0, 2] * 4)) == once * 4


def test_dose_0_makes_the_voice_again() -> None:
    data = clip(vowel(150.0))
    made = changed(data, 0)
    assert not np.array_equal(made, decode_audio(data, name="clip"))
    assert np.array_equal(made, changed(data, 0, vocal_tract=True))


def test_a_clip_without_a_voice_is_an_error_and_not_an_unchanged_clip() -> None:
    noise = 0.1 * np.random.default_rng(1).standard_normal(3 * RATE)
    clicks = 0.5 * (np.arange(2 * RATE) % 4000 == 0)
    for sound in (noise, clicks, np.zeros(RATE), vowel(150.0, 0.06), np.append(vowel(150.0, 0.2), np.zeros(8 * RATE))):
        with pytest.raises(MediaError, match=r"^that one: no voice was found in it"):
            changed_voice(clip(sound), semitones=2, vocal_tract=False, name="that one")
        assert math.isnan(median_f0(clip(sound), name="that one"))
    with pytest.raises(MediaError, match=r"^that one: not wav, flac, ogg or mp3"):
        changed_voice(b"no sound", semitones=2, vocal_tract=False, name="that one")


def test_a_peak_never_passes_full_scale() -> None:
    loud = vowel(150.0)
    loud *= 0.999 / np.abs(loud).max()
    assert np.abs(changed(clip(loud), 4)).max() <= 1


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__
    for broken, told in (
        ("pyworld", r"^changing a voice needs pyworld; install"),
        ("pkg_resources", "does not import"),
    ):

        def fails(name: str, *rest: Any, broken: str = broken) -> Any:
            if name == "pyworld":
                raise ModuleNotFoundError(f"No module named {broken!r}", name=broken)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", fails)
        with pytest.raises(RequestError, match=told) as raised:
            changed_voice(clip(vowel(150.0, 0.2)), semitones=2, vocal_tract=False, name="clip")
        monkeypatch.undo()
        assert 'pip install "equivox[voice]"' in str(raised.value)
