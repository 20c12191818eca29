"""Favourable answers of a run by group: counts, shares and impact ratios of every attribute with favourable values.

Groups are those that the tasks compare, or further columns that the run keeps; several columns are shown one by one
and crossed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equivox.compare.runs import ComparedRun, compared_run
from equivox.core.attributes import UNSTATED, Attribute
from equivox.core.errors import RequestError, nearest
from equivox.core.lazy import NDArray, np
from equivox.core.plain import as_plain
from equivox.core.samples import Samples
from equivox.core.task import CROSSED, Task
from equivox.run.declarations import read_tasks
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.scoring import open_samples
from equivox.statistics import ImpactRatios, impact_ratios

UNKNOWN = ("failed", "refused", "unstated")
"""Why an answer is unknown: it could not be had or annotated, it declines, or it does not mention the attribute."""


@dataclass(frozen=True, kw_only=True)
class ImpactTable:
    """One attribute by one grouping.

    Attributes
    ----------
    task, attribute, favourable
        The task, the attribute, and the values that count as favourable.
    by
        The columns that are crossed.
    ratios
        Counts, shares and ratios of the groups.
    unknown
        Group → reason of `UNKNOWN` → number of responses.
    without_group
        Responses that have no value in one of the columns; they are in no group.
    """

    task: str
    attribute: str
    favourable: tuple[str, ...]
    by: tuple[str, ...]
    ratios: ImpactRatios
    unknown: Mapping[str, Mapping[str, int]]
    without_group: int


@dataclass(frozen=True, kw_only=True)
class Impact:
    """The impact ratios of a run; `data` has corpus → fingerprint."""

    run: ComparedRun
    data: Mapping[str, str]
    tables: tuple[ImpactTable, ...]

    @property
    def undefined(self) -> bool:
        """Whether a table has no ratios."""
        return any(table.ratios.undefined is not None for table in self.tables)


def impact(
    folder: Path,
    *,
    by: Sequence[str] = (),
    favourable: Mapping[str, Sequence[str]] | None = None,
    annotator: str | None = None,
) -> Impact:
    """Return the impact ratios of the run in `folder`.

    Parameters
    ----------
    folder
        A run with annotations.
    by
        Columns that the run keeps: those that a task compares or holds equal, and its metadata. Empty: what each task
        compares.
    favourable
        Attribute → favourable values, in place of those that the tasks declare.
    annotator
        The annotator whose annotations count; the run's own by default.

    Raises
    ------
    RequestError
        No attribute has favourable values, a value that is no option, or a column that the run does not keep.
    """
    model = str(public_manifest(read_manifest(folder))["command"]["model"])
    return _impact(compared_run(model, folder, (), annotator), by, favourable or {})


def _impact(run: ComparedRun, by: Sequence[str], favourable: Mapping[str, Sequence[str]]) -> Impact:
    tasks = read_tasks(run.folder)
    asked = {task.name: [_with(attribute, favourable) for attribute in task.attributes] for task in tasks}
    known = sorted({attribute.name for own in asked.values() for attribute in own})
    if strange := [name for name in favourable if name not in known]:
        raise RequestError(
            f"`favourable` names {strange[0]!r}{nearest(strange[0], known)}; the run has {', '.join(known)}"
        )
    used = [task for task in tasks if any(attribute.favourable for attribute in asked[task.name])]
    if not used:
        raise RequestError(
            f"no attribute of {run.folder} has favourable values; name some: --favourable ATTRIBUTE=VALUE "
            f"({', '.join(known)})"
        )
    samples, corpora = open_samples(run.folder, used, run.annotator), read_manifest(run.folder)["identity"]["corpora"]
    return Impact(
        run=run,
        data={task.data.corpus: corpora[task.data.corpus] for task in used},
        tables=tuple(
            _table(task, samples[task.name], attribute, columns)
            for task in used
            for attribute in asked[task.name]
            if attribute.favourable
            for columns in _groupings(tuple(by) or task.group or (task.compares,))
        ),
    )


def impacts(runs: Sequence[ComparedRun]) -> tuple[list[Impact], list[str]]:
    """Return the impact ratios of the runs whose tasks declare favourable values, under the runs' names.

    The second says of each run without ratios why it has none; a run whose tasks declare no such values is in neither.
    """
    found, missing = [], []
    for run in runs:
        if not any(attribute.favourable for task in run.tasks for attribute in task.attributes):
            continue
        try:
            found.append(_impact(run, (), {}))
        except RequestError as error:
            missing.append(f"{run.model} has no impact ratios: {error}")
    return found, missing


def _with(attribute: Attribute, favourable: Mapping[str, Sequence[str]]) -> Attribute:
    if attribute.name not in favourable:
        return attribute
    return replace(attribute, favourable=tuple(favourable[attribute.name]))


def _groupings(columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return each column alone, and all of them crossed."""
    return [*((column,) for column in columns), *([columns] if len(columns) > 1 else [])]


