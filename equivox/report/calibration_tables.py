"""A calibration as a verdict and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equivox.calibration.checking import Settings
from equivox.calibration.verdicts import Line
from equivox.report.numbers import DASH
from equivox.report.table import Table


def verdict_of(settings: Settings, lines: Sequence[Line]) -> str:
    """Return whether the engine passes, and how many lines do, in one sentence.

    >>> from equivox.tasks.registry import resolve_tasks
    >>> task = resolve_tasks("vibe_gender:candidate")[0]
    >>> verdict_of(Settings(scheme="vllm", arguments={}, task=task, shifts=[20], output=None), [])
    'vllm was not calibrated: no line was measured'
    """
    if not lines:
        return f"{settings.scheme} was not calibrated: no line was measured"
    passed = sum(line.passed for line in lines)
    if passed == len(lines):
        return f"{settings.scheme} passes: {passed} of {len(lines)} lines"
    return f"{settings.scheme} fails: {len(lines) - passed} of {len(lines)} lines"


def calibration_table(settings: Settings, lines: Sequence[Line]) -> Table:
    """Return the table of what was planted, what the model has of it, and what was measured, a row per line."""
    return Table(
        caption=f"Calibration of {settings.scheme} with {settings.task.name}, training seed {settings.seed}",
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
            f"{DASH} planted {line.shift:g}, {line.condition}: {line.verdict}" for line in lines if not line.passed
        ],
    )


def _short_verdict(line: Line) -> str:
    if line.passed:
        return "passes"
    return f"fails at {line.first_fault.place}" if line.first_fault else "cannot tell"
