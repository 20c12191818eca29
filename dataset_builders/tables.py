"""Tables from elsewhere as columns: CSV, TSV, JSON, JSON lines, parquet and Excel files, and tables in memory.

Python's csv and json read texts: pandas fills up short rows in silence, and changes whole numbers above 2**53 in JSON.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, time
from functools import reduce
from pathlib import Path
from typing import Any

from equivox.core.columns import is_missing
from equivox.core.errors import UsageError, nearest
from equivox.core.files import shortened
from equivox.core.foreign_files import table_bytes
from equivox.core.lazy import pa, pandas, pq
from equivox.core.text import how_many, listed, parsed_json
from equivox.dataset_builders.embedded import holds_bytes

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
"""The endings of files, which determine the format."""
MOST_BYTES, MOST_COLUMNS, MOST_CELLS = 2 << 30, 10_000, 100_000_000
"""The largest table: its bytes when every row has its own text, its columns, and its entries; memory holds all."""
_SAVE = "save the table in UTF-8, in Excel as “CSV UTF-8”"

Columns = dict[str, list[Any]]
"""The columns of a table by name, all of one length; an entry that is missing is None."""


def read_columns(path: str | Path) -> Columns:
    """Return the columns of a file; nulls and empty cells are None.

    A cell of a CSV is a text, also NA and 007. Rows without an entry are left out, and so are columns without a name
    and an entry; the rows of one column stay. JSON is a list of objects, which an object may hold beside other things,
    one object a line, or an object of columns. `embedded.unpacked_media` reads bytes, which are left out here. Raises
    UsageError for a file that cannot be read, has no rows or, before it is expanded, is too large.
    """
    path = Path(path)
    kind = path.suffix.lower()
    try:
        _check_file(path)
        if kind == ".parquet":
            columns = _read_parquet(path)
        elif "json" in kind:
            columns = _read_json(path)
        else:
            columns = _name_columns(path, _read_sheet(path) if kind == ".xlsx" else _read_lines(path))
    except OSError as error:
        raise UsageError(f"cannot read {path.name} ({error.strerror or error}); check the path") from None
    except Exception as error:  # a damaged file raises errors of many types
        if isinstance(error, UsageError) or kind not in (".parquet", ".xlsx"):
            raise
        what = " ".join(f"{path.name} as {kind[1:]} ({error})".split())
        raise UsageError(f"cannot read {what}; write it again, or {_SAVE}") from None
    if not columns or not next(iter(columns.values())):
        raise UsageError(f"{path} has no rows; give a table with a row per entry")
    return {name: list(map(_convert_cell, column)) for name, column in columns.items()}


def read_column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, also of those with bytes."""
    if path.suffix.lower() == ".parquet":
        with suppress(OSError, pa.ArrowException):  # the next line says what is wrong
            return list(pq.read_schema(path).names)
    return list(read_columns(path))


def convert_to_columns(table: Any) -> Columns:
    """Return the columns of a file or of a table in memory."""
    if isinstance(table, str | Path):
        return read_columns(table)
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    if isinstance(names, Mapping):
        raise UsageError(f"the table has splits, {', '.join(names)}; give one: table[{next(iter(names), '')!r}]")
    _refuse_doubled("the table", names)
    if hasattr(table, "iloc"):
        table = table.to_dict("list")
    elif method := getattr(table, "to_pydict", getattr(table, "to_dict", None)):  # of pyarrow; of `datasets`
        table = method()
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise UsageError(f"{type(table).__name__} is no table; give a file, a data frame, or a list of records")
    columns = _join_columns(table) if isinstance(table, Mapping) else _join_records("the table", list(table))
    return {name: list(map(_convert_cell, column)) for name, column in columns.items()}


def refuse_large(where: Path | str, columns: int, rows: int = 1, size: int = 0) -> None:
    """Raise UsageError for more columns, entries or bytes than fit."""
    if columns > MOST_COLUMNS or columns * rows > MOST_CELLS or size > MOST_BYTES:
        got = f"{size:,} bytes" if size else f"{columns:,} columns and {how_many(rows, 'row')}"
        most = f"{MOST_BYTES:,} bytes, {MOST_COLUMNS:,} columns and {MOST_CELLS:,} entries"
        raise UsageError(f"{where} is too large: it has {got}, the most is {most}; leave columns out, or split it")


