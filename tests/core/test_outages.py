"""What is an outage and what is not: so many fatal failures alike in a row, and none of them is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from equivox.core.errors import RunError
from equivox.core.progress import until_outage
from equivox.core.requests import Response


def responses(causes: str) -> Iterator[Response]:
    """Yield an answer for each point, and a fatal failure for each letter, which is its cause."""
    for number, cause in enumerate(causes):
        if cause == ".":
            yield Response(key=f"{number}", text="Hm.")
        else:
            yield Response(key=f"{number}", text=None, error=f"fault {cause}", fatal=cause)


@pytest.mark.parametrize(
    ("causes", "passed", "stops"),
    [
        ("..aa.aa..", 9, False),  # an answer between them: the engine still answers
        ("..aaa..", 2, True),
        ("aabbaabb", 8, False),  # never three of one cause
        (".aabbb.", 3, True),  # the two of the other cause were no outage, and are kept
        ("aa", 2, False),
        ("", 0, False),
    ],
)
def test_three_alike_in_a_row_are_an_outage(causes: str, passed: int, stops: bool) -> None:
    seen: list[Response] = []
    try:
        for response in until_outage(responses(causes), "m", 3):
            seen.append(response)
    except RunError as error:
        assert stops and f"m failed 3 times in a row with the same error (fault {causes[passed]})" in str(error)
    else:
        assert not stops
    assert [response.key for response in seen] == [str(number) for number in range(passed)]


def test_nothing_is_an_outage_where_none_is_looked_for() -> None:
    assert len(list(until_outage(responses("a" * 50), "m", 0))) == 50
