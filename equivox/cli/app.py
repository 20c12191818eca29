"""The commands.

Type annotations are evaluated here (no `from __future__ import annotations`): one factory makes the command of every
engine, and typer reads the options from its signature.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli import audit_commands, calibrate_command, data_commands, metric_commands, run_commands, task_commands
from equivox.cli.output import echo
from equivox.cli.scoring import with_scoring_options
from equivox.core.errors import RequestError
from equivox.core.outage import STOP_AFTER
from equivox.core.scores import DEFAULT_OPTIONS, FEWEST_RESAMPLES, MOST_RESAMPLES, ScoringOptions

app = typer.Typer(
    name="equivox",
    help="Measure what a model does differently when only the person changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
MEASURE, JUDGE, PREPARE, ANNOTATE, TABLES = (
    "Measure a model",
    "Read, compare, check and publish runs",
    "Before a run",
    "Responses, annotators and scores",
    "Further tables and figures",
)
"""The headings of `equivox --help`; the first two hold what most users need."""

TasksArgument = Annotated[
    str, typer.Argument(metavar="TASKS", help="Tasks, families or task files, separated by commas.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
RetryFailedOption = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again what failed before: the model, and the annotator.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
WorkersOption = Annotated[
    int,
    typer.Option(
        min=1, help="How many engines answer at a time, each on GPUs of its own; several need `equivox[ray]`."
    ),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The Ray cluster that the workers run on; this machine by default."),
]
ByAttributeOption = Annotated[bool, typer.Option("--by-attribute", help="Show every attribute too.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Measure what a model does differently when only the person changes."""
    if version:
        from equivox.core.version import __version__

        echo(f"equivox {__version__}")
        raise typer.Exit


def _engine_command(scheme: str | None, metavar: str, what: str) -> Callable[..., int]:
    """Return the command that runs tasks on one engine; all engines have the same options."""

    @with_scoring_options
    def command(
        model: Annotated[str, typer.Argument(metavar=metavar, help=what)],
        tasks: TasksArgument,
        output: Annotated[
            Path | None,
            typer.Option("--output", "-o", help="Folder of the run, which is resumed if it exists; runs/MODEL-TASKS."),
        ] = None,
        data: Annotated[
            str | None,
            typer.Option(
                "--data", "--data-dir", help="`sample`, the folder of built corpora, or one build, to ask about it."
            ),
        ] = None,
        limit: Annotated[int | None, typer.Option(help="Samples per task, spread over groups and speakers.")] = None,
        seed: Annotated[int, typer.Option(help="The seed from which the seeds of all requests are derived.")] = 0,
        group: Annotated[
            str | None, typer.Option(help="Compare another column of the corpus, or several: gender×accent.")
        ] = None,
        conditions: Annotated[str, typer.Option(help="declared, text_only, silence, shuffled, or all.")] = "declared",
        sampling: Annotated[
            str, typer.Option(help="as-declared by each task, or greedy: one answer, always the likeliest token.")
        ] = "as-declared",
        annotator: Annotated[
            str | None,
            typer.Option(
                help="Annotator of the responses: a name, a YAML file, or a model; `rules` for simulated models."
            ),
        ] = None,
        options: ScoringOptions = DEFAULT_OPTIONS,
        retry_failed: RetryFailedOption = False,
        stop_after: Annotated[
            int,
            typer.Option(min=0, help="Stop after so many fatal failures in a row (key refused, no quota); 0: never."),
        ] = STOP_AFTER,
        workers: WorkersOption = 1,
        ray_address: RayAddressOption = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Check everything, write nothing, and print what the run would take.")
        ] = False,
        quiet: QuietOption = False,
    ) -> int:
        from equivox.core.variants import parse_conditions, parse_group
        from equivox.engines.workers import Workers
        from equivox.run.pipeline import RunSpec
        from equivox.run.run_files import default_folder
        from equivox.tasks.registry import resolve_tasks

        named = model if scheme is None else f"{scheme}:{model}"
        chosen = resolve_tasks(tasks)
        spec = RunSpec(
            model=named,
            tasks=chosen,
            output=output or default_folder(named, tasks),
            data=data,
            limit=limit,
            seed=seed,
            group=None if group is None else parse_group(group),
            conditions=parse_conditions(conditions),
            sampling=sampling,
            annotator=run_commands.rules_if_they_can(named, chosen) if annotator is None else annotator,
            options=options,
            retry_failed=retry_failed,
            stop_after=stop_after,
            workers=Workers(workers, ray_address),
        )
        return run_commands.dry_run(spec) if dry_run else run_commands.run(spec, quiet=quiet)

    return command


