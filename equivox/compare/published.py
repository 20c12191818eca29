"""The tables of a paper once more, from finished runs: what was measured beside what was published.

A cell whose number was not measured says why: it is never 0, and never empty without a reason. All numbers are read
from the runs' stored files; nothing is scored again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from equivox.annotate import evaluation_of
from equivox.compare.stored import Number, StoredRun, TableRun, average
from equivox.configs.published import Block, Drawing, PublishedPaper, PublishedTable, Source, published_paper
from equivox.core.errors import RequestError
from equivox.core.metric import Metric
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL, NAN, family_of

__all__ = ["ReproducedCell", "ReproducedTable", "TableRun", "reproduced"]

DASH = "—"
"""The beginning of a remark that says why something has no number."""
NO_RUN, NOT_ASKED = "no run of", "was not asked"
_TWO_STARS = 0.001


@dataclass(frozen=True, kw_only=True)
class ReproducedCell(Number):
    """One cell: the published number beside the measured one with its evidence, see `Number`.

    Attributes
    ----------
    block, row, column
        The labels of the cell; `model` and `task` are what they stand for, `annotators` whose annotations count.
    published
        The printed number; NaN for a model that the paper does not have.
    deviation
        measured − published, NaN without both, and for a total that is relative to another cohort.
    with_p, p_published
        Whether the paper prints a p-value beside the number, and that one; `p` is the measured one by the paper's test.
    sides
        Whom a positive and a negative number favour, where the paper prints magnitudes; else empty.
    extreme
        "largest", "smallest", "lowest" or "second lowest" of the measured numbers of its column and block, if the paper
        marks them; else empty. It is no test.
    stars_published, stars_found
        0, 1 or 2 stars by the paper's test, and by `q` (below 0.05 and 0.001); None where there are none.
    """

    block: str
    row: str
    column: str
    model: str
    task: str
    annotators: tuple[str, ...] = ()
    places: int = 2
    published: float = NAN
    stars_published: int | None = None
    comparable: bool = True
    with_p: bool = False
    p_published: float = NAN
    sides: tuple[str, ...] = ()
    extreme: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def deviation(self) -> float:
        """Measured − published; NaN without both, and where they do not compare."""
        return self.measured - self.published if self.comparable else NAN

    @property
    def stars_found(self) -> int | None:
        """The stars that `q` gives; None without a test."""
        return None if math.isnan(self.q) else (self.q < LEVEL) + (self.q < _TWO_STARS)


@dataclass(frozen=True, kw_only=True)
class ReproducedTable:
    """One table of a paper: its cells row by row, each row with all columns; `remarks` say what to know of the runs.

    A figure has the form in which its numbers are drawn (`draw`), and the name of their axis (`unit`).
    """

    name: str
    caption: str
    source: str
    columns: tuple[str, ...]
    cells: Sequence[ReproducedCell]
    remarks: Sequence[str] = ()
    draw: Drawing | None = None
    unit: str = ""

    def rows(self) -> Iterator[tuple[ReproducedCell, ...]]:
        """Yield the cells of each row."""
        for start in range(0, len(self.cells), len(self.columns)):
            yield tuple(self.cells[start : start + len(self.columns)])


_MARKS = {"ends": ("smallest", "largest"), "lowest": ("lowest", "second lowest")}


def _with_extremes(cells: Sequence[ReproducedCell], marked: Mapping[str, str]) -> list[ReproducedCell]:
    """Return the cells of a block with the marks that the paper gives in each column; equal numbers have none."""
    marks: dict[tuple[str, float], str] = {}
    for column, kind in marked.items():
        known = sorted({cell.measured for cell in cells if cell.column == column and math.isfinite(cell.measured)})
        if kind and len(known) > 1:
            numbers = (known[0], known[-1]) if kind == "ends" else known[:2]
            marks |= {(column, number): mark for number, mark in zip(numbers, _MARKS[kind], strict=True)}
    return [replace(cell, extreme=marks.get((cell.column, cell.measured), "")) for cell in cells]


def reproduced(paper: str, runs: Sequence[TableRun]) -> list[ReproducedTable]:
    """Return the tables of a paper as `runs` fill them, cell by cell.

    `paper` is the name of a packaged file (`equivox.configs.published.published_names`) or a YAML file of that form.
    Models that a table of the paper does not have follow as further rows, without a published number. RequestError for
    an unknown paper, and if two of the runs have the same task of the same model.
    """
    declared = published_paper(paper)
    opened = [StoredRun.of(run, declared.stand_ins) for run in runs]
    return [_Filling(declared, table, opened).table() for table in declared.tables]


@dataclass(frozen=True)
class _Filling:
    """The filling of one table."""

    paper: PublishedPaper
    declared: PublishedTable
    runs: Sequence[StoredRun]
    departures: dict[Path, list[str]] = field(default_factory=dict)
    """In what the samples of each run are not those of the paper."""

    def table(self) -> ReproducedTable:
        cells: list[ReproducedCell] = []
        cohorts: list[str] = []
        new = self._new_models()
        for block, rows in self._blocks(new):
            filled = [cell for row in rows for cell in self._row(block, row)]
            filled, told = self._with_totals(block, filled)
            cells += _with_extremes(filled, {name: self._marks(block, name) for name in self.declared.columns})
            cohorts += told
        shown = {cell.model for cell in cells}
        unread = {run.label: run.undefined for run in self.runs if run.undefined is not None}
        lines = [f"{DASH} {reason}" for reason in _reasons(cells)]
        for model in new:
            if model not in shown:
                why = unread.get(model) or f"nothing was measured for {self._families}"
                lines.append(f"{DASH} {model}: {why}")
        lines += [f"{cell.model}: {line}" for cell in cells for line in cell.remarks]
        weak = split_by(((cell, why) for cell in cells for why in cell.weak), lambda entry: (entry[0].model, entry[1]))
        lines += [
            f"{model}, {', '.join(dict.fromkeys(cell.column for cell, _ in own))}: {why}"
            for (model, why), own in weak.items()
        ]
        return ReproducedTable(
            name=self.declared.name,
            caption=self.declared.caption,
            source=self.paper.source,
            columns=tuple(self.declared.columns),
            cells=cells,
            remarks=list(dict.fromkeys([*lines, *cohorts])),
            draw=self.declared.draw,
            unit=self.declared.unit,
        )

    def _marks(self, block: Block, column: str) -> str:
        return self.declared.columns[column].within(block.select, self.declared.select).marks

    def _sources(self) -> Iterator[Source]:
        """Yield where each published number comes from."""
        for block in self.declared.blocks:
            for row in self.declared.rows_of(block):
                for column in self.declared.columns:
                    yield self.declared.source(block, row, column)

    @property
    def _families(self) -> str:
        return ", ".join(dict.fromkeys(family_of(source.task_name) for source in self._sources()))

    def _new_models(self) -> list[str]:
        """Return the labels of the models of runs that no row of the table names."""
        named = {source.model for source in self._sources()}
        fresh = [run for run in self.runs if not any(run.is_of(model) for model in named)]
        return list(dict.fromkeys(run.label for run in fresh))

    def _blocks(self, new: Sequence[str]) -> Iterator[tuple[Block, list[_Row]]]:
        """Yield each block with its rows and those of new models, then the blocks of new models."""
        for block in self.declared.blocks:
            rows = [_Row(row, self.declared.rows[row], row) for row in self.declared.rows_of(block)]
            kinds = {row.source.without_model().key: row.source.without_model() for row in rows}
            if not block.select.model:
                further = [_Row(model, Source(model=model).within(kind)) for model in new for kind in kinds.values()]
                rows += [row for row in further if self._asked(block, row)]
            yield block, rows
        for model in new:
            made: dict[str, Block] = {}
            for block in self.declared.blocks:
                if block.select.model:
                    own = block.select.without_model()
                    label = f"{model}, {own.setting}" if own.setting else model
                    select = Source(model=model).within(own)
                    made.setdefault(own.key, block.model_copy(update={"label": label, "select": select}))
            for block in made.values():
                rows = [_Row(row, self.declared.rows[row]) for row in self.declared.rows_of(block)]
                if any(self._asked(block, row) for row in rows):
                    yield block, rows

    def _source(self, block: Block, row: _Row, column: str) -> Source:
        return self.declared.columns[column].within(row.source, block.select, self.declared.select)

    def _asked(self, block: Block, row: _Row) -> bool:
        """Return whether a run has a task of the row: a new model has no rows for what it was never asked."""
        sources = [self._source(block, row, column) for column in self.declared.columns]
        return any(run.asked(source) for source in sources for run in self.runs)

    def _row(self, block: Block, row: _Row) -> Iterator[ReproducedCell]:
        name = row.published or ""
        numbers = block.published.get(name) or [None] * len(self.declared.columns)
        stars, p_values = block.stars.get(name), block.p.get(name, {})
        for place, column in enumerate(self.declared.columns):
            source, number = self._source(block, row, column), numbers[place]
            cell = ReproducedCell(
                block=block.label,
                row=row.label,
                column=column,
                model=source.model,
                task=source.task_name,
                places=source.places,
                published=NAN if number is None else number,
                stars_published=None if stars is None else stars[place],
                with_p=source.with_p,
                p_published=p_values.get(column, NAN),
                sides=source.sides,
            )
            yield cell if source.cohort_total else self._measured(cell, source)

    def _measured(self, cell: ReproducedCell, source: Source) -> ReproducedCell:
        """Return a cell with the number of the run that has its task."""
        run = run_of(self.runs, source)
        if isinstance(run, str):
            return replace(cell, undefined=run)
        annotators = run.annotators(source.annotator)
        found = average([run.number(source, annotator) for annotator in annotators], annotators)
        if run.folder not in self.departures:
            self.departures[run.folder] = run.departures({own.task_name for own in self._sources()})
        expected = source.annotator or self.paper.annotator
        others = [name for name in annotators if expected and evaluation_of(name)[0] != expected]
        by = [f"annotated by {', '.join(others)}, in the paper by {expected}"] if others else []
        by += run.stale(annotators)
        if found.undefined is None:
            by += run.stand_ins(source.task_name, annotators)
        return replace(cell, annotators=tuple(annotators), remarks=(*self.departures[run.folder], *by), **vars(found))

    def _with_totals(self, block: Block, cells: Sequence[ReproducedCell]) -> tuple[list[ReproducedCell], list[str]]:
        """Return the cells of a block with the totals that are relative to its models, and what to know of them."""
        done, told = list(cells), []
        for column, own in self.declared.columns.items():
            source = own.within(block.select, self.declared.select)
            if source.cohort_total:
                done, lines = self._with_total(block, column, source.cohort, done)
                told += lines
        return done, told

    def _with_total(
        self, block: Block, column: str, published: str, cells: Sequence[ReproducedCell]
    ) -> tuple[list[ReproducedCell], list[str]]:
        members, lacking = self._members(cells)
        metric = self._metric(cells) if members else None
        if metric is None or metric.cohort is None:
            why = "the metric of the run has no total"
            return [_without(cell, lacking.get(cell.row, why), column) for cell in cells], []
        # A measured model may be in the published cohort as well.
        named = {row: f"{row} (measured)" for row in members}
        values = {named[row]: dict(own) for row, own in members.items()}
        alone = len(members) < 2
        found = metric.cohort.totals(values, (published or None) if alone else None, False)
        same = not alone and set(members) == set(block.published)
        done = []
        for cell in cells:
            if cell.column != column or cell.row in lacking:
                done.append(_without(cell, lacking.get(cell.row, ""), column))
                continue
            parts = [other for other in cells if other.row == cell.row and other.annotators]
            total = found.total[named[cell.row]]
            reason = found.undefined.get(named[cell.row])
            done.append(
                replace(
                    cell,
                    measured=NAN if reason else total,
                    evaluations=max(part.evaluations for part in parts),
                    annotators=parts[0].annotators,
                    undefined=reason or ("the total is not a number" if math.isnan(total) else None),
                    comparable=same,
                    remarks=parts[0].remarks,
                )
            )
        where = f"{block.label}: " if block.label else ""
        members_of = published if alone and published else f"{len(members)} measured models"
        cohort = (
            f"{where}{column} is relative to {members_of} and {next(iter(members))}"
            if alone
            else (f"{where}{column} is relative to {members_of}: {', '.join(members)}")
        )
        return done, [cohort if same else f"{cohort}; the paper's cohort is another, so that nothing can be subtracted"]

    def _members(self, cells: Sequence[ReproducedCell]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
        """Return the scores of the rows that have them all, by score, and why the other rows lack some."""
        members: dict[str, dict[str, float]] = {}
        lacking: dict[str, str] = {}
        names = {name: column.score for name, column in self.declared.columns.items() if column.score}
        for row in dict.fromkeys(cell.row for cell in cells):
            own = [cell for cell in cells if cell.row == row and cell.column in names]
            missing = [cell for cell in own if cell.undefined is not None]
            if missing:
                reasons = {cell.undefined for cell in missing}
                lacking[row] = (
                    str(missing[0].undefined)
                    if len(missing) == len(own) and len(reasons) == 1
                    else f"no value for {', '.join(cell.column for cell in missing)}"
                )
            else:
                members[row] = {names[cell.column]: cell.measured for cell in own}
        return members, lacking

    def _metric(self, cells: Sequence[ReproducedCell]) -> Metric | None:
        """Return the metric of the measured cells; None if the tasks of their runs cannot be read."""
        for cell in cells:
            for run in self.runs if cell.annotators else ():
                if run.is_of(cell.model) and (metric := run.metric(cell.task)) is not None:
                    return metric
        return None


def run_of(runs: Sequence[StoredRun], source: Source) -> StoredRun | str:
    """Return the run that has the task of a cell, or why there is none."""
    of_model = [run for run in runs if run.is_of(source.model)]
    if not of_model:
        return f"{NO_RUN} {source.model}"
    if all(run.undefined is not None for run in of_model):
        return str(of_model[0].undefined)
    fitting = [run for run in of_model if run.asked(source)]
    if source.setting:
        fitting = [run for run in fitting if run.run.setting == source.setting] or fitting
    if not fitting:
        setting = f" in the setting {source.setting}" if source.setting else ""
        return f"{source.task_name} {NOT_ASKED}{setting}"
    if len(fitting) > 1:
        folders = ", ".join(str(run.folder) for run in fitting)
        raise RequestError(f"{len(fitting)} runs of {source.model} have {source.task_name}: {folders}; give one")
    return fitting[0]


@dataclass(frozen=True)
class _Row:
    """One row: its label, where its numbers come from, and the published row that it is; None for a new model."""

    label: str
    source: Source
    published: str | None = None


def _without(cell: ReproducedCell, why: str, column: str) -> ReproducedCell:
    """Return a cell of `column` with the reason for its missing total, another cell as it is."""
    return replace(cell, undefined=why) if cell.column == column else cell


def _reasons(cells: Sequence[ReproducedCell]) -> list[str]:
    """Return why cells have no number; rows that share a reason throughout share a line."""
    by_reason: dict[str, dict[tuple[str, str], list[str]]] = {}
    for cell in cells:
        reason = cell.undefined
        if reason is not None and not reason.startswith(NO_RUN):
            # The cells of one row name one task each.
            reason = NOT_ASKED if NOT_ASKED in reason else reason
            by_reason.setdefault(reason, {}).setdefault((cell.block, cell.row), []).append(cell.column)
    columns = len({cell.column for cell in cells})
    missing = dict.fromkeys(cell.model for cell in cells if (cell.undefined or "").startswith(NO_RUN))
    found = [f"{NO_RUN} {', '.join(missing)}"] if missing else []
    for reason, rows in by_reason.items():
        whole = [_named(*place) for place, own in rows.items() if len(own) == columns]
        found += [f"{'; '.join(whole)}: {reason}"] if whole else []
        found += [f"{_named(*place)}, {', '.join(own)}: {reason}" for place, own in rows.items() if len(own) < columns]
    return found


def _named(block: str, row: str) -> str:
    return f"{block}, {row}" if block else row
