"""Progress callbacks of long-running stages."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage's name, the number of things done and the total."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore progress."""
