"""The tables of a paper that list findings once more, from finished runs: what was found beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.compare.published import run_of
from equivox.compare.stored import StoredRun, TableRun
from equivox.configs.published import published_paper


@dataclass(frozen=True, kw_only=True)
class ReproducedList:
    """One list of a table: the published entries and the measured ones, the strongest first.

    `undefined` says why there are no measured ones; None if they are known, even if nothing was found.
    """

    table: str
    caption: str
    block: str
    column: str
    published: Sequence[str]
    measured: Sequence[str]
    undefined: str | None = None

    @property
    def shared(self) -> list[str]:
        """The measured entries that the paper has too, in whatever place."""
        return [entry for entry in self.measured if entry in self.published]


def reproduced_lists(paper: str, runs: Sequence[TableRun]) -> list[ReproducedList]:
    """Return the lists of a paper as `runs` fill them. RequestError as `equivox.compare.published.reproduced`."""
    declared = published_paper(paper)
    opened = [StoredRun.of(run, declared.stand_ins) for run in runs]
    found = []
    for table in declared.lists:
        for block in table.blocks:
            for column, published in block.published.items():
                source = table.source(block, column)
                run = run_of(opened, source)
                rows = None if isinstance(run, str) else run.findings(source, table.table, run.annotators("")[0])
                why = run if isinstance(run, str) else f"the run has no table {table.table} of {source.family}"
                found.append(
                    ReproducedList(
                        table=table.name,
                        caption=table.caption,
                        block=block.label,
                        column=column,
                        published=published,
                        measured=[_entry(row) for row in rows or ()],
                        undefined=why if rows is None else None,
                    )
                )
    return found


def _entry(row: Mapping[str, Any]) -> str:
    return f"{row['category']} ↔ {row['phrase']} ({row['identity']})"
