"""The commands about run files: reproduce, demo; nothing heavy is imported at start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import (
    QuietOption,
    RayAddressOption,
    RedoJudgeOption,
    ScoringOption,
    TrustOption,
    data_option,
    output_option,
    outside,
)
from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, echo, show_tables
from equivox.core.errors import UsageError
from equivox.core.foreign_files import refuse_unusable_folder
from equivox.core.requests import Workers
from equivox.report.progress_bars import progress_bars
from equivox.run.spec import TYPED

if TYPE_CHECKING:
    from equivox.run.reproducing import Finished
    from equivox.run.run_files import Setting


def reproduce(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Name a run file: vibe, spoken_stereoset, …, or a YAML file.")
    ],
    output: Annotated[
        Path | None, output_option("Write the runs here, a folder per model; default: runs/FILE.")
    ] = None,
    data: Annotated[
        str | None, data_option("Read samples from this folder of built corpora, or from `sample`.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use this many samples per task.")] = None,
    models: Annotated[
        str | None, typer.Option("--models", help="Run these models instead of the file's, separated by commas.")
    ] = None,
    tasks: Annotated[str | None, typer.Option("--tasks", help="Run only these tasks or families of the file.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Use this judge, or these, instead of the file's.")] = None,
    scoring: ScoringOption = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Write the paper's tables here, with published numbers beside yours.", callback=outside),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Start this many copies of each model; default: the file's number, or 1."),
    ] = None,
    ray_address: RayAddressOption = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help=TYPED["retry_failed"][1])] = False,
    redo_judge: RedoJudgeOption = False,
    trust_remote_code: TrustOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the requests, list what is missing, and run nothing.")
    ] = False,
    quiet: QuietOption = False,
) -> int:
    """Run every model of a run file, such as a paper's. Repeat to resume."""
    from equivox.run.run_files import open_run_file, settings_of, split_models
    from equivox.tasks.registry import resolve_tasks

    opened = open_run_file(
        file, data=data, limit=limit, annotators=split_models(annotator or "") or None, scoring=scoring
    )
    settings = [
        replace(setting, trust_remote_code=trust_remote_code, retry_failed=retry_failed, redo_judge=redo_judge)
        for setting in settings_of(opened, resolve_tasks, models=split_models(models or ""), tasks=tasks)
    ]
    output = output or Path("runs") / Path(file).stem
    shared = Workers(workers or opened.workers, ray_address)
    if dry_run:
        return _show_dry_run(settings, output)
    if tables is not None and opened.paper is None:
        raise UsageError(f"`tables` needs a run file of a paper; {file} has no field `paper`")
    if tables is not None:
        refuse_unusable_folder(tables, "tables")
    finished, code = _run_all(settings, output, shared, quiet=quiet)
    if tables is not None and opened.paper is not None:
        _show_tables(opened.paper, finished, tables)
    return code


def _show_dry_run(settings: Sequence[Setting], output: Path) -> int:
    """Print what the runs of a run file would ask and what is missing for them; return 1 if anything is."""
    from equivox.report.audit_tables import missing_table
    from equivox.report.dry_run import file_table
    from equivox.run.reproducing import missing

    try:
        show_tables([file_table(settings, output)])
    except UsageError as error:
        echo(f"The requests cannot be counted: {error}")
    if found := missing(settings, output):
        show_tables([missing_table(found)])
    else:
        echo("Nothing is missing.")
    return EXIT_INCOMPLETE if found else EXIT_DONE


def _run_all(settings: Sequence[Setting], output: Path, workers: Workers, *, quiet: bool) -> tuple[list[Finished], int]:
    """Run every model of `settings` and show the scores; return the runs, and 1 if one of them could not be run."""
    from equivox.cli.engine_commands import warnings_of
    from equivox.cli.show import show_older, show_scores
    from equivox.run.reproducing import run_all

    warnings = [
        warnings_of(model, setting.file.annotators[0], setting.tasks)
        for setting in settings
        for model in setting.file.models
    ]
    told = iter(dict.fromkeys(filter(None, warnings)))
    finished = run_all(
        settings, output, lambda label: progress_bars(quiet=quiet, title=label, warning=next(told, "")), workers=workers
    )
    failed = [run for run in finished if run.error is not None]
    code = EXIT_INCOMPLETE
    if len(failed) < len(finished):
        code = show_scores(
            [(run.label, run.folder, run.scores, run.annotator) for run in finished if run.error is None]
        )
    for run in finished:
        show_older(run.folder, run.first)
    for run in failed:
        echo(f"{run.label} was not run: {run.error}", "red")
    return finished, EXIT_INCOMPLETE if failed else code


def _show_tables(paper: str, finished: Sequence[Finished], folder: Path) -> None:
    """Write the paper's tables from these runs and print them; runs that failed are named in the tables."""
    from equivox.compare.papers import TableRun, fill_tables
    from equivox.report.papers import cell_tables, write_tables

    runs = [
        TableRun(
            run.folder, run.spec.model, run.setting.name,
            {name: run.setting.names_of(name) for name in run.setting.file.annotators},
        )
        for run in finished
        if run.error is None
    ]  # fmt: skip
    tables = fill_tables(paper, runs)
    show_tables(cell_tables(tables))
    written = write_tables(tables, folder)
    echo(f"\n{len(written)} files in {folder}")


def demo(output: Annotated[Path, output_option("Write the runs here.")] = Path("runs/demo")) -> int:
    """Run every benchmark on sample data with simulated models."""
    from equivox.cli.result_commands import report
    from equivox.run.run_files import open_run_file, settings_of
    from equivox.tasks.registry import resolve_tasks

    settings = settings_of(open_run_file("demo"), resolve_tasks)
    finished, code = _run_all(settings, output, Workers(), quiet=False)
    done = [run.folder for run in finished if (run.folder / "scores.json").is_file()]
    if done:
        report(done, output / "report.html")
    return code
