"""The command `equivox calibrate`; this module is imported at start and must not import anything heavy."""

from __future__ import annotations

import json as json_format
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equivox.calibration.checking import Settings
    from equivox.calibration.training import Model

ENGINES = ("vllm", "transformers", "endpoint")
"""The engines that can be proved."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The options of the command, as they were typed."""

    engine: str
    task: str
    shift: str
    seed: int
    limit: int | None
    output: Path | None
    device: str | None
    annotator: str
    conditions: str
    workers: int
    ray_address: str | None
    json: bool
    quiet: bool


def calibrate(wish: Wish) -> int:
    """Make the calibration models, run them on the engine, and show the comparison; exit 0: passes, 1: fails."""
    from equivox.calibration.checking import calibrate as run
    from equivox.calibration.checking import result, train
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.output import echo
    from equivox.cli.show import console, progress_bars
    from equivox.core.files import write_text
    from equivox.report.calibration_page import PAGE_FILE, calibration_page, calibration_table, verdict_of
    from equivox.report.table import print_tables

    settings = settings_of(wish)

    def told(text: str) -> None:
        if not wish.quiet and not wish.json:
            echo(text)

    models = train(settings, told)
    if settings.scheme == "endpoint" and "base_url" not in settings.arguments:
        echo(serve_first(wish, models))
        return EXIT_DONE
    if settings.scheme == "endpoint" and len(models) > 1:
        raise RequestError("an endpoint serves one model at a time; give one `--shift`, and serve its folder")
    with progress_bars(quiet=wish.quiet or wish.json) as progress:
        lines = run(settings, models, progress=progress)
    page = settings.output / PAGE_FILE
    write_text(page, calibration_page(settings, models, lines))
    if wish.json:
        echo(json_format.dumps(result(settings, models, lines), indent=1))
    else:
        print_tables(console(), [calibration_table(settings, lines)])
        echo(verdict_of(settings, lines))
        told(f"wrote {page}")
    return EXIT_DONE if lines and all(line.passed for line in lines) else EXIT_INCOMPLETE


def settings_of(wish: Wish) -> Settings:
    """Return what is to be calibrated; RequestError for an engine or a task that cannot be."""
    from equivox.calibration.checking import Settings
    from equivox.calibration.recipe import calibration_task, libraries, parse_shifts
    from equivox.core.variants import parse_conditions
    from equivox.engines.model_args import parse_model_args
    from equivox.engines.workers import Workers
    from equivox.tasks.registry import resolve_tasks

    scheme, _, rest = wish.engine.partition(":")
    if scheme not in ENGINES:
        raise RequestError(
            f"`engine` is one of {', '.join(ENGINES)}, with model arguments after a colon if needed "
            f"(vllm:dtype=bfloat16); got {wish.engine!r}{nearest(scheme, ENGINES)}"
        )
    arguments = parse_model_args(rest) if rest else {}
    if "model_name" in arguments and scheme != "endpoint":
        raise RequestError("`engine` runs the calibration models; leave out model_name")
    if wish.device is not None:
        if scheme != "transformers":
            raise RequestError(f"`device` is an option of transformers; {scheme} has settings of its own, leave it out")
        arguments = {**arguments, "device": wish.device}
    chosen = resolve_tasks(wish.task)
    if len(chosen) != 1:
        raise RequestError(f"`task` {wish.task} is {len(chosen)} tasks; name one, such as {chosen[0].name}")
    shifts = parse_shifts(wish.shift)
    calibration_task(chosen[0])
    libraries(chosen[0])
    return Settings(
        scheme=scheme,
        arguments=arguments,
        task=chosen[0],
        shifts=shifts,
        output=wish.output or Path("runs/calibration") / default_name([scheme, chosen[0].name, f"seed{wish.seed}"]),
        seed=wish.seed,
        limit=wish.limit,
        annotator=wish.annotator,
        conditions=parse_conditions(wish.conditions),
        workers=Workers(wish.workers, wish.ray_address),
    )


def default_name(parts: Sequence[str]) -> str:
    """Return the name of the folder of a calibration's runs.

    >>> default_name(["vllm", "vibe_gender:candidate", "seed0"])
    'vllm-vibe_gender-candidate-seed0'
    """
    return "-".join(parts).replace(":", "-")


def serve_first(wish: Wish, models: Sequence[Model]) -> str:
    """Return how each model is served, and the command that calibrates the server."""
    lines = ["Serve one of these checkpoints, then calibrate its server:"]
    for model in models:
        lines += [
            "",
            f"vllm serve {model.folder} --dtype float32",
            f"equivox calibrate endpoint:base_url=http://localhost:8000/v1 --task {wish.task} "
            f"--shift {model.recipe.shift:g} --seed {wish.seed}",
        ]
    return "\n".join(lines)
