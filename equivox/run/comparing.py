"""Further comparisons of a run: its stored answers by other columns of the corpus. Nothing is asked or annotated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equivox.core.columns import refuse_alike
from equivox.core.errors import UsageError, nearest
from equivox.core.files import damaged, read_table, write_table
from equivox.core.lazy import pa, pc
from equivox.core.task import CROSSED, Task
from equivox.core.variants import SHUFFLED, with_group
from equivox.run.annotating import count_answered, write_samples
from equivox.run.declarations import read_tasks, write_tasks
from equivox.run.manifest import forget_hashes, read_manifest, write_manifest
from equivox.run.opening import note_made, was_made
from equivox.run.plan import COLUMN, PLAN_FILE, read_plan, without_group
from equivox.run.presented import blocks_of, check_clusters, permuted_groups
from equivox.run.store import annotators_of, samples_path


@dataclass(frozen=True)
class _Further:
    """A task that compares stored answers anew: the rows of the task that asked, and their new groups and strata.

    `n_left_out` counts the samples without a value of what it compares.
    """

    task: Task
    rows: Sequence[int]
    columns: Mapping[str, Sequence[str]]
    n_left_out: int

    def of(self, table: pa.Table, path: Path) -> pa.Table:
        """Return the rows of a table about the asking task, read from `path`, as they are about this one."""
        if self.rows and self.rows[-1] >= len(table):
            raise damaged(path, "it has fewer rows than the plan has requests")
        table = table.take(pa.array(self.rows, pa.int64()))
        for name, values in self.columns.items():
            cells = pa.array(values, pa.string()).dictionary_encode()
            table = table.set_column(table.column_names.index(name), name, cells)
        return table


def compare_further(folder: Path, compare: Sequence[tuple[str, ...]]) -> None:
    """Add comparisons to the run in `folder`, as if it had been made with them; it has no new scores yet.

    UsageError for columns that the run does not have, and as the plan of a run; nothing is written then.
    """
    tasks, plan, manifest = read_tasks(folder), read_plan(folder), read_manifest(folder)
    named = {task.name for task in tasks}
    added = []
    for task in tasks:
        if task.asked_as:
            continue
        for columns in compare:
            variant = replace(with_group(task, columns), asked_as=task.name)
            if variant.name not in named:
                added.append(_further(variant, task, plan, int(manifest["identity"]["seed"])))
    if not added:
        return
    made_here = was_made(folder)
    forget_hashes(folder)
    n_answered = count_answered(folder)
    for annotator in annotators_of(folder):
        for one in added:
            path = samples_path(folder, annotator, one.task.asked_as)
            if path.exists():
                write_samples(folder, annotator, one.task, one.of(read_table(path), path), n_answered=n_answered)
    write_table(folder / PLAN_FILE, _extended(plan, added))
    identity = manifest["identity"]
    asked = identity["tasks"] | {one.task.name: one.task.fingerprint for one in added}
    compared = [*manifest["command"].get("compare", ()), *map(list, compare)]
    left_out = {without_group(one.task): one.n_left_out for one in added if one.n_left_out}
    write_manifest(
        folder,
        read_manifest(folder)
        | {
            "identity": identity | {"tasks": asked},
            "command": manifest["command"] | {"compare": compared},
            "samples_without_group": manifest.get("samples_without_group", {}) | left_out,
        },
    )
    write_tasks(folder, [*tasks, *(one.task for one in added)])
    if made_here:
        note_made(folder)


def _further(task: Task, asked: Task, plan: pa.Table, seed: int) -> _Further:
    known = [name.removeprefix(COLUMN) for name in plan.column_names if name.startswith(COLUMN)]
    own = plan.filter(pc.equal(plan["task"], asked.name))
    if unknown := [name for name in task.group if name not in known]:
        raise UsageError(
            f"`compare` names {unknown[0]!r}{nearest(unknown[0], known)}; {asked.name} was asked about "
            f"{', '.join(known) or 'no column of few values'}"
        )
    values = _values(own, asked, known)
    clusters, parts = own["cluster"].to_pylist(), [values[name] for name in task.group]
    groups = [CROSSED.join(cells) if all(cells) else "" for cells in zip(*parts, strict=True)]
    rows = [row for row, group in enumerate(groups) if group]
    placed = [(clusters[row], groups[row]) for row in rows]
    if len({group for _, group in placed}) < 2:
        raise UsageError(
            f"{task.name} compares groups by {task.dimension!r}, but its answers have "
            f"{', '.join(sorted({group for _, group in placed})) or 'none'}; at least two are needed"
        )
    refuse_alike(task.dimension, dict.fromkeys(group for _, group in placed))
    check_clusters(placed, task)
    dealt = permuted_groups(placed, task, seed) if task.condition == SHUFFLED else None
    told = [{name: cells[row] for name, cells in values.items()} for row in rows]
    blocks = blocks_of(task, ((cluster, cells) for (cluster, _), cells in zip(placed, told, strict=True)))
    columns = {
        "group": [group if dealt is None else dealt[cluster, group] for cluster, group in placed],
        "stratum": [CROSSED.join(cells[name] for name in task.strata) for cells in told],
        "block": [CROSSED.join(cells[name] for name in blocks) for cells in told],
    }
    left_out = own.filter(pa.array([not group for group in groups]))
    return _Further(task, rows, columns, len(left_out["sample_id"].unique()))


def _values(own: pa.Table, asked: Task, known: Sequence[str]) -> dict[str, list[str]]:
    """Return the corpus's columns by name: those that the plan keeps, and the task's own groups, strata and blocks."""
    found = {name: [value or "" for value in own[f"{COLUMN}{name}"].to_pylist()] for name in known}
    if not found.keys() >= set(asked.group):
        found = _parts(own, "group", asked.group, asked) | found
    if not found.keys() >= set(asked.strata):
        found = _parts(own, "stratum", asked.strata, asked) | found
    if not found.keys() >= set(asked.blocks):
        strata = [{name: found[name][row] for name in asked.strata} for row in range(len(own))]
        # The plan's blocks are those of the task and the strata that describe a cluster.
        blocks = blocks_of(asked, zip(own["cluster"].to_pylist(), strata, strict=True))
        found = _parts(own, "block", blocks, asked) | found
    return found


def _parts(own: pa.Table, column: str, names: Sequence[str], asked: Task) -> dict[str, list[str]]:
    """Return the columns that were crossed to one; UsageError if their values cannot be told apart."""
    texts = own[column].to_pylist()
    whole = names == asked.strata and len(names) == 1
    cells = [[text] if whole else text.split(CROSSED) for text in texts]
    if any(len(parts) != len(names) for parts in cells):
        raise UsageError(
            f"the values of {', '.join(names)} of {asked.name} cannot be told apart, because one of them holds "
            f"{CROSSED!r}"
        )
    return {name: [parts[place] for parts in cells] for place, name in enumerate(names)}


def _extended(plan: pa.Table, added: Sequence[_Further]) -> pa.Table:
    # A run that was stopped before its tasks were written has the rows already.
    names = pa.array([one.task.name for one in added])
    tables = [plan.filter(pc.invert(pc.is_in(plan["task"].cast(pa.string()), names)))]
    for one in added:
        own = one.of(plan.filter(pc.equal(plan["task"], one.task.asked_as)), Path(PLAN_FILE))
        named = pa.array([one.task.name] * len(own), pa.string()).dictionary_encode()
        tables.append(own.set_column(own.column_names.index("task"), "task", named))
    return pa.concat_tables(tables).unify_dictionaries()
