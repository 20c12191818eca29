"""Match the rows of a table of responses to requests: task, sample, presentation and repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from equivox.core.errors import RequestError, nearest
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.run.plan import samples_of
from equivox.run.presented import placeholders, presentations_of
from equivox.run.response_table import REPEAT, SAMPLE, TASK, Table, needed, plain, task_named

Shown = tuple[tuple[str, str], ...]
"""The presentation of a sample, as far as it is in the table."""

Slot = tuple[str, str, Shown, int]
"""The request of a row: the task without its condition, the sample, its presentation, and the repeat."""

Answer = tuple[str | None, str | None]
"""The text of a row, and its error."""


def match_rows(
    table: Table, tasks: Mapping[str, Task], corpora: Mapping[str, Corpus], match: Sequence[str], seed: int
) -> dict[Slot, Answer]:
    """Return the text and the error of each row by its request; RequestError unless every row has a sample."""
    finders = {
        name: _Finder.of(table, task, corpora, match) for name, task in tasks.items() if task.data.corpus in corpora
    }
    found: dict[Slot, Answer] = {}
    seen: Counter[tuple[str, str, Shown]] = Counter()
    unmatched: list[int] = []
    for row in range(len(table)):
        chosen = [task_named(table, row, tasks)] if TASK in table.columns else list(finders)
        fitting = [(name, sample) for name in chosen for sample in finders[name].samples(row)]
        if not fitting:
            unmatched.append(row)
            continue
        if len(fitting) > 1:
            several = list(dict.fromkeys(name for name, _ in fitting))
            fix = f"say which in a column `{TASK}`" if len(several) > 1 else "match by more columns (`--match`)"
            one = several if len(several) > 1 else [sample.sample_id for _, sample in fitting]
            raise RequestError(f"{table.name}, row {row + 1} may be about {', '.join(one[:3])}; {fix}")
        name, sample = fitting[0]
        shown = _shown(table, row, tasks[name], sample, seed)
        place = (name, sample.sample_id, shown)
        repeat = _repeat(table, row, seen[place])
        seen[place] += 1
        if (*place, repeat) in found:
            raise RequestError(
                f"{table.name}, row {row + 1} is the second response of {sample.sample_id!r} with `{REPEAT}` "
                f"{repeat}; number the responses of a sample 0, 1, …"
            )
        found[*place, repeat] = table.answer(row)
    if unmatched:
        first = next(iter(finders.values()))
        raise RequestError(
            f"{len(unmatched):,} of {len(table):,} rows of {table.name} match no sample of {', '.join(tasks)} by "
            f"{', '.join(first.by)}, such as row {unmatched[0] + 1} ({first.told(unmatched[0])}); correct them, "
            "take them out, or match by other columns (`--match`)"
        )
    return found


@dataclass(frozen=True)
class _Finder:
    """Finder of the sample of a row in one task, by their common columns."""

    table: Table
    by: tuple[str, ...]
    index: Mapping[tuple[str | None, ...], Sequence[Sample]]

    @classmethod
    def of(cls, table: Table, task: Task, corpora: Mapping[str, Corpus], match: Sequence[str]) -> _Finder:
        samples = samples_of(corpora[task.data.corpus], task)
        has = [*(samples[0].columns if samples else ())]
        usable = [name for name in table.columns if name in has and name != table.response]
        by = tuple(match) or ((SAMPLE,) if SAMPLE in table.columns else ())
        for name in by:
            if name not in table.columns or (name != SAMPLE and name not in has):
                where = table.name if name not in table.columns else f"the corpus of {task.name}"
                known = [*table.columns] if name not in table.columns else [SAMPLE, *has]
                raise RequestError(
                    f"`match` names the column {name!r}, which {where} lacks{nearest(name, known)}; it has "
                    f"{', '.join(known)}"
                )
        wanted = {*needed(task), *placeholders(task)}
        by = by or tuple(name for name in usable if name in wanted)
        if not by:
            raise RequestError(
                f"{table.name} does not say which sample a row is about: it has {', '.join(table.columns)}, and a "
                f"sample of {task.name} has {', '.join([SAMPLE, *has])}; name a column by `--column {SAMPLE}=COLUMN`"
            )
        index: dict[tuple[str | None, ...], list[Sample]] = {}
        for sample in samples:
            key = tuple(sample.sample_id if name == SAMPLE else plain(sample.columns[name]) for name in by)
            index.setdefault(key, []).append(sample)
        return cls(table, by, index)

    def samples(self, row: int) -> Sequence[Sample]:
        """Return the samples that fit a row."""
        cells = tuple(self.table.cell(name, row) for name in self.by)
        if found := self.index.get(cells):
            return found
        # A sample with a file can be named by it: folder/nep_1.png is nep_1.
        pairs = zip(self.by, cells, strict=True)
        stems = (PurePosixPath(cell).stem if name == SAMPLE and cell else cell for name, cell in pairs)
        return self.index.get(tuple(stems), ())

    def told(self, row: int) -> str:
        """Return a row's values in the columns, in words."""
        return ", ".join(f"{name} {self.table.cell(name, row)!r:.60}" for name in self.by)


def _shown(table: Table, row: int, task: Task, sample: Sample, seed: int) -> Shown:
    """Return the presentation of a row's sample; RequestError if the task does not have it."""
    if task.prompt.presentations is None:
        return ()
    ways = presentations_of(task, sample, seed)
    names = sorted({name for way in ways for name in way})
    given = [name for name in names if name in table.columns]
    told = tuple((name, table.cell(name, row) or "") for name in given)
    offered = [tuple((name, way[name]) for name in given) for way in ways]
    if len(set(offered)) < len(ways) or not given:
        raise RequestError(
            f"{task.name} presents a sample in {len(ways)} way{'s' * (len(ways) > 1)}, and {table.name} does not say "
            f"how; give the columns {', '.join(names)}"
        )
    if told not in offered:
        raise RequestError(
            f"{table.name}, row {row + 1}: {task.name} does not present {sample.sample_id!r} with "
            f"{', '.join(f'{name} {value!r:.60}' for name, value in told)}; it does with "
            f"{', '.join(f'{name} {value!r:.60}' for name, value in offered[0])}"
        )
    return told


def _repeat(table: Table, row: int, next_one: int) -> int:
    if REPEAT not in table.columns:
        return next_one
    given = table.cell(REPEAT, row) or ""
    if not given.isdecimal():
        raise RequestError(f"{table.name}, row {row + 1}: `{REPEAT}` is {given!r}; number repeats 0, 1, …")
    return int(given)
