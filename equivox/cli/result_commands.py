"""The commands that show results: compare, report, view, leaderboard; nothing heavy is imported at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import DetailsOption, ExplainOption, data_option, output_option, outside, runs_argument
from equivox.cli.output import EXIT_DONE, echo, echo_error, show_explanation, show_tables
from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.foreign_files import refuse_unusable_file, refuse_unusable_folder
from equivox.core.plugins import told_in_one_line
from equivox.core.redact import redacted_text
from equivox.core.scores import FEWEST_RESAMPLES, MOST_RESAMPLES
from equivox.core.text import how_many
from equivox.core.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from equivox.compare.runs import Comparison
    from equivox.core.metric import Overlap
    from equivox.report.table import Table


def compare(
    runs: Annotated[list[Path], runs_argument("Name folders of runs, one model each.")],
    tables: Annotated[
        Path | None,
        typer.Option(
            help="Write all tables into this folder as CSV, LaTeX, Markdown and HTML.",
            callback=outside,
        ),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(
            min=FEWEST_RESAMPLES, max=MOST_RESAMPLES, help="Draw this many permutations for each test of two models."
        ),
    ] = 10_000,
    published: Annotated[
        str | None, typer.Option("--with", help="Rank the runs among published models: published-llama-3.1-8b.")
    ] = None,
    fixed: Annotated[bool, typer.Option("--fixed", help="Keep the published models' scores as printed.")] = False,
    details: DetailsOption = False,
    explain: ExplainOption = None,
) -> int:
    """Compare models: which one is more biased, and by how much."""
    from equivox.cli.show import code_of, usable
    from equivox.compare.pairs import untested_measures
    from equivox.compare.ranking import judge, missing_cohorts, published_totals
    from equivox.compare.runs import open_comparison
    from equivox.report.details import (
        list_comparison_tables,
        list_score_grids,
        make_comparison_frames,
        make_published_tables,
    )
    from equivox.report.verdict import write_screen
    from equivox.run.opening import by_name

    if explain is not None:
        return show_explanation(explain)
    if tables is not None:
        refuse_unusable_folder(tables, "tables")
    if fixed and published is None:
        raise UsageError("`fixed` needs a published cohort; name one with `--with`")
    usable_folders, left_out = usable(by_name(runs))
    comparison = open_comparison([folder for folder, _ in usable_folders], left_out)
    beside = [] if published is None else published_totals(comparison.runs, published, fixed=fixed)
    frames = make_comparison_frames(comparison, judge(comparison, n_resamples=resamples), _find_overlaps(comparison))
    if tables is not None:
        _write_tables(tables, frames, {"scores": list_score_grids(comparison.runs)})
    for shown in list_comparison_tables(frames, details=details).values():
        show_tables(shown)
    show_tables(make_published_tables(beside))
    for caveat in comparison.caveats:
        echo(f"check  {caveat}", "yellow")
    if details:
        untested = [f"{name}: no paired test: {why}" for name, why in untested_measures(comparison).items()]
        for reason in (*untested, *missing_cohorts(comparison)):
            echo(f"note   {reason}")
    echo(f"\n{write_screen(comparison.runs)}\n")
    lacking = any(model in totals.totals.undefined for totals in beside for model in totals.models)
    return code_of((score for _, score in comparison.scores()), lacking=bool(lacking or left_out))


def _find_overlaps(comparison: Comparison) -> list[Overlap]:
    """Return the overlaps of the runs' results that their metrics define."""
    named = [(run.model, run.folder) for run in comparison.runs]
    overlaps: list[Overlap] = []
    for metric in {metric.name: metric for metric in comparison.metrics.values()}.values():
        with told_in_one_line(f"the overlap of the metric {metric.name}"):
            overlaps += metric.overlap(named) if metric.overlap is not None else ()
    return overlaps


def _write_tables(folder: Path, frames: Mapping[str, DataFrame], tables: Mapping[str, Sequence[Table]]) -> None:
    """Write every number as CSV, and tables as LaTeX, Markdown and HTML, by the names of their files."""
    from equivox.report.details import list_comparison_tables
    from equivox.report.table import as_csv, as_latex, as_markdown, as_page

    for name, frame in frames.items():
        write_text(folder / f"{name}.csv", as_csv(frame.to_dict("records")))
    for name, shown in {**tables, **list_comparison_tables(frames, details=True)}.items():
        if any(table.rows for table in shown):
            write_text(folder / f"{name}.tex", as_latex(shown))
            write_text(folder / f"{name}.md", as_markdown(shown))
            write_text(folder / f"{name}.html", as_page(shown, name))


