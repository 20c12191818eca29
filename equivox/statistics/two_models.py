"""Counts of two models on the same samples, by cluster and value, and the noise of their contrasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equivox.statistics import inputs
from equivox.statistics.design_noise import noise_of
from equivox.statistics.encode import (
    Answers,
    Design,
    Occurrences,
    by_column,
    encode_values,
    part_of_column,
    side_by_side,
    standard,
)
from equivox.statistics.inputs import Bools, EncodedValues, Floats, Ints, ValueColumn
from equivox.statistics.noise import Noise, noise_order

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Counted:
    """One attribute's values over the samples that both models answered.

    `counts` is 2 x C x V, by model and cluster; `found` are each model's values; `used` marks the samples.
    """

    counts: Ints
    found: Sequence[Occurrences]
    used: Bools


def counted_for_both(
    name: str, values_a: ValueColumn, values_b: ValueColumn, design: Design, min_count: int
) -> Counted:
    """Count one attribute's values over the samples that both models answered with a kept value."""
    n = len(design.group_of_row)
    read = []
    for model, column in (("a", values_a), ("b", values_b)):
        argument = f"values_{model}" if name == "values" else f"attributes_{model}[{name!r}]"
        read.append(inputs.values(column, argument))
        inputs.same_length("groups", n, {argument: read[-1].n_rows})
    a, b = read
    stacked = EncodedValues(
        rows=np.concatenate([a.rows, b.rows + n]),
        codes=np.concatenate([a.codes, b.codes + len(a.names)]),
        names=(*a.names, *b.names),
        n_rows=2 * n,
    )
    both = encode_values(inputs.values(stacked, name), min_count)
    answered = np.zeros(2 * n, dtype=bool)
    answered[both.rows] = True
    used = answered[:n] & answered[n:]
    kept, is_b = used[both.rows % n], both.rows >= n
    found = [replace(both, rows=both.rows[mine] % n, codes=both.codes[mine]) for mine in (kept & ~is_b, kept & is_b)]
    counts = [Answers.of([own]).counted(design.cluster_of_row, len(design.clusters)) for own in found]
    return Counted(np.stack(counts), found, used)


class TwoTables:
    """Counts of both models by cluster and value (2 x C x V), attributes concatenated, with their weights.

    Distances are taken from contrasts R x V: the deviations of the groups from their mean, or, as two groups deviate
    alike, half their difference.
    """

    def __init__(self, counted: Sequence[Counted], weights: Floats, design: Design) -> None:
        counts = np.concatenate([own.counts for own in counted], axis=2)
        slices = side_by_side(own.counts.shape[2] for own in counted)
        self.weights, self.design = weights, design
        self._answers = Answers.of(own.found[model] for model in (0, 1) for own in counted)
        heard = counts.sum(axis=(0, 2)) > 0
        # Clusters are sorted by their answers, so that names do not matter.
        order = np.lexsort([*counts[0][heard].T, *counts[1][heard].T])
        self.n_groups = n_groups = len(design.groups)
        self.group: Ints = design.group_of_cluster[heard][order]
        held = None if design.held is None else design.held[heard][order]
        # Both models are weighed alike, by the answers of both, so that their exchange is one of answers alone.
        both = counts[:, heard][:, order]
        own_weights = standard(both.sum(axis=0), self.group, held, slices, n_groups).weights
        self.counts = both * by_column(own_weights, slices)
        self.cluster_weights = np.zeros((len(heard), 2 * len(slices)))
        self.cluster_weights[np.flatnonzero(heard)[order]] = np.tile(own_weights, 2)
        # What is exchanged as one: a cluster, or a unit that is in every group.
        self.unit: Ints = np.arange(len(order)) if held is None or not design.crossed else _numbered(held)
        self.n_units = int(self.unit.max()) + 1
        self.slices = slices
        self._starts = [part.start for part in slices]
        self._attribute = part_of_column(slices)
        self._weight = weights[self._attribute] * (100.0 if n_groups == 2 else 50.0 / (n_groups - 1))

    def by_group(self) -> Floats:
        """2 x G x V."""
        return np.stack([self.counts[:, self.group == code].sum(axis=1) for code in range(self.n_groups)], axis=1)

    def noise(self, rng: np.random.Generator) -> Noise:
        """Return the noise of both models' distributions together; the second model's columns follow the first's.

        Its degrees of freedom are clusters less groups at most. The jackknife's are more where errors of many values
        average out, which the difference of two distances does not; with two uneven clusters a group, models of equal
        bias were told apart in 20 % of samples (`python -m validity.comparison`).
        """
        found = noise_of(self._answers, self.design, rng, weights=self.cluster_weights)
        most = float(max(1, len(self.group) - self.n_groups))
        return replace(found, joint_degrees=min(found.joint_degrees, most))

    def contrasts(self, deviations: Floats) -> Floats:
        """Return contrasts (... x R x V) from the deviations of all groups (... x G x V)."""
        return deviations[..., :1, :] if self.n_groups == 2 else deviations

    def fewest_clusters(self) -> int:
        """Return the smallest number of clusters of any group in any attribute."""
        heard = np.add.reduceat(self.counts.sum(axis=0), self._starts, axis=-1) > 0
        return int(min(heard[self.group == code].sum(axis=0).min() for code in range(self.n_groups)))

    def deviations(self, counts: Floats) -> Floats:
        """Return the contrasts of a batch of tables: B x R x V from B x G x V."""
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = counts / np.add.reduceat(counts, self._starts, axis=-1)[..., self._attribute]
        if self.n_groups == 2:
            return np.asarray((shares[..., :1, :] - shares[..., 1:, :]) / 2, dtype=np.float64)
        return np.asarray(shares - shares.mean(axis=-2, keepdims=True), dtype=np.float64)

    def ntvd(self, counts: Floats) -> Floats:
        """Return the weighted mean nTVD of a batch of tables, B from B x G x V."""
        return np.concatenate([self._length(self.deviations(some)) for some in _portions(counts)])

    def length(self, deviations: Floats) -> float:
        """Return the weighted mean nTVD from contrasts R x V."""
        return float(self._length(deviations))

    def lengths(self, start: Floats, noise: Singles) -> Floats:
        """Return the weighted mean nTVD from contrasts R x V with each draw of noise, B from B x R x V."""
        single = start.astype(np.float32)
        return np.concatenate([self._length(single + some) for some in _portions(noise)])

    def _length(self, deviations: Floats | Singles) -> Floats:
        weight = self._weight.astype(deviations.dtype, copy=False)
        return np.asarray((np.abs(deviations) @ weight).sum(axis=-1), dtype=np.float64)


