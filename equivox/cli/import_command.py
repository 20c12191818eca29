"""`equivox import`: responses that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from equivox.core.scores import ScoringOptions
    from equivox.run.pipeline import RunSpec


def import_file(
    file: Path, spec: RunSpec, columns: Sequence[str], match: str | None, *, by_attribute: bool, quiet: bool
) -> int:
    """Make a run of the responses in `file`, show its scores and how the rows met the requests."""
    from equivox.cli.show import compared_run, console, progress_bars, show_scores
    from equivox.run.importing import import_responses
    from equivox.run.pipeline import IMPORTED

    by = [name.strip() for name in (match or "").split(",") if name.strip()]
    with progress_bars(quiet=quiet) as progress:
        found = import_responses(file, spec, columns=_renamed(columns), match=by, progress=progress)
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


def is_log(path: Path) -> bool:
    """Return whether `path` is a log of inspect_ai, or a folder of such logs; only its name or beginning is read."""
    from equivox.integrations.inspect.asking import looks_like_log

    return looks_like_log(path)


@dataclass(frozen=True)
class LogWish:
    """The options of an import of logs, as they were given."""

    log: Path
    output: Path
    tasks: str
    model: str | None
    data: str | None
    annotator: str | None
    options: ScoringOptions


def import_log(wish: LogWish, without_use: Sequence[str], *, by_attribute: bool, quiet: bool) -> int:
    """Make a run of a log of inspect_ai, or of a folder of logs, and show its scores.

    `without_use` names given options that a log determines itself; they are refused.
    """
    from equivox.cli.export_command import needs_extra
    from equivox.cli.show import compared_run, console, progress_bars, show_scores
    from equivox.tasks.registry import resolve_tasks

    if without_use:
        raise RequestError(f"`{without_use[0]}` is for tables; a log says it itself: leave it out")
    with needs_extra("inspect"):
        from equivox.integrations.inspect.importing import import_logs
    with progress_bars(quiet=quiet) as progress:
        found = import_logs(
            wish.log, wish.output, tasks=resolve_tasks(wish.tasks) if wish.tasks else None, model=wish.model,
            data=wish.data, annotator=wish.annotator, options=wish.options, progress=progress,
        )  # fmt: skip
    code = show_scores([compared_run(found.spec.model, wish.output, found.scores)], by_attribute=by_attribute)
    missing = f"; requests without an answer, which count as failed: {found.n_missing:,}" if found.n_missing else ""
    read = "annotated by" if wish.annotator else "with the log's annotations by"
    console().print(f"{found.n_answers:,} answers of {wish.log.name}, {read} {found.annotator}{missing}.", markup=False)
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
