"""The answers of two runs to the same planned requests, as far as they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equivox.core.task import Task
from equivox.report.view.answers import METADATA, NEXT_VALUE, VALUES, joined_known

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Pair:
    r"""Two runs on one task: a row for each planned request whose answers differ, and how many there are.

    Columns of `table`: `first` and `second` (row numbers in the two tables of answers), `stratum`, `group`, and
    `changed`, the attributes that differ, separated by `\x1f`; empty if only the words do. `status` among them means
    that one answer could be read and the other could not.
    """

    table: pa.Table
    matched: int
    same: int
    only_words: int


def paired(task: Task, first: pa.Table, second: pa.Table) -> Pair:
    """Return the answers to the same requests that differ: same sample, same presentation, same repeat."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    shared = [name for name in first.column_names if name.startswith(METADATA) and name in second.column_names]
    there = pc.index_in(_identity(first, shared), value_set=_identity(second, shared).combine_chunks())
    matched = pc.is_valid(there).to_numpy(zero_copy_only=False)
    here = pa.array(np.flatnonzero(matched))
    there = there.drop_null() if not isinstance(there, pa.ChunkedArray) else there.combine_chunks().drop_null()
    one, other = first.take(here).combine_chunks(), second.take(there).combine_chunks()
    words = _differ(_flat(one["text"]), _flat(other["text"]))
    names = ["status", *(name for name in one.column_names if name.startswith(VALUES) and name in other.column_names)]
    if "segments" in one.column_names and "segments" in other.column_names:
        names.append("segments")
    found = [(name.removeprefix(VALUES), _differ(_flat(one[name]), _flat(other[name]))) for name in names]
    nothing = pa.scalar(None, pa.string())
    changed = joined_known([pc.if_else(mask, name, nothing) for name, mask in found], NEXT_VALUE)
    values = pc.not_equal(changed, "")
    keep = pc.or_(values, words)
    table = pa.table(
        {
            "first": here.cast(pa.int32()),
            "second": there.cast(pa.int32()),
            "stratum": one["stratum"],
            "group": one["group"],
            "changed": changed,
        }
    ).filter(keep)
    n_values = int(pc.sum(values).as_py() or 0)
    return Pair(table, len(here), len(here) - len(table), len(table) - n_values)


def _identity(table: pa.Table, metadata: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [table["sample"], table["repeat"].cast(pa.string()), *(pc.fill_null(table[name], "") for name in metadata)]
    return pc.binary_join_element_wise(*parts, NEXT_VALUE)


def _flat(column: Any) -> Any:
    """Return a column as one array of texts; the values of a list are joined."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return pc.binary_join(whole, NEXT_VALUE) if pa.types.is_list(whole.type) else whole


def _differ(one: Any, other: Any) -> Any:
    import pyarrow.compute as pc

    # Null is a value of its own here: no answer differs from an empty one.
    known = pc.fill_null(pc.not_equal(one, other), False)
    return pc.or_(known, pc.xor(pc.is_null(one), pc.is_null(other)))
