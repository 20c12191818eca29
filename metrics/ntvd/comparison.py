"""Comparison of two models' nTVD on the samples that both answered, by exchanging whole clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.lazy import np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.samples import Samples
from equivox.metrics.lazy import statistics


def compare_shifts(name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare the mean over tasks of the mean over the attributes that are defined for both models."""
    total = sum(len(task.samples_a) for task in tasks)
    columns: tuple[dict[str, EncodedValues], dict[str, EncodedValues]] = ({}, {})
    weights: dict[str, float] = {}
    start = 0
    for paired in tasks:
        shared = [part for part in paired.score_a.parts if part in paired.score_b.parts]
        if not shared:
            return PairedValues(undefined=f"no attribute of {paired.task.name} is defined for both models")
        for attribute in shared:
            label = attribute if len(tasks) == 1 else f"{paired.task.name}/{attribute}"
            weights[label] = 1 / len(shared)
            for column, samples in zip(columns, (paired.samples_a, paired.samples_b), strict=True):
                column[label] = _parsed(samples, attribute).shifted(start, total)
        start += len(paired.samples_a)
    strata, blocks = _held(tasks)
    found = statistics.compare_joint_shift(
        columns[0],
        columns[1],
        EncodedLabels.concatenated([paired.samples_a.groups for paired in tasks]),
        clusters=EncodedLabels.concatenated([paired.samples_a.clusters for paired in tasks]),
        strata=strata,
        blocks=blocks,
        weights=weights,
        min_count=max(max(paired.score_a.min_count, paired.score_b.min_count) for paired in tasks),
        n_resamples=n_resamples,
        rng=rng,
    )
    return _values(found, n_resamples)


def _held(tasks: Sequence[PairedTask]) -> tuple[EncodedLabels | None, EncodedLabels | None]:
    """Return the strata and the blocks that every task holds equal, as the scores of one model do; None for neither."""
    strata = [paired.samples_a.strata for paired in tasks if paired.task.strata]
    blocks = [paired.samples_a.blocks for paired in tasks if paired.samples_a.blocks]
    return (
        EncodedLabels.concatenated(strata) if len(strata) == len(tasks) else None,
        EncodedLabels.concatenated(blocks) if len(blocks) == len(tasks) else None,
    )


def _parsed(samples: Samples, attribute: str) -> EncodedValues:
    """Return the values of the parsed samples; the others have none."""
    values, parsed = samples.values(attribute), samples.has_status("parsed")
    kept = parsed[values.rows]
    return EncodedValues(values.rows[kept], values.codes[kept], values.names, values.n_rows)


def _values(found: statistics.ShiftComparison, n_resamples: int) -> PairedValues:
    from equivox.statistics.comparison import least_p_distance
    from equivox.statistics.sign_flip import least_p

    reason = found.undefined
    if reason is None and math.isnan(found.p_both):
        reason = "a group has one cluster with answers: how far chance alone goes is not known"
    return PairedValues(
        value_a=found.ntvd_a,
        value_b=found.ntvd_b,
        difference=found.difference,
        distance_a=found.estimate_a,
        distance_b=found.estimate_b,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        further=found.estimate,
        p=found.p_both,
        p_exchange=found.p,
        p_least=max(least_p(found.n_clusters, n_resamples), least_p_distance(n_resamples)),
        n_samples=found.n_used,
        n_clusters=found.n_clusters,
        parts=found.attributes,
        undefined=reason,
    )
