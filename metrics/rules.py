"""Tools that annotate segments by functions, without an annotator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.core.segments import Segment, Value

Read = Callable[[Sequence[Segment]], Iterator[Sequence[Value] | None]]
"""Function that yields the values of each segment in order; None if it cannot tell."""


@dataclass(frozen=True, eq=False)
class Rules:
    """A tool (`equivox.core.segments.SegmentTool`): what its annotations depend on, and how it annotates segments."""

    described: Callable[[], Mapping[str, Any]]
    read: Read

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name, version and settings that its annotations depend on."""
        return self.described()
