"""Which losses are unequal: by hand, at the boundary, and without groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equivox.core.coverage import Coverage
from equivox.core.notes import Note, NoteCode


def covered(**used: int) -> Coverage:
    """Of a hundred answers of each group, those that are used."""
    n = sum(used.values())
    return Coverage(
        requested=100 * len(used),
        generated=100 * len(used),
        answered=n,
        parsed=n,
        used=n,
        requested_by_group=dict.fromkeys(used, 100),
        used_by_group=used,
    )


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ({"f": 100, "m": 100}, None),
        ({"f": 100, "m": 96}, None),
        ({"f": 100, "m": 95}, ("m", 0.05, "f", 0.0)),
        ({"f": 70, "m": 95, "x": 90}, ("f", 0.3, "m", 0.05)),
        ({"f": 80, "m": 80}, None),
        ({"f": 10}, None),
        ({}, None),
    ],
)
def test_losses_are_unequal_from_five_points_on(
    used: dict[str, int], said: tuple[str, float, str, float] | None
) -> None:
    note = covered(**used).uneven
    assert said == (None if note is None else tuple(note.values.values()))


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("truncated", NoteCode.CUT_OFF),
        ("cut_in_thought", NoteCode.CUT_IN_THOUGHT),
        ("withheld", NoteCode.WITHHELD),
    ],
)
def test_an_unusual_end_is_a_warning_from_five_percent_on(field: str, code: NoteCode) -> None:
    of_a_hundred = covered(f=100)
    assert replace(of_a_hundred, **{field: 5}).list_warnings() == [Note(code, {"n": 5, "of": 100})]
    assert replace(of_a_hundred, **{field: 4}).list_warnings() == []
