"""Comparison of two models on the same samples: is one further from parity than the other?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.design_noise import noise_of
from equivox.statistics.distance import estimate_shift
from equivox.statistics.encode import Design, cross_count, encode_design, encode_values, side_by_side, standard
from equivox.statistics.inputs import Bools, EncodedValues, Floats, Ints, LabelColumn, ValueColumn
from equivox.statistics.intervals import TINY, spreads
from equivox.statistics.noise import N_NOISE, Noise, noise_order
from equivox.statistics.permutation import all_swaps, p_value, swaps

Singles = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ShiftComparison:
    """Difference of the nTVDs of two models on the same samples, in percent; NaN when `undefined` says why.

    Attributes
    ----------
    difference
        ntvd_a − ntvd_b over the values kept for both, a weighted mean over attributes. Zero means that both are equally
        far from parity; above zero, model a is further.
    ntvd_a, ntvd_b
        The weighted mean nTVD of each model.
    p
        Two-sided p of the null that the models are exchangeable: their answers are swapped in whole clusters.
    p_distance
        Two-sided p of the null that the population nTVDs are equal, whatever answers each model prefers. It belongs to
        the interval: it is conservative as the interval is, and NaN when the interval is.
    p_both
        The larger of `p` and `p_distance`, or 1 if they point to opposite sides: use this p to decide whether one model
        is further from parity.
    estimate, estimate_a, estimate_b
        The estimated difference of the population nTVDs, and each model's own estimate (`equivox.statistics.distance`),
        not clipped at zero, so that noise cancels in their difference. `p_distance` refers to the side of `estimate`.
        NaN when the interval is.
    ci_low, ci_high
        Confidence interval of the difference of the population nTVDs (both models' clusters resampled together).
    n_used, n_dropped
        The samples that both models answered with a kept value of any attribute, and all other samples.
    n_clusters, exact
        The clusters compared, and whether all swaps were enumerated.
    attributes, left_out
        The attributes in the mean, and the reason for each attribute that is not.
    """

    difference: float = math.nan
    ntvd_a: float = math.nan
    ntvd_b: float = math.nan
    p: float = math.nan
    p_distance: float = math.nan
    estimate: float = math.nan
    estimate_a: float = math.nan
    estimate_b: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n_used: int
    n_dropped: int
    n_clusters: int = 0
    exact: bool = False
    undefined: str | None = None
    attributes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def p_both(self) -> float:
        """The larger of `p` and `p_distance`, or 1 if they point to opposite sides; NaN when either is."""
        if math.isnan(self.p) or math.isnan(self.p_distance):
            return math.nan
        return 1.0 if self.difference * self.estimate < 0 else max(self.p, self.p_distance)


def compare_joint_shift(
    attributes_a: Mapping[str, ValueColumn],
    attributes_b: Mapping[str, ValueColumn],
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    weights: Mapping[str, float] | None = None,
    min_count: int = 10,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> ShiftComparison:
    """Return the difference of two models' mean shifts over several attributes of the same samples.

    Each swap of the models and each draw of noise is applied to all attributes at once, so that dependence between
    attributes is allowed for.

    Parameters
    ----------
    attributes_a, attributes_b
        The values of each attribute, in the same order of samples for both models: mappings from name to column, pandas
        DataFrames or pyarrow Tables with the same names. Columns are as `values` in `distribution_shift`. A sample
        without a value from either model is dropped for both, and counted.
    weights
        The weight of each attribute in the mean, above zero; an attribute without one has weight 1. Weights are scaled
        to sum to one over the attributes that are compared. None for equal weights.
    groups, clusters, strata, blocks
        One label per sample, as in `distribution_shift`. What is held equal there is held equal here.
    min_count
        Values seen fewer times over both models together are removed.
    n_resamples
        Swaps of the two models drawn. All 2^C swaps are enumerated when there are no more than this.
    confidence
        Coverage of the interval, between 0 and 1.
    rng
        The only source of randomness.

    Returns
    -------
    ShiftComparison
        `difference` is in percent. Zero means that both models lie equally far from parity on average, not that they
        give the same answers. An attribute with fewer than two groups or values left, or with an empty group, is left
        out with its reason; NaN when that is so for all of them. Only the interval, the estimates and `p_distance` are
        NaN when in any attribute a group has answers from a single cluster.

    Raises
    ------
    RequestError
        As `distribution_shift`; also when `clusters` is None, when the models have different attributes or none, or
        when a weight is not above zero.

    Notes
    -----
    The swap test's null is that the models are exchangeable within a cluster, which is stronger than equal nTVDs:
    models with equal shifts that use different words are not exchangeable, and the test rejects them more often than
    its level. `p_distance` inverts the interval. The interval takes the upward bias of each model at its largest on one
    side and at its smallest on the other, and keeps its level for any words (docs/validity.md).

    Examples
    --------
    Model a moves "hobby" by 100 and "mood" not at all; model b neither:

    >>> groups, speakers = ["f"] * 4 + ["m"] * 4, list("aabbccdd")
    >>> apart, alike = [["x"]] * 4 + [["y"]] * 4, [["x"], ["y"]] * 4
    >>> found = compare_joint_shift({"hobby": apart, "mood": alike}, {"hobby": alike, "mood": alike}, groups,
    ...                             clusters=speakers, min_count=1, rng=np.random.default_rng(1))
    >>> found.difference, found.p, found.attributes
    (50.0, 0.125, ('hobby', 'mood'))
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    inputs.check_min_count(min_count)
    of_a, of_b = (
        inputs.named_columns(attributes, argument)
        for argument, attributes in (("attributes_a", attributes_a), ("attributes_b", attributes_b))
    )
    if not of_a or set(of_a) != set(of_b):
        raise RequestError(
            f"`attributes_a` has {', '.join(of_a) or 'nothing'} and `attributes_b` "
            f"{', '.join(of_b) or 'nothing'}: give the same attributes of both models"
        )
    weight_of = {} if weights is None else inputs.named_numbers(weights, "weights")
    for name, weight in weight_of.items():
        if not weight > 0:
            raise RequestError(f"`weights` has {weight} for {name!r}: use a number above zero")
    design = encode_design(groups, clusters, strata, blocks)
    if design.cluster_of_row is None or design.group_of_cluster is None:
        raise RequestError("`clusters` is None: name the unit that carries the group")
    used = np.zeros(len(design.group_of_row), dtype=bool)
    counted: dict[str, _Counted] = {}
    left_out = {}
    for name in of_a:
        own = _count(name, of_a[name], of_b[name], design, min_count)
        used |= own.used
        reason = _undefined(design, own.counts)
        if reason is None:
            counted[name] = own
        else:
            left_out[name] = reason
    n_used, n_dropped = int(used.sum()), int(len(used) - used.sum())
    if not counted:
        reasons = dict.fromkeys(left_out.values())
        why = "; ".join(reasons if len(reasons) == 1 else (f"{name}: {reason}" for name, reason in left_out.items()))
        return ShiftComparison(n_used=n_used, n_dropped=n_dropped, undefined=why, left_out=left_out)
    given = np.array([weight_of.get(name, 1.0) for name in counted])
    tables = _Tables(list(counted.values()), given / given.sum(), design)
    ntvd_a, ntvd_b = tables.ntvd(tables.by_group()).tolist()
    null, exact = _swapped(tables, n_resamples, rng)
    of_distance = _distance(tables, n_resamples, confidence, rng)
    return ShiftComparison(
        difference=ntvd_a - ntvd_b,
        ntvd_a=ntvd_a,
        ntvd_b=ntvd_b,
        p=p_value(np.abs(null), abs(ntvd_a - ntvd_b), exact=exact),
        **of_distance,
        n_used=n_used,
        n_dropped=n_dropped,
        n_clusters=tables.n_units,
        exact=exact,
        attributes=tuple(counted),
        left_out=left_out,
    )


class _Tables:
    """Counts of both models by cluster and value (2 x C x V), attributes concatenated, with their weights.

    Distances are taken from contrasts R x V: the deviations of the groups from their mean, or, as two groups deviate
    alike, half their difference.
    """

    def __init__(self, counted: Sequence[_Counted], weights: Floats, design: Design) -> None:
        counts = np.concatenate([own.counts for own in counted], axis=2)
        slices = side_by_side(own.counts.shape[2] for own in counted)
        self.weights, self.design = weights, design
        self._rows = [np.concatenate([own.rows[model] for own in counted]) for model in (0, 1)]
        self._codes = [
            np.concatenate([own.codes[model] + part.start for own, part in zip(counted, slices, strict=True)])
            for model in (0, 1)
        ]
        heard = counts.sum(axis=(0, 2)) > 0
        # Clusters are sorted by their answers, so that names do not matter.
        order = np.lexsort([*counts[0][heard].T, *counts[1][heard].T])
        self.n_groups = n_groups = len(design.groups)
        self.group: Ints = np.asarray(design.group_of_cluster)[heard][order]
        held = None if design.held is None else design.held[heard][order]
        # Both models are weighed alike, by the answers of both, so that their exchange is one of answers alone.
        both = counts[:, heard][:, order]
        widths = [part.stop - part.start for part in slices]
        own_weights = standard(both.sum(axis=0), self.group, held, slices, n_groups).weights
        self.counts = both * np.repeat(own_weights, widths, axis=1)
        self.cluster_weights = np.zeros((len(heard), 2 * len(slices)))
        self.cluster_weights[np.flatnonzero(heard)[order]] = np.tile(own_weights, 2)
        # What is exchanged as one: a cluster, or a unit that is in every group.
        self.unit: Ints = np.arange(len(order)) if held is None or not design.crossed else _numbered(held)
        self.n_units = int(self.unit.max()) + 1
        self.slices = slices
        self._starts = [part.start for part in slices]
        self._attribute = np.repeat(np.arange(len(slices)), widths)
        self._weight = np.repeat(weights, widths) * (100.0 if n_groups == 2 else 50.0 / (n_groups - 1))

    def by_group(self) -> Floats:
        """2 x G x V."""
        return np.stack([self.counts[:, self.group == code].sum(axis=1) for code in range(self.n_groups)], axis=1)

    def noise(self, rng: np.random.Generator) -> Noise:
        """Return the noise of both models' distributions together; the second model's columns follow the first's.

        Its degrees of freedom are clusters less groups at most. The jackknife's are more where errors of many values
        average out, which the difference of two distances does not; with two uneven clusters a group, models of equal
        bias were told apart in 20 % of samples (`python -m validity.comparison`).
        """
        n_values = self.counts.shape[2]
        found = noise_of(
            np.concatenate(self._rows),
            np.concatenate([self._codes[0], self._codes[1] + n_values]),
            self.design,
            [*self.slices, *(slice(part.start + n_values, part.stop + n_values) for part in self.slices)],
            rng,
            weights=self.cluster_weights,
        )
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


class _ContrastNoise:
    """Draws contrasts under the noise alone.

    They are in single precision, which is far finer than draws differ by, and takes half the time. The contrast of two
    groups needs one draw, since the difference of two independent normal numbers is one.
    """

    def __init__(self, tables: _Tables, noise: Noise, rng: np.random.Generator) -> None:
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
    size = max(1, CACHED // max(1, batch[0].size))
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def _short(factor: Floats) -> Floats:
    """Return a factor of the same covariance with as many rows as columns at most, which takes fewer random numbers."""
    return factor if len(factor) <= factor.shape[1] else np.asarray(np.linalg.qr(factor, mode="r"))


@dataclass(frozen=True)
class _Counted:
    """One attribute's values over the samples that both models answered.

    `counts` is 2 x C x V, by model and cluster; `rows` and `codes` hold each model's (sample, value) pairs; `used`
    marks the samples.
    """

    counts: Ints
    rows: tuple[Ints, Ints]
    codes: tuple[Ints, Ints]
    used: Bools


def _count(name: str, values_a: ValueColumn, values_b: ValueColumn, design: Design, min_count: int) -> _Counted:
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
    item = both.rows % n
    keep = used[item]
    of_b = both.rows[keep] >= n
    samples, codes = item[keep], both.codes[keep]
    cluster = np.asarray(design.cluster_of_row)[samples]
    shape = (len(design.clusters or ()), len(both.values))
    counts = np.stack([cross_count(cluster[mine], codes[mine], shape) for mine in (~of_b, of_b)])
    return _Counted(counts, (samples[~of_b], samples[of_b]), (codes[~of_b], codes[of_b]), used)


def _numbered(codes: Ints) -> Ints:
    """Return the codes numbered from 0 in the order in which they are first seen."""
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)


def _undefined(design: Design, counts: Ints) -> str | None:
    if len(design.groups) < 2:
        return f"only one group, {design.groups[0]!r}: a difference needs two"
    if counts.shape[2] < 2:
        return "fewer than two values are kept: constant answers show no difference and no fairness"
    heard = np.asarray(design.group_of_cluster)[counts.sum(axis=(0, 2)) > 0]
    empty = [name for code, name in enumerate(design.groups) if not (heard == code).any()]
    if empty:
        return f"no sample that both models answered in group {', '.join(map(repr, empty))}"
    if design.held is not None:
        with_answers = counts.sum(axis=(0, 2)) > 0
        cells = np.unique(design.held[with_answers] * len(design.groups) + heard)
        if np.bincount(cells // len(design.groups)).max() < len(design.groups):
            return f"no {design.held_by} has answers of both models in all groups: nothing to compare"
    return None


def _swapped(tables: _Tables, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Return the difference of nTVD with the two models exchanged in some clusters, B."""
    a, b = tables.counts
    base_a, base_b = tables.by_group()
    of = [tables.group == code for code in range(tables.n_groups)]
    parts = []
    for pattern in swaps(tables.n_units, n_resamples, tables.n_groups * max(a.shape), rng):
        moved = np.stack([pattern[:, tables.unit[mine]] @ (b - a)[mine] for mine in of], axis=1)
        parts.append(tables.ntvd(base_a + moved) - tables.ntvd(base_b - moved))
    return np.concatenate(parts), all_swaps(tables.n_units, n_resamples)


def _distance(tables: _Tables, n_draws: int, confidence: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return estimates, interval and p-value of the difference of the population nTVDs, by the names of the result.

    Noise adds to each nTVD by an amount between that of the densest and that of the sparsest spread; the interval is
    that of the observed difference less the difference of these. p is twice the tail of the change that noise makes,
    beyond the difference so bracketed.
    """
    if tables.fewest_clusters() < 2:
        return {}
    n_values = tables.counts.shape[2]
    model = tables.noise(rng)
    drawn = _ContrastNoise(tables, model, rng).draw
    of = [slice(0, n_values), slice(n_values, 2 * n_values)]
    deviations = tables.deviations(tables.by_group())
    errors = np.maximum(tables.contrasts(model.errors()), TINY)
    seen = tables.contrasts(model.errors(seen=True))
    noise = drawn(N_NOISE)
    whole = noise.astype(np.float64)
    bias = np.empty((2, 2))
    estimates = []
    for which, part in enumerate(of):
        estimates.append(_estimate(tables, deviations[which], seen[:, part]))
        for column, spread in enumerate(spreads(deviations[which], whole[:, :, part], errors[:, part], tables.slices)):
            bias[which, column] = _bias(tables, deviations[which], spread, noise[:, :, part])
    changes: list[Floats] = []
    left = max(n_draws, N_NOISE)
    while left > 0:
        moved = (noise if not changes else drawn(N_NOISE))[:left]
        longer = [tables.lengths(deviations[which], moved[:, :, part]) for which, part in enumerate(of)]
        changes.append(longer[0] - longer[1])
        left -= len(moved)
    change = np.concatenate(changes)
    change -= change.mean()
    tail = (1 - confidence) / 2
    difference = tables.length(deviations[0]) - tables.length(deviations[1])
    least = difference - (bias[0].max() - bias[1].min())
    most = difference - (bias[0].min() - bias[1].max())
    further = min((change >= least - TINY).sum(), (change <= most + TINY).sum())
    return {
        "p_distance": min(1.0, 2 * float(1 + further) / (1 + len(change))),
        "estimate": estimates[0] - estimates[1],
        "estimate_a": estimates[0],
        "estimate_b": estimates[1],
        "ci_low": max(-100.0, least - float(np.quantile(change, 1 - tail))),
        "ci_high": min(100.0, most - float(np.quantile(change, tail))),
    }


def _estimate(tables: _Tables, contrasts: Floats, errors: Floats) -> float:
    """Return the weighted mean of a model's estimated nTVDs."""
    if tables.n_groups == 2:
        contrasts, errors = np.concatenate([contrasts, -contrasts]), np.concatenate([errors, errors])
    return float(estimate_shift(contrasts, errors, tables.slices) @ tables.weights)


def least_p_distance(n_resamples: int) -> float:
    """Return the smallest `p_distance` that this number of draws can give: twice the tail that none reaches.

    >>> least_p_distance(9_999)
    0.0002
    """
    return 2.0 / (1 + max(n_resamples, N_NOISE))


def _bias(tables: _Tables, deviations: Floats, spread: Floats, noise: Singles) -> float:
    """Return the increase of the observed distance by noise, if the truth is spread like `spread`."""
    from scipy.optimize import brentq

    observed, length = tables.length(deviations), tables.length(spread)
    if length == 0.0:
        return 0.0

    def longer(t: float) -> float:
        return float(tables.lengths(t / length * spread, noise).mean()) - observed

    if longer(0.0) >= 0.0:
        return observed
    # On average noise increases the distance, so the bias is not negative.
    return observed - float(brentq(longer, 0.0, observed, xtol=1e-3)) if longer(observed) > 0.0 else 0.0
