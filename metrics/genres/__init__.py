"""GENRES: comparison of two characters of one narrative, male minus female (arXiv 2506.23101)."""

from __future__ import annotations

from equivox.metrics.genres.annotation.scheme import GenresScheme
from equivox.metrics.genres.metric import METRIC
from equivox.metrics.genres.simulated import SimulatedNarratives

__all__ = ["METRIC", "GenresScheme", "SimulatedNarratives"]
