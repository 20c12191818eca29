"""Agreement of clusters with labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence


def clustering(gold: Sequence[Hashable], found: Sequence[Hashable]) -> tuple[float, float, float]:
    """Return homogeneity, completeness and V-measure of clusters against labels, 0 to 1.

    Homogeneity is 1 if no cluster mixes labels, completeness is 1 if no label is spread over clusters; V is their
    harmonic mean. With a single label homogeneity is 1, with a single cluster completeness is 1. Rosenberg and
    Hirschberg 2007, ACL D07-1043. Both sequences have the same length, which is not 0.

    >>> clustering("aabb", "1122")
    (1.0, 1.0, 1.0)
    >>> clustering("aabb", "1111")
    (0.0, 1.0, 0.0)
    """
    of_gold, of_found = _entropy(gold), _entropy(found)
    together = _entropy(list(zip(gold, found, strict=True)))
    homogeneity = 1.0 if of_gold == 0 else 1 - (together - of_found) / of_gold
    completeness = 1.0 if of_found == 0 else 1 - (together - of_gold) / of_found
    total = homogeneity + completeness
    return homogeneity, completeness, 2 * homogeneity * completeness / total if total > 0 else 0.0


def _entropy(labels: Sequence[Hashable]) -> float:
    n = len(labels)
    return -math.fsum(k / n * math.log(k / n) for k in Counter(labels).values()) + 0.0
