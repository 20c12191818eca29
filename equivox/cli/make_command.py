"""`equivox data make STEP`: the steps that make a corpus with models."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from equivox.cli.options import output_option
from equivox.cli.output import echo
from equivox.core.errors import UsageError
from equivox.report.progress_bars import progress_bars

if TYPE_CHECKING:
    from equivox.dataset_builders.construction import Made

TAKES = {
    "rewrite": ("model", "swap", "seed"),
    "label": ("model", "seed"),
    "filter": ("labels", "least_annotators", "least_agreement"),
    "describe": ("model", "seed"),
    "synthesize": ("voices", "tts"),
}
"""The options of each step besides `--output`."""
NEEDS = {"rewrite": "model", "filter": "labels", "describe": "model", "synthesize": "voices"}
"""The option that a step cannot do without."""
SHOWN = 20


def make(
    step: Annotated[
        Literal["rewrite", "label", "filter", "describe", "synthesize"], typer.Argument(help="Choose a step.")
    ],
    source: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE...", help="Read sentences or texts from this CSV; for describe, name a folder."),
    ],
    output: Annotated[Path | None, output_option("Write this table, or this folder of clips.", here=False)] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Use this model. label: repeatable; without a model, write an empty sheet. rewrite: a second model "
            "checks that texts hide the group."
        ),
    ] = None,
    swap: Annotated[
        bool, typer.Option("--swap", help="rewrite: also write each context for the other group, options swapped.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draw other texts, or another order of a sheet, with another seed.")
    ] = None,
    labels: Annotated[list[Path] | None, typer.Option(help="filter: read labels from this CSV; repeatable.")] = None,
    least_annotators: Annotated[
        int | None, typer.Option(min=1, help="filter: require this many labels per text; default: 5.")
    ] = None,
    least_agreement: Annotated[
        float | None, typer.Option(help="filter: require this share of correct labels; default: 0.5.")
    ] = None,
    voices: Annotated[
        list[Path] | None, typer.Option(help="synthesize: read speakers and voices from this CSV.")
    ] = None,
    tts: Annotated[
        str | None,
        typer.Option(help="synthesize: run espeak-ng, or a command with {output} and {text}."),
    ] = None,
) -> int:
    """Make a corpus with models: texts, labels, speech or descriptions of images.

    rewrite: turn sentences about people into the first person.
    label: mark each continuation as stereotype, anti-stereotype or irrelevant.
    filter: keep the texts on which annotators agree.
    synthesize: speak the texts, in the layout of Spoken StereoSet.
    describe: describe GENRES' elements for `data build --generate-images`.
    """
    from equivox.engines import open_engine

    given = _given(
        step, model=model, swap=swap, seed=seed, labels=labels, least_annotators=least_annotators,
        least_agreement=least_agreement, voices=voices, tts=tts,
    )  # fmt: skip
    if output is None and step != "describe":
        raise UsageError(f"{step} needs `--output`, the {'folder' if step == 'synthesize' else 'file'} to be made")
    if len(source) > 1 and step != "synthesize":
        raise UsageError(f"{step} takes one source, got {len(source)}; name one")
    with ExitStack() as stack:
        engines = []
        for name in given.pop("model", ()):
            engines.append(open_engine(name, []))
            stack.callback(engines[-1].close)
        bars = stack.enter_context(progress_bars(quiet=False))
        made = _made(step, source, output, engines, given, bars)
    return 0 if made is None else _tell(step, made)


def _given(step: str, **options: Any) -> dict[str, Any]:
    """Return the options that were given; UsageError for one that is not for the step, and for one that it lacks."""
    given = {name: value for name, value in options.items() if value is not None and value is not False and value != []}
    for name in given:
        if name not in TAKES[step]:
            takes = ", ".join(_option(own) for own in TAKES[step])
            raise UsageError(f"`{_option(name)}` is not for {step}, which takes {takes}; leave it out")
    if (needed := NEEDS.get(step)) not in (None, *given):
        raise UsageError(f"{step} needs `{_option(str(needed))}`; see `equivox data make --help`")
    return given


def _tell(step: str, made: Made) -> int:
    """Print what was made and what was left out; return the exit code."""
    echo(f"{made.output}: {made.rows:,} of {made.of}")
    for note in made.notes:
        echo(f"  {note}")
    for reason, number in list(made.left_out.items())[:SHOWN]:
        echo(f"  left out: {number:,}, {reason}")
    if made.left_out and made.listing is not None:
        echo(f"  {made.listing} lists them")
    if made.left_out and step != "filter":
        echo("Repeat the command to ask again where no answer came.")
    return int(bool(made.left_out) and step in {"label", "describe"})


def _made(
    step: str, source: list[Path], output: Path | None, engines: list[Any], given: dict[str, Any], progress: Any
) -> Made | None:
    """Do a step; None for an empty sheet."""
    if step == "describe":
        from equivox.dataset_builders.genres import Genres
        from equivox.dataset_builders.genres_descriptions import describe
        from equivox.dataset_builders.genres_protocol import IMAGE_PROMPTS

        to = output or source[0] / IMAGE_PROMPTS
        return describe(Genres(source[0]), engines[0], to, progress=progress, **given)
    assert output is not None
    if step == "synthesize":
        from equivox.dataset_builders.synthesis import synthesize

        return synthesize(source, given.pop("voices"), output, progress=progress, **given)
    from equivox.dataset_builders.continuation_texts import keep_agreed, label, rewrite, sheet

    if step == "rewrite":
        if len(engines) > 2:
            raise UsageError(f"rewrite takes a model that writes and one that reads, got {len(engines)}; name two")
        reader = engines[1] if len(engines) == 2 else None
        return rewrite(source[0], engines[0], output, reader=reader, progress=progress, **given)
    if step == "filter":
        return keep_agreed(source[0], given.pop("labels"), output, **given)
    if engines:
        if "seed" in given:
            raise UsageError("`--seed` is the order of an empty sheet, and models are named; leave it out")
        return label(source[0], engines, output, progress=progress)
    rows = sheet(source[0], output, **given)
    echo(f"{output}: {rows:,} continuations. One person fills in `label`: stereotype, anti-stereotype, irrelevant.")
    return None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
