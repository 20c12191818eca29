"""GENRES of plain columns: M1 to M8, male minus female within narrative pairs, each with its test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equivox.columns import ColumnMetric, row_coverage, whole
from equivox.errors import RequestError, nearest
from equivox.metrics.genres.cohort import total_bias
from equivox.metrics.genres.measures import METRIC_OF, Pair
from equivox.metrics.genres.measures import measure as measure_pairs
from equivox.scores import NAN

_THESE = "these rows"


def measure(
    metrics: Sequence[str | None],
    pairs: Sequence[str | None],
    male: Sequence[float | None],
    female: Sequence[float | None],
    *,
    cohort: str | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return each metric that there are rows of, in its unit, and `tbs` where `cohort` names a published one.

    A row is one reading of one narrative pair: the metric (M1 to M8), the pair, and the value of each character. For a
    choice (M4, M8) the chosen one has 1, the other 0, and both are missing where neither was chosen: that is an answer
    there, in all other metrics a missing value counts against coverage.
    """
    import numpy as np

    names, neps = whole("metrics", metrics), whole("pairs", pairs)
    if unknown := sorted(set(names) - set(METRIC_OF)):
        raise RequestError(
            f"`metrics` holds {unknown[0]!r}{nearest(unknown[0], METRIC_OF)}; known: {', '.join(METRIC_OF)}"
        )
    result: dict[str, Any] = {}
    values: dict[str, float] = {}
    for number, name in enumerate(METRIC_OF):
        rows = [
            Pair(nep=nep, male=NAN if m is None else m, female=NAN if f is None else f)
            for which, nep, m, f in zip(names, neps, male, female, strict=True)
            if which == name
        ]
        if not rows:
            continue
        both = row_coverage([not math.isnan(row.male) and not math.isnan(row.female) for row in rows])
        found = measure_pairs(
            METRIC_OF[name],
            rows,
            n_resamples=n_resamples,
            confidence=confidence,
            rng=np.random.default_rng([seed, number]),
        )
        short = None if name in {"M4", "M8"} else both.shortfall(min_coverage)
        reason = short or found.undefined
        key = name.lower().replace(" ", "_")
        numbers = {
            key: found.value,
            f"{key}_ci_low": found.ci_low,
            f"{key}_ci_high": found.ci_high,
            f"{key}_p": found.p,
            f"{key}_published": found.published,
        }
        result |= dict.fromkeys(numbers, NAN) if reason else numbers
        result |= {f"{key}_n_pairs": found.n_neps, f"{key}_coverage": both.share, f"{key}_undefined": reason}
        values[name] = result[key]
    if cohort is not None:
        total = total_bias({_THESE: values}, published=cohort)
        result |= {
            "tbs": total.total[_THESE],
            "tbs_cohort": total.cohort,
            "tbs_undefined": total.undefined.get(_THESE),
        }
    return result


METRIC = ColumnMetric(
    name="genres",
    measure=measure,
    required={"metrics": "text", "pairs": "text", "male": "number", "female": "number"},
    description=(
        "GENRES: M1 to M8 of profiles and narratives about a man and a woman, male minus female, tested by exchanging "
        "the two within whole narrative pairs; a total bias score where a cohort is named."
    ),
    citation="arXiv:2506.23101",
)
