"""Responses as integer tables: the group, cluster and values of each as codes, and what is held equal between groups.

Groups that hold blocks or strata in unequal numbers differ by these numbers alone. Direct standardisation removes
that: within each stratum s the groups are compared with one another, and the strata are added up with the same weights
w_s for all groups, P_g = Σ_s w_s P_gs (Keiding & Clayton 2014, doi:10.1214/13-STS453).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equivox.core.columns import cross_count
from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Bools, EncodedLabels, EncodedValues, Floats, Ints, LabelColumn

_ALIKE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Standard:
    """How the clusters count so that every group has the same mix of strata.

    Attributes
    ----------
    weights
        K x A, the factor on the counts of each cluster in each attribute; 0 outside of the common support. The weighted
        counts of a group add up to its number of values within the common support.
    deals
        K x A x G, the factor on what a cluster has beyond the mean of its stratum, if it were of group g. Unlike
        `weights` it does not depend on the clusters' groups, so that permutations keep it.
    common
        S x A, whether every group has values of the attribute in the stratum, or none has.
    """

    weights: Floats
    deals: Floats
    common: Bools

    @property
    def balanced(self) -> bool:
        """Whether every group has the same mix of strata already, so that nothing has to be weighted."""
        given = self.weights[self.weights > 0]
        return bool((np.abs(given - 1) < _ALIKE).all() and self.common.all())


def standard(counts: Ints | Floats, group: Ints, held: Ints | None, slices: Sequence[slice], n_groups: int) -> Standard:
    """Return how the clusters count, from the values of each (`counts`, K x V), its group and its stratum.

    A stratum weighs as much as it has values in all groups together. A stratum in which some group has no value is no
    part of the common support: it counts for no group.
    """
    sizes = sizes_of(counts, slices).astype(np.float64)
    n_parts = sizes.shape[1]
    stratum = np.zeros(len(group), dtype=np.int64) if held is None else np.unique(held, return_inverse=True)[1]
    n_strata = int(stratum.max()) + 1
    totals = np.zeros((n_strata, n_groups, n_parts))
    np.add.at(totals, (stratum, group), sizes)
    members = cross_count(stratum, group, (n_strata, n_groups))
    of_stratum = totals.sum(axis=1)
    common = (totals.min(axis=1) > 0) | (of_stratum == 0)
    share = np.where(common, of_stratum, 0.0)
    inside = np.where(common[:, None], totals, 0.0).sum(axis=0)
    ratio = _divided((share / np.maximum(share.sum(axis=0), 1.0))[:, None] * inside[None], totals * common[:, None])
    # Both factors below depend on the numbers of clusters alone, which permutations keep.
    everywhere = of_stratum * (members.min(axis=1) > 0)[:, None]
    expected = members[:, :, None] * (of_stratum / members.sum(axis=1)[:, None])[:, None]
    deal = _divided((everywhere / np.maximum(everywhere.sum(axis=0), 1.0))[:, None], expected)
    return Standard(
        weights=ratio[stratum, group],
        deals=deal[stratum].transpose(0, 2, 1),
        common=common,
    )


def _divided(above: Floats, below: Floats) -> Floats:
    """Return the quotient, 0 where the divisor is 0."""
    return np.divide(above, below, out=np.zeros(below.shape), where=below > 0)


@dataclass(frozen=True, kw_only=True)
class Design:
    """The group, cluster and stratum of every response, as codes into sorted names; without clusters these are empty.

    In a crossed design each unit is in every group. A cluster is then a unit in one group, and its unit is the stratum.
    """

    groups: tuple[str, ...]
    group_of_row: Ints
    clusters: tuple[str, ...] = ()
    cluster_of_row: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    group_of_cluster: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stratum_of_cluster: Ints | None = None
    block_of_cluster: Ints | None = None
    item_of_row: Ints | None = None
    stratum_of_row: Ints | None = None
    crossed: bool = False
    notes: tuple[str, ...]

    @property
    def paired(self) -> bool:
        """Whether strata hold one cluster of each group at most, such as an item that was given to every group."""
        if self.held is None:
            return False
        return int(np.unique(self.held * len(self.groups) + self.group_of_cluster, return_counts=True)[1].max()) == 1

    def n_units(self, rows: Ints) -> int:
        """Return the number of units among the responses `rows`: clusters, or what is in every group; 0 without any."""
        if not self.clusters:
            return 0
        own = self.cluster_of_row[rows]
        return len(np.unique(own if not self.crossed else np.asarray(self.stratum_of_cluster)[own]))

    def compared(self, rows: Ints) -> Ints:
        """Return the responses among `rows` beside which every group has one in the same unit, or stratum and block.

        Only these are compared. They are all of `rows` where nothing is held equal.
        """
        if self.held is None:
            return rows
        n_groups, held = len(self.groups), self.held[self.cluster_of_row[rows]]
        cells = np.unique(held * n_groups + self.group_of_row[rows])
        complete: Bools = np.bincount(cells // n_groups, minlength=int(self.held.max()) + 1) == n_groups
        return np.asarray(rows[complete[held]])

    @property
    def held_by(self) -> str:
        """The word for what is held equal."""
        return "unit" if self.crossed else "stratum or block"

    def lacks(self, rows: Ints, of_group: str, of_held: str) -> str | None:
        """Return why groups cannot be compared on some rows, in words, which begin as given; None if they can be."""
        n_groups, group = len(self.groups), self.group_of_row[rows]
        n_of_group = np.bincount(group, minlength=n_groups)
        if empty := [name for name, n in zip(self.groups, n_of_group, strict=True) if not n]:
            return f"{of_group} in group {', '.join(map(repr, empty))}"
        return None if len(self.compared(rows)) else f"no {self.held_by} has {of_held}: nothing to compare"

    @property
    def held(self) -> Ints | None:
        """The code of what permutations hold for each cluster: its stratum and its block; None if nothing is held."""
        if self.stratum_of_cluster is None or self.block_of_cluster is None:
            return self.stratum_of_cluster if self.block_of_cluster is None else self.block_of_cluster
        return self.stratum_of_cluster * (int(self.block_of_cluster.max()) + 1) + self.block_of_cluster


def equal_mix(design: Design) -> Floats | None:
    """Return the weight of each response that gives all groups the same mix of strata; None if they have it."""
    if design.held is None:
        return None
    sizes = np.bincount(design.cluster_of_row, minlength=len(design.clusters))
    found = standard(sizes[:, None], design.group_of_cluster, design.held, [slice(0, 1)], len(design.groups))
    return None if found.balanced else np.asarray(found.weights[design.cluster_of_row, 0], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Occurrences:
    """The answers of one attribute: one (row, value) pair per kept value."""

    values: tuple[str, ...]
    rows: Ints
    codes: Ints
    removed: dict[str, int]
    n_total: int


def encode_design(
    groups: LabelColumn,
    clusters: LabelColumn | None,
    strata: LabelColumn | None,
    blocks: LabelColumn | None = None,
    items: LabelColumn | None = None,
) -> Design:
    """Return the design as codes: nested if every cluster carries one group, crossed if every one is in all groups.

    Raises
    ------
    UsageError
        No rows; a column of another length; a missing label; clusters of which some are in one group and some in
        several; a cluster in two blocks; strata or blocks without clusters.
    """
    group = inputs.labels(groups, "groups")
    group_of_row, n = group.codes, len(group.codes)
    if n == 0:
        raise UsageError("`groups` is empty: give the group of at least one response")

    def coded(column: LabelColumn, argument: str) -> EncodedLabels:
        found = inputs.labels(column, argument)
        inputs.same_length("groups", n, {argument: len(found.codes)})
        return found

    item_of_row = None if items is None else coded(items, "items").codes
    if clusters is None:
        for name, given in (("strata", strata), ("blocks", blocks)):
            if given is not None:
                raise UsageError(f"`{name}` was given without `clusters`: {name} hold whole clusters; name both")
        return Design(
            groups=tuple(group.names),
            group_of_row=group_of_row,
            item_of_row=item_of_row,
            notes=("no clusters were given, so responses count as independent and p_cluster is undefined",),
        )
    cluster = coded(clusters, "clusters")
    stratum = None if strata is None else coded(strata, "strata")
    block = None if blocks is None else coded(blocks, "blocks")
    group_of_cluster, torn = _carried(group_of_row, cluster.codes, len(cluster.names))
    if torn is not None:
        found = _crossed(group, cluster, item_of_row, () if stratum is None else _unequal_mix(group, stratum))
    else:
        found = _nested(group, cluster, group_of_cluster, item_of_row, stratum, block)
    return found if stratum is None else replace(found, stratum_of_row=stratum.codes)


def _nested(
    group: EncodedLabels,
    cluster: EncodedLabels,
    group_of_cluster: Ints,
    item_of_row: Ints | None,
    stratum: EncodedLabels | None,
    block: EncodedLabels | None,
) -> Design:
    """Return the design in which every cluster carries one group; UsageError for a cluster in two blocks."""
    notes: tuple[str, ...] = ()
    stratum_of_cluster = block_of_cluster = None
    if stratum is not None:
        stratum_of_cluster, torn = _carried(stratum.codes, cluster.codes, len(cluster.names))
        if torn is not None:
            stratum_of_cluster = None
            freely = "freely" if block is None else "within blocks"
            notes = (
                f"clusters span several strata: whole clusters are permuted {freely}",
                *_unequal_mix(group, stratum),
            )
    if block is not None:
        block_of_cluster, torn = _carried(block.codes, cluster.codes, len(cluster.names))
        if torn is not None:
            raise UsageError(
                f"`blocks` has {cluster.names[torn]!r} in more than one block: a cluster is in one block; name a "
                "column that describes clusters, or use `strata`"
            )
    return Design(
        groups=tuple(group.names),
        group_of_row=group.codes,
        clusters=tuple(cluster.names),
        cluster_of_row=cluster.codes,
        group_of_cluster=group_of_cluster,
        stratum_of_cluster=stratum_of_cluster,
        block_of_cluster=block_of_cluster,
        item_of_row=item_of_row,
        notes=notes,
    )


UNEQUAL = 0.05
"""Where two groups have this share of their rows in other strata, a note says that strata are not held equal."""


def _unequal_mix(group: EncodedLabels, stratum: EncodedLabels) -> tuple[str, ...]:
    """Return a note if groups hold strata that clusters span in unequal numbers, which nothing here makes equal."""
    counts = cross_count(group.codes, stratum.codes, (len(group.names), len(stratum.names)))
    shares = counts / counts.sum(axis=1, keepdims=True)
    pairs = itertools.combinations(range(len(shares)), 2)
    apart = {pair: float(np.abs(shares[pair[0]] - shares[pair[1]]).sum()) / 2 for pair in pairs}
    most = max(apart, key=lambda pair: apart[pair], default=(0, 0))
    if apart.get(most, 0.0) < UNEQUAL - _ALIKE:
        return ()
    one, other = (group.names[code] for code in most)
    return (
        f"strata are not held equal, because clusters span them: {100 * apart[most]:.0f} % of {one} are in other "
        f"strata than {other}, so part of a difference may be that of strata",
    )


def _crossed(group: EncodedLabels, unit: EncodedLabels, item_of_row: Ints | None, notes: tuple[str, ...]) -> Design:
    """Return the design in which units are in every group.

    Some units may lack the answers of a group; they are left out later, and counted. UsageError with the numbers if
    more units are in one group alone than in all: then two designs are mixed.
    """
    n_groups = len(group.names)
    cell = unit.codes * n_groups + group.codes
    present, cluster_of_row = np.unique(cell, return_inverse=True)
    unit_of_cluster, group_of_cluster = np.divmod(present, n_groups)
    groups_of_unit = np.bincount(unit_of_cluster, minlength=len(unit.names))
    if (groups_of_unit == 1).sum() > (groups_of_unit == n_groups).sum():
        first = int(groups_of_unit.argmin())
        seen = [group.names[code] for code in group_of_cluster[unit_of_cluster == first]]
        numbers = ", ".join(
            f"{(groups_of_unit == size).sum()} in {size}" for size in np.unique(groups_of_unit)[::-1].tolist()
        )
        raise UsageError(
            f"`clusters` has units in one group and units in several: of {len(unit.names)}, {numbers} of {n_groups} "
            f"groups ({unit.names[first]!r} in {', '.join(seen)}); give every unit to one group, or every unit to all"
        )
    return Design(
        groups=tuple(group.names),
        group_of_row=group.codes,
        clusters=tuple(
            f"{unit.names[own]} in {group.names[code]}"
            for own, code in zip(unit_of_cluster, group_of_cluster, strict=True)
        ),
        cluster_of_row=cluster_of_row,
        group_of_cluster=group_of_cluster,
        stratum_of_cluster=unit_of_cluster,
        item_of_row=item_of_row,
        crossed=True,
        notes=("each unit is in every group, so groups are compared within units", *notes),
    )


def _carried(label_of_row: Ints, cluster_of_row: Ints, n_clusters: int) -> tuple[Ints, int | None]:
    """Return each cluster's label, and the first cluster with two labels (None if there is none)."""
    label = np.zeros(n_clusters, dtype=np.int64)
    label[cluster_of_row] = label_of_row
    torn = cluster_of_row[label[cluster_of_row] != label_of_row]
    return label, (int(torn.min()) if torn.size else None)


