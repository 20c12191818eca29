"""`equivox audit`: check an annotator against people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import AuditedOption, Command, data_option, names_in, output_option, runs_argument
from equivox.cli.output import echo, show_tables
from equivox.core.errors import RequestError
from equivox.core.files import write_text
from equivox.core.plain import as_plain

app = typer.Typer(
    name="audit", help="Check an annotator against people: answers out, labels back.", no_args_is_help=True
)


@app.command(cls=Command)
def label(
    runs: Annotated[list[Path], runs_argument("Folders of runs.", every=True)],
    output: Annotated[
        Path | None, output_option("The label folder; RUN-labels beside the run by default.", here=False)
    ] = None,
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
    data: Annotated[str | None, data_option("Where the corpus is now.")] = None,
    media: Annotated[
        bool,
        typer.Option("--media/--no-media", help="Give people what was sent: recordings, pictures, texts of a table."),
    ] = True,
) -> None:
    """Draw answers for people to label, as a table; nothing tells group, model or annotation."""
    from equivox.audit.drawing import draw_merged, draw_sheet, drawn_counts, is_unify
    from equivox.audit.sheet import refuse_used, write_sheet

    first = runs[0].resolve()
    folder = output or first.parent / f"{first.name}-labels{f'-{stage}' if stage else ''}"
    refuse_used(folder)
    if is_unify(stage, runs):
        drawn = draw_merged(runs, n=n, seed=seed, annotator=annotator)
    else:
        drawn = draw_sheet(runs, stage, n=n, per=names_in(per), seed=seed, annotator=annotator, judge=judge)
    write_sheet(drawn, folder, data=data, media=media)
    for (model, group), count in sorted(drawn_counts(drawn).items()):
        echo(f"{model}  {group or 'all'}: {count} answers")
    also = " and media/" if (folder / "media").exists() else ""
    echo(f"\nGive {folder / 'sheet.csv'}{also} to people who label; they fill in the column `label`.")
    echo(f"Labels come back with `equivox audit score {folder} FILE…`, a file per person.")
    echo(f"Keep {folder / 'key.json'}: it tells which response is which.")


@app.command("score", cls=Command)
def score_sheet(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that `audit label` wrote.")],
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LABELS...]",
            help="One CSV per person; without any, those in FOLDER.",
        ),
    ] = None,
    annotator: AuditedOption = None,
    store: Annotated[
        bool, typer.Option("--store/--no-store", help="Keep the labels and the result with the run.")
    ] = True,
) -> None:
    """Compare the annotator with people: agreement, κ, α, its errors, and their effect on each interval."""
    from equivox.audit.kept import (
        annotators_of,
        is_judged,
        is_merged,
        score_audit,
        score_judged,
        score_merged,
        store_audit,
    )
    from equivox.audit.labels import label_files, read_key
    from equivox.audit.sheet import CSV_FILE
    from equivox.audit.stored import AUDIT_FILE
    from equivox.report.audit_tables import audit_tables, stage_audit_table, stage_table

    files, key = labels or label_files(folder) or [folder / CSV_FILE], read_key(folder)
    if is_judged(key) or is_merged(key):
        if annotator is not None:
            raise RequestError("`annotator` says nothing here: its answers were on the sheet; leave it out")
        measures, left_out = (score_merged if is_merged(key) else score_judged)(folder, key, files)
        document = {"measures": as_plain(measures), "left_out": left_out}
        write_text(folder / "audit.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        show_tables([stage_table(measures, left_out)])
        echo(f"\nStored in {folder / 'audit.json'}")
        return
    audit = score_audit(folder, files, annotator)
    show_tables([stage_audit_table(audit)] if audit.stage else audit_tables(audit))
    kept = store_audit(folder, files, audit, annotators_of(folder, annotator)) if store else []
    if folder.resolve() not in kept:
        write_text(folder / AUDIT_FILE, json.dumps(audit.as_dict(), indent=1, ensure_ascii=False) + "\n")
        kept = [folder, *kept]
    echo(f"\nStored in {' and '.join(str(place / AUDIT_FILE) for place in kept)}")
