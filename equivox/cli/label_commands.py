"""`equivox label`: check an annotator against people."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from equivox.cli.options import (
    AuditedOption,
    Command,
    command_group,
    data_option,
    names_in,
    output_option,
    runs_argument,
)
from equivox.cli.output import echo, show_tables
from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.plain import as_plain

app = command_group("label", "Check a judge against people who label answers.")


@app.command(cls=Command)
def draw(
    runs: Annotated[list[Path], runs_argument("Name folders of runs.", every=True)],
    output: Annotated[
        Path | None, output_option("Write the sheet into this folder; default: RUN-labels beside the run.", here=False)
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Draw this many responses for each combination of --per.")] = 10,
    per: Annotated[
        str,
        typer.Option(help="Spread the draw over these columns; scores need model, task and group."),
    ] = "model,task,group",
    seed: Annotated[int, typer.Option(help="Draw other responses with another seed.")] = 0,
    annotator: AuditedOption = None,
    stage: Annotated[
        str | None,
        typer.Option(help="Check one stage of the annotation, such as narrative."),
    ] = None,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Show people the judge's values and let them mark the right share."),
    ] = False,
    data: Annotated[str | None, data_option("Read the corpus from this folder.")] = None,
    media: Annotated[
        bool,
        typer.Option("--media/--no-media", help="Include the recordings, pictures or texts that the model received."),
    ] = True,
) -> None:
    """Draw answers for people to label, without model, group and annotation."""
    from equivox.audit.drawing import draw_sheet
    from equivox.audit.sheet import refuse_used, write_sheet

    first = runs[0].resolve()
    folder = output or first.parent / f"{first.name}-labels{f'-{stage}' if stage else ''}"
    refuse_used(folder)
    drawn = draw_sheet(runs, stage, n=n, per=names_in(per), seed=seed, annotator=annotator, judge=judge)
    write_sheet(drawn, folder, data=data, media=media)
    for (model, group), count in sorted(Counter((one.model, one.row.group) for one in drawn).items()):
        echo(f"{model}  {group or 'all'}: {count} answers")
    also = " and media/" if (folder / "media").exists() else ""
    echo(f"\nGive {folder / 'sheet.csv'}{also} to people who label; they fill the column `label`.")
    echo(f"Then run `equivox label score {folder} FILE…` with one file per person.")
    echo(f"Keep {folder / 'key.json'}: it links the rows to the responses.")


@app.command("score", cls=Command)
def score_sheet(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Name the folder that `label draw` wrote.")],
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LABELS...]",
            help="Name one CSV per person; default: the files in FOLDER.",
        ),
    ] = None,
    annotator: AuditedOption = None,
    store: Annotated[bool, typer.Option("--store", help="Store labels and result with the run.")] = False,
) -> None:
    """Compare the judge with people: agreement, errors, and their effect on each interval."""
    from equivox.audit.kept import annotators_of, is_about_shares, score_audit, score_shares, store_audit
    from equivox.audit.labels import label_files, read_key
    from equivox.audit.sheet import CSV_FILE
    from equivox.audit.stored import AUDIT_FILE
    from equivox.report.audit_tables import audit_tables, stage_audit_table, stage_table

    files, annotators = labels or label_files(folder) or [folder / CSV_FILE], annotators_of(folder, annotator)
    stored: list[Path] = []
    if is_about_shares(read_key(folder)):
        if annotator is not None or store:
            raise UsageError("this sheet shows the annotator's answers; leave out `--annotator` and `--store`")
        measures, left_out = score_shares(folder, files)
        document: dict[str, Any] = {"measures": as_plain(measures), "left_out": left_out}
        show_tables([stage_table(measures, left_out)])
    else:
        audit = score_audit(folder, files, annotator)
        document = audit.as_dict()
        show_tables([stage_audit_table(audit)] if audit.stage else audit_tables(audit))
        stored = store_audit(folder, files, audit, annotators) if store else []
    if annotators.keys().isdisjoint(folder.resolve().parents):  # labels in a run are read, and the run is unchanged
        write_text(folder / AUDIT_FILE, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        stored = [folder, *stored]
    echo("".join(f"\nStored in {place / AUDIT_FILE}" for place in stored))
    if not store:
        echo("No run was changed; add `--store` to store labels and result with the run.")