def encode_values(values: EncodedValues, min_count: int) -> Occurrences:
    """Return the values that occur at least `min_count` times over all rows, as (row, value) pairs."""
    seen = np.bincount(values.codes, minlength=len(values.names))
    is_kept = seen >= min_count
    position = np.cumsum(is_kept) - 1
    keep = is_kept[values.codes]
    names = values.names
    return Occurrences(
        values=tuple(names[code] for code in np.flatnonzero(is_kept).tolist()),
        rows=values.rows[keep],
        codes=position[values.codes[keep]],
        removed={names[code]: int(seen[code]) for code in np.flatnonzero(~is_kept).tolist()},
        n_total=len(values.codes),
    )


def side_by_side(widths: Iterable[int]) -> list[slice]:
    """Return the columns of parts of these widths that stand side by side.

    >>> side_by_side([2, 3])
    [slice(0, 2, None), slice(2, 5, None)]
    """
    ends = list(itertools.accumulate(widths))
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def sizes_of(counts: Ints | Floats, parts: Sequence[slice]) -> Any:
    """Return the sum of each row of counts over the columns of each part, rows x parts."""
    return np.stack([counts[:, part].sum(axis=1) for part in parts], axis=1)


def by_column(numbers: Floats, parts: Sequence[slice]) -> Floats:
    """Return a number of each part for each of its columns, rows x columns from rows x parts."""
    return np.repeat(numbers, [part.stop - part.start for part in parts], axis=1)


