"""`equivox import`: responses that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError

if TYPE_CHECKING:
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


def _renamed(given: Sequence[str]) -> dict[str, str]:
    """Return our name of a column → the file's; RequestError for what is not written so."""
    names = {}
    for entry in given:
        ours, equals, theirs = entry.partition("=")
        if not (ours and equals and theirs):
            raise RequestError(f"`--column` is written OURS=THEIRS, such as response=narrative; got {entry!r}")
        names[ours.strip()] = theirs
    return names
