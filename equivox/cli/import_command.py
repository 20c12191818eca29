"""`equivox import`: responses that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from equivox.cli.options import (
    ByAttributeOption,
    QuietOption,
    TasksArgument,
    columns_named,
    names_in,
    output_option,
    takes_settings,
)
from equivox.run.spec import RunSpec


@takes_settings("limit", "sampling", "retry_failed", "stop_after", "trust_remote_code")
def import_(
    responses: Annotated[
        Path, typer.Argument(metavar="FILE", help="Responses made elsewhere, a row each: CSV, TSV, JSON(L) or parquet.")
    ],
    tasks: TasksArgument,
    output: Annotated[Path, output_option("Where the run goes; a started one is resumed.")],
    model: Annotated[str | None, typer.Option(help="What the model is called; the file's name by default.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="Which column of the file is ours: response=narrative; repeatable."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Which columns tell what sample a row is about, separated by commas; sample_id, or those of the task.",
        ),
    ] = None,
    by_attribute: ByAttributeOption = False,
    quiet: QuietOption = False,
    **settings: Any,
) -> int:
    """Make a run of responses that were made elsewhere, annotate and score them as if the model had been asked here."""
    from equivox.tasks.registry import resolve_tasks

    name = responses.stem if model is None else model
    spec = RunSpec.typed(name, resolve_tasks(tasks), output, **settings)
    return _import_file(responses, spec, column or [], match, by_attribute=by_attribute, quiet=quiet)


def _import_file(
    file: Path, spec: RunSpec, columns: Sequence[str], match: str | None, *, by_attribute: bool, quiet: bool
) -> int:
    """Make a run of the responses in `file`, show its scores and how the rows met the requests."""
    from equivox.cli.show import compared_run, console, progress_bars, show_scores
    from equivox.run.generating import IMPORTED
    from equivox.run.importing import import_responses

    with progress_bars(quiet=quiet) as progress:
        found = import_responses(
            file, spec, columns=columns_named(columns), match=names_in(match or ""), progress=progress
        )
    code = show_scores([compared_run(f"{IMPORTED}:{spec.model}", spec.output, found.scores)], by_attribute=by_attribute)
    out = console()
    samples = "the rows describe their samples" if found.described else "matched to the corpus"
    missing = f"; requests without a row, which count as failed: {found.n_missing:,}" if found.n_missing else ""
    out.print(f"{found.n_rows:,} responses of {file.name}, {samples}{missing}.", markup=False)
    if found.without_rows:
        out.print(f"No row is about {', '.join(found.without_rows)}: not in this run.", markup=False)
    if any(task.media for task in spec.tasks):
        out.print("Whether the media reached the model cannot be known of responses made elsewhere.", markup=False)
    return code
