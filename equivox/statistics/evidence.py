"""Null distributions and sampling error of a shift, shared by the attributes of a task, and the numbers from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from equivox.statistics.design_noise import noise_of, on_few_clusters
from equivox.statistics.distance import estimate_shift, mean_ntvd
from equivox.statistics.encode import (
    Answers,
    Design,
    Occurrences,
    Standard,
    by_column,
    side_by_side,
    sizes_of,
    standard,
)
from equivox.statistics.inputs import Bools, Floats, Ints
from equivox.statistics.intervals import invert
from equivox.statistics.noise import N_NOISE, Noise
from equivox.statistics.nulls import null_over_clusters, null_over_responses
from equivox.statistics.permutation import n_extreme, p_of_mean, p_value
from equivox.statistics.results import ShiftNumbers

MANY = 2**63 - 1
"""The largest count of permutations that is reported; larger ones do not fit into file formats."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Nulls and noise shared by the attributes that are defined; attributes are columns of the nulls.

    `shares`, G x V, are the groups' distributions with an equal mix of what is held. `cluster` is the null of their
    distances, B x 2A, and `observed` has those of the groups as they are: A nTVDs, then A Euclidean distances.
    `noise` has normal draws of the deviations, B x G x V; `scales` turns those of each attribute into draws of
    Student's t, and `joint_scale` those of all together. `seen_noise` has draws without the noise that is only
    supposed, where clusters are alike. `new_items` has the noise of other items beside that of the clusters, and its
    standard errors; None without items. `independent` are the variances of the deviations if responses were
    independent, G x V. `model` and `seed` are where `noise` comes from; `same_units` is the noise if the same units
    were asked again, None unless units are in every group. `n_clusters` are those that are compared, `sizes` (S x G)
    counts them in each stratum and group, and `answers` is the mean number of their responses.
    """

    shares: Floats
    response: Floats
    cluster: Floats
    observed: Floats
    exact: bool
    n_labellings: int
    noise: Floats
    seen_noise: Floats
    scales: list[Floats]
    joint_scale: Floats
    model: Noise
    seed: int
    slices: dict[str, slice]
    n_used: int
    n_clusters: int
    notes: tuple[str, ...]
    n_resamples: int
    confidence: float

    def more_noise(self, n_draws: int, columns: Ints, places: Sequence[int]) -> Iterator[Floats]:
        """Yield `n_draws` further draws of the noise seen in some columns, in blocks B x G x V.

        They are draws of one attribute, if `places` has its place alone among several, and else of all together.
        """
        rng = np.random.default_rng(self.seed)
        left = n_draws
        while left > 0:
            drawn = self.model.draw(min(left, N_NOISE), rng, seen=True)
            degrees = self.model.degrees[places[0]] if len(places) == 1 else self.model.joint_degrees
            (scale,) = self.model.scales(len(drawn), [degrees], rng)
            yield drawn[:, :, columns] * scale[:, None, None]
            left -= len(drawn)


_ALIKE = "no variation between clusters: the interval adds one hypothetical cluster with a different answer"


def draw_evidence(
    occurrences: Mapping[str, Occurrences],
    design: Design,
    n_resamples: int,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> Evidence:
    """Draw the nulls and the noise of all defined attributes together."""
    answers = Answers.of(occurrences.values())
    parts, n_groups = answers.parts, len(design.groups)
    slices = dict(zip(occurrences, parts, strict=True))
    notes = list(design.notes)
    response = null_over_responses(answers, design.group_of_row, n_groups=n_groups, n_resamples=n_resamples, rng=rng)
    cluster, observed, n_labellings, exact = np.empty((0, len(parts))), np.empty(0), 0, False
    heard = _heard_clusters(answers, design)
    counts = answers.counted(design.group_of_row, n_groups).astype(np.float64)
    weights = None
    if heard is not None:
        if heard.standardised is not None and heard.held is not None:
            weights = np.zeros((len(heard.where), len(parts)))
            weights[heard.where] = heard.standardised.weights
            whole = heard.counts * by_column(heard.standardised.weights, parts)
            counts = np.stack([whole[heard.group == code].sum(axis=0) for code in range(n_groups)])
            notes += _unsupported(heard.standardised.weights, heard.held, design)
        cluster, observed, n_labellings, exact = heard.permuted(parts, n_groups, n_resamples, rng)
        if (note := on_few_clusters(answers.rows, design, weights)) is not None:
            notes.append(note)
        notes += _heard_in_one(heard, slices, n_groups)
    noise = noise_of(answers, design, rng, weights=weights)
    if noise.alike:
        notes.append(_ALIKE)
    scaled = noise.draw(N_NOISE, rng)
    *scales, joint_scale = noise.scales(len(scaled), [*noise.degrees, noise.joint_degrees], rng)
    seen = noise.draw(len(scaled), rng, seen=True) if noise.alike else scaled
    sizes = by_column(sizes_of(counts, parts), parts)
    shares = counts / sizes
    used = np.unique(answers.rows)
    compared = design.compared(used)
    n_clusters = design.n_units(compared)
    return Evidence(
        shares=shares,
        response=response,
        cluster=cluster,
        observed=observed,
        exact=exact,
        n_labellings=min(n_labellings, MANY),
        noise=scaled,
        seen_noise=seen,
        scales=scales,
        joint_scale=joint_scale,
        model=noise,
        seed=int(rng.integers(2**63)),
        slices=slices,
        n_used=len(used),
        n_clusters=n_clusters,
        notes=tuple(notes),
        n_resamples=n_resamples,
        confidence=confidence,
    )


@dataclass(frozen=True)
class _Heard:
    """The clusters with an answer: their counts (K x V), their groups, and which of all clusters they are.

    `held` has the codes of what permutations hold, None if they hold nothing. `standardised` says how the clusters
    count where groups hold strata in unequal numbers; None if nothing is to be weighted.
    """

    counts: Ints
    group: Ints
    held: Ints | None
    where: Bools
    standardised: Standard | None

    def permuted(
        self, parts: Sequence[slice], n_groups: int, n_resamples: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats, int, bool]:
        """Return the distances under permutations of the clusters, as `null_over_clusters` does."""
        return null_over_clusters(
            self.counts, self.group, self.held, parts,
            n_groups=n_groups, n_resamples=n_resamples, rng=rng, standard=self.standardised,
        )  # fmt: skip


def _heard_clusters(answers: Answers, design: Design) -> _Heard | None:
    """Return the clusters with an answer; None without clusters."""
    if not design.clusters:
        return None
    counts = answers.counted(design.cluster_of_row, len(design.clusters))
    heard: Bools = np.asarray(counts.any(axis=1))
    counts, group = counts[heard], design.group_of_cluster[heard]
    held = None if design.held is None else design.held[heard]
    found = None if held is None else standard(counts, group, held, answers.parts, len(design.groups))
    return _Heard(counts, group, held, heard, None if found is None or found.balanced else found)


def _unsupported(weights: Floats, held: Ints, design: Design) -> list[str]:
    """Return a note on the clusters in strata that lack a group: they are in no estimate."""
    counts: Bools = weights.max(axis=1) > 0
    if design.crossed:
        n = int(np.asarray(design.stratum_of_cluster).max()) + 1
        outside = n - len(np.unique(held[counts]))
        what = "units lack an answer in some group"
    else:
        n, outside = counts.size, int((~counts).sum())
        what = "clusters are in strata or blocks without all groups"
    return [f"{outside} of {n} {what}: estimate and interval leave them out"] if outside else []


def _heard_in_one(heard: _Heard, slices: Mapping[str, slice], n_groups: int) -> list[str]:
    """Return a note on each attribute that one cluster of a group alone answers, although the group has several."""
    per_group = np.bincount(heard.group, minlength=n_groups)
    return [
        f"{name}: a group has one cluster with an answer, its noise is not known: interval too narrow"
        for name, part in slices.items()
        if np.bincount(heard.group[heard.counts[:, part].any(axis=1)], minlength=n_groups).min() < 2 <= per_group.min()
    ]


FEW_DRAWS = 20
"""Where fewer draws of noise than this are as far out, more are drawn: a p below 2 % is told from smaller ones."""


def shift_numbers(evidence: Evidence, names: Sequence[str], by_group: Floats, largest: float) -> ShiftNumbers:
    """Return the numbers of the mean over the attributes called `names`; `by_group` has their columns side by side.

    `by_group` are the shares as they are, of which the published numbers are taken. All others are of the shares with
    an equal mix of what the design holds (`Evidence.shares`). `largest` is the attainable maximum.
    """
    columns = [list(evidence.slices).index(name) for name in names]
    parts = [evidence.slices[name] for name in names]
    kept = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    joint = len(names) > 1
    slices = side_by_side(part.stop - part.start for part in parts)
    scale = (evidence.joint_scale if joint else evidence.scales[columns[0]])[:, None, None]
    noise = evidence.noise[:, :, kept] * scale
    errors, alike = evidence.model.errors()[:, kept], evidence.model.alike
    seen_errors = evidence.model.errors(seen=True)[:, kept]
    shares = evidence.shares[:, kept]
    deviations = shares - shares.mean(axis=0)
    published, observed = (float(mean_ntvd(own[None], slices)[0]) for own in (by_group, deviations))
    lengths = mean_ntvd(noise, slices)
    seen_noise = evidence.seen_noise[:, :, kept] * scale if alike else noise
    seen_lengths = mean_ntvd(seen_noise, slices) if alike else lengths
    more = evidence.more_noise(evidence.n_resamples, kept, [] if joint else columns)
    further = (mean_ntvd(own, slices) for own in more)
    p = _p_values(evidence, columns, published, partial(_p_of_noise, seen_lengths, observed, further))
    null_mean_response = float(np.nanmean(evidence.response[:, columns].mean(axis=1)))
    cluster = evidence.cluster[:, columns].mean(axis=1)
    interval = partial(
        invert, deviations, slices=slices, confidence=evidence.confidence, most=largest, rejected=_rejects(evidence, p)
    )
    low, high = interval(noise, errors, lengths=lengths, alike=alike)
    if low == 0.0 and alike:
        # Noise that is only supposed raises the upper limit; a finding of the test stands without it.
        low = interval(seen_noise, seen_errors, lengths=seen_lengths)[0]
    unclipped = float(estimate_shift(deviations, seen_errors, slices).mean())
    return ShiftNumbers(
        ntvd=published,
        estimate=min(max(unclipped, 0.0), largest),
        estimate_unclipped=unclipped,
        attainable_max=largest,
        null_mean=float(np.nanmean(cluster)) if len(cluster) else null_mean_response,
        null_mean_response=null_mean_response,
        **p,
        ci_low=low,
        ci_high=high,
    )


def _p_values(
    evidence: Evidence, columns: list[int], published: float, of_noise: Callable[[float], float]
) -> dict[str, float]:
    """Return the p-values of some attributes together, by their names; `of_noise` needs that of the permutations."""
    response = evidence.response[:, columns].mean(axis=1)
    permuted = p_of_mean(evidence.cluster, evidence.observed, columns, exact=evidence.exact)
    p_noise = of_noise(permuted)
    return {
        "p_response": p_value(response, published, exact=False),
        "p_cluster": math.nan if math.isnan(permuted) else max(permuted, p_noise),
        "p_noise": p_noise,
        "p_paper": n_extreme(response, published) / len(response),
    }


def _p_of_noise(lengths: Floats, observed: float, further: Iterable[Floats], p_permuted: float) -> float:
    """Return the Monte Carlo p-value of the noise; draw more samples when the first batch cannot resolve it."""
    p = p_value(lengths, observed, exact=False)
    if p_permuted < p <= FEW_DRAWS / len(lengths):
        p = p_value(np.concatenate([lengths, *further]), observed, exact=False)
    return p


def _rejects(evidence: Evidence, p: Mapping[str, float]) -> bool:
    """Return whether the test over clusters, or without them over responses, rejects a shift of zero."""
    drawn = len(evidence.cluster) or len(evidence.response)
    if not evidence.exact and (1 + drawn) * (1 - evidence.confidence) < 1 - 1e-9:
        return True  # So few permutations were drawn that p says nothing.
    decides = p["p_response"] if math.isnan(p["p_cluster"]) else p["p_cluster"]
    return decides <= 1 - evidence.confidence + 1e-9
