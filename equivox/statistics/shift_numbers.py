"""The numbers of a shift: estimate, interval and p-values, from its nulls and its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equivox.statistics.arrays import Floats, Ints
from equivox.statistics.detect import detectable
from equivox.statistics.distance import mean_ntvd
from equivox.statistics.encode import side_by_side
from equivox.statistics.estimate import estimate_shift
from equivox.statistics.evidence import Evidence
from equivox.statistics.intervals import invert
from equivox.statistics.noise import N_NOISE
from equivox.statistics.permutation import n_extreme, p_value
from equivox.statistics.results import ShiftNumbers

FEW_DRAWS = 20
"""Where fewer draws of noise than this are as far out, more are drawn: a p below 2 % is told from smaller ones."""


def shift_numbers(
    evidence: Evidence, names: Sequence[str], by_group: Floats, largest: float, confidence: float, n_resamples: int
) -> ShiftNumbers:
    """Return the numbers of the mean over the attributes called `names`; `by_group` has their columns side by side.

    `by_group` are the shares as they are, of which the published numbers are taken. All others are of the shares with
    an equal mix of what the design holds (`Evidence.shares`).
    """
    columns = [list(evidence.slices).index(name) for name in names]
    kept = np.concatenate([np.arange(part.start, part.stop) for part in (evidence.slices[name] for name in names)])
    joint = len(names) > 1 or len(evidence.slices) == 1
    slices = side_by_side(part.stop - part.start for part in (evidence.slices[name] for name in names))
    scale = evidence.joint_scale if joint else evidence.scales[columns[0]]
    noise = evidence.noise[:, :, kept] * scale[:, None, None]
    errors = evidence.errors[:, kept]
    shares = evidence.shares[:, kept]
    deviations = shares - shares.mean(axis=0)
    published = float(mean_ntvd(by_group[None], slices)[0])
    observed = float(mean_ntvd(deviations[None], slices)[0])
    lengths = mean_ntvd(noise, slices)
    seen_noise = evidence.seen_noise[:, :, kept] * scale[:, None, None] if evidence.alike else noise
    seen_lengths = mean_ntvd(seen_noise, slices) if evidence.alike else lengths
    response = evidence.response[:, columns].mean(axis=1)
    cluster = evidence.cluster[:, columns].mean(axis=1)
    null_mean_response = float(np.nanmean(response))
    p_response = p_value(response, published, exact=False)
    p_noise = p_value(seen_lengths, observed, exact=False)
    p_cluster = p_euclidean = math.nan
    if len(cluster):
        n = len(evidence.slices)
        p_cluster = p_value(cluster, float(evidence.observed[columns].mean()), exact=evidence.exact)
        p_euclidean = p_value(
            evidence.euclidean[:, columns].mean(axis=1),
            float(evidence.observed[[n + column for column in columns]].mean()),
            exact=evidence.exact,
        )
        if p_cluster < p_noise <= FEW_DRAWS / len(seen_lengths):
            # The noise says no more than "rare": draw as many as there are permutations.
            places = [] if joint and len(evidence.slices) > 1 else columns
            further = [mean_ntvd(more, slices) for more in evidence.more_noise(n_resamples, kept, places)]
            p_noise = p_value(np.concatenate([seen_lengths, *further]), observed, exact=False)
        p_cluster = max(p_cluster, p_noise)
    decides = p_response if math.isnan(p_cluster) else p_cluster
    drawn = len(response) if math.isnan(p_cluster) else len(cluster)
    if not evidence.exact and (1 + drawn) * (1 - confidence) < 1 - 1e-9:
        decides = 0.0  # So few permutations were drawn that p says nothing.
    unclipped = float(estimate_shift(deviations, evidence.seen_errors[:, kept], slices).mean())
    low, high = _interval(deviations, noise, errors, slices, confidence, decides, largest, alike=evidence.alike)
    if low == 0.0 and evidence.alike:
        # Noise that is only supposed raises the upper limit; a finding of the test stands without it.
        seen_errors = evidence.seen_errors[:, kept]
        low = _interval(deviations, seen_noise, seen_errors, slices, confidence, decides, largest)[0]
    answers = evidence.n_used / max(evidence.n_clusters, 1)
    effect = float((errors**2).sum() / max(evidence.independent[:, kept].sum(), 1e-300))
    new_low = new_high = math.nan
    if evidence.new_items is not None and evidence.item_errors is not None:
        other = evidence.new_items[:, :, kept] * scale[:, None, None]
        new_low, new_high = _interval(
            deviations, other, evidence.item_errors[:, kept], slices, confidence, decides, largest
        )
        new_low, new_high = min(low, new_low), max(high, new_high)
    same_low, same_high = _of_same_units(evidence, kept, deviations, slices, confidence, largest)
    return ShiftNumbers(
        ntvd=published,
        estimate=min(max(unclipped, 0.0), largest),
        estimate_unclipped=unclipped,
        attainable_max=largest,
        null_mean=float(np.nanmean(cluster)) if len(cluster) else null_mean_response,
        null_mean_response=null_mean_response,
        p_response=p_response,
        p_cluster=p_cluster,
        p_noise=p_noise,
        p_euclidean=p_euclidean,
        p_paper=n_extreme(response, published) / len(response),
        detectable=detectable(noise, lengths, errors, slices, answers, effect),
        ci_low=low,
        ci_high=high,
        new_items_low=new_low,
        new_items_high=new_high,
        same_units_low=same_low,
        same_units_high=same_high,
    )


def _of_same_units(
    evidence: Evidence, kept: Ints, deviations: Floats, slices: Sequence[slice], confidence: float, largest: float
) -> tuple[float, float]:
    """Return the interval for exactly these units; NaN unless units are in every group, with several answers each."""
    if evidence.same_units is None:
        return math.nan, math.nan
    noise = evidence.same_units.draw(N_NOISE, np.random.default_rng(evidence.seed))[:, :, kept]
    errors = evidence.same_units.errors()[:, kept]
    low, high = invert(deviations, noise, errors, slices, confidence)
    return min(low, largest), min(high, largest)


def _interval(
    deviations: Floats,
    noise: Floats,
    errors: Floats,
    slices: Sequence[slice],
    confidence: float,
    p: float,
    largest: float,
    *,
    alike: bool = False,
) -> tuple[float, float]:
    """Return the interval; its lower end is 0 unless the test rejects at the same level, so that they agree."""
    rejected = p <= 1 - confidence + 1e-9
    low, high = invert(deviations, noise, errors, slices, confidence, alike=alike, rejected=rejected)
    return (min(low, largest) if rejected else 0.0), min(high, largest)
