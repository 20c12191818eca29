"""Which losses are unequal: by hand, at the boundary, and without groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equivox.core.coverage import Coverage


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
        ({"f": 100, "m": 95}, "5 % of the answers of group m are missing, 0 % of group f"),
        ({"f": 70, "m": 95, "x": 90}, "30 % of the answers of group f are missing, 5 % of group m"),
        ({"f": 80, "m": 80}, None),
        ({"f": 10}, None),
        ({}, None),
    ],
)
def test_losses_are_unequal_from_five_points_on(used: dict[str, int], said: str | None) -> None:
    assert covered(**used).uneven == said


@pytest.mark.parametrize(("field", "what"), [
    ("truncated", "cut off by the token limit"), ("cut_in_thought", "before they began"), ("withheld", "withheld"),
])  # fmt: skip
def test_what_ends_unusually_is_told_from_five_percent_on(field: str, what: str) -> None:
    of_a_hundred = covered(f=100)
    (told,) = replace(of_a_hundred, **{field: 5}).warnings()
    assert told.startswith("5 of 100 responses") and what in told
    assert replace(of_a_hundred, **{field: 4}).warnings() == []