def _table(task: Task, samples: Samples, attribute: Attribute, by: tuple[str, ...]) -> ImpactTable:
    columns = [_column(task, samples, name) for name in by]
    groups = np.array([CROSSED.join(parts) if all(parts) else "" for parts in zip(*columns, strict=True)], dtype=object)
    placed = np.flatnonzero(groups != "")
    if not placed.size:
        raise RequestError(f"no response of {task.name} has a value of {CROSSED.join(by)}; choose other columns")
    verdicts = _verdicts(samples, attribute)
    reasons = _reasons(samples, verdicts)
    ratios = impact_ratios(
        verdicts[placed],
        groups=list(groups[placed]),
        clusters=samples.clusters.take(placed),
    )
    return ImpactTable(
        task=task.name,
        attribute=attribute.name,
        favourable=attribute.favourable,
        by=by,
        ratios=ratios,
        unknown={
            one.group: {name: int((reasons[name] & (groups == one.group)).sum()) for name in UNKNOWN}
            for one in ratios.groups
        },
        without_group=len(groups) - len(placed),
    )


def _column(task: Task, samples: Samples, name: str) -> list[str]:
    """Return the value of a column for each sample, empty where there is none."""
    if not task.group and name == task.compares:
        return samples.groups.texts()
    kept = {"group": task.group, "block": task.blocks, "stratum": task.strata}
    for column, names in kept.items():
        if name in names and column in samples.columns:
            # Strata that describe a cluster stand behind the blocks.
            behind = len(task.strata) if column == "block" else 0
            split = [
                text.split(CROSSED) if len(names) + behind > 1 else [text] for text in samples.label(column).texts()
            ]
            if any(not len(names) <= len(parts) <= len(names) + behind for parts in split):
                raise RequestError(f"`by`: the values of {CROSSED.join(names)} of {task.name} cannot be told apart")
            return [parts[names.index(name)] for parts in split]
    if name in task.metadata:
        return samples.metadata(name).texts()
    known = list(dict.fromkeys([*task.group, *task.blocks, *task.strata, *task.metadata]))
    raise RequestError(
        f"`by` names {name!r}{nearest(name, known)}; the run of {task.name} keeps {', '.join(known)}; "
        f"`equivox score RUN --compare {name}` compares another column of the corpus"
    )


def _verdicts(samples: Samples, attribute: Attribute) -> NDArray[np.float64]:
    """Return 1 for a favourable answer, 0 for any other, NaN for an unknown one; any of several values decides."""
    values = samples.parsed_values(attribute.name)
    good = [name in attribute.favourable for name in values.names]
    said = [name != UNSTATED for name in values.names]
    verdicts = np.full(len(samples), math.nan)
    if values.names:
        verdicts[values.rows[np.array(said)[values.codes]]] = 0.0
        verdicts[values.rows[np.array(good)[values.codes]]] = 1.0
    return verdicts


def _reasons(samples: Samples, verdicts: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    """Return, for each reason of `UNKNOWN`, which samples are unknown for it."""
    unknown = np.isnan(verdicts)
    refused, parsed = samples.has_status("refused"), samples.has_status("parsed")
    return {
        "failed": unknown & ~refused & ~parsed,
        "refused": unknown & refused,
        "unstated": unknown & parsed,
    }


def impact_records(found: Impact) -> list[dict[str, Any]]:
    """Return a row of plain values per group of every table; a number that is not known is None."""
    return [
        {
            "model": found.run.model,
            "annotator": found.run.annotator,
            "date": found.run.origin.date,
            "data": CROSSED.join(found.data),
            "data_fingerprint": CROSSED.join(found.data.values()),
            "task": table.task,
            "attribute": table.attribute,
            "favourable_values": "; ".join(table.favourable),
            "by": CROSSED.join(table.by),
            **as_plain(vars(one)),
            **{f"unknown_{reason}": n for reason, n in table.unknown[one.group].items()},
            "without_group": table.without_group,
        }
        for table in found.tables
        for one in table.ratios.groups
    ]
