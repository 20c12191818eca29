"""A model that needs nothing: it says how long the clip is. Begin here."""

from __future__ import annotations

from typing import Any

SETTINGS = ("max_tokens", "temperature", "seed")


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return a sentence about the clip."""
    if audio is None:
        return "I hear nothing."
    with open(audio.path, "rb") as file:
        return f"I hear {audio.seconds:.1f} seconds in {len(file.read())} bytes."
