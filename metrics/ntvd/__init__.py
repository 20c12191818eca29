"""nTVD: the distance between the answers to different groups (VIBE, arXiv 2604.17248, eq. 2-5)."""

from __future__ import annotations

from equivox.metrics.ntvd.metric import METRIC

__all__ = ["METRIC"]
