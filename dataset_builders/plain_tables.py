"""Tables from elsewhere as columns: CSV, TSV, JSON, JSON lines, parquet and Excel files, and tables in memory."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.files import shortened, table_bytes
from equivox.core.lazy import pa, pq
from equivox.core.text import how_many, parsed_json
from equivox.dataset_builders.table_limits import MOST_BYTES, SAVE, refuse_large, too_large
from equivox.dataset_builders.workbooks import sheet_rows

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")
"""The supported suffixes of files, which determine the format."""

_FIRST_LINES = 1_000
"""The lines of a CSV in which its header and the row below it end."""

Columns = dict[str, list[Any]]
"""The columns of a table by name, all of one length; an entry that is missing is None."""


def read_columns(path: str | Path) -> Columns:
    """Return the columns of a file; in CSV an empty cell is a missing entry, and all others are text.

    The cells of a CSV may be separated by commas, semicolons or tabs. Of what spreadsheets leave, rows without an entry
    and columns without a name and an entry are not read; the rows of one column stay, as missing entries.

    JSON lines hold an object a line, which a file called .json may, too. JSON is a list of objects, which an object may
    hold beside other things, or an object of columns. A key that some objects lack is missing there. What a parquet
    file holds as bytes is left out; `embedded.unpacked_media` has the files.
    Numbers that stand for words in a data set of the Hub (`ClassLabel`) are read as these words. Of an Excel file the
    one sheet with entries is read: the values that formulas last had, and none where a cell shows an error (#N/A).
    Raises UsageError for a file that cannot be read, for one without rows and, before it is expanded, for one that is
    too large.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder; make it one file by `datasets`: `load_dataset({path.name!r}, split='train')`, or "
            f"`load_from_disk({path.name!r})` of what was saved to disk, and then `.to_parquet('table.parquet')`"
        )
    if kind not in FORMATS:
        ending = repr(path.suffix or "no ending")
        raise UsageError(f"{path}: a table ends in {', '.join(FORMATS)}, got {ending}; save it as one of them")
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise UsageError(f"{path} is no file; save the table as one")
        if (size := path.stat().st_size) > MOST_BYTES:
            raise UsageError(too_large(path, f"{size:,} bytes", f"{MOST_BYTES:,}"))
        if kind == ".parquet":
            columns = _parquet(path)
        elif kind == ".xlsx":
            columns = _of_rows(path, sheet_rows(path))
        else:
            text = path.read_text("utf-8-sig")
            if kind in {".csv", ".tsv"}:
                reader = _reader(io.StringIO(text, newline="").readlines(), "\t" if kind == ".tsv" else ",")
                columns = _of_rows(path, [row for _, row in _rows(path, reader)])
            else:
                columns = _json(path, text) if kind == ".json" else of_records(_json_lines(path, text), str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path.name} ({error.strerror or error}); check the path") from None
    except UnicodeError as error:
        what = "CSV" if kind == ".csv" else kind[1:]
        raise UsageError(f"cannot read {path.name} as {what} ({error}); {SAVE}") from None
    if not columns or not next(iter(columns.values())):
        raise UsageError(f"{path} has no rows; give a table with a row per entry")
    return columns


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, with those that hold files; of a CSV or TSV its first line alone is read.

    UsageError as `read_columns`, as far as it is read.
    """
    kind = path.suffix.lower()
    if kind == ".parquet":
        with suppress(OSError, pa.ArrowException):  # of which the next line says what is wrong
            return list(pq.read_schema(path).names)
    if kind not in (".csv", ".tsv"):
        return list(read_columns(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _reader(list(itertools.islice(file, _FIRST_LINES)), "\t" if kind == ".tsv" else ",")
            return [name.strip() for name in next((row for row in rows if row), [])]
    except (OSError, UnicodeError, csv.Error) as error:
        raise UsageError(f"cannot read {path.name} as CSV ({error}); {SAVE}") from None


def as_columns(table: Any) -> Columns:
    """Return the columns of a file (a path) or of a table: pandas, pyarrow, `datasets`, a list of records, columns."""
    if isinstance(table, str | Path):
        return read_columns(table)
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    if isinstance(names, Mapping):  # of a data set by split
        first = next(iter(names), "")
        raise UsageError(f"the table has splits, {', '.join(names)}; give one, such as table[{first!r}]")
    if doubled := [name for name, times in Counter(names).items() if times > 1]:
        raise UsageError(f"the table has the column {str(doubled[0])!r} twice; name each column once")
    for method in ("to_pydict", "to_dict"):  # of pyarrow; of pandas
        if hasattr(table, method):
            table = table.to_dict("list") if hasattr(table, "iloc") else getattr(table, method)()
            break
    if isinstance(table, Mapping):
        return _of_mapping(table, "the table")
    if isinstance(table, Iterable) and not isinstance(table, bytes):
        return of_records(list(table), "the table")
    raise UsageError(f"{type(table).__name__} is no table; give a file, a data frame, or a list of records")


def of_records(records: Sequence[Any], where: str) -> Columns:
    """Return the columns of records, with None for missing keys; UsageError for an entry that is not a record."""
    names: dict[str, None] = {}
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise UsageError(f"{where}, row {number}: expected an object with names, got {record!r:.40}")
        names |= dict.fromkeys(map(str, record))
        refuse_large(where, len(names), len(records))
    return {name: [record.get(name) for record in records] for name in names}


def _of_mapping(table: Mapping[Any, Any], where: str) -> Columns:
    columns = {}
    refuse_large(where, len(table))
    for name, column in table.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise UsageError(f"{where}: {str(name)!r} is a {type(column).__name__}, not a column; give a list per name")
        columns[str(name)] = list(column)
    if len({len(column) for column in columns.values()}) > 1:
        told = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise UsageError(f"{where}: columns have unequal lengths ({told}); give one entry per row")
    return columns


def _of_rows(path: Path, rows: Sequence[Sequence[Any]]) -> Columns:
    """Return the columns of rows of equal length, whose first names them; {} without a row below it."""
    if not rows:
        return {}
    header = ["" if name is None else str(name).strip() for name in rows[0]]
    refuse_large(str(path), len(header))
    entries = [[None if isinstance(cell, str) and not cell.strip() else cell for cell in row] for row in rows[1:]]
    if len(header) > 1:  # what spreadsheets leave below a table; the one cell of a row may be a missing entry
        entries = [row for row in entries if any(cell is not None for cell in row)]
    return dict(_named(path, header, [list(column) for column in zip(*entries, strict=True)])) if entries else {}


def _named(path: Path, header: Sequence[str], columns: Sequence[list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each column with its name, without those that have neither a name nor an entry.

    The first may lack its name, as an index has none. UsageError for another one, and for a name that is there twice.
    """
    seen = set()
    for place, (name, column) in enumerate(zip(header, columns, strict=True), start=1):
        if not name and all(cell is None for cell in column):
            continue
        if not name and place > 1:
            raise UsageError(
                f"{path}: column {place} has entries and no name; the first line must name every column, so take out "
                "what stands above the header"
            )
        if name in seen:
            raise UsageError(f"{path}: the column {name!r} is there twice; name each column once")
        seen.add(name)
        yield name, column


