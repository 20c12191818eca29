"""The commands: what `equivox --help` lists, under which heading."""

from __future__ import annotations

from typing import Annotated

import typer

from equivox.cli import (
    check_commands,
    data_commands,
    engine_commands,
    file_commands,
    hub_commands,
    label_commands,
    result_commands,
    run_commands,
    task_commands,
)
from equivox.cli.options import Command, takes_task_files
from equivox.cli.output import echo
from equivox.core.version import __version__

app = typer.Typer(
    name="equivox",
    help="Measure what a model does differently when only the person changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Measure what a model does differently when only the person changes."""
    if version:
        echo(f"equivox {__version__}")
        raise typer.Exit


COMMANDS = {
    "Measure a model": (
        engine_commands.run,
        engine_commands.vllm,
        run_commands.status,
        file_commands.reproduce,
    ),
    "Read, compare and publish runs": (
        result_commands.compare,
        check_commands.gate,
        check_commands.verify,
        result_commands.view,
        result_commands.report,
        hub_commands.submit,
        label_commands.app,
    ),
    "Before a run": (
        file_commands.demo,
        task_commands.tasks,
        data_commands.app,
    ),
    "Annotate and score again": (
        engine_commands.import_,
        run_commands.score,
        run_commands.annotate,
    ),
    "Rank many runs": (result_commands.leaderboard,),
}
"""The headings of `equivox --help` with their commands; the first two hold what most users need."""

for _heading, _commands in COMMANDS.items():
    for _command in _commands:
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, rich_help_panel=_heading)
        else:
            name = _command.__name__.rstrip("_")
            app.command(name, cls=Command, rich_help_panel=_heading)(takes_task_files(_command))
