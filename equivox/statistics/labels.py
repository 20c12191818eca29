"""The distance between groups as people would annotate the responses, from labels of some of them (PPI++)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.core.notes import Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.design import Design, build_design
from equivox.statistics.distance import attainable_shift, bound_spreads, center, estimate_ntvd, invert_interval
from equivox.statistics.groups import N_DRAWS
from equivox.statistics.inputs import Bools, EncodedValues, Floats, Ints, LabelColumn, ValueColumn
from equivox.statistics.linearization import Influence


@dataclass(frozen=True, kw_only=True)
class CorrectedShift:
    """The distance between the groups' answers as people would annotate them, in percent.

    Attributes
    ----------
    estimate
        The estimated nTVD of the population. Zero means that the groups differ by no more than noise.
    low, high
        Its interval, with the noise of the units and that of the labels.
    groups, values, by_group
        The sorted names of groups and values, and the corrected share of each value in each group, G x V. The share of
        a rare value may be slightly below zero, because it is a difference.
    labels, wrong
        The labelled responses of each group that are compared, and those on which the annotator and people differ.
    undefined
        The reason why the numbers are NaN; None when they are defined.
    """

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    groups: tuple[str, ...]
    values: tuple[str, ...] = ()
    by_group: Floats = field(default_factory=lambda: np.empty((0, 0)))
    labels: tuple[int, ...]
    wrong: tuple[int, ...] = ()
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()


def correct_groups(
    values: ValueColumn,
    groups: LabelColumn,
    *,
    clusters: LabelColumn | None,
    labelled_rows: ArrayLike,
    labels: ValueColumn,
    weights: ArrayLike | None = None,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    min_count: int = 10,
    min_labels: int = 5,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> CorrectedShift:
    """Return the nTVD between the groups as people would annotate the responses.

    In each group, corrected shares = λ · (annotator's shares over all responses) + mean over the labelled responses of
    (people's values - λ · annotator's values), so that errors of the annotator cancel, whatever they are. λ makes the
    variance least (PPI++: Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453, section 6). A unit's influence value is
    the sum of its parts in both.

    Parameters
    ----------
    values
        The annotator's value for each response, or a list of several. An empty list means that it found none; such a
        response counts, because people may find a value in it.
    groups, clusters, strata, blocks, confidence, rng
        As in `compare_groups`.
    labelled_rows
        The positions of the labelled responses, 0 for the first. They must be drawn at random from these responses.
    labels
        People's values for each labelled response, in the order of `labelled_rows`.
    weights
        How many responses each label stands for, if they were drawn with unequal probabilities.
    min_count
        Values that the annotator gave, and that people would give, fewer times over all responses are left out.
    min_labels
        The labels that every group needs, 2 or more.

    Returns
    -------
    CorrectedShift
        NaN with a reason when there are fewer than two groups, fewer labels than `min_labels` in a group, a group
        without a value, or people who give every response the same value.

    Raises
    ------
    UsageError
        As `compare_groups`; also for positions that are doubled or out of range, and for weights of 0 or less.

    Notes
    -----
    Labels that show no error leave some unseen: one more wrong label is supposed, or the most that is likely without
    one (Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404). The interval has this noise, the estimate does not.

    Examples
    --------
    The annotator reads half of group b's "yoga" as "chess". With every fourth response labelled the groups are alike:

    >>> answers = (["chess"] * 8 + ["yoga"] * 8) * 5 + (["chess"] * 12 + ["yoga"] * 4) * 5
    >>> people = (["chess"] * 8 + ["yoga"] * 8) * 10
    >>> rows = list(range(0, 160, 4))
    >>> found = correct_groups(answers, ["a"] * 80 + ["b"] * 80, clusters=None, labelled_rows=rows,
    ...                        labels=[people[row] for row in rows], rng=np.random.default_rng(1))
    >>> found.by_group.round(3).tolist(), found.wrong, found.low
    ([[0.5, 0.5], [0.5, 0.5]], (0, 5), 0.0)
    """
    inputs.check_min_count(min_count)
    inputs.check_share(confidence, "confidence")
    if min_labels < 2:
        raise UsageError(f"`min_labels` is {min_labels}: a variance needs 2 or more")
    design = build_design(groups, clusters, strata, blocks)
    n, n_groups = len(design.group_of_row), design.n_groups
    found, said = inputs.values(values, "values"), inputs.values(labels, "labels")
    inputs.same_length("groups", n, {"values": found.n_rows})
    rows = inputs.positions(labelled_rows, n, said.n_rows)
    mix = design.compute_row_weights(np.arange(n)) if design.standardised else np.ones(n)
    weight = inputs.weights(weights, len(rows)) * mix[rows]
    group = design.group_of_row[rows]
    counts = np.bincount(group[weight > 0], minlength=n_groups)
    nothing = CorrectedShift(groups=design.groups, labels=tuple(counts.tolist()), notes=design.notes)
    if n_groups < 2:
        return replace(nothing, undefined=design.find_gap(rows))
    if few := [name for name, count in zip(design.groups, counts, strict=True) if count < min_labels]:
        return replace(nothing, undefined=Note(NoteCode.FEW_LABELS, {"groups": few, "needed": min_labels}))
    weight /= np.bincount(group, weight, n_groups)[group]
    table = _Labelled.of(found, said, rows, weight, group, np.bincount(design.group_of_row), min_count)
    if len(table.names) < 2:
        return replace(nothing, undefined=Note(NoteCode.RARE_ONLY, {"min_count": min_count}))
    parts = _correct_shares(table, design, rows, weight, mix)
    corrected = replace(nothing, values=table.names, by_group=parts.shares, wrong=tuple(parts.wrong.tolist()))
    people = table.people[weight > 0]
    if any(corrected.wrong) and (people == people[0]).all():
        return replace(corrected, undefined=Note(NoteCode.ONE_VALUE, {"value": "people's label"}))
    if silent := [name for name, total in zip(design.groups, parts.totals, strict=True) if total <= 0]:
        return replace(corrected, undefined=Note(NoteCode.EMPTY_GROUP, {"groups": silent}))
    columns = [slice(0, len(table.names))]
    theta = center(parts.shares)
    known = Influence(
        theta=theta, values=parts.influence, degrees=parts.degrees, variances=np.empty(0), levels=parts.shares
    )
    whole = replace(known, values=np.concatenate([parts.influence, parts.hidden]))
    noise, largest = whole.draw_noise(N_DRAWS, rng), attainable_shift(len(table.names), n_groups)
    spreads = bound_spreads(theta, whole.errors, noise, columns)
    low, high = invert_interval(theta, noise, spreads, columns, confidence, most=largest)
    return replace(
        corrected, estimate=min(estimate_ntvd(theta, known.errors, columns), largest), low=low, high=max(low, high)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Labelled:
    """The annotator's values of all responses, and the counts of both in the labelled ones, one row each."""

    names: tuple[str, ...]
    rows: Ints
    codes: Ints
    annotator: Floats
    people: Floats

    @classmethod
    def of(
        cls, found: EncodedValues, said: EncodedValues, rows: Ints, weight: Floats, group: Ints, n: Ints, min_count: int
    ) -> _Labelled:
        names = np.array(sorted({*found.names, *said.names}), dtype=object)
        codes = np.searchsorted(names, np.array(found.names, dtype=object))[found.codes]
        shape = (len(rows), len(names))
        people = cross_count(said.rows, np.searchsorted(names, np.array(said.names, dtype=object))[said.codes], shape)
        label_of_row = np.full(found.n_rows, -1)
        label_of_row[rows] = np.arange(len(rows))
        mine = label_of_row[found.rows] >= 0
        annotator = cross_count(label_of_row[found.rows[mine]], codes[mine], shape)
        # A label stands for this many responses of its group.
        seen = np.bincount(codes, minlength=len(names))
        keep: Bools = np.maximum(seen, seen + (weight * n[group]) @ (people - annotator)) >= min_count - 1e-9
        kept = keep[codes]
        return cls(
            names=tuple(names[keep]),
            rows=found.rows[kept],
            codes=(np.cumsum(keep) - 1)[codes[kept]],
            annotator=annotator[:, keep].astype(np.float64),
            people=people[:, keep].astype(np.float64),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Corrected:
    """The corrected shares (G x V), the influence of the units on them, and that of errors that were not seen."""

    shares: Floats
    totals: Floats
    wrong: Ints
    influence: Floats
    hidden: Floats
    degrees: float


def _correct_shares(table: _Labelled, design: Design, rows: Ints, weight: Floats, mix: Floats) -> _Corrected:
    """Return the corrected shares of each group, from the annotator's of all responses and from the labels."""
    n_groups, n_values, n = design.n_groups, len(table.names), len(design.group_of_row)
    members = np.bincount(design.group, minlength=n_groups)
    # With one unit in a group its responses count as independent: nothing else is known of its noise.
    units = design.unit_of_row if members.min() > 1 else np.arange(n)
    n_units = int(units.max()) + 1
    shares, influence = np.empty((n_groups, n_values)), np.zeros((n_units, n_groups, n_values))
    totals, wrong, hidden = np.empty(n_groups), np.zeros(n_groups, dtype=np.int64), []
    for code in range(n_groups):
        mine, labelled = design.group_of_row == code, (design.group_of_row[rows] == code) & (weight > 0)
        total = float(mix[mine].sum())
        own = mine[table.rows]
        of_unit = np.zeros((n_units, n_values))
        np.add.at(of_unit, (units[table.rows[own]], table.codes[own]), mix[table.rows[own]])
        all_read = of_unit.sum(axis=0) / total
        read, people, by = table.annotator[labelled], table.people[labelled], weight[labelled]
        wrong[code] = int((np.abs(read - people) > 1e-9).any(axis=1).sum())
        rate = tune_power(read, people, by) if wrong[code] else 1.0
        left = people - rate * read
        mean = by @ left
        corrected = rate * all_read + mean
        totals[code] = corrected.sum()
        scale = max(float(totals[code]), 1e-12)
        size = 1 / float((by**2).sum())
        sizes = np.bincount(units[mine], mix[mine], n_units)
        values = rate * (of_unit - sizes[:, None] * all_read) / total
        label_values = by[:, None] * (left - mean) * math.sqrt(size / max(size - 1, 1.0))
        np.add.at(values, units[rows[labelled]], label_values)
        present = len(np.unique(units[mine]))
        values *= math.sqrt(present / max(present - 1, 1))
        shares[code] = corrected / scale
        # Shares are scaled to sum to one, so that a change of the sum changes no share.
        influence[:, code] = (values - values.sum(axis=1, keepdims=True) * shares[code]) / scale
        unseen = 1 / (size + 1) if wrong[code] else (1 - 0.025 ** (1 / size)) / 1.96
        rest = 1 - labelled.sum() / mine.sum()
        hidden.append(_suppose_errors(by @ people - shares[code], shares[code], n_groups, code, unseen * rest))
    rarest = shares.sum(axis=0).argmin()
    for code in range(n_groups):
        hidden[code][1, code, rarest] -= hidden[code][1, code].sum()
    added = np.concatenate(hidden)
    return _Corrected(
        shares=shares,
        totals=totals,
        wrong=wrong,
        influence=influence - influence.mean(axis=1, keepdims=True),
        hidden=added - added.mean(axis=1, keepdims=True),
        degrees=max(1.0, float(n_units - (1 if design.crossed else n_groups))),
    )


def _suppose_errors(off: Floats, shares: Floats, n_groups: int, code: int, size: float) -> Floats:
    """Return two directions in which unseen errors move a group's shares: towards people's, and off the commonest."""
    hidden = np.zeros((2, n_groups, len(shares)))
    hidden[0, code] = size * off
    hidden[1, code, shares.argmax()] = size
    return hidden


def tune_power(annotator: Floats, people: Floats, weights: Floats) -> float:
    """Return λ = cov(people, annotator) / var(annotator), summed over values and cut to [0, 1].

    Both are labelled responses x values; `weights` sum to one. 0 where the annotator never varies. It is the least
    squares of people's values on the annotator's: arXiv 2311.01453, section 6, where the responses of the first part
    include the labelled ones.
    """
    centred = annotator - weights @ annotator
    variance = float(weights @ (centred**2).sum(axis=1))
    if variance <= 1e-12:
        return 0.0
    return float(np.clip(weights @ (centred * (people - weights @ people)).sum(axis=1) / variance, 0.0, 1.0))
