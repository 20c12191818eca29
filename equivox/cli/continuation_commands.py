"""`equivox data rewrite`, `label` and `filter`: the texts of a corpus of continuations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import output_option
from equivox.cli.output import echo

CorpusArgument = Annotated[str, typer.Argument(help="The corpus of continuations to be made: spoken_stereoset.")]
TextsOption = Annotated[Path, typer.Option(help="CSV: context, the three continuations, the domain's column.")]


def check_layout(corpus: str) -> None:
    """Raise RequestError for a corpus that has no continuations."""
    from equivox.core.errors import RequestError

    if corpus != "spoken_stereoset":
        raise RequestError(f"this is for corpora of continuations, got {corpus!r}; known: spoken_stereoset")


def rewrite(
    corpus: CorpusArgument,
    sentences: Annotated[
        Path, typer.Option(help="CSV: context, the three continuations, and the group they are about in a column.")
    ],
    model: Annotated[str, typer.Option(help="The model that rewrites: a packaged name, scheme:arguments or a file.")],
    output: Annotated[Path, output_option("The table of texts to be written.")],
    reader: Annotated[
        str | None, typer.Option(help="The model that must not be able to tell the group; --model by default.")
    ] = None,
    swap: Annotated[
        bool, typer.Option("--swap", help="Add each context for the other of two groups, with the options swapped.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed asks for other texts.")] = 0,
    attempts: Annotated[int, typer.Option(min=1, help="How often a sentence is asked.")] = 3,
) -> None:
    """Let a model rewrite sentences in the first person, so that the words do not tell the speaker's group."""
    from equivox.cli.show import progress_bars
    from equivox.dataset_builders.rewriting import rewrite as write
    from equivox.engines import open_engine

    check_layout(corpus)
    with ExitStack() as stack:
        engine = open_engine(model, [])
        stack.callback(engine.close)
        other = None if reader is None else open_engine(reader, [])
        if other is not None:
            stack.callback(other.close)
        progress = stack.enter_context(progress_bars(quiet=False))
        made = write(
            sentences,
            engine,
            output,
            reader=other,
            swap=swap,
            seed=seed,
            attempts=attempts,
            progress=progress,
        )
    lost = sum(made.left_out.values())
    echo(f"{made.output}: {made.rows:,} texts of {made.sentences - lost:,} of {made.sentences:,} sentences")
    _show_left_out(made.left_out, made.left_out_file)


def label(
    corpus: CorpusArgument,
    texts: TextsOption,
    output: Annotated[Path, output_option("The CSV of labels to be written.")],
    annotator: Annotated[
        list[str] | None, typer.Option(help="A model that labels; repeat it. Without it: an empty sheet for a person.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another order of an empty sheet.")] = 0,
) -> int:
    """Let models say which continuation is a stereotype, breaks one or is irrelevant; or write a sheet for a person."""
    from equivox.cli.show import progress_bars
    from equivox.dataset_builders.labelling import label as write
    from equivox.dataset_builders.labelling import sheet
    from equivox.engines import open_engine

    check_layout(corpus)
    if not annotator:
        rows = sheet(texts, output, seed=seed)
        echo(f"{output}: {rows:,} continuations. One person fills in `label`: stereotype, anti-stereotype, irrelevant.")
        return 0
    with progress_bars(quiet=False) as progress:
        engines = [open_engine(name, []) for name in annotator]
        made = write(texts, engines, output, progress=progress)
    for name, given in made.given.items():
        echo(f"{name}: {given:,} labels, {made.missing[name]:,} missing")
    if any(made.missing.values()):
        echo("Missing labels are no agreement. Repeat the command to ask again where no answer came.")
        return 1
    return 0


def filter_texts(
    corpus: CorpusArgument,
    texts: TextsOption,
    labels: Annotated[list[Path], typer.Option(help="A CSV of labels by models or a person; repeat it.")],
    output: Annotated[Path, output_option("The table of the texts that stay.")],
    least_annotators: Annotated[int, typer.Option(min=1, help="Labels that each continuation needs.")] = 5,
    least_agreement: Annotated[float, typer.Option(help="Share of them that must be what is meant.")] = 0.5,
) -> None:
    """Keep the texts whose continuations enough annotators call what they are meant to be."""
    from equivox.dataset_builders.labelling import keep_agreed

    check_layout(corpus)
    made = keep_agreed(texts, labels, output, least_annotators=least_annotators, least_agreement=least_agreement)
    echo(f"{made.output}: {made.kept:,} of {made.texts:,} texts stay")
    _show_left_out(made.left_out, made.left_out_file)


def _show_left_out(left_out: Mapping[str, int], file: Path) -> None:
    for reason, number in left_out.items():
        echo(f"  left out: {number:,}, {reason}")
    if left_out:
        echo(f"  {file} lists them")
