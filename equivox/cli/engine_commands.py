"""The commands that ask a model: run, vllm, endpoint, transformers.

Type annotations are evaluated here (no `from __future__ import annotations`): one factory makes the command of every
engine, and typer reads the options from its signature.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import (
    QuietOption,
    RayAddressOption,
    RetryFailedOption,
    TasksArgument,
    TrustOption,
    WorkersOption,
    data_option,
    output_option,
)
from equivox.cli.scoring import with_scoring_options
from equivox.core.errors import RequestError
from equivox.core.outage import STOP_AFTER
from equivox.core.scores import DEFAULT_OPTIONS, ScoringOptions

if TYPE_CHECKING:
    from equivox.core.task import Task
    from equivox.run.pipeline import RunSpec


def engine_command(scheme: str | None, metavar: str, what: str) -> Callable[..., int]:
    """Return the command that runs tasks on one engine; all engines have the same options."""

    @with_scoring_options
    def command(
        model: Annotated[str, typer.Argument(metavar=metavar, help=what)],
        tasks: TasksArgument,
        output: Annotated[
            Path | None, output_option("Folder of the run, which is resumed if it exists; runs/MODEL-TASKS.")
        ] = None,
        data: Annotated[
            str | None, data_option("`sample`, the folder of built corpora, or one build, to ask about it.")
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
        trust_remote_code: TrustOption = False,
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
            annotator=_rules_if_they_can(named, chosen) if annotator is None else annotator,
            options=options,
            retry_failed=retry_failed,
            stop_after=stop_after,
            workers=Workers(workers, ray_address),
            trust_remote_code=trust_remote_code,
        )
        return _show_dry_run(spec) if dry_run else _run(spec, quiet=quiet)

    return command


def _run(spec: "RunSpec", *, quiet: bool) -> int:
    """Run or resume `spec` and show its scores."""
    from equivox.cli.show import compared_run, progress_bars, show_scores
    from equivox.engines import model_label
    from equivox.run.pipeline import execute

    warning = rules_warning(spec.model, spec.annotator, spec.tasks)
    with progress_bars(quiet=quiet, warning=warning) as progress:
        scores = execute(spec, progress=progress)
    return show_scores([compared_run(model_label(spec.model), spec.output, scores)])


def _show_dry_run(spec: "RunSpec") -> int:
    """Check `spec` and show what it would take; nothing is written."""
    from equivox.cli import EXIT_DONE
    from equivox.cli.show import console
    from equivox.report.cost_tables import dry_run_table
    from equivox.report.table import print_tables
    from equivox.run.dry_run import dry_run

    print_tables(console(), [dry_run_table(dry_run(spec))])
    return EXIT_DONE


def _rules_if_they_can(model: str, tasks: "Sequence[Task]") -> str:
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


def rules_warning(model: str, annotator: str, tasks: "Sequence[Task]") -> str:
    """Return a warning if `rules` will read free text of a model that is not simulated, else an empty text."""
    from equivox.annotate.rules import FOR_SIMULATED
    from equivox.compare.runs import misread_by_rules
    from equivox.engines import current_name, model_label

    misread = misread_by_rules(current_name(model), annotator, tasks)
    return f"the answers of {model_label(model)} will be {FOR_SIMULATED}" if misread else ""
