"""The commands about run files: plan, reproduce, demo; nothing heavy is imported at start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import QuietOption, RayAddressOption, TrustOption, data_option, names_in, output_option
from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equivox.engines.workers import Workers
    from equivox.run.reproducing import Finished
    from equivox.run.run_files import RunFile, Setting

LimitOption = Annotated[int | None, typer.Option(min=1, help="Samples per task.")]
ModelsOption = Annotated[
    str | None, typer.Option("--models", help="Run these instead of the file's models, separated by commas.")
]
FileWorkersOption = Annotated[
    int | None, typer.Option(min=1, help="How many engines answer at a time; what the file says, or 1, by default.")
]
FileTasksOption = Annotated[str | None, typer.Option("--tasks", help="Only these of the file's tasks or families.")]


@dataclass(frozen=True)
class AskedFile:
    """A run file as asked for on the command line: its name, and what replaces its fields."""

    name: str
    data: str | None = None
    limit: int | None = None
    models: str | None = None
    tasks: str | None = None
    annotators: str | None = None
    workers: int | None = None
    ray_address: str | None = None
    side_by_side: int | None = None
    trust_remote_code: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the file's runs if none is named."""
        return Path("runs") / Path(self.name).stem

    def open(self, *, or_tasks: bool = False) -> tuple[RunFile, list[Setting]]:
        """Return the run file and its settings; with `or_tasks`, the name may be that of tasks, for the `models`."""
        from equivox.run.run_files import is_run_file, open_run_file, run_file_of, settings_of, split_models
        from equivox.tasks.registry import resolve_tasks

        named = names_in(self.annotators or "")
        models = split_models(self.models or "")
        if or_tasks and not is_run_file(self.name):
            tasks = resolve_tasks(self.name)
            if not models:
                raise RequestError(
                    f"{self.name} is no run file but tasks: name the models that they ask with `--models`"
                )
            file = run_file_of(self.name, models, data=self.data, limit=self.limit, annotators=named)
            return file, settings_of(file, lambda _: tasks)
        file = open_run_file(self.name, data=self.data, limit=self.limit, annotators=named or None)
        settings = settings_of(file, resolve_tasks, models=models, tasks=self.tasks)
        return file, [replace(setting, trust_remote_code=self.trust_remote_code) for setting in settings]

    def places(self, file: RunFile, settings: Sequence[Setting]) -> tuple[Workers, int]:
        """Return the workers and how many runs stand side by side; those of the file are at most what fits."""
        from equivox.engines.workers import Workers
        from equivox.run.reproducing import most_side_by_side

        workers = Workers(self.workers or file.workers, self.ray_address)
        if self.side_by_side is not None:
            return workers, self.side_by_side
        return workers, min(file.side_by_side, most_side_by_side(settings, workers))


def plan(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A packaged run file (vibe) or a YAML file; or tasks or a task file, with --models."
        ),
    ],
    data: Annotated[str | None, data_option("Count the samples there; published numbers by default.")] = None,
    limit: LimitOption = None,
    models: ModelsOption = None,
    tasks: FileTasksOption = None,
    output: Annotated[
        Path | None, output_option("Take speeds from the runs in this folder; runs/FILE by default.")
    ] = None,
    workers: FileWorkersOption = None,
) -> int:
    """Estimate the cost of a run file before it is run: responses, annotator calls, GPU-hours, prices."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.report.cost_tables import estimate_table
    from equivox.report.table import print_tables
    from equivox.run.cost import estimate

    asked = AskedFile(file, data, limit, models, tasks, workers=workers)
    opened, settings = asked.open(or_tasks=True)
    total = asked.places(opened, settings)[0].total
    print_tables(console(), [estimate_table(estimate(settings, output or asked.folder, workers=total))])
    return EXIT_DONE


def reproduce(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A packaged run file (vibe) or a YAML file.")],
    output: Annotated[
        Path | None, output_option("Where the runs go, a folder per model; runs/FILE by default.")
    ] = None,
    data: Annotated[str | None, data_option("`sample`, or the folder that `equivox data build` wrote into.")] = None,
    limit: LimitOption = None,
    models: ModelsOption = None,
    tasks: FileTasksOption = None,
    annotator: Annotated[
        str | None, typer.Option(help="Annotate with this one, or these, instead of the file's annotators.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Run nothing; list what is missing and what helps.")] = False,
    tables: Annotated[
        Path | None, typer.Option(help="Write the paper's tables there, with the published figures beside yours.")
    ] = None,
    workers: FileWorkersOption = None,
    ray_address: RayAddressOption = None,
    side_by_side: Annotated[
        int | None,
        typer.Option(min=1, help="How many models answer at a time, each with an equal part of the workers; 1."),
    ] = None,
    trust_remote_code: TrustOption = False,
    quiet: QuietOption = False,
) -> int:
    """Run every model of a run file in all its settings; repeat the command to resume."""
    asked = AskedFile(
        file, data, limit, models, tasks, annotator, workers=workers, ray_address=ray_address,
        side_by_side=side_by_side, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    output = output or asked.folder
    return _check(asked, output) if check else _reproduce(asked, output, tables=tables, quiet=quiet)


def _check(asked: AskedFile, output: Path) -> int:
    """Print what is missing for a run file, in one list; return 1 if anything is."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.show import console
    from equivox.report.audit_tables import missing_table
    from equivox.report.cost_tables import code_notes
    from equivox.report.table import print_tables
    from equivox.run.readiness import missing

    _, settings = asked.open()
    if found := missing(settings, output):
        print_tables(console(), [missing_table(found)])
    else:
        console().print("Nothing is missing.")
    files = [setting.file for setting in settings]
    for note in code_notes((m for file in files for m in file.models), (a for file in files for a in file.annotators)):
        console().print(note, markup=False)
    return EXIT_INCOMPLETE if found else EXIT_DONE


