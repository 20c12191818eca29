"""Influence values: what each unit adds to the groups' shares or means, and the noise that follows from them.

The *deviations* of the groups, theta = P_g - mean_g P_g, are ratios of sums over units. A unit's influence value is its
linearised part in theta (Taylor linearisation, as in survey sampling), enlarged for its leverage (CR2: Bell & McCaffrey
2002, Survey Methodology 28, 169-181). Estimate, interval and the noise test all follow from these values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equivox.statistics.design import Design, repeat_parts, standardise_mix, sum_parts
from equivox.statistics.inputs import Bools, Floats, Ints

PRIOR = 4.0
"""The weight, in clusters, of noise as independent answers would have it, beside the noise that is seen."""

MOST_UNITS = 256
"""More units are dealt into this many random heaps before noise is drawn from them."""

TINY = 1e-300
"""Replaces a divisor of zero where the dividend is zero as well."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """The deviations of the groups with the influence values of the units.

    Attributes
    ----------
    theta
        G x V, the groups' shares or means less their mean over groups.
    values
        U x G x V, the influence values on theta; the sum of their outer products is its covariance.
    independent
        Noise that is independent in each group and attribute, as (group, columns, factor): the factor's inner product
        is the covariance of the group's shares. Where all units of a group agree, much noise is supposed.
    unsupposed
        The same without what is supposed.
    degrees
        The degrees of freedom of the size of the noise.
    variances
        The variance between the units of each group around its own mean, summed over values, G.
    levels
        G x V, the shares or means themselves.
    """

    theta: Floats
    values: Floats
    degrees: float
    variances: Floats
    levels: Floats
    independent: Sequence[tuple[int, slice, Floats]] = ()
    unsupposed: Sequence[tuple[int, slice, Floats]] = ()

    @property
    def seen(self) -> Influence:
        """The same without noise that is only supposed: estimates and findings rest on what was seen."""
        return replace(self, independent=self.unsupposed)

    @property
    def errors(self) -> Floats:
        """The standard errors of theta, G x V."""
        alone = np.zeros_like(self.theta)
        for code, part, factor in self.independent:
            alone[code, part] = (factor**2).sum(axis=0)
        n_groups = len(alone)
        beyond_mean = alone * (1 - 2 / n_groups) + alone.sum(axis=0) / n_groups**2
        return np.asarray(np.sqrt((self.values**2).sum(axis=0) + beyond_mean))

    def draw_noise(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return draws of the noise of theta, of Student's t with the degrees of freedom, B x G x V."""
        alone = np.zeros((n_draws, *self.theta.shape))
        for code, part, factor in self.independent:
            alone[:, code, part] = rng.standard_normal((n_draws, len(factor))) @ factor
        flat = self.values.reshape(len(self.values), -1)
        if len(flat) > MOST_UNITS:
            signs = rng.choice([-1.0, 1.0], len(flat))[:, None]
            heaps = np.zeros((MOST_UNITS, flat.shape[1]))
            np.add.at(heaps, rng.permutation(len(flat)) % MOST_UNITS, flat * signs)
            flat = heaps
        noise = (rng.standard_normal((n_draws, len(flat))) @ flat).reshape(n_draws, *self.theta.shape)
        noise += alone - alone.mean(axis=1, keepdims=True)
        if math.isfinite(self.degrees):
            noise *= np.sqrt(self.degrees / rng.chisquare(self.degrees, n_draws))[:, None, None]
        return noise


