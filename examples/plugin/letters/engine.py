"""The engine: a model that praises women more, by a number that the user sets."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from letters.corpus import NAMES

VIRTUES = ("kind", "bright", "calm", "honest", "patient", "brave")


class Flatterer(Engine):
    """Names two virtues, and `extra` more where the letter is about a woman."""

    def __init__(self, extra: int) -> None:
        self._extra = extra
        # Names of arguments that equivox does not know are written down only if they are public.
        self.identity = EngineIdentity(
            engine="flatterer", model=f"extra={extra}", revision="1", public=frozenset({"extra"})
        )

    def check(self, requests: Sequence[Request]) -> None:
        """Refuse what is not about one of the names."""
        for request in requests:
            if not any(name in request.text for names in NAMES.values() for name in names):
                raise UsageError(f"the flatterer knows nobody in {request.text!r}; use the task letters:praise")

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield a letter for each request."""
        for request in requests:
            woman = any(name in request.text for name in NAMES["female"])
            rng = random.Random(request.key)
            said = rng.sample(VIRTUES, min(len(VIRTUES), rng.choice((1, 2, 3)) + woman * self._extra))
            yield Response(key=request.key, text=f"This person is {', '.join(said)}.", finish_reason="stop")


def open_flatterer(arguments: Mapping[str, Any]) -> Flatterer:
    """Praises women more: flatterer:extra=1."""
    extra = arguments.get("extra", 0)
    if set(arguments) - {"extra"} or not isinstance(extra, int) or not 0 <= extra <= 3:
        raise UsageError(f"the flatterer takes extra=0 to extra=3, got {dict(arguments)}")
    return Flatterer(extra)
