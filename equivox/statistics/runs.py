"""Comparison of two runs on the same samples: does one treat the groups more differently than the other?

The result is `core.metric.PairedValues`. `further` is how much further run a is from "no bias"; its interval and p
belong to it. Two runs share their units, so that noise which both have in common cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.core.metric import PairedValues
from equivox.core.notes import Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.design import Design, build_design, join_parts, repeat_parts, standardise_mix, sum_parts
from equivox.statistics.distance import Norm, bound_spreads, center, compute_ntvd, compute_range, shrink_adaptively
from equivox.statistics.groups import N_DRAWS, average_cells, compare_means, find_constant
from equivox.statistics.inputs import Bools, EncodedValues, Floats, Ints, LabelColumn, NumberColumn, ValueColumn
from equivox.statistics.linearization import TINY, compute_influence
from equivox.statistics.permutation import all_swaps, compute_least_p, p_value, sizes_and_order, swaps
from equivox.statistics.shares import compute_least_flip_p, scale_residuals, sign_flip_test

ROUNDED = 1e-9
"""Numbers that part by less than this share of their size are equal."""


def compare_runs(
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
) -> PairedValues:
    """Return the difference of two runs' mean nTVDs over several attributes of the same samples.

    Parameters
    ----------
    attributes_a, attributes_b
        The values of each attribute, in the same order of samples for both runs. A sample without a value from either
        run is left out for both.
    groups, clusters, strata, blocks, n_resamples, confidence, rng
        As in `compare_groups`.
    weights
        The weight of each attribute in the mean, above zero; 1 where none is given.
    min_count
        Values seen fewer times over both runs together are left out.

    Returns
    -------
    PairedValues
        In percent. `further` is the difference of the estimated nTVDs; zero means that both runs are equally far from
        parity, not that they give the same answers. `p` is the larger of two: that of exchanging the runs within units,
        and that of the interval. NaN with a reason when no attribute can be compared, and when a group has one unit.
        Runs that agree in every unit have p = 1 and no interval.

    Raises
    ------
    UsageError
        As `compare_groups`; also for different attributes, and for a weight that is not above zero.

    Notes
    -----
    The interval is that of the difference of the plain nTVDs around truths as they are estimated, the widest over three
    pairs of spreads: as estimated, one sparse beside one dense, and the reverse.

    Examples
    --------
    Run a moves "hobby" by 100, run b does not:

    >>> groups, speakers = ["f"] * 16 + ["m"] * 16, [row // 2 for row in range(32)]
    >>> apart, alike = [["x"]] * 16 + [["y"]] * 16, [["x"], ["y"]] * 16
    >>> found = compare_runs({"hobby": apart}, {"hobby": alike}, groups, clusters=speakers, min_count=1,
    ...                      rng=np.random.default_rng(1))
    >>> round(found.difference, 6), found.parts, found.p < 0.05
    (100.0, ('hobby',), True)
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    inputs.check_min_count(min_count)
    of_a, of_b = inputs.named_columns(attributes_a, "attributes_a"), inputs.named_columns(attributes_b, "attributes_b")
    if not of_a or set(of_a) != set(of_b):
        raise UsageError(
            f"`attributes_a` has {', '.join(of_a) or 'nothing'} and `attributes_b` {', '.join(of_b) or 'nothing'}: "
            "give the same attributes of both runs"
        )
    given = {} if weights is None else inputs.named_numbers(weights, "weights")
    for name, weight in given.items():
        if not weight > 0:
            raise UsageError(f"`weights` has {weight} for {name!r}: use a number above zero")
    design = build_design(groups, clusters, strata, blocks)
    counts: dict[str, tuple[Floats, Floats]] = {}
    used = np.zeros(len(design.group_of_row), dtype=bool)
    reasons: dict[str, Note] = {}
    for name in of_a:
        both, rows, reason = _count_both(name, of_a[name], of_b[name], design, min_count)
        used[rows] = True
        if reason is None:
            counts[name] = both
        else:
            reasons[name] = reason
    if not counts:
        reason = next(iter(reasons.values()))
        if len(reasons) > 1:
            reason = Note(NoteCode.NO_ATTRIBUTE, {"reasons": {name: one.plain for name, one in reasons.items()}})
        return PairedValues(undefined=reason)
    named = {"n_samples": int(used.sum()), "parts": tuple(counts)}
    a, b = (np.concatenate([both[run] for both in counts.values()], axis=1) for run in (0, 1))
    parts = join_parts([both[0].shape[1] for both in counts.values()])
    shares = np.array([given.get(name, 1.0) for name in counts])
    factor = repeat_parts(shares[None] * len(shares) / shares.sum(), parts)[0]
    return _compare_counts(a, b, parts, factor, design, n_resamples, confidence, rng, named)


def _count_both(
    name: str, values_a: ValueColumn, values_b: ValueColumn, design: Design, min_count: int
) -> tuple[tuple[Floats, Floats], Ints, Note | None]:
    """Return both runs' counts by cell over the rows that both answered, these rows, and why there is nothing."""
    n, read = len(design.group_of_row), []
    for run, column in (("a", values_a), ("b", values_b)):
        argument = f"attributes_{run}[{name!r}]"
        read.append(inputs.values(column, argument))
        inputs.same_length("groups", n, {argument: read[-1].n_rows})
    a, b = read
    codes = np.concatenate([a.codes, b.codes + len(a.names)])
    stacked = EncodedValues(np.concatenate([a.rows, b.rows + n]), codes, (*a.names, *b.names), 2 * n)
    both = inputs.values(stacked, name)
    keeps = np.bincount(both.codes, minlength=len(both.names)) >= min_count
    keep = keeps[both.codes]
    rows, codes = both.rows[keep], (np.cumsum(keeps) - 1)[both.codes[keep]]
    answered = np.zeros(2 * n, dtype=bool)
    answered[rows] = True
    shared = answered[:n] & answered[n:]
    kept = shared[rows % n]
    rows, codes = rows[kept], codes[kept]
    shape = (len(design.group), int(keeps.sum()))
    of_a, of_b = (
        cross_count(design.cell_of_row[rows[mine] % n], codes[mine], shape).astype(np.float64)
        for mine in (rows < n, rows >= n)
    )
    present: Ints = np.flatnonzero(shared).astype(np.int64)
    reason = design.find_gap(present)
    if reason is None and (len(same := find_constant(rows, codes)) or int(keeps.sum()) < 2):
        names = [both.names[code] for code in np.flatnonzero(keeps)[same]]
        reason = Note(NoteCode.ONE_VALUE, {"value": ", ".join(map(str, names))})
    return (of_a, of_b), present, reason


def _compare_counts(
    a: Floats,
    b: Floats,
    parts: list[slice],
    factor: Floats,
    design: Design,
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
    named: Mapping[str, Any],
) -> PairedValues:
    """Return the comparison of two runs' counts by cell (K x V); `factor` weighs the columns in the mean."""
    n_values = a.shape[1]
    both = [*parts, *[slice(part.start + n_values, part.stop + n_values) for part in parts]]
    influence = compute_influence(np.concatenate([a, b], axis=1), both, design)
    answering: Bools = np.asarray((a + b).any(axis=1))
    units = len(np.unique(design.unit[answering]))
    members = np.bincount(design.group[answering], minlength=design.n_groups)
    n_units = design.count_units(design.find_compared(np.flatnonzero(answering[design.cell_of_row])))
    p_exchange, difference = _exchange_runs(a, b, parts, factor, design, n_resamples, rng)
    thetas = influence.theta[:, :n_values] * factor, influence.theta[:, n_values:] * factor
    values = [float(compute_ntvd(theta, parts)) for theta in thetas]
    least = max(compute_least_flip_p(n_units, n_resamples), 2 / (1 + max(n_resamples, N_DRAWS)))
    known: dict[str, Any] = {
        **named, "value_a": values[0], "value_b": values[1], "difference": values[0] - values[1],
        "p_exchange": p_exchange, "p_least": least, "n_clusters": n_units,
    }  # fmt: skip
    if members.min() < 2:
        return PairedValues(**known, undefined=Note(NoteCode.NO_NOISE))
    errors = influence.errors[:, :n_values] * factor, influence.errors[:, n_values:] * factor
    seen = influence.seen.errors
    seen_errors = seen[:, :n_values] * factor, seen[:, n_values:] * factor
    shrunk = [shrink_adaptively(theta, error, parts) for theta, error in zip(thetas, seen_errors, strict=True)]
    sizes = [min(100.0, float(compute_ntvd(size, parts))) for size, _ in shrunk]
    known |= {"distance_a": sizes[0], "distance_b": sizes[1], "further": sizes[0] - sizes[1]}
    if np.array_equal(a, b):
        return PairedValues(**known | {"p": 1.0, "further": 0.0})
    # Errors of two distances do not average out as those of one do: units less groups bound the degrees of freedom.
    degrees = min(influence.degrees, max(1.0, float(units - design.n_groups)))

    def draw() -> tuple[Floats, Floats]:
        noise = draws.draw_noise(N_DRAWS, rng)
        return noise[:, :, :n_values] * factor, noise[:, :, n_values:] * factor

    draws = replace(influence, degrees=degrees)
    noise = [draw() for _ in range(math.ceil(max(n_resamples, N_DRAWS) / N_DRAWS))]
    if design.n_groups == n_values == 2:
        p, low, high = _compare_sides(thetas, noise, parts, confidence)
    else:
        spreads = [bound_spreads(*given, parts) for given in zip(thetas, errors, noise[0], strict=True)]
        centres = [centre if np.abs(centre).any() else theta for (_, centre), theta in zip(shrunk, thetas, strict=True)]
        directions = (centres, (spreads[0][0], spreads[1][1]), (spreads[0][1], spreads[1][0]))
        pairs = [
            tuple(_stretch(one, size, compute_ntvd, parts) for one, size in zip(pair, sizes, strict=True))
            for pair in directions
        ]
        p, low, high = _bracket(values, sizes, pairs, noise, compute_ntvd, parts, confidence)
    # No share lies beyond 0 and 1, which the normal noise does not know.
    low, high = max(-100.0, min(low, known["further"])), min(100.0, max(high, known["further"]))
    opposed = difference * known["further"] < 0
    return PairedValues(**known, p=1.0 if opposed else max(p, p_exchange), ci_low=low, ci_high=high)


def _stretch(direction: Floats, size: float, norm: Norm, parts: Sequence[slice]) -> Floats:
    """Return deviations in a direction with the distance `size`."""
    length = float(norm(direction, parts))
    return direction * (size / length) if length > 1e-9 else direction


def _bracket(
    values: Sequence[float],
    sizes: Sequence[float],
    pairs: Sequence[tuple[Floats, ...]],
    noise: Sequence[tuple[Floats, Floats]],
    norm: Norm,
    parts: Sequence[slice],
    confidence: float,
) -> tuple[float, float, float]:
    """Return p and interval of the difference of two distances, the widest over pairs of possible truths.

    Around each pair of truths it is drawn how far the difference of the plain distances is off. Its mean is taken off
    the observed difference, and the longer of its tails counts on both sides.
    """
    observed, true, tail = values[0] - values[1], sizes[0] - sizes[1], (1 - confidence) / 2
    p, centres, ends = 0.0, [], []
    for one, other in pairs:
        moved = [norm(one + a, parts) - norm(other + b, parts) for a, b in noise]
        off = np.concatenate(moved) - true
        centre, off = observed - float(off.mean()), off - off.mean()
        reach = max(float(np.quantile(off, 1 - tail)), -float(np.quantile(off, tail)))
        beyond = max(int((off >= abs(centre)).sum()), int((-off >= abs(centre)).sum()))
        p = max(p, min(1.0, 2 * (1 + beyond) / (1 + len(off))))
        centres.append(centre)
        ends += [centre - reach, centre + reach]
    same_side = min(centres) > 0 or max(centres) < 0
    return (p if same_side else 1.0), min(ends), max(ends)


def _compare_sides(
    thetas: tuple[Floats, Floats],
    noise: Sequence[tuple[Floats, Floats]],
    parts: Sequence[slice],
    confidence: float,
) -> tuple[float, float, float]:
    """Return p and interval of the difference of two distances that have a side: yes or no, between two groups.

    The distances |x| and |y| are equal where x − y or x + y is zero. Both are linear in the shares, so that noise adds
    nothing to them (intersection-union test: Berger 1982, doi:10.1080/00401706.1982.10487790).
    """
    unit = float(compute_ntvd(np.array([[1.0, -1.0], [-1.0, 1.0]]), parts))
    x, y = (unit * float(theta[0, 0]) for theta in thetas)
    moved = [unit * np.concatenate([draws[run][:, 0, 0] for draws in noise]) for run in (0, 1)]
    p, intervals = 0.0, []
    for side in (-1.0, 1.0):
        value, off = x + side * y, moved[0] + side * moved[1]
        reach = float(np.quantile(np.abs(off), confidence))
        p = max(p, p_value(np.abs(off), abs(value), exact=False))
        intervals.append((value - reach, value + reach))
    low, high = compute_further_interval(*intervals)
    return p, low, high


def _exchange_runs(
    a: Floats, b: Floats, parts: list[slice], factor: Floats, design: Design, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the p of exchanging the two runs within units, and the difference of their distances."""
    if design.standardised:
        # Both runs are weighed by the answers of both, so that their exchange is one of answers alone.
        mix = repeat_parts(standardise_mix(sum_parts(a + b, parts), design), parts)
        a, b = a * mix, b * mix
    answering: Bools = np.asarray((a + b).any(axis=1))
    a, b, group = a[answering], b[answering], design.group[answering]
    unit = np.unique(design.unit[answering], return_inverse=True)[1]
    n_units = int(unit.max()) + 1
    # Units are numbered by their answers, so that names do not change the draws.
    seen = np.zeros((n_units, a.shape[1]))
    np.add.at(seen, unit, a - b)
    unit = np.argsort(np.lexsort(seen.T[::-1]))[unit]

    def measure(counts: Floats) -> Floats:
        sizes = repeat_parts(np.maximum(sum_parts(counts, parts), TINY), parts)
        return compute_ntvd(center(counts / sizes) * factor, parts)

    def sum_groups(counts: Floats) -> Floats:
        return np.stack([counts[group == code].sum(axis=0) for code in range(design.n_groups)])

    of_a, of_b = sum_groups(a), sum_groups(b)
    difference = float(measure(of_a) - measure(of_b))
    null = []
    for pattern in swaps(n_units, n_resamples, design.n_groups * a.shape[1] + n_units, rng):
        moved = np.stack(
            [pattern[:, unit[group == code]] @ (b - a)[group == code] for code in range(design.n_groups)], axis=1
        )
        null.append(measure(of_a + moved) - measure(of_b - moved))
    exact = all_swaps(n_units, n_resamples)
    return p_value(np.abs(np.concatenate(null)), abs(difference), exact=exact), difference


def compare_run_means(
    values_a: NumberColumn,
    values_b: NumberColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> PairedValues:
    """Return how much further apart the groups' means are in one run than in another.

    Parameters
    ----------
    values_a, values_b
        One number per row of each run, in the same order. A row without a number of either is left out for both.
    groups, clusters, strata, blocks, n_resamples, confidence, rng
        As in `compare_means`.

    Returns
    -------
    PairedValues
        In the number's unit. Zero means equal distances between the groups' means, not equal answers. NaN with a
        reason when a group has no row that both runs answered, and when a group has one unit.

    Raises
    ------
    UsageError
        As `compare_means`.

    Notes
    -----
    Two groups: the distances are equal where the difference of a - b or that of a + b is zero. Both are tested, and p
    is the larger one (intersection-union test: Berger 1982, doi:10.1080/00401706.1982.10487790). More groups: as in
    `compare_runs`, with the range of the means as the distance.

    Examples
    --------
    Run a says 2 more to f, run b nothing:

    >>> found = compare_run_means([3, 5, 4, 1, 2, 3], [3, 4, 5, 4, 3, 5], list("fffmmm"), clusters=range(6),
    ...                           rng=np.random.default_rng(1))
    >>> [round(abs(number), 6) for number in (found.value_a, found.value_b, found.further)]
    [2.0, 0.0, 2.0]
    """
    a, b = inputs.numbers(values_a, "values_a"), inputs.numbers(values_b, "values_b")
    design = build_design(groups, clusters, strata, blocks)
    inputs.same_length("groups", len(design.group_of_row), {"values_a": len(a), "values_b": len(b)})
    rows = np.flatnonzero(~(np.isnan(a) | np.isnan(b)))
    if (reason := design.find_gap(rows)) is not None:
        return PairedValues(undefined=reason)
    used = design.find_compared(rows)
    (mean_a, known_a), (mean_b, known_b) = (average_cells(column, design, rows) for column in (a, b))
    known = np.concatenate([known_a, known_b], axis=1)
    means = np.concatenate([mean_a, mean_b], axis=1) * known
    both = [slice(0, 1), slice(1, 2)]
    influence = compute_influence(means, both, design, sizes=known)
    levels = influence.levels
    two = design.n_groups == 2
    gaps = (levels[0] - levels[1]) if two else np.ptp(levels, axis=0)
    value_a, value_b = (float(gap) for gap in gaps)
    named: dict[str, Any] = {
        "value_a": value_a, "value_b": value_b, "difference": value_a - value_b,
        "further": abs(value_a) - abs(value_b), "n_samples": len(used), "n_clusters": design.count_units(used),
    }  # fmt: skip
    members = np.bincount(design.group[known[:, 0] > 0], minlength=design.n_groups)
    if members.min() < 2:
        return PairedValues(**named, undefined=Note(NoteCode.NO_NOISE))
    if not two:
        n_draws = max(n_resamples, N_DRAWS)
        degrees = min(influence.degrees, float(members.min() - 1))
        drawn = replace(influence, degrees=degrees).draw_noise(n_draws, rng)
        noise = [(drawn[:, :, :1], drawn[:, :, 1:])]
        thetas = influence.theta[:, :1], influence.theta[:, 1:]
        half = np.where(np.arange(design.n_groups) < design.n_groups / 2, 0.5, -0.5)[:, None]
        added = [
            float(compute_range(one + e, both).mean() - np.ptp(one)) for one, e in zip(thetas, noise[0], strict=True)
        ]
        sizes = [max(0.0, float(np.ptp(one)) - more) for one, more in zip(thetas, added, strict=True)]
        pairs = [
            tuple(_stretch(direction, size, compute_range, both) for direction, size in zip(pair, sizes, strict=True))
            for pair in (thetas, (thetas[0], half), (half, thetas[1]))
        ]
        p, low, high = _bracket((value_a, value_b), sizes, pairs, noise, compute_range, both, confidence)
        return PairedValues(**named, p=p, ci_low=low, ci_high=high, p_least=2 / (1 + n_draws))
    missing = np.full(len(a), np.nan)
    tested = []
    for column in (a - b, a + b):
        numbers = missing.copy()
        numbers[rows] = column[rows]
        size = ROUNDED * max(float(np.abs(a[rows]).max()), float(np.abs(b[rows]).max()))
        if np.ptp(numbers[used]) <= size:
            tested.append((1.0, 0.0, 0.0))
            continue
        one = compare_means(
            numbers, groups, clusters=clusters, strata=strata, blocks=blocks, n_resamples=n_resamples,
            confidence=confidence, rng=rng,
        )  # fmt: skip
        tested.append((one.p, one.low, one.high))
    (p, *apart), (p_sum, *summed) = tested
    low, high = compute_further_interval((apart[0], apart[1]), (summed[0], summed[1]))
    cells, _ = sizes_and_order(design.group, design.stratum, 2)
    least = compute_least_p(cells[(cells > 0).all(axis=1)], n_resamples=n_resamples).p
    return PairedValues(**named, p=max(p, p_sum), ci_low=low, ci_high=high, p_least=least)


def compute_further_interval(apart: tuple[float, float], summed: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of |x| − |y| from those of x − y and x + y; NaN instead of one without width.

    >>> compute_further_interval((1.0, 3.0), (4.0, 6.0)), compute_further_interval((1.0, 3.0), (-1.0, 6.0))
    ((1.0, 3.0), (-1.0, 3.0))
    """
    # The difference of the distances is monotone in x − y and in x + y: its extremes are at the ends.
    if any(map(math.isnan, (*apart, *summed))):
        return math.nan, math.nan
    corners = [math.copysign(min(abs(u), abs(v)), u * v) for u in apart for v in summed]
    return _drop_empty(min(corners), max(corners))


def _drop_empty(low: float, high: float) -> tuple[float, float]:
    """Return an interval; NaN instead of one without width, which would claim to know units that were not seen."""
    return (low, high) if high > low else (math.nan, math.nan)


Statistic = Callable[[Floats], Floats]
"""Function of sums over units (… x K) that returns the score (…), NaN if it is undefined."""


def compare_totals(
    totals_a: ArrayLike,
    totals_b: ArrayLike,
    statistic: Statistic,
    *,
    target: float = math.nan,
    sizes: int | None = None,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> PairedValues:
    """Return the difference of two runs' scores that are functions of sums over units.

    Parameters
    ----------
    totals_a, totals_b
        C x K tables: what each unit adds to the K sums from which the score is computed, in the same order.
    statistic
        The score as a function of the sums.
    target
        The value of the score that means "no bias"; NaN if there is none.
    sizes
        Which of the K sums is the size of a unit, such as its answers; None where all units count alike.
    n_resamples, rng
        As in `sign_flip_test`.

    Returns
    -------
    PairedValues
        `further` is the difference of the distances from the target, `difference` that of the scores; interval and p
        belong to the first, or to the second without a target. NaN with a reason when a score is NaN with all units or
        without one of them. Runs that agree in every unit have p = 1 and no interval.

    Raises
    ------
    UsageError
        Tables that are empty, of different shapes, or with a number that is not finite.

    Notes
    -----
    The differences of the pseudo-values flip signs by whole units, which exchanges the two runs there (jackknife: Efron
    & Stein 1981, doi:10.1214/aos/1176345462). Two scores x and y, measured from the target, are equally far when x − y
    or x + y is zero: p is the larger one of these two tests (Berger 1982, doi:10.1080/00401706.1982.10487790).

    Examples
    --------
    Shares of hits in four contexts, 4 of 4 and 2 of 4; one half is even:

    >>> a, b = np.array([[1.0, 1]] * 4), np.array([[1.0, 1], [1, 1], [0, 1], [0, 1]])
    >>> found = compare_totals(a, b, lambda s: s[..., 0] / s[..., 1], target=0.5, rng=np.random.default_rng(1))
    >>> found.value_a, found.value_b, found.difference, found.p, found.further
    (1.0, 0.5, 0.5, 0.5, 0.5)
    """
    inputs.check_resamples(n_resamples)
    tables = [inputs.matrix(totals, name) for totals, name in ((totals_a, "totals_a"), (totals_b, "totals_b"))]
    for name, totals in zip(("totals_a", "totals_b"), tables, strict=True):
        if totals.shape != tables[0].shape or not totals.size:
            raise UsageError(f"`{name}` has shape {totals.shape}: give units x sums, alike for both runs")
        if not np.isfinite(totals).all():
            raise UsageError(f"`{name}` holds a number that is not finite: leave out what is missing")
    values = [float(_evaluate(statistic, totals.sum(axis=0))) for totals in tables]
    each = [_compute_relative_sizes(totals, sizes) for totals in tables]
    weights = (each[0] + each[1]) / 2
    pseudo = [
        compute_pseudo_values(totals, statistic, by) + (weights - by) * value
        for totals, by, value in zip(tables, each, values, strict=True)
    ]
    n_units = len(weights)
    if n_units < 2 or any(map(math.isnan, values)) or not np.isfinite(pseudo).all():
        code = NoteCode.NO_NOISE if n_units < 2 or not any(map(math.isnan, values)) else NoteCode.NOTHING_USABLE
        return PairedValues(n_clusters=n_units, undefined=Note(code))
    x, y = (value - target for value in values)
    size = float(np.abs(pseudo).max())
    interval, p = _test_pseudo_values(pseudo[0] - pseudo[1], values[0] - values[1], weights, size, n_resamples, rng)
    further = math.nan
    if not math.isnan(target):
        shifted = pseudo[0] + pseudo[1] - 2 * target * weights
        summed, p_sum = _test_pseudo_values(shifted, x + y, weights, size, n_resamples, rng)
        further, p, interval = abs(x) - abs(y), max(p, p_sum), compute_further_interval(interval, summed)
    low, high = _drop_empty(*interval)
    return PairedValues(
        value_a=values[0], value_b=values[1], difference=values[0] - values[1], further=further, p=p, ci_low=low,
        ci_high=high, n_clusters=n_units, p_least=compute_least_flip_p(n_units, n_resamples),
    )  # fmt: skip


def _compute_relative_sizes(totals: Floats, sizes: int | None) -> Floats:
    """Return the size of each unit over the mean size."""
    if sizes is None:
        return np.ones(len(totals))
    if not 0 <= sizes < totals.shape[1] or (totals[:, sizes] < 0).any():
        raise UsageError(f"`sizes` is {sizes}: give the place, from 0, of a sum that is 0 or more in every unit")
    return _evaluate(lambda own: own / own.mean(), totals[:, sizes])


def compute_pseudo_values(totals: Floats, statistic: Statistic, weights: Floats | float = 1.0) -> Floats:
    """Return each unit's pseudo-value, n·θ − (n − k)·θ₍₋c₎; NaN if the other units give no score.

    `weights`, the k, are how many units each counts for. For a mean of units it is the unit's own value:

    >>> compute_pseudo_values(np.array([[1.0, 1], [5, 1]]), lambda s: s[..., 0] / s[..., 1]).tolist()
    [1.0, 5.0]
    """
    whole, n = totals.sum(axis=0), len(totals)
    return np.asarray(n * _evaluate(statistic, whole) - (n - weights) * _evaluate(statistic, whole - totals))


def _evaluate(statistic: Statistic, sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(statistic(sums), dtype=np.float64)


def _test_pseudo_values(
    pseudo: Floats, value: float, weights: Floats, size: float, n_resamples: int, rng: np.random.Generator
) -> tuple[tuple[float, float], float]:
    """Return Student's 95 % interval around `value`, and the sign-flip p, of pseudo-values with that mean."""
    from scipy.special import stdtrit

    # Differences as small as rounding errors of numbers of this size count as zero.
    pseudo = np.where(np.abs(pseudo) > ROUNDED * size, pseudo, 0.0)
    tested = sign_flip_test(pseudo, clusters=None, n_resamples=n_resamples, rng=rng)
    stretch, degrees = scale_residuals(weights)
    left = stretch * (pseudo - weights * pseudo.mean())
    half = float(stdtrit(degrees, 0.975)) * math.sqrt(float((left**2).sum()) / (len(pseudo) - 1) / len(pseudo))
    return (value - half, value + half), tested.p if tested.undefined is None else 1.0
