"""How a spoken answer sounds: length, pace, pauses and loudness, measured from its samples; nobody hears it.

Levels are root mean squares of 20 ms, every 10 ms. Speech is what lies at most 35 dB below the loud tenth of a
recording; the answer lasts from the first of it to the last, and silence around it does not count.

`seconds`
    How long the answer lasts.
`words_per_second`
    The words of the transcript, parted by white space, by the seconds that the answer lasts.
`pauses`
    Percent of the time that the answer lasts that is silence of 0.25 s or more (Goldman-Eisler 1968 counts from there).
`loudness`
    The level of the speech in dB below full scale; a louder voice is nearer to 0.

Of an answer that was transcribed by another model, the two transcripts can be compared as well:

`word_errors`
    Words that must be replaced, left out or added to make the other transcript out of the model's, in percent of those.

What these say of a voice is physical. Whether it is friendly, only people can say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equivox.annotate.numeric import length_of, number_text
from equivox.core.lazy import NDArray, np
from equivox.core.media import MediaError, decode_audio
from equivox.core.segments import SAID, Segment, Value
from equivox.core.text import NO_SPACES, is_mark, one_coding

if TYPE_CHECKING:
    Floats = NDArray[np.float64]

RATE = 16_000
WINDOW, HOP = 320, 160
"""Samples of a level, and from one level to the next: 20 and 10 ms."""
FLOOR_DB = 35.0
"""How far below the loud tenth of a recording speech can lie."""
LEAST_LEVEL_DB = -70.0
"""What lies below this is silence, however quiet the rest is."""
PAUSE_S = 0.25
VERSION = 1
"""Raised whenever the same recording would measure otherwise."""
_DIGITS = 4
"""Decimals that are kept of a measure."""


@dataclass(frozen=True)
class SoundReader:
    """The tool that measures spoken answers; `load` returns the bytes of one by its SHA-256.

    A segment's text is the SHA-256 of the sound and, on the next line, the transcript; if another model made that, the
    model's own stands behind `SAID`.
    """

    load: Callable[[str], bytes] = field(compare=False)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version of the measures."""
        return {"name": "sound", "version": VERSION}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield the measures of each answer; None for a sound that is missing, damaged or without speech."""
        for segment in segments:
            sha256, _, texts = segment.text.partition("\n")
            transcript, _, said = texts.partition(SAID)
            wanted = {str(one.number.measure): one.name for one in segment.attributes if one.number is not None}
            try:
                found = measures_of(self.load(sha256), length_of(transcript, "words"), wanted, name=sha256)
            except MediaError:
                found = {}
            errors, words = word_errors(said, transcript)
            if words and "word_errors" in wanted:
                found["word_errors"] = 100 * errors / words
            numbers = {wanted[measure]: number_text(round(value, _DIGITS)) for measure, value in found.items()}
            yield [Value(name, number, "") for name, number in numbers.items()] or None


def measures_of(data: bytes, words: int | None, wanted: Collection[str], *, name: str) -> dict[str, float]:
    """Return how a spoken answer of so many words sounds: the `wanted` measures that it has.

    An answer without speech has none, one without a number of words no pace: a number that is not there is never 0.
    Raises MediaError for a recording that cannot be decoded.
    """
    samples = decode_audio(data, name=name, sampling_rate=RATE).astype(np.float64)
    levels = _levels(samples)
    loud = float(np.quantile(levels, 0.9))
    spoken = levels > max(loud - FLOOR_DB, LEAST_LEVEL_DB)
    if not spoken.any():
        return {}
    places = np.flatnonzero(spoken)
    first, last = int(places[0]), int(places[-1])
    # A level stands for the hop at its middle.
    seconds = (last - first + 1) * HOP / RATE
    found = {
        "seconds": seconds,
        "pauses": 100 * _silence(spoken[first : last + 1]) * HOP / RATE / seconds,
        "loudness": float(10 * np.log10((10 ** (levels[spoken] / 10)).mean())),
    }
    if words is not None:
        found["words_per_second"] = words / seconds
    return {measure: value for measure, value in found.items() if measure in wanted}


def word_errors(said: str, heard: str) -> tuple[int, int]:
    """Return how many words part two transcripts of one answer, and how many words the first one, `said`, has.

    Words are replaced, left out or added (Levenshtein); capitals and punctuation do not count. In scripts without
    spaces a letter counts as a word.

    >>> word_errors("One, two three.", "one too three four")
    (2, 3)
    """
    first, second = (
        "".join(sign if sign.isalnum() or sign in "_'’" or is_mark(sign) else " " for sign in letters).split()
        for letters in (re.sub(NO_SPACES, r" \g<0> ", one_coding(text.casefold())) for text in (said, heard))
    )
    if first == second:  # most transcripts agree, and long ones are many
        return 0, len(first)
    words, places = np.array(second, object), np.arange(len(second) + 1)
    row = places
    for number, word in enumerate(first, start=1):
        changed = np.minimum(row[:-1] + (words != word), row[1:] + 1)
        # A word that is added costs one more than the place before it.
        row = np.minimum.accumulate(np.concatenate([[number], changed]) - places) + places
    return int(row[-1]), len(first)


def _levels(samples: Floats) -> Floats:
    """Return the level of every 20 ms in dB below full scale, one for each 10 ms; silence is -150 dB."""
    power = np.concatenate([[0.0], np.cumsum(samples**2)])
    starts = np.arange(0, max(0, len(samples) - WINDOW) + 1, HOP)
    ends = np.minimum(starts + WINDOW, len(samples))
    mean = (power[ends] - power[starts]) / np.maximum(ends - starts, 1)
    levels: Floats = 10 * np.log10(np.maximum(mean, 1e-15))
    return levels


def _silence(spoken: NDArray[np.bool_]) -> int:
    """Return how many levels lie in pauses that are long enough to count."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], spoken, [True]]).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths * HOP / RATE >= PAUSE_S].sum())
