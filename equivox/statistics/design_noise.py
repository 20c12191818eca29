"""The noise of a design: over its clusters, over its units in every group, or over responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equivox.statistics.encode import Answers, Design
from equivox.statistics.inputs import Floats, Ints
from equivox.statistics.noise import (
    ALIKE,
    LENT,
    N_DEALT,
    ONE_CLUSTER,
    Noise,
    noise_over_clusters,
    noise_over_responses,
    supposed,
)


def noise_of(
    answers: Answers,
    design: Design,
    rng: np.random.Generator,
    *,
    weights: Floats | None,
    scale: Floats | None = None,
) -> Noise:
    """Return the noise of the groups' distributions: over clusters if there are enough, otherwise over responses.

    `weights` are those of the clusters (`equivox.statistics.encode`), None where each counts as it is. `scale` has a
    factor on the noise of each group, None for 1. Where every stratum holds a single cluster of each group, such as an
    item that was given to all of them, strata are the units.
    """
    if design.paired and _clusters_of_groups(answers.rows, design, weights).min() >= 2:
        return noise_over_pairs(answers, design, rng, weights, scale)
    if _clusters_of_groups(answers.rows, design).max() >= 2:
        found = noise_over_clusters(answers, design, rng, weights=weights)
    else:  # one cluster shows no noise
        found = noise_over_responses(answers, design)
    if scale is None:
        return found
    each = [
        None if own is None else [f * by for f, by in zip(own, scale, strict=True)]
        for own in (found.factors, found.supposed)
    ]
    return replace(found, factors=each[0] or [], supposed=each[1])


def on_few_clusters(rows: Ints, design: Design, weights: Floats | None = None) -> str | None:
    """Return a note on the noise where a group has one cluster; None if each has two or more, or without clusters.

    Clusters with `weights` of 0 do not count, as in `noise_of`.
    """
    n = _clusters_of_groups(rows, design, weights)
    if not design.clusters or n.min() >= 2:
        return None
    return LENT if n.max() >= 2 else ONE_CLUSTER


def _clusters_of_groups(rows: Ints, design: Design, weights: Floats | None = None) -> Ints:
    """Return the number of clusters of each group among the responses `rows`; zeros without clusters."""
    if not design.clusters:
        return np.zeros(len(design.groups), dtype=np.int64)
    heard = np.unique(design.cluster_of_row[rows])
    if weights is not None:
        heard = heard[weights[heard].any(axis=1)]
    return np.bincount(design.group_of_cluster[heard], minlength=len(design.groups))


def noise_over_pairs(
    answers: Answers, design: Design, rng: np.random.Generator, weights: Floats | None, scale: Floats | None
) -> Noise:
    """Return the noise of the deviations when each stratum holds one cluster of every group, such as one item.

    A stratum moves all groups together; only what it moves them apart is noise. Its pull on group g is
    (x_sg - N_sg P_g) / N_g, less the mean over groups. If all strata move the groups apart alike, such as not at all,
    their noise is not zero but unknown; one more is supposed then, as with clusters (`noise_over_clusters`). So it is
    where a group shares no answer with another.
    """
    slices, n_groups, n_columns = answers.parts, len(design.groups), answers.width
    held = np.asarray(design.held)
    of_stratum = np.zeros((int(held.max()) + 1, n_groups, n_columns))
    of_stratum[held, design.group_of_cluster] = answers.of_clusters(design, weights)
    of_stratum = of_stratum[of_stratum.any(axis=(1, 2))]
    pulls = _pulls_apart(of_stratum, slices, rng, scale)
    degrees = float(len(of_stratum) - 1)
    none = [np.empty((0, n_columns))] * n_groups
    added = [[own] for own in none]
    tables = of_stratum.sum(axis=0)
    for part in slices:
        most = np.eye(part.stop - part.start)[tables[:, part].sum(axis=0).argsort(kind="stable")[-1]]
        same = most if (pulls[:, :, part] ** 2).sum() <= ALIKE else None
        for code, by in enumerate(np.ones(n_groups) if scale is None else scale):
            added[code].append(supposed(tables[:, part], code, len(of_stratum), part, n_columns, alike=same) * by)
    return Noise(none, (degrees,) * len(slices), degrees, [*map(np.concatenate, added)], shared=pulls)


def _pulls_apart(
    counts: Floats,
    slices: Sequence[slice],
    rng: np.random.Generator,
    scale: Floats | None = None,
) -> Floats:
    """Return the pulls of units that are in every group on the deviations, from their counts, units x G x V.

    `scale` has a factor on the pulls on each group.
    """
    n_units, n_groups, n_columns = counts.shape
    if n_units > N_DEALT:
        order = np.lexsort(counts.sum(axis=1).T[::-1])
        heap = np.empty(n_units, dtype=np.int64)
        heap[order] = rng.permutation(n_units) % N_DEALT
        heaps = np.zeros((N_DEALT, n_groups, n_columns))
        np.add.at(heaps, heap, counts)
        counts = heaps
    else:
        counts = counts[np.lexsort(counts.sum(axis=1).T[::-1])]
    pulls = np.zeros_like(counts)
    for part in slices:
        pulls[:, :, part] = pulls_of(counts[:, :, part], counts[:, :, part].sum(axis=2, keepdims=True))
    if scale is not None:
        pulls *= scale[:, None]
    return apart(pulls)


def pulls_of(sums: Floats, sizes: Floats) -> Floats:
    """Return what each unit pulls the means of the groups by, from its sums, units x G x V, and weights, units x G x 1.

    A unit's pull on group g is (x_ug - N_ug P_g) / N_g, where P_g is the mean of the group.
    """
    total = np.maximum(sizes.sum(axis=0), 1)
    return np.asarray((sums - sizes * (sums.sum(axis=0) / total)) / total, dtype=np.float64)


def apart(pulls: Floats) -> Floats:
    """Return the part of pulls, units x G x V, that moves groups apart, for a sum of squares without bias."""
    m = len(pulls)
    left = (pulls - pulls.mean(axis=1, keepdims=True)) * np.sqrt(m / (m - 1))
    return np.asarray(left, dtype=np.float64)
