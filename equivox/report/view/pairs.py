"""Pairs of answers: of two runs to the same request where they differ, and of two groups where they differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equivox.core.attributes import Attribute
from equivox.core.encoded import cross_count
from equivox.core.lazy import NDArray, np, pa, pc
from equivox.report.view.answers import METADATA, NEXT_VALUE, VALUES, joined_known


@dataclass(frozen=True)
class Telling:
    """Two answers of two groups that show a difference: the first has what its group has more often, the second not.

    `rows` are their row numbers in the table of answers, and `shares` how many of the answers of either group are like
    the first, in percent. `attribute` and `value` are what differs; both are empty where the first answer could not be
    used and the second could. `among` is the stratum whose answers the shares are of; empty if they are of all.
    """

    rows: tuple[int, int]
    shares: tuple[float, float]
    attribute: str = ""
    value: str = ""
    among: str = ""


def telling_pair(table: pa.Table, attributes: Sequence[Attribute]) -> Telling | None:
    """Return two answers that show the largest difference between groups; None if no two groups differ in a value.

    Of all values of the outcomes it is the one whose share differs most between two groups; a number counts as above
    the median or not, and a choice among texts that a sample offers is the text, among the answers of its stratum. Both
    answers are of one stratum and item where there are such, so that little differs besides the person.
    """
    found: Telling | None = None
    for attribute in attributes:
        if attribute.role != "outcome" or f"{VALUES}{attribute.name}" not in table.column_names:
            continue
        offered = [f"{METADATA}option_{option.lower()}" for option in attribute.options]
        chosen = bool(offered) and set(offered) <= set(table.column_names)
        rows, codes, names = _chosen(table, attribute, offered) if chosen else _values(table, attribute)
        answered = np.zeros(len(table), bool)
        answered[rows] = True
        shares, code, high, low = _widest(table, answered, rows, codes, len(names), within=chosen)
        if shares[0] - shares[1] > (0 if found is None else found.shares[0] - found.shares[1]):
            having = np.zeros(len(table), bool)
            having[rows[codes == code]] = True
            pair = _two_rows(table, having & high, answered & ~having & low)
            among = table["stratum"][pair[0]].as_py() if chosen else ""
            found = Telling(pair, shares, attribute.name, names[code], among)
    return found


def losing_pair(table: pa.Table) -> Telling | None:
    """Return an answer that could not be used and one that could, of the groups that differ most; None if none do."""
    lost = np.asarray(pc.not_equal(table["status"], "parsed"))
    every = np.ones(len(table), bool)
    rows = np.flatnonzero(lost)
    shares, _, high, low = _widest(table, every, rows, np.zeros(len(rows), int), 1)
    return Telling(_two_rows(table, lost & high, ~lost & low), shares) if shares[0] > shares[1] else None


def _values(table: pa.Table, attribute: Attribute) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Return the row and the code of every value of an attribute, and the names of the codes."""
    column = table[f"{VALUES}{attribute.name}"].combine_chunks()
    rows = pc.list_parent_indices(column).to_numpy().astype(np.int64)
    flat = pc.list_flatten(column)
    if attribute.number is not None:
        numbers = np.asarray(flat.to_pylist(), float)
        middle = float(np.median(numbers)) if len(numbers) else 0.0
        above = numbers > middle
        return rows, np.where(above, 0, 1), [f"above {middle:g}", f"up to {middle:g}"]
    encoded = flat.dictionary_encode()
    return rows, encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _chosen(
    table: pa.Table, attribute: Attribute, offered: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Return the row and the code of every text that was chosen, one code per stratum and text, and the texts.

    `offered` are the columns of the texts, in the order of the attribute's options.
    """
    rows, codes, names = _values(table, attribute)
    texts = [table[column].to_pylist() for column in offered]
    strata = table["stratum"].to_pylist()
    place = {name: attribute.options.index(name) for name in names if name in attribute.options}
    found = [
        (row, (strata[row], texts[place[names[code]]][row]))
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True)
        if names[code] in place
    ]
    number: dict[tuple[str, str], int] = {}
    numbered = [number.setdefault(text, len(number)) for _, text in found]
    return np.array([row for row, _ in found], np.int64), np.array(numbered, np.int64), [text for _, text in number]


def _widest(
    table: pa.Table,
    answered: NDArray[np.bool_],
    rows: NDArray[np.int64],
    codes: NDArray[np.int64],
    n_codes: int,
    *,
    within: bool = False,
) -> tuple[tuple[float, float], int, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the shares of a code that differ most between two groups, the code, and which rows are of either group.

    The larger share comes first, in percent of the group's answers; both are 0 where no two groups have answers. With
    `within` each code belongs to one stratum, and its shares and rows are of the answers there.
    """
    encoded = table["group"].combine_chunks().dictionary_encode()
    group, n_groups = encoded.indices.to_numpy(), len(encoded.dictionary)
    if not len(rows):
        return (0.0, 0.0), 0, answered, answered
    part = np.zeros(len(table), np.int64)
    if within:
        part = table["stratum"].combine_chunks().dictionary_encode().indices.to_numpy()
    sizes = cross_count(part[answered], group[answered], (int(part.max()) + 1, n_groups))
    part_of = np.zeros(n_codes, np.int64)
    part_of[codes] = part[rows]
    among = sizes[part_of]
    code_of, row = np.divmod(np.unique(codes * len(table) + rows), len(table))
    counts = cross_count(code_of, group[row], (n_codes, n_groups))
    shares = 100 * counts / np.maximum(among, 1)
    most, least = (np.where(among > 0, shares, other) for other in (-np.inf, np.inf))
    code = int(np.argmax(most.max(axis=1) - least.min(axis=1)))
    high, low = most[code].argmax(), least[code].argmin()
    there = part == part_of[code]
    return (
        (float(most[code].max()), float(least[code].min())),
        code,
        there & (group == high),
        there & (group == low),
    )


def _two_rows(table: pa.Table, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> tuple[int, int]:
    """Return a row of `first` and one of `second`, of one stratum and item if possible; neither may be empty."""
    ones, others = np.flatnonzero(first).tolist(), np.flatnonzero(second).tolist()
    for names in (["stratum", "item"], ["stratum"]):
        columns = [table[name].to_pylist() for name in names]
        place = {tuple(column[row] for column in columns): row for row in reversed(others)}
        for row in ones:
            other = place.get(tuple(column[row] for column in columns))
            if other is not None:
                return row, other
    return ones[0], others[0]


def paired(first: pa.Table, second: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    r"""Return a row for each planned request to which two runs' answers differ, and how many there are.

    Requests are the same by sample, presentation and repeat. Columns: `first` and `second` (row numbers in the two
    tables of answers), `stratum`, `group`, and `changed`, the attributes that differ, separated by `\x1f`; empty if
    only the words do. `status` among them means that one answer could be read and the other could not. The counts are
    of requests that are `matched`, those with the `same` answer, and those that differ in `only_words`.
    """
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
    return table, {"matched": len(here), "same": len(here) - len(table), "only_words": len(table) - n_values}


def _identity(table: pa.Table, metadata: list[str]) -> Any:
    parts = [table["sample"], table["repeat"].cast(pa.string()), *(pc.fill_null(table[name], "") for name in metadata)]
    return pc.binary_join_element_wise(*parts, NEXT_VALUE)


def _flat(column: Any) -> Any:
    """Return a column as one array of texts; the values of a list are joined."""
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return pc.binary_join(whole, NEXT_VALUE) if pa.types.is_list(whole.type) else whole


def _differ(one: Any, other: Any) -> Any:
    # Null is a value of its own here: no answer differs from an empty one.
    known = pc.fill_null(pc.not_equal(one, other), False)
    return pc.or_(known, pc.xor(pc.is_null(one), pc.is_null(other)))
