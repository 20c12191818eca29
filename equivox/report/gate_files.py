"""The results of a gate as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from equivox.compare.gate import EXIT_CODES, Gate
from equivox.core.plain import as_plain
from equivox.report.numbers import DASH, score_interval, score_value
from equivox.report.table import Table

HOW = (
    'new, baseline: the distance of each run from "no bias", on the answers that both gave.',
    'difference: how much further from "no bias" the new run is; a check passes when all of the interval is within the '
    "limit, or no cluster sets the runs apart, and fails when none of it is.",
    "decides from: the limit that equal runs of this size would pass.",
    "refusal, failure, unannotated, unstated, truncated: how much more often one group loses its answers; against a "
    "baseline such a gap, in percentage points, must not grow beyond chance, whatever the margin.",
)


def gate_table(gate: Gate) -> Table:
    """Return the checks of a gate as a table."""
    return Table(
        caption=f"{gate.model}: {gate.outcome}",
        columns=("outcome", "task", "metric", "new", "baseline", "difference", "interval", "limit", "decides from"),
        align="lllrrrrrr",
        rows=[
            [
                check.outcome,
                check.task,
                check.metric,
                score_value(check.value, check.unit),
                score_value(check.baseline, check.unit) if check.against else DASH,
                score_value(check.difference, check.unit),
                score_interval(check.low, check.high, check.unit),
                f"{check.limit:g}",
                score_value(check.decides_from, check.unit),
            ]
            for check in gate.checks
        ],
        remarks=[
            *(
                f"{check.task} {check.metric}: {said}"
                for check in gate.checks
                for said in (check.reason, check.would_do)
                if said
            ),
            *(f"{number}: not checked: it has no limit, or is in no mean of `--overall`" for number in gate.unchecked),
            *gate.caveats,
        ],
        notes=list(HOW),
    )


def gate_document(gate: Gate) -> dict[str, Any]:
    """Return the gate as plain JSON values; a number that is not known is null."""
    told = {"model": gate.model, "outcome": gate.outcome, "exit_code": EXIT_CODES[gate.outcome]}
    return {**told, **as_plain(asdict(gate))}
