"""The commands that make a run: run and vllm, which ask a model, and import.

Type annotations are evaluated here (no `from __future__ import annotations`): one factory makes both
commands that ask, and typer reads the options from its signature.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from equivox.cli.options import (
    QuietOption,
    RayAddressOption,
    TasksArgument,
    WorkersOption,
    columns_named,
    output_option,
    takes_settings,
)
from equivox.cli.output import EXIT_DONE, echo, show_tables
from equivox.core.errors import UsageError
from equivox.core.progress import Event, keeping_first
from equivox.core.task import Task
from equivox.report.progress_bars import progress_bars
from equivox.run.spec import RunSpec


def _engine_command(name: str, scheme: str, metavar: str, what: str, help: str) -> Callable[..., int]:
    """Return the command of one engine; `scheme` stands before the model that is typed, and `what` describes that."""

    @takes_settings()
    def command(
        model: Annotated[str, typer.Argument(metavar=metavar, help=what)],
        tasks: TasksArgument,
        output: Annotated[
            Path | None,
            output_option("Write the run here, or resume it; default: runs/MODEL-TASKS.", resumed=True),
        ] = None,
        workers: WorkersOption = 1,
        ray_address: RayAddressOption = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Check everything, count the requests, and write nothing.")
        ] = False,
        quiet: QuietOption = False,
        **settings: Any,
    ) -> int:
        from equivox.run.run_files import default_folder
        from equivox.tasks.registry import resolve_tasks

        named = f"{scheme}{model}"
        chosen = resolve_tasks(tasks)
        if settings["annotator"] is None:
            settings["annotator"] = _rules_if_they_can(named, chosen)
        settings |= {"workers": workers, "ray_address": ray_address}
        spec = RunSpec.typed(named, chosen, output or default_folder(named, tasks), **settings)
        return _show_dry_run(spec) if dry_run else _run(spec, quiet=quiet)

    command.__name__, command.__doc__ = name, help
    return command


run = _engine_command(
    "run", "", "MODEL", "Name a model: simulated:biased, endpoint:key=value,…, transformers:NAME, or a file.",
    "Send tasks to a model and score its answers. Repeat the command to resume.",
)  # fmt: skip
vllm = _engine_command(
    "vllm", "vllm:", "MODEL_ARGS", "Set model arguments, key=value,key=value, or name a YAML file.",
    "Send tasks to a model in vLLM on this machine and score its answers.",
)  # fmt: skip


def _run(spec: RunSpec, *, quiet: bool) -> int:
    """Run or resume `spec` and show its scores."""
    from equivox.annotate import annotator_name
    from equivox.cli.show import show_older, show_scores
    from equivox.engines import model_label
    from equivox.run.pipeline import execute

    warning = warnings_of(spec.model, spec.annotator, spec.tasks)
    first: list[Event] = []
    with progress_bars(quiet=quiet, warning=warning) as progress:
        scores = execute(spec, progress=keeping_first(progress, first))
    code = show_scores([(model_label(spec.model), spec.output, scores, annotator_name(spec.annotator))])
    show_older(spec.output, first)
    return code


def _show_dry_run(spec: RunSpec) -> int:
    """Check `spec` and show what it would ask; nothing is written."""
    from equivox.report.dry_run import run_table

    show_tables([run_table(spec)])
    return EXIT_DONE


def _rules_if_they_can(model: str, tasks: Sequence[Task]) -> str:
    """Return `rules`, the annotator when none is named; UsageError where they cannot read what `model` answers."""
    from equivox.annotate import RULES
    from equivox.annotate.rules import misread_by_rules
    from equivox.engines import engine_of, model_label

    engine_of(model)  # an unknown model is the first thing to say
    if misread_by_rules(model, RULES, tasks):
        raise UsageError(
            f"`annotator` is missing: a judge must read the answers of {model_label(model)}; name a model, such as "
            "`--annotator qwen3-8b` or `--annotator endpoint:model_name=…,base_url=…` (`rules` reads only simulated "
            "models)"
        )
    return RULES


def warnings_of(model: str, annotator: str, tasks: Sequence[Task]) -> str:
    """Return what to know before a run: that `rules` will read free text, that the model retires; empty for neither."""
    from equivox.annotate.rules import FOR_SIMULATED, misread_by_rules
    from equivox.engines import model_label, retirement

    misread = misread_by_rules(model, annotator, tasks)
    told = f"the answers of {model_label(model)} will be {FOR_SIMULATED}" if misread else ""
    return "; ".join(filter(None, (told, retirement(model))))


@takes_settings("limit", "sampling", "retry_failed", "redo_judge", "stop_after", "trust_remote_code")
def import_(
    responses: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Read responses, one per row: CSV, TSV, JSON(L), parquet or Excel."),
    ],
    tasks: TasksArgument,
    output: Annotated[Path, output_option("Write the run here, or resume it.", resumed=True)],
    model: Annotated[str | None, typer.Option(help="Name the model; default: the file's name.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="Map a column of the file, such as response=narrative; repeatable."),
    ] = None,
    quiet: QuietOption = False,
    **settings: Any,
) -> int:
    """Make a run from responses that another program collected, and score them."""
    from equivox.annotate import annotator_name
    from equivox.cli.show import show_scores
    from equivox.run.generating import IMPORTED
    from equivox.run.importing import import_responses
    from equivox.tasks.registry import resolve_tasks

    name = responses.stem if model is None else model
    spec = RunSpec.typed(name, resolve_tasks(tasks), output, **settings)
    with progress_bars(quiet=quiet) as progress:
        scores, told = import_responses(responses, spec, columns=columns_named(column or []), progress=progress)
    named = (f"{IMPORTED}:{spec.model}", spec.output, scores, annotator_name(spec.annotator))
    code = show_scores([named])
    for line in told:
        echo(line)
    return code
