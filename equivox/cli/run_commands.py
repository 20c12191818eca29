"""Functions of the commands about runs; this module is imported at start and must not import anything heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equivox.core.scores import ScoringOptions
    from equivox.core.task import Task
    from equivox.engines.workers import Workers
    from equivox.run.pipeline import RunSpec
    from equivox.run.reproducing import Finished
    from equivox.run.run_files import RunFile, Setting


def run(spec: RunSpec, *, quiet: bool) -> int:
    """Run or resume `spec` and show its scores."""
    from equivox.cli.show import compared_run, progress_bars, show_scores
    from equivox.engines import model_label
    from equivox.run.pipeline import execute

    warning = _rules_warning(spec.model, spec.annotator, spec.tasks)
    with progress_bars(quiet=quiet, warning=warning) as progress:
        scores = execute(spec, progress=progress)
    return show_scores([compared_run(model_label(spec.model), spec.output, scores)])


def dry_run(spec: RunSpec) -> int:
    """Check `spec` and show what it would take; nothing is written."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.report.cost_tables import dry_run_table
    from equivox.report.table import print_tables
    from equivox.run.dry_run import dry_run as reckoned

    print_tables(console(), [dry_run_table(reckoned(spec))])
    return EXIT_DONE


def rules_if_they_can(model: str, tasks: Sequence[Task]) -> str:
    """Return `rules`, the annotator when none is named; RequestError where they cannot read what `model` answers."""
    from equivox.annotate import RULES
    from equivox.compare.runs import misread_by_rules
    from equivox.engines import current_name, engine_of, model_label

    engine_of(model)  # a model that is none is told first
    if misread_by_rules(current_name(model), RULES, tasks):
        raise RequestError(
            f"`annotator` is missing: who reads the free answers of {model_label(model)}? Name a model, such as "
            "`--annotator qwen3-8b` or `--annotator endpoint:model_name=…,base_url=…`; `--annotator rules` finds the "
            "words of simulated models alone"
        )
    return RULES


def _rules_warning(model: str, annotator: str, tasks: Sequence[Task]) -> str:
    """Return a warning if `rules` will read free text of a model that is not simulated, else an empty text."""
    from equivox.annotate.rules import FOR_SIMULATED
    from equivox.compare.runs import misread_by_rules
    from equivox.engines import current_name, model_label

    misread = misread_by_rules(current_name(model), annotator, tasks)
    return f"the answers of {model_label(model)} will be {FOR_SIMULATED}" if misread else ""


def score(
    folder: Path,
    annotator: str | None,
    options: ScoringOptions,
    *,
    use: str | None = None,
    by_attribute: bool,
    quiet: bool,
) -> int:
    """Recompute the scores of a run and show them; `use` names the annotator that becomes the run's own."""
    from equivox.cli.show import compared_run, progress_bars, show_scores
    from equivox.engines import model_label
    from equivox.run.manifest import read_manifest
    from equivox.run.pipeline import rescore, use_annotator

    if use is not None and annotator is not None:
        raise RequestError("`--use` scores by that annotator already; leave out `--annotator`")
    with progress_bars(quiet=quiet) as progress:
        if use is not None:
            scores = use_annotator(folder, use, options, progress=progress)
        else:
            scores = rescore(folder, annotator=annotator, options=options, progress=progress)
    model = model_label(read_manifest(folder)["command"]["model"])
    return show_scores([compared_run(model, folder, scores)], by_attribute=by_attribute)


def annotate(folder: Path, annotator: str, workers: Workers, *, retry_failed: bool, quiet: bool) -> int:
    """Annotate a run with another annotator, show its scores and the agreement of all annotators."""
    from equivox.cli.show import compared_run, console, progress_bars, show_agreement, show_scores
    from equivox.engines import model_label
    from equivox.run.annotating import annotators_of
    from equivox.run.manifest import read_manifest
    from equivox.run.pipeline import reread, run_tasks

    with progress_bars(quiet=quiet) as progress:
        scores = reread(folder, annotator, retry_failed=retry_failed, workers=workers, progress=progress)
    code = show_scores([compared_run(model_label(read_manifest(folder)["command"]["model"]), folder, scores)])
    show_agreement(folder, run_tasks(folder))
    own = read_manifest(folder)["command"]["annotator"]
    others = [name for name in annotators_of(folder) if name != own]
    if others:
        out = console()
        out.print(
            f"Tables and reports show the scores by {own}, the run's own annotator; to change that, give", end=" "
        )
        out.print(f"`equivox score {folder} --use {others[-1]}`", markup=False)
    return code


