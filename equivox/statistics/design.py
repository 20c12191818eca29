"""The design of a comparison: who is in which group, and what is held equal between groups.

A *cell* is one unit in one group. Units are *nested* in groups (a speaker has one accent), *crossed* with them (a CV is
sent with every name), or *mixed*. Blocks and strata are held equal: groups are compared within them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.core.notes import Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.inputs import Bools, EncodedLabels, Floats, Ints, LabelColumn

UNEQUAL = 0.05
"""Where two groups have this share of their rows in other strata, a note says that strata are not held equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Units, groups and strata of all rows, as codes into sorted names.

    Attributes
    ----------
    groups
        The names of the groups.
    group_of_row, unit_of_row, cell_of_row
        The codes of each row.
    group, unit
        The group and the unit of each cell.
    stratum
        The set within which permutations exchange groups, by cell: the block of a nested unit, or the unit itself where
        it is in several groups.
    items
        The columns within which differences may cancel: the item (a sentence), or the stratum, and the block.
    crossed
        Whether units are in every group. A unit that lacks a group is then left out.
    mixed
        Whether some units are in one group and others in several. All of them are then compared.
    notes
        Notes about the design.
    """

    groups: tuple[str, ...]
    group_of_row: Ints
    unit_of_row: Ints
    cell_of_row: Ints
    group: Ints
    unit: Ints
    stratum: Ints
    items: tuple[Ints, ...] = ()
    crossed: bool = False
    mixed: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self.groups)

    @cached_property
    def in_several(self) -> Bools:
        """Whether the unit of each cell is in several groups."""
        return np.asarray((np.bincount(self.unit) > 1)[self.unit])

    @cached_property
    def centre(self) -> Ints:
        """The cells of one group and one centre vary around their own mean: blocks, and units in several groups."""
        if self.crossed:
            return np.zeros_like(self.stratum)
        return self.in_several.astype(np.int64) if self.mixed else self.stratum

    @property
    def standardised(self) -> bool:
        """Whether all groups are given the same mix of strata."""
        return not self.mixed and int(self.stratum.max()) > 0

    def find_compared(self, rows: Ints) -> Ints:
        """Return the rows among `rows` in whose stratum every group has one of them; all rows of a mixed design."""
        return rows[self._has_all_groups(rows)] if self.standardised else rows

    def _has_all_groups(self, rows: Ints) -> Bools:
        """Return whether every group has one of `rows` in the stratum of each of them."""
        stratum = self.stratum[self.cell_of_row[rows]]
        cells = np.unique(stratum * self.n_groups + self.group_of_row[rows])
        complete = np.bincount(cells // self.n_groups, minlength=int(self.stratum.max()) + 1) == self.n_groups
        return np.asarray(complete[stratum])

    def count_units(self, rows: Ints) -> int:
        """Return the number of units among `rows`."""
        return len(np.unique(self.unit_of_row[rows]))

    def find_gap(self, rows: Ints) -> Note | None:
        """Return why groups cannot be compared on `rows`; None if they can."""
        if self.n_groups < 2:
            return Note(NoteCode.ONE_GROUP, {"group": self.groups[0]})
        present = np.bincount(self.group_of_row[rows], minlength=self.n_groups)
        if empty := [name for name, n in zip(self.groups, present, strict=True) if not n]:
            return Note(NoteCode.EMPTY_GROUP, {"groups": empty})
        return None if self._has_all_groups(rows).any() else Note(NoteCode.NOTHING_SHARED, {"crossed": self.crossed})

    def describe_left_out(self, rows: Ints) -> list[Note]:
        """Return a note on the units of `rows` that no estimate uses; [] if all are used."""
        of, used = self.count_units(rows), self.count_units(self.find_compared(rows))
        left_out = {"n": of - used, "of": of, "crossed": self.crossed}
        return [Note(NoteCode.UNITS_LEFT_OUT, left_out)] if used < of else []

    def compute_row_weights(self, rows: Ints) -> Floats:
        """Return the weight of each of `rows` that gives all groups the same mix of strata; 0 for what is left out."""
        sizes = np.bincount(self.cell_of_row[rows], minlength=len(self.group)).astype(np.float64)
        return np.asarray(standardise_mix(sizes[:, None], self)[self.cell_of_row[rows], 0], dtype=np.float64)


def build_design(
    groups: LabelColumn,
    clusters: LabelColumn | None,
    strata: LabelColumn | None = None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
) -> Design:
    """Return the design of rows with these labels; without clusters each row is a unit.

    Raises
    ------
    UsageError
        No rows; a column of another length; a missing label; a unit in two blocks; units of which more are in one
        group alone than in all, within several blocks.
    """
    group = inputs.labels(groups, "groups")
    n = len(group.codes)
    if n == 0:
        raise UsageError("`groups` is empty: give the group of at least one response")

    def encode(column: LabelColumn | None, argument: str) -> EncodedLabels | None:
        if column is None:
            return None
        found = inputs.labels(column, argument)
        inputs.same_length("groups", n, {argument: len(found.codes)})
        return found

    given, stratum, block = encode(clusters, "clusters"), encode(strata, "strata"), encode(blocks, "blocks")
    item = encode(items, "items")
    unit_of_row = np.arange(n) if given is None else np.unique(given.codes, return_inverse=True)[1]
    n_groups, n_units = len(group.names), int(unit_of_row.max()) + 1
    cells, cell_of_row = np.unique(unit_of_row * n_groups + group.codes, return_inverse=True)
    unit, group_of_cell = np.divmod(cells, n_groups)
    groups_of_unit = np.bincount(unit)
    several, alone = int((groups_of_unit > 1).sum()), int((groups_of_unit == 1).sum())
    crossed = several > 0 and alone <= int((groups_of_unit == n_groups).sum())
    held = np.zeros(n_units, dtype=np.int64)
    notes: list[Note] = []
    if block is not None:
        held, torn = _find_label(block.codes, unit_of_row, n_units)
        if torn is not None and not crossed:
            name = torn if given is None else given.names[np.unique(given.codes)[torn]]
            raise UsageError(
                f"`blocks` has {name!r} in more than one block: a cluster is in one block; name a column that "
                "describes clusters, or use `strata`"
            )
    if stratum is not None and not crossed:
        of_unit, torn = _find_label(stratum.codes, unit_of_row, n_units)
        if torn is None:
            held = held * len(stratum.names) + of_unit
    if stratum is not None and (crossed or torn is not None):
        notes += _describe_unequal_mix(group, stratum)
    block_of_unit = np.unique(held, return_inverse=True)[1]
    mixed = several > 0 and not crossed
    if mixed and block_of_unit.any():
        raise UsageError(
            f"`clusters` has {alone} units in one group and {several} in several, within several blocks or strata; "
            "give every unit to one group, or every unit to all"
        )
    shared = groups_of_unit > 1
    place = np.where(shared | crossed, int(block_of_unit.max()) + 1 + np.arange(n_units), block_of_unit)
    within = [column.codes for column in ((item or stratum), None if crossed else block) if column is not None]
    return Design(
        groups=tuple(group.names),
        group_of_row=group.codes,
        unit_of_row=unit_of_row,
        cell_of_row=cell_of_row,
        group=group_of_cell,
        unit=unit,
        stratum=np.unique(place[unit], return_inverse=True)[1],
        items=tuple(within),
        crossed=crossed,
        mixed=mixed,
        notes=tuple(notes),
    )


def _find_label(label_of_row: Ints, unit_of_row: Ints, n_units: int) -> tuple[Ints, int | None]:
    """Return each unit's label, and the first unit with two labels; None if there is none."""
    label = np.zeros(n_units, dtype=np.int64)
    label[unit_of_row] = label_of_row
    torn = unit_of_row[label[unit_of_row] != label_of_row]
    return label, (int(torn.min()) if torn.size else None)


