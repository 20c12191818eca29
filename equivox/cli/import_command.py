"""`equivox import`: responses that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equivox.cli.options import ByAttributeOption, QuietOption, data_option, names_in, output_option
from equivox.cli.scoring import with_scoring_options
from equivox.core.errors import RequestError
from equivox.core.scores import DEFAULT_OPTIONS, ScoringOptions

if TYPE_CHECKING:
    from equivox.run.pipeline import RunSpec


@with_scoring_options
def import_(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Responses made elsewhere, a row each: CSV, TSV, JSON(L) or parquet; or logs of inspect_ai.",
        ),
    ],
    output: Annotated[Path, output_option("Where the run goes; a started one is resumed.")],
    tasks: Annotated[
        str,
        typer.Argument(
            metavar="[TASKS]", help="Tasks, families or task files, separated by commas; a log says it itself."
        ),
    ] = "",
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
    data: Annotated[
        str | None, data_option("The corpus, as for `run`; not needed where the rows describe their samples.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the requests that were answered.")] = 0,
    group: Annotated[
        str | None, typer.Option(help="Compare another column of the samples, or several: gender×accent.")
    ] = None,
    conditions: Annotated[
        str, typer.Option(help="In which condition the responses were made: declared, text_only, silence.")
    ] = "declared",
    annotator: Annotated[
        str | None,
        typer.Option(help="Who annotates the responses: a name or a YAML file; `rules`, or the log's annotator."),
    ] = None,
    options: ScoringOptions = DEFAULT_OPTIONS,
    by_attribute: ByAttributeOption = False,
    quiet: QuietOption = False,
) -> int:
    """Make a run of responses that were made elsewhere, annotate and score them as if the model had been asked here."""
    from equivox.core.variants import parse_conditions, parse_group
    from equivox.integrations.inspect.asking import looks_like_log
    from equivox.run.pipeline import RunSpec
    from equivox.tasks.registry import resolve_tasks

    chosen = resolve_tasks(tasks) if tasks else None
    if looks_like_log(responses):
        given = {"--column": column, "--match": match, "--group": group, "--seed": seed}
        given["--conditions"] = conditions.replace("declared", "")
        if without_use := [name for name, value in given.items() if value]:
            raise RequestError(f"`{without_use[0]}` is for tables; a log says it itself: leave it out")
        return _import_log(
            responses, by_attribute=by_attribute, quiet=quiet,
            output=output, tasks=chosen, model=model, data=data, annotator=annotator, options=options,
        )  # fmt: skip
    if chosen is None:
        raise RequestError(f"TASKS is missing: which tasks does {responses.name} answer? For example vibe_gender")
    spec = RunSpec(
        model=responses.stem if model is None else model,
        tasks=chosen,
        output=output,
        data=data,
        seed=seed,
        group=None if group is None else parse_group(group),
        conditions=parse_conditions(conditions),
        annotator=annotator or "rules",
        options=options,
    )
    return _import_file(responses, spec, column or [], match, by_attribute=by_attribute, quiet=quiet)


def _import_file(
    file: Path, spec: RunSpec, columns: Sequence[str], match: str | None, *, by_attribute: bool, quiet: bool
) -> int:
    """Make a run of the responses in `file`, show its scores and how the rows met the requests."""
    from equivox.cli.show import compared_run, console, progress_bars, show_scores
    from equivox.run.importing import import_responses
    from equivox.run.pipeline import IMPORTED

    with progress_bars(quiet=quiet) as progress:
        found = import_responses(file, spec, columns=_renamed(columns), match=names_in(match or ""), progress=progress)
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


def _import_log(log: Path, *, by_attribute: bool, quiet: bool, **asked: Any) -> int:
    """Make a run of logs of inspect_ai and show its scores; `asked` goes to `import_logs`."""
    from equivox.cli.export_command import needs_extra
    from equivox.cli.show import compared_run, console, progress_bars, show_scores

    with needs_extra("inspect"):
        from equivox.integrations.inspect.importing import import_logs
    with progress_bars(quiet=quiet) as progress:
        found = import_logs(log, asked.pop("output"), **asked, progress=progress)
    code = show_scores([compared_run(found.spec.model, found.spec.output, found.scores)], by_attribute=by_attribute)
    missing = f"; requests without an answer, which count as failed: {found.n_missing:,}" if found.n_missing else ""
    read = "annotated by" if asked["annotator"] else "with the log's annotations by"
    console().print(f"{found.n_answers:,} answers of {log.name}, {read} {found.annotator}{missing}.", markup=False)
    return code


def _renamed(given: Sequence[str]) -> dict[str, str]:
    """Return our name of a column → the file's; RequestError for what is not written so."""
    names = {}
    for entry in given:
        ours, equals, theirs = entry.partition("=")
        if not (ours and equals and theirs):
            raise RequestError(f"`--column` is written OURS=THEIRS, such as response=narrative; got {entry!r}")
        names[ours.strip()] = theirs
    return names
