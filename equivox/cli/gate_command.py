"""`equivox gate`: is a new run worse than a baseline?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Options of the command line; limits are numbers, or NAME=number for one metric."""

    new: Path
    baseline: Path | None
    margin: list[str]
    most: list[str]
    overall: bool
    min_coverage: float
    inconclusive: str
    junit: Path | None
    json: Path | None
    github: bool


def run_gate(wish: Wish) -> int:
    """Print the checks and write the files that were asked for; return the exit code of the outcome."""
    import json

    from equivox.cli.output import console, echo
    from equivox.compare.gate import EXIT_CODES, Limits, gate
    from equivox.core.files import refuse_unusable_file, write_text
    from equivox.report.gate_files import gate_annotations, gate_document, gate_junit, gate_table
    from equivox.report.table import print_tables

    treated = {"inconclusive": None, "pass": "pass", "fail": "worse"}
    if wish.inconclusive not in treated:
        raise RequestError(f"`inconclusive` is one of {', '.join(treated)}, got {wish.inconclusive!r}")
    for option, path in (("junit", wish.junit), ("json", wish.json)):
        if path is not None:
            refuse_unusable_file(path, option)
    limits = Limits(margin=_limits(wish.margin, "margin"), most=_limits(wish.most, "max"))
    found = gate(wish.new, wish.baseline, limits, overall=wish.overall, min_coverage=wish.min_coverage)
    passing = frozenset({"pass", "inconclusive"} if wish.inconclusive == "pass" else {"pass"})
    if wish.junit is not None:
        write_text(wish.junit, gate_junit(found, passing=passing))
    if wish.json is not None:
        write_text(wish.json, json.dumps(gate_document(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print_tables(console(), [gate_table(found)])
    if wish.github:
        for line in gate_annotations(found, passing=passing):
            echo(line)
    outcome = found.outcome
    if outcome == "inconclusive":
        outcome = treated[wish.inconclusive] or outcome  # type: ignore[assignment]
    return EXIT_CODES[outcome]


def _limits(given: list[str], option: str) -> dict[str, float]:
    """Return limits by metric, "" for all others."""
    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            raise RequestError(f"`{option}` is a number, or NAME=number, got {text!r}") from None
        if name in found:
            raise RequestError(f"`{option}` is given twice{f' for {name}' if name else ''}; give it once")
        found[name] = limit
    return found