def compute_influence(
    sums: Floats,
    parts: Sequence[slice],
    design: Design,
    *,
    sizes: Floats | None = None,
) -> Influence:
    """Return the deviations of the groups and the influence values of the units.

    Parameters
    ----------
    sums
        K x V, the sum of each cell in each column: counts of values, or numbers.
    parts
        The columns of each attribute.
    sizes
        K x A, the weight of each cell in each attribute; by default the sum of its counts. With counts the noise is
        mixed with that of independent answers, by the weight of `PRIOR` clusters.
    """
    n_groups, n_values = design.n_groups, sums.shape[1]
    counts = sizes is None
    n = sum_parts(sums, parts) if sizes is None else sizes
    if design.standardised:
        factor = standardise_mix(n, design)
        sums, n = sums * repeat_parts(factor, parts), n * factor
    answering: Bools = np.asarray(n.any(axis=1))
    of_group = np.zeros((n_groups, n.shape[1]))
    total = np.zeros((n_groups, n_values))
    np.add.at(of_group, design.group, n)
    np.add.at(total, design.group, sums)
    levels = total / repeat_parts(np.maximum(of_group, TINY), parts)
    place = design.group * (int(design.centre.max()) + 1) + design.centre
    left, alone = _compute_residuals(sums, n, parts, place)
    left /= repeat_parts(np.maximum(of_group, TINY), parts)[design.group]
    _lend_noise(left, n, alone, design)
    unit = np.unique(design.unit, return_inverse=True)[1]
    own = np.zeros((int(unit.max()) + 1, n_groups, n_values))
    own[unit, design.group] = left
    # Units stand in the order of their values, so that their names do not change the draws.
    own = own[np.argsort(own.reshape(len(own), -1) @ np.cos(np.arange(own[0].size)), kind="stable")]
    size = n.sum(axis=1)
    # Kish's effective number of clusters of each group and centre (Survey Sampling 1965, section 11.7).
    effective = np.bincount(place, size) ** 2 / np.maximum(np.bincount(place, size**2), TINY)
    freedom = np.maximum(effective - 1, 1e-9)
    squares = np.bincount(place, (left**2).sum(axis=1)).astype(np.float64)
    degrees = pool_degrees(squares, freedom) if squares.any() else float(freedom.sum())
    if design.in_several.all():
        degrees /= n_groups
    if n_values > 2 * len(parts):
        degrees = max(degrees, _jackknife_degrees(own, design))
    shown = np.array([np.maximum(effective[np.unique(place[design.group == g])] - 1, 0).sum() for g in range(n_groups)])
    members = np.bincount(design.group[answering], minlength=n_groups)
    at_least_two = np.maximum(2.0, members)
    variances = (own**2).sum(axis=(0, 2)) * at_least_two
    independent, unsupposed = [], []
    if counts:
        weight = PRIOR / (PRIOR + np.maximum(shown, 0.0))
        model = _IndependentNoise(own, levels, of_group, parts, shown, at_least_two, weight)
        independent, unsupposed = model.list_factors(supposed=True), model.list_factors(supposed=False)
        own = own * np.sqrt(1 - weight)[None, :, None]
    return Influence(
        theta=levels - levels.mean(axis=0),
        values=own - own.mean(axis=1, keepdims=True),
        degrees=max(1.0, degrees),
        variances=variances,
        levels=levels,
        independent=independent,
        unsupposed=unsupposed,
    )


def _compute_residuals(sums: Floats, n: Floats, parts: Sequence[slice], place: Ints) -> tuple[Floats, Bools]:
    """Return what each cell has beyond the mean of its place, enlarged for its leverage, and whether it is alone."""
    of_place = np.zeros((int(place.max()) + 1, n.shape[1]))
    total = np.zeros((len(of_place), sums.shape[1]))
    np.add.at(of_place, place, n)
    np.add.at(total, place, sums)
    known = of_place[place]
    lever = np.divide(n, known, out=np.zeros_like(n), where=known > 0)
    wide = repeat_parts(of_place, parts)
    mean = np.divide(total, wide, out=np.zeros_like(total), where=wide > 0)
    alone = lever > 1 - 1e-9
    left = sums - repeat_parts(n, parts) * mean[place]
    return left / np.sqrt(repeat_parts(np.where(alone, 1.0, 1 - lever), parts)), alone


def _lend_noise(left: Floats, n: Floats, alone: Bools, design: Design) -> None:
    """Enlarge the noise of each group, in place, for its units that are alone in their block and show none."""
    square, lonely = n.sum(axis=1) ** 2, alone.any(axis=1)
    for code in range(design.n_groups):
        mine = design.group == code
        shows = float(square[mine & ~lonely].sum())
        if shows > 0:
            left[mine] *= math.sqrt(1 + float(square[mine & lonely].sum()) / shows)


def pool_degrees(squares: Floats, degrees: Floats) -> float:
    """Return the degrees of freedom of a sum of squared errors (Welch 1947, Satterthwaite 1946)."""
    share = squares / squares.sum()
    return 1 / float((share**2 / degrees).sum())