def panel(folder: Path, annotators: str, options: ScoringOptions) -> int:
    """Combine annotators by majority and show the panel's scores beside those of its members."""
    from equivox.cli.show import compared_run, console, show_scores
    from equivox.engines import model_label
    from equivox.report.audit_tables import panel_table
    from equivox.report.table import print_tables
    from equivox.run.manifest import read_manifest
    from equivox.run.panel import score_panel
    from equivox.run.pipeline import run_tasks

    members = [name.strip() for name in annotators.split(",") if name.strip()]
    scores, compared = score_panel(folder, run_tasks(folder), members, options)
    code = show_scores([compared_run(model_label(read_manifest(folder)["command"]["model"]), folder, scores)])
    print_tables(console(), [panel_table(members, compared)])
    return code


def compare(folders: list[Path], csv: Path | None, latex: Path | None, *, top: int, resamples: int) -> int:
    """Compare and test runs and show the tables; with `csv` or `latex`, also write them to files."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console, show_opening
    from equivox.compare.impact import impact_records, impacts
    from equivox.compare.ranking import judge, judged_records
    from equivox.compare.runs import comparison_records, open_comparison
    from equivox.core.files import write_text
    from equivox.report.comparison_tables import comparison_tables, latex_tables, overlap_table, verdict_tables
    from equivox.report.impact_files import side_by_side_tables
    from equivox.report.opening import opening_of
    from equivox.report.table import as_csv, as_latex, print_tables

    for option, folder in (("csv", csv), ("latex", latex)):
        if folder is not None:
            _check_tables_folder(folder, option)
    comparison = open_comparison(folders)
    favourable = impacts(comparison.runs)
    named = [(run.model, run.folder) for run in comparison.runs]
    asked = {m.name: m for m in comparison.metrics.values() if m.overlap is not None}
    overlaps = {m.overlap_help: m.overlap(named) for m in asked.values() if m.overlap is not None}
    judged = judge(comparison, n_resamples=resamples)
    impact_shown = side_by_side_tables(favourable)
    if csv is not None:
        shared = {f"{what}_overlap": [vars(entry) for entry in found] for what, found in overlaps.items()}
        ratios = {"impact": [row for found in favourable.found for row in impact_records(found)]}
        for name, records in {**comparison_records(comparison), **judged_records(judged), **shared, **ratios}.items():
            if records:
                write_text(csv / f"{name}.csv", as_csv(records))
    if latex is not None:
        impact_latex = {"impact": as_latex(impact_shown)} if impact_shown else {}
        for name, text in {**latex_tables(comparison, judged), **impact_latex}.items():
            write_text(latex / f"{name}.tex", text)
    show_opening(console(), opening_of(comparison, judged))
    shown = [*comparison_tables(comparison, attributes=top), *verdict_tables(comparison, judged)]
    for tables in [*shown, impact_shown, [overlap_table(what, found) for what, found in overlaps.items() if found]]:
        print_tables(console(), tables)
    return EXIT_DONE


def _check_tables_folder(folder: Path, option: str) -> None:
    """Raise RequestError, naming the option, for a folder that no table can be written into."""
    from equivox.core.files import refuse_unusable

    refuse_unusable(folder, option)
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"`{option}` {folder} is a file; name the folder that the tables go into")


def report(folders: list[Path], output: Path, *, examples: int, data: str | None, impact: bool = False) -> int:
    """Write the report of runs; with `impact`, the page of impact ratios of one run."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.core.files import refuse_unusable_file, write_text
    from equivox.report.page import build_report

    refuse_unusable_file(output, "output")
    if impact:
        from equivox.cli import impact_command

        if len(folders) > 1 or examples:
            raise RequestError("`--impact` writes the impact ratios of one run, without examples; name one run alone")
        return impact_command.run_impact(impact_command.Wish(run=folders[0], html=output))
    write_text(output, build_report(folders, examples=examples, data=data))
    console().print(f"Report: {output.resolve()} ({output.stat().st_size / 1e6:.1f} MB)", markup=False)
    return EXIT_DONE


