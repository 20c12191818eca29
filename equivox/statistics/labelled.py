"""Distribution shift with an annotator's errors corrected by people's labels of some of the responses (PPI++)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.design_noise import noise_of, on_few_clusters
from equivox.statistics.distance import attainable_shift, estimate_shift
from equivox.statistics.encode import Answers, Design, encode_design, equal_mix
from equivox.statistics.inputs import EncodedValues, Floats, Ints, LabelColumn, ValueColumn
from equivox.statistics.intervals import freedom_of, invert
from equivox.statistics.noise import N_NOISE, Noise, hidden_errors


@dataclass(frozen=True, kw_only=True)
class CorrectedShift:
    """The shift between the groups' answers as people would annotate them.

    Attributes
    ----------
    estimate, estimate_unclipped
        The estimated nTVD of the population in percent, from people's annotations. Zero means that the groups differ by
        no more than noise; `estimate_unclipped` may be below zero.
    ci_low, ci_high
        Its interval. It holds the noise of the clusters and that of the labels.
    groups, values
        The sorted names of the rows and columns of `by_group`.
    by_group
        G x V, the corrected share of each value in each group. Shares of a group sum to one; that of a rare value may
        be slightly below zero, because it is a difference.
    labels, wrong
        The labelled responses of each group that are compared, and those on which the annotator and people differ.
    tuning
        λ of each group, the weight of the annotator: 1 where it is right, 0 where it says nothing about people's label.
    undefined
        The reason why the numbers are NaN; None when they are defined.
    notes
        Remarks on how the numbers were computed.
    """

    estimate: float = math.nan
    estimate_unclipped: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    groups: tuple[str, ...]
    values: tuple[str, ...] = ()
    by_group: Floats
    labels: tuple[int, ...]
    wrong: tuple[int, ...]
    tuning: tuple[float, ...]
    undefined: str | None = None
    notes: tuple[str, ...] = ()


def corrected_shift(
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
    """Return the nTVD between the groups as people would annotate the responses, from labels of some of them.

    In each group, corrected shares = λ · (annotator's shares over all responses) + mean over the labelled responses of
    (people's values - λ · annotator's values). The second part is the *rectifier*: it is unbiased for any λ, so that
    errors of the annotator cancel, whatever they are. λ makes the variance least (PPI++, Angelopoulos, Duchi & Zrnic
    2023, arXiv 2311.01453, section 6). Here all responses include the labelled ones, so that the least variance is at
    λ = cov(people, annotator) / var(annotator) over the labelled responses, summed over the values and cut to [0, 1].
    The paper counts the N - n other responses only; with its λ, which is λ · (1 - n/N), its estimate is the same.

    The two parts are then uncorrelated over responses, so their noise adds up: λ² times the cluster noise of the
    annotator's shares (`noise_over_clusters`), and the noise of the rectifier over the clusters of the labelled
    responses, or over these responses where that is larger, because two clusters may agree by chance. Estimate and
    interval follow from the corrected deviations as in `distribution_shift`.

    Where no error was seen in a group, λ is 1, and the noise of the rectifier is not zero but unknown. One more label
    that is wrong is then supposed: about 3/n of the unseen ones may be, at 95 % (rule of three,
    doi:10.1001/jama.1983.03330370053031). The interval has this noise, the estimate does not.

    Parameters
    ----------
    values
        What the annotator found in each response: one value, or a list of several. None, NaN and an empty list mean
        that it found none ("unstated"); unlike in `distribution_shift`, such a response counts, because people may find
        a value in it.
    groups, clusters, strata, blocks, confidence, rng
        As in `distribution_shift`. With fewer than two clusters in a group the responses count as independent.
    labelled_rows
        The positions of the labelled responses, 0 for the first. They must be drawn at random from these responses.
    labels
        What people found in each labelled response, in the order of `labelled_rows`; an empty list where they found no
        value. No value on both sides is agreement.
    weights
        How many responses each label stands for, if they were drawn with unequal probabilities: one number above 0 per
        label. By default all labels of a group weigh the same.
    min_count
        Values that the annotator gave, and that people would give by this estimate, fewer times over all responses are
        left out.
    min_labels
        The labels that every group needs, 2 or more, where all groups have a response in the same unit, or stratum and
        block.

    Returns
    -------
    CorrectedShift
        Numbers are NaN, and `undefined` says why, when there are fewer than two groups, fewer labels than `min_labels`
        in a group, a group without a value, fewer than two values, or people who give every response the same value.

    Raises
    ------
    UsageError
        As `distribution_shift`; also for positions that are doubled or out of range, and for weights of 0 or less.

    Notes
    -----
    A response with several values contributes each of them, divided by the mean number of values of the responses that
    have any; the shares of a group are scaled to sum to one afterwards. Coverage is measured by
    `python -m validity.audit`.

    Examples
    --------
    The annotator reads half of group b's "yoga" as "chess". With every fourth response labelled the groups are alike:

    >>> answers = (["chess"] * 8 + ["yoga"] * 8) * 5 + (["chess"] * 12 + ["yoga"] * 4) * 5
    >>> people = (["chess"] * 8 + ["yoga"] * 8) * 10
    >>> rows = list(range(0, 160, 4))
    >>> found = corrected_shift(answers, ["a"] * 80 + ["b"] * 80, clusters=None, labelled_rows=rows,
    ...                         labels=[people[row] for row in rows], rng=np.random.default_rng(1))
    >>> found.estimate, found.by_group.round(3).tolist(), found.wrong
    (0.0, [[0.5, 0.5], [0.5, 0.5]], (0, 5))
    """
    inputs.check_min_count(min_count)
    inputs.check_share(confidence, "confidence")
    if min_labels < 2:
        raise UsageError(f"`min_labels` is {min_labels}: a variance needs 2 or more")
    design = encode_design(groups, clusters, strata, blocks)
    n = len(design.group_of_row)
    given, said = inputs.values(values, "values"), inputs.values(labels, "labels")
    inputs.same_length("groups", n, {"values": given.n_rows})
    labelled = inputs.positions(labelled_rows, n, said.n_rows)
    weight = inputs.weights(weights, len(labelled))
    n_groups = len(design.groups)
    group = design.group_of_row[labelled]
    mix = equal_mix(design)
    if mix is not None:
        weight *= mix[labelled]
    counts = np.bincount(group[weight > 0], minlength=n_groups)
    empty = CorrectedShift(
        groups=design.groups,
        by_group=np.full((n_groups, 0), math.nan),
        labels=tuple(counts.tolist()),
        wrong=(0,) * n_groups,
        tuning=(math.nan,) * n_groups,
    )
    if n_groups < 2:
        return replace(empty, undefined=f"only one group, {design.groups[0]!r}: a difference needs two")
    if few := [name for name, own in zip(design.groups, counts, strict=True) if own < min_labels]:
        where = "" if mix is None else f" in a {design.held_by} of all groups"
        return replace(empty, undefined=f"fewer than {min_labels} labelled responses of {', '.join(few)}{where}")
    for code in range(n_groups):
        weight[group == code] /= weight[group == code].sum()
    table = _Responses.of(given, said, labelled, weight, design.group_of_row, min_count)
    if len(table.names) < 2:
        return replace(empty, undefined=f"fewer than two values are seen {min_count} times or more")
    heard = np.bincount(design.group_of_row[table.answers.rows], minlength=n_groups)
    if silent := [name for name, own in zip(design.groups, heard, strict=True) if not own]:
        return replace(empty, undefined=f"the annotator finds no value in group {', '.join(map(repr, silent))}")
    shares = _measure_shares(table, design, mix)
    parts = []
    for code in range(n_groups):
        mine = (group == code) & (weight > 0)
        unit = design.cluster_of_row[labelled[mine]] if design.clusters else None
        parts.append(_rectify(shares[code], table.annotator[mine], table.people[mine], weight[mine], unit))
    found = CorrectedShift(
        groups=design.groups,
        values=table.names,
        by_group=np.stack([part.shares for part in parts]),
        labels=tuple(counts.tolist()),
        wrong=tuple(part.wrong for part in parts),
        tuning=tuple(part.tuning for part in parts),
    )
    people = table.people[weight > 0]
    if any(found.wrong) and (people == people[0]).all():
        return replace(found, undefined="people give every labelled response the same value: that shows no difference")
    if not all(part.total > 0 for part in parts):
        return replace(found, undefined="people find hardly a value in a group")
    return _measured(found, parts, table, mix, design, confidence, rng)


@dataclass(frozen=True)
class _Responses:
    """The annotator's values in all responses, and the counts of both in the labelled responses, one row each."""

    names: tuple[str, ...]
    answers: Answers
    annotator: Floats
    people: Floats

    @classmethod
    def of(
        cls, given: EncodedValues, said: EncodedValues, labelled: Ints, weight: Floats, group: Ints, min_count: int
    ) -> _Responses:
        names = np.array(sorted({*given.names, *said.names}), dtype=object)
        columns = np.searchsorted(names, np.array(given.names, dtype=object))[given.codes]
        shape = (len(labelled), len(names))
        people = cross_count(said.rows, np.searchsorted(names, np.array(said.names, dtype=object))[said.codes], shape)
        label_of_row = np.full(given.n_rows, -1)
        label_of_row[labelled] = np.arange(len(labelled))
        mine = label_of_row[given.rows] >= 0
        annotator = cross_count(label_of_row[given.rows[mine]], columns[mine], shape)
        # A label stands for this many responses of its group.
        stands = weight * np.bincount(group)[group[labelled]]
        seen = np.bincount(columns, minlength=len(names))
        keep = np.maximum(seen, seen + stands @ (people - annotator)) >= min_count - 1e-9
        kept = keep[columns]
        answers = Answers(given.rows[kept], (np.cumsum(keep) - 1)[columns[kept]], [slice(0, int(keep.sum()))])
        return cls(tuple(names[keep]), answers, annotator[:, keep].astype(float), people[:, keep].astype(float))


@dataclass(frozen=True)
class _Group:
    """The corrected shares of one group, and the pulls of its labels on them.

    `weight` scales the noise of the annotator's shares; `size` is the number of labels that would weigh the same.
    """

    shares: Floats
    total: float
    tuning: float
    weight: float
    pulls: Floats
    wrong: int
    size: float
    in_one_cluster: bool


def _measure_shares(table: _Responses, design: Design, mix: Floats | None) -> Floats:
    """Return how often the annotator gives each value in a group, G x V, per response."""
    counts_as = np.ones(len(design.group_of_row)) if mix is None else mix
    shares = np.zeros((len(design.groups), len(table.names)))
    rows = table.answers.rows
    np.add.at(shares, (design.group_of_row[rows], table.answers.columns), counts_as[rows])
    return np.asarray(shares / np.bincount(design.group_of_row, weights=counts_as)[:, None], dtype=np.float64)


def _rectify(all_read: Floats, read: Floats, people: Floats, weight: Floats, cluster: Ints | None) -> _Group:
    """Return a group's shares from the annotator's of all responses and from the labelled responses."""
    wrong = int((np.abs(read - people) > 1e-9).any(axis=1).sum())
    tuning = 1.0 if wrong == 0 else power_tuning(read, people, weight)
    rectifiers = people - tuning * read
    mean = weight @ rectifiers
    corrected = tuning * all_read + mean
    total = float(corrected.sum())
    residuals = weight[:, None] * (rectifiers - mean)
    pulls = _pulls(residuals, np.arange(len(residuals)))
    unit = None if cluster is None else np.unique(cluster, return_inverse=True)[1]
    in_one_cluster = unit is not None and not unit.any()
    if unit is not None and not in_one_cluster:
        # Two or three clusters may agree by chance: they are never taken for less noisy than their responses.
        pulls = max(pulls, _pulls(residuals, unit), key=lambda own: float((own**2).sum()))
    safe = total if total > 0 else 1.0
    shares = corrected / safe
    return _Group(
        shares=shares,
        total=total,
        tuning=tuning,
        weight=tuning * float(all_read.sum()) / safe,
        # Shares are scaled to sum to one, so that a change of the sum changes no share.
        pulls=(pulls - pulls.sum(axis=1, keepdims=True) * shares) / safe,
        wrong=wrong,
        size=1 / float((weight**2).sum()),
        in_one_cluster=in_one_cluster,
    )


def _pulls(residuals: Floats, unit: Ints) -> Floats:
    """Return the pull of each unit on the rectifier, times √(m/(m-1)): their squares estimate its variance."""
    m = int(unit.max()) + 1
    pulls = np.zeros((m, residuals.shape[1]))
    np.add.at(pulls, unit, residuals)
    return np.asarray(pulls * np.sqrt(m / (m - 1)), dtype=np.float64)


def power_tuning(annotator: Floats, people: Floats, weights: Floats) -> float:
    """Return λ = cov(people, annotator) / var(annotator), summed over the columns and cut to [0, 1].

    Both are labelled responses x values; `weights` sum to one. 0 where the annotator never varies. It is the least
    squares of people's values on the annotator's: arXiv 2311.01453, section 6, for a mean, where the responses of the
    first part include the labelled ones.
    """
    centred = annotator - weights @ annotator
    variance = float(weights @ (centred**2).sum(axis=1))
    if variance <= 1e-12:
        return 0.0
    return float(np.clip(weights @ (centred * (people - weights @ people)).sum(axis=1) / variance, 0.0, 1.0))


def _degrees(pulls: Floats) -> float:
    """Return the degrees of freedom of the rectifier's variance: few errors make it uncertain, few units too.

    A sum of m squared lengths q has relative variance m·var(q)/(Σq)², that of a χ² variable with 2 over that degrees.
    """
    squares = (pulls**2).sum(axis=1)
    m = len(squares)
    if not squares.any():
        return math.inf
    relative = m * float(squares.var(ddof=1)) / float(squares.sum()) ** 2
    return m - 1.0 if relative * (m - 1) <= 2 else 2.0 / relative


def _measured(
    found: CorrectedShift,
    parts: Sequence[_Group],
    table: _Responses,
    mix: Floats | None,
    design: Design,
    confidence: float,
    rng: np.random.Generator,
) -> CorrectedShift:
    """Return the result with estimate and interval, from the noise of both parts of every group."""
    slices, weights = table.answers.parts, None
    if mix is not None:
        weights = np.zeros((len(design.clusters), 1))
        weights[design.cluster_of_row, 0] = mix
    scale = np.array([part.weight for part in parts])
    own = noise_of(table.answers, design, rng, weights=weights, scale=scale)
    notes = list(design.notes)
    if (note := on_few_clusters(table.answers.rows, design)) is not None:
        notes.append(note)
    labels, tail = [part.pulls for part in parts], (1 - confidence) / 2
    left = 1 - np.array(found.labels) / np.bincount(design.group_of_row)
    unseen = [
        hidden_errors(found.by_group, code, part.size, tail, seen=part.wrong > 0, left=left[code])
        for code, part in enumerate(parts)
    ]
    alike = own.supposed or [factor[:0] for factor in own.factors]
    answers = [*own.factors, *([] if own.shared is None else [own.shared])]
    degrees = _combine_degrees(own.degrees[0], answers, parts)
    noise = Noise(
        [np.concatenate(both) for both in zip(own.factors, labels, strict=True)],
        (degrees,),
        degrees,
        [np.concatenate(both) for both in zip(alike, unseen, strict=True)],
        own.shared,
    )
    deviations = found.by_group - found.by_group.mean(axis=0)
    largest = attainable_shift(len(table.names), len(parts))
    unclipped = float(estimate_shift(deviations, noise.errors(seen=True), slices)[0])
    drawn = noise.draw(N_NOISE, rng)
    drawn *= noise.scales(len(drawn), [degrees], rng)[0][:, None, None]
    low, high = invert(deviations, drawn, noise.errors(), slices, confidence, alike=noise.alike, most=largest)
    if without := [code for code, part in enumerate(parts) if part.wrong == 0]:
        most = 100 * max(left[code] * (1 - tail ** (1 / parts[code].size)) for code in without)
        names = ", ".join(found.groups[code] for code in without)
        notes.append(f"no label of {names} shows an error; the interval allows for {most:.0f} % wrong labels")
    if any(part.in_one_cluster for part in parts):
        notes.append("all labels of a group come from one cluster, so the interval is too narrow")
    return replace(
        found,
        estimate=min(max(unclipped, 0.0), largest),
        estimate_unclipped=unclipped,
        ci_low=low,
        ci_high=high,
        notes=tuple(notes),
    )


def _sizes(factors: Sequence[Floats]) -> float:
    return float(sum((factor**2).sum() for factor in factors))


def _combine_degrees(degrees: float, scaled: Sequence[Floats], parts: Sequence[_Group]) -> float:
    """Return the degrees of freedom of the noise of the annotator's shares and of the labels together."""
    squares = [_sizes(scaled), *(_sizes([part.pulls]) for part in parts)]
    freedom = [degrees, *(_degrees(part.pulls) for part in parts)]
    certain = all(math.isinf(own) for size, own in zip(squares, freedom, strict=True) if size)
    return math.inf if certain else max(1.0, freedom_of(squares, freedom))