_MODEL_ARGS = "key=value,key=value as `lighteval vllm` takes them, or a YAML file."
for _name, _scheme, _metavar, _what, _help in (
    ("run", None, "MODEL", "scheme:rest, for example simulated:planted?shift=0.2", "any model, named scheme:rest"),
    ("vllm", "vllm", "MODEL_ARGS", _MODEL_ARGS, "a model on this machine's vLLM"),
    ("endpoint", "endpoint", "MODEL_ARGS", _MODEL_ARGS, "an OpenAI-compatible server"),
    ("transformers", "transformers", "MODEL_ARGS", _MODEL_ARGS, "a model on this machine's transformers (slow)"),
):
    _does = f"Run tasks on {_help}, annotate and score the answers; repeat the command to resume."
    app.command(_name, help=_does, rich_help_panel=MEASURE)(_engine_command(_scheme, _metavar, _what))


@app.command(rich_help_panel=JUDGE)
def export(
    run: RunArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="The format: inspect, every-eval-ever.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the files go; export/RUN-FORMAT by default.")
    ] = None,
    media: Annotated[bool, typer.Option("--media", help="Include recordings and images, if the format can.")] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", "--data-dir", help="Where the corpora are now, for formats with prompts."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Include prompts and responses, for formats that have hashes otherwise.")
    ] = False,
) -> int:
    """Write a run in the format of another project, without credentials and local paths."""
    from equivox.cli import export_command

    return export_command.export(run, to, out, data, media=media, texts=texts)


@app.command("import", rich_help_panel=ANNOTATE)
@with_scoring_options
def import_(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses made elsewhere, a row each: CSV, TSV, JSON(L) or parquet; or logs of inspect_ai.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the run goes; a started one is resumed.")],
    tasks: Annotated[
        str,
        typer.Argument(
            metavar="[TASKS]", help="Tasks, families or task files, separated by commas; a log says it itself."
        ),
    ] = "",
    model: Annotated[str | None, typer.Option(help="What the model is called; the file's name by default.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="Which column of the file is ours: response=narrative; repeatable."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Which columns tell what sample a row is about, separated by commas; sample_id, or those of the task.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "--data-dir", help="The corpus, as for `run`; not needed where the rows describe their samples."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the requests that were answered.")] = 0,
    group: Annotated[
        str | None, typer.Option(help="Compare another column of the samples, or several: gender×accent.")
    ] = None,
    conditions: Annotated[
        str, typer.Option(help="In which condition the responses were made: declared, text_only, silence.")
    ] = "declared",
    annotator: Annotated[
        str | None,
        typer.Option(help="Who annotates the responses: a name or a YAML file; `rules`, or the log's annotator."),
    ] = None,
    options: ScoringOptions = DEFAULT_OPTIONS,
    by_attribute: ByAttributeOption = False,
    quiet: QuietOption = False,
) -> int:
    """Make a run of responses that were made elsewhere, annotate and score them as if the model had been asked here."""
    from equivox.cli import import_command

    if import_command.is_log(responses):
        given = {"--column": column, "--match": match, "--group": group, "--seed": seed}
        given["--conditions"] = conditions.replace("declared", "")
        wish = import_command.LogWish(responses, output, tasks, model, data, annotator, options)
        without_use = [name for name, value in given.items() if value]
        return import_command.import_log(wish, without_use, by_attribute=by_attribute, quiet=quiet)
    if not tasks:
        raise RequestError(f"TASKS is missing: which tasks does {responses.name} answer? For example vibe_gender")
    from equivox.core.variants import parse_conditions, parse_group
    from equivox.run.pipeline import RunSpec
    from equivox.tasks.registry import resolve_tasks

    spec = RunSpec(
        model=responses.stem if model is None else model,
        tasks=resolve_tasks(tasks),
        output=output,
        data=data,
        seed=seed,
        group=None if group is None else parse_group(group),
        conditions=parse_conditions(conditions),
        annotator=annotator or "rules",
        options=options,
    )
    return import_command.import_file(responses, spec, column or [], match, by_attribute=by_attribute, quiet=quiet)


