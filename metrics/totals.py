"""Paired tests of sums over clusters, for the metrics whose scores are functions of such sums."""

from __future__ import annotations

import math

from equivox.core.metric import PairedValues
from equivox.metrics.lazy import statistics


def paired_values(found: statistics.TotalsComparison, n_samples: int, n_resamples: int) -> PairedValues:
    """Convert a comparison of totals to the result of a paired test."""
    from equivox.statistics.sign_flip import least_p

    no_target = math.isnan(found.further)
    return PairedValues(
        value_a=found.value_a,
        value_b=found.value_b,
        difference=found.difference,
        ci_low=found.ci_low if no_target else found.further_low,
        ci_high=found.ci_high if no_target else found.further_high,
        further=found.further,
        p=found.p if no_target else found.p_further,
        p_least=least_p(found.n_clusters, n_resamples),
        n_samples=n_samples,
        n_clusters=found.n_clusters,
        undefined=found.undefined,
    )
