"""Move tasks to another corpus than they declare: to the one whose build `--data` names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.task import DataSource, Task
from equivox.dataset_builders.base import CorpusFacts
from equivox.dataset_builders.corpus import BUILD, SAMPLE, media_of, read_build
from equivox.dataset_builders.opening import openers
from equivox.dataset_builders.parquet import facts_of

COMMON = ("text", "speaker")
"""The columns that every built corpus has."""


def asked_of(data: str | None, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks on the corpus whose build is the folder `data`, under names that say so.

    The corpus determines the cluster and what is held equal; of the blocks and items of a task those stay that are
    columns of it. Nothing changes for a folder of several builds, for tasks on that very corpus, on a custom table, and
    for tasks whose corpus has an opener of its own.

    Raises RequestError for a task that sends audio where the corpus holds images, and the other way round, and for one
    whose prompt or metric needs a column that the corpus lacks.
    """
    if data is None or data == SAMPLE or not (Path(data) / BUILD).is_file():
        return list(tasks)
    folder = Path(data)
    facts, media = facts_of(read_build(folder)), media_of(folder)
    fixed = openers()
    return [
        task
        if task.data.corpus == facts.name or task.data.table or (task.data.builder or task.data.corpus) in fixed
        else _moved(task, facts, media)
        for task in tasks
    ]


def moved_tasks(tasks: Sequence[Task]) -> list[str]:
    """Return the names of the tasks that are asked of another corpus than declared."""
    return [task.name for task in tasks if _ending(task.data.corpus) in f"{task.family}_"]


def _ending(corpus: str) -> str:
    return f"_on_{corpus}_"


def _moved(task: Task, facts: CorpusFacts, media: str | None) -> Task:
    sent = {medium.kind for medium in task.media}
    if sent and sent != {media}:
        holds = {"audio": "recordings", "image": "images"}.get(str(media), "neither recordings nor images")
        raise RequestError(
            f"{task.name} sends {', '.join(sorted(sent))}, but the corpus {facts.name} holds {holds}; choose a "
            "task that sends these (`equivox tasks`)"
        )
    columns = {*COMMON, *(column.name for column in facts.columns)}
    if lacking := [name for name in task.metadata if name not in columns]:
        raise RequestError(
            f"{task.name} needs the column {lacking[0]!r}, which the corpus {facts.name} lacks; it has: "
            f"{', '.join(sorted(columns))}"
        )
    family, _, rest = task.name.partition(":")
    return replace(
        task,
        name=f"{family}{_ending(facts.name)[:-1]}:{rest}",
        card=_card(task, facts),
        data=DataSource(corpus=facts.name, where=task.data.where),
        cluster=facts.cluster,
        strata=facts.strata,
        blocks=tuple(name for name in task.blocks if name in columns),
        items=tuple(name for name in task.items if name in columns),
    )


def _card(task: Task, facts: CorpusFacts) -> str:
    """Return the card of a task, with the limits of the corpus that it now uses in place of its own."""
    limits = "".join(f"\n            {line}" for line in facts.cannot_say)
    return (
        f"{task.card.rstrip()}\nAsked of:   {facts.title} ({facts.licence}) instead of the data above. It cannot say:"
        f"{limits or ' nothing is stated.'}\n"
    )