@app.command(rich_help_panel=ANNOTATE)
@with_scoring_options
def score(
    run: RunArgument,
    annotator: Annotated[str | None, typer.Option(help="Annotator to score; the run's annotator by default.")] = None,
    use: Annotated[
        str | None,
        typer.Option(metavar="ANNOTATOR", help="Make this annotator the run's own, whose scores stand in every table."),
    ] = None,
    options: ScoringOptions = DEFAULT_OPTIONS,
    by_attribute: ByAttributeOption = False,
    quiet: QuietOption = False,
) -> int:
    """Recompute every number of a run from its stored responses and annotations, without an engine."""
    return run_commands.score(run, annotator, options, use=use, by_attribute=by_attribute, quiet=quiet)


@app.command(rich_help_panel=ANNOTATE)
def annotate(
    run: RunArgument,
    annotator: Annotated[str, typer.Option(help="Annotator of the responses: a name or a YAML file.")],
    retry_failed: RetryFailedOption = False,
    workers: WorkersOption = 1,
    ray_address: RayAddressOption = None,
    quiet: QuietOption = False,
) -> int:
    """Annotate a run with another annotator, score its annotations, and print the agreement of all annotators."""
    from equivox.engines.workers import Workers

    return run_commands.annotate(run, annotator, Workers(workers, ray_address), retry_failed=retry_failed, quiet=quiet)


@app.command(rich_help_panel=ANNOTATE)
@with_scoring_options
def panel(
    run: RunArgument,
    annotators: Annotated[str, typer.Argument(metavar="A,B,C", help="Annotators of the run, separated by commas.")],
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> int:
    """Combine three or more annotators of a run by majority, score it, and show what their disagreement changes."""
    return run_commands.panel(run, annotators, options)


@app.command(rich_help_panel=MEASURE)
def status(run: RunArgument) -> int:
    """Print which requests of a run are done, missing and failed."""
    return run_commands.status(run)


@app.command(rich_help_panel=JUDGE)
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, one model each.")],
    csv: Annotated[Path | None, typer.Option(help="Write every number to CSV files in this folder too.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write tables for a paper to .tex files in this folder.")] = None,
    top: Annotated[int, typer.Option(min=0, help="How many attributes of each model to show value by value.")] = 3,
    resamples: Annotated[
        int,
        typer.Option(min=FEWEST_RESAMPLES, max=MOST_RESAMPLES, help="Swaps drawn for each test between two models."),
    ] = 10_000,
) -> int:
    """Compare runs in the tables of the papers, test models pairwise, and rank them with rank intervals."""
    return run_commands.compare(runs, csv, latex, top=top, resamples=resamples)


@app.command(rich_help_panel=JUDGE)
def gate(
    run: RunArgument,
    baseline: Annotated[Path | None, typer.Option(help="The run that the new one is held against.")] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M", help="How much further from no bias the new run may be; NAME=M for one metric; repeatable."
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="N", help="The largest distance from no bias; NAME=N for one metric."),
    ] = None,
    overall: Annotated[bool, typer.Option("--overall", help="Check only the mean over a family's tasks.")] = False,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that must be used in both runs.")
    ] = 0.95,
    inconclusive: Annotated[
        str, typer.Option(help="What a check that cannot be decided is: inconclusive (exit 4), pass or fail.")
    ] = "inconclusive",
    junit: Annotated[Path | None, typer.Option(help="Write the checks as JUnit's XML to this file too.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the checks as JSON to this file too.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Print annotations for GitHub's workflows too.")] = False,
) -> int:
    """Check that a run is not worse than a baseline; exit 0: it is not, 3: it is, 4: undecided, 1: not comparable."""
    from equivox.cli import gate_command

    return gate_command.run_gate(
        gate_command.Wish(
            new=run,
            baseline=baseline,
            margin=margin or [],
            most=most or [],
            overall=overall,
            min_coverage=min_coverage,
            inconclusive=inconclusive,
            junit=junit,
            json=json,
            github=github,
        )
    )


