"""`equivox audit label`: people label answers in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equivox.cli.output import echo
from equivox.core.errors import RequestError

if TYPE_CHECKING:
    from equivox.compare.label_folder import LabelFolder


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Options of the command line."""

    places: Sequence[Path]
    output: Path | None
    n: int
    per: Sequence[str]
    seed: int
    annotator: str | None
    stage: str | None
    judge: bool
    data: str | None
    media: bool
    adjudicate: bool
    host: str
    port: int
    browser: bool


def label(wish: Wish) -> None:
    """Serve the page that asks people until it is interrupted; where there are no items yet they are drawn first."""
    import webbrowser

    from equivox.compare.label_folder import LabelFolder
    from equivox.report.label.server import Desk, serve

    folder = _folder(wish)
    labels = LabelFolder(folder)
    if wish.adjudicate and len(labels.people()) < 2:
        raise RequestError(f"`adjudicate` needs the labels of two people, {folder} has {len(labels.people())}")

    def ready(address: str) -> None:
        echo(f"{address}  (Ctrl-C ends it; labels are saved in {folder})")
        if wish.browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # how a server is meant to end
        serve(Desk(labels, adjudicate=wish.adjudicate), host=wish.host, port=wish.port, ready=ready)
    _tell(labels)


def _tell(labels: LabelFolder) -> None:
    """Print how far people are, and what comes next."""
    from equivox.report.numbers import how_many

    folder, total = labels.folder, len(labels.items)
    people = labels.people()
    for person in people:
        echo(f"{person}: {labels.done(person)} of {total} answers")
    if not people:
        return
    if (differing := len(labels.differing())) and len(people) > 1:
        echo(f"People differ on {how_many(differing, 'answer')}, {len(labels.decisions())} are decided.")
        echo(f"Decide: `equivox audit label {folder} --adjudicate`")
    echo(f"Compare with the annotator: `equivox audit score {folder}`")


def _folder(wish: Wish) -> Path:
    """Return the label folder to go on with, or a new one of responses of the runs."""
    from equivox.compare.label_folder import SHEET_FILE
    from equivox.compare.labels import read_key
    from equivox.core.files import refuse_unusable
    from equivox.report.blind_sheet import drawn_counts, export_label_folder, refuse_used
    from equivox.report.stage_sheet import draw_sheet

    first = wish.places[0]
    if len(wish.places) == 1 and (first / SHEET_FILE).is_file():
        if wish.output is not None:
            raise RequestError("`output` is for new labels; a label folder keeps its own, so leave it out")
        return first
    for run in wish.places:
        refuse_unusable(run, "run")
    folder = (
        wish.output or first.resolve().parent / f"{first.resolve().name}-labels{f'-{wish.stage}' if wish.stage else ''}"
    )
    if (folder / SHEET_FILE).is_file():
        known = {Path(entry["run"]) for entry in read_key(folder).values()}
        if known != {run.resolve() for run in wish.places}:
            raise RequestError(
                f"{folder} holds labels of other runs ({', '.join(map(str, sorted(known)))}); name another `--output`"
            )
        echo(f"Going on with the labels in {folder}; `--output` makes new ones")
        return folder
    refuse_used(folder)
    drawn = draw_sheet(
        wish.places, wish.stage, n=wish.n, per=wish.per, seed=wish.seed, annotator=wish.annotator, judge=wish.judge
    )
    export_label_folder(drawn, folder, data=wish.data, media=wish.media)
    for (model, group), count in sorted(drawn_counts(drawn).items()):
        echo(f"{model}  {group or 'all'}: {count} answers")
    return folder
