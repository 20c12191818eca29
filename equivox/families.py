"""Multiple testing: the q-value of every score within the family it was tested in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from equivox.scores import Score


def with_q(scores: Sequence[Score]) -> list[Score]:
    """Return `scores` with `q` (Benjamini-Hochberg over p_cluster) and `family_size` filled in.

    All attributes with one role over all tasks of the run are one family, and so are all task scores. A score without
    a p-value keeps q NaN and does not count towards its family.
    """
    from scipy.stats import false_discovery_control

    families: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for index, score in enumerate(scores):
        if math.isfinite(score.p_cluster):
            families[score.role, score.attribute is None].append(index)
    adjusted = list(scores)
    for members in families.values():
        q_values = false_discovery_control([scores[index].p_cluster for index in members])
        for index, q in zip(members, q_values, strict=True):
            adjusted[index] = replace(scores[index], q=float(q), family_size=len(members))
    return adjusted
