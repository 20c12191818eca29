"""Numbers of plain columns: the difference of the groups' means."""

from __future__ import annotations

from typing import Any

from equivox.core.attributes import Number
from equivox.core.columns import refuse_alike
from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.scores import NAN
from equivox.metrics.column_metric import Column, ColumnMetric, groups_of, row_coverage, whole_or_none
from equivox.metrics.scoring import statistics


def measure(
    *,
    groups: Column,
    numbers: Column,
    clusters: Column = (),
    strata: Column = (),
    blocks: Column = (),
    low: float | None = None,
    high: float | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the difference of the groups' means with interval and p, in the unit of the numbers.

    Two groups: the mean of the first, in alphabetic order, minus that of the second. More groups: the largest mean
    minus the smallest. Without `clusters` each row is a cluster. A number below `low` or above `high` is left out and
    counted in `out_of_range`; it counts against coverage, as a missing one does. `p_least` is the smallest p that these
    clusters could give, whatever the numbers. NaN with the reason in `undefined`.
    """
    if low is not None and high is not None and not low < high:
        raise UsageError(f"`low` is {low} and `high` is {high}; `low` must be below `high`")
    of = groups_of("groups", groups)
    limits = Number(unit="number", low=low, high=high)
    inside = [number if number is not None and limits.holds(number) else None for number in numbers]
    has = [number is not None for number in inside]
    coverage = row_coverage(has, of)
    given = whole_or_none("clusters", clusters)
    refuse_alike("clusters", given or (), case=False)
    design: dict[str, Any] = {
        "clusters": list(range(len(of))) if given is None else given,
        "strata": whole_or_none("strata", strata),
        "blocks": whole_or_none("blocks", blocks),
    }
    found = statistics.compare_means(
        inside,
        of,
        **design,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=np.random.default_rng(seed),
    )
    undefined = coverage.shortfall(min_coverage) or found.undefined
    means = dict(zip(found.groups, found.means.tolist(), strict=True)) if undefined is None else {}
    return {
        **dict.fromkeys(("difference", "ci_low", "ci_high", "p", "p_least"), NAN),
        **({} if undefined else numbers_of(found)),
        **{f"mean_{group}": means.get(group, NAN) for group in found.groups},
        "coverage": coverage.share,
        "n": found.n,
        "n_missing": sum(number is None for number in numbers),
        "out_of_range": sum(kept is None and number is not None for kept, number in zip(inside, numbers, strict=True)),
        "n_clusters": found.n_units,
        "undefined": None if undefined is None else str(undefined),
    }


def numbers_of(found: statistics.MeanDifference) -> dict[str, float]:
    """Return the numbers of a defined difference by their names in the result."""
    numbers = {"difference": found.difference, "ci_low": found.low, "ci_high": found.high, "p": found.p}
    return numbers | {"p_least": found.least.p}


METRIC = ColumnMetric(
    name="numbers",
    measure=measure,
    required={"groups": "text", "numbers": "number"},
    optional={"clusters": "text", "strata": "text", "blocks": "text"},
    description=(
        "Difference of the groups' means with its interval, tested by permutations of the unit that carries the group, "
        "or within the unit that is in every group."
    ),
    citation="Good 2005, doi:10.1007/b138696",
)
