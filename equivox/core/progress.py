"""How long-running stages say how far they are."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage's name, how much is done and how much there is."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""
