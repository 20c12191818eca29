"""Screens of tables, each computed when it is asked for: people's labels and a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.audit.kept import kept_audits
from equivox.audit.stored import audit_files
from equivox.compare.believing import believe
from equivox.compare.gate import Limits, gate, read_limits
from equivox.core.errors import RequestError
from equivox.core.redact import without_places
from equivox.report.audit_tables import audit_tables, stage_audit_table
from equivox.report.gate_files import gate_table
from equivox.report.table import Table

LABELS, GATE = "labels", "gate"
"""The names of the screens."""


def offered(run: Path) -> list[str]:
    """Return the screens that there is something to show on for a run."""
    found = [LABELS] if audit_files(run) else []
    return found + ([GATE] if (run / "scores.json").is_file() else [])


def results(screen: str, runs: Sequence[Path], number: int, given: Mapping[str, str]) -> dict[str, Any]:
    """Return a screen of the run at place `number` as plain values: its `tables`.

    `given` is what the page asks of a gate: `margin`, the `baseline` as a place among `runs`, and `max`. Labels are
    scored again, and a gate's runs are verified before. RequestError where there is nothing to show.
    """
    if not 0 <= number < len(runs):
        raise RequestError("there is no such run; load the page again")
    if screen == LABELS:
        tables = _label_tables(runs[number])
    elif screen == GATE:
        tables = [_gate_table(runs, number, given)]
    else:
        raise RequestError("there is no such screen")
    return dict(without_places({"tables": [_plain(table) for table in tables]}))


def _label_tables(run: Path) -> list[Table]:
    tables: list[Table] = []
    for _, _, audit in kept_audits(run):
        tables += [stage_audit_table(audit)] if audit.stage else audit_tables(audit)
    if not tables:
        raise RequestError("no labels of people are kept with this run; `equivox label draw` draws answers for them")
    return tables


def _gate_table(runs: Sequence[Path], number: int, given: Mapping[str, str]) -> Table:
    margin, most = (read_limits([given[name]] if given.get(name) else [], name) for name in ("margin", "max"))
    baseline = None
    if margin:
        place = given.get("baseline", "")
        if not place.isdecimal() or int(place) >= len(runs):
            raise RequestError("a margin is a distance from a baseline; open its run beside this one")
        baseline = runs[int(place)]
    for run in (runs[number], baseline):
        if run is not None:
            believe(run)
    return gate_table(gate(runs[number], baseline, Limits(margin=margin, most=most)))


def _plain(table: Table) -> dict[str, Any]:
    return {
        "caption": table.caption,
        "columns": [str(cell) for cell in table.columns],
        "numbers": [place for place, letter in enumerate(table.align) if letter == "r"],
        "rows": [[str(cell) for cell in row] for row in table.rows],
        "remarks": list(table.remarks),
        "notes": list(table.notes),
    }
