"""`equivox audit`: check an annotator against people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.label_command import label
from equivox.cli.options import (
    AuditedOption,
    CountOption,
    DrawOption,
    JudgeOption,
    RecordingsOption,
    StageOption,
    names_in,
    output_option,
    runs_argument,
)
from equivox.cli.output import echo

app = typer.Typer(
    name="audit", help="Check an annotator against people: blind sheets out, labels back.", no_args_is_help=True
)


@app.command("export")
def export_sheet(
    runs: Annotated[list[Path], runs_argument("Folders of runs.")],
    output: Annotated[Path, output_option("A new folder for the sheet and its key.")],
    n: CountOption = 10,
    per: Annotated[str, typer.Option(help="Spread over any of model, task, condition, group.")] = "model,group",
    seed: DrawOption = 0,
    annotator: AuditedOption = None,
    stage: StageOption = None,
    judge: JudgeOption = False,
    data: RecordingsOption = None,
    media: Annotated[bool, typer.Option("--media/--no-media", help="Put the recordings into the page.")] = True,
    studio: Annotated[bool, typer.Option("--label-studio", help="Write tasks and a page for Label Studio.")] = False,
) -> None:
    """Write a blind sheet (CSV, and a page with the recordings), and the key that maps its rows to responses."""
    from equivox.report.blind_sheet import drawn_counts, export, export_label_studio
    from equivox.report.stage_sheet import draw_sheet

    drawn = draw_sheet(runs, stage, n=n, per=names_in(per), seed=seed, annotator=annotator, judge=judge)
    write = export_label_studio if studio else export
    *pages, key = write(drawn, output, data=data, media=media)
    for (model, group), count in sorted(drawn_counts(drawn).items()):
        echo(f"{model}  {group or 'all'}: {count} {'responses' if stage is None else f'texts of the stage {stage}'}")
    # At a stage, what the annotator saw may name a character or an identity.
    blind = (
        "neither names a group or a model" if stage is None else "neither names a model or says what is of which group"
    )
    if studio:
        echo(f"\nMake a project in Label Studio of each pair of {', '.join(map(str, pages))}; {blind}.")
        echo(f"Keep {key}. Export as JSON; labels come back with `equivox audit score {output} EXPORT.json`.")
        return
    sheet, page = pages
    echo(f"\nGive {page} or {sheet} to people who label; {blind}.")
    echo(f"Keep {key}: it tells which response is which. Labels come back with `equivox audit score {output} …`.")


app.command("label")(label)


@app.command("score")
def score_sheet(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder that `audit export` wrote; with --benchmark, a CSV.")
    ],
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[LABELS...]",
            help="One CSV per person, or Label Studio's JSON; without any, those in FOLDER.",
        ),
    ] = None,
    annotator: AuditedOption = None,
    benchmark: Annotated[
        str | None,
        typer.Option(help="A metric that annotates in stages: score labels of these, without a run."),
    ] = None,
    store: Annotated[
        bool, typer.Option("--store/--no-store", help="Keep the labels and the result with the run.")
    ] = True,
) -> None:
    """Compare the annotator with people: agreement, κ, α, its errors, and their effect on each interval."""
    if benchmark is not None:
        return _score_stages(benchmark, [folder, *(labels or [])], annotator)
    from equivox.cli.show import console
    from equivox.compare.audits import annotators_of, score_audit, store_audit
    from equivox.compare.label_folder import label_files
    from equivox.compare.stage_labels import score_judged, stage_key
    from equivox.compare.stored_audits import AUDIT_FILE
    from equivox.core.errors import RequestError
    from equivox.core.files import write_text
    from equivox.report.audit_tables import audit_tables, stage_audit_table, stage_table
    from equivox.report.blind_sheet import CSV_FILE
    from equivox.report.table import print_tables

    files, key = labels or label_files(folder) or [folder / CSV_FILE], stage_key(folder)
    if key is not None and any(entry["judged"] for entry in key.values()):
        if annotator is not None:
            raise RequestError("`annotator` says nothing here: its answers were on the sheet; leave it out")
        checked = score_judged(folder, key, files)
        write_text(folder / "audit.json", json.dumps(checked.as_dict(), indent=1, ensure_ascii=False) + "\n")
        print_tables(console(), [stage_table(checked)])
        echo(f"\nStored in {folder / 'audit.json'}")
        return
    audit = score_audit(folder, files, annotator)
    print_tables(console(), audit_tables(audit) if key is None else [stage_audit_table(audit)])
    kept = store_audit(folder, files, audit, annotators_of(folder, annotator)) if store else []
    if folder.resolve() not in kept:
        write_text(folder / AUDIT_FILE, json.dumps(audit.as_dict(), indent=1, ensure_ascii=False) + "\n")
        kept = [folder, *kept]
    echo(f"\nStored in {' and '.join(str(place / AUDIT_FILE) for place in kept)}")


def _score_stages(metric: str, files: list[Path], annotator: str | None) -> None:
    from equivox.cli.show import console
    from equivox.core.errors import RequestError, nearest
    from equivox.report.audit_tables import stage_table
    from equivox.report.table import print_tables
    from equivox.tasks.registry import builtin_tasks

    metrics = {task.metric.name: task.metric.check_stages for task in builtin_tasks().values()}
    known = {name: check for name, check in metrics.items() if check is not None}
    if metric not in known:
        raise RequestError(
            f"`benchmark` {metric!r} has no stages that labels check{nearest(metric, known)}; known: {', '.join(known)}"
        )
    if annotator is not None:
        raise RequestError("`annotator` says nothing here: the labels hold the annotator's answers; leave it out")
    print_tables(console(), [stage_table(known[metric](files))])