def leaderboard(folder: Path, output: Path) -> int:
    """Write the leaderboard of all runs below a folder."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.core.files import refuse_unusable, write_text
    from equivox.report.board import board_html, board_json, board_rows

    refuse_unusable(output, "output")
    rows = board_rows(folder)
    write_text(output / "leaderboard.json", board_json(rows))
    write_text(output / "index.html", board_html(rows))
    runs = len({row.run for row in rows})
    console().print(f"{len(rows)} scores of {runs} runs: {(output / 'index.html').resolve()}", markup=False)
    return EXIT_DONE


def plot(folder: Path, name: str, output: Path, *, beside: list[Path]) -> int:
    """Draw one figure of a run, or of several runs."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.figure_files import figure_format, write_figure
    from equivox.core.files import refuse_unusable
    from equivox.report.figures import figure_of

    refuse_unusable(output, "output")
    figure_format(output, "output")
    write_figure(output, figure_of(folder, name, beside=beside))
    return EXIT_DONE


def status(folder: Path) -> int:
    """Show the progress of a run; return 1 while something is missing."""
    from equivox.cli.show import show_status
    from equivox.run.pipeline import run_tasks

    return show_status(folder, run_tasks(folder))


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

    def open(self, *, or_tasks: bool = False) -> tuple[RunFile, list[Setting]]:
        """Return the run file and its settings; with `or_tasks`, the name may be that of tasks, for the `models`."""
        from equivox.run.run_files import is_run_file, open_run_file, run_file_of, settings_of, split_models
        from equivox.tasks.registry import resolve_tasks

        named = [name.strip() for name in (self.annotators or "").split(",") if name.strip()]
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
        return file, settings_of(file, resolve_tasks, models=models, tasks=self.tasks)

    def places(self, file: RunFile, settings: Sequence[Setting]) -> tuple[Workers, int]:
        """Return the workers and how many runs stand side by side; those of the file are at most what fits."""
        from equivox.engines.workers import Workers
        from equivox.run.reproducing import most_side_by_side

        workers = Workers(self.workers or file.workers, self.ray_address)
        if self.side_by_side is not None:
            return workers, self.side_by_side
        return workers, min(file.side_by_side, most_side_by_side(settings, workers))


def plan(asked: AskedFile, output: Path) -> int:
    """Show the estimated cost of a run file."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.report.cost_tables import estimate_table
    from equivox.report.table import print_tables
    from equivox.run.cost import estimate

    file, settings = asked.open(or_tasks=True)
    workers, _ = asked.places(file, settings)
    print_tables(console(), [estimate_table(estimate(settings, output, workers=workers.total))])
    return EXIT_DONE


def check(asked: AskedFile, output: Path) -> int:
    """Print what is missing for a run file, in one list; return 1 if anything is."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.show import console
    from equivox.report.audit_tables import missing_table
    from equivox.report.table import print_tables
    from equivox.run.readiness import missing

    _, settings = asked.open()
    found = missing(settings, output)
    if not found:
        console().print("Nothing is missing.")
        return EXIT_DONE
    print_tables(console(), [missing_table(found)])
    return EXIT_INCOMPLETE


def reproduce(asked: AskedFile, output: Path, *, tables: Path | None = None, quiet: bool) -> int:
    """Run every model of a run file and compare them; return 1 if one of them could not be run."""
    from equivox.cli import EXIT_INCOMPLETE
    from equivox.cli.show import compared_run, console, progress_bars, shared_bars, show_scores
    from equivox.run.reproducing import run_all

    file, settings = asked.open()
    if tables is not None and file.paper is None:
        raise RequestError(f"`tables` needs a run file of a paper; {asked.name} has no field `paper`")
    if tables is not None:
        _check_tables_folder(tables, "tables")
    warnings = [
        _rules_warning(model, setting.file.annotators[0], setting.tasks)
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


def demo(output: Path, *, quiet: bool) -> int:
    """Run the packaged demonstration, compare all its models, and write their report."""
    from equivox.run.run_files import folder_name, open_run_file

    code = reproduce(AskedFile("demo"), output, quiet=quiet)
    folders = [output / folder_name(model) for model in open_run_file("demo").models]
    done = [folder for folder in folders if (folder / "scores.json").is_file()]
    if done:
        report(done, output / "report.html", examples=0, data=None)
    return code
