"""What is measured of spoken answers, as values of attributes; no annotator hears them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equivox.annotate.numeric import length_of, number_text
from equivox.core.annotation import Value
from equivox.core.media import MediaError
from equivox.core.segments import SAID, Segment
from equivox.core.sound import VERSION, measures_of, word_errors

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
                found = measures_of(self.load(sha256), length_of(transcript, "words"), wanted, name=sha256[:12])
            except MediaError:
                found = {}
            errors, words = word_errors(said, transcript)
            if words and "word_errors" in wanted:
                found["word_errors"] = 100 * errors / words
            numbers = {wanted[measure]: number_text(round(value, _DIGITS)) for measure, value in found.items()}
            yield [Value(name, number, "") for name, number in numbers.items()] or None