def _reader(lines: Sequence[str], usual: str = ",") -> Any:
    """Return a reader of the rows of a CSV; `reader.dialect.delimiter` is what separates its cells.

    That is the sign of `,`, `;` and tab that makes most cells of the header, and of those that make equally many the
    one that makes as many of the next row; `usual` first. Spreadsheets write semicolons where a comma begins the
    decimals, and may say so in a line of their own before the header: `sep=;`.
    """
    if lines and (said := re.fullmatch(r"sep=(.)\s*", lines[0])):
        return csv.reader(["\n", *lines[1:]], delimiter=said[1], strict=True)

    def fit(sign: str) -> tuple[int, int]:
        """Return the cells of the header, and 1 if the next row has as many."""
        found: list[int] = []
        with suppress(csv.Error):
            found += (len(row) for row in itertools.islice(filter(None, csv.reader(lines, delimiter=sign)), 2))
        return found[0] if found else 0, len(found) == 2 and found[0] == found[1]

    return csv.reader(lines, delimiter=max(dict.fromkeys(f"{usual},;\t"), key=fit), strict=True)


def _rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV that has a cell, the header first, with the number of its first line.

    UsageError for a row with more or fewer cells than the header, and for a quote that is not closed.
    """
    width = 0
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise UsageError(
                f"{path}, line {number}: not a row of a CSV ({error}); is there a quote that is not closed?"
            ) from None
        if cells is None:
            return
        width = width or len(cells)
        if cells and len(cells) != width:
            raise UsageError(
                f"{path}, line {number}: {how_many(len(cells), 'cell')}, but the header has {width}; put a cell with "
                f"{reader.dialect.delimiter!r} into quotes, leave no cell out, and begin the table with its header"
            )
        if cells:
            yield number, cells


def _json_lines(path: Path, text: str) -> list[Any]:
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                records.append(parsed_json(line))
            except ValueError as error:
                raise UsageError(f"{path}, line {number}: not JSON ({error}); give one object a line") from None
    return records


def _json(path: Path, text: str) -> Columns:
    try:
        document = parsed_json(text)
    except ValueError as error:
        # Libraries write an object a line under this ending, too.
        if text.lstrip().startswith("{") and getattr(error, "msg", "") == "Extra data":
            return of_records(_json_lines(path, text), str(path))
        raise UsageError(
            f"{path}: not JSON ({error}); give a list of objects, or one object a line as .jsonl"
        ) from None
    if isinstance(document, Mapping):
        rows = {tuple(part) if isinstance(part, Mapping) else () for part in document.values()}
        if len(rows) == 1 and "".join(*rows).isdecimal():  # pandas names the entries of a column by their rows
            document = {name: list(part.values()) for name, part in document.items()}
        of_columns = len(document) > 1 and all(isinstance(part, list) for part in document.values())
        document = (not of_columns and _records_in(path, document)) or document
    if isinstance(document, Mapping):
        return _of_mapping(document, str(path))
    if isinstance(document, list):
        return of_records(document, str(path))
    raise UsageError(f"{path}: expected a list of objects, got {document!r:.40}")


def _records_in(path: Path, document: Mapping[str, Any]) -> list[Any]:
    """Return the longest list of objects in a document, which says more beside it; [] if it has none.

    UsageError if another one holds objects of the same kind, such as the next split of a data set.
    """
    inner = [("", document), *((f"{name}.", part) for name, part in document.items() if isinstance(part, Mapping))]
    inner = [(above, part) for above, part in inner if above != "schema."]  # where pandas describes the columns
    lists = {
        f"{above}{name}": part
        for above, parts in inner
        for name, part in parts.items()
        if isinstance(part, list) and part and all(isinstance(one, Mapping) for one in part)
    }
    longest = max(lists, key=lambda name: len(lists[name]), default="")
    for name in (one for one in lists if one != longest):
        if 2 * len(lists[longest][0].keys() & lists[name][0].keys()) > len(lists[name][0]):
            raise UsageError(f"{path} has two tables, {longest} and {name}; give each a file of its own")
    return lists.get(longest, [])


def _parquet(path: Path) -> Columns:
    try:
        about = pq.ParquetFile(path)
        refuse_large(str(path), about.metadata.num_columns, about.metadata.num_rows)
        if doubled := [name for name, times in Counter(about.schema_arrow.names).items() if times > 1]:
            raise UsageError(f"{path}: the column {doubled[0]!r} is there twice; name each column once")
        leaves = [about.schema.column(place) for place in range(about.metadata.num_columns)]
        # Texts have a logical type; what has none is a file, or another thing that nobody reads as text.
        raw = {leaf.path for leaf in leaves if "BYTE_ARRAY" in leaf.physical_type and leaf.logical_type.type == "NONE"}
        if (size := table_bytes(path, most=MOST_BYTES, leaving_out=raw)) > MOST_BYTES:
            raise UsageError(too_large(path, f"{size:,} bytes or more in memory", f"{MOST_BYTES:,}"))
        files = tuple(f"{field.name}." for field in about.schema_arrow if holds_bytes(field.type))
        names = [leaf.path for leaf in leaves if leaf.path not in raw and not f"{leaf.path}.".startswith(files)]
        if not names:
            raise UsageError(f"{path}: every column holds bytes, as files are; add one with texts or groups")
        columns: Columns = (about.read(columns=names) if raw else pq.read_table(path)).to_pydict()
        for name, labels in _class_labels(about.schema_arrow).items():
            if name in columns:
                own = columns[name]
                columns[name] = [labels.get(code, code) if isinstance(code, int) else code for code in own]
    except pa.ArrowException as error:
        raise UsageError(f"cannot read {path.name} as parquet ({str(error).splitlines()[0]}); write it again") from None
    return columns


def _class_labels(schema: pa.Schema) -> dict[str, dict[Any, str | None]]:
    """Return the words that the library `datasets` keeps for the numbers of a column; -1 stands for no label."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):  # what others write there is no promise
        features = parsed_json((schema.metadata or {})[b"huggingface"].decode())["info"]["features"]
        kept = {name: about["names"] for name, about in features.items() if about.get("_type") == "ClassLabel"}
        return {name: {-1: None, **dict(enumerate(map(str, labels)))} for name, labels in kept.items()}
    return {}


