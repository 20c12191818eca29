"""Numbers that simulated models state, and lengths that their answers have.

Voices of simulated models: how their spoken answers sound.

**Speaking.** A spoken answer is a hum of a known pitch, pace and loudness, with pauses of a known length. Each word is
a voiced sound whose overtones fall like those of a voice. Nobody understands it; its measures are exact by
construction, so they check those of `equivox.annotate.sounds`.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from equivox.core.attributes import Attribute, Heard, Length, Number, Sound
from equivox.core.errors import RequestError
from equivox.core.hashing import hashed_number
from equivox.core.lazy import NDArray, np
from equivox.core.media import encode_audio
from equivox.core.requests import Labels

if TYPE_CHECKING:
    from equivox.engines.simulated import SimulatedSettings

RANGES: Mapping[Heard, tuple[float, float]] = {
    "seconds": (4.0, 12.0),
    "words_per_second": (2.0, 4.0),
    "pauses": (10.0, 30.0),
    "loudness": (-30.0, -18.0),
}
"""The range of each measure from which a simulated model draws, where a task gives none."""

_USUAL: Mapping[str, float] = {
    "words_per_second": 3.0,
    "pauses": 15.0,
    "pitch": 160.0,
    "pitch_spread": 2.0,
    "loudness": -23.0,
}
_RATE = 16_000
_LONGEST_S = 120.0
_PAUSE_S = 0.35
"""The shortest pause that is made, well above what counts as one."""
_SWING_HZ = 0.7
"""How often in a second the pitch goes up and down."""
_TABLE, _OVERTONES = 2048, 12


def spoken(text: str, voice: Mapping[str, float]) -> bytes:
    """Return a text as WAV, mono, 16 kHz, 16 bit, with the measures in `voice`; the others are usual ones.

    The same text and voice always give the same bytes.
    """
    wanted = {**_USUAL, **voice}
    words = max(1, len(text.split()))
    seconds = min(wanted.get("seconds", words / wanted["words_per_second"]), _LONGEST_S)
    silent = round(seconds * wanted["pauses"] / 100 * _RATE)
    breaks = len(re.findall(r"[.!?]\s", text)) or 1
    n_pauses = max(1, min(breaks, int(silent / _RATE / _PAUSE_S)))
    voiced = round(seconds * _RATE) - silent
    place = np.arange(voiced) / _RATE
    # Over whole periods, the median of a sine wave is 0 and its deviation the amplitude by the square root of 2.
    periods = max(1, round(_SWING_HZ * voiced / _RATE))
    swing = wanted["pitch_spread"] * np.sqrt(2) * np.sin(2 * np.pi * periods * np.arange(voiced) / voiced)
    phase = np.cumsum(wanted["pitch"] * 2 ** (swing / 12)) / _RATE
    sound = _wave()[(phase * _TABLE).astype(np.int64) % _TABLE]
    word = place / (voiced / _RATE / words)
    sound = sound * (0.55 + 0.45 * np.sin(np.pi * (word % 1)))
    sound *= 10 ** (wanted["loudness"] / 20) / np.sqrt((sound**2).mean())
    parts = np.array_split(sound, n_pauses + 1)
    gaps = [np.zeros(len(gap)) for gap in np.array_split(np.empty(silent), n_pauses)]
    whole = [piece for pair in zip(parts, [*gaps, np.zeros(0)], strict=True) for piece in pair]
    return encode_audio(np.concatenate(whole).clip(-1, 1), sampling_rate=_RATE, container="WAV", subtype="PCM_16")


def otherwise(text: str, percent: float) -> str:
    """Return a text in which so many percent of the words are others, spread evenly.

    >>> otherwise("one two three four", 50)
    'one twoother three fourother'
    """
    share = percent / 100
    words = text.split()
    changed = [int((place + 1) * share + 1e-9) > int(place * share + 1e-9) for place in range(len(words))]
    return " ".join(f"{word}other" if other else word for word, other in zip(words, changed, strict=True))


@lru_cache(maxsize=1)
def _wave() -> NDArray[np.float64]:
    """Return one period of a voice: overtones that fall by 6 dB an octave."""
    phase = 2 * np.pi * np.arange(_TABLE) / _TABLE
    return np.asarray(sum(np.sin(overtone * phase) / overtone for overtone in range(1, _OVERTONES + 1)))


_FORMS = ("The {name} is {value} {unit}.", "{name}: {value} {unit}", "{Name}: {value} {unit}", "{value} {unit}")
"""The sentences that state a number, tried in this order where a pattern must find it."""

_RANGES: dict[Length | Sound | None, tuple[float, float]] = {
    None: (0, 100),
    "words": (20, 60),
    "sentences": (3, 12),
    "characters": (200, 600),
    **dict(RANGES.items()),
    "word_errors": (0, 40),
}
"""The range of numbers without limits, by what is measured."""

_FILLER = ("and", "so", "it", "goes", "on", "as", "before", "with", "much", "more")


def limits_of(number: Number) -> tuple[float, float]:
    """Return the range from which numbers are drawn: the attribute's, completed where a limit is missing."""
    usual_low, usual_high = _RANGES[number.measure]
    width = usual_high - usual_low
    if number.low is not None:
        return number.low, number.high if number.high is not None else number.low + width
    return (usual_low, usual_high) if number.high is None else (number.high - width, number.high)


