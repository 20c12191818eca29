"""BADF: phrases that a model's stories associate with an identity (arXiv 2508.01412)."""

from __future__ import annotations

from equivox.metrics.badf.annotation.scheme import StoryScheme
from equivox.metrics.badf.metric import METRIC
from equivox.metrics.badf.simulated import SimulatedStories

__all__ = ["METRIC", "SimulatedStories", "StoryScheme"]
