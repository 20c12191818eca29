"""Numbers: the difference of the groups' means, in the number's unit."""

from __future__ import annotations

from equivox.metrics.numbers.metric import METRIC

__all__ = ["METRIC"]
