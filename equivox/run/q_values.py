"""Multiple testing: the q-value of every score within its family of tests."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from equivox.core.scores import Score


def with_q(scores: Sequence[Score]) -> list[Score]:
    """Return `scores` with `q` (Benjamini-Hochberg over p_cluster) and `family_size` filled in.

    Within a condition and a metric, the attributes with one role over all tasks of the run are one family of tests; the
    scores of whole tasks are another, and so are the scores of each kind of breakdown.
    A score without a p-value keeps q NaN and does not count towards its family.
    """
    from equivox.statistics import adjust

    families: dict[tuple[str, str, str, str, bool], dict[str, float]] = defaultdict(dict)
    for index, score in enumerate(scores):
        kind = score.subset.partition("=")[0]
        families[score.condition, score.name, kind, score.role, score.attribute is None][str(index)] = score.p_cluster
    adjusted = list(scores)
    for (condition, _, kind, role, whole), members in families.items():
        what = "task scores" if whole else f"{role} attributes × tasks"
        what += f" by {kind}" if kind else ""
        family = adjust(members, family=f"{what} of this run, condition {condition}")
        for place, q in family.q.items():
            if not math.isnan(q):
                adjusted[int(place)] = replace(scores[int(place)], q=q, family_size=family.size)
    return adjusted
