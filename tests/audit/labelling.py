"""Sheets as people fill them in: their rows, what the annotator read, and files of labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from commands import csv_rows, write_rows

from equivox.run.store import stored_annotations

LABEL = ("label", "draw")
AUDIT = (*LABEL, "--per", "model,group")
Labeller = Callable[[dict[str, str], dict[str, str]], str]


def rows_of(sheet: Path) -> list[dict[str, str]]:
    return csv_rows(sheet / "sheet.csv")


def filled(path: Path, rows: Iterable[dict[str, str]], say: Callable[[dict[str, str]], str]) -> Path:
    """Write rows of a sheet with the labels that `say` gives."""
    return write_rows(path, [{**row, "label": say(row)} for row in rows])


def readings(run: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """What the annotator read, by response and attribute."""
    read: dict[tuple[str, str], tuple[str, ...]] = {}
    for record in stored_annotations(run, "rules").values():
        for value in record["values"]:
            key = (record["response_key"], value["attribute"])
            read[key] = (*read.get(key, ()), value["value"])
    return read


def fill(sheet: Path, run: Path, say: Labeller, name: str = "person") -> Path:
    """Fill the sheet in: `say` gets the row and what is known of it, and returns the label."""
    key, read = json.loads((sheet / "key.json").read_text()), readings(run)

    def label(row: dict[str, str]) -> str:
        known = key[row["item"]]
        given = "; ".join(read.get((known["response"], row["attribute"]), ("unstated",)))
        return say(row, {"read": given, "group": known["group"]})

    return filled(sheet.parent / f"{name}.csv", rows_of(sheet), label)
