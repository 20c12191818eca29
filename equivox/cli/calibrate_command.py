"""The command `equivox calibrate`; this module is imported at start and must not import anything heavy."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equivox.cli.options import QuietOption, RayAddressOption, WorkersOption, output_option
from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, echo, show_tables
from equivox.core.errors import RequestError, nearest
from equivox.core.fields import parse_model_args
from equivox.core.requests import Workers
from equivox.core.task import Task
from equivox.core.variants import parse_conditions
from equivox.report.progress_bars import progress_bars

if TYPE_CHECKING:
    from equivox.calibration.recipe import Recipe

ENGINES = ("vllm", "transformers", "endpoint")
"""The engines that can be proved."""


def calibrate(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE",
            help="vllm, transformers or endpoint; model arguments follow a colon: transformers:device=cuda.",
        ),
    ] = "vllm",
    task: Annotated[str, typer.Option(help="The task that the models are taught.")] = "vibe_gender:candidate",
    shift: Annotated[str, typer.Option(help="Planted biases in percent, separated by commas.")] = "0,20,60",
    seed: Annotated[int, typer.Option(min=0, help="The seed of the training and of the requests.")] = 0,
    limit: Annotated[int | None, typer.Option(min=4, help="Samples that are asked about; all by default.")] = None,
    output: Annotated[
        Path | None,
        output_option("Where the runs go, which are resumed; runs/calibration/ENGINE-TASK-SEED."),
    ] = None,
    annotator: Annotated[str, typer.Option(help="The annotator to be proved with the engine.")] = "rules",
    conditions: Annotated[str, typer.Option(help="declared, text_only, silence, shuffled, or all.")] = "all",
    workers: WorkersOption = 1,
    ray_address: RayAddressOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything that was found as JSON.")] = False,
    quiet: QuietOption = False,
) -> int:
    """Prove an installation: run tiny models with a known bias through all of it; exit 0: passes, 1: fails."""
    from equivox.calibration.checking import Settings, result, train
    from equivox.calibration.checking import calibrate as run
    from equivox.calibration.recipe import parse_shifts
    from equivox.report.calibration_tables import calibration_table, verdict_of

    asked = parse_conditions(conditions)
    scheme, arguments = _engine(engine)
    shifts = parse_shifts(shift)
    chosen = _task(task)
    settings = Settings(
        scheme=scheme,
        arguments=arguments,
        task=chosen,
        shifts=shifts,
        output=output or Path("runs/calibration") / f"{scheme}-{chosen.name}-seed{seed}".replace(":", "-"),
        seed=seed,
        limit=limit,
        annotator=annotator,
        conditions=asked,
        workers=Workers(workers, ray_address),
    )

    def told(text: str) -> None:
        if not quiet and not json:
            echo(text)

    models = train(settings, told)
    if settings.scheme == "endpoint" and "base_url" not in settings.arguments:
        echo(serve_first(task, seed, models))
        return EXIT_DONE
    if settings.scheme == "endpoint" and len(models) > 1:
        raise RequestError("an endpoint serves one model at a time; give one `--shift`, and serve its folder")
    with progress_bars(quiet=quiet or json) as progress:
        lines = run(settings, models, progress=progress)
    found = result(settings, models, lines)
    if json:
        echo(dumps(found, indent=1))
    else:
        show_tables([calibration_table(found)])
        echo(verdict_of(found))
    return EXIT_DONE if lines and all(line.passed for line in lines) else EXIT_INCOMPLETE


_ROOM = {"vllm": {"gpu_memory_utilization": 0.3}}
"""What is asked of an engine that is told nothing: vLLM would take 92 % of the memory for a model of 2 MB."""


def _engine(named: str) -> tuple[str, dict[str, Any]]:
    """Return the scheme of an engine and its model arguments; RequestError for one that cannot be calibrated.

    >>> _engine("vllm:dtype=bfloat16")
    ('vllm', {'gpu_memory_utilization': 0.3, 'dtype': 'bfloat16'})
    """
    scheme, _, rest = named.partition(":")
    if scheme not in ENGINES:
        raise RequestError(
            f"`engine` is one of {', '.join(ENGINES)}, with model arguments after a colon if needed "
            f"(vllm:dtype=bfloat16); got {named!r}{nearest(scheme, ENGINES)}"
        )
    from equivox.engines import named_model

    arguments = parse_model_args(rest) if rest else {}
    if named_model(arguments) and scheme != "endpoint":
        raise RequestError("`engine` runs the calibration models; leave out the name of a model")
    return scheme, {**_ROOM.get(scheme, {}), **arguments}


def _task(name: str) -> Task:
    """Return the task; RequestError for several, and for one that no model can be taught."""
    from equivox.calibration.recipe import calibration_task, libraries
    from equivox.tasks.registry import resolve_tasks

    chosen = resolve_tasks(name)
    if len(chosen) != 1:
        raise RequestError(f"`task` {name} is {len(chosen)} tasks; name one, such as {chosen[0].name}")
    calibration_task(chosen[0])
    libraries(chosen[0])
    return chosen[0]


def serve_first(task: str, seed: int, models: Sequence[Recipe]) -> str:
    """Return how each model is served, and the command that calibrates the server."""
    lines = ["Serve one of these checkpoints, then calibrate its server:"]
    for model in models:
        lines += [
            "",
            f"vllm serve {model.folder} --dtype float32",
            f"equivox calibrate endpoint:base_url=http://localhost:8000/v1 --task {task} "
            f"--shift {model.shift:g} --seed {seed}",
        ]
    return "\n".join(lines)
