"""Published tables: the numbers of a paper, and where a finished run has the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from equivox.configs import config_names, read_config_file
from equivox.core.errors import UsageError, nearest

FOLDER = "published"
"""The folder of the packaged files, below `configs/`."""


class _Form(BaseModel):
    """A part of a file of published tables; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Form):
    """Source of a cell's number; the column, row, block or table, in this order, give its fields.

    `model`, `setting` and `annotator` choose the run and the annotations. `family`, `task` and `condition` name the
    task; without `task` it is the whole family. The number is a score (`score`, `subset`), an entry of a stored table
    (`table`, the row for which `where` holds, and its `column`; with `add_up` the sum over all such rows), or a total
    over the scores of the row relative to the block's models (`cohort_total`; `cohort` names the published models).
    `places` is the number of printed decimals. `with_p` says that the paper prints a p-value beside. `sides` names the
    groups that a positive and a negative number favour, where the paper prints magnitudes. `marks` says what the paper
    marks in a column of a block: both ends, or the lowest (bold) and the second lowest (underlined) number.
    """

    model: str = ""
    setting: str = ""
    annotator: str = ""
    family: str = ""
    task: str = ""
    condition: str = ""
    score: str = ""
    subset: str = ""
    table: str = ""
    where: dict[str, str] = {}
    column: str = ""
    add_up: bool = False
    cohort_total: bool = False
    cohort: str = ""
    places: int = Field(default=2, ge=0, le=6)
    with_p: bool = False
    sides: tuple[str, str] | tuple[()] = ()
    marks: Literal["", "ends", "lowest"] = ""

    def within(self, *around: Source) -> Source:
        """Return this source with the fields that it leaves open taken from `around`, the nearest first."""
        fields = [source.model_dump(exclude_unset=True) for source in (*reversed(around), self)]
        return Source(**{name: value for field in fields for name, value in field.items()})

    @property
    def task_name(self) -> str:
        """The task, or the family, with its condition: `family:task@condition`."""
        name = f"{self.family}:{self.task}" if self.task else self.family
        return f"{name}@{self.condition}" if self.condition else name


class Block(_Form):
    """Rows of a table that stand together: their label, and their numbers by row, in the order of the columns.

    `p` holds the printed p-values, by row and column. A figure prints no numbers: its block has all rows of the table.
    The block of a table of findings has its entries by column, the first one first.
    """

    label: str = ""
    select: Source = Source()
    published: dict[str, list[float | None] | list[str]] = {}
    stars: dict[str, list[int]] = {}
    p: dict[str, dict[str, float]] = {}


class PublishedTable(_Form):
    """One table of a paper. Its columns and rows say where their numbers come from, its blocks hold the numbers.

    A table with `draw` is a figure of the paper, a panel per block: bars along an axis called `unit`, or how the
    columns correlate over the rows. A table of `findings` has lists as cells: the rows of this stored table, by rank.
    """

    name: str = Field(pattern=r"^[a-z0-9_.]+$")
    caption: str
    select: Source = Source()
    draw: Literal["", "bars", "correlations"] = ""
    unit: str = ""
    findings: str = ""
    columns: dict[str, Source] = Field(min_length=1)
    rows: dict[str, Source] = Field(default={"": Source()}, min_length=1)
    blocks: list[Block] = Field(default=[Block()], min_length=1)

    @model_validator(mode="after")
    def _check(self) -> PublishedTable:
        if len({block.label for block in self.blocks}) < len(self.blocks):
            raise ValueError("two blocks have one label")
        for block in self.blocks:
            where = f"block {block.label!r}"
            kind, known = ("columns", self.columns) if self.findings else ("rows", self.rows)
            for row, printed in [*block.published.items(), *block.stars.items()]:
                if row not in known:
                    raise ValueError(f"{where} has numbers of {row!r}, which is not in `{kind}`")
                if len(printed) != len(self.columns) and not self.findings:
                    raise ValueError(f"{where}, {row}: {len(printed)} numbers for {len(self.columns)} columns")
            if unknown := [name for printed in block.p.values() for name in printed if name not in self.columns]:
                raise ValueError(f"{where} has a p of {unknown[0]!r}, which is not in `columns`")
            if not self.draw and not block.published:
                raise ValueError(f"{where} has no numbers; only a figure (`draw`) may leave them out")
            by_block = bool(block.select.within(self.select).model)
            by_column = any(column.model for column in self.columns.values())
            if by_column or any(bool(row.model) == by_block for row in self.rows.values()):
                raise ValueError(f"{where}: the model is named by the row or by the block, by one of them")
        return self

    def cells(self) -> Iterator[dict[str, Any]]:
        """Yield the cells row by row: labels, `source`, what is printed, and the `block_of_others`.

        That is what labels the block of a model that the paper does not have, behind its name; None if such a model has
        a row in this block.
        """
        for block in self.blocks:
            others = block.label if block.select.where else block.select.setting
            for row in self.rows if self.findings or not block.published else block.published:
                for position, (column, source) in enumerate(self.columns.items()):
                    printed = block.published.get(column if self.findings else row)
                    yield {
                        "block": block.label,
                        "row": row,
                        "column": column,
                        "source": source.within(self.rows[row], block.select, self.select),
                        "published": printed if self.findings or printed is None else printed[position],
                        "stars_published": block.stars[row][position] if row in block.stars else None,
                        "p_published": block.p.get(row, {}).get(column),
                        "block_of_others": None if self.rows[row].model else others,
                    }


class PublishedPaper(_Form):
    """The tables of a paper; `annotator` read its responses, unless a cell names another one.

    `stand_ins` names, by family, the one that stands for it in a run without the tools of the paper; a table that it
    fills says so.
    """

    source: str
    annotator: str = ""
    stand_ins: dict[str, str] = {}
    tables: list[PublishedTable] = Field(min_length=1)


def published_names() -> list[str]:
    """Return the names of the papers whose tables come with the package."""
    return config_names(FOLDER)


def published_paper(name: str) -> PublishedPaper:
    """Return the published tables of a paper, packaged or in a YAML file; UsageError for an unknown name."""
    known = published_names()
    if not name.endswith((".yaml", ".yml")) and name not in known:
        raise UsageError(f"no tables of {name!r}{nearest(name, known)}; known: {', '.join(known)}, or a YAML file")
    return read_config_file(PublishedPaper, name, FOLDER)
