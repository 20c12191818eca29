"""Engines that call a Python function: for a custom API, for answers that exist already, as a stand-in in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.fields import refuse_unless
from equivox.core.reasoning import split_reasoning
from equivox.core.requests import Engine, EngineIdentity, MediaPart, Request, Response
from equivox.core.task import Need
from equivox.engines.arguments import PUBLIC


class FunctionEngine(Engine):
    """Engine that answers every request with `function(request)`, one after the other.

    `function` receives the request (the text is `request.text`; recordings and images are in `request.media`, whose
    `load()` reads the bytes) and returns the answer. An exception or a result that is not text becomes a failed
    response. A media item counts as used when its bytes were read. `name` and `revision` identify the responses: give
    another function another name or revision. `settings` are recorded with the run; those of names that equivox does
    not know only if `public` names them. The function sees neither the speaker's group nor other labels. `able` says
    what it can do beside answering a text: `turns` if it sends `request.before`.

    Examples
    --------
    >>> engine = FunctionEngine(lambda request: "Call me Kim.", name="kim", revision="1")
    >>> engine.identity.model, engine.identity.revision
    ('kim', '1')
    """

    modalities = frozenset({"text", "audio", "image"})

    def __init__(
        self,
        function: Callable[[Request], str],
        *,
        name: str,
        revision: str,
        settings: Mapping[str, Any] | None = None,
        public: Iterable[str] = (),
        able: Iterable[Need] = (),
    ) -> None:
        if not name or not revision:
            raise UsageError(f"`name` and `revision` must both be set, got {name!r} and {revision!r}")
        refuse_unless(callable(function), "function", function, "a function that takes a request and returns a text")
        self._function = function
        self.able = frozenset(able)
        self.identity = EngineIdentity(
            engine="function",
            model=name,
            revision=revision,
            settings=dict(settings or {}),
            public=PUBLIC | frozenset(public),
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request, in order."""
        for request in requests:
            read: set[int] = set()
            media = tuple(_noting(part, number, read) for number, part in enumerate(request.media))
            # The labels are removed, so that the function cannot use them.
            shown = replace(
                request, media=media, labels=replace(request.labels, group="", groups=(), cluster="", metadata={})
            )
            try:
                text = self._function(shown)
            except Exception as error:  # any error fails only this request
                yield Response(key=request.key, text=None, error=f"{type(error).__name__}: {error}")
                continue
            if isinstance(text, str):
                answer, thinking = split_reasoning(text, request.sampling.reasoning)
                yield Response(key=request.key, text=answer, thinking=thinking, media_items=len(read))
            else:
                yield Response(
                    key=request.key, text=None, error=f"the function returned {type(text).__name__}, not text"
                )


class RecordedEngine(Engine):
    """Engine of answers that exist already: `answer` finds the response to a request, and nothing is sent."""

    modalities = frozenset({"text", "audio", "image"})

    def __init__(self, identity: EngineIdentity, answer: Callable[[Request], Response]) -> None:
        self.identity = identity
        self._answer = answer

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield the response to each request, in order."""
        return map(self._answer, requests)


def _noting(part: MediaPart, number: int, read: set[int]) -> MediaPart:
    """Return `part` with a `load` that adds `number` to `read`."""

    def load() -> bytes:
        content = part.load()
        read.add(number)
        return content

    return replace(part, load=load)