class ContrastNoise:
    """Draws contrasts under the noise alone.

    They are in single precision, which is far finer than draws differ by, and takes half the time. The contrast of two
    groups needs one draw, since the difference of two independent normal numbers is one.
    """

    def __init__(self, tables: TwoTables, noise: Noise, rng: np.random.Generator) -> None:
        # In the order of their noise, so that the draws do not depend on the order of the groups.
        factors = noise.whole()
        self._order = noise_order(factors)
        if tables.n_groups == 2:
            factors = [np.concatenate([factors[code] for code in self._order]) / 2]
            self._order = [0]
        self._factors = [_short(factor).astype(np.float32) for factor in factors]
        self._shared = None
        if noise.shared is not None:
            shared = tables.contrasts(noise.shared)
            self._shared = _short(shared.reshape(len(shared), -1)).astype(np.float32)
        self._degrees, self._rng = noise.joint_degrees, rng

    def draw(self, size: int) -> Singles:
        """Draw contrasts, B x R x V, of Student's t, since the covariance is estimated.

        Noise is symmetric: each draw of normal numbers is used with both signs.
        """
        half = np.empty((size // 2, len(self._factors), self._factors[0].shape[1]), dtype=np.float32)
        for code in self._order:
            half[:, code] = self._normal(len(half), self._factors[code])
        if len(self._factors) > 1:
            half -= half.mean(axis=1, keepdims=True)
        if self._shared is not None:
            half += self._normal(len(half), self._shared).reshape(half.shape)
        noise = np.concatenate([half, -half])
        if np.isfinite(self._degrees):
            # As `Noise.scales`, which takes longer, because it serves several degrees of freedom with the same chance.
            scale = np.sqrt(self._degrees / self._rng.chisquare(self._degrees, len(noise)))
            noise *= scale.astype(np.float32)[:, None, None]
        return noise

    def _normal(self, size: int, factor: Singles) -> Singles:
        return self._rng.standard_normal((size, len(factor)), dtype=np.float32) @ factor


CACHED = 131_072
"""The number of cells that are computed at a time: what a core's cache holds is faster."""


def _portions(batch: NDArray[Any]) -> list[NDArray[Any]]:
    size = max(1, CACHED // batch[0].size)
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def _short(factor: Floats) -> Floats:
    """Return a factor of the same covariance with as many rows as columns at most, which takes fewer random numbers.

    It is the symmetric root. Of all roots it alone does not depend on how a processor rounds where columns depend on
    each other, as shares do, so that another machine draws the same noise.
    """
    if len(factor) <= factor.shape[1]:
        return factor
    variances, directions = np.linalg.eigh(factor.T @ factor)
    return np.asarray((directions * np.sqrt(variances.clip(0.0))) @ directions.T)


def _numbered(codes: Ints) -> Ints:
    """Return the codes numbered from 0 in the order in which they are first seen."""
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)
