"""What commands show: progress on stderr, results on stdout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
from equivox.report.tables import print_attribute_scores, print_task_scores
from equivox.run import Progress, no_progress
from equivox.scores import Score

_WIDTH = 400
"""Wider than any table: a narrow terminal wraps lines rather than lose digits."""


def console() -> Console:
    """Return the console for results, on which every table has its natural width."""
    return Console(highlight=False, width=_WIDTH)


@contextmanager
def progress_bars(*, quiet: bool, title: str = "") -> Iterator[Progress]:
    """Yield a progress callback that draws one bar per stage on stderr, or none."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    err = Console(stderr=True)
    if quiet or not err.is_terminal:
        yield no_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=err, transient=True) as bars:
        known: dict[str, object] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in known:
                known[stage] = bars.add_task(f"{title} {stage}".strip(), total=total)
            bars.update(known[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield show


def show_scores(scores_by_model: Mapping[str, Sequence[Score]], *, folder: Path, by_attribute: bool = False) -> int:
    """Print the scores and where they lie; return 1 when a task's score is undefined, else 0."""
    out = console()
    print_task_scores(out, scores_by_model)
    if by_attribute:
        for scores in scores_by_model.values():
            print_attribute_scores(out, scores)
    scores = [score for several in scores_by_model.values() for score in several]
    _show_losses(out, scores_by_model)
    out.print(f"\nStored in {folder}; `equivox score RUN --by-attribute` shows each attribute.", soft_wrap=True)
    undefined = [score for score in scores if score.attribute is None and not score.defined]
    if undefined:
        out.print(f"{len(undefined)} task score(s) undefined, see above.", style="yellow")
    return EXIT_INCOMPLETE if undefined else EXIT_DONE


def _show_losses(out: Console, scores_by_model: Mapping[str, Sequence[Score]]) -> None:
    for model, scores in scores_by_model.items():
        for score in scores:
            c = score.coverage
            if score.attribute is None and c.used < c.requested:
                out.print(
                    f"  {model} {score.task}: {c.requested} requested → {c.generated} generated → {c.answered} "
                    f"answered → {c.parsed} parsed → {c.used} used",
                    markup=False,
                )
