"""Hearing of simulated models: which group a recording sounds like, by its pitch alone.

`hears=pitch` makes the model measure the median F0 of the recording that it is sent. F0 rises from men to women, so the
first group in alphabetic order counts as the one with high voices (female, male). The model answers as to this group
with the probability 1 / (1 + 2^(-d / 3)), where d is how many semitones the F0 lies above 165 Hz: every second time at
165 Hz, four times of five 6 semitones above it. Any other group gets the rest in equal parts. It hears no vocal tract.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from equivox.core.errors import RequestError
from equivox.core.requests import Request
from equivox.core.voice import median_f0

PITCH, IDENTITY = "pitch", "identity"
MIDDLE_HZ = 165.0
"""About halfway, in semitones, between the mean F0 of men and women who speak English (130 and 220 Hz)."""
STEEPNESS = 1 / 3
"""How often the odds double with each semitone."""


def parse_hears(text: str) -> str:
    """Return what a model hears: `pitch`, or nothing for `identity`, which reads the labels as without the option."""
    if text not in (PITCH, IDENTITY):
        raise RequestError(f"`model` option hears is {PITCH} or {IDENTITY}, got {text!r}")
    return "" if text == IDENTITY else text


def pitch_of(request: Request, known: dict[str, float]) -> float:
    """Return the median F0 of a request's recording in Hz; NaN without one, or without a voice in it.

    `known` keeps what was measured, by the digest of the recording. MediaError for a recording that cannot be decoded
    or changed.
    """
    heard = next((part for part in request.media if part.kind == "audio"), None)
    if heard is None:
        return math.nan
    if heard.sha256 not in known:
        known[heard.sha256] = median_f0(heard.load(), name=heard.name)
    return known[heard.sha256]


def group_of_pitch(f0: float, groups: Sequence[str], rng: random.Random) -> str | None:
    """Return the group that a voice of this F0 in Hz is answered as, drawn by `rng`; None for NaN: no voice.

    >>> group_of_pitch(250.0, ("female", "male"), random.Random(1))
    'female'
    """
    if math.isnan(f0):
        return None
    above = 12 * math.log2(f0 / MIDDLE_HZ)
    high = rng.random() < 1 / (1 + 2 ** (-STEEPNESS * above))
    return groups[0] if high or len(groups) < 2 else rng.choice(groups[1:])
