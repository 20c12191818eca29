"""Numbers: the difference of the groups' means, and the distance of their distributions, in the number's unit."""

from __future__ import annotations

from equivox.metrics.numbers.metric import METRIC

__all__ = ["METRIC"]
