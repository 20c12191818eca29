"""Requests for the tests of engines and of what is built on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from equivox.core.requests import Labels, MediaPart, Request
from equivox.core.task import Sampling


def made_request(number: int, *media: MediaPart, **changes: Any) -> Request:
    """Return a request with the key `key{number}` and the seed `number`; `changes` are other values of its fields."""
    request = Request(
        key=f"key{number}",
        task="test:task",
        sample_id=f"item{number}",
        repeat=0,
        condition="audio" if media else "text",
        media=media,
        text=f"Question {number}?",
        sampling=Sampling(),
        seed=number,
        labels=Labels(group="a", groups=("a", "b"), cluster="c", stratum="s"),
    )
    return replace(request, **changes)
