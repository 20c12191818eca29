"""Scores a task by the distance between its groups' answer distributions.

One score per attribute, one for the task (the mean over its outcome attributes, tested jointly), and one for
refusals. Echo attributes are scored and never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equivox.core.coverage import Coverage
from equivox.core.scores import NAN, Mover, Row, Score, Scored, ScoringTable, count_coverage, effective_min_count
from equivox.core.task import Attribute, Task, digest

if TYPE_CHECKING:
    from equivox.statistics import DistributionShift, JointShift

_DESCRIPTION = {
    "name": "nTVD",
    "unit": "percent of the largest possible distance",
    "zero_means": "every group gets the same distribution of answers",
}


def score_distribution_shift(task: Task, table: ScoringTable) -> Scored:
    """Return the nTVD scores of one task: the task itself first, then its attributes, then refusals.

    The table `values` beside them holds how often each group gets each value, and its share in percent, of all values
    that the attribute's score compares; shares are there for defined and undefined scores alike.

    A score is NaN with its reason when any group's usable share lies below the coverage floor, when there is nothing
    to compare (one value, one group), or, for the task, when no outcome attribute is defined. Randomness comes from
    the options' seed and the task's name alone, so the same table always gives the same scores.
    """
    whole, outcomes = _joint(task, table, [a for a in task.attributes if a.role == "outcome"])
    echoes = [a for a in task.attributes if a.role == "echo"]
    echo_scores = _joint(task, table, echoes)[1] if echoes else []
    refusals = [_refusal(task, table, a) for a in task.attributes if a.role == "refusal"]
    scores = [whole, *outcomes, *echo_scores, *refusals]
    min_counts = {score.attribute: score.min_count for score in scores}
    return Scored(scores, {"values": _value_shares(task, table, min_counts)})


def _value_shares(
    task: Task, table: ScoringTable, min_counts: Mapping[str | None, int]
) -> list[dict[str, str | int | float]]:
    """Return the share of each value within each group: what Fig. 2 of the paper draws."""
    shares: list[dict[str, str | int | float]] = []
    for attribute in task.attributes:
        counts = Counter((row.group, value) for row in table.rows for value in row.values.get(attribute.name, ()))
        overall: Counter[str] = Counter()
        for (_, value), n in counts.items():
            overall[value] += n
        kept = [value for value, n in overall.most_common() if n >= min_counts[attribute.name]]
        for group in sorted({group for group, _ in counts}):
            total = sum(counts[group, value] for value in kept)
            shares += [
                {
                    "attribute": attribute.name,
                    "role": attribute.role,
                    "value": value,
                    "group": group,
                    "n": counts[group, value],
                    "percent": 100 * counts[group, value] / total if total else NAN,
                }
                for value in kept
            ]
    return shares


def _joint(task: Task, table: ScoringTable, attributes: Sequence[Attribute]) -> tuple[Score, list[Score]]:
    from equivox.statistics import joint_shift

    options, rows = table.options, table.rows
    min_count = effective_min_count(options, len(rows))
    coverages = {a.name: count_coverage(rows, [a.name]) for a in attributes}
    short = {name: coverage.shortfall(options.min_coverage) for name, coverage in coverages.items()}
    used = [row for row in rows if row.status == "parsed"]
    enough = [a.name for a in attributes if short[a.name] is None and coverages[a.name].used]
    joint: JointShift | None = None
    if enough:
        joint = joint_shift(
            {name: [list(row.values.get(name, ())) for row in used] for name in enough},
            [row.group for row in used],
            **_design(task, table, used),
            min_count=min_count,
        )
    shifts = joint.attributes if joint else {}
    parts = [
        _attribute_score(task, a, rows, min_count, coverages[a.name], short[a.name], shifts.get(a.name))
        for a in attributes
    ]
    coverage = count_coverage(rows, [a.name for a in attributes])
    reason = coverage.shortfall(options.min_coverage) or _task_reason(parts, joint)
    numbers = _numbers(joint) if joint is not None and reason is None else {}
    # Each attribute's worst case can come true by itself, so their means bound the mean of what the task averages.
    averaged = [part for part in parts if joint is None or not joint.defined or part.attribute in joint.defined]
    whole = Score(
        **_identity(task, None, attributes[0].role),
        **numbers,
        worst_low=sum(part.worst_low for part in averaged) / len(averaged),
        worst_high=sum(part.worst_high for part in averaged) / len(averaged),
        min_count=min_count,
        parts=joint.defined if joint else (),
        n_parts=len(attributes),
        coverage=coverage,
        undefined=reason,
    )
    return whole, parts


def _task_reason(parts: Sequence[Score], joint: JointShift | None) -> str | None:
    if joint is not None and joint.undefined is None:
        return None
    return "no attribute is defined: " + "; ".join(f"{part.attribute}: {part.undefined}" for part in parts)


def _attribute_score(
    task: Task,
    attribute: Attribute,
    rows: Sequence[Row],
    min_count: int,
    coverage: Coverage,
    shortfall: str | None,
    shift: DistributionShift | None,
) -> Score:
    reason = shortfall or (shift.undefined if shift else "no response could be used")
    defined = shift if reason is None else None
    worst_low, worst_high = _worst_case(rows, attribute, coverage, shift)
    return Score(
        **_identity(task, attribute.name, attribute.role),
        **(_numbers(defined) if defined else {}),
        worst_low=worst_low,
        worst_high=worst_high,
        min_count=min_count,
        removed_share=shift.removed_share if shift else float("nan"),
        mover=_mover(defined) if defined else None,
        coverage=coverage,
        undefined=reason,
    )


def _refusal(task: Task, table: ScoringTable, attribute: Attribute) -> Score:
    from equivox.statistics import distribution_shift

    coverage = count_coverage(table.rows, [attribute.name], refusal_counts=True)
    used = [row for row in table.rows if row.values.get(attribute.name)]
    reason = coverage.shortfall(table.options.min_coverage) or (None if used else "no response could be used")
    if reason is None and not any("yes" in row.values[attribute.name] for row in used):
        reason = "no response declines: there are no refusals to compare"
    shift = None
    if reason is None:
        # Every answer counts: a handful of refusals is exactly what is looked for, so nothing is filtered.
        shift = distribution_shift(
            [list(row.values[attribute.name]) for row in used],
            [row.group for row in used],
            **_design(task, table, used),
            min_count=1,
        )
    return _attribute_score(task, attribute, table.rows, 1, coverage, reason, shift)


def _design(task: Task, table: ScoringTable, rows: Sequence[Row]) -> dict[str, Any]:
    import numpy as np

    seed = int(digest([table.options.seed, task.name, task.arm])[:16], 16)
    return {
        "clusters": [row.cluster for row in rows],
        "strata": [row.stratum for row in rows] if task.strata else None,
        "n_resamples": table.options.n_resamples,
        "confidence": table.options.confidence,
        "rng": np.random.default_rng(seed),
    }


def _identity(task: Task, attribute: str | None, role: Any) -> dict[str, Any]:
    named = {"task": task.name, "arm": task.arm, "dimension": task.dimension, "attribute": attribute, "role": role}
    return {**named, **_DESCRIPTION}


def _numbers(shift: DistributionShift | JointShift) -> dict[str, Any]:
    return {
        "value": shift.ntvd,
        "ceiling": shift.ceiling,
        "floor": shift.floor,
        "excess": shift.excess,
        "ci_low": shift.ci_low,
        "ci_high": shift.ci_high,
        "p_paper": shift.p_paper,
        "p_cluster": shift.p_cluster,
        "n_clusters": shift.n_clusters,
        "notes": shift.notes,
    }


def _worst_case(
    rows: Sequence[Row], attribute: Attribute, coverage: Coverage, shift: DistributionShift | None
) -> tuple[float, float]:
    """Return the least and largest nTVD that the missing responses could have made; NaN when nothing is known."""
    from equivox.statistics import ntvd_bounds

    groups = list(coverage.requested_by_group)
    counts = Counter(
        (row.group, value)
        for row in rows
        for value in row.values.get(attribute.name, ())
        if shift is None or not shift.values or value in shift.values
    )
    if not counts or len(groups) < 2:
        return NAN, NAN
    values = sorted({value for _, value in counts})
    missing = [attribute.count * (coverage.requested_by_group[g] - coverage.used_by_group[g]) for g in groups]
    known = {group for group, _ in counts}
    if any(group not in known and not lost for group, lost in zip(groups, missing, strict=True)):
        # All that a group answered was too rare to be compared: nothing bounds its distance from the others.
        return NAN, NAN
    bounds = ntvd_bounds([[counts[g, value] for value in values] for g in groups], missing)
    return bounds.low, bounds.high


def _mover(shift: DistributionShift) -> Mover:
    shares = 100 * shift.by_group
    value = int((shares.max(axis=0) - shares.min(axis=0)).argmax())
    high, low = int(shares[:, value].argmax()), int(shares[:, value].argmin())
    return Mover(
        value=shift.values[value],
        high_group=shift.groups[high],
        high_share=float(shares[high, value]),
        low_group=shift.groups[low],
        low_share=float(shares[low, value]),
    )