def report(
    runs: Annotated[list[Path], runs_argument("Name folders of runs.")],
    output: Annotated[Path, output_option("Write this HTML file; with --figure a .svg, .png or .pdf.")] = Path(
        "report.html"
    ),
    examples: Annotated[int, typer.Option(min=0, help="Show this many pairs of answers for each difference.")] = 0,
    data: Annotated[str | None, data_option("Read recordings or images from this folder.")] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            help="Draw one figure: forest:FAMILY, shares:TASK:ATTRIBUTE or ranks:FAMILY; `list` names all.",
        ),
    ] = None,
) -> int:
    """Write all results of one or more runs into one HTML file."""
    from equivox.cli.show import code_of, usable
    from equivox.report.page import build_report
    from equivox.run.opening import by_name
    from equivox.run.scoring import read_scores

    if figure is not None:
        from equivox.cli.show import figure_format, write_figure
        from equivox.report.figures import figure_of, figures_of

        if figure == "list":
            echo("\n".join(figures_of(runs)))
            return EXIT_DONE
        figure_format(output, "output")
        write_figure(output, figure_of(runs, figure))
        return EXIT_DONE
    refuse_unusable_file(output, "output")
    found, left_out = usable(by_name(runs))
    write_text(output, build_report([folder for folder, _ in found], left_out, examples=examples, data=data))
    echo(f"Report: {output.resolve()} ({output.stat().st_size / 1e6:.2f} MB)")
    return code_of((score for folder, _ in found for score in read_scores(folder)), lacking=bool(left_out))


def view(
    runs: Annotated[list[Path], runs_argument("Name folders of runs.")],
    data: Annotated[str | None, data_option("Read recordings or images from this folder.")] = None,
    host: Annotated[
        str, typer.Option(help="Listen on this address; any other than 127.0.0.1 opens the page to others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Listen on this port; 0: any free port.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> int:
    """Show the answers in a browser, side by side by group."""
    import webbrowser

    from equivox.report.view.server import serve

    def ready(address: str, left_out: Sequence[tuple[str, str]]) -> None:
        for name, reason in left_out:
            echo_error(f"left out: {name}: {reason}")
        echo(f"{address}  (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    serve(runs, data=data, host=host, port=port, ready=ready)
    return EXIT_DONE


def _submitted(source: str, stack: ExitStack) -> Iterator[tuple[str, Callable[[], Path]]]:
    """Yield the name of each run that a board is made of, and what opens its folder; downloads end with `stack`.

    UsageError for a source without runs.
    """
    from equivox.integrations.hub.remote import HUB, LIST, downloaded, listed_runs

    def fetched(address: str) -> Path:
        return stack.enter_context(downloaded(address))

    if source.startswith(HUB):
        folder = fetched(source)
        if (folder / LIST).is_file():
            for address in listed_runs(folder):
                yield address, partial(fetched, address)
        else:
            yield source, partial(Path, folder)
    elif Path(source).is_file():
        for line in _lines(Path(source)):
            if line.startswith(HUB):
                yield line, partial(fetched, line)
            else:
                # A place on this machine is not published.
                shown = Path(Path(line).name if Path(line).is_absolute() else line)
                for folder in _find_runs(place := Path(source).parent / line):
                    yield (shown / folder.relative_to(place)).as_posix(), partial(Path, folder)
    else:
        for folder in _find_runs(Path(source)):
            own = folder.relative_to(source).as_posix()
            yield folder.resolve().name if own == "." else own, partial(Path, folder)


def _find_runs(folder: Path) -> list[Path]:
    """Return the scored runs below `folder`; UsageError if there is none."""
    if not folder.is_dir():
        raise UsageError(f"`runs` must be a folder with runs in it, got {folder}")
    runs = sorted(path.parent for path in folder.rglob("manifest.json") if (path.parent / "scores.json").is_file())
    if not runs:
        raise UsageError(f"{folder} holds no scored run; give the folder that runs were written into")
    return runs


def _lines(path: Path) -> list[str]:
    """Return the lines of a list of runs that are no remarks; UsageError for a file that is no text."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot read the list of runs {path} ({error}); give a text file with a run a line") from None
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def leaderboard(
    runs: Annotated[
        str,
        typer.Argument(
            metavar="RUNS",
            help="Name a folder of runs, a text file that lists runs, or hf://datasets/OWNER/NAME.",
        ),
    ],
    output: Annotated[Path, output_option("Write the site into this folder.")] = Path("leaderboard"),
) -> int:
    """Verify runs, rank their models, and write a static site."""
    from equivox.cli.show import code_of, usable
    from equivox.report.board import make_board, render_site
    from equivox.run.scoring import read_scores

    with ExitStack() as stack:
        found, left_out = usable(_submitted(runs, stack), verified=True)
        frame = make_board(dict(found))
        scores = [score for folder, _ in found for score in read_scores(folder)]
    refused = [(name, redacted_text(reason)) for name, reason in left_out]
    n_runs = len(dict(found))
    verified = (
        f"{how_many(n_runs, 'run')}, each recomputed from its answers before it entered, by equivox {__version__} on "
        f"{datetime.now(UTC):%Y-%m-%d}; {len(refused)} refused."
    )
    for file, text in render_site(frame, refused, verified).items():
        write_text(output / file, text)
    counted = f"{how_many(len(frame), 'score')} of {how_many(n_runs, 'run')}"
    echo(f"{counted}: {(output / 'index.html').resolve()}")
    return code_of(scores, lacking=bool(refused))
