"""Scores that cannot be true, by hand: each says what it has and what to do."""

from __future__ import annotations

import math

import pytest
from made_scores import made_score


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"value": 12.0}, None),
        ({"value": math.nan, "undefined_reason": "nobody answered"}, None),
        ({"value": math.nan}, "has the number nan and no"),
        ({"value": math.inf}, "has the number inf and no"),
        ({"value": 0.0, "undefined_reason": "nobody answered"}, "has the number 0.0 beside"),
        ({"value": math.nan, "undefined_reason": " "}, "has an empty"),
    ],
)
def test_a_number_or_a_reason_and_never_both(given: dict[str, object], told: str | None) -> None:
    found = made_score(**given).impossible
    assert found is None if told is None else found is not None and found.startswith(told)