def part_of_column(parts: Sequence[slice]) -> Ints:
    """Return the place of the part that each column is of."""
    return np.repeat(np.arange(len(parts)), [part.stop - part.start for part in parts])


@dataclass(frozen=True)
class Answers:
    """The answers of one or several attributes side by side: one (row, column) pair per kept value.

    `parts` are the columns of each attribute, one range after another.
    """

    rows: Ints
    columns: Ints
    parts: Sequence[slice]

    @classmethod
    def of(cls, attributes: Iterable[Occurrences]) -> Answers:
        """Return the answers of several attributes."""
        every = list(attributes)
        parts = side_by_side(len(found.values) for found in every)
        columns = [found.codes + part.start for found, part in zip(every, parts, strict=True)]
        return cls(np.concatenate([found.rows for found in every]), np.concatenate(columns), parts)

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.parts[-1].stop)

    def counted(self, code_of_row: Ints, n: int) -> Ints:
        """Count the values in the rows of each of `n` codes, n x columns."""
        return cross_count(code_of_row[self.rows], self.columns, (n, self.width))

    def of_clusters(self, design: Design, weights: Floats | None) -> Floats:
        """Return the counts of each cluster, K x columns, times its `weights`, K x parts; None: as it is."""
        counts = self.counted(design.cluster_of_row, len(design.clusters)).astype(np.float64)
        return counts if weights is None else counts * by_column(weights, self.parts)
