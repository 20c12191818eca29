"""Engines answer requests. A model is named `scheme:rest`; each scheme is one engine."""

from __future__ import annotations

from collections.abc import Sequence

from equivox.engines.base import (
    Engine,
    EngineIdentity,
    Labels,
    MediaPart,
    Request,
    Response,
    request_key,
)
from equivox.errors import RequestError, nearest
from equivox.task import Task

__all__ = [
    "Engine",
    "EngineIdentity",
    "Labels",
    "MediaPart",
    "Request",
    "Response",
    "open_engine",
    "request_key",
]

SCHEMES = ("reference",)


def open_engine(model: str, tasks: Sequence[Task]) -> Engine:
    """Return the engine for `model`, written `scheme:rest` (`reference:planted?shift=0.2`).

    Raises RequestError for an unknown scheme and for anything the scheme does not know.
    """
    scheme, colon, rest = model.partition(":")
    if scheme == "reference" and colon:
        from equivox.engines.reference import ReferenceEngine

        return ReferenceEngine.from_spec(rest, tasks)
    raise RequestError(
        f"unknown model scheme in {model!r}{nearest(scheme, SCHEMES)}; "
        f"a model is written {' or '.join(f'{known}:NAME' for known in SCHEMES)}, for example reference:biased"
    )
