"""The rows of an Excel file, as they are shown."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.text import listed
from equivox.dataset_builders.table_limits import MOST_BYTES, SAVE, refuse_large, too_large


def sheet_rows(path: Path) -> list[list[Any]]:
    """Return the rows of the one visible sheet of an Excel file that has entries, all of one length."""
    try:
        import openpyxl
    except ImportError:
        what = (
            f'{path}: Excel files need openpyxl; in a checkout of equivox: `pip install -c constraints.txt ".[excel]"`'
        )
        raise UsageError(f"{what}, or {SAVE}") from None
    sheets: dict[str, list[list[Any]]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > MOST_BYTES:
            raise UsageError(too_large(path, f"{size:,} bytes when it is expanded", f"{MOST_BYTES:,}"))
        with (
            warnings.catch_warnings(action="ignore"),  # of what else a sheet has, such as validations
            closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book,
        ):
            for sheet in book.worksheets:
                if sheet.sheet_state == "visible" and (rows := _of_one_length(path, sheet)):
                    sheets[sheet.title] = rows
    except UsageError:
        raise
    except Exception as error:  # what is damaged raises errors of many types
        raise UsageError(f"cannot read {path.name} as an Excel file ({error}); {SAVE}") from None
    if len(sheets) > 1:
        raise UsageError(f"{path} has entries in the sheets {listed(sheets)}; save the one that is meant as a file")
    return next(iter(sheets.values()), [])


def _of_one_length(path: Path, sheet: Any) -> list[list[Any]]:
    """Return the rows of a sheet that have an entry, all of one length."""
    rows: list[list[Any]] = []
    width = 0
    for row in _shown_rows(sheet):
        rows.append(row)
        width = max(width, len(row))
        refuse_large(str(path), width, len(rows))
    return [row + [None] * (width - len(row)) for row in rows]


def _shown_rows(sheet: Any) -> Iterator[list[Any]]:
    """Yield each row of a sheet that has an entry, up to its last one; None stands for an empty cell and an error."""
    sheet.reset_dimensions()  # what a file says of its size may be less than it holds
    for cells in sheet.iter_rows():
        row = [None if cell.data_type == "e" else _shown(cell.value) for cell in cells]
        while row and row[-1] is None:
            del row[-1]
        if row:
            yield row


def _shown(entry: Any) -> Any:
    """Return an entry as it is shown: a number with 15 digits, a day without a time, line breaks without signs."""
    if isinstance(entry, float):
        entry = float(f"{entry:.15g}")
        return int(entry) if entry.is_integer() else entry
    if isinstance(entry, datetime) and entry.time() == time():
        return entry.date()
    return entry.replace("_x000D_", "") if isinstance(entry, str) else entry
