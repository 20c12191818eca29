"""A gate as a table, as JSON, as JUnit XML for the test pages of a build, and as a Markdown summary."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import asdict, replace
from typing import Any
from xml.etree import ElementTree

from equivox.compare.gate import EXIT_CODES, Gate, GateOutcome
from equivox.core.lazy import pandas
from equivox.core.plain import as_plain
from equivox.report.frames import make_table
from equivox.report.notes import write_note
from equivox.report.table import Table, as_markdown

MEANINGS: dict[GateOutcome, str] = {
    "pass": "the new run is not more biased than the baseline by more than the margin",
    "worse": "the new run is more biased than the baseline",
    "undecided": "these runs cannot decide",
    "not comparable": "the runs do not compare, or too much failed",
}
COLUMNS = ("outcome", "new", "baseline", "difference", "low", "high", "margin", "decides_from")


def make_gate_table(gate: Gate) -> Table:
    """Return the checks of a gate as a table, with the outcome above and the reasons below."""
    table = make_table(
        pandas.DataFrame([vars(check) for check in gate.checks]),
        write_headline(gate),
        by=("task", "metric"),
        columns=COLUMNS,
    )
    unchecked = [f"{number}: not checked, because no margin holds for it" for number in gate.unchecked]
    return replace(table, remarks=[*table.remarks, *unchecked, *gate.caveats, *_list_proposals(gate)])


def write_headline(gate: Gate) -> str:
    """Return the outcome of a gate with its meaning and the models, in one line."""
    return f"{gate.outcome.upper()}: {MEANINGS[gate.outcome]} ({gate.model}, baseline {gate.baseline})"


def _list_proposals(gate: Gate) -> list[str]:
    """Return a line with the margins to set, if none was set; [] otherwise."""
    if any(math.isfinite(check.margin) for check in gate.checks) or not gate.proposal:
        return []
    margins = {name: _round_up(margin) for name, margin in gate.proposal.items()}
    options = [f"--margin {shlex.quote(f'{name}={n}' if name else n)}" for name, n in margins.items()]
    return [f"No margin was set. The smallest that these runs can decide: {' '.join(options)}"]


def _round_up(margin: float) -> str:
    """Return a margin with two digits that is no smaller.

    >>> _round_up(11.62), _round_up(1234.0), _round_up(0.0)
    ('12', '1300', '0')
    """
    step = 10.0 ** (math.floor(math.log10(margin)) - 1) if margin > 0 else 1.0
    return f"{math.ceil(margin / step) * step:g}"


def make_gate_document(gate: Gate) -> dict[str, Any]:
    """Return the gate as plain JSON values; an unknown number is null."""
    head = {"outcome": gate.outcome, "exit_code": EXIT_CODES[gate.outcome], "proposal": gate.proposal}
    return {**head, **as_plain(asdict(gate))}


def write_junit(gate: Gate) -> str:
    """Return the checks as JUnit XML: worse and undecided are failures, not comparable is an error."""
    counts = {
        "tests": len(gate.checks),
        "failures": sum(check.outcome in ("worse", "undecided") for check in gate.checks),
        "errors": sum(check.outcome == "not comparable" for check in gate.checks),
    }
    suite = ElementTree.Element("testsuite", {"name": "equivox gate"} | {name: str(n) for name, n in counts.items()})
    for check in gate.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(check.task), name=_clean(check.metric))
        if check.outcome != "pass":
            interval = f"{check.difference:.4g} further from no bias, {check.low:.4g} to {check.high:.4g}"
            tag = "error" if check.outcome == "not comparable" else "failure"
            margin = "no margin was set" if math.isnan(check.margin) else f"the margin is {check.margin:g}"
            message = _clean(write_note(check.reason) or f"{interval}; {margin}")
            ElementTree.SubElement(case, tag, type=check.outcome, message=message)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def write_summary(gate: Gate) -> str:
    """Return the gate as Markdown, such as for the summary page of a build."""
    return f"### equivox gate\n\n{as_markdown([make_gate_table(gate)])}"


def _clean(text: str) -> str:
    """Return a text without the characters that XML 1.0 excludes."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
