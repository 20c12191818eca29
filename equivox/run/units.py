"""The groups and the units of samples: which unit is where, groups dealt anew, and a spread choice of samples."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.task import Task, digest
from equivox.dataset_builders.corpus import Sample

JOIN = " × "
"""What stands between the values of crossed columns."""


def label_of(sample: Sample, columns: Sequence[str]) -> str | None:
    """Return the group of a sample by some columns, crossed; None if any of them says nothing."""
    values = [sample.columns[column] for column in columns]
    return None if None in values or "" in values else JOIN.join(map(str, values))


def text_of(sample: Sample, columns: Sequence[str]) -> str:
    """Return some columns of a sample as one text; a column that says nothing is empty."""
    values = [sample.columns[column] for column in columns]
    return JOIN.join(["" if value is None else str(value) for value in values])


def placed_in(samples: Iterable[Sample], task: Task) -> Iterator[tuple[str, str]]:
    """Yield the cluster and the group of each sample."""
    return ((text_of(sample, (task.cluster,)), label_of(sample, task.group) or "") for sample in samples)


def _groups_of_clusters(placed: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for cluster, group in placed:
        found[cluster].add(group)
    return found


def check_clusters(placed: Iterable[tuple[str, str]], task: Task) -> None:
    """Raise RequestError unless every cluster is in one group, or every one is in all.

    `placed` has the cluster and group of each sample.
    """
    groups_of = _groups_of_clusters(placed)
    n_groups = len(set().union(*groups_of.values()))
    sizes = Counter(map(len, groups_of.values()))
    if set(sizes) <= {1} or set(sizes) == {n_groups}:
        return
    numbers = ", ".join(f"{count} in {size}" for size, count in sorted(sizes.items(), reverse=True))
    cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]) in (1, n_groups), entry[0]))
    if len(groups) == n_groups:
        cluster, groups = min(groups_of.items(), key=lambda entry: (len(entry[1]), entry[0]))
    raise RequestError(
        f"{task.name}: of {sum(sizes.values())} {task.cluster} units, {numbers} of {n_groups} groups of "
        f"{task.dimension} ({cluster!r} in {', '.join(sorted(groups))}); give every unit to one group, or every unit "
        "to all, or name as `cluster` what carries the group"
    )


def permuted_groups(placed: Iterable[tuple[str, str]], task: Task, seed: int) -> dict[tuple[str, str], str]:
    """Permute the groups over the clusters, or within units that are in every group, by cluster and true group.

    `placed` has the cluster and group of each sample. Group sizes stay, and all tasks of a family get the same
    permutation.
    """
    groups_of = _groups_of_clusters(placed)
    clusters = sorted(groups_of)
    rng = random.Random(digest([seed, task.family, "shuffled"]))
    if any(len(groups) > 1 for groups in groups_of.values()):
        return {
            (cluster, true): dealt
            for cluster in clusters
            for true, dealt in zip(
                sorted(groups_of[cluster]), rng.sample(sorted(groups_of[cluster]), len(groups_of[cluster])), strict=True
            )
        }
    true_groups = [*itertools.chain.from_iterable(groups_of[cluster] for cluster in clusters)]
    permuted = list(true_groups)
    rng.shuffle(permuted)
    return {(cluster, true): dealt for cluster, true, dealt in zip(clusters, true_groups, permuted, strict=True)}


def blocks_of(task: Task, placed: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return the columns that hold clusters: the task's blocks, and those of its strata that describe a cluster.

    `placed` has the cluster and the columns of each sample. Strata that no cluster spans are held as they are; beside
    strata that clusters span, such as sentences, each column counts by itself.
    """
    first: dict[str, Mapping[str, Any]] = {}
    spanned: set[str] = set()
    for cluster, columns in placed:
        own = first.setdefault(cluster, columns)
        spanned |= {name for name in task.strata if columns[name] != own[name]}
    if not spanned:
        return task.blocks
    return (*task.blocks, *(name for name in task.strata if name not in spanned and name not in task.blocks))


def spread(samples: Sequence[Sample], task: Task, limit: int | None) -> list[Sample]:
    """Return at most `limit` samples, spread over strata, groups and clusters as evenly as they allow.

    In each round, each cluster gives one sample, clusters of different groups in turn; every cluster takes its
    strata in the same hashed order, so that in each round the groups say the same sentences. Units that are in every
    group give whole rounds, one sample of each group.
    """
    if limit is None or limit >= len(samples):
        return list(samples)
    groups_of = _groups_of_clusters(placed_in(samples, task))
    if any(len(groups) > 1 for groups in groups_of.values()):
        return _whole_units(samples, task, limit)
    by_cluster: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_cluster[text_of(sample, (task.cluster,))].append(sample)
    for members in by_cluster.values():
        members.sort(key=lambda sample: (digest(text_of(sample, task.strata)), sample.sample_id))
    by_group: dict[str, list[str]] = defaultdict(list)
    # Clusters with neighbouring names may be alike, so a hashed order mixes them.
    order = sorted(by_cluster.items(), key=lambda entry: (entry[0] if task.group else digest(entry[0]), entry[0]))
    for cluster, members in order:
        by_group[label_of(members[0], task.group) or ""].append(cluster)
    rounds = itertools.zip_longest(*by_group.values())
    turns = [cluster for clusters in rounds for cluster in clusters if cluster is not None]
    taken: list[Sample] = []
    for place in range(max(map(len, by_cluster.values()))):
        for cluster in turns:
            if place < len(by_cluster[cluster]):
                taken.append(by_cluster[cluster][place])
            if len(taken) == limit:
                return taken
    return taken


def _whole_units(samples: Sequence[Sample], task: Task, limit: int) -> list[Sample]:
    """Return at most `limit` samples of units that are in every group: as many of each group, unit by unit."""
    of_unit: dict[str, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        of_unit[text_of(sample, (task.cluster,))][label_of(sample, task.group) or ""].append(sample)
    units = sorted(of_unit, key=lambda unit: (digest(unit), unit))
    for own in of_unit.values():
        for members in own.values():
            members.sort(key=lambda sample: (digest(text_of(sample, task.strata)), sample.sample_id))
    taken: list[Sample] = []
    for place in range(max(len(members) for own in of_unit.values() for members in own.values())):
        for unit in units:
            here = [members[place] for _, members in sorted(of_unit[unit].items()) if place < len(members)]
            if len(taken) + len(here) > limit:
                return taken
            taken += here
    return taken
