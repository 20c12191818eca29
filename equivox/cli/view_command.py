"""`equivox view`: the answers of runs in a browser, from a server on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equivox.cli.options import data_option, runs_argument


def view(
    runs: Annotated[list[Path], runs_argument("Folders of runs; the first two are compared.")],
    data: Annotated[str | None, data_option("Where recordings or images are now.")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than this machine's show it to others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> int:
    """Show answers in a browser: side by side by group, unreadable ones, and two runs."""
    from equivox.cli.output import EXIT_DONE, echo_error, opens
    from equivox.report.view.build import usable
    from equivox.report.view.server import serve

    for name, reason in usable(runs)[1]:
        echo_error(f"left out: {name}: {reason}")
    serve(runs, data=data, host=host, port=port, ready=opens("Ctrl-C ends it", browser=browser))
    return EXIT_DONE
