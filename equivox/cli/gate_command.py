"""`equivox gate`: is a new run worse than a baseline?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import RunArgument, opened
from equivox.core.errors import RequestError


def gate(
    run: RunArgument,
    baseline: Annotated[
        Path | None, typer.Option(help="The run that the new one is held against.", callback=opened)
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help="How much further from no bias the new run may be; NAME=M for a metric or task; repeatable.",
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="N", help="The largest distance from no bias; NAME=N for a metric or task."),
    ] = None,
    overall: Annotated[bool, typer.Option("--overall", help="Check only the mean over a family's tasks.")] = False,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that must be used in both runs.")
    ] = 0.95,
    inconclusive: Annotated[
        str, typer.Option(help="What a check that cannot be decided is: inconclusive (exit 4), pass or fail.")
    ] = "inconclusive",
    json: Annotated[Path | None, typer.Option(help="Write the checks as JSON to this file too.")] = None,
) -> int:
    """Check that a run is not worse than a baseline; exit 0: it is not, 3: it is, 4: undecided, 1: not comparable."""
    from json import dumps

    from equivox.cli.output import console
    from equivox.cli.show import believe_all
    from equivox.compare.gate import EXIT_CODES, Limits, read_limits
    from equivox.compare.gate import gate as checked
    from equivox.core.files import refuse_unusable_file, write_text
    from equivox.report.gate_files import gate_document, gate_table
    from equivox.report.table import print_tables

    treated = {"inconclusive": None, "pass": "pass", "fail": "worse"}
    if inconclusive not in treated:
        raise RequestError(f"`inconclusive` is one of {', '.join(treated)}, got {inconclusive!r}")
    if json is not None:
        refuse_unusable_file(json, "json")
    believe_all([run, *([baseline] if baseline is not None else [])])
    limits = Limits(margin=read_limits(margin or (), "margin"), most=read_limits(most or (), "max"))
    found = checked(run, baseline, limits, overall=overall, min_coverage=min_coverage)
    if json is not None:
        write_text(json, dumps(gate_document(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print_tables(console(), [gate_table(found)])
    outcome = found.outcome
    if outcome == "inconclusive":
        outcome = treated[inconclusive] or outcome  # type: ignore[assignment]
    return EXIT_CODES[outcome]
