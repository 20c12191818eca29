"""The result of `equivox verify` as a verdict, as tables and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from equivox.core.plain import as_plain
from equivox.core.text import how_many
from equivox.report.table import Table
from equivox.run.verification import Verification

SHOWN = 40
"""The number of rows that a terminal shows of each table; the JSON holds all."""

EXIT_CODES = {"verified": 0, "verified in part": 1, "differs": 1}


def verdict(found: Verification) -> str:
    """Return the result in one line."""
    good = f"{how_many(found.files, 'file')} and {how_many(found.numbers, 'number')}"
    if found.outcome != "differs":
        return f"{found.outcome}: {good}"
    wrong = [
        how_many(len(things), what)
        for things, what in (
            (found.wrong_files, "file"), (found.differences, "entry"), (found.problems, "other problem"),
        )
        if things
    ]  # fmt: skip
    return f"differs: {', '.join(wrong)}; the same: {good}"


def verification_tables(found: Verification) -> list[Table]:
    """Return the files that are wrong and the entries that differ, then what else is to be said, as remarks."""
    files = [[name, why] for name, why in found.wrong_files.items()]
    entries = [[entry.where, entry.what, _shown(entry.stated), _shown(entry.recomputed)] for entry in found.differences]
    return [
        Table(caption="Files", columns=("file", "what is wrong"), align="ll", rows=files[:SHOWN], remarks=_left(files)),
        Table(
            caption="Stated and recomputed",
            columns=("task or file", "number", "stated", "recomputed"),
            align="llll",
            rows=entries[:SHOWN],
            grouped=1,
            remarks=_left(entries),
        ),
        *(
            Table(caption=caption, remarks=lines)
            for caption, lines in (
                ("Problems", found.problems), ("Not verified", found.not_verified), ("Remarks", found.remarks),
            )
        ),
    ]  # fmt: skip


def _left(rows: list[list[str]]) -> list[str]:
    return [f"… and {len(rows) - SHOWN} more; --json FILE writes them all"] if len(rows) > SHOWN else []


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "none"
    text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def verification_document(found: Verification) -> dict[str, Any]:
    """Return the result as plain JSON values; a number that is not there is null."""
    names = ("files", "numbers", "wrong_files", "differences", "problems", "not_verified", "remarks")
    known = as_plain(asdict(found))
    told = {"outcome": found.outcome, "exit_code": EXIT_CODES[found.outcome], "manifest_sha256": found.manifest}
    return told | {name: known[name] for name in names}
