"""How large a table from elsewhere may be, and what is said of one that is larger or in another coding."""

from __future__ import annotations

from pathlib import Path

from equivox.core.errors import UsageError

MOST_BYTES, MOST_COLUMNS, MOST_CELLS = 2 << 30, 10_000, 100_000_000
"""The largest table: its bytes when every row has its own text, its columns, and its entries; memory holds all."""

SAVE = "save the table in UTF-8, in Excel as “CSV UTF-8”"


def refuse_large(where: str, columns: int, rows: int = 1) -> None:
    """Raise UsageError for more columns than a table of answers has, and for more entries than fit."""
    if columns > MOST_COLUMNS:
        raise UsageError(too_large(where, f"{columns:,} columns", f"{MOST_COLUMNS:,}"))
    if columns * rows > MOST_CELLS:
        raise UsageError(too_large(where, f"{columns:,} columns and {rows:,} rows", f"{MOST_CELLS:,} entries"))


def too_large(where: Path | str, got: str, most: str) -> str:
    """Return what is said of a table that has `got`, of which `most` is the most."""
    return f"{where} is too large: it has {got}, and the most is {most}; keep the columns that are needed, or split it"
