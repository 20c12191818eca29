"""Comparison of two models on the same samples: is one further from parity than the other?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.distance import estimate_shift
from equivox.statistics.encode import Design, encode_design
from equivox.statistics.inputs import Floats, LabelColumn, ValueColumn
from equivox.statistics.intervals import TINY, spreads
from equivox.statistics.noise import N_NOISE
from equivox.statistics.permutation import all_swaps, p_value, swaps
from equivox.statistics.totals import further_interval
from equivox.statistics.two_models import ContrastNoise, Counted, Singles, TwoTables, counted_for_both

_KNOTS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0])
"""Distances at which it is computed what noise adds, in lengths of the noise; it hardly changes beyond them."""


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
        the interval: it is conservative as the interval is, and NaN when the interval is, but 1 for one model twice.
    p_both
        The larger of `p` and `p_distance`, or 1 if they point to opposite sides: use this p to decide whether one model
        is further from parity.
    estimate, estimate_a, estimate_b
        The estimated difference of the population nTVDs, and each model's own estimate (`equivox.statistics.distance`),
        not clipped, so that noise cancels in their difference, which is 100 at most. `p_distance` refers to its side.
        NaN when `p_distance` is.
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
    n_resamples, confidence, rng
        As in `equivox.statistics`. What is drawn are swaps of the two models in clusters.

    Returns
    -------
    ShiftComparison
        `difference` is in percent. Zero means that both models lie equally far from parity on average, not that they
        give the same answers. An attribute with fewer than two groups or values left, or with an empty group, is left
        out with its reason; NaN when that is so for all of them. Only the interval, the estimates and `p_distance` are
        NaN when in any attribute a group has answers from a single cluster, or when the noise has one degree of freedom
        (the same two units in all groups, or two clusters in the only group that varies); only the interval, when both
        models answer alike in every cluster.

    Raises
    ------
    UsageError
        As `distribution_shift`; also when `clusters` is None, when the models have different attributes or none, or
        when a weight is not above zero.

    Notes
    -----
    The swap test's null is that the models are exchangeable within a cluster, which is stronger than equal nTVDs:
    models with equal shifts that use different words are not exchangeable, and the test rejects them more often than
    its level. `p_distance` inverts the interval. The interval takes the upward bias of each model at its largest on one
    side and at its smallest on the other, and the longer tail of the noise to both sides (levels: validity/tables.md).
    One attribute of two values between two groups has a side: there it is the interval of `compare_totals`.

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
        raise UsageError(
            f"`attributes_a` has {', '.join(of_a) or 'nothing'} and `attributes_b` "
            f"{', '.join(of_b) or 'nothing'}: give the same attributes of both models"
        )
    weight_of = {} if weights is None else inputs.named_numbers(weights, "weights")
    for name, weight in weight_of.items():
        if not weight > 0:
            raise UsageError(f"`weights` has {weight} for {name!r}: use a number above zero")
    design = encode_design(groups, clusters, strata, blocks)
    if not design.clusters:
        raise UsageError("`clusters` is None: name the unit that carries the group")
    used = np.zeros(len(design.group_of_row), dtype=bool)
    counted: dict[str, Counted] = {}
    left_out = {}
    for name in of_a:
        own = counted_for_both(name, of_a[name], of_b[name], design, min_count)
        used |= own.used
        reason = _undefined(design, own)
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
    tables = TwoTables(list(counted.values()), given / given.sum(), design)
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


def _undefined(design: Design, counted: Counted) -> str | None:
    if len(design.groups) < 2:
        return f"only one group, {design.groups[0]!r}: a difference needs two"
    if counted.counts.shape[2] < 2:
        return "fewer than two values are kept: constant answers show no difference and no fairness"
    rows = np.flatnonzero(counted.used)
    return design.lacks(rows, "no sample that both models answered", "answers of both models in all groups")


def _swapped(tables: TwoTables, n_resamples: int, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Return the difference of nTVD with the two models exchanged in some clusters, B."""
    a, b = tables.counts
    base_a, base_b = tables.by_group()
    of = [tables.group == code for code in range(tables.n_groups)]
    parts = []
    for pattern in swaps(tables.n_units, n_resamples, tables.n_groups * max(a.shape), rng):
        moved = np.stack([pattern[:, tables.unit[mine]] @ (b - a)[mine] for mine in of], axis=1)
        parts.append(tables.ntvd(base_a + moved) - tables.ntvd(base_b - moved))
    return np.concatenate(parts), all_swaps(tables.n_units, n_resamples)