def _reproduce(asked: AskedFile, output: Path, *, tables: Path | None = None, quiet: bool) -> int:
    """Run every model of a run file and compare them; return 1 if one of them could not be run."""
    from equivox.cli import EXIT_INCOMPLETE
    from equivox.cli.engine_commands import rules_warning
    from equivox.cli.result_commands import check_tables_folder
    from equivox.cli.show import compared_run, console, progress_bars, shared_bars, show_scores
    from equivox.run.reproducing import run_all

    file, settings = asked.open()
    if tables is not None and file.paper is None:
        raise RequestError(f"`tables` needs a run file of a paper; {asked.name} has no field `paper`")
    if tables is not None:
        check_tables_folder(tables, "tables")
    warnings = [
        rules_warning(model, setting.file.annotators[0], setting.tasks)
        for setting in settings
        for model in setting.file.models
    ]
    told = iter(dict.fromkeys(filter(None, warnings)))
    workers, side_by_side = asked.places(file, settings)
    if workers.pooled:
        with shared_bars(quiet=quiet) as bars_of:
            finished = run_all(
                settings, output, lambda label: bars_of(label, next(told, "")),
                workers=workers, side_by_side=side_by_side,
            )  # fmt: skip
    else:
        finished = run_all(
            settings, output, lambda label: progress_bars(quiet=quiet, title=label, warning=next(told, "")),
            side_by_side=side_by_side,
        )  # fmt: skip
    failed = [run for run in finished if run.error is not None]
    code = EXIT_INCOMPLETE
    if len(failed) < len(finished):
        code = show_scores([compared_run(run.label, run.folder, run.scores) for run in finished if run.error is None])
    for run in failed:
        console().print(f"{run.label} was not run: {run.error}", style="red", markup=False)
    if tables is not None and file.paper is not None:
        _show_tables(file.paper, finished, tables)
    return EXIT_INCOMPLETE if failed else code


def _show_tables(paper: str, finished: Sequence[Finished], folder: Path) -> None:
    """Write the paper's tables from these runs and print them; runs that failed are named in the tables."""
    from equivox.cli.show import console
    from equivox.compare.published import TableRun, reproduced
    from equivox.report.published_tables import cell_tables, write_tables
    from equivox.report.table import print_tables

    runs = [
        TableRun(
            run.folder, run.spec.model, run.setting.name,
            {name: run.setting.names_of(name) for name in run.setting.file.annotators},
        )
        for run in finished
        if run.error is None
    ]  # fmt: skip
    print_tables(console(), cell_tables(reproduced(paper, runs)))
    written = write_tables(paper, runs, folder)
    console().print(f"\n{len(written)} files in {folder}", markup=False)


def demo(
    output: Annotated[Path, output_option("Where the runs go.")] = Path("runs/demo"), quiet: QuietOption = False
) -> int:
    """Run every benchmark on the embedded sample with models whose bias is known."""
    from equivox.cli.result_commands import report
    from equivox.run.run_files import folder_name, open_run_file

    code = _reproduce(AskedFile("demo"), output, quiet=quiet)
    folders = [output / folder_name(model) for model in open_run_file("demo").models]
    done = [folder for folder in folders if (folder / "scores.json").is_file()]
    if done:
        report(done, output / "report.html")
    return code
