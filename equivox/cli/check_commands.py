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
from equivox.core.files import write_text
from equivox.core.foreign_files import refuse_unusable, refuse_unusable_file
from equivox.report.progress_bars import progress_bars


def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Name the folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    task_files: TaskFilesArgument = None,
    data: Annotated[str | None, data_option("Also rebuild the requests from this corpus, as for `run`.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Also write all results as JSON to this file.", callback=outside)
    ] = None,
    quiet: QuietOption = False,
) -> int:
    """Check a run's hashes and requests, and recompute every number."""
    from equivox.compare.verification import verify_with_labels
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
        Path,
        typer.Option(help="Compare with this run, such as the last release.", callback=opened),
    ],
    margin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help="Allow this much more bias; NAME=M for one metric or task; repeatable. Default: propose a margin.",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Also write the checks as JUnit XML.", callback=outside)] = None,
    summary: Annotated[
        Path | None,
        typer.Option(help="Also write the checks as Markdown, such as to $GITHUB_STEP_SUMMARY.", callback=outside),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Also write the checks as JSON.", callback=outside)] = None,
) -> int:
    """Check that a run is no worse than a baseline.

    Exit code 0: no worse, 3: worse, 4: undecided, 1: not comparable.
    """
    from equivox.cli.show import refuse_unverified
    from equivox.compare.gate import EXIT_CODES, check_run, read_margins
    from equivox.report.gate import make_gate_document, make_gate_table, write_junit, write_summary

    for name, file in (("junit", junit), ("summary", summary), ("json", json)):
        if file is not None:
            refuse_unusable_file(file, name)
    margins = read_margins(margin or ())
    refuse_unverified(*dict.fromkeys([run, baseline]))
    checks = check_run(run, baseline, margins)
    if junit is not None:
        write_text(junit, write_junit(checks))
    if summary is not None:
        write_text(summary, write_summary(checks))
    if json is not None:
        write_text(json, dumps(make_gate_document(checks), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    show_tables([make_gate_table(checks)])
    return EXIT_CODES[checks.outcome]