@app.command(rich_help_panel=JUDGE)
def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, or hf://datasets/OWNER/NAME on the Hub.")
    ],
    data: Annotated[
        str | None,
        typer.Option("--data", "--data-dir", help="Make the requests again from the corpus, as for `run`."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything that was found as JSON to this file too.")] = None,
    quiet: QuietOption = False,
) -> int:
    """Verify that a run holds what it says: hashes, requests, and every number recomputed; it is not written."""
    from equivox.cli import verify_command

    return verify_command.verify(run, data, json, quiet=quiet)


@app.command(rich_help_panel=TABLES)
def impact(
    run: RunArgument,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A×B", help="Columns that the run keeps, each alone and crossed; what each task compares."
        ),
    ] = None,
    favourable: Annotated[
        list[str] | None,
        typer.Option(metavar="ATTRIBUTE=VALUE", help="A favourable value in place of the declared ones; repeatable."),
    ] = None,
    annotator: Annotated[str | None, typer.Option(help="Another annotator of the run.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every number to this CSV file too.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the tables as one HTML page to this file too.")] = None,
) -> int:
    """Show the share of favourable answers by group and the impact ratios; this is not a legal audit."""
    from equivox.cli import impact_command

    return impact_command.run_impact(
        impact_command.Wish(run=run, by=by, favourable=favourable or [], annotator=annotator, csv=csv, html=html)
    )


@app.command(rich_help_panel=JUDGE)
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; the first two are compared.")],
    data: Annotated[
        str | None, typer.Option("--data", "--data-dir", help="Where recordings or images are now.")
    ] = None,
    static: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the page as a folder for any web server, and end.")
    ] = None,
    media: Annotated[
        str | None,
        typer.Option(metavar="N", help="With --static: recordings of each task and group (20), all, or none."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than this machine's show it to others.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    quiet: QuietOption = False,
) -> int:
    """Show answers in a browser: side by side by group, unreadable ones, two runs, and a run that is under way."""
    from equivox.cli import view_command

    return view_command.view(
        view_command.Wish(
            runs=runs, data=data, static=static, media=media, host=host, port=port, browser=browser, quiet=quiet
        )
    )


@app.command(rich_help_panel=JUDGE)
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    examples: Annotated[
        int, typer.Option(min=0, help="Responses to show of each model, task and group; none by default.")
    ] = 0,
    data: Annotated[
        str | None, typer.Option("--data", "--data-dir", help="Where recordings or images are now.")
    ] = None,
    impact: Annotated[
        bool,
        typer.Option("--impact", help="Write the impact ratios of one run instead, laid out as Local Law 144 asks."),
    ] = False,
) -> int:
    """Write one HTML file with all scores, figures and, as an option, examples; it needs no network."""
    return run_commands.report(runs, output, examples=examples, data=data, impact=impact)


@app.command(rich_help_panel=TABLES)
def leaderboard(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="A folder with runs in it, at any depth.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where index.html and leaderboard.json go.")] = Path(
        "leaderboard"
    ),
) -> int:
    """Write a leaderboard of all runs below a folder as one sortable page and as JSON."""
    return run_commands.leaderboard(runs, output)


