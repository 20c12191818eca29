"""The commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli import data_commands, task_commands

app = typer.Typer(
    name="equivox",
    help="Measure what a model does differently when only the person changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(task_commands.app, name="tasks")
app.add_typer(data_commands.app, name="data")

TasksArgument = Annotated[
    str, typer.Argument(metavar="TASKS", help="Tasks, families or task files, separated by commas.")
]
AnnotatorOption = Annotated[str, typer.Option(help="Who reads the responses.")]
ResamplesOption = Annotated[int, typer.Option(min=99, help="Labellings drawn for each null.")]
MinCountOption = Annotated[
    int | None,
    typer.Option(min=1, help="Set aside values seen less often (VIBE's τ); by default 10, less below 1,000 responses."),
]
MinCoverageOption = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Share of usable responses, in every group, that a score needs."),
]
ScoringSeedOption = Annotated[int, typer.Option(help="Seed of the permutations and intervals.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Measure what a model does differently when only the person changes."""
    if version:
        import equivox

        typer.echo(f"equivox {equivox.__version__}")
        raise typer.Exit


@app.command()
def run(
    model: Annotated[str, typer.Argument(help="scheme:name, for example reference:planted?shift=0.2")],
    tasks: TasksArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the run goes; an unfinished one is resumed.")],
    data: Annotated[
        str | None, typer.Option(help="`sample`, or the folder that `equivox data build` wrote into.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Items per task, spread evenly over groups and speakers.")] = None,
    seed: Annotated[int, typer.Option(help="From which every request's own seed is derived.")] = 0,
    annotator: AnnotatorOption = "rules",
    min_count: MinCountOption = None,
    min_coverage: MinCoverageOption = 0.8,
    resamples: ResamplesOption = 10_000,
    scoring_seed: ScoringSeedOption = 0,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask again what failed before.")] = False,
    quiet: QuietOption = False,
) -> int:
    """Ask a model, read its answers and score them; given again, go on where it stopped."""
    from equivox.cli.show import Shown, progress_bars, show_scores
    from equivox.run import RunSpec, execute
    from equivox.scores import ScoringOptions

    spec = RunSpec(
        model=model,
        tasks=tasks,
        output=output,
        data=data,
        limit=limit,
        seed=seed,
        annotator=annotator,
        options=ScoringOptions(
            min_count=min_count, n_resamples=resamples, min_coverage=min_coverage, seed=scoring_seed
        ),
        retry_failed=retry_failed,
    )
    with progress_bars(quiet=quiet) as progress:
        scores = execute(spec, progress=progress)
    return show_scores([Shown(model, output, scores)])


@app.command()
def score(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    annotator: AnnotatorOption = "rules",
    min_count: MinCountOption = None,
    min_coverage: MinCoverageOption = 0.8,
    resamples: ResamplesOption = 10_000,
    scoring_seed: ScoringSeedOption = 0,
    by_attribute: Annotated[bool, typer.Option("--by-attribute", help="Show every attribute too.")] = False,
    quiet: QuietOption = False,
) -> int:
    """Recompute every number of a run from its stored responses and annotations, without an engine."""
    from equivox.cli.show import Shown, progress_bars, show_scores
    from equivox.manifest import read_manifest
    from equivox.run import rescore
    from equivox.scores import ScoringOptions

    options = ScoringOptions(min_count=min_count, n_resamples=resamples, min_coverage=min_coverage, seed=scoring_seed)
    with progress_bars(quiet=quiet) as progress:
        scores = rescore(run_folder, annotator=annotator, options=options, progress=progress)
    model = read_manifest(run_folder)["command"]["model"]
    return show_scores([Shown(model, run_folder, scores)], by_attribute=by_attribute)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the runs go.")] = Path("runs/demo"),
    quiet: QuietOption = False,
) -> int:
    """Run every benchmark on the embedded sample with models whose bias is known."""
    import re

    from equivox.cli.show import Shown, progress_bars, show_scores
    from equivox.configs import load_config
    from equivox.corpus import Corpus
    from equivox.run import RunSpec, execute

    config = load_config("runs/demo.yaml")
    corpora: dict[str, Corpus] = {}
    runs: list[Shown] = []
    for model in config["models"]:
        folder = output / re.sub(r"[^A-Za-z0-9.=]+", "-", model.partition(":")[2])
        spec = RunSpec(model=model, tasks=config["tasks"], output=folder, data=config["data"])
        with progress_bars(quiet=quiet, title=model) as progress:
            runs.append(Shown(model, folder, execute(spec, corpora=corpora, progress=progress)))
    return show_scores(runs)
