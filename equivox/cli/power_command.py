"""`equivox power`: the shift that a design can detect, before anything is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from equivox.core.errors import RequestError, nearest
from equivox.core.task import Task
from equivox.run.design import Design, task_design


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Options of the command line; None: the number in the task's design."""

    task: str | None
    data: str | None
    shift: float | None
    clusters: int | None
    responses: int | None
    groups: int | None
    values: int | None
    correlation: float
    level: float
    power: float
    simulations: int
    seed: int


OPEN_VALUES = 20
"""The assumed number of distinct values of an attribute without a closed choice."""


def power(wish: Wish) -> int:
    """Print the smallest detectable shift per number of values, or the clusters that a given shift needs."""
    import numpy as np

    from equivox.cli.show import console
    from equivox.statistics import minimum_detectable_shift, required_clusters

    design, attributes = _design(wish)
    out, name = console(), _measure()
    out.print(
        f"{design.n_clusters} clusters x {design.responses_per_cluster} responses, {design.n_groups} groups "
        f"({design.source}); level {wish.level:g}, power {wish.power:g}, correlation within a cluster "
        f"{wish.correlation:g}, {wish.simulations} simulated experiments each",
        markup=False,
    )
    for n_values, names in sorted(attributes.items()):
        common = {
            "responses_per_cluster": design.responses_per_cluster,
            "n_values": n_values,
            "n_groups": design.n_groups,
            "alpha": wish.level,
            "power": wish.power,
            "cluster_correlation": wish.correlation,
            "n_simulations": wish.simulations,
            "rng": np.random.default_rng(wish.seed),
        }
        if wish.shift is None:
            found = minimum_detectable_shift(n_clusters=design.n_clusters, **common)  # type: ignore[arg-type]
            answer = found.undefined or f"{name} {found.shift:.2f} (± {found.mc_error:.2f} Monte Carlo) can be detected"
        else:
            needed = required_clusters(shift=wish.shift, **common)  # type: ignore[arg-type]
            answer = needed.undefined or (
                f"{needed.n_clusters} clusters (± {needed.mc_error:.1f} Monte Carlo) detect {name} {wish.shift:g}"
            )
        out.print(f"  {n_values:>3} values: {answer}   {', '.join(names)}", markup=False)
    return 0


def _design(wish: Wish) -> tuple[Design, dict[int, list[str]]]:
    attributes: dict[int, list[str]] = {}
    if wish.task is not None:
        task = _one_task(wish.task)
        design = task_design(task, wish.data)
        for attribute in task.attributes:
            if attribute.role == "outcome":
                n_values = wish.values or len(attribute.options) or OPEN_VALUES
                attributes.setdefault(n_values, []).append(attribute.name)
    elif None in (wish.clusters, wish.responses, wish.groups):
        raise RequestError("give `--task`, or all of --clusters, --responses and --groups")
    else:
        design = Design(n_clusters=0, responses_per_cluster=0, n_groups=0, source="as given")
        attributes = {wish.values or OPEN_VALUES: []}
    return (
        replace(
            design,
            n_clusters=wish.clusters or design.n_clusters,
            responses_per_cluster=wish.responses or design.responses_per_cluster,
            n_groups=wish.groups or design.n_groups,
        ),
        attributes,
    )


def _one_task(name: str) -> Task:
    from equivox.tasks.registry import resolve_tasks

    in_file = re.fullmatch(r"(.+\.(?:ya?ml|py)):([^:/]+)", name)
    tasks = resolve_tasks(in_file[1] if in_file else name)
    known = [task.name.partition(":")[2] or task.name for task in tasks]
    if in_file:
        tasks = [task for task, short in zip(tasks, known, strict=True) if in_file[2] in (short, task.name)]
        if not tasks:
            raise RequestError(
                f"{in_file[1]} has no task {in_file[2]!r}{nearest(in_file[2], known)}; it has {', '.join(known)}"
            )
    if len(tasks) != 1:
        example = f"{name}:{known[0]}" if name.endswith((".yaml", ".yml", ".py")) else tasks[0].name
        raise RequestError(f"`--task` names {len(tasks)} tasks, got {name!r}; name one, for example {example}")
    if not any(measure.power for measure in tasks[0].metric.measures):
        raise RequestError(f"`power` estimates what {_measure()} can detect, and {name} is not scored by {_measure()}")
    return tasks[0]


def _measure() -> str:
    """Return the name of the measure that `power` simulates."""
    from equivox.tasks.registry import builtin_tasks

    measures = (measure for task in builtin_tasks().values() for measure in task.metric.measures)
    return next(measure.name for measure in measures if measure.power)
