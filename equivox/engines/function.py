"""Any function as a model: for a custom API, or a stand-in in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.requests import EngineIdentity, MediaPart, Request, Response


class FunctionEngine:
    """Answers every request with `function(request)`, one after the other.

    `function` is given the request, with the text in `request.text` and recordings or images in `request.media`, whose
    bytes `load()` reads, and returns the answer. What it raises becomes a failed response, and so does anything but
    text; an item counts as used when its bytes were read. `name` and `revision` tell its responses from those of
    other models: another function needs another of either. Neither who is asked about nor any label is visible to it.

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
    ) -> None:
        if not name or not revision:
            raise RequestError(f"`name` and `revision` tell models apart, got {name!r} and {revision!r}; give both")
        self._function = function
        self.identity = EngineIdentity(engine="function", model=name, revision=revision, settings=dict(settings or {}))

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield one response per request, in order."""
        for request in requests:
            read: set[int] = set()
            media = tuple(_noting(part, number, read) for number, part in enumerate(request.media))
            # A function that looked at the labels would not measure a model.
            shown = replace(
                request, media=media, labels=replace(request.labels, group="", groups=(), cluster="", metadata={})
            )
            try:
                text = self._function(shown)
            except Exception as error:  # whatever a custom model raises, the others go on
                yield Response(key=request.key, text=None, error=f"{type(error).__name__}: {error}")
                continue
            if isinstance(text, str):
                yield Response(key=request.key, text=text, media_items=len(read))
            else:
                yield Response(
                    key=request.key, text=None, error=f"the function returned {type(text).__name__}, not text"
                )

    def check(self, requests: Sequence[Request]) -> None:
        """Accept everything: what the function cannot do, it says by raising."""

    def close(self) -> None:
        """Free nothing."""


def _noting(part: MediaPart, number: int, read: set[int]) -> MediaPart:
    """Return `part` with a `load` that notes in `read` that its bytes were read."""

    def load() -> bytes:
        content = part.load()
        read.add(number)
        return content

    return replace(part, load=load)
