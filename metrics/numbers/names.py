"""The names of the scores of a number."""

from __future__ import annotations

DIFFERENCE, DISTANCE = "mean difference", "distance of distributions"
