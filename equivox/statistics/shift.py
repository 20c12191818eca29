"""Distribution shift between groups: nTVD with its estimate, interval, null mean and p-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.distance import attainable_shift
from equivox.statistics.encode import Design, Occurrences, encode_design, encode_values
from equivox.statistics.evidence import Evidence, draw_evidence, shift_numbers
from equivox.statistics.inputs import Floats, LabelColumn, ValueColumn
from equivox.statistics.permutation import n_extreme
from equivox.statistics.results import DistributionShift, JointShift, ShiftNumbers
from equivox.statistics.within_items import p_of_values_within_items


def distribution_shift(
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
) -> DistributionShift:
    """Return the nTVD between the groups' answers, with its null mean, p-values and interval.

    Parameters
    ----------
    values
        The values of each response: one value, or a list of several. A response without a value (None, NaN or an empty
        list) is left out and counted. A column in any form that `equivox.statistics` reads, `EncodedValues` included.
    groups
        The group of each response; this and the two below also as `EncodedLabels`.
    clusters
        The unit that carries the group (a speaker, a name), or that is in every group (a CV with the names swapped),
        one label per response. With None the responses count as independent: `p_cluster` is NaN, and `null_mean` is the
        null mean over responses.
    strata
        The stratum, which is held constant, one label per response. If every cluster is in one stratum, clusters are
        permuted within strata. If a cluster spans several, clusters are permuted freely and a note says so. The test
        over responses ignores strata, as published.
    blocks
        The block of each cluster (the gender of a speaker, when accents are compared), one label per response. Groups
        are compared, and clusters permuted, within blocks, and within strata that hold whole clusters. A difference
        between blocks is then neither an effect nor noise, in whatever numbers the groups hold them.
    items
        The item of each response (its sentence). With it there is a second interval, for new items.
    min_count
        Values seen fewer times over all responses are removed and counted (τ in the paper).
    n_resamples
        Permutations drawn for each test. When the clusters have no more distinct permutations than this, all of them
        are enumerated.
    confidence
        Coverage of the interval, between 0 and 1.
    rng
        The only source of randomness. The order of the responses and the names of groups and clusters do not change the
        draws.

    Returns
    -------
    DistributionShift
        `estimate` is the estimated nTVD of the population, in percent: zero means that the groups differ by no more
        than noise. `ntvd` is that of the sample, zero when all groups gave the same answers. All numbers are NaN, and
        `undefined` says why, when there are fewer than two groups, when a group has no usable response, when no
        stratum or block has all groups, or when fewer than two values are kept: constant answers are no evidence of
        fairness.

    Raises
    ------
    UsageError
        Columns that are empty or of unequal lengths, a missing label, clusters of which some are in one group and some
        in several, strata without clusters, or an option out of range.

    Notes
    -----
    nTVD: arXiv 2604.17248, equations 2-5. p = (1 + b)/(1 + B): Phipson & Smyth 2010, doi:10.2202/1544-6115.1585.
    Estimate: `equivox.statistics.distance`. Interval: test inversion with cluster noise; its lower end is 0 wherever p
    is above 1 - confidence. Both are checked in validity/tables.md.

    Examples
    --------
    Six speakers of two groups. Group b names "chess" in 2 of 6 answers, group a in 5 of 6:

    >>> groups = ["a"] * 6 + ["b"] * 6
    >>> speakers = ["s1", "s1", "s2", "s2", "s3", "s3", "s4", "s4", "s5", "s5", "s6", "s6"]
    >>> answers = ["chess", "chess", "chess", "chess", "chess", "yoga"]
    >>> answers += ["chess", "yoga", "yoga", "yoga", "chess", "yoga"]
    >>> found = distribution_shift([[answer] for answer in answers], groups, clusters=speakers, min_count=1,
    ...                            rng=np.random.default_rng(1))
    >>> found.ntvd, found.exact_cluster, found.n_labellings, found.p_cluster
    (50.0, True, 20, 0.3)
    """
    joint = joint_shift(
        {"values": values},
        groups,
        clusters=clusters,
        strata=strata,
        blocks=blocks,
        items=items,
        min_count=min_count,
        n_resamples=n_resamples,
        confidence=confidence,
        rng=rng,
    )
    return joint.attributes["values"]


def joint_shift(
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
) -> JointShift:
    """Return the mean nTVD of several attributes of the same responses (the score of a task).

    Each permutation is applied to all attributes at once, so the mean has a null mean, p-values and an interval that
    allow for the dependence between attributes; they cannot be computed from the results of single attributes. The mean
    is over the attributes that are defined. An undefined attribute keeps its reason and is left out.

    Parameters
    ----------
    attributes
        The values of each attribute, all in the same order of responses: a mapping from name to column, a pandas
        DataFrame or a pyarrow Table. Columns as `values` in `distribution_shift`.
    groups, clusters, strata, blocks, items, min_count, n_resamples, confidence, rng
        As in `distribution_shift`.

    Returns
    -------
    JointShift
        `ntvd` is in percent and zero when all groups gave the same answers in every attribute. NaN with a reason when
        no attribute is defined.

    Raises
    ------
    UsageError
        As `distribution_shift`; also when there is no attribute.

    Examples
    --------
    >>> groups, speakers = ["a", "a", "b", "b"], ["s1", "s2", "s3", "s4"]
    >>> task = {"hobby": [["chess"], ["chess"], ["yoga"], ["yoga"]], "budget": [["low"]] * 4}
    >>> found = joint_shift(task, groups, clusters=speakers, min_count=1, rng=np.random.default_rng(1))
    >>> found.ntvd, found.defined, round(found.p_cluster, 3)
    (100.0, ('hobby',), 0.333)
    >>> found.attributes["budget"].undefined
    "every answer is the same value, 'low': this shows neither a difference nor fairness"
    """
    inputs.check_min_count(min_count)
    inputs.check_resamples(n_resamples)
    inputs.check_share(confidence, "confidence")
    columns = inputs.named_columns(attributes, "attributes")
    if not columns:
        raise UsageError("`attributes` is empty: name at least one attribute with its values")
    design = encode_design(groups, clusters, strata, blocks, items)
    n_responses = len(design.group_of_row)
    values, occurrences = {}, {}
    for name, column in columns.items():
        argument = "values" if list(columns) == ["values"] else f"attributes[{name!r}]"
        values[name] = inputs.values(column, argument)
        inputs.same_length("groups", n_responses, {argument: values[name].n_rows})
        occurrences[name] = encode_values(values[name], min_count)
    reasons = {name: _undefined(design, occurrences[name], min_count) for name in columns}
    defined = tuple(name for name in columns if reasons[name] is None)
    evidence = (
        draw_evidence({name: occurrences[name] for name in defined}, design, n_resamples, rng, confidence)
        if defined
        else None
    )
    of_items = p_of_values_within_items({name: values[name] for name in defined}, design, n_resamples, rng)
    shifts = {
        name: replace(
            _one(name, design, occurrences[name], reasons[name], evidence),
            p_items=of_items.get(name, math.nan),
        )
        for name in columns
    }
    mean = _mean(shifts, defined, design, evidence)
    removed = [shift.removed_share for shift in shifts.values()]
    return replace(
        mean,
        p_items=of_items.get("", math.nan),
        removed_share=max((own for own in removed if not math.isnan(own)), default=math.nan),
    )


def _undefined(design: Design, found: Occurrences, min_count: int) -> str | None:
    """Return in words why no distance can be computed; None if it can."""
    if len(design.groups) < 2:
        return f"only one group, {design.groups[0]!r}: a difference needs two"
    if found.n_total == 0:
        return "no response has a value"
    if not found.values:
        return f"no value is seen {min_count} times or more"
    if len(found.values) == 1:
        if not found.removed:
            return f"every answer is the same value, {found.values[0]!r}: this shows neither a difference nor fairness"
        return f"only one value, {found.values[0]!r}, is seen {min_count} times or more"
    if same := _same_in_all(found):
        return (
            f"every answer holds the same values, {', '.join(map(repr, same))}: this shows neither a difference "
            "nor fairness"
        )
    return design.lacks(found.rows, "no usable response", f"usable responses of all {len(design.groups)} groups")


def _same_in_all(found: Occurrences) -> tuple[str, ...]:
    """Return the values that every response with a value has, if none has any other; empty where responses differ."""
    rows = np.unique(found.rows)
    each, rest = divmod(len(found.codes), len(rows))
    if rest:
        return ()
    # Sorted within responses, a repeated row of different values can only be one response each.
    codes = found.codes[np.lexsort((found.codes, found.rows))].reshape(len(rows), each)
    if (codes != codes[0]).any():
        return ()
    return tuple(found.values[code] for code in codes[0])


def _least_p(cluster: Floats, exact: bool) -> tuple[str, ...]:
    """Return a warning if the clusters have so few permutations that no p can be 5 % or less."""
    if not exact or len(cluster) < 2:
        return ()
    least = n_extreme(cluster, float(np.nanmax(cluster))) / len(cluster)
    if least <= 0.05:
        return ()
    return (f"{len(cluster)} permutations of the clusters: the most extreme has p = {least:.2g}",)


def _one(
    name: str, design: Design, found: Occurrences, reason: str | None, evidence: Evidence | None
) -> DistributionShift:
    """Assemble the result of one attribute."""
    used, n_groups = np.unique(found.rows), len(design.groups)
    table = cross_count(design.group_of_row[found.rows], found.codes, (n_groups, len(found.values)))
    common: dict[str, Any] = {
        "n_responses": len(design.group_of_row),
        "n_used": len(used),
        "n_clusters": design.n_units(design.compared(used)),
        "groups": design.groups,
        "values": found.values,
        "removed_values": found.removed,
        "removed_share": sum(found.removed.values()) / found.n_total if found.n_total else math.nan,
        "undefined": reason,
    }
    if reason is not None or evidence is None:
        return DistributionShift(
            **common,
            by_group=np.full(table.shape, math.nan),
            deviations=np.full(table.shape, math.nan),
            notes=design.notes,
        )
    column = list(evidence.slices).index(name)
    by_group = table / table.sum(axis=1, keepdims=True)
    deviations = by_group - by_group.mean(axis=0)
    cluster = evidence.cluster[:, column]
    numbers = shift_numbers(evidence, [name], by_group, attainable_shift(len(found.values), n_groups))
    return DistributionShift(
        **common,
        **vars(numbers),
        by_group=by_group,
        deviations=deviations,
        null_response=evidence.response[:, column],
        null_cluster=cluster,
        exact_cluster=evidence.exact,
        n_labellings=evidence.n_labellings,
        notes=(*evidence.notes, *_least_p(cluster, evidence.exact)),
    )


def _mean(
    shifts: dict[str, DistributionShift], defined: tuple[str, ...], design: Design, evidence: Evidence | None
) -> JointShift:
    """Assemble the mean over the defined attributes."""
    n_responses = len(design.group_of_row)
    if evidence is None:
        reasons = "; ".join(f"{name}: {shift.undefined}" for name, shift in shifts.items())
        return JointShift(
            attributes=shifts,
            n_responses=n_responses,
            n_used=0,
            n_clusters=0,
            defined=(),
            undefined=f"no attribute is defined ({reasons})",
            notes=design.notes,
        )
    if len(defined) == 1:  # The mean over one attribute has the attribute's numbers; its intervals take long.
        numbers = {one.name: getattr(shifts[defined[0]], one.name) for one in fields(ShiftNumbers)}
    else:
        by_group = np.concatenate([shifts[name].by_group for name in defined], axis=1)
        largest = float(np.mean([shifts[name].attainable_max for name in defined]))
        numbers = vars(shift_numbers(evidence, defined, by_group, largest))
    cluster = evidence.cluster[:, : len(defined)].mean(axis=1)
    left_out = [name for name in shifts if name not in defined]
    notes = (*evidence.notes, *_least_p(cluster, evidence.exact))
    if left_out:
        notes = (*notes, f"left out as undefined: {', '.join(left_out)}")
    return JointShift(
        attributes=shifts,
        **numbers,
        n_responses=n_responses,
        n_used=evidence.n_used,
        n_clusters=evidence.n_clusters,
        defined=defined,
        null_response=evidence.response.mean(axis=1),
        null_cluster=cluster,
        exact_cluster=evidence.exact,
        n_labellings=evidence.n_labellings,
        notes=notes,
    )
