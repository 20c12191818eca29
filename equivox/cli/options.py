"""Arguments and options that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def data_option(help: str) -> Any:
    """Return the option `--data`, which `--data-dir` means too."""
    return typer.Option("--data", "--data-dir", help=help)


def output_option(help: str, **further: Any) -> Any:
    """Return the option `--output`, in short `-o`."""
    return typer.Option("--output", "-o", help=help, **further)


def runs_argument(help: str) -> Any:
    """Return the argument for one or more folders of runs."""
    return typer.Argument(metavar="RUN...", help=help)


def names_in(text: str) -> list[str]:
    """Return the names in a text that commas separate.

    >>> names_in("rules, qwen3-8b,")
    ['rules', 'qwen3-8b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


TasksArgument = Annotated[
    str, typer.Argument(metavar="TASKS", help="Tasks, families or task files, separated by commas.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
RetryFailedOption = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again what failed before: the model, and the annotator.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code in the repositories of models that need it.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
WorkersOption = Annotated[
    int,
    typer.Option(
        min=1, help="How many engines answer at a time, each on GPUs of its own; several need `equivox[ray]`."
    ),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The Ray cluster that the workers run on; this machine by default."),
]
ByAttributeOption = Annotated[bool, typer.Option("--by-attribute", help="Show every attribute too.")]
CountOption = Annotated[int, typer.Option("--n", min=1, help="Responses of each combination of --per.")]
DrawOption = Annotated[int, typer.Option(help="Draws other responses.")]
StageOption = Annotated[
    str | None, typer.Option(help="One stage of an annotation in stages, such as narrative; see the benchmark.")
]
JudgeOption = Annotated[
    bool, typer.Option("--judge", help="With --stage: show the annotator's lists, and ask for precision and recall.")
]
RecordingsOption = Annotated[str | None, data_option("Where the recordings are now.")]
AuditedOption = Annotated[str | None, typer.Option(help="The annotator to check; the run's annotator by default.")]