def _refuse_doubled(where: Path | str, names: Iterable[Any]) -> None:
    if doubled := [name for name, times in Counter(names).items() if times > 1]:
        raise UsageError(f"{where}: the column {str(doubled[0])!r} is there twice; name each column once")


def _check_file(path: Path) -> None:
    """Raise UsageError for a path that cannot be a table."""
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        how = f"`load_dataset` or `load_from_disk({path.name!r})`, and `.to_parquet('table.parquet')`"
        raise UsageError(f"{path} is no file; save the table as a file, a split of a data set by {how}")
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: a table ends in {', '.join(FORMATS)}, got {path.suffix!r}; save it as one of them")
    refuse_large(path, 1, size=path.stat().st_size)


def _convert_cell(cell: Any) -> Any:
    """Return a cell in plain form: None for nulls, 1 for 1.0."""
    if isinstance(cell, str | list | dict) or hasattr(cell, "__len__"):  # an array of numpy, too
        return cell
    if is_missing(cell):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime) and cell.time() == time():
        return cell.date()
    # Above 2**53 a float may stand for another whole number.
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else cell


def _read_text(path: Path) -> str:
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    try:
        if (at := data.find(b"\0")) < 0:
            return data.decode()
    except UnicodeDecodeError as error:
        at = error.start
    line = data.count(b"\n", 0, at) + 1
    raise UsageError(f"{path}, line {line}: not a text in UTF-8; {_SAVE}")


def _read_lines(path: Path) -> list[list[str]]:
    """Return the rows of a CSV; UsageError for uneven rows, open quotes."""
    text = _read_text(path)
    # The separator divides the header most often, and the next row as often; signs in quoted cells do not count.
    bare = re.sub(r'(?<![^,;\t\r\n"])"[^"]*"', "", text[: 1 << 20])
    first, second, *_ = [*filter(str.strip, re.split(r"[\r\n]+", bare)), "", ""]
    signs = "\t,;" if path.suffix.lower() == ".tsv" else ",;\t"
    sign = max(signs, key=lambda sign: (first.count(sign), first.count(sign) == second.count(sign)))
    if stated := re.match(r"sep=([,;\t|])\s*?\r?\n", text):  # as spreadsheets may say before the header
        sign, text = stated[1], "\n" + text[stated.end() :]
    csv.field_size_limit(MOST_BYTES - 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True)
    rows: list[list[str]] = []
    line = 1
    try:
        for cells in reader:
            rows += [cells] if cells else []
            if cells and len(cells) != (width := len(rows[0])):
                got = f"{how_many(len(cells), 'cell')}, but the header has {width}"
                raise UsageError(f"{path}, line {line}: {got}; quote cells with {sign!r}, and begin with the header")
            line = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{path}, line {line}: not a row of a CSV ({error}); is there a quote to close?") from None
    return rows


def _name_columns(path: Path, rows: Sequence[Sequence[Any]]) -> Columns:
    """Return the columns that the first row names.

    The first column may lack its name, as an index has none; UsageError for another one, and for a doubled name.
    """
    filled = [[None if isinstance(cell, str) and not cell.strip() else cell for cell in row] for row in rows]
    if filled and len(filled[0]) > 1:  # the one cell of a row may be a missing entry
        filled = [row for row in filled if any(cell is not None for cell in row)]
    refuse_large(path, max(map(len, filled), default=0), len(filled))
    columns = [("" if name is None else str(name).strip(), entries) for name, *entries in zip(*filled, strict=True)]
    columns = [(name, entries) for name, entries in columns if name or any(cell is not None for cell in entries)]
    names = [name for name, _ in columns]
    if "" in names[1:]:
        raise UsageError(f"{path}: no name above a column of entries; name it, and begin the table with its header")
    _refuse_doubled(path, names)
    return dict(columns)


