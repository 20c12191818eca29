"""Arguments and options that several commands have, each declared once."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from equivox.cli.output import echo_error
from equivox.core.errors import EquivoxError, UsageError
from equivox.core.foreign_files import refuse_unusable
from equivox.run.spec import SCORING_HELP, TYPED


class Command(TyperCommand):
    """A command that refuses an option given twice, but for those that are meant to be repeated.

    Without it the last would win, and the first be lost without a word.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what the options leave of the arguments; a usage error for an option given twice."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(given).items():
            if times > 1 and parameter.param_type_name == "option" and not parameter.multiple:
                ctx.fail(f"{parameter.opts[0]} is given twice; give it once")
        return super().parse_args(ctx, args)


def command_group(name: str, help: str) -> typer.Typer:
    """Return a group of commands, whose help is plain text."""
    return typer.Typer(name=name, help=help, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


def data_option(help: str) -> Any:
    """Return the option `--data`, which `--data-dir` means too."""
    return typer.Option("--data", "--data-dir", help=help)


def outside(parameter: typer.CallbackParam, path: Path | None) -> Path | None:
    """Return where a command writes; UsageError for a place in a run, which would count as changed."""
    if path is not None:
        refuse_in_run(path, str(parameter.name))
    return path


def refuse_in_run(path: Path, name: str, *, resumed: bool = False) -> None:
    """Raise UsageError for a place in a run; with `resumed` it can be the folder of a run, and in no other."""
    from equivox.run.declarations import TASKS_FILE
    from equivox.run.manifest import MANIFEST_FILE

    refuse_unusable(path, name)
    place = path.resolve()
    for folder in place.parents if resumed else (place, *place.parents):
        if all((folder / file).is_file() for file in (MANIFEST_FILE, TASKS_FILE)):
            raise UsageError(f"`{name}` {path} is inside the run {folder} and would change it; name a path outside")


def output_option(help: str, *, resumed: bool = False, here: bool = True) -> Any:
    """Return the option `--output`, in short `-o`; with `resumed` it can be the folder of a run that goes on.

    Where it is left out, the files go `here`, below the working folder, which is in no run either.
    """

    def checked(path: Path | None) -> Path | None:
        if path is not None:
            refuse_in_run(path, "output", resumed=resumed)
        elif here:
            refuse_in_run(Path(), "output")
        return path

    return typer.Option("--output", "-o", help=help, callback=checked)


def opened(folder: Path | None) -> Path | None:
    """Return the folder of a run that can be read; what is not as it was scored is told in one line on stderr."""
    from equivox.run.opening import open_run

    if folder is not None:
        refuse_unusable(folder, "run")
        if (told := open_run(folder)) is not None:
            echo_error(told)
    return folder


def _runs_opened(named: list[Path], *, every: bool) -> list[Path]:
    """Return the folders among `named`; of task files the code is known afterwards.

    Unless `every` run is needed, one of several that cannot be read is left to the command, which names it.
    """
    from equivox.tasks.registry import is_task_file

    folders = [path for path in named if not is_task_file(path.name)]
    if not folders:
        raise UsageError(f"a run is missing before {named[0]}; name its folder")
    _give([path for path in named if path not in folders])
    for folder in folders:
        with nullcontext() if every or len(folders) == 1 else suppress(EquivoxError):
            opened(folder)
    return folders


def _give(files: list[Path] | None) -> None:
    """Make the code of task files known."""
    from equivox.tasks.registry import open_task_file

    for file in files or ():
        open_task_file(file)


def runs_argument(help: str, *, every: bool = False) -> Any:
    """Return the argument for one or more folders of runs; task files among them make their code known.

    A command that needs `every` run is refused where one cannot be read.
    """

    def named(runs: list[Path]) -> list[Path]:
        return _runs_opened(runs, every=every)

    return typer.Argument(metavar="RUN...", help=help, callback=named)


def takes_task_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command about one run with a further argument: task files whose code the run needs."""
    signature = inspect.signature(command, eval_str=True)
    if RunArgument not in [parameter.annotation for parameter in signature.parameters.values()]:
        return command

    @functools.wraps(command)
    def without(**given: Any) -> Any:
        given.pop("task_files")
        return command(**given)

    files = inspect.Parameter("task_files", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=TaskFilesArgument)
    parameters = [*signature.parameters.values(), files]
    without.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return without


def takes_settings(*left_out: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that gives a command an option for every setting of a run, in place of its `**settings`.

    The settings named in `left_out` get none. An option that nobody typed is None or False.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            is_settings = parameter.kind is inspect.Parameter.VAR_KEYWORD
            parameters += _settings(left_out) if is_settings else [parameter]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _settings(left_out: Collection[str]) -> list[inspect.Parameter]:
    """Return a parameter for each setting of a run but those in `left_out`."""
    found = []
    for name, (kind, help) in TYPED.items():
        if name in left_out:
            continue
        option = typer.Option(*_NAMES.get(name, (f"--{name.replace('_', '-')}",)), help=help, show_default=False)
        default, annotation = (False, bool) if kind is bool else (None, kind | None)
        found.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
            )
        )
    return found


_NAMES = {"data": ("--data", "--data-dir"), "options": ("--scoring",)}
"""The names of options that are not those of their settings."""


def columns_named(given: Sequence[str]) -> dict[str, str]:
    """Return our name of a column → the file's; UsageError for what is not written so."""
    names = {}
    for entry in given:
        ours, equals, theirs = entry.partition("=")
        if not (ours and equals and theirs):
            raise UsageError(f"`--column` is written OURS=THEIRS, such as response=narrative; got {entry!r}")
        names[ours.strip()] = theirs
    return names


def names_in(text: str) -> list[str]:
    """Return the names in a text that commas separate.

    >>> names_in("rules, qwen3-8b,")
    ['rules', 'qwen3-8b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


TasksArgument = Annotated[
    str, typer.Argument(metavar="TASKS", help="Name tasks, families or task files, separated by commas.")
]
TaskFilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE...]", help="Name task files whose code the run needs.", callback=_give),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Name the folder of a run.", callback=opened)]
TrustOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Allow models to run code from their own repositories.")
]
ScoringOption = Annotated[
    str | None, typer.Option("--scoring", metavar="KEY=VALUE,…", help=SCORING_HELP, show_default=False)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress bars.")]
WorkersOption = Annotated[
    int,
    typer.Option(min=1, help="Start this many copies of the model, each on its own GPUs (needs `.[ray]`)."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Use the Ray cluster at this address; default: this machine."),
]
RedoJudgeOption = Annotated[bool, typer.Option("--redo-judge", help=TYPED["redo_judge"][1])]
DetailsOption = Annotated[bool, typer.Option("--details", help="Print every number above the summary.")]
ExplainOption = Annotated[str | None, typer.Option(metavar="NAME", help="Explain one column of --details and exit.")]
AuditedOption = Annotated[str | None, typer.Option(help="Check this annotator; default: the run's annotator.")]