@app.command(rich_help_panel=TABLES)
def plot(
    run: RunArgument,
    figure: Annotated[
        str,
        typer.Argument(
            metavar="FIGURE",
            help="forest:FAMILY, shares:TASK:ATTRIBUTE, heat:TASK, metrics:FAMILY, speakers:TASK; of several runs "
            "ranks:FAMILY or correlations:DIMENSION.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="A file that ends in .svg, .png or .pdf.")],
    beside: Annotated[
        list[Path] | None, typer.Option(metavar="RUN", help="Another run, for a figure of several.")
    ] = None,
) -> int:
    """Draw one figure of one or several runs, in print quality."""
    return run_commands.plot(run, figure, output, beside=beside or [])


@app.command(rich_help_panel=JUDGE)
def submit(
    run: RunArgument,
    model_repo: Annotated[str, typer.Option("--model-repo", help="The model's repository on the Hub, owner/name.")],
    benchmark: Annotated[
        str, typer.Option(help="The data set's repository; {corpus} stands for the corpus: org/equivox-{corpus}.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the files go.")] = None,
    revision: Annotated[str | None, typer.Option(help="The commit of the data set's repository.")] = None,
    source_url: Annotated[
        str | None, typer.Option(help="Where the responses can be seen, as `equivox data push RUN` puts them.")
    ] = None,
    mark: Annotated[
        list[str] | None, typer.Option(help="Submit all the same, marked: undefined, low-coverage, modified-data.")
    ] = None,
    min_coverage: Annotated[
        float, typer.Option(help="Share of usable responses that every group needs, 0.8 or more.")
    ] = 0.95,
    data: Annotated[
        str | None, typer.Option("--data", "--data-dir", help="Where the run's corpus is now, if it was moved.")
    ] = None,
    details: Annotated[
        bool, typer.Option(help="Write each request in lighteval's layout, too; that takes the run's corpus.")
    ] = True,
    send: Annotated[
        bool, typer.Option("--push", help="Open a pull request; without it, the files are written here only.")
    ] = False,
) -> int:
    """Write a run's scores for the Hub's leaderboards; with --push, open a pull request on the model."""
    from equivox.cli import hub_commands
    from equivox.integrations.hub.submission import Wish

    return hub_commands.submit(
        Wish(
            run=run,
            model_repo=model_repo,
            benchmark=benchmark,
            output=output or Path("hub") / f"results-{model_repo.replace('/', '--')}",
            revision=revision,
            source_url=source_url,
            marks=frozenset(mark or ()),
            min_coverage=min_coverage,
            data=data,
            details=details,
        ),
        send=send,
    )


@app.command(rich_help_panel=TABLES)
def cohort(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, one model each.")],
    published: Annotated[
        str | None, typer.Option("--with", help="Also a published cohort, such as published-llama-3.1-8b.")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="The published models alone are the cohort; their scores stay as printed.")
    ] = False,
    annotator: Annotated[str | None, typer.Option(help="Whose scores count; the run's annotator by default.")] = None,
    family: Annotated[str | None, typer.Option(help="The family, if a run has several.")] = None,
) -> int:
    """Print the total score of every run, relative to all of them and to published models."""
    from equivox.cli import cohort_command

    return cohort_command.cohort(runs, cohort_command.Wish(published, fixed, annotator, family))


@app.command(rich_help_panel=PREPARE)
def power(
    task: Annotated[
        str | None, typer.Option(help="The task whose design is used; in a file, voices.yaml:story.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Count the clusters there; published numbers by default.")] = None,
    shift: Annotated[
        float | None, typer.Option(help="Instead, estimate the clusters that detect this shift, in percent.")
    ] = None,
    clusters: Annotated[int | None, typer.Option(min=2, help="Clusters (speakers), instead of the task's.")] = None,
    responses: Annotated[int | None, typer.Option(min=1, help="Responses per cluster.")] = None,
    groups: Annotated[int | None, typer.Option(min=2, help="Groups.")] = None,
    values: Annotated[int | None, typer.Option(min=2, help="Distinct values of an attribute.")] = None,
    correlation: Annotated[float, typer.Option(help="Correlation within a cluster beyond its group.")] = 0.02,
    level: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    power: Annotated[float, typer.Option(help="Share of experiments that should find the shift.")] = 0.8,
    simulations: Annotated[int, typer.Option(min=200, help="Experiments simulated per answer.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
) -> int:
    """Estimate the shift that a design can detect, or the number of speakers that a shift needs."""
    from equivox.cli import power_command

    return power_command.power(
        power_command.Wish(
            task=task,
            data=data,
            shift=shift,
            clusters=clusters,
            responses=responses,
            groups=groups,
            values=values,
            correlation=correlation,
            level=level,
            power=power,
            simulations=simulations,
            seed=seed,
        )
    )


@app.command(rich_help_panel=PREPARE)
def calibrate(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE",
            help="vllm, transformers or endpoint; model arguments follow a colon: vllm:dtype=bfloat16.",
        ),
    ] = "vllm",
    task: Annotated[str, typer.Option(help="The task that the models are taught.")] = "vibe_gender:candidate",
    shift: Annotated[str, typer.Option(help="Planted biases in percent, separated by commas.")] = "0,20,60",
    seed: Annotated[int, typer.Option(min=0, help="The seed of the training and of the requests.")] = 0,
    limit: Annotated[int | None, typer.Option(min=4, help="Samples that are asked about; all by default.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the runs go, which are resumed; runs/calibration/ENGINE-TASK-SEED."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where transformers runs the models: cuda, cpu, mps.")] = None,
    annotator: Annotated[str, typer.Option(help="The annotator to be proved with the engine.")] = "rules",
    conditions: Annotated[str, typer.Option(help="declared, text_only, silence, shuffled, or all.")] = "all",
    workers: WorkersOption = 1,
    ray_address: RayAddressOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything that was found as JSON.")] = False,
    quiet: QuietOption = False,
) -> int:
    """Prove an installation: run tiny models with a known bias through all of it; exit 0: passes, 1: fails."""
    return calibrate_command.calibrate(
        calibrate_command.Wish(
            engine=engine,
            task=task,
            shift=shift,
            seed=seed,
            limit=limit,
            output=output,
            device=device,
            annotator=annotator,
            conditions=conditions,
            workers=workers,
            ray_address=ray_address,
            json=json,
            quiet=quiet,
        )
    )


RunFileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A packaged run file (vibe) or a YAML file.")]
FileModelsOption = Annotated[
    str | None, typer.Option("--models", help="Run these instead of the file's models, separated by commas.")
]
FileWorkersOption = Annotated[
    int | None, typer.Option(min=1, help="How many engines answer at a time; what the file says, or 1, by default.")
]
FileTasksOption = Annotated[str | None, typer.Option("--tasks", help="Only these of the file's tasks or families.")]


def _runs_of(file: str) -> Path:
    """Return the folder of a run file's runs if none is named."""
    return Path("runs") / Path(file).stem


@app.command(rich_help_panel=PREPARE)
def plan(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A packaged run file (vibe) or a YAML file; or tasks or a task file, with --models."
        ),
    ],
    data: Annotated[
        str | None, typer.Option("--data", "--data-dir", help="Count the samples there; published numbers by default.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Samples per task.")] = None,
    models: FileModelsOption = None,
    tasks: FileTasksOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Take speeds from the runs in this folder; runs/FILE by default."),
    ] = None,
    workers: FileWorkersOption = None,
) -> int:
    """Estimate the cost of a run file before it is run: responses, annotator calls, GPU-hours, prices."""
    asked = run_commands.AskedFile(file, data, limit, models, tasks, workers=workers)
    return run_commands.plan(asked, output or _runs_of(file))


