"""A calibration as a verdict and a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from equivox.calibration.verdicts import HEARING, Line
from equivox.report.numbers import DASH
from equivox.report.table import Table


def verdict_of(found: Mapping[str, Any]) -> str:
    """Return whether the engine passes, and how many lines do, in one sentence.

    `found` is what `equivox.calibration.checking.result` returns, or `calibration.json` holds.

    >>> verdict_of({"engine": "vllm", "lines": []})
    'vllm was not calibrated: no line was measured'
    """
    engine, lines = found["engine"], [Line.of(line) for line in found["lines"]]
    if not lines:
        return f"{engine} was not calibrated: no line was measured"
    passed = sum(line.passed for line in lines)
    if passed == len(lines):
        return f"{engine} passes: {passed} of {len(lines)} lines"
    return f"{engine} fails: {len(lines) - passed} of {len(lines)} lines"


def calibration_table(found: Mapping[str, Any]) -> Table:
    """Return the table of what was planted, what the model has of it, and what was measured, a row per line.

    `found` as for `verdict_of`.
    """
    lines = [Line.of(line) for line in found["lines"]]
    return Table(
        caption=f"Calibration of {found['engine']} with {found['task']}, training seed {found['seed']}",
        columns=("planted", "condition", "to be found", "the model's own", "measured", "p", "verdict"),
        align="llrrrrl",
        rows=[
            [
                f"{line.shift:g}",
                line.condition,
                f"{line.planted:.1f}",
                str(line.own),
                str(line.measured),
                f"{line.measured.p:.3g}" if math.isfinite(line.measured.p) else DASH,
                _short_verdict(line),
            ]
            for line in lines
        ],
        remarks=[
            *(f"{DASH} planted {line.shift:g}, {line.condition}: {line.verdict}" for line in lines if not line.passed),
            *(
                f"{DASH} planted {line.shift:g}, {line.condition}: {finding.place} could not be checked: {finding.says}"
                for line in lines
                for finding in line.findings
                # That answers hardly depend on a recording is planted in some lines.
                if line.passed and finding.passed is None and finding.place != HEARING
            ),
        ],
    )


def _short_verdict(line: Line) -> str:
    if line.passed:
        return "passes"
    return f"fails at {line.first_fault.place}" if line.first_fault else "cannot tell"
