"""The commands: what `equivox --help` lists, under which heading. Each is imported when it is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from equivox.core.version import __version__

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Measure a model": {
        "run": ("engine_commands", "Send tasks to a model and score its answers. Repeat the command to resume."),
        "vllm": ("engine_commands", "Send tasks to a model in vLLM on this machine and score its answers."),
        "status": ("run_commands", "Count the finished, missing and failed requests of a run."),
        "reproduce": ("file_commands", "Run every model of a run file, such as a paper's. Repeat to resume."),
    },
    "Read, compare and publish runs": {
        "compare": ("result_commands", "Compare models: which one is more biased, and by how much."),
        "gate": ("check_commands", "Check that a run is no worse than a baseline."),
        "verify": ("check_commands", "Check a run's hashes and requests, and recompute every number."),
        "view": ("result_commands", "Show the answers in a browser, side by side by group."),
        "report": ("result_commands", "Write all results of one or more runs into one HTML file."),
        "submit": ("hub_commands", "Write a run's scores for the Hub, or the run for a board; --push sends them."),
        "label": ("label_commands", "Check a judge against people who label answers."),
    },
    "Before a run": {
        "demo": ("file_commands", "Run every benchmark on sample data with simulated models."),
        "tasks": (
            "task_commands",
            "List tasks, show one, write a task file (`new TABLE`), or plan a design (`plan [TASK]`).",
        ),
        "data": ("data_commands", "List, build, make and publish corpora."),
    },
    "Annotate and score again": {
        "import": ("engine_commands", "Make a run from responses that another program collected, and score them."),
        "score": ("run_commands", "Score a stored run again, without the model."),
        "annotate": ("run_commands", "Annotate a run with another judge, score it, and print the agreement."),
    },
    "Rank many runs": {
        "leaderboard": ("result_commands", "Verify runs, rank their models, and write a static site."),
    },
}
"""The headings of `equivox --help` with their commands; the first two hold what most users need. Of each command: its
module, and the first sentences of its help."""


@cache
def _load(name: str, module: str) -> Any:
    """Return a command, or a group of commands, of a module of this package."""
    from equivox.cli.options import Command, takes_task_files

    members = vars(import_module(f"equivox.cli.{module}"))
    if (function := members.get(name) or members.get(f"{name}_")) is None:
        return typer.main.get_command(members["app"])
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command(name, cls=Command)(takes_task_files(function))
    return typer.main.get_command(alone)


class _Commands(Mapping[str, Any]):
    """The commands by their names; a command is imported when it is looked up."""

    modules: Mapping[str, str] = {
        name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()
    }

    def __getitem__(self, name: str) -> Any:
        return _load(name, self.modules[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


class _Root(TyperGroup):
    """The command `equivox`, whose help imports none of its commands."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands = _Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands below their headings."""
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, help) for name, (_, help) in commands.items()])


app = typer.Typer(
    name="equivox",
    cls=_Root,
    help="Measure what a model does differently when only the person changes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Measure what a model does differently when only the person changes."""
    if version:
        print(f"equivox {__version__}")
        raise typer.Exit
