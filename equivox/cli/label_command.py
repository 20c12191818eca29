"""`equivox audit label`: people label answers in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import (
    AuditedOption,
    CountOption,
    DrawOption,
    JudgeOption,
    RecordingsOption,
    StageOption,
    names_in,
    opened,
    output_option,
)
from equivox.cli.output import echo, opens
from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from equivox.audit.folder import LabelFolder


def label(
    places: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or one label folder to go on with.")
    ],
    output: Annotated[Path | None, output_option("The label folder; RUN-labels beside the run by default.")] = None,
    n: CountOption = 10,
    per: Annotated[
        str,
        typer.Option(
            help="Spread over any of model, task, condition, group and metadata. Scores need model, task, group."
        ),
    ] = "model,task,group",
    seed: DrawOption = 0,
    annotator: AuditedOption = None,
    stage: StageOption = None,
    judge: JudgeOption = False,
    data: RecordingsOption = None,
    media: Annotated[
        bool, typer.Option("--media/--no-media", help="Let people hear the recordings if they ask.")
    ] = True,
    serve: Annotated[
        bool, typer.Option("--serve/--no-serve", help="Serve the page; sheet.csv is the same as a table.")
    ] = True,
    studio: Annotated[bool, typer.Option("--label-studio", help="Write tasks and a page for Label Studio.")] = False,
    adjudicate: Annotated[
        bool, typer.Option("--adjudicate", help="Decide what people say differently, without their names.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Listen at this address; 0.0.0.0 lets others on the network label.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
) -> None:
    """Label answers in the browser, one a screen: saved at once, by several people without sight of each other."""
    from equivox.audit.drawing import draw_sheet, drawn_counts
    from equivox.audit.folder import SHEET_FILE, LabelFolder
    from equivox.audit.merged import draw_merged, is_unify
    from equivox.audit.sheet import refuse_used, write_sheet
    from equivox.report.label.server import Desk
    from equivox.report.label.server import serve as serve_desk

    folder = _folder(places, output, stage)
    if not (folder / SHEET_FILE).is_file():
        refuse_used(folder)
        if is_unify(stage, places):
            drawn = draw_merged(places, n=n, seed=seed, annotator=annotator)
        else:
            drawn = draw_sheet(places, stage, n=n, per=names_in(per), seed=seed, annotator=annotator, judge=judge)
        write_sheet(drawn, folder, data=data, media=media, studio=studio)
        for (model, group), count in sorted(drawn_counts(drawn).items()):
            echo(f"{model}  {group or 'all'}: {count} answers")
    elif studio:
        raise RequestError(f"{folder} exists; `--label-studio` is for new labels: name another `--output`")
    if studio or not serve:
        return _tell_files(folder, studio=studio)
    labels = LabelFolder(folder)
    if adjudicate and len(labels.people()) < 2:
        raise RequestError(f"`adjudicate` needs the labels of two people, {folder} has {len(labels.people())}")

    ready = opens(f"Ctrl-C ends it; labels are saved in {folder}", browser=browser)
    serve_desk(Desk(labels, adjudicate=adjudicate), host=host, port=port, ready=ready)
    _tell(labels)


def _tell_files(folder: Path, *, studio: bool) -> None:
    """Print what to give to people who label without the page, and what to keep."""
    if studio:
        echo(f"\nMake a project in Label Studio of each pair of {folder}/tasks-N.json and page-N.xml.")
        echo(f"Export as JSON; labels come back with `equivox audit score {folder} EXPORT.json`.")
    else:
        echo(f"\nGive {folder / 'sheet.csv'} and media/ to people who label; they fill in the column `label`.")
        echo(f"Labels come back with `equivox audit score {folder} FILE…`, a file per person.")
    echo(f"Keep {folder / 'key.json'}: it tells which response is which.")


def _tell(labels: LabelFolder) -> None:
    """Print how far people are, and what comes next."""
    from equivox.report.numbers import how_many

    folder, total = labels.folder, len(labels.items)
    people = labels.people()
    for person in people:
        echo(f"{person}: {labels.done(person)} of {total} answers")
    if not people:
        return
    if (differing := len(labels.differing())) and len(people) > 1:
        echo(f"People differ on {how_many(differing, 'answer')}, {len(labels.decisions())} are decided.")
        echo(f"Decide: `equivox audit label {folder} --adjudicate`")
    echo(f"Compare with the annotator: `equivox audit score {folder}`")


def _folder(places: list[Path], output: Path | None, stage: str | None) -> Path:
    """Return the label folder to go on with, or where the labels of the runs go; no labels of other runs."""
    from equivox.audit.folder import SHEET_FILE
    from equivox.audit.labels import read_key

    first = places[0]
    if len(places) == 1 and (first / SHEET_FILE).is_file():
        if output is not None:
            raise RequestError("`output` is for new labels; a label folder keeps its own, so leave it out")
        return first
    for run in places:
        opened(run)
    folder = output or first.resolve().parent / f"{first.resolve().name}-labels{f'-{stage}' if stage else ''}"
    if (folder / SHEET_FILE).is_file():
        known = {Path(entry["run"]) for entry in read_key(folder).values()}
        if known != {run.resolve() for run in places}:
            raise RequestError(
                f"{folder} holds labels of other runs ({', '.join(map(str, sorted(known)))}); name another `--output`"
            )
        echo(f"Going on with the labels in {folder}; `--output` makes new ones")
        return folder
    return folder
