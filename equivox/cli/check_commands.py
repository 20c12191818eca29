"""The commands that check runs for somebody else: verify, gate; nothing heavy is imported at start."""

from __future__ import annotations

from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import (
    QuietOption,
    RunArgument,
    TaskFilesArgument,
    data_option,
    opened,
    outside,
)
from equivox.cli.output import echo, show_tables
from equivox.core.errors import RequestError
from equivox.core.files import refuse_unusable, refuse_unusable_file, write_text
from equivox.report.progress_bars import progress_bars


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    task_files: TaskFilesArgument = None,
    data: Annotated[str | None, data_option("Make the requests again from the corpus, as for `run`.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write everything that was found as JSON to this file too.", callback=outside)
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Verify that a run holds what it says: hashes, requests, and every number recomputed; it is not written."""
    from equivox.compare.believing import verify_with_labels
    from equivox.integrations.hub.remote import HUB, downloaded
    from equivox.report.verification_tables import EXIT_CODES, verdict, verification_document, verification_tables

    if json is not None:
        refuse_unusable_file(json, "json")
    with downloaded(run) if run.startswith(HUB) else nullcontext(Path(run)) as folder:
        refuse_unusable(folder, "run")
        with progress_bars(quiet=quiet) as progress:
            found = verify_with_labels(folder, data=data, progress=progress)
    echo(verdict(found))
    if found.manifest:
        echo(f"SHA-256 of manifest.json: {found.manifest}")
    show_tables(verification_tables(found))
    if json is not None:
        document = {"run": run, **verification_document(found)}
        write_text(json, dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return EXIT_CODES[found.outcome]


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
    overall: Annotated[
        bool, typer.Option("--overall", help="Hold only the mean over a family's tasks against the margin.")
    ] = False,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that must be used in both runs.")
    ] = 0.95,
    inconclusive: Annotated[
        str, typer.Option(help="What a check that cannot be decided is: inconclusive (exit 4), pass or fail.")
    ] = "inconclusive",
    json: Annotated[
        Path | None, typer.Option(help="Write the checks as JSON to this file too.", callback=outside)
    ] = None,
) -> int:
    """Check that a run is not worse than a baseline; exit 0: it is not, 3: it is, 4: undecided, 1: not comparable."""
    from equivox.cli.show import believe_all
    from equivox.compare.gate import EXIT_CODES, Limits, read_limits
    from equivox.compare.gate import gate as checked
    from equivox.report.gate_files import gate_document, gate_table

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
    show_tables([gate_table(found)])
    outcome = found.outcome
    if outcome == "inconclusive":
        outcome = treated[inconclusive] or outcome  # type: ignore[assignment]
    return EXIT_CODES[outcome]
