"""Comparison of groups: the distance of their answers, or the difference of their means, with interval and p."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.core.notes import LEVEL, Note, NoteCode, describe_design
from equivox.statistics import inputs
from equivox.statistics.design import Design, build_design, join_parts, standardise_mix
from equivox.statistics.distance import (
    attainable_shift,
    bound_spreads,
    compute_ntvd,
    compute_range,
    estimate_ntvd,
    invert_interval,
    ntvd,
)
from equivox.statistics.inputs import Bools, EncodedValues, Floats, Ints, LabelColumn, NumberColumn, ValueColumn
from equivox.statistics.linearization import Influence, compute_influence, pool_degrees
from equivox.statistics.permutation import NO_CHOICE, LeastP, are_unlike, p_value, permute_groups

N_DRAWS = 1_000
"""Draws of noise for an interval; its ends differ by about 0.1 standard errors between seeds."""

FEW_DRAWS = 20
"""Where fewer draws of noise than this are as far out as what is seen, more are drawn to resolve a small p."""

MOST_CELLS = 2 * 10**7
"""The most counts, units times values of items, for a test within items; so many take half a gigabyte."""

N_WITHIN = 999
"""Permutations for a test within items, at most."""


@dataclass(frozen=True, kw_only=True)
class Shift:
    """The distance between the groups' answers to one attribute, or its mean over several.

    Distances are nTVDs in percent. Numbers are NaN when `undefined` gives a reason. `ntvd` and `by_group` are of the
    sample as it is; all others hold strata and blocks equal.

    Attributes
    ----------
    ntvd
        The nTVD of the sample, as published. Zero means that all groups gave the same answers.
    estimate
        The estimated nTVD of the population, without what noise adds. Zero means no more than noise.
    low, high
        Confidence interval of the population's nTVD. The lower end is zero where, and only where, p is above
        1 - confidence.
    p
        The p of permutations of the groups over whole units; where groups are unlike in numbers of units or in noise,
        not smaller than that of the modelled noise. Never 0.
    p_items
        The p of differences within single items or blocks, whose sides may cancel; NaN if there are none.
    least
        The smallest p that the permutations allow.
    attainable_max
        The largest nTVD that this number of values and groups can reach.
    noise
        The mean nTVD that noise alone gives.
    n_responses, n_used, n_units
        The responses, those with a value that is compared, and the units that are compared.
    removed_share, removed_values
        The share of the values that are too rare to be compared, and their counts.
    groups, values, by_group
        The sorted names of groups and values, and the shares of the values in each group, G x V; empty for a mean.
    attributes
        The shifts that a mean is over, and those left out of it, by name; empty for one attribute.
    """

    ntvd: float = math.nan
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_items: float = math.nan
    least: LeastP = NO_CHOICE
    attainable_max: float = math.nan
    noise: float = math.nan
    n_responses: int
    n_used: int = 0
    n_units: int = 0
    removed_share: float = math.nan
    removed_values: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[str, ...]
    values: tuple[str, ...] = ()
    by_group: Floats = field(default_factory=lambda: np.empty((0, 0)))
    attributes: Mapping[str, Shift] = field(default_factory=dict)
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()

    @property
    def defined(self) -> tuple[str, ...]:
        """The names of the attributes in the mean."""
        return tuple(name for name, shift in self.attributes.items() if shift.undefined is None)

    @property
    def evidence(self) -> dict[str, Any]:
        """The fields of a score that the shift determines."""
        return {
            "value": self.ntvd,
            "estimate": self.estimate,
            "attainable_max": self.attainable_max,
            "ci": (self.low, self.high),
            "p": self.p,
            "n_units": self.n_units,
            "notes": (describe_design(null_mean=self.noise), *_describe_p(self), *self.notes),
        }


def _describe_p(found: Shift | MeanDifference) -> list[Note]:
    """Return notes on a p that cannot be small, and on differences whose sides cancel."""
    notes = [] if found.least.too_few is None else [found.least.too_few]
    if found.p_items <= LEVEL and found.p_items < found.p:
        notes.append(Note(NoteCode.WITHIN_ITEMS, {"p": found.p_items}))
    return notes


def compare_groups(
    values: ValueColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn | None,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
    min_count: int = 10,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Shift:
    """Return the nTVD between the groups' answers with its estimate, interval and p.

    Parameters
    ----------
    values
        The values of each response: one value, or a list of several. A response without a value (None, NaN or an empty
        list) is left out and counted.
    groups
        The group of each response.
    clusters
        The unit of each response: a speaker, who has one group, or an application that is sent with every name. Some
        units may be in one group and others in several. None makes each response a unit.
    strata
        The stratum of each response. Groups are compared within strata if each unit is in one; otherwise a note says
        where groups hold strata in unequal numbers.
    blocks
        The block of each unit (the gender of a speaker, when accents are compared). Groups are compared and units
        permuted within blocks.
    items
        The item of each response (its sentence), for the test of differences whose sides cancel.
    min_count
        Values seen fewer times over all responses are left out and counted (τ in the paper).
    n_resamples
        Permutations drawn. All of them are counted where there are no more.
    confidence
        Coverage of the interval, between 0 and 1.
    rng
        The only source of randomness. The order of the responses and the names of units do not change the draws.

    Returns
    -------
    Shift
        NaN with a reason when there are fewer than two groups, when a group has no usable response, when no stratum
        has all groups, or when fewer than two values are left: constant answers are no evidence of fairness.

    Raises
    ------
    UsageError
        Columns that are empty or of unequal lengths, a missing label, units in several blocks, or an option out of
        range.

    Notes
    -----
    nTVD: arXiv 2604.17248, equations 2-5. p = (1 + b)/(1 + B): Phipson & Smyth 2010, doi:10.2202/1544-6115.1585.
    validity/worlds.py measures the level, the power and the coverage.

    Examples
    --------
    Six speakers of two groups. Group b names "chess" in 2 of 6 answers, group a in 5 of 6:

    >>> groups = ["a"] * 6 + ["b"] * 6
    >>> speakers = ["s1", "s1", "s2", "s2", "s3", "s3", "s4", "s4", "s5", "s5", "s6", "s6"]
    >>> answers = ["chess", "chess", "chess", "chess", "chess", "yoga"]
    >>> answers += ["chess", "yoga", "yoga", "yoga", "chess", "yoga"]
    >>> found = compare_groups(answers, groups, clusters=speakers, min_count=1, rng=np.random.default_rng(1))
    >>> found.ntvd, found.least.n_permutations, found.p
    (50.0, 20, 0.3)
    """
    return compare_attributes(
        {"values": values}, groups, clusters=clusters, strata=strata, blocks=blocks, items=items, min_count=min_count,
        n_resamples=n_resamples, confidence=confidence, rng=rng,
    ).attributes["values"]  # fmt: skip


def compare_attributes(
    attributes: Mapping[str, ValueColumn],
    groups: LabelColumn,
    *,
    clusters: LabelColumn | None,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
    min_count: int = 10,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Shift:
    """Return the mean nTVD over several attributes of the same responses, and the nTVD of each.

    The attributes of a response are tested and drawn together, so that their dependence is allowed for. An attribute
    that is undefined keeps its reason and is left out of the mean.

    Parameters
    ----------
    attributes
        The values of each attribute, all in the same order of responses: a mapping from name to column, a pandas
        DataFrame or a pyarrow Table.
    groups, clusters, strata, blocks, items, min_count, n_resamples, confidence, rng
        As in `compare_groups`.

    Returns
    -------
    Shift
        `attributes` has the shift of each. NaN with a reason when no attribute is defined.

    Raises
    ------
    UsageError
        As `compare_groups`; also when there is no attribute.

    Examples
    --------
    >>> groups, speakers = ["a", "a", "b", "b"], ["s1", "s2", "s3", "s4"]
    >>> task = {"hobby": [["chess"], ["chess"], ["yoga"], ["yoga"]], "budget": [["low"]] * 4}
    >>> found = compare_attributes(task, groups, clusters=speakers, min_count=1, rng=np.random.default_rng(1))
    >>> found.ntvd, found.defined, round(found.p, 3), str(found.attributes["budget"].undefined)
    (100.0, ('hobby',), 0.333, 'one_value: value low')
    """
    inputs.check_min_count(min_count)
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    columns = inputs.named_columns(attributes, "attributes")
    if not columns:
        raise UsageError("`attributes` is empty: name at least one attribute with its values")
    design = build_design(groups, clusters, strata, blocks, items)
    engine = _Engine(design, n_resamples, confidence, rng)
    shifts, counted = {}, {}
    for name, column in columns.items():
        argument = "values" if list(columns) == ["values"] else f"attributes[{name!r}]"
        values = inputs.values(column, argument)
        inputs.same_length("groups", len(design.group_of_row), {argument: values.n_rows})
        table = CountedValues.of(values, design, min_count)
        shift = _describe_values(table, design, min_count)
        if shift.undefined is None:
            counted[name] = table
            shift = replace(shift, **engine.summarise([table]))
        shifts[name] = shift
    removed = [shift.removed_share for shift in shifts.values() if not math.isnan(shift.removed_share)]
    mean = Shift(
        groups=design.groups,
        n_responses=len(design.group_of_row),
        removed_share=max(removed, default=math.nan),
        attributes=shifts,
    )
    if not counted:
        reasons = {name: shift.undefined.plain for name, shift in shifts.items() if shift.undefined}
        return replace(mean, undefined=Note(NoteCode.NO_ATTRIBUTE, {"reasons": reasons}), notes=design.notes)
    if len(counted) == 1:  # The mean over one attribute has the attribute's numbers.
        (only,) = (shifts[name] for name in counted)
        names = ("ntvd", "attainable_max", *engine.summarised)
        return replace(mean, **{name: getattr(only, name) for name in names})
    defined = [shifts[name] for name in counted]
    return replace(
        mean,
        ntvd=float(np.mean([shift.ntvd for shift in defined])),
        attainable_max=float(np.mean([shift.attainable_max for shift in defined])),
        **engine.summarise(list(counted.values())),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedValues:
    """The values of one attribute that are compared, as (row, code) pairs; `every` has the rare ones as well."""

    names: tuple[str, ...]
    rows: Ints
    codes: Ints
    removed: Mapping[str, int]
    every: EncodedValues

    @classmethod
    def of(cls, values: EncodedValues, design: Design, min_count: int) -> CountedValues:
        """Return the values that occur at least `min_count` times over all rows."""
        seen = np.bincount(values.codes, minlength=len(values.names))
        keeps = seen >= min_count
        keep = keeps[values.codes]
        return cls(
            names=tuple(values.names[code] for code in np.flatnonzero(keeps).tolist()),
            rows=values.rows[keep],
            codes=(np.cumsum(keeps) - 1)[values.codes[keep]],
            removed={values.names[code]: int(seen[code]) for code in np.flatnonzero(~keeps).tolist() if seen[code]},
            every=values,
        )

    def count(self, code_of_row: Ints, n: int) -> Ints:
        """Return the count of each value in the rows of each of `n` codes, n x V."""
        return cross_count(code_of_row[self.rows], self.codes, (n, len(self.names)))


def _describe_values(table: CountedValues, design: Design, min_count: int) -> Shift:
    """Return the shift of one attribute as published: the shares of the sample, or the reason why there is none."""
    of_group = table.count(design.group_of_row, design.n_groups)
    n_total = len(table.every.codes)
    shift = Shift(
        groups=design.groups,
        values=table.names,
        by_group=np.full(of_group.shape, math.nan),
        n_responses=len(design.group_of_row),
        n_used=len(np.unique(table.rows)),
        n_units=design.count_units(design.find_compared(table.rows)),
        removed_values=table.removed,
        removed_share=sum(table.removed.values()) / n_total if n_total else math.nan,
        undefined=_find_undefined(table, design, min_count),
        notes=design.notes,
    )
    if shift.undefined is not None:
        return shift
    shares = of_group / of_group.sum(axis=1, keepdims=True)
    return replace(
        shift,
        ntvd=ntvd(shares),
        by_group=shares,
        attainable_max=attainable_shift(len(table.names), design.n_groups),
    )


def _find_undefined(table: CountedValues, design: Design, min_count: int) -> Note | None:
    """Return why no distance can be computed; None if it can."""
    if design.n_groups < 2:
        return design.find_gap(table.rows)
    if not len(table.every.codes):
        return Note(NoteCode.NOTHING_USABLE)
    if not table.names:
        return Note(NoteCode.RARE_ONLY, {"min_count": min_count})
    if len(table.names) == 1 and table.removed:
        return Note(NoteCode.ONE_KEPT, {"value": table.names[0], "min_count": min_count})
    same = find_constant(table.rows, table.codes)
    if len(same):
        return Note(NoteCode.ONE_VALUE, {"value": ", ".join(table.names[code] for code in same)})
    return design.find_gap(table.rows)


def find_constant(rows: Ints, codes: Ints) -> Ints:
    """Return the values that every row with a value has, if none has any other; empty where rows differ."""
    sizes = np.unique(rows, return_counts=True)[1]
    if not len(sizes) or np.ptp(sizes):
        return codes[:0]
    of_row = codes[np.lexsort((codes, rows))].reshape(len(sizes), -1)
    return np.unique(codes) if (of_row == of_row[0]).all() else codes[:0]


@dataclass(frozen=True)
class _Engine:
    """Computes the numbers of one or several attributes of one design."""

    design: Design
    n_resamples: int
    confidence: float
    rng: np.random.Generator

    summarised = ("estimate", "low", "high", "p", "p_items", "least", "noise", "n_used", "n_units", "notes")

    def summarise(self, tables: list[CountedValues]) -> dict[str, Any]:
        """Return the numbers of the mean over attributes that depend on noise, by the names of `Shift`."""
        design, rng = self.design, self.rng
        parts = join_parts([len(table.names) for table in tables])
        counts = np.concatenate(
            [table.count(design.cell_of_row, len(design.group)) for table in tables], axis=1
        ).astype(np.float64)
        influence = compute_influence(counts, parts, design)
        noise = influence.draw_noise(N_DRAWS, rng)
        observed, alone = float(compute_ntvd(influence.theta, parts)), compute_ntvd(noise, parts)
        permuted = permute_groups(counts, parts, design, self.n_resamples, rng)
        members = np.bincount(design.group[counts.any(axis=1)], minlength=design.n_groups)
        p = permuted.p
        if are_unlike(members, influence.variances):
            p = max(p, self._test_noise(influence.seen, parts, observed, p))
        largest = float(np.mean([attainable_shift(len(table.names), design.n_groups) for table in tables]))
        low, high = self._invert(influence, noise, parts, largest)
        if p > 1 - self.confidence:
            low = 0.0
        elif low == 0.0:
            # With few units the test can find a gap that the interval cannot. Supposed noise must not undo that.
            seen_noise = influence.seen.draw_noise(N_DRAWS, rng)
            least = observed - float(np.quantile(compute_ntvd(seen_noise, parts), self.confidence))
            low = max(1e-6, min(largest, least), self._invert(influence.seen, seen_noise, parts, largest)[0])
        rows = np.unique(np.concatenate([table.rows for table in tables]))
        estimate = min(estimate_ntvd(influence.theta, influence.seen.errors, parts), largest)
        return {
            "estimate": estimate,
            "low": min(low, estimate),
            "high": max(high, estimate),
            "p": p,
            "p_items": self._test_within_items(tables),
            "least": permuted.least,
            "noise": float(alone.mean()),
            "n_used": len(rows),
            "n_units": design.count_units(design.find_compared(rows)),
            "notes": (*design.notes, *design.describe_left_out(rows), *_describe_lone_units(design, counts)),
        }

    def _invert(self, influence: Influence, noise: Floats, parts: list[slice], largest: float) -> tuple[float, float]:
        """Return the interval of the population's distance."""
        spreads = bound_spreads(influence.theta, influence.errors, noise, parts)
        return invert_interval(influence.theta, noise, spreads, parts, self.confidence, most=largest)

    def _test_noise(self, influence: Influence, parts: list[slice], observed: float, p_permuted: float) -> float:
        """Return the share of draws of noise that lie as far out as what is seen; more draws resolve a small one."""
        alone = compute_ntvd(influence.draw_noise(N_DRAWS, self.rng), parts)
        p = p_value(alone, observed, exact=False)
        if p_permuted < p <= FEW_DRAWS / len(alone) and self.n_resamples > len(alone):
            further = [alone]
            while sum(map(len, further)) < self.n_resamples:
                further.append(compute_ntvd(influence.draw_noise(N_DRAWS, self.rng), parts))
            p = p_value(np.concatenate(further), observed, exact=False)
        return p

    def _test_within_items(self, tables: list[CountedValues]) -> float:
        """Return the p of differences within items whose sides may cancel; NaN where nothing is compared within."""
        return combine_p(self._test_within(item, tables) for item in self.design.items)

    def _test_within(self, item_of_row: Ints, tables: list[CountedValues]) -> float:
        counts, widths = [], []
        for table in tables:
            rows, codes = table.every.rows, table.every.codes
            item = find_items(item_of_row, self.design, rows)
            if item is None:
                continue
            pairs, column = np.unique(item * len(table.every.names) + codes, return_inverse=True)
            if len(pairs) * len(self.design.group) > MOST_CELLS:
                return math.nan
            cells = self.design.cell_of_row[rows]
            counts.append(cross_count(cells, column, (len(self.design.group), len(pairs))))
            widths += np.bincount(pairs // len(table.every.names)).tolist()
        if not counts:
            return math.nan
        sums = np.concatenate(counts, axis=1).astype(np.float64)
        n_resamples = min(self.n_resamples, N_WITHIN)
        return permute_groups(sums, join_parts(widths), self.design, n_resamples, self.rng, norm=compute_ntvd).p


def _describe_lone_units(design: Design, sums: Floats) -> list[Note]:
    """Return a note if a group has fewer than two units with an answer: how far chance goes is then not known."""
    members = np.bincount(design.group[sums.any(axis=1)], minlength=design.n_groups)
    return [Note(NoteCode.NO_NOISE)] if members.min() < 2 else []


def combine_p(found: Iterable[float]) -> float:
    """Return the smallest of several p-values times their number (Bonferroni), NaN left out; NaN without any.

    >>> combine_p([0.01, math.nan, 0.5]), combine_p([0.9, 0.8]), combine_p([])
    (0.02, 1.0, nan)
    """
    p = [one for one in found if not math.isnan(one)]
    return min(1.0, len(p) * min(p)) if p else math.nan


def find_items(item_of_row: Ints, design: Design, rows: Ints) -> Ints | None:
    """Return the item of each of `rows` as codes from 0; None where nothing can be compared within items.

    A group needs two answers to an item on average. Where each item is of one unit that is in every group, swaps of
    that unit's groups leave the sides as they are.
    """
    if not len(rows):
        return None
    present, item = np.unique(item_of_row[rows], return_inverse=True)
    if design.crossed:
        pairs = np.unique(item * (int(design.unit_of_row.max()) + 1) + design.unit_of_row[rows])
        if len(pairs) == len(present):
            return None
    few = len(np.unique(rows)) < 2 * len(present) * design.n_groups
    return None if len(present) < 2 or few else np.asarray(item, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class MeanDifference:
    """How the mean of a number differs between groups, in its unit; NaN if `undefined` gives a reason.

    Attributes
    ----------
    groups, means
        The sorted names of the groups, and their means with an equal mix of what is held equal.
    difference
        Two groups: mean of the first minus that of the second. More: the largest mean minus the smallest. Zero means
        that all means are equal.
    low, high
        Confidence interval of the population's `difference`. With more than two groups it holds for all pairs.
    p
        The larger p of permutations of the units and of the units' noise (Student, Welch). It is at most 1 - confidence
        where, and only where, the interval leaves out 0.
    p_items, least
        As in `Shift`.
    sd
        The standard deviation of single numbers within a group.
    n, n_missing, n_units
        Numbers that are compared, rows without a number, and units that are compared.
    """

    groups: tuple[str, ...] = ()
    means: Floats = field(default_factory=lambda: np.empty(0))
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_items: float = math.nan
    least: LeastP = NO_CHOICE
    sd: float = math.nan
    n: int = 0
    n_missing: int = 0
    n_units: int = 0
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()

    @property
    def remarks(self) -> tuple[Note, ...]:
        """Notes on a p that cannot be small, and on differences whose sides cancel."""
        return tuple(_describe_p(self))


def compare_means(
    values: NumberColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn | None,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> MeanDifference:
    """Return how the mean of a number differs between groups, with interval and p.

    Parameters
    ----------
    values
        One number per row. A missing one (None, NaN) is left out and counted; it is never 0.
    groups, clusters, strata, blocks, items, n_resamples, confidence, rng
        As in `compare_groups`.

    Returns
    -------
    MeanDifference
        Means are means of unit means, so that every unit counts once. NaN with a reason when a group has no number,
        when no stratum has all groups, and when all numbers are the same. Only the interval is NaN when a group has
        one unit, and when no unit differs from another.

    Raises
    ------
    UsageError
        As `compare_groups`.

    Notes
    -----
    Two groups: Student's interval over units that are in both, and Welch's otherwise. More groups: draws of the units'
    noise bound the largest difference. Where all units of a group have one mean, one more is supposed that is like
    those of the other groups (rule of three, doi:10.1001/jama.1983.03330370053031).

    Examples
    --------
    >>> found = compare_means([3, 1, 4, 2, 6, 3], ["m", "f"] * 3, clusters=["a", "a", "b", "b", "c", "c"],
    ...                       rng=np.random.default_rng(1))
    >>> found.groups, round(found.difference, 4), found.p
    (('f', 'm'), -2.3333, 0.25)
    """
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    column = inputs.numbers(values, "values")
    design = build_design(groups, clusters, strata, blocks, items)
    inputs.same_length("values", len(column), {"groups": len(design.group_of_row)})
    rows = np.flatnonzero(~np.isnan(column))
    used = design.find_compared(rows) if len(rows) else rows
    found = MeanDifference(
        groups=design.groups,
        n_missing=len(column) - len(rows),
        undefined=design.find_gap(rows),
        notes=(*design.notes, *design.describe_left_out(rows)),
    )
    if found.undefined is not None:
        return found
    if np.ptp(column[used]) == 0:
        return replace(found, undefined=Note(NoteCode.ONE_VALUE, {"value": f"{column[used][0]:g}"}))
    means, known = average_cells(column, design, rows)
    centre, parts = float(column[used].mean()), [slice(0, 1)]
    centred = (means - centre) * known
    influence = compute_influence(centred, parts, design, sizes=known)
    permuted = permute_groups(centred, parts, design, n_resamples, rng, sizes=known, norm=compute_range)
    levels = influence.levels[:, 0] + centre
    size = max(float(np.ptp(column[used])), 1e-6 * float(np.abs(column[used]).max()))
    noise = _measure_mean_noise(means[:, 0] - centre, influence, design, known[:, 0] > 0, size)
    two = design.n_groups == 2
    difference = float(levels[0] - levels[1]) if two else float(np.ptp(levels))
    p_noise, half = noise.test(difference, confidence, max(n_resamples, N_DRAWS), rng)
    p = max(permuted.p, p_noise)
    low, high = difference - half, difference + half
    if p > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    return replace(
        found,
        means=levels,
        difference=difference,
        low=low if two else max(low, 0.0),
        high=high,
        p=p,
        p_items=combine_p(_test_means_within(item, column, rows, design, n_resamples, rng) for item in design.items),
        least=permuted.least,
        sd=_compute_sd(column[used], design.group_of_row[used]),
        n=len(used),
        n_units=design.count_units(used),
    )


def average_cells(column: Floats, design: Design, rows: Ints) -> tuple[Floats, Floats]:
    """Return the mean of each cell over `rows`, K x 1, and whether it has one, so that every unit counts once."""
    cells = design.cell_of_row[rows]
    n = np.bincount(cells, minlength=len(design.group))
    sums = np.bincount(cells, column[rows], minlength=len(design.group))
    return (sums / np.maximum(n, 1))[:, None], (n > 0).astype(np.float64)[:, None]


@dataclass(frozen=True, kw_only=True)
class _MeanNoise:
    """The noise of the groups' means: a factor R x G of its covariance, its squared error and degrees of freedom.

    The factor is empty where the noise is not known.
    """

    factor: Floats = field(default_factory=lambda: np.empty((0, 0)))
    square: float = 0.0
    degrees: float = math.nan

    def test(self, difference: float, confidence: float, n_draws: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the two-sided p of a difference, and half the width of its interval; 0 and NaN without noise."""
        from scipy.special import stdtr, stdtrit

        if not len(self.factor):
            return 0.0, math.nan
        degrees, error = self.degrees, math.sqrt(self.square)
        if self.factor.shape[1] == 2:
            reach = float(stdtrit(degrees, 0.5 + confidence / 2))
            return float(2 * stdtr(degrees, -abs(difference) / error)), reach * error
        drawn = rng.standard_normal((n_draws, len(self.factor))) @ self.factor
        drawn *= np.sqrt(degrees / rng.chisquare(degrees, n_draws))[:, None]
        ranges = np.ptp(drawn, axis=1)
        further = max(1, int((1 - confidence) * (1 + n_draws)))
        return p_value(ranges, difference, exact=False, size=error), float(np.sort(ranges)[-further])


def _measure_mean_noise(means: Floats, influence: Influence, design: Design, known: Bools, size: float) -> _MeanNoise:
    """Return the noise of the groups' means from those of cells (K), with one supposed unit where all of a group agree.

    The spread of a group's units is pooled over blocks. `size` is that of the numbers: noise below 1e-12 of it is what
    rounding leaves.
    """
    n_groups = design.n_groups
    members = np.bincount(design.group[known], minlength=n_groups)
    least = (1e-12 * size) ** 2
    if not design.crossed:
        return _measure_nested_noise(means, influence.levels[:, 0], design, known, least)
    factor = influence.values[:, :, 0]
    apart = (factor[:, 0] - factor[:, 1]) if n_groups == 2 else factor
    square = float((apart**2).sum())
    if members.min() < 2 or not square > least:
        return _MeanNoise()
    return _MeanNoise(factor=factor, square=square, degrees=float(members.min()) - 1)


def _measure_nested_noise(means: Floats, levels: Floats, design: Design, known: Bools, least: float) -> _MeanNoise:
    n_groups = design.n_groups
    weight = known.astype(np.float64)
    if design.standardised:
        weight = standardise_mix(weight[:, None], design)[:, 0]
    place = design.group * (int(design.centre.max()) + 1) + design.centre
    of_place = np.bincount(place, known)
    left = (means - (np.bincount(place, means * known) / np.maximum(of_place, 1))[place]) * (weight > 0)
    used = weight > 0
    members = np.bincount(design.group[used], minlength=n_groups)
    places = np.array([len(np.unique(place[used & (design.group == code)])) for code in range(n_groups)])
    degrees = (members - places).astype(np.float64)
    if degrees.min() < 1:
        return _MeanNoise()
    variances = np.bincount(design.group, left**2, n_groups) / degrees
    share = np.bincount(design.group, weight**2, n_groups) / np.bincount(design.group, weight, n_groups) ** 2
    squares = variances * share
    if not squares.sum() > least:
        return _MeanNoise()
    pooled = pool_degrees(squares, degrees)
    for code in np.flatnonzero(squares <= least):
        # One more unit may show a difference that n units did not. It moves the mean by 1/(n + 1) of the way.
        others = [one for one in range(n_groups) if one != code]
        away = (levels[others] - levels[code]) ** 2 + variances[others]
        squares[code] = float(away.mean()) / (members[code] + 1) ** 2
    return _MeanNoise(
        factor=np.diag(np.sqrt(squares)),
        square=float(squares.sum()),
        degrees=min(pooled, pool_degrees(squares, degrees)),
    )


def _test_means_within(
    item_of_row: Ints, column: Floats, rows: Ints, design: Design, n_resamples: int, rng: np.random.Generator
) -> float:
    """Return the p of differences between means within items, in each item's standard deviations; NaN for none.

    The mean of a cell over several items is subtracted: it says nothing about differences whose sides cancel.
    """
    item = find_items(item_of_row, design, rows)
    if item is None:
        return math.nan
    n_items, n_cells = int(item.max()) + 1, len(design.group)
    if n_items * n_cells > MOST_CELLS:
        return math.nan
    n = np.bincount(item)
    left = column[rows] - (np.bincount(item, column[rows]) / n)[item]
    spread = np.sqrt(np.bincount(item, left**2) / n)
    left /= np.where(spread > 1e-12 * float(np.abs(column[rows]).max()), spread, np.inf)[item]
    cells = design.cell_of_row[rows]
    counts = cross_count(cells, item, (n_cells, n_items))
    of_cell = np.bincount(cells, minlength=n_cells)
    level = np.bincount(cells, left, n_cells) / np.maximum(of_cell, 1) * ((counts > 0).sum(axis=1) > 1)
    sums = np.bincount(cells * n_items + item, left - level[cells], n_cells * n_items).reshape(n_cells, n_items)
    means = sums / np.maximum(counts, 1)
    parts = join_parts([1] * n_items)

    def sum_squares(theta: Floats, _: Any) -> Floats:
        return np.asarray((theta**2).sum(axis=(-2, -1)))

    sizes = (counts > 0).astype(np.float64)
    return permute_groups(means, parts, design, min(n_resamples, N_WITHIN), rng, sizes=sizes, norm=sum_squares).p


def _compute_sd(numbers: Floats, group: Ints) -> float:
    """Return the standard deviation of single numbers within groups, pooled; NaN with one number each."""
    sizes = np.bincount(group)
    means = np.bincount(group, numbers) / np.maximum(sizes, 1)
    freedom = len(group) - int((sizes > 0).sum())
    return math.sqrt(float(((numbers - means[group]) ** 2).sum()) / freedom) if freedom else math.nan
