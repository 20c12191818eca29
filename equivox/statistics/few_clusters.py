"""The shift that permutations of few clusters find: some of them hold part of the shift themselves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from equivox.core.detectable import GOAL, LEVEL
from equivox.statistics.distance import mean_ntvd
from equivox.statistics.inputs import Bools, Floats, Ints
from equivox.statistics.permutation import count_labellings, labellings

MOST_CLUSTERS = 7
"""Clusters of a group, on average, up to which they are few. With more, permutations find what the noise allows."""
MOST_VALUES = 12
"""Independent values up to which permutations of few clusters find less than the noise allows."""

_ENUMERATED = 300
_DRAWN = 199
_SAMPLES = 500
_FEWEST_SAMPLES = 100
_CELLS = 2**23
"""The numbers that are simulated at a time: of many groups, fewer samples are."""
_STEPS = 10


def needed_by_permutations(lengths: Floats, sizes: Ints) -> float:
    """Return the nTVD that permutations of few clusters find in 80 of 100 samples, in the unit of `lengths`.

    Four clusters against four have 70 permutations, and 32 of them hold half of the shift. A p up to .05 then needs a
    larger shift than the noise alone would, which is what is simulated here, with clusters that differ as much as
    these do. It matters most where a distance has few values, since the noise of many averages out.

    Parameters
    ----------
    lengths
        B draws of the distance between the groups under their noise alone.
    sizes
        S x G, the clusters of each group in each stratum, within which groups are permuted.

    Returns
    -------
    float
        0 where groups do not have few clusters, where many values add up, and where no shift is found, however large.
    """
    noise = float(lengths.mean())
    if sizes.sum() > MOST_CLUSTERS * sizes.shape[1] or not noise > 0:
        return 0.0
    n_values = round(_freedom(lengths) / _freedom_of_one(sizes.shape[1]))
    if n_values > MOST_VALUES:
        return 0.0
    return noise * _needed(tuple(map(tuple, sizes.tolist())), max(n_values, 1))


def _freedom(lengths: Floats) -> float:
    """Return how steady a distance is: its mean² over its variance, which is proportional to the values it adds up."""
    return float(lengths.mean() ** 2 / max(lengths.var(), 1e-300))


@lru_cache
def _freedom_of_one(n_groups: int) -> float:
    """Return `_freedom` of the distance of so many groups on one value."""
    noise = np.random.default_rng(0).standard_normal((20_000, n_groups, 1))
    return _freedom(mean_ntvd(noise, [slice(0, 1)]))


@lru_cache
def _needed(sizes: tuple[tuple[int, ...], ...], n_values: int) -> float:
    """Return the shift that is found in 80 of 100 samples, in means of the noise's length; 0 if none is.

    `sizes` has the clusters of each group in each stratum. The clusters' noise is normal, and alike for all values.
    """
    rng = np.random.default_rng(0)
    table = np.array(sizes)
    n_groups = table.shape[1]
    group = np.concatenate([np.repeat(np.arange(n_groups), row) for row in table])
    exact = count_labellings(table) <= _ENUMERATED
    drawn = labellings(table, _ENUMERATED if exact else _DRAWN, _ENUMERATED, rng)
    labels = np.concatenate([group[None], *drawn])
    member = (labels[:, None, :] == np.arange(n_groups)[:, None]) / table.sum(axis=0)[:, None]
    side = np.where(np.arange(n_groups) % 2 == 0, 1.0, -1.0)
    whole = [slice(0, n_values)]
    length = mean_ntvd(np.repeat(side[None, :, None], n_values, axis=2), whole)[0]
    shift = (member @ side[group] / length)[:, :, None]
    n_samples = max(_FEWEST_SAMPLES, min(_SAMPLES, _CELLS // (len(labels) * n_groups * n_values)))
    noise = member @ rng.standard_normal((n_samples, 1, len(group), n_values))
    unit = float(mean_ntvd(noise[:, 0], whole).mean())

    def found(size: float) -> float:
        """Return the share of samples whose p is at most the level."""
        moved = (noise + size * unit * shift).reshape(-1, n_groups, n_values)
        distances = mean_ntvd(moved, whole).reshape(n_samples, -1)
        observed = distances[:, :1]
        as_far: Bools = distances[:, 1:] >= observed * (1 - 1e-9)
        extreme = as_far.sum(axis=1)
        p = extreme / as_far.shape[1] if exact else (1 + extreme) / (1 + as_far.shape[1])
        return float((p <= LEVEL + 1e-12).mean())

    low, high = 0.0, 16.0
    if found(high) < GOAL:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) < GOAL else (low, middle)
    return high
