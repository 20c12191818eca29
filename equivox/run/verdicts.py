"""The outcome of every score of a run, decided once when the run is scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from equivox.core.lazy import np
from equivox.core.notes import remark
from equivox.core.outcomes import compute_rule_of_three, decide_outcome
from equivox.core.samples import Samples
from equivox.core.scores import UNKNOWN, Outcome, Score, ScoringOptions
from equivox.core.task import Task

_UNKNOWN: dict[str, Any] = {"value": math.nan, "estimate": math.nan, "ci": UNKNOWN}


def add_outcomes(
    scores: Sequence[Score],
    tasks: Sequence[Task],
    samples: Mapping[str, Samples],
    options: ScoringOptions,
    cut: Mapping[str, str],
) -> list[Score]:
    """Return the scores of a run, which have their q, with `outcome` and `by_group`.

    `cut` says of a task why its prompts were not read whole. Without a difference its scores then have no result: the
    person may stand in the part that nobody read.

    A constant answer, and a perfectly even result, have no spread and no interval. The rule of three over units bounds
    what they leave possible: 40 pairs bound a gap at 7.5 points.
    """
    declared = {task.name: task for task in tasks}
    of_subset = {(s.task, s.condition, s.metric, s.attribute, s.subset): s.value for s in scores}
    decided = []
    for score in scores:
        task, own = declared.get(score.task), samples.get(score.task)
        if not score.by_group and own is not None and not score.subset:
            score = replace(score, by_group=_read_breakdown(score, own, of_subset))
        units = 0
        if task is not None and own is not None and is_constant(score, task, own, options):
            units = _count_units(own)
        elif score.defined and not (math.isnan(score.p) or score.found) and math.isnan(score.ci[1]):
            units = score.n_units if score.value == score.null_value else 0
        if units:
            score = _bound_by_rule_of_three(score, units, options.look_for)
        else:
            score = replace(score, outcome=decide_outcome(score, options.look_for))
        if (reason := cut.get(score.task)) and score.outcome in ("no_difference", "too_few_data"):
            score = replace(score, outcome="no_result", undefined_reason=remark(reason), **_UNKNOWN)
        decided.append(score)
    return decided


def is_constant(score: Score, task: Task, samples: Samples, options: ScoringOptions) -> bool:
    """Return whether a score is undefined because every usable answer says the same."""
    if score.defined or score.subset or score.role not in ("outcome", "echo") or len(samples.groups.names) < 2:
        return False
    if score.coverage.shortfall(options.min_coverage) is not None:
        return False
    named = task.outcomes if score.attribute is None else [a for a in task.attributes if a.name == score.attribute]
    for attribute in named:
        if attribute.number is not None:
            numbers = samples.numbers(attribute)
            if not numbers.usable.any() or np.ptp(numbers.stated[numbers.usable]):
                return False
            continue
        values = samples.parsed_values(attribute.name)
        n_values = len(np.unique(values.codes))
        if not n_values or len(values.codes) != n_values * len(np.unique(values.rows)):
            return False
    return bool(named)


def _bound_by_rule_of_three(score: Score, units: int, look_for: float) -> Score:
    """Return a score without spread with its outcome, and with an interval where its unit is percent."""
    bound = compute_rule_of_three(units)
    outcome: Outcome = "no_difference" if bound < look_for else "too_few_data"
    if not score.unit.startswith("percent"):
        return replace(score, outcome=outcome)
    # A share of 50 moves by half of the share of units that are one-sided.
    ends = (50 - bound / 2, 50 + bound / 2) if score.null_value == 50 else (0.0, bound)
    return replace(score, outcome=outcome, ci=ends)


def _count_units(samples: Samples) -> int:
    """Return the units with an annotated answer, in the group that has fewest."""
    parsed = samples.has_status("parsed")
    groups, clusters = samples.groups.codes[parsed], samples.clusters.codes[parsed]
    return min(len(np.unique(clusters[groups == code])) for code in range(len(samples.groups.names)))


def _read_breakdown(
    score: Score, samples: Samples, of_subset: Mapping[tuple[str, str, str, str | None, str], float]
) -> dict[str, float]:
    """Return the values of a score's own breakdown by group; {} where it has none."""
    keys = {
        group: (score.task, score.condition, score.metric, score.attribute, f"{score.dimension}={group}")
        for group in samples.groups.names
    }
    found = {group: of_subset.get(key, math.nan) for group, key in keys.items()}
    return found if all(map(math.isfinite, found.values())) else {}
