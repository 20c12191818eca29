"""Published tables: the numbers of a paper, and where a finished run has the same ones."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from equivox.configs import config_names, read_config_file
from equivox.core.errors import RequestError, nearest

FOLDER = "published"
"""The folder of the packaged files, below `configs/`."""


Drawing = Literal["bars", "stacked", "bubbles", "correlations"]


class _Form(BaseModel):
    """A part of a file of published tables; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Form):
    """Source of a cell's number. A field that is not given is taken from the column, row, block or table around.

    `model`, `setting` and `annotator` choose the run and whose annotations count. `family`, `task` and `condition` name
    the task; without `task` the whole family is meant. The number is then a score (`score`, with its `subset`), or an
    entry of a stored table (`table`, the row for which `where` holds, and its `column`; with `add_up` the sum over all
    such rows), or a total over the scores of the row relative to the block's models (`cohort_total`; `cohort` names the
    published models). `places` is the number of printed decimals. `with_p` says that the paper prints a p-value beside.
    `sides` names whom a positive and a negative number favour, where the paper prints magnitudes. `marks` says what the
    paper marks in a column of a block: both ends, or the lowest (bold) and the second lowest (underlined) number.
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
        fields: dict[str, Any] = {}
        for source in (self, *around):
            fields = {**{name: getattr(source, name) for name in source.model_fields_set}, **fields}
        return Source(**fields)

    def without_model(self) -> Source:
        """Return this source with the model left open."""
        return Source(**{name: getattr(self, name) for name in self.model_fields_set - {"model"}})

    @property
    def key(self) -> str:
        """The given fields as text: two sources with one key choose the same."""
        return self.model_dump_json(exclude_unset=True)

    @property
    def task_name(self) -> str:
        """The task, or the family, with its condition: `family:task@condition`."""
        name = f"{self.family}:{self.task}" if self.task else self.family
        return f"{name}@{self.condition}" if self.condition else name


class Block(_Form):
    """Rows of a table that stand together: their label, and their numbers by row, in the order of the columns.

    `p` holds the printed p-values, by row and column. A figure prints no numbers: its block has all rows of the table.
    """

    label: str = ""
    select: Source = Source()
    published: dict[str, list[float | None]] = {}
    stars: dict[str, list[int]] = {}
    p: dict[str, dict[str, float]] = {}


class PublishedTable(_Form):
    """One table of a paper. Its columns and rows say where their numbers come from, its blocks hold the numbers.

    A table with `draw` is a figure of the paper: its numbers are drawn in that form, a panel per block, along an axis
    called `unit`.
    """

    name: str = Field(pattern=r"^[a-z0-9_.]+$")
    caption: str
    select: Source = Source()
    draw: Drawing | None = None
    unit: str = ""
    columns: dict[str, Source] = Field(min_length=1)
    rows: dict[str, Source] = Field(min_length=1)
    blocks: list[Block] = Field(default=[Block()], min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> PublishedTable:
        if self.select.model or any(column.model for column in self.columns.values()):
            raise ValueError("a model is chosen by rows or by blocks")
        for block in self.blocks:
            where = f"block {block.label!r}"
            if not self.draw and not block.published:
                raise ValueError(f"{where} has no numbers; only a figure (`draw`) may leave them out")
            if unknown := [name for own in block.p.values() for name in own if name not in self.columns]:
                raise ValueError(f"{where} has a p of {unknown[0]!r}, which is not in `columns`")
            printed = [(row, len(own)) for kind in (block.published, block.stars) for row, own in kind.items()]
            for row, width in printed or [(row, len(self.columns)) for row in self.rows]:
                if row not in self.rows:
                    raise ValueError(f"{where} has numbers of {row!r}, which is not in `rows`")
                if width != len(self.columns):
                    raise ValueError(f"{where}, {row}: {width} numbers for {len(self.columns)} columns")
                if bool(block.select.model) == bool(self.rows[row].model):
                    raise ValueError(f"{where}, {row}: the model is named by the row or by the block, by one of them")
        labels = [block.label for block in self.blocks]
        if len(set(labels)) < len(labels):
            raise ValueError("two blocks have one label")
        return self

    def rows_of(self, block: Block) -> list[str]:
        """Return the rows of a block."""
        return list(block.published or self.rows)

    def source(self, block: Block, row: str, column: str) -> Source:
        """Return where the number of a cell comes from."""
        return self.columns[column].within(self.rows[row], block.select, self.select)


class _ListBlock(_Form):
    """Lists that stand together: their label, and their entries by column, the first one first."""

    label: str
    select: Source = Source()
    published: dict[str, list[str]]


class PublishedList(_Form):
    """One table of a paper whose cells are lists of findings, such as the strongest associations.

    `table` is the stored table of a family that has the findings, by their rank.
    """

    name: str = Field(pattern=r"^[a-z0-9_.]+$")
    caption: str
    table: str
    select: Source = Source()
    columns: dict[str, Source] = Field(min_length=1)
    blocks: list[_ListBlock] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> PublishedList:
        for block in self.blocks:
            if list(block.published) != list(self.columns):
                raise ValueError(f"block {block.label!r} has lists of {list(block.published)}, not of the columns")
        return self

    def source(self, block: _ListBlock, column: str) -> Source:
        """Return where the findings of a cell come from."""
        return self.columns[column].within(block.select, self.select)


class PublishedPaper(_Form):
    """The tables of a paper; `annotator` read its responses, unless a cell names another one.

    `stand_ins` names, by family, the one that stands for it in a run without the tools of the paper; a table that it
    fills says so.
    """

    source: str
    annotator: str = ""
    stand_ins: dict[str, str] = {}
    tables: list[PublishedTable] = Field(min_length=1)
    lists: list[PublishedList] = []


def published_names() -> list[str]:
    """Return the names of the papers whose tables come with the package."""
    return config_names(FOLDER)


def published_paper(name: str) -> PublishedPaper:
    """Return the published tables of a paper, packaged or in a YAML file; RequestError for an unknown name."""
    known = published_names()
    if not name.endswith((".yaml", ".yml")) and name not in known:
        raise RequestError(f"no tables of {name!r}{nearest(name, known)}; known: {', '.join(known)}, or a YAML file")
    return read_config_file(PublishedPaper, name, FOLDER)