def _jackknife_degrees(own: Floats, design: Design) -> float:
    """Return the degrees of freedom of the summed standard errors of all values, by leaving out each unit.

    Errors of many values average out, so that their sum is known better than each. 0 for fewer than three units.
    """
    if design.in_several.any():
        sets = [(own - own.mean(axis=1, keepdims=True)).reshape(len(own), -1)]
    else:
        sets = [own[:, code][np.abs(own[:, code]).any(axis=1)] for code in range(design.n_groups)]
    sets = [values for values in sets if len(values)]
    if not sets or min(map(len, sets)) < 3:
        return 0.0
    totals = [float(np.sqrt((values**2).sum(axis=0)).sum()) for values in sets]
    without = [
        sum(totals)
        - total
        + np.sqrt(np.maximum((values**2).sum(axis=0) - values**2, 0) * len(values) / (len(values) - 1)).sum(axis=1)
        for total, values in zip(totals, sets, strict=True)
    ]
    sizes = np.concatenate(without)
    if not sizes.any():
        return 0.0
    spread = (len(sizes) - 1) / len(sizes) * float(((sizes - sizes.mean()) ** 2).sum()) / float(sizes.mean()) ** 2
    return 1 / (2 * spread) if spread > 1e-9 else 1e9


def _estimate_precision(levels: Floats, known: Floats) -> float:
    """Return how many answers of the mean over groups a group's noise borrows: many where groups do not differ.

    It is the precision of a Dirichlet spread of the groups around their mean, by moments (Weir & Cockerham 1984,
    doi:10.2307/2408641).
    """
    mean = known @ levels / known.sum()
    within = 1.0 - float(mean @ mean)
    between = float(known @ ((levels - mean) ** 2).sum(axis=1))
    scale = float(known.sum() - (known**2).sum() / known.sum())
    spread = (between - (len(levels) - 1) * within) / max(scale * within, 1e-12)
    return max(1.0, 1.0 / max(spread, 1e-6) - 1.0)


@dataclass(frozen=True, eq=False)
class _IndependentNoise:
    """The noise of independent answers times each group's design effect, by its `weight`."""

    own: Floats
    levels: Floats
    of_group: Floats
    parts: Sequence[slice]
    shown: Floats
    members: Floats
    weight: Floats

    def list_factors(self, *, supposed: bool) -> list[tuple[int, slice, Floats]]:
        """Return a factor for each group and attribute.

        Where all units of a group agree, its noise is unknown and not zero. If noise is `supposed`, each unit counts as
        one answer then; otherwise the design effect is that of the other groups.
        """
        levels, parts = self.levels, self.parts
        seen = np.stack([(self.own[:, :, part] ** 2).sum(axis=(0, 2)) for part in parts], axis=1)
        size = np.maximum(self.of_group, 1.0)
        independent = np.stack([(levels[:, part] * (1 - levels[:, part])).sum(axis=1) for part in parts], axis=1) / size
        varies = (self.shown[:, None] > 0) & (seen > 1e-18) & (independent > 0)
        ratio = seen / np.maximum(independent, TINY)
        lent = float(ratio[varies].mean()) if varies.any() else 1.0
        agrees = (self.shown[:, None] > 0) & (seen <= 1e-18)
        effect = np.where(varies, ratio, np.where(agrees & supposed, size / self.members[:, None], lent))
        found = []
        for attribute, part in enumerate(parts):
            worth = size[:, attribute] / np.maximum(effect[:, attribute], 1e-9)
            borrowed = _estimate_precision(levels[:, part], worth)
            mean = levels[:, part].mean(axis=0)
            for code in range(len(levels)):
                share = (worth[code] * levels[code, part] + borrowed * mean) / (worth[code] + borrowed)
                root = np.sqrt(share)
                unknown = seen[code, attribute] <= 1e-18 and (supposed or self.shown[code] <= 0)
                mixed_in = 1.0 if unknown else self.weight[code]
                factor = (np.diag(root) - root[:, None] * share) * math.sqrt(mixed_in / worth[code])
                found.append((code, part, factor))
        return found
