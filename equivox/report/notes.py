"""The words of notes: a sentence for each code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equivox.core.notes import Note, NoteCode, as_note

_WORDS: Mapping[NoteCode, str] = {
    NoteCode.DESIGN: "",
    NoteCode.MEAN_OF: "",
    NoteCode.RARE_VALUES: "{share} of the values are seen fewer than {min_count} times and left out "
    "(`--scoring min_count=2` or `merge=embedding` keeps more)",
    NoteCode.OTHER_VALUES: "{share} of the values are none of the options (other), and count as one",
    NoteCode.UNITS_LEFT_OUT: "{n} of {of} units lack a group, or a group in their block, and are left out",
    NoteCode.STRATA_UNEQUAL: "{share} of {one} are in other strata than {other}: part of a difference may be theirs",
    NoteCode.SMALLEST_P: "{permutations:,} permutations: no p below {p:.2g}",
    NoteCode.LEFT_OUT: "{attribute} is not in the mean: {reason}",
    NoteCode.HIDDEN_BY_MEAN: "{attribute} differs between groups (p {p:.2g}), which the mean does not show",
    NoteCode.WITHIN_ITEMS: "groups differ within single items or blocks (p {p:.2g}); these differences may cancel",
    NoteCode.FEW_UNITS: "{compared} of {of} units have a usable answer of every group that is compared, fewer than "
    "{needed}",
    NoteCode.NO_NOISE: "no unit differs, or a group has one unit: how far chance alone goes is not known",
    NoteCode.CANNOT_TELL: "{text}",
    NoteCode.TOO_FEW_USABLE: "only {share} of the responses of group {group} are usable; every group needs {needed}",
    NoteCode.NOTHING_USABLE: "no response could be used",
    NoteCode.NO_ATTRIBUTE: "no attribute is defined: {reasons}",
    NoteCode.NO_REFUSALS: "no response declines: there are no refusals to compare",
    NoteCode.ONE_GROUP: "only one group, {group}: a difference needs two",
    NoteCode.EMPTY_GROUP: "no usable answer in group {groups}",
    NoteCode.NOTHING_SHARED: "no unit, stratum or block has usable answers of all groups: nothing can be compared",
    NoteCode.RARE_ONLY: "no value is seen {min_count} times or more",
    NoteCode.ONE_KEPT: "only one value, {value}, is seen {min_count} times or more",
    NoteCode.ONE_VALUE: "every answer is the same, {value}: this shows neither a difference nor fairness",
    NoteCode.FEW_LABELS: "fewer than {needed} labelled responses of {groups}",
    NoteCode.STAND_INS: "annotated by stand-ins ({tools}): no model, no published lexicon",
    NoteCode.UNEVEN: "{share} of the answers of group {group} are missing, {other_share} of group {other}",
    NoteCode.CUT_OFF: "{n} of {of} responses were cut off by the token limit: raise max_new_tokens",
    NoteCode.CUT_IN_THOUGHT: "{n} of {of} responses were cut off before they began to answer: raise max_new_tokens",
    NoteCode.WITHHELD: "{n} of {of} responses were withheld by the provider: its filter is measured with the model",
    NoteCode.ABOUT: "{about}: {note}",
    NoteCode.REMARK: "{text}",
}
_SHARES = ("share", "needed", "other_share")
_SELDOM = 0.2
"""Shares of rare and of other values up to this one need no sentence."""


def write_note(note: Note | str | None) -> str:
    """Return the sentence of a note; empty for a fact that needs none, and for None.

    >>> write_note(Note(NoteCode.SMALLEST_P, {"p": 0.1, "permutations": 20}))
    '20 permutations: no p below 0.1'
    """
    if note is None or isinstance(note, str):
        return note or ""
    if note.code in (NoteCode.RARE_VALUES, NoteCode.OTHER_VALUES) and note.values["share"] <= _SELDOM:
        return ""
    return _WORDS[note.code].format(**{name: _write_value(name, value) for name, value in note.values.items()})


def _write_value(name: str, value: Any) -> Any:
    """Return the words of a note within a note, of several by name, and of a share; any other value unchanged."""
    if name in _SHARES:
        return f"{round(100 * value, 1):g} %"
    if not isinstance(value, Mapping):
        return value
    inner = as_note(value)
    if isinstance(inner, Note):
        return write_note(inner)
    return "; ".join(f"{name}: {_write_value(name, each)}" for name, each in value.items())