def _read_sheet(path: Path) -> list[list[Any]]:
    """Return the rows of the one visible sheet that has entries."""
    sheets: dict[str, list[list[Any]]] = {}
    with zipfile.ZipFile(path) as archive:
        refuse_large(path, 1, size=sum(part.file_size for part in archive.infolist()))
    with warnings.catch_warnings(action="ignore"), pandas.ExcelFile(path, engine="openpyxl") as file:
        for sheet in (sheet for sheet in file.book.worksheets if sheet.sheet_state == "visible"):
            sheet.reset_dimensions()  # a file may state another size than it has
            filled: Any = (cell for row in sheet.iter_rows() for cell in row if cell.value is not None)
            width = height = 0
            for cell in filled:
                height, width = cell.row, max(width, cell.column)
            refuse_large(path, width, height)
            if height:
                frame = pandas.read_excel(file, sheet_name=sheet.title, header=None, dtype=object, na_filter=False)
                sheets[sheet.title] = [list(map(_show, row)) for row in frame.to_numpy().tolist()]
    if len(sheets) > 1:
        raise UsageError(f"{path} has entries in the sheets {listed(sheets)}; save the one that is meant as a file")
    return next(iter(sheets.values()), [])


def _show(cell: Any) -> Any:
    """Return a cell as Excel shows it, with 15 digits."""
    cell = cell.replace("_x000D_", "") if isinstance(cell, str) else cell
    return _convert_cell(float(f"{cell:.15g}") if isinstance(cell, float) else cell)


def _read_json(path: Path) -> Columns:
    text = _read_text(path)
    # Libraries write one object a line into .json, too.
    if path.suffix.lower() != ".json" or re.match(r"\s*\{.*\}\s*\n\s*\{", text):
        text = "[" + ",\n".join(filter(str.strip, text.split("\n"))) + "]"
    try:
        document = parsed_json(text)
    except ValueError as error:
        raise UsageError(f"{path}: not JSON ({error}); give a list of objects, or one object a line") from None
    if isinstance(document, Mapping):
        return _find_columns(path, document)
    return _join_records(path, document if isinstance(document, list) else [document])


def _find_columns(path: Path, document: Mapping[str, Any]) -> Columns:
    """Return the columns in an object, or its longest list of objects.

    UsageError if another list has objects of the same kind, such as the next split of a data set.
    """
    if len(document) > 1 and all(isinstance(part, list) for part in document.values()):
        return _join_columns(document, path)
    parts = dict(document)
    for above, inner in document.items():
        if isinstance(inner, Mapping) and above != "schema":  # where pandas describes the columns
            parts |= {f"{above}.{name}": part for name, part in inner.items()}
    lists = {name: part for name, part in parts.items() if isinstance(part, list) and part}
    lists = {name: part for name, part in lists.items() if all(isinstance(entry, Mapping) for entry in part)}
    longest, *others = sorted(lists, key=lambda name: -len(lists[name])) or [""]
    for name in others:
        if 2 * len(lists[longest][0].keys() & lists[name][0].keys()) > len(lists[name][0]):
            raise UsageError(f"{path} has two tables, {longest} and {name}; give each a file of its own")
    return _join_records(path, lists[longest]) if lists else _join_columns(document, path)


def _join_records(where: Path | str, records: Sequence[Any]) -> Columns:
    names: dict[str, Any] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise UsageError(f"{where}, row {number}: expected an object with names, got {record!r:.40}")
        names |= {str(name): name for name in record}
        refuse_large(where, len(names), len(records))
    return {name: [record.get(key) for record in records] for name, key in names.items()}


def _join_columns(table: Mapping[Any, Any], where: Path | str = "the table") -> Columns:
    refuse_large(where, len(table))
    try:
        frame = pandas.DataFrame(dict(table), dtype=object)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{where}: no table of columns ({error}); give a list per name, all of one length") from None
    return {str(name): column for name, column in frame.to_dict("list").items()}


