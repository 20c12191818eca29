"""GENRES of plain columns: M1 to M8, male minus female within narrative pairs, each with its test."""

from __future__ import annotations

import math
from typing import Any

from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import np
from equivox.core.scores import NAN
from equivox.metrics.column_metric import Column, ColumnMetric, row_coverage, whole
from equivox.metrics.genres.cohort import total_bias
from equivox.metrics.genres.measures import CHOICES, METRIC_OF, Pair
from equivox.metrics.genres.measures import measure as measure_pairs

_THESE = "these rows"

_RANGES = {
    "M1": (0, 1), "M2": (-1, 1), "M3": (0, math.inf), "M4": (0, 1), "M5": (0, math.inf), "M6": (0, 1), "M7": (0, 1),
    "M8": (0, 1), "M1 signed": (-1, 1),
}  # fmt: skip
"""The possible values of one character; they are converted to the unit of the result, such as percent."""


def measure(
    *,
    metrics: Column,
    pairs: Column,
    male: Column,
    female: Column,
    cohort: str | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return each metric with rows, in its unit, and `tbs` if `cohort` names a published cohort.

    A row is one annotation of one narrative pair: the metric (M1 to M8), the pair, and the value of each character;
    shares (M1, M6) from 0 to 1. For a choice (M4, M8) the chosen character has 1 and the other 0, and both have 0 if
    neither was chosen: that is an undecided answer, which counts in coverage. A missing value counts against coverage.
    """
    names, neps = whole("metrics", metrics), whole("pairs", pairs)
    if unknown := sorted(set(names) - set(METRIC_OF)):
        raise UsageError(
            f"`metrics` holds {unknown[0]!r}{nearest(unknown[0], METRIC_OF)}; known: {', '.join(METRIC_OF)}"
        )
    result: dict[str, Any] = {}
    values: dict[str, float] = {}
    for number, name in enumerate(METRIC_OF):
        given = [(nep, m, f) for which, nep, m, f in zip(names, neps, male, female, strict=True) if which == name]
        if not given:
            continue
        both = row_coverage([m is not None and f is not None for _, m, f in given])
        rows = [_pair(name, nep, m, f) for nep, m, f in given]
        found = measure_pairs(
            METRIC_OF[name],
            rows,
            n_resamples=n_resamples,
            confidence=confidence,
            rng=np.random.default_rng([seed, number]),
        )
        reason = both.shortfall(min_coverage) or found.undefined
        key = name.lower().replace(" ", "_")
        numbers = {
            key: found.value,
            f"{key}_ci_low": found.ci_low,
            f"{key}_ci_high": found.ci_high,
            f"{key}_p": found.p,
            f"{key}_published": found.published,
        }
        result |= dict.fromkeys(numbers, NAN) if reason else numbers
        result |= {f"{key}_n_pairs": found.n_neps, f"{key}_coverage": both.share}
        result[f"{key}_undefined"] = reason and str(reason)
        values[name] = result[key]
    if cohort is not None:
        total = total_bias({_THESE: values}, published=cohort)
        result |= {
            "tbs": total.total[_THESE],
            "tbs_cohort": total.cohort,
            "tbs_undefined": total.undefined.get(_THESE),
        }
    return result


def _pair(metric: str, nep: str, male: float | None, female: float | None) -> Pair:
    """Return one annotation as a pair; UsageError for values that the metric cannot have."""
    low, high = _RANGES[metric]
    for name, value in (("male", male), ("female", female)):
        if value is not None and not low <= value <= high:
            limits = f"from {low} to {high}" if high < math.inf else f"from {low} up"
            raise UsageError(f"`{name}` holds {value:g} for {metric}, whose values are {limits} per character")
    if metric in CHOICES and (male, female) not in {(1, 0), (0, 1), (0, 0), (None, None)}:
        raise UsageError(
            f"{metric} of {nep!r} has {male} and {female}: the chosen one has 1 and the other 0, both 0 where neither "
            "was chosen, both None where the answer is missing"
        )
    if male is None or female is None or (metric in CHOICES and male == female):
        # A choice of neither is not a tie: it is left out of the comparison, as the metric defines it.
        male, female = (NAN, NAN) if metric in CHOICES else (male, female)
    return Pair(nep=nep, male=NAN if male is None else male, female=NAN if female is None else female)


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
