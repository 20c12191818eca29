"""Null distributions and sampling error of a shift, shared by the attributes of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equivox.statistics.arrays import Floats, Ints
from equivox.statistics.encode import Design, Occurrences, cross_count, stack_attributes
from equivox.statistics.intervals import draw_noise, noise_of_clusters, noise_of_responses
from equivox.statistics.nulls import null_over_clusters, null_over_responses

MANY = 2**63 - 1
"""The largest count of permutations that is reported; larger ones do not fit into file formats."""

N_NOISE = 1_000
"""Number of draws of sampling error for an interval; its ends differ by about 0.1 standard errors between seeds."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Nulls and noise shared by the attributes that are defined; attributes are columns of the nulls."""

    response: Floats
    cluster: Floats
    exact: bool
    n_labellings: int
    noise: Floats
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
    if design.clusters is None or design.cluster_of_row is None or design.group_of_cluster is None:
        noise = _response_noise(rows, columns, design, parts, rng)
        return Evidence(
            response=response,
            cluster=np.empty((0, len(parts))),
            exact=False,
            n_labellings=0,
            noise=noise,
            slices=slices,
            n_used=n_used,
            n_clusters=0,
            notes=tuple(notes),
        )
    counts = cross_count(design.cluster_of_row[rows], columns, (len(design.clusters), parts[-1].stop))
    heard = counts.sum(axis=1) > 0
    counts, group = counts[heard], design.group_of_cluster[heard]
    stratum = None if design.stratum_of_cluster is None else design.stratum_of_cluster[heard]
    cluster, n_labellings, exact = null_over_clusters(
        counts, group, stratum, parts, n_groups=n_groups, n_resamples=n_resamples, rng=rng
    )
    if n_labellings == 1:
        notes.append("the clusters have one permutation only: the cluster-level test cannot reject")
    per_group = np.bincount(group, minlength=n_groups)
    mean_size = np.bincount(group, weights=counts.sum(axis=1), minlength=n_groups) / np.maximum(per_group, 1)
    if mean_size.max() > 1.5 * mean_size.min():
        notes.append(
            f"clusters hold {mean_size.min():.3g} values on average in one group and {mean_size.max():.3g} in another: "
            "the cluster-level test supposes clusters of like size"
        )
    if per_group.min() < 2:
        notes.append("a group has one cluster: the interval treats responses as independent, too narrow")
        noise = _response_noise(rows, columns, design, parts, rng)
    else:
        factors = noise_of_clusters(counts, group, parts, n_groups)
        noise = draw_noise(factors, N_NOISE, float((per_group - 1).sum()), rng)
    for name, part in slices.items():
        heard_in = np.bincount(group[counts[:, part].any(axis=1)], minlength=n_groups)
        if heard_in.min() < 2 <= per_group.min():
            notes.append(f"{name}: a group has one cluster with an answer, its noise is not known: interval too narrow")
    if not noise.any():
        notes.append("the clusters of a group do not differ: the interval has no width and says nothing")
    return Evidence(
        response=response,
        cluster=cluster,
        exact=exact,
        n_labellings=min(n_labellings, MANY),
        noise=noise,
        slices=slices,
        n_used=n_used,
        n_clusters=len(group),
        notes=tuple(notes),
    )


def _response_noise(rows: Ints, columns: Ints, design: Design, parts: list[slice], rng: np.random.Generator) -> Floats:
    factors = noise_of_responses(rows, columns, design.group_of_row, parts, len(design.groups))
    return draw_noise(factors, N_NOISE, float("inf"), rng)