def _distance(tables: TwoTables, n_draws: int, confidence: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return estimates, interval and p-value of the difference of the population nTVDs, by the names of the result.

    Noise adds to each nTVD by an amount between that of the densest and that of the sparsest spread (`_Added`). The
    end of the interval that is nearer to zero, and with it p, is that of the observed difference less the difference
    of these amounts. An end beyond zero is where a true difference, with what noise then adds to both models, would
    seldom be seen as the observed one: a model that is further from parity by many small steps seems to be so by less.
    """
    if tables.fewest_clusters() < 2:
        return {}
    n_values = tables.counts.shape[2]
    model = tables.noise(rng)
    if model.joint_degrees <= 1:
        return {}  # Such noise, as of two units in every group, has no mean, and the interval rests on what noise adds.
    drawn = ContrastNoise(tables, model, rng).draw
    of = [slice(0, n_values), slice(n_values, 2 * n_values)]
    deviations = tables.deviations(tables.by_group())
    errors = np.maximum(tables.contrasts(model.errors()), TINY)
    seen = tables.contrasts(model.errors(seen=True))
    estimates = [_estimate(tables, own, seen[:, part]) for own, part in zip(deviations, of, strict=True)]
    named = dict(zip(("estimate_a", "estimate_b"), estimates, strict=True))
    named["estimate"] = float(np.clip(estimates[0] - estimates[1], -100.0, 100.0))
    if np.array_equal(*tables.counts):
        return named | {"p_distance": 1.0}  # One model twice: no cluster shows how far two may lie apart in others.
    if tables.n_groups == n_values == 2:
        return named | _by_sides(tables, deviations, drawn, max(n_draws, N_NOISE), confidence, model.joint_degrees)
    noise = drawn(N_NOISE)
    whole = noise.astype(np.float64)
    pairs = [own.stop - own.start == 2 for own in tables.slices]
    added = []
    starts = deviations.copy()
    for which, part in enumerate(of):
        both = spreads(deviations[which], whole[:, :, part], errors[:, part], tables.slices)
        added.append(_Added(tables, both, noise[:, :, part]))
        for own, pair in zip(tables.slices, pairs, strict=True):
            if pair:
                # Around a deviation that chance made small, the noise of a distance seems small as well. With more
                # values that averages out.
                starts[which][:, own] = both[1][:, own]
    changes: list[Floats] = []
    left = max(n_draws, N_NOISE)
    while left > 0:
        moved = (noise if not changes else drawn(N_NOISE))[:left]
        longer = [tables.lengths(starts[which], moved[:, :, part]) for which, part in enumerate(of)]
        changes.append(longer[0] - longer[1])
        left -= len(moved)
    lengths = [tables.length(own) for own in deviations]
    difference, total = lengths[0] - lengths[1], sum(estimates)
    # Two values deviate in one way in two groups, and in much the same way in several: equal distances then gain alike.
    bias = [own.at(total / 2) if all(pairs) else own.to(length) for own, length in zip(added, lengths, strict=True)]
    least, most = difference - (bias[0][1] - bias[1][0]), difference - (bias[0][0] - bias[1][1])
    p, low, high = bracketed(np.concatenate(changes), least, most, confidence, degrees=model.joint_degrees)
    seen_as = partial(_seen_as, added, total)
    if low < 0.0:
        low = min(low, _crossing(lambda true: seen_as(true)[1], difference + low - least))
    if high > 0.0:
        high = max(high, _crossing(lambda true: seen_as(true)[0], difference + high - most))
    return named | {"p_distance": p, "ci_low": max(-100.0, low), "ci_high": min(100.0, high)}


def _by_sides(
    tables: TwoTables,
    deviations: Floats,
    drawn: Callable[[int], Singles],
    n_draws: int,
    confidence: float,
    degrees: float,
) -> dict[str, float]:
    """Return interval and p of the difference of two distances that have a side: yes or no, between two groups.

    They are equal where x − y or x + y is zero (`compare_totals`). Around what is seen alone, noise that both models
    share would seem to cancel where it has brought one of two models of opposite sides beyond zero.
    """
    unit = tables.length(np.array([[1.0, -1.0]]))
    x, y = unit * deviations[:, 0, 0]
    noise = unit * drawn(n_draws + n_draws % 2)[:n_draws, 0, ::2].astype(np.float64)
    (p, *apart), (p_sum, *summed) = (
        bracketed(noise @ [1.0, way], value, value, confidence, degrees=degrees)
        for way, value in ((-1.0, float(x - y)), (1.0, float(x + y)))
    )
    low, high = further_interval((apart[0], apart[1]), (summed[0], summed[1]))
    if math.isnan(low):  # One model twice: what it does elsewhere, the other does too.
        low = high = float(abs(x) - abs(y))
    return {"p_distance": max(p, p_sum), "ci_low": max(-100.0, low), "ci_high": min(100.0, high)}


class _Added:
    """The least and the most that noise adds to a distance on average, over the spreads that the truth may have.

    Where no spread has a length, the truth may be spread as the first draw of noise is.
    """

    def __init__(self, tables: TwoTables, shapes: Sequence[Floats], noise: Singles) -> None:
        self._knots = float(tables.lengths(np.zeros_like(shapes[0]), noise).mean()) * _KNOTS
        known = [shape for shape in shapes if tables.length(shape) > 0] or [noise[0].astype(np.float64)]
        units = [shape / max(tables.length(shape), TINY) for shape in known]
        longer = [[float(tables.lengths(t * unit, noise).mean()) for t in self._knots] for unit in units]
        self._added = [np.array(own) - self._knots for own in longer]

    def at(self, true: float) -> tuple[float, float]:
        """Return both for a true distance."""
        each = [float(np.interp(true, self._knots, own)) for own in self._added]
        return min(each), max(each)

    def to(self, observed: float) -> tuple[float, float]:
        """Return both for the true distance that noise has made the observed one; at most all of it is noise."""
        each = [min(observed, float(np.interp(observed, self._knots + own, own))) for own in self._added]
        return max(0.0, min(each)), max(0.0, *each)


def _seen_as(added: Sequence[_Added], total: float, true: float) -> tuple[float, float]:
    """Return the least and the most that a true difference would be seen as, on average, of distances with a sum."""
    of_b = max(0.0, (total - true) / 2, -true)
    (least_a, most_a), (least_b, most_b) = added[0].at(of_b + true), added[1].at(of_b)
    return true + least_a - most_b, true + most_a - least_b


def _crossing(rising: Callable[[float], float], level: float) -> float:
    """Return where a rising function of a difference reaches `level`, from -100 to 100."""
    from scipy.optimize import brentq

    if rising(-100.0) >= level:
        return -100.0
    if rising(100.0) <= level:
        return 100.0
    return float(brentq(lambda true: rising(true) - level, -100.0, 100.0, xtol=1e-3))


def bracketed(
    change: Floats, least: float, most: float, confidence: float, *, degrees: float = math.inf, tie: float = TINY
) -> tuple[float, float, float]:
    """Return p and interval of a difference between `least` and `most`, from draws of how noise changes it.

    p is twice the tail of the change beyond the difference so bracketed; what is nearer to it than `tie` is equal. The
    draws are of Student's t with so many `degrees` of freedom; with one it has no mean, and a median takes its place.
    Noise that brings what is seen of one model together may pull its true distance apart, so that the change around the
    truth has the longer tail where that around what is seen has the shorter one: the longer one counts on both sides.
    """
    change = change - (change.mean() if degrees >= 2 else np.median(change))
    further = max(min((own >= least - tie).sum(), (own <= most + tie).sum()) for own in (change, -change))
    tail = (1 - confidence) / 2
    reach = max(float(np.quantile(own, 1 - tail)) for own in (change, -change))
    return min(1.0, 2 * (1 + int(further)) / (1 + len(change))), least - reach, most + reach


def _estimate(tables: TwoTables, contrasts: Floats, errors: Floats) -> float:
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
