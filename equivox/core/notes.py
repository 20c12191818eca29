"""Notes: what to know about a number, as a code with values; `equivox/report/notes.py` has the words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

LEVEL = 0.05
"""The level of every decision: a finding needs a q below it."""


class NoteCode(StrEnum):
    """The codes of notes; the comment behind each lists its values."""

    # Facts, which decide nothing
    DESIGN = "design"  # null_mean; sd: that of single answers within a group
    MEAN_OF = "mean_of"  # attributes, of: how many there are
    RARE_VALUES = "rare_values"  # share of the values that is left out, min_count
    OTHER_VALUES = "other_values"  # share of the values that are none of the options
    UNITS_LEFT_OUT = "units_left_out"  # n, of, crossed
    STRATA_UNEQUAL = "strata_unequal"  # share of the rows of group `one` in other strata than those of `other`
    # Why a score without a finding cannot say that there is no difference
    SMALLEST_P = "smallest_p"  # p, permutations
    LEFT_OUT = "left_out"  # attribute, reason: a note
    HIDDEN_BY_MEAN = "hidden_by_mean"  # attribute, p
    WITHIN_ITEMS = "within_items"  # p
    FEW_UNITS = "few_units"  # compared, of, needed: a share, crossed: whether units are in every group
    NO_NOISE = "no_noise"
    CANNOT_TELL = "cannot_tell"  # text
    # Why a number is not known
    TOO_FEW_USABLE = "too_few_usable"  # group, share, needed
    NOTHING_USABLE = "nothing_usable"
    NO_ATTRIBUTE = "no_attribute"  # reasons: attribute → note
    NO_REFUSALS = "no_refusals"
    ONE_GROUP = "one_group"  # group
    EMPTY_GROUP = "empty_group"  # groups: those without a usable answer
    NOTHING_SHARED = "nothing_shared"  # crossed: whether units are in every group
    RARE_ONLY = "rare_only"  # min_count
    ONE_KEPT = "one_kept"  # value, min_count
    ONE_VALUE = "one_value"  # value: what every answer says
    FEW_LABELS = "few_labels"  # groups, needed
    # What made the number
    STAND_INS = "stand_ins"  # tools: the stand-ins for published ones that annotated the responses
    # How responses ended
    UNEVEN = "uneven"  # group, share, other, other_share: the shares of their answers that are missing
    CUT_OFF = "cut_off"  # n, of
    CUT_IN_THOUGHT = "cut_in_thought"  # n, of
    WITHHELD = "withheld"  # n, of
    # A note about a run, a task or a cell
    ABOUT = "about"  # about, note
    # The words of a metric
    REMARK = "remark"  # text


class ErrorKind(StrEnum):
    """Why a request failed, where that decides what to do."""

    MEDIA = "media"  # a recording or a picture cannot be used; no model was asked about it
    NO_ROW = "no_row"  # an import has no answer


@dataclass(frozen=True)
class Note:
    """One thing to know about a number: its code, and values as JSON can hold them."""

    code: NoteCode
    values: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.code, json.dumps(self.values, sort_keys=True)))

    def __str__(self) -> str:
        if self.code in (NoteCode.REMARK, NoteCode.CANNOT_TELL):
            return str(self.values["text"])
        if self.code == NoteCode.ABOUT:
            return f"{self.values['about']}: {as_note(self.values['note'])}"
        values = ", ".join(f"{name} {value}" for name, value in self.values.items())
        return f"{self.code}: {values}" if values else str(self.code)

    @property
    def plain(self) -> dict[str, Any]:
        """The note as JSON can hold it."""
        return {"code": str(self.code), "values": dict(self.values)}


def describe_design(*, null_mean: float = math.nan, sd: float = math.nan) -> Note:
    """Return what is known of the noise of a design; a number that is not known (NaN) is left out."""
    numbers = {"null_mean": null_mean, "sd": sd}
    return Note(NoteCode.DESIGN, {name: number for name, number in numbers.items() if not math.isnan(number)})


def remark(text: str) -> Note:
    """Return the words of a metric as a note."""
    return Note(NoteCode.REMARK, {"text": text})


def note_about(about: str, note: Note) -> Note:
    """Return a note with what it is about."""
    return Note(NoteCode.ABOUT, {"about": about, "note": note.plain})


def as_note(given: object) -> object:
    """Return a text as a remark, and a stored note as a `Note`; anything else unchanged.

    >>> as_note("few")
    Note(code=<NoteCode.REMARK: 'remark'>, values={'text': 'few'})
    """
    if isinstance(given, str):
        return remark(given)
    if isinstance(given, Mapping) and given.keys() == {"code", "values"}:
        return Note(NoteCode(given["code"]), dict(given["values"]))
    return given
