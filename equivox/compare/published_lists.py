"""The tables of a paper that list findings once more, from finished runs: what was found beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.compare.published import run_of
from equivox.compare.stored import StoredRun, TableRun
from equivox.configs.published import PublishedList, Source, published_paper
from equivox.engines import model_label


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
    """Return the lists of a paper as `runs` fill them, then those of models that the paper does not have.

    RequestError as `equivox.compare.published.reproduced`.
    """
    declared = published_paper(paper)
    opened = [StoredRun.of(run, declared.stand_ins) for run in runs]
    sources = {
        table.name: [
            (block, column, table.source(block, column)) for block in table.blocks for column in block.published
        ]
        for table in declared.lists
    }
    named = {source.model for cells in sources.values() for _, _, source in cells}
    new = [run for run in opened if not any(run.is_of(model) for model in named)]
    found = []
    for table in declared.lists:
        cells = sources[table.name]
        found += [_filled(table, block.label, c, block.published[c], source, opened) for block, c, source in cells]
        for model in dict.fromkeys(run.run.model for run in new):
            own: dict[tuple[str, str], Source] = {}
            for block, column, source in cells:
                fresh = Source(model=model).within(source)
                label = f"{model_label(model)}, {block.label if source.where else source.setting}"
                if any(run.asked(fresh) for run in new):
                    own.setdefault((label, column), fresh)
            found += [_filled(table, label, column, (), source, new) for (label, column), source in own.items()]
    return found


def _filled(
    table: PublishedList, block: str, column: str, published: Sequence[str], source: Source, runs: Sequence[StoredRun]
) -> ReproducedList:
    run = run_of(runs, source)
    rows = None if isinstance(run, str) else run.findings(source, table.table, run.annotators("")[0])
    why = run if isinstance(run, str) else f"the run has no table {table.table} of {source.family}"
    return ReproducedList(
        table=table.name,
        caption=table.caption,
        block=block,
        column=column,
        published=published,
        measured=[_entry(row) for row in rows or ()],
        undefined=why if rows is None else None,
    )


def _entry(row: Mapping[str, Any]) -> str:
    return f"{row['category']} ↔ {row['phrase']} ({row['identity']})"
