"""`equivox label`: check an annotator against people."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import AuditedOption, Command, RunArgument, command_group, opened, output_option
from equivox.cli.output import echo, echo_error, show_tables

app = command_group("label", "Check a judge against people who label answers.")


@app.command("draw", cls=Command)
def draw_sheet(
    run: RunArgument,
    output: Annotated[
        Path | None,
        output_option("Write the sheet into this file; default: RUN-labels.csv beside the run.", here=False),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Draw this many answers of each group of each task.")] = 10,
) -> None:
    """Draw answers for people to label, without model, group and annotation."""
    from equivox.core.errors import UsageError
    from equivox.labels.drawing import draw, fill_prompts, list_cells, list_uncheckable
    from equivox.labels.sheet import write_sheet

    folder = run.resolve()
    path = output or folder.parent / f"{folder.name}-labels.csv"
    answers = draw(list_cells(run), n)
    try:
        answers = fill_prompts(run, answers)
    except UsageError:
        echo_error(
            "some prompts keep placeholders such as {name}: the data of the run cannot be read here; "
            "draw where the run was made"
        )
    write_sheet(run, answers, path)
    for group, count in sorted(Counter(answer.row.group for answer in answers).items()):
        echo(f"{group or 'all'}: {count} answers")
    for task in list_uncheckable(run):
        echo(f"labels cannot check {task}: its scores rest on parts of an answer")
    echo(f"\nGive a copy of {path} to each person who labels; they fill the column `label` from the top.")
    echo(f"Then run `equivox label score {run} SHEET…` with one file per person.")


@app.command("score", cls=Command)
def score_sheets(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Name the folder of a run.", callback=opened)],
    sheets: Annotated[
        list[Path],
        typer.Argument(metavar="SHEET...", help="Name one filled-in sheet per person; add task files the run needs."),
    ],
    annotator: AuditedOption = None,
    store: Annotated[bool, typer.Option("--store", help="Store labels and result with the run.")] = False,
) -> None:
    """Compare the judge with people: agreement, errors, and scores corrected by labels."""
    from equivox.labels.checking import check_annotator, store_audit
    from equivox.labels.drawing import list_uncheckable
    from equivox.labels.reading import read_sheets
    from equivox.report.audit_tables import audit_tables
    from equivox.run.scoring import read_scores
    from equivox.tasks.registry import is_task_file, open_task_file

    for file in filter(lambda path: is_task_file(path.name), sheets):
        open_task_file(file)
    labels = read_sheets([path for path in sheets if not is_task_file(path.name)])
    audit = check_annotator(run, labels, annotator)
    show_tables(audit_tables(audit, read_scores(run, audit.annotator)))
    for task in list_uncheckable(run):
        echo(f"labels cannot check {task}: its scores rest on parts of an answer")
    if store:
        echo(f"\nStored in {store_audit(run, labels, audit)}")
    else:
        echo("No run was changed; add `--store` to store labels and result with the run.")
