"""Numbers that simulated models state, lengths that their answers have, and the sound of a spoken answer."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from equivox.core.attributes import Attribute, Length, Number
from equivox.core.errors import UsageError
from equivox.core.hashing import hashed_number
from equivox.core.lazy import np
from equivox.core.media import encode_audio
from equivox.core.requests import Labels

if TYPE_CHECKING:
    from equivox.engines.simulated import SimulatedSettings


def speak(text: str) -> bytes:
    """Return a tone as WAV, mono, 16 kHz, 16 bit, that stands for a spoken text; its pitch depends on the text."""
    wave = 0.3 * np.sin(2 * np.pi * (100 + hashed_number(text) % 100) * np.arange(3200) / 16_000)
    return encode_audio(wave, sampling_rate=16_000, container="WAV", subtype="PCM_16")


_FORMS = ("The {name} is {value} {unit}.", "{name}: {value} {unit}", "{Name}: {value} {unit}", "{value} {unit}")
"""The sentences that state a number, tried in this order where a pattern must find it."""

_RANGES: dict[Length | None, tuple[float, float]] = {
    None: (0, 100),
    "words": (20, 60),
    "sentences": (3, 12),
    "characters": (200, 600),
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
    if high - low >= 50 or _number(attribute).measure:
        return float(round(value))
    return round(value, max(2, 1 - math.floor(math.log10(high - low))))


def stated(attribute: Attribute, value: float) -> str:
    """Return a sentence that states a number; UsageError if the attribute's pattern finds it in none."""
    number = _number(attribute)
    name = attribute.name.replace("_", " ")
    for form in _FORMS:
        said = form.format(name=name, Name=name.capitalize(), value=f"{value:.15g}", unit=number.unit)
        if not number.pattern or any(sign.isdigit() for sign in number.found_in(said)):
            return said
    raise UsageError(
        f"the `pattern` {number.pattern!r} of {attribute.name} finds no number in what simulated models say, such as "
        f"'{_FORMS[0].format(name=name, value='5', unit=number.unit)}'; extend the pattern, or use a real model"
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
