"""`equivox data`: build corpora as parquet from their raw distribution."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli import hub_commands, make_command
from equivox.cli.options import Command, command_group, output_option, outside
from equivox.cli.output import echo, show_tables
from equivox.core.errors import UsageError
from equivox.core.plugins import told_in_one_line
from equivox.core.task import DataSource
from equivox.report.progress_bars import progress_bars

if TYPE_CHECKING:
    from equivox.dataset_builders import Builder
    from equivox.dataset_builders.parquet import BuildReport

app = command_group("data", "List, build, make and publish corpora.")


@app.command(cls=Command)
def build(
    corpus: Annotated[
        str | None,
        typer.Argument(help="Name a corpus, or a word list (nrc, sadcat); default: list all."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="Read the distributed corpus from this folder; with --hub, a snapshot.")
    ] = None,
    output: Annotated[
        Path | None,
        output_option("Write the corpus into this folder; default: data.", here=False),
    ] = None,
    hub: Annotated[
        str | None, typer.Option(help="Download a copy from the Hub: a name of configs/hub, or a YAML file.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Use this commit of the copy, 40 hexadecimal digits.")] = None,
    demographics: Annotated[
        Path | None, typer.Option(help="Read VideoDemographics.csv of CREMA-D, which copies on the Hub lack.")
    ] = None,
    generate_images: Annotated[
        bool, typer.Option("--generate-images", help="Make the missing images of GENRES.")
    ] = False,
    image_settings: Annotated[
        Path | None, typer.Option(help="Read models, steps and thresholds for --generate-images from this YAML file.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw the ROUGE-L of continuations into this .svg, .png or .pdf.",
            callback=outside,
        ),
    ] = None,
) -> None:
    """Build a corpus as parquet, or download a word list."""
    from equivox.dataset_builders import added_builders, open_builder
    from equivox.dataset_builders import build as build_corpus
    from equivox.dataset_builders.hub import download, open_hub_file, original_layout
    from equivox.dataset_builders.word_lists import SOURCES

    if corpus is None:
        if source or hub or figure:
            raise UsageError("the corpus is missing; `equivox data build` lists all corpora")
        return _list_corpora()
    if corpus in SOURCES:
        return _fetch(corpus, output)
    output = output or Path("data")
    origin: dict[str, str] = {}
    with ExitStack() as stack:
        if hub is not None:
            copy = open_hub_file(hub)
            if copy.corpus != corpus:
                raise UsageError(f"`hub` {hub} is a copy of {copy.corpus}, not of {corpus}")
            snapshot = source or download(copy, revision)
            origin = {"hf_repo": copy.hf_repo, "revision": revision or copy.revision or snapshot.name}
            source = stack.enter_context(original_layout(copy, snapshot, output, demographics=demographics))
        elif source is None:
            raise UsageError("give `--source` with the folder of the distributed corpus, or `--hub`")
        if corpus in added_builders():
            stack.enter_context(told_in_one_line(f"the data-set builder {corpus}"))
        builder = open_builder(corpus, source)
        _refuse_figure(builder, figure)
        if generate_images:
            _generate_images(builder, image_settings)
        progress = stack.enter_context(progress_bars(quiet=False))
        report = build_corpus(builder, output, progress=progress, origin=origin)
    _show(report)
    return _describe(builder, output, figure)


def _list_corpora() -> None:
    """Print the corpora that can be built, with licence and web page."""
    from equivox.dataset_builders import builders

    known = builders()
    width = max(map(len, known)) + 2
    for name, builder in known.items():
        facts = builder.FACTS
        echo(f"{name:<{width}}{facts.title}; {facts.licence}{f'; {facts.homepage}' if facts.homepage else ''}")


def _show(report: BuildReport) -> None:
    """Print what was built, and what is unusual in it."""
    echo(f"{report.status}: {report.rows:,} rows in {report.folder} (fingerprint {report.fingerprint[:12]})")
    for heading, lines in (
        ("Differs from what is published", report.differences),
        ("Unusable clips; their rows stay and are counted", _problems(report.problems)),
    ):
        if lines:
            echo(f"{heading}:")
            for line in lines:
                echo(f"  {line}")


def _refuse_figure(builder: Builder, figure: Path | None) -> None:
    """Raise UsageError for a figure in another format, or of a corpus without continuations."""
    from equivox.cli.show import figure_format
    from equivox.dataset_builders import SpokenStereoSet

    if figure is not None:
        figure_format(figure, "figure")
        if not isinstance(builder, SpokenStereoSet):
            raise UsageError(f"`--figure` is for corpora of continuations, not for {builder.facts.name}; leave it out")


def _describe(builder: Builder, output: Path, figure: Path | None) -> None:
    """Describe a built corpus of continuations: speakers, instances, length, agreement of annotators, ROUGE-L."""
    from equivox.cli.show import write_figure
    from equivox.dataset_builders import SpokenStereoSet
    from equivox.dataset_builders.opening import open_corpus
    from equivox.dataset_builders.spoken_stereoset import corpus_facts
    from equivox.report.table import Table

    if not isinstance(builder, SpokenStereoSet):
        return
    samples = open_corpus(DataSource(corpus=builder.facts.name), str(output)).samples
    with progress_bars(quiet=False) as progress:
        columns_of, seconds = [s.columns for s in samples], [s.duration_s for s in samples]
        lines, averages = corpus_facts(columns_of, seconds, figure is not None, progress)
    columns = list(lines[0]) if lines else []
    align = "".join("l" if name in {columns[0], "groups"} else "r" for name in columns)
    show_tables([Table(columns=columns, align=align, rows=[list(line.values()) for line in lines])])
    if figure is not None:
        from equivox.report.figures import draw_histograms

        quantity = "average ROUGE-L of a continuation with all others of its domain"
        write_figure(figure, draw_histograms(averages, quantity))


def _fetch(name: str, output: Path | None) -> None:
    """Download a word list, check it and print its licence; word lists are not shipped with equivox."""
    from equivox.dataset_builders.word_lists import SOURCES, fetch_lexicon

    source = SOURCES[name]
    echo(f"{source.title}, {source.megabytes:g} MB from {source.url}")
    echo(f"Licence: {source.licence}. Terms: {source.home}. Cite: {source.cite}.")
    path = fetch_lexicon(name, output)
    echo(f"{path} (SHA-256 {source.sha256[:12]}…, as expected)")


def _generate_images(builder: Builder, settings_file: Path | None) -> None:
    from equivox.dataset_builders import Genres
    from equivox.dataset_builders.genres_images import (
        clip_cosine,
        generate_images,
        paint,
        read_image_settings,
        wanted_images,
    )

    if not isinstance(builder, Genres):
        raise UsageError(f"`--generate-images` is for genres, not for {builder.facts.name}; leave it out")
    settings = read_image_settings(settings_file)
    wanted, there = wanted_images(builder)
    with progress_bars(quiet=False) as progress:
        given_up = generate_images(
            wanted, partial(paint, settings), partial(clip_cosine, settings), settings, progress=progress
        )
    echo(f"images: {there} were there, {len(wanted) - len(given_up)} made, {len(given_up)} given up")
    for name in given_up[:20]:
        echo(f"  {name}: no attempt reached a cosine of {settings.threshold:g}; give it another prompt")


app.command(cls=Command)(hub_commands.push)


app.command(cls=Command)(make_command.make)


def _problems(problems: Mapping[str, str], shown: int = 20) -> list[str]:
    lines = [f"{clip_id}: {problem}" for clip_id, problem in sorted(problems.items())]
    if len(lines) <= shown:
        return lines
    return [*lines[:shown], f"… and {len(lines) - shown} more, all named in build.json"]