def holds_bytes(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds files as bytes, by themselves or beside their path."""
    if pa.types.is_struct(kind):
        kind = next((field.type for field in kind if field.name == "bytes"), kind)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def read_table(path: Path, required: Sequence[str], *, strip: bool = True) -> list[dict[str, str]]:
    """Read a CSV with a header, with stripped cells if `strip`; see `read_numbered_table` for what is refused."""
    return [row for _, row in read_numbered_table(path, required, strip=strip)]


def read_numbered_table(path: Path, required: Sequence[str], *, strip: bool = True) -> list[tuple[int, dict[str, str]]]:
    """Read a CSV with a header and return its rows, each with the number of its first line; empty lines are skipped.

    Raises UsageError, naming the file and the line, for a file that is not a CSV in UTF-8, NUL bytes, a quote that is
    not closed, a row with more or fewer cells than the header, a column that is there twice, and a missing required
    column. Columns without a name at the end of a table, as spreadsheets leave them, are not read.
    """
    reader = _reader(_csv_text(path))
    rows = _rows(path, reader)
    _, names = next(rows, (0, []))
    header = [name.strip() for name in names]
    while header and not header[-1]:
        del header[-1]
    _check_header(path, header, required)
    found: list[tuple[int, dict[str, str]]] = []
    for number, row in rows:
        cells = row[: len(header)]
        if any(_swallowed(cell, len(header), reader.dialect.delimiter) for cell in cells):
            raise UsageError(
                f"{path}, line {number}: a quote that opens here closes only in line {reader.line_num}, and the text "
                "between them looks like rows; close the quote, or write the cell in one line"
            )
        found.append((number, dict(zip(header, map(str.strip, cells) if strip else cells, strict=True))))
    return found


def _csv_text(path: Path) -> list[str]:
    """Return the lines of a CSV in UTF-8; UsageError for a file that is not one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{path} is missing; the corpus needs this table") from None
    except OSError as error:
        raise UsageError(f"cannot read {shortened(str(path))}: {error.strerror or error}; check the path") from error
    at = data.find(0)
    if at >= 0:
        raise UsageError(f"{path}, line {_line(data, at)}: a NUL byte, so not a CSV in UTF-8; save it as one")
    try:
        return io.StringIO(data.decode("utf-8-sig"), newline="").readlines()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}, line {_line(data, error.start)}: not a CSV in UTF-8 ({error.reason}); save it as one"
        ) from error


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _check_header(path: Path, header: Sequence[str], required: Sequence[str]) -> None:
    """Raise UsageError for a missing required column and for one that is there twice."""
    if missing := [name for name in required if name not in header]:
        has = ", ".join(header) or "none"
        raise UsageError(f"{path}: column {missing[0]!r} is missing; its columns are {shortened(has, 300)}")
    if doubled := [name for name in header if header.count(name) > 1]:
        raise UsageError(
            f"{path}, line 1: the column {doubled[0]!r} is there {header.count(doubled[0])} times; rename or remove one"
        )


def _swallowed(cell: str, columns: int, separator: str) -> bool:
    """Return whether a quoted cell of several lines is probably several rows, after a quote that is not closed.

    Rows that a pair of stray quotes swallows bring one line break and `columns` - 1 separators each.
    """
    breaks = cell.count("\n")
    return breaks > 0 and columns > 1 and cell.count(separator) == breaks * (columns - 1)
