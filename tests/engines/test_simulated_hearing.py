"""A simulated model that hears pitch, by the recording alone; the keys of earlier models stay."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from equivox.core.errors import RequestError
from equivox.core.media import encode_audio
from equivox.core.requests import Labels, MediaPart, Request
from equivox.core.variants import vary
from equivox.engines import open_engine
from equivox.engines.simulated import SimulatedEngine
from equivox.engines.simulated_numbers import group_of_pitch
from equivox.tasks.registry import builtin_tasks

ADVISORY = builtin_tasks()["vibe_gender:advisory"]
GROUPS = ("female", "male")


def sound(f0: float) -> bytes:
    times = np.arange(12_000) / 16_000
    samples = 0.03 * np.sum([np.cos(2 * np.pi * k * f0 * times) / k for k in range(1, 20)], axis=0)
    return encode_audio(samples, sampling_rate=16_000, container="WAV", subtype="PCM_16")


def request(data: bytes | None, number: int = 0, group: str = "male") -> Request:
    media = (
        ()
        if data is None
        else (MediaPart(kind="audio", sha256=str(len(data)) + group, name="a clip", load=lambda: data),)
    )
    return Request(
        key=f"k{number}", task=ADVISORY.name, sample_id="s", repeat=0, condition="audio", media=media, text="",
        sampling=ADVISORY.sampling, seed=0, labels=Labels(group=group, groups=GROUPS, cluster="c", stratum=""),
    )  # fmt: skip


def engine(settings: str) -> SimulatedEngine:
    found = open_engine(f"simulated:planted,{settings}", vary([ADVISORY], conditions=("audio",)))
    return found


def test_the_probability_is_that_of_the_docstring() -> None:
    rng = random.Random(1)
    for f0, expected in ((165.0, 0.5), (165 * 2**0.5, 0.8), (165 / 2**0.5, 0.2)):
        heard = [group_of_pitch(f0, GROUPS, rng) for _ in range(4000)]
        assert heard.count("female") / 4000 == pytest.approx(expected, abs=0.03)
    three = [group_of_pitch(165.0, ("a", "b", "c"), rng) for _ in range(4000)]
    assert [three.count(group) / 4000 for group in "abc"] == pytest.approx([0.5, 0.25, 0.25], abs=0.03)
    assert group_of_pitch(math.nan, GROUPS, rng) is None


def test_it_hears_the_recording_and_not_the_label() -> None:
    pytest.importorskip("pyworld", reason="hearing needs the extra [voice]")
    listening, reading = engine("shift=1,hears=pitch"), engine("shift=1")

    def own_of_women(model: SimulatedEngine, data: bytes | None, group: str) -> float:
        fixed = {response.text for response in reading.generate([request(None, n, "female") for n in range(200)])}
        given = [response.text for response in model.generate([request(data, n, group) for n in range(200)])]
        told = [tuple((model.told(ADVISORY.name, text or "") or {}).get("hobby", ())) for text in given]
        womens = {tuple((model.told(ADVISORY.name, text or "") or {}).get("hobby", ())) for text in fixed}
        return sum(own in womens for own in told) / len(told)

    # A woman's label with a low voice is answered as a man, and the reverse: 1 / (1 + 2^(d / 3)).
    low, high = sound(100.0), sound(280.0)
    assert own_of_women(listening, low, "female") == pytest.approx(1 / (1 + 2 ** (-4 * math.log2(100 / 165))), abs=0.08)
    assert own_of_women(listening, high, "male") == pytest.approx(1 / (1 + 2 ** (-4 * math.log2(280 / 165))), abs=0.08)
    assert own_of_women(reading, low, "female") == 1
    # Without a recording it hears nobody, and answers at random.
    assert own_of_women(listening, None, "female") < 0.05


def test_a_recording_that_cannot_be_heard_fails_alone() -> None:
    pytest.importorskip("pyworld", reason="hearing needs the extra [voice]")
    good, bad = request(sound(200.0), 0), request(b"no sound", 1)
    first, second = engine("shift=1,hears=pitch").generate([good, replace(bad, key="bad")])
    assert first.text and second.text is None and str(second.error).startswith("a clip: not wav")


def test_models_that_were_there_before_keep_their_identity() -> None:
    plain = engine("shift=0.3").identity
    # As it was before the option: the keys of stored answers depend on it.
    assert dict(plain.settings) == {
        "shift": 0.3, "speaker": 0.0, "refusal": 0.0, "refusal_gap": 0.0, "fail": 0.0, "seed": 0,
    }  # fmt: skip
    assert engine("shift=0.3,hears=identity").identity == plain
    assert engine("shift=0.3,hears=pitch").identity.settings["hears"] == "pitch"
    with pytest.raises(RequestError, match=r"`hears`: input should be .*'pitch' or 'identity', got 'x'"):
        engine("shift=0.3,hears=x")
    with pytest.raises(RequestError, match="simulated:oracle has no option 'hears'"):
        open_engine("simulated:oracle,hears=pitch", [ADVISORY])
