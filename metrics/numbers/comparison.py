"""Comparison of two models' numbers on the samples for which both gave one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equivox.core.metric import PairedTask, PairedValues
from equivox.metrics.numbers.scorer import numbers_of, outcome_of

if TYPE_CHECKING:
    import numpy as np


def compare_means(tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare the groups' differences of means of two models in one task.

    What one of the two refused, did not state or stated out of range is left out for both. RequestError for several
    tasks: their numbers have units of their own.
    """
    from equivox.core.errors import RequestError
    from equivox.statistics import compare_group_means

    if len(tasks) != 1:
        raise RequestError(f"numbers are compared task by task, got {len(tasks)} tasks; their units differ")
    (paired,) = tasks
    attribute, samples = outcome_of(paired.task), paired.samples_a
    found = compare_group_means(
        numbers_of(samples, attribute).kept,
        numbers_of(paired.samples_b, attribute).kept,
        samples.groups,
        clusters=samples.clusters,
        strata=samples.strata if paired.task.strata else None,
        blocks=samples.blocks,
        n_resamples=n_resamples,
        rng=rng,
    )
    return PairedValues(
        value_a=found.value_a,
        value_b=found.value_b,
        difference=found.difference,
        further=found.further,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p=found.p,
        p_least=found.p_least,
        n_samples=found.n_used,
        n_clusters=found.n_clusters,
        parts=() if found.undefined else (attribute.name,),
        undefined=found.undefined,
    )
