"""The design of a task: the numbers of clusters, responses and groups in a run on its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equivox.core.errors import RequestError
from equivox.core.task import Task


@dataclass(frozen=True, kw_only=True)
class Design:
    """The numbers that determine which difference a task can detect; `source` says where they come from.

    `crossed` says that each cluster is in several groups; its responses are those in all of them together.
    """

    n_clusters: int
    responses_per_cluster: int
    n_groups: int
    source: str
    crossed: bool = False


def task_design(task: Task, data: str | None = None) -> Design:
    """Return the design of `task` on the corpus found through `data`, or as published when `data` is None.

    Responses per cluster are the mean, rounded down. Raises RequestError for a corpus without published numbers.
    """
    if data is not None or task.data.table is not None:
        return _from_corpus(task, data)
    published = _published(task)
    groups = {"gender": 2 if {"male", "female"} <= set(published) else None}.get(
        task.dimension, published.get(f"{task.dimension}s")
    )
    clips = published_items(task)
    if not clips or groups is None or "speakers" not in published:
        raise RequestError(
            f"nothing is published about {task.dimension} in {task.data.corpus}; give `--data`, or the numbers "
            "themselves: --design clusters=…,responses=…,groups=…"
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


def _from_corpus(task: Task, data: str | None) -> Design:
    from equivox.dataset_builders.opening import open_corpus
    from equivox.engines import EngineIdentity
    from equivox.run.asked_of import asked_of
    from equivox.run.plan import make_plan

    (task,) = asked_of(data, [task])
    corpus = open_corpus(task.data, data)
    nobody = EngineIdentity(engine="none", model="none", revision="")
    plan = make_plan([task], {task.data.corpus: corpus}, nobody).table
    n_clusters = len(plan["cluster"].unique())
    return Design(
        n_clusters=n_clusters,
        responses_per_cluster=len(plan) // n_clusters,
        n_groups=len(plan["group"].unique()),
        crossed=plan.group_by(["cluster", "group"]).aggregate([]).num_rows > n_clusters,
        source=f"{corpus.name} in {data or task.data.table}",
    )
