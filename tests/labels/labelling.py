"""Sheets as people fill them in, with what the run knows of each item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commands import Cli, csv_rows, write_rows

from equivox.labels.drawing import draw, list_cells
from equivox.run.store import stored_annotations


@dataclass(frozen=True)
class Known:
    """What nobody sees on a sheet: the annotator's value, and the group."""

    read: str
    group: str


Labeller = Callable[[dict[str, str], Known], str]


def say_as_read(row: dict[str, str], known: Known) -> str:
    return known.read


def only(attribute: str, say: Labeller = say_as_read) -> Labeller:
    """Label one attribute and leave the others empty."""
    return lambda row, known: say(row, known) if row["attribute"] == attribute else ""


def draw_sheet(equivox: Cli, run: Path, n: int) -> Path:
    sheet = run.parent / f"{run.name}-labels-{n}.csv"
    if not sheet.exists():
        equivox.done("label", "draw", run, "--n", n, "--output", sheet)
    return sheet


def known_of(run: Path) -> dict[tuple[str, str], Known]:
    """What is known of each item and attribute."""
    read: dict[tuple[str, str], list[str]] = {}
    for record in stored_annotations(run, "rules").values():
        for value in record["values"]:
            read.setdefault((record["response_key"], value["attribute"]), []).append(value["value"])
    known = {}
    for answer in draw(list_cells(run), 10_000):
        for attribute in answer.task.attributes:
            value = "; ".join(read.get((answer.row.key, attribute.name), ["unstated"]))
            known[answer.item, attribute.name] = Known(value, answer.row.group)
    return known


def fill(sheet: Path, run: Path, say: Labeller = say_as_read, name: str = "ana") -> Path:
    """Fill the sheet in with the labels that `say` gives."""
    known = known_of(run)
    rows = csv_rows(sheet)
    return write_rows(
        sheet.parent / f"{name}.csv",
        [{**row, "label": say(row, known[row["item"], row["attribute"]])} for row in rows],
    )
