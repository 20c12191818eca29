"""A calibration as tables, as a figure and as one page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from equivox.calibration.checking import Settings
from equivox.calibration.training import Model
from equivox.calibration.verdicts import PLACES, Line
from equivox.report.figures import draw_calibration
from equivox.report.numbers import DASH
from equivox.report.table import Table
from equivox.report.tables_page import Shown, tables_page

PAGE_FILE = "calibration.html"
_SIGNS = {True: "✓", False: "✗", None: DASH}
_CAPTION = (
    "Dot: measured on the engine, with its interval of 95 %; filled if the line passes. Upright mark: the model's own "
    "probabilities. Dotted: to be found."
)


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


def chain_table(lines: Sequence[Line]) -> Table:
    """Return the table of what was found at each place of the chain, a row per line and place."""
    return Table(
        caption="Along the chain",
        columns=("planted", "condition", "place", "found"),
        align="llll",
        rows=[
            [f"{line.shift:g}", line.condition, finding.place, f"{_SIGNS[finding.passed]} {finding.says}"]
            for line in lines
            for finding in sorted(line.findings, key=lambda finding: PLACES.index(finding.place))
        ],
        grouped=2,
        notes=[f"{_SIGNS[True]} right, {_SIGNS[False]} wrong, {_SIGNS[None]} cannot be told"],
    )


def models_table(made: Sequence[Model]) -> Table:
    """Return the table of the calibration models: their recipes and the hashes of their weights."""
    return Table(
        caption="Calibration models",
        columns=("planted", "recipe", "weights", "made with"),
        align="llll",
        rows=[
            [
                f"{model.recipe.shift:g}",
                f"{model.recipe.version}, {model.recipe.digest[:16]}",
                str(model.about["checkpoint"])[:22],
                ", ".join(f"{name} {version}" for name, version in model.recipe.libraries.items()),
            ]
            for model in made
        ],
    )


def calibration_page(settings: Settings, made: Sequence[Model], lines: Sequence[Line]) -> str:
    """Return one self-contained HTML page of a calibration."""
    asked = "all samples" if settings.limit is None else f"{settings.limit} samples"
    verdict = verdict_of(settings, lines)
    table = calibration_table(settings, lines)
    rows = [(f"{line.shift:g}, {line.condition}", line) for line in lines]
    told = "; ".join(f"{label}: measured {line.measured}, own {line.own}" for label, line in rows)
    about = (
        f"Tiny models of a known bias answered {asked} of {settings.task.name} on {settings.scheme}, annotated by "
        f"{settings.annotator}. Their own probabilities were drawn without the engine."
    )
    return tables_page(
        title=f"calibration: {settings.scheme}, {settings.task.name}",
        heading=verdict,
        warnings=[remark.removeprefix(f"{DASH} ") for remark in table.remarks],
        lines=[about],
        figures=[Shown(draw_calibration(rows), told, _CAPTION)] if lines else [],
        tables=[replace(table, remarks=()), chain_table(lines), models_table(made)],
    )
