"""`equivox view`: the answers of runs in a browser, from a server on this machine or as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import QuietOption, data_option, runs_argument
from equivox.core.errors import RequestError


def view(
    runs: Annotated[list[Path], runs_argument("Folders of runs; the first two are compared.")],
    data: Annotated[str | None, data_option("Where recordings or images are now.")] = None,
    static: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the page as a folder for any web server, and end.")
    ] = None,
    media: Annotated[
        str | None,
        typer.Option(metavar="N", help="With --static: recordings of each task and group (20), all, or none."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than this machine's show it to others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    quiet: QuietOption = False,
) -> int:
    """Show answers in a browser: side by side by group, unreadable ones, two runs, and a run that is under way."""
    from equivox.core.files import refuse_unusable

    for folder in runs:
        refuse_unusable(folder, "run")
    if static is not None:
        return _write(runs, static, data, media, quiet=quiet)
    if media is not None:
        raise RequestError("`media` is for `--static DIR`; the server shows every recording that it finds")
    return _serve(runs, data, host, port, browser=browser)


def _serve(runs: list[Path], data: str | None, host: str, port: int, *, browser: bool) -> int:
    from equivox.cli import EXIT_DONE
    from equivox.cli.output import opens
    from equivox.report.view.server import serve

    serve(runs, data=data, host=host, port=port, ready=opens("Ctrl-C ends it", browser=browser))
    return EXIT_DONE


def _write(runs: list[Path], output: Path, data: str | None, media: str | None, *, quiet: bool) -> int:
    from equivox.cli import EXIT_DONE
    from equivox.cli.output import echo
    from equivox.cli.show import progress_bars
    from equivox.core.files import refuse_unusable
    from equivox.report.view.static import FEW, checked_media, sizes, write_static

    refuse_unusable(output, "static")
    for folder in runs:
        if output.resolve().is_relative_to(folder.resolve()):
            raise RequestError(f"`static` {output} is inside of a run, which is not written; name another place")
    kept = FEW if media is None else checked_media(media)
    with progress_bars(quiet=quiet) as progress:
        found = write_static(runs, output, media=kept, data=data, progress=progress)
    size = sizes(found)
    echo(f"{output / 'index.html'}: {size['total_bytes']}, for any web server or a static Space")
    if found.media < found.all_media:
        all_of_them = (
            f"; all {found.all_media:,} take about {size['all_media_bytes']}: `--media all`" if found.media else ""
        )
        echo(f"{found.media:,} recordings or pictures ({size['media_bytes']}){all_of_them}")
    elif found.media:
        echo(f"all {found.media:,} recordings or pictures ({size['media_bytes']})")
    if found.media:
        echo("Recordings and pictures show people: the licence of the corpus says whether you may publish them.")
    return EXIT_DONE
