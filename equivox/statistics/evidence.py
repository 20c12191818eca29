"""Null distributions and sampling error of a shift, shared by the attributes of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equivox.statistics.arrays import Floats, Ints
from equivox.statistics.distance import ntvd_per_attribute
from equivox.statistics.encode import Design, Occurrences, cross_count, stack_attributes
from equivox.statistics.noise import N_NOISE, ONE_CLUSTER, Noise, noise_of, noise_of_items
from equivox.statistics.nulls import null_over_clusters, null_over_responses
from equivox.statistics.permutation import p_value

MANY = 2**63 - 1
"""The largest count of permutations that is reported; larger ones do not fit into file formats."""

UNLIKE = 1.5
"""Numbers of clusters, or their mean sizes, are unlike in two groups from this ratio on."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Nulls and noise shared by the attributes that are defined; attributes are columns of the nulls.

    `noise` has normal draws of the deviations, B x G x V; `scales` turns those of each attribute into draws of
    Student's t, and `joint_scale` those of all together. `errors` are their standard errors; `seen_errors` leave out
    the noise that is only supposed, where clusters are alike. `new_items` is the noise of other items beside that of
    the clusters, None without items. `guarded` says that groups have unlike numbers of clusters, so that the noise p
    counts as well. `alike` says that all clusters of a group agree, so that part of the noise is supposed.
    """

    response: Floats
    cluster: Floats
    euclidean: Floats
    exact: bool
    n_labellings: int
    noise: Floats
    errors: Floats
    seen_errors: Floats
    scales: list[Floats]
    joint_scale: Floats
    new_items: Floats | None
    item_errors: Floats | None
    guarded: bool
    alike: bool
    slices: dict[str, slice]
    n_used: int
    n_clusters: int
    notes: tuple[str, ...]


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
    exact, n_labellings, n_clusters, guarded = False, 0, 0, False
    heard = _heard_clusters(rows, columns, design, parts[-1].stop)
    if heard is not None:
        counts, group, held = heard
        n_clusters = len(group)
        both, n_labellings, exact = null_over_clusters(
            counts, group, held, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng, euclidean=True
        )
        cluster, euclidean = both[:, : len(parts)], both[:, len(parts) :]
        if n_labellings == 1:
            notes.append("the clusters have one permutation only: the cluster-level test cannot reject")
        per_group = np.bincount(group, minlength=n_groups)
        mean_size = _mean_sizes(counts, group, per_group)
        guarded = bool(per_group.min() >= 2 and per_group.max() > UNLIKE * per_group.min())
        if mean_size.max() > UNLIKE * mean_size.min():
            notes.append(
                f"clusters hold {mean_size.min():.3g} values on average in one group and {mean_size.max():.3g} in "
                "another: the cluster-level test supposes clusters of like size"
            )
        if guarded:
            notes.append(
                f"groups have {per_group.min()} to {per_group.max()} clusters: where their clusters differ unlike, "
                "permutations reject too often, so p cluster is the larger of theirs and that of the noise"
            )
        if per_group.min() < 2:
            notes.append(ONE_CLUSTER)
        for name, part in slices.items():
            heard_in = np.bincount(group[counts[:, part].any(axis=1)], minlength=n_groups)
            if heard_in.min() < 2 <= per_group.min():
                notes.append(
                    f"{name}: a group has one cluster with an answer, its noise is not known: interval too narrow"
                )
    noise = noise_of(rows, columns, design, parts, rng)
    if noise.alike:
        notes.append(
            "all clusters of a group give the same answers: the interval supposes one more cluster that does not"
        )
    scaled = noise.draw(N_NOISE, rng)
    scales, joint_scale = noise.scales(len(scaled), rng)
    new_items, item_errors = _other_items(rows, columns, design, parts, noise, scaled, rng)
    return Evidence(
        response=response,
        cluster=cluster,
        euclidean=euclidean,
        exact=exact,
        n_labellings=min(n_labellings, MANY),
        noise=scaled,
        errors=noise.errors(),
        seen_errors=noise.errors(seen=True),
        scales=scales,
        joint_scale=joint_scale,
        new_items=new_items,
        item_errors=item_errors,
        guarded=guarded,
        alike=noise.alike,
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
    counts, group, held = heard
    n_groups, n_resamples = len(design.groups), min(n_resamples, N_EVERY_VALUE)
    null, _, exact = null_over_clusters(counts, group, held, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng)
    tables = np.stack([counts[group == code].sum(axis=0) for code in range(n_groups)]).astype(np.float64)
    observed = ntvd_per_attribute(tables[None], parts)[0]
    found = {name: p_value(null[:, place], float(observed[place]), exact=exact) for place, name in enumerate(slices)}
    return {**found, "": p_value(null.mean(axis=1), float(observed.mean()), exact=exact)}


def _heard_clusters(rows: Ints, columns: Ints, design: Design, n_columns: int) -> tuple[Ints, Ints, Ints | None] | None:
    """Return the counts (K x V), the groups and the `held` codes of the clusters with an answer; None without clusters.

    The codes are None if permutations hold nothing.
    """
    if design.cluster_of_row is None or design.group_of_cluster is None:
        return None
    counts = cross_count(design.cluster_of_row[rows], columns, (len(design.group_of_cluster), n_columns))
    heard = counts.any(axis=1)
    return counts[heard], design.group_of_cluster[heard], None if design.held is None else design.held[heard]


def _mean_sizes(counts: Ints, group: Ints, per_group: Ints) -> Floats:
    sizes = np.bincount(group, weights=counts.sum(axis=1), minlength=len(per_group))
    return np.asarray(sizes / np.maximum(per_group, 1), dtype=np.float64)


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
