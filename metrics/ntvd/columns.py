"""nTVD of plain columns: the distance between groups' answers, and its estimate for the population."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from equivox.core.columns import EncodedLabels, EncodedValues, refuse_alike
from equivox.core.lazy import np
from equivox.core.scores import NAN, ScoringOptions, effective_min_count
from equivox.metrics.column_metric import Column, ColumnMetric, groups_of, row_coverage, whole_or_none
from equivox.metrics.scoring import statistics

_NUMBERS = ("estimate", "ntvd", "attainable_max", "ci_low", "ci_high", "p", "p_least", "p_published")
"""The numbers that are NaN if the nTVD is undefined."""


def measure(
    *,
    groups: Column,
    values: Column,
    clusters: Column = (),
    strata: Column = (),
    min_count: int | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the nTVD with its evidence; NaN with the reason in `undefined`, but always with the worst case.

    Without `clusters` each row is a unit. `p_least` is the smallest p that these units could give, whatever the
    answers; `p_published` permutes rows, as VIBE does. Options are those of `equivox.statistics.compare_groups`;
    `min_coverage` is the share of rows with a value that every group needs.
    """
    of = groups_of("groups", groups)
    answers = [list(words or ()) for words in values]
    coverage = row_coverage([bool(words) for words in answers], of)
    refuse_alike("clusters", filter(None, clusters or ()), case=False)
    design: dict[str, Any] = {
        "clusters": whole_or_none("clusters", clusters),
        "strata": whole_or_none("strata", strata),
    }
    found = statistics.compare_groups(
        answers,
        of,
        **design,
        min_count=effective_min_count(ScoringOptions(min_count=min_count), len(of)),
        n_resamples=n_resamples,
        confidence=confidence,
        rng=np.random.default_rng(seed),
    )
    undefined = coverage.shortfall(min_coverage) or found.undefined
    low, high = _worst_case(answers, of, found.values)
    return {
        **(dict.fromkeys(_NUMBERS, NAN) if undefined else _list_numbers(found, answers, of, n_resamples, seed)),
        "missing_low": low,
        "missing_high": high,
        "coverage": coverage.share,
        "n_responses": found.n_responses,
        "n_used": found.n_used,
        "n_clusters": found.n_units,
        "removed_share": found.removed_share,
        "undefined": None if undefined is None else str(undefined),
    }


def _list_numbers(
    found: statistics.Shift, answers: Sequence[Sequence[str]], groups: Sequence[str], n_resamples: int, seed: int
) -> dict[str, float]:
    """Return the numbers of a defined nTVD by their names in the result."""
    from equivox.metrics.ntvd.published import compute_published_p

    kept = EncodedValues.of([[word for word in words if word in set(found.values)] for words in answers])
    published = compute_published_p(
        {"values": kept}, EncodedLabels.of(list(groups)), n_resamples=n_resamples, rng=np.random.default_rng(seed)
    )
    numbers = (found.estimate, found.ntvd, found.attainable_max, found.low, found.high, found.p, found.least.p)
    return dict(zip(_NUMBERS, (*numbers, published[""]), strict=True))


def _worst_case(answers: Sequence[Sequence[str]], groups: Sequence[str], values: Sequence[str]) -> tuple[float, float]:
    """Return the bounds of the nTVD over all possible missing answers, of one value each; NaN without any value."""
    names = sorted(set(groups))
    if len(names) < 2 or not values:
        return NAN, NAN
    counts = Counter((group, word) for group, words in zip(groups, answers, strict=True) for word in words)
    missing = Counter(group for group, words in zip(groups, answers, strict=True) if not words)
    bounds = statistics.ntvd_bounds(
        [[counts[g, value] for value in values] for g in names], [missing[g] for g in names]
    )
    return bounds.low, bounds.high


METRIC = ColumnMetric(
    name="ntvd",
    measure=measure,
    required={"groups": "text", "values": "texts"},
    optional={"clusters": "text", "strata": "text"},
    description=(
        "Normalised total variation distance between groups' open-ended answers (VIBE): its estimate for the "
        "population, the number as published, an interval, and tests that move the unit carrying the group."
    ),
    citation="arXiv:2604.17248",
)
