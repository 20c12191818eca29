"""The statistics, which are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equivox.core.lazy import Later

__all__ = ["statistics"]

if TYPE_CHECKING:
    from equivox import statistics
else:
    statistics = Later("equivox.statistics")