@app.command(rich_help_panel=MEASURE)
def reproduce(
    file: RunFileArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the runs go, a folder per model; runs/FILE by default.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", "--data-dir", help="`sample`, or the folder that `equivox data build` wrote into."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Samples per task.")] = None,
    models: FileModelsOption = None,
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
    quiet: QuietOption = False,
) -> int:
    """Run every model of a run file in all its settings; repeat the command to resume."""
    asked = run_commands.AskedFile(
        file, data, limit, models, tasks, annotator, workers=workers, ray_address=ray_address, side_by_side=side_by_side
    )
    output = output or _runs_of(file)
    if check:
        return run_commands.check(asked, output)
    return run_commands.reproduce(asked, output, tables=tables, quiet=quiet)


@app.command(rich_help_panel=PREPARE)
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the runs go.")] = Path("runs/demo"),
    quiet: QuietOption = False,
) -> int:
    """Run every benchmark on the embedded sample with models whose bias is known."""
    return run_commands.demo(output, quiet=quiet)


HEADINGS = (MEASURE, JUDGE, PREPARE, ANNOTATE, TABLES)
app.registered_commands.sort(key=lambda command: HEADINGS.index(str(command.rich_help_panel)))
app.add_typer(audit_commands.app, name="audit", rich_help_panel=JUDGE)
app.add_typer(task_commands.app, name="tasks", rich_help_panel=PREPARE)
app.add_typer(data_commands.app, name="data", rich_help_panel=PREPARE)
app.add_typer(metric_commands.app, name="metric", rich_help_panel=TABLES)