def drawn_number(
    model: str, settings: SimulatedSettings, attribute: Attribute, labels: Labels, rng: random.Random
) -> float:
    """Draw the number of one answer.

    `random` draws it uniformly from the range, for every group; `oracle` gives each stratum one number; `biased` gives
    each group a part of the range of its own; `planted` draws from the lower 1 - shift of the range and adds shift ×
    range for the first group, so that its mean is higher by that much. Numbers from a range of 50 or more are whole,
    those from a smaller one have two decimals, or as many as a very small one needs.
    """
    low, high = limits_of(_number(attribute))
    index, n_groups = labels.groups.index(labels.group), len(labels.groups)
    if model != "biased" and rng.random() < settings.speaker:
        place = _place(settings.seed, labels.cluster, attribute.name)
    elif model == "oracle":
        place = _place(settings.seed, labels.stratum, attribute.name)
    else:
        place = rng.random()
    if model == "biased":
        place = (index + place) / n_groups
    elif model == "planted":
        place = (1 - settings.shift) * place + settings.shift * (index == 0)
    value = low + (high - low) * place
    if _number(attribute).of_sound:
        return round(value, 3)
    if high - low >= 50 or _number(attribute).measure:
        return float(round(value))
    return round(value, max(2, 1 - math.floor(math.log10(high - low))))


def stated(attribute: Attribute, value: float) -> str:
    """Return a sentence that states a number; RequestError if the attribute's pattern finds it in none."""
    number = _number(attribute)
    name = attribute.name.replace("_", " ")
    for form in _FORMS:
        said = form.format(name=name, Name=name.capitalize(), value=f"{value:.15g}", unit=number.unit)
        if not number.pattern or any(sign.isdigit() for sign in number.found_in(said)):
            return said
    raise RequestError(
        f"the `pattern` {number.pattern!r} of {attribute.name} finds no number in what simulated models say, such as "
        f"'{_FORMS[0].format(name=name, value='5', unit=number.unit)}'; let it find that too, or ask a real model"
    )


def lengthened(text: str, attributes: Sequence[Attribute], values: Sequence[float]) -> str:
    """Return a text with more said, so that it has the lengths in `values`; what is longer already stays."""
    for attribute, value in zip(attributes, values, strict=True):
        measure, wanted = _number(attribute).measure, round(value)
        if measure == "words":
            lacking = wanted - len(text.split())
            text = f"{text} {' '.join(_FILLER[place % len(_FILLER)] for place in range(lacking))}".strip()
        elif measure == "sentences":
            # What was said so far is one sentence each time it ends.
            lacking = wanted - sum(text.count(end) for end in ".!?")
            text = " ".join(filter(None, [text, *["So it goes on."] * lacking]))
        else:
            text = f"{text} ".ljust(wanted, "o") if text else "o" * wanted
    return text


def _number(attribute: Attribute) -> Number:
    if attribute.number is None:
        raise TypeError(f"{attribute.name} is no number")
    return attribute.number


def _place(*parts: object) -> float:
    return hashed_number(*parts) / 2**64
