"""The plan of a run as rows, for tests that look at single requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equivox.run.plan import read_plan


def plan_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the plan of the run in `folder` row by row, its metadata as a dictionary."""
    rows = []
    for record in read_plan(folder).to_pylist():
        metadata = {k.removeprefix("metadata."): v for k, v in record.items() if k.startswith("metadata.")}
        plain = {k: v for k, v in record.items() if not k.startswith("metadata.")}
        rows.append({**plain, "metadata": {k: v for k, v in metadata.items() if v is not None}})
    return rows
