"""The corpus that a task is asked of, and its design there: the numbers of clusters, responses and groups.

`--data` may name another corpus than a task declares: the one whose build it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np, pa
from equivox.core.samples import Samples
from equivox.core.task import DataSource, Task
from equivox.dataset_builders.base import CorpusFacts
from equivox.dataset_builders.corpus import BUILD, SAMPLE, media_of, read_build
from equivox.dataset_builders.opening import open_corpus, openers

COMMON = ("text", "speaker")
"""The columns that every built corpus has."""


def asked_of(data: str | None, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks on the corpus whose build is the folder `data`, under names that say so.

    The corpus determines the cluster and what is held equal; of the blocks and items of a task those stay that are
    columns of it. Nothing changes for a folder of several builds, for tasks on that very corpus, on a custom table, and
    for tasks whose corpus has an opener of its own.

    Raises UsageError for a task that sends audio where the corpus holds images, and the other way round, and for one
    whose prompt or metric needs a column that the corpus lacks.
    """
    if data is None or data == SAMPLE or not (Path(data) / BUILD).is_file():
        return list(tasks)
    folder = Path(data)
    facts, media = CorpusFacts.of(read_build(folder)["facts"]), media_of(folder)
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
        raise UsageError(
            f"{task.name} sends {', '.join(sorted(sent))}, but the corpus {facts.name} holds {holds}; choose a "
            "task that sends these (`equivox tasks`)"
        )
    columns = {*COMMON, *(column.name for column in facts.columns)}
    if lacking := [name for name in task.metadata if name not in columns]:
        raise UsageError(
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


@dataclass(frozen=True, kw_only=True)
class Design:
    """The numbers that determine which difference a task can detect; `source` says where they come from.

    Of a corpus, samples are counted beside which every group has one in what is held equal: others are not compared.
    `crossed` says that each cluster is in several groups; its responses are those in all of them together.
    """

    n_clusters: int
    responses_per_cluster: int
    n_groups: int
    source: str
    crossed: bool = False


def task_design(task: Task, data: str | None = None) -> Design:
    """Return the design of `task` on the corpus found through `data`, or as published when `data` is None.

    Responses per cluster are the mean, rounded down. Raises UsageError for a corpus without published numbers.
    """
    if data is not None or task.data.table is not None:
        return _from_corpus(task, data)
    published = _published(task)
    groups = {"gender": 2 if {"male", "female"} <= set(published) else None}.get(
        task.dimension, published.get(f"{task.dimension}s")
    )
    clips = published_items(task)
    if not clips or groups is None or "speakers" not in published:
        raise UsageError(
            f"the sizes of {task.data.corpus} by {task.dimension} are not published; give `--data`, or "
            "--design clusters=…,responses=…,groups=…"
        )
    return Design(
        n_clusters=published["speakers"],
        responses_per_cluster=clips // published["speakers"] * task.sampling.repeats,
        n_groups=groups,
        source=f"{task.data.corpus} as published",
    )


def published_items(task: Task) -> int | None:
    """Return the published number of samples in the corpus of `task`; None if it is not known."""
    published = _published(task)
    counted = published.get("clips") or published.get("sentences", 0) * published.get("speakers", 0)
    part = next((published.get(f"{column}={value}") for column, value in task.data.where.items()), None)
    return part or counted or published.get(f"{task.dimension} instances")


def _published(task: Task) -> Mapping[str, int]:
    from equivox.dataset_builders import builders

    # The number for a part of a corpus (`genres_cs`) is published with the whole corpus.
    names = (task.data.corpus, task.data.corpus.rpartition("_")[0])
    known = builders()
    return next((known[name].FACTS.published for name in names if name in known), {})


def compared_rows(task: Task, plan: pa.Table) -> NDArray[np.int64]:
    """Return the rows of a task's plan beside which every group has one in what is held equal: others say nothing."""
    from equivox.statistics import build_design

    asked = Samples(plan)
    return build_design(asked.groups, **asked.design(strata=bool(task.strata))).find_compared(np.arange(len(plan)))


def _from_corpus(task: Task, data: str | None) -> Design:
    from equivox.engines import EngineIdentity
    from equivox.run.plan import make_plan

    (task,) = asked_of(data, [task])
    corpus = open_corpus(task.data, data)
    nobody = EngineIdentity(engine="none", model="none", revision="")
    plan = make_plan([task], {task.data.corpus: corpus}, nobody).table
    compared = compared_rows(task, plan)
    if not len(compared):
        raise UsageError(
            f"{task.name} holds {', '.join((*task.strata, *task.blocks))} equal, but no value has samples of "
            "every group, so nothing can be compared; choose other strata"
        )
    plan = plan.take(pa.array(compared))
    n_clusters = len(plan["cluster"].unique())
    return Design(
        n_clusters=n_clusters,
        responses_per_cluster=len(plan) // n_clusters,
        n_groups=len(plan["group"].unique()),
        crossed=plan.group_by(["cluster", "group"]).aggregate([]).num_rows > n_clusters,
        source=f"{corpus.name} in {data or task.data.table}",
    )
