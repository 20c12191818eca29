"""`equivox tasks plan`: the gap that a design can show, before anything is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le

from equivox.cli.output import echo
from equivox.core.errors import UsageError, nearest

if TYPE_CHECKING:
    from equivox.core.task import Task
    from equivox.statistics.planning import Plan

OPEN_VALUES = 20
"""The assumed number of distinct values of an attribute without a closed choice."""


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """What a user states of a design; a number that is None is the task's."""

    units: Annotated[int, Ge(2)] | None = None
    answers: Annotated[int, Ge(1)] | None = None
    groups: Annotated[int, Ge(2)] | None = None
    values: Annotated[int, Ge(2)] | None = None
    correlation: Annotated[float, Ge(0), Le(1)] = 0.02


def print_plan(name: str | None, data: str | None, gap: float | None, design: str | None) -> None:
    """Print the smallest gap that a design can show, or the units that `gap` (percent) needs.

    For a number, such as a salary, the gap is a difference of means.
    """
    from equivox.core.fields import read_fields
    from equivox.core.yaml_files import parse_model_args

    if gap is not None and not 0 < gap < 100:
        raise UsageError(f"`--gap` is {gap:g}: use a number above 0 and below 100, in percent")
    typed = {} if design is None else parse_model_args(design, what="design")
    given = read_fields(DesignOptions, typed, what="design")
    task = None if name is None else _find_task(name)
    echo("\n".join(_write_plans(task, data, gap, given)))


def _write_plans(task: Task | None, data: str | None, gap: float | None, given: DesignOptions) -> Iterator[str]:
    from equivox.run.design import Design, task_design
    from equivox.statistics.planning import Plan

    if task is not None:
        known = task_design(task, data)
    elif None in (given.units, given.answers, given.groups):
        raise UsageError("`tasks plan` needs a task, or a --design with units, answers and groups")
    else:
        known = Design(n_clusters=0, responses_per_cluster=0, n_groups=0, source="as given")
    units, answers = given.units or known.n_clusters, given.answers or known.responses_per_cluster
    groups = given.groups or known.n_groups
    every = ", each in every group" if known.crossed else ""
    yield f"{units} units{every}, {answers} answers each, {groups} groups ({known.source})"
    attributes: dict[int | None, list[str]] = {} if task else {given.values or OPEN_VALUES: []}
    for attribute in task.outcomes if task else ():
        n_values = None if attribute.number else given.values or len(attribute.options) or OPEN_VALUES
        attributes.setdefault(n_values, []).append(attribute.name)
    for n_values, names in attributes.items():
        plan = Plan(
            units=units, answers=answers, groups=groups, values=n_values, correlation=given.correlation,
            crossed=known.crossed,
        )  # fmt: skip
        yield f"  {_write_plan(plan, gap)}   {', '.join(names)}".rstrip()


def _write_plan(plan: Plan, gap: float | None) -> str:
    from equivox.core.outcomes import compute_sd_of_ntvd
    from equivox.statistics.planning import compute_visible_gap, count_units

    if plan.values is None:
        if gap is None:
            return f"a difference of {compute_visible_gap(plan):.2f} SD can be shown"
        size = compute_sd_of_ntvd(gap)
        return f"{count_units(plan, size):,} units show a difference of {size:.2f} SD ({gap:g} points)"
    what = f"{plan.values} values: "
    if gap is not None:
        return f"{what}{count_units(plan, gap):,} units show a gap of {gap:g} points"
    smallest = compute_visible_gap(plan)
    return what + (f"a gap of {smallest:.1f} points can be shown" if smallest == smallest else "no gap can be shown")


def _find_task(name: str) -> Task:
    from equivox.tasks.registry import resolve_tasks

    in_file = re.fullmatch(r"(.+\.(?:ya?ml|py)):([^:/]+)", name)
    tasks = resolve_tasks(in_file[1] if in_file else name)
    known = [task.name.partition(":")[2] or task.name for task in tasks]
    if in_file:
        tasks = [task for task, short in zip(tasks, known, strict=True) if in_file[2] in (short, task.name)]
        if not tasks:
            raise UsageError(
                f"{in_file[1]} has no task {in_file[2]!r}{nearest(in_file[2], known)}; it has {', '.join(known)}"
            )
    if len(tasks) != 1:
        example = f"{name}:{known[0]}" if name.endswith((".yaml", ".yml", ".py")) else tasks[0].name
        raise UsageError(f"`tasks plan` takes one task, got {len(tasks)} in {name!r}; name one, for example {example}")
    if not any(measure.power for measure in tasks[0].metric.measures):
        raise UsageError(f"`tasks plan` knows nTVD and differences of means, and {name} is scored by neither")
    return tasks[0]
