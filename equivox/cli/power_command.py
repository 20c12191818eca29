"""`equivox power`: the shift that a design can detect, before anything is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from annotated_types import Ge

from equivox.cli.output import echo
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import np

if TYPE_CHECKING:
    from equivox.core.task import Task
    from equivox.run.design import Design


OPEN_VALUES = 20
"""The assumed number of distinct values of an attribute without a closed choice."""


@dataclass(frozen=True, kw_only=True)
class _Assumed:
    """What a user states of a design; a number that is None is the task's.

    `correlation` is that within a cluster beyond its group, `level` that of the test, and `power` the share of
    experiments that should find the shift.
    """

    clusters: Annotated[int, Ge(2)] | None = None
    responses: Annotated[int, Ge(1)] | None = None
    groups: Annotated[int, Ge(2)] | None = None
    values: Annotated[int, Ge(2)] | None = None
    correlation: float = 0.02
    level: float = 0.05
    power: float = 0.8
    simulations: Annotated[int, Ge(200)] = 1000
    seed: Annotated[int, Ge(0)] = 0


def power(
    task: Annotated[
        str | None, typer.Option(help="Use the design of this task, such as vibe_gender:story or voices.yaml:story.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Count units in this corpus, as for `run`; default: published numbers.")
    ] = None,
    shift: Annotated[float | None, typer.Option(help="Estimate how many units detect this gap, in percent.")] = None,
    assumed: Annotated[
        str | None,
        typer.Option(
            "--design",
            metavar="KEY=VALUE,…",
            help="Change the design: clusters, responses per cluster, groups, values per attribute, correlation=.02, "
            "level=.05, power=.8, simulations=1000, seed.",
        ),
    ] = None,
) -> int:
    """Estimate the smallest gap that a test can detect, or the units that a gap needs.

    For a number, such as a salary, the gap is a difference of means.
    """
    from equivox.core.fields import checked_fields, parse_model_args

    typed = {} if assumed is None else parse_model_args(assumed, what="design")
    given = _Assumed(**checked_fields(_Assumed, typed, what="design"))
    asked = None if task is None else _one_task(task)
    design, attributes = _design_of(asked, data, given)
    number = next((a for a in asked.attributes if a.number is not None), None) if asked else None
    if number is not None:
        lines = [f"{_of_means(design, given, shift)}   {number.name}"]
        lines.append("SD: the standard deviation of single answers within a group")
    else:
        lines = [
            f"{n_values:>3} values: {_of_values(design, given, shift, n_values)}   {', '.join(names)}"
            for n_values, names in sorted(attributes.items())
        ]
    echo(
        f"{design.n_clusters} clusters{', each in every group,' if design.crossed else ''} x "
        f"{design.responses_per_cluster} responses, {design.n_groups} groups "
        f"({design.source}); level {given.level:g}, power {given.power:g}, correlation within a cluster "
        f"{given.correlation:g}, {given.simulations} simulated experiments each"
    )
    for line in lines:
        echo(f"  {line}")
    return 0


def _common(design: Design, given: _Assumed) -> dict[str, Any]:
    """Return what is the same for values and for numbers; the random numbers begin anew for each."""
    return {
        "responses_per_cluster": design.responses_per_cluster,
        "n_groups": design.n_groups,
        "crossed": design.crossed,
        "alpha": given.level,
        "power": given.power,
        "cluster_correlation": given.correlation,
        "n_simulations": given.simulations,
        "rng": np.random.default_rng(given.seed),
    }


def _of_values(design: Design, given: _Assumed, shift: float | None, n_values: int) -> str:
    """Return the answer for attributes with so many values."""
    from equivox.statistics import minimum_detectable_shift, required_clusters

    common, name = {**_common(design, given), "n_values": n_values}, _measure()
    if shift is None:
        found = minimum_detectable_shift(n_clusters=design.n_clusters, **common)
        return found.undefined or f"{name} {found.size:.2f} (± {found.mc_error:.2f} Monte Carlo) can be detected"
    needed = required_clusters(shift=shift, **common)
    return needed.undefined or (
        f"{needed.n_clusters} clusters (± {needed.mc_error:.1f} Monte Carlo) detect {name} {shift:g}"
    )


def _of_means(design: Design, given: _Assumed, shift: float | None) -> str:
    """Return the answer for a number: a difference of means, in standard deviations and as an nTVD."""
    from equivox.core.detectable import in_sd, ntvd_of
    from equivox.statistics import clusters_for_difference, minimum_detectable_difference

    common = _common(design, given)
    if shift is None:
        found = minimum_detectable_difference(n_clusters=design.n_clusters, **common)
        return found.undefined or (
            f"a mean difference of {found.size:.2f} SD (± {found.mc_error:.2f} Monte Carlo) can be detected, "
            f"which sets normal distributions {ntvd_of(found.size):.1f} % apart"
        )
    if not 0.0 < shift < 100.0:
        raise UsageError(f"`--shift` is {shift:g}: use a number above 0 and below 100, in percent")
    size = in_sd(shift)
    needed = clusters_for_difference(difference=size, **common)
    return needed.undefined or (
        f"{needed.n_clusters} clusters (± {needed.mc_error:.1f} Monte Carlo) detect a mean difference of "
        f"{size:.2f} SD, which sets normal distributions {shift:g} % apart"
    )


def _design_of(task: Task | None, data: str | None, given: _Assumed) -> tuple[Design, dict[int, list[str]]]:
    """Return the design of a task with what is given in its place, and its attributes by their number of values."""
    from equivox.run.design import Design, task_design

    attributes: dict[int, list[str]] = {}
    if task is not None:
        design = task_design(task, data)
        for attribute in task.outcomes:
            n_values = given.values or len(attribute.options) or OPEN_VALUES
            attributes.setdefault(n_values, []).append(attribute.name)
    elif None in (given.clusters, given.responses, given.groups):
        raise UsageError("give `--task`, or a `--design` with clusters, responses and groups")
    else:
        design = Design(n_clusters=0, responses_per_cluster=0, n_groups=0, source="as given")
        attributes[given.values or OPEN_VALUES] = []
    return replace(
        design,
        n_clusters=given.clusters or design.n_clusters,
        responses_per_cluster=given.responses or design.responses_per_cluster,
        n_groups=given.groups or design.n_groups,
    ), attributes


def _one_task(name: str) -> Task:
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
        raise UsageError(f"`--task` names {len(tasks)} tasks, got {name!r}; name one, for example {example}")
    if not any(measure.power for measure in tasks[0].metric.measures):
        raise UsageError(
            f"`power` estimates what {_measure()} and differences of means can detect, and {name} is scored by neither"
        )
    return tasks[0]


def _measure() -> str:
    """Return the name of the measure that `power` simulates."""
    from equivox.tasks.registry import builtin_tasks

    measures = (measure for task in builtin_tasks().values() for measure in task.metric.measures)
    return next(measure.name for measure in measures if measure.power)
