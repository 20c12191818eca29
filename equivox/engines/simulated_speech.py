"""Spoken answers of simulated models: a hum of a known pitch, pace and loudness, with pauses of a known length.

Each word is a voiced sound whose overtones fall like those of a voice. Nobody understands it; its measures are exact
by construction, so they check those of `equivox.core.sound`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from equivox.core.attributes import Sound
from equivox.core.media import encode_audio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RANGES: Mapping[Sound, tuple[float, float]] = {
    "seconds": (4.0, 12.0),
    "words_per_second": (2.0, 4.0),
    "pauses": (10.0, 30.0),
    "pitch": (100.0, 240.0),
    "pitch_spread": (1.0, 4.0),
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
    import numpy as np

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


@lru_cache(maxsize=1)
def _wave() -> NDArray[np.float64]:
    """Return one period of a voice: overtones that fall by 6 dB an octave."""
    import numpy as np

    phase = 2 * np.pi * np.arange(_TABLE) / _TABLE
    return np.asarray(sum(np.sin(overtone * phase) / overtone for overtone in range(1, _OVERTONES + 1)))
