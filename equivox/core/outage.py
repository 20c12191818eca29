"""An engine that can no longer answer at all: a refused key, an empty account, a model that is gone."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from equivox.core.errors import RunError

if TYPE_CHECKING:
    from equivox.core.requests import Response

STOP_AFTER = 20
"""So many failures in a row for one fatal cause are an outage, unless a user says otherwise."""


def until_outage(responses: Iterable[Response], who: str, stop_after: int) -> Iterator[Response]:
    """Yield responses as they come; RunError at an outage, which is `stop_after` fatal failures alike in a row.

    Fatal failures are held back until another response shows that the engine still answers. Those of an outage are
    not yielded: they are asked again when the run goes on. With `stop_after` 0 nothing is an outage.
    """
    held: list[Response] = []
    try:
        for response in responses:
            if response.fatal is None or not stop_after:
                yield from held
                held = []
                yield response
                continue
            if held and held[-1].fatal != response.fatal:
                yield from held
                held = []
            held.append(response)
            if len(held) >= stop_after:
                raise RunError(
                    f"{who} failed {len(held)} times in a row alike ({response.error}), so the run stops; what was "
                    "answered is stored: mend the cause and give the same command again"
                )
    finally:
        if isinstance(responses, Generator):
            responses.close()
    yield from held
