"""The rows of a sheet of an Excel file, as they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time
from typing import Any


def shown_rows(sheet: Any) -> Iterator[list[Any]]:
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