def _describe_unequal_mix(group: EncodedLabels, stratum: EncodedLabels) -> list[Note]:
    """Return a note if groups hold strata that units span in unequal numbers, which nothing here makes equal."""
    counts = cross_count(group.codes, stratum.codes, (len(group.names), len(stratum.names)))
    shares = counts / counts.sum(axis=1, keepdims=True)
    pairs = itertools.combinations(range(len(shares)), 2)
    apart = {pair: float(np.abs(shares[pair[0]] - shares[pair[1]]).sum()) / 2 for pair in pairs}
    most = max(apart, key=lambda pair: apart[pair], default=(0, 0))
    if apart.get(most, 0.0) < UNEQUAL - 1e-9:
        return []
    one, other = (group.names[code] for code in most)
    return [Note(NoteCode.STRATA_UNEQUAL, {"share": apart[most], "one": one, "other": other})]


def standardise_mix(sizes: Floats, design: Design) -> Floats:
    """Return the factors on cells that give all groups the same mix of strata, K x A (direct standardisation).

    `sizes` are the answers of each cell, K x A. A stratum counts as much as it has answers in all groups together. A
    stratum in which some group has none counts for no group. Keiding & Clayton 2014, doi:10.1214/13-STS453.
    """
    total = np.zeros((int(design.stratum.max()) + 1, design.n_groups, sizes.shape[1]))
    np.add.at(total, (design.stratum, design.group), sizes)
    complete = total.min(axis=1) > 0
    of_stratum = np.where(complete, total.sum(axis=1), 0.0)
    share = of_stratum / np.maximum(of_stratum.sum(axis=0), 1.0)
    inside = np.where(complete[:, None], total, 0.0).sum(axis=0)
    used = complete[:, None] & (total > 0)
    factor = np.divide(share[:, None] * inside[None], total, out=np.zeros_like(total), where=used)
    return np.asarray(factor[design.stratum, design.group])


def sum_parts(counts: Floats, parts: Sequence[slice]) -> Floats:
    """Return the sum of the columns of each part, rows x parts."""
    return np.stack([counts[..., part].sum(axis=-1) for part in parts], axis=-1)


def repeat_parts(numbers: Floats, parts: Sequence[slice]) -> Floats:
    """Return the number of each part in all of its columns, rows x columns from rows x parts."""
    return np.repeat(numbers, [part.stop - part.start for part in parts], axis=-1)


def join_parts(widths: Sequence[int]) -> list[slice]:
    """Return the columns of parts of these widths that stand side by side.

    >>> join_parts([2, 3])
    [slice(0, 2, None), slice(2, 5, None)]
    """
    ends = list(itertools.accumulate(widths))
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