def _read_parquet(path: Path) -> Columns:
    file = pq.ParquetFile(path)
    refuse_large(path, file.metadata.num_columns, file.metadata.num_rows)
    _refuse_doubled(path, file.schema_arrow.names)
    leaves = [file.schema.column(place) for place in range(file.metadata.num_columns)]
    # Texts have a logical type; bytes without one are files, or another thing that nobody reads as text.
    raw = {leaf.path for leaf in leaves if "BYTE_ARRAY" in leaf.physical_type and leaf.logical_type.type == "NONE"}
    refuse_large(path, 1, size=table_bytes(path, most=MOST_BYTES, leaving_out=raw))
    files = tuple(f"{field.name}." for field in file.schema_arrow if holds_bytes(field.type))
    names = [leaf.path for leaf in leaves if leaf.path not in raw and not f"{leaf.path}.".startswith(files)]
    if not names:
        raise UsageError(f"{path}: every column holds bytes, as files are; add one with texts or groups")
    columns: Columns = (file.read(columns=names) if raw else pq.read_table(path)).to_pydict()
    with suppress(ValueError, KeyError, TypeError, AttributeError):  # others may write anything there
        features = parsed_json(file.schema_arrow.metadata[b"huggingface"].decode())["info"]["features"]
        for name in [name for name in columns if features.get(name, {}).get("_type") == "ClassLabel"]:
            words = {-1: None, **dict(enumerate(map(str, features[name]["names"])))}
            columns[name] = [words.get(code, code) if isinstance(code, int) else code for code in columns[name]]
    return columns


def rename_columns(columns: Columns, names: Mapping[str, str], *, where: str, option: str) -> Columns:
    """Return the columns by our names; `names` maps ours to theirs.

    A path names a part, such as `messages.-1.content`. UsageError for a column that is not there.
    """
    renamed: Columns = {}
    for ours, theirs in names.items():
        column = columns[theirs] if theirs in columns else _find_part(columns, theirs)
        if column is None:
            it = f"{where} lacks{nearest(theirs, columns)}; it has {list_paths(columns)}"
            raise UsageError(f"`{option.format(ours)}` names the column {theirs!r}, which {it}")
        renamed[ours] = column
    return {name: column for name, column in columns.items() if name not in names.values() or name in names} | renamed


def _find_part(columns: Columns, path: str) -> list[Any] | None:
    """Return the part of every entry at a path, or None."""
    for name in (name for name in columns if path.startswith(f"{name}.")):
        steps = path.removeprefix(f"{name}.").split(".")
        entries = [reduce(_take, steps, entry) for entry in columns[name]]
        if any(entry is not None for entry in entries):
            return entries
    return None


def _take(entry: Any, step: str) -> Any:
    with suppress(LookupError, ValueError):
        return entry[step] if isinstance(entry, Mapping) else entry[int(step)] if isinstance(entry, list) else None
    return None


def flatten_columns(columns: Columns) -> Columns:
    """Return the columns, and a column for each part of objects.

    The parts are those of the first 1,000 objects. A row without a part, or with an object there, has None.
    """
    flat: Columns = {}
    for name, column in columns.items():
        nested = [entry for entry in column if isinstance(entry, Mapping | list)]
        paths = dict.fromkeys(path for entry in nested[:1_000] for path in _split_entry(name, entry))
        paths.pop(name, None)
        refuse_large(f"what {shortened(name)!r} holds", len(paths), len(column))
        plain = [None if isinstance(entry, Mapping | list) else entry for entry in column]
        if not paths or any(entry is not None for entry in plain):
            flat[name] = plain
        rows = [_split_entry(name, entry) for entry in column] if paths else []
        for path in paths:
            parts = (row.get(path) for row in rows)
            flat[path] = [None if isinstance(part, Mapping | list) else _convert_cell(part) for part in parts]
    return flat


def _split_entry(name: str, entry: Any, depth: int = 0) -> dict[str, Any]:
    """Return the parts of an object or a list by their paths."""
    parts = entry if isinstance(entry, Mapping) else dict(enumerate(entry[:4])) if isinstance(entry, list) else {}
    leaves: dict[str, Any] = {}
    for part, inner in parts.items() if depth < 50 else ():
        leaves |= _split_entry(f"{name}.{part}", inner, depth + 1)
    return leaves or {name: entry}


def list_paths(columns: Columns) -> str:
    """Return the names of columns and of their parts in words."""
    return listed(flatten_columns({name: column[:100] for name, column in columns.items()}), limit=40)
