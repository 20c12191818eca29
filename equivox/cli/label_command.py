"""`equivox audit label`: answers drawn for people to label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import AuditedOption, data_option, names_in, output_option, runs_argument
from equivox.cli.output import echo


def label(
    runs: Annotated[list[Path], runs_argument("Folders of runs.", every=True)],
    output: Annotated[Path | None, output_option("The label folder; RUN-labels beside the run by default.")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Responses of each combination of --per.")] = 10,
    per: Annotated[
        str,
        typer.Option(
            help="Spread over any of model, task, condition, group and metadata. Scores need model, task, group."
        ),
    ] = "model,task,group",
    seed: Annotated[int, typer.Option(help="Draws other responses.")] = 0,
    annotator: AuditedOption = None,
    stage: Annotated[
        str | None,
        typer.Option(help="One stage of an annotation in stages, such as narrative; see the benchmark."),
    ] = None,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Show what the annotator gave, and ask which share of it is right."),
    ] = False,
    data: Annotated[str | None, data_option("Where the recordings are now.")] = None,
    media: Annotated[bool, typer.Option("--media/--no-media", help="Let people hear the recordings.")] = True,
    studio: Annotated[bool, typer.Option("--label-studio", help="Write tasks and a page for Label Studio.")] = False,
) -> None:
    """Draw answers for people to label: as a table, or for Label Studio; nothing tells group, model or annotation."""
    from equivox.audit.drawing import draw_sheet, drawn_counts
    from equivox.audit.merged import draw_merged, is_unify
    from equivox.audit.sheet import refuse_used, write_sheet

    first = runs[0].resolve()
    folder = output or first.parent / f"{first.name}-labels{f'-{stage}' if stage else ''}"
    refuse_used(folder)
    if is_unify(stage, runs):
        drawn = draw_merged(runs, n=n, seed=seed, annotator=annotator)
    else:
        drawn = draw_sheet(runs, stage, n=n, per=names_in(per), seed=seed, annotator=annotator, judge=judge)
    write_sheet(drawn, folder, data=data, media=media, studio=studio)
    for (model, group), count in sorted(drawn_counts(drawn).items()):
        echo(f"{model}  {group or 'all'}: {count} answers")
    if studio:
        echo(f"\nMake a project in Label Studio of each pair of {folder}/tasks-N.json and page-N.xml.")
        echo(f"Export as JSON; labels come back with `equivox audit score {folder} EXPORT.json`.")
    else:
        echo(f"\nGive {folder / 'sheet.csv'} and media/ to people who label; they fill in the column `label`.")
        echo(f"Labels come back with `equivox audit score {folder} FILE…`, a file per person.")
    echo(f"Keep {folder / 'key.json'}: it tells which response is which.")
