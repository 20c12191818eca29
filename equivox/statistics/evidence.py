"""Null distributions and sampling error of a shift, shared by the attributes of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equivox.statistics.arrays import Bools, Floats, Ints
from equivox.statistics.design_noise import noise_of, noise_of_items, noise_within_units, on_few_clusters
from equivox.statistics.encode import Design, Occurrences, cross_count, stack_attributes
from equivox.statistics.held import Standard, standard
from equivox.statistics.noise import N_NOISE, Noise, of_deviations
from equivox.statistics.nulls import null_over_clusters, null_over_responses
from equivox.statistics.permutation import p_value

MANY = 2**63 - 1
"""The largest count of permutations that is reported; larger ones do not fit into file formats."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Nulls and noise shared by the attributes that are defined; attributes are columns of the nulls.

    `shares`, G x V, are the groups' distributions with an equal mix of what is held. `cluster` and `euclidean` are the
    nulls of their distances, and `observed` has those of the groups as they are: A nTVDs, then A Euclidean distances.
    `noise` has normal draws of the deviations, B x G x V; `scales` turns those of each attribute into draws of
    Student's t, and `joint_scale` those of all together. `errors` are their standard errors; `seen_errors` leave out
    the noise that is only supposed, where clusters are alike. `new_items` is the noise of other items beside that of
    the clusters, None without items. `alike` says that all clusters of a group agree, so that part of the noise is
    supposed; `seen_noise` has draws without that part. `independent` are the variances of the deviations if responses
    were independent, G x V. `model` and `seed` are where `noise` comes from, for
    `more_noise`; `same_units` is the noise if the same units were asked again, None unless units are in every group.
    """

    shares: Floats
    response: Floats
    cluster: Floats
    euclidean: Floats
    observed: Floats
    exact: bool
    n_labellings: int
    noise: Floats
    seen_noise: Floats
    errors: Floats
    seen_errors: Floats
    scales: list[Floats]
    joint_scale: Floats
    new_items: Floats | None
    item_errors: Floats | None
    alike: bool
    independent: Floats
    model: Noise
    same_units: Noise | None
    seed: int
    slices: dict[str, slice]
    n_used: int
    n_clusters: int
    notes: tuple[str, ...]

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


def draw_evidence(
    occurrences: Mapping[str, Occurrences], design: Design, n_resamples: int, rng: np.random.Generator
) -> Evidence:
    """Draw the nulls and the noise of all defined attributes together."""
    rows, columns, slices = stack_attributes(occurrences)
    parts = list(slices.values())
    n_groups = len(design.groups)
    notes = list(design.notes)
    response = null_over_responses(
        rows, columns, design.group_of_row, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng
    )
    n_used = len(np.unique(rows))
    cluster = euclidean = np.empty((0, len(parts)))
    observed: Floats = np.empty(0)
    exact, n_labellings, n_clusters = False, 0, 0
    heard = _heard_clusters(rows, columns, design, parts[-1].stop)
    counts = cross_count(design.group_of_row[rows], columns, (n_groups, parts[-1].stop)).astype(np.float64)
    weights = None
    if heard is not None:
        own, group, held, where = heard
        n_clusters = len(group) if held is None or not design.crossed else len(np.unique(held))
        standardised = _unequal(own, group, held, parts, n_groups)
        if standardised is not None and held is not None:
            weights = np.zeros((len(where), len(parts)))
            weights[where] = standardised.weights
            whole = own * np.repeat(standardised.weights, [part.stop - part.start for part in parts], axis=1)
            counts = np.stack([whole[group == code].sum(axis=0) for code in range(n_groups)])
            notes += _unsupported(standardised.weights, held, design)
        both, observed, n_labellings, exact = null_over_clusters(
            own, group, held, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng, standard=standardised
        )
        cluster, euclidean = both[:, : len(parts)], both[:, len(parts) :]
        if n_labellings == 1:
            notes.append("the clusters have one permutation only: the cluster-level test cannot reject")
        per_group = np.bincount(group, minlength=n_groups)
        if (note := on_few_clusters(rows, design)) is not None:
            notes.append(note)
        for name, part in slices.items():
            heard_in = np.bincount(group[own[:, part].any(axis=1)], minlength=n_groups)
            if heard_in.min() < 2 <= per_group.min():
                notes.append(
                    f"{name}: a group has one cluster with an answer, its noise is not known: interval too narrow"
                )
    noise = noise_of(rows, columns, design, parts, rng, weights=weights)
    if noise.alike:
        notes.append(
            "all clusters of a group give the same answers: the interval supposes one more cluster that does not"
        )
    scaled = noise.draw(N_NOISE, rng)
    *scales, joint_scale = noise.scales(len(scaled), [*noise.degrees, noise.joint_degrees], rng)
    seen = noise.draw(len(scaled), rng, seen=True) if noise.alike else scaled
    totals = [counts[:, part].sum(axis=1, keepdims=True) for part in parts]
    shares = np.concatenate([counts[:, part] / total for part, total in zip(parts, totals, strict=True)], axis=1)
    sizes = np.concatenate(
        [np.repeat(total, p.stop - p.start, axis=1) for p, total in zip(parts, totals, strict=True)], axis=1
    )
    new_items, item_errors = _other_items(rows, columns, design, parts, noise, scaled, rng)
    return Evidence(
        shares=shares,
        response=response,
        cluster=cluster,
        euclidean=euclidean,
        observed=observed,
        exact=exact,
        n_labellings=min(n_labellings, MANY),
        noise=scaled,
        seen_noise=seen,
        errors=noise.errors(),
        seen_errors=noise.errors(seen=True),
        scales=scales,
        joint_scale=joint_scale,
        new_items=new_items,
        item_errors=item_errors,
        alike=noise.alike,
        independent=of_deviations(shares * (1 - shares) / sizes),
        model=noise,
        same_units=noise_within_units(rows, columns, design, parts, weights),
        seed=int(rng.integers(2**63)),
        slices=slices,
        n_used=n_used,
        n_clusters=n_clusters,
        notes=tuple(notes),
    )


N_EVERY_VALUE = 999
"""Permutations for the test over all values at most; there may be thousands of rare ones."""


def p_of_every_value(
    occurrences: Mapping[str, Occurrences], design: Design, n_resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p-value over clusters of each attribute with all its values, and under "" that of their mean.

    It is empty without clusters.
    """
    if not occurrences:
        return {}
    rows, columns, slices = stack_attributes(occurrences)
    parts = list(slices.values())
    heard = _heard_clusters(rows, columns, design, parts[-1].stop)
    if heard is None:
        return {}
    counts, group, held, _ = heard
    n_groups, n_resamples = len(design.groups), min(n_resamples, N_EVERY_VALUE)
    standardised = _unequal(counts, group, held, parts, n_groups)
    both, observed, _, exact = null_over_clusters(
        counts, group, held, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng, standard=standardised
    )
    null, observed = both[:, : len(parts)], observed[: len(parts)]
    found = {name: p_value(null[:, place], float(observed[place]), exact=exact) for place, name in enumerate(slices)}
    return {**found, "": p_value(null.mean(axis=1), float(observed.mean()), exact=exact)}


def _heard_clusters(
    rows: Ints, columns: Ints, design: Design, n_columns: int
) -> tuple[Ints, Ints, Ints | None, Bools] | None:
    """Return the counts (K x V), groups and `held` codes of the clusters with an answer, and which these are.

    It is None without clusters. The codes are None if permutations hold nothing.
    """
    if design.cluster_of_row is None or design.group_of_cluster is None:
        return None
    counts = cross_count(design.cluster_of_row[rows], columns, (len(design.group_of_cluster), n_columns))
    heard: Bools = np.asarray(counts.any(axis=1))
    held = None if design.held is None else design.held[heard]
    return counts[heard], design.group_of_cluster[heard], held, heard


def _unequal(counts: Ints, group: Ints, held: Ints | None, parts: Sequence[slice], n_groups: int) -> Standard | None:
    """Return how the clusters count where groups hold strata in unequal numbers; None if nothing is to be weighted."""
    found = None if held is None else standard(counts, group, held, parts, n_groups)
    return None if found is None or found.balanced else found


def _unsupported(weights: Floats, held: Ints, design: Design) -> list[str]:
    """Return a note on the clusters in strata that lack a group: they are in no estimate."""
    counts: Bools = weights.max(axis=1) > 0
    if design.crossed:
        n, outside = len(design.strata or ()), len(design.strata or ()) - len(np.unique(held[counts]))
        what = "units lack an answer in some group"
    else:
        n, outside = counts.size, int((~counts).sum())
        what = "clusters are in strata or blocks without all groups"
    return [f"{outside} of {n} {what}: estimate and interval leave them out"] if outside else []


def _other_items(
    rows: Ints,
    columns: Ints,
    design: Design,
    parts: list[slice],
    noise: Noise,
    drawn: Floats,
    rng: np.random.Generator,
) -> tuple[Floats | None, Floats | None]:
    """Return the noise with other items beside that of the clusters, and its standard errors; None without items."""
    if design.item_of_row is None:
        return None, None
    pulls = noise_of_items(rows, columns, design.group_of_row, design.item_of_row, parts, len(design.groups), rng)
    if pulls is None:
        return None, None
    flat = pulls.reshape(len(pulls), -1)
    added = (rng.standard_normal((len(drawn), len(flat))) @ flat).reshape(drawn.shape)
    return drawn + added, np.sqrt(noise.errors() ** 2 + (pulls**2).sum(axis=0))
