"""What commands show: progress on stderr, results on stdout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
from equivox.compare.agreement import agreement
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.report.numbers import DASH, interval, percent, score_value
from equivox.report.progress_bars import progress_bars
from equivox.report.tables import print_attribute_scores, print_task_scores
from equivox.run.annotating import annotators_of
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import count_failures, read_usage
from equivox.run.status import count_requests

if TYPE_CHECKING:
    from equivox.dataset_builders.continuations import Diversity, DomainStatistics

__all__ = ["Shown", "console", "progress_bars", "show_agreement", "show_continuations", "show_scores", "show_status"]

_WIDTH = 400
"""Wider than any table: a narrow terminal wraps lines rather than lose digits."""


def console() -> Console:
    """Return the console for results, on which every table has its natural width."""
    return Console(highlight=False, width=_WIDTH)


@dataclass(frozen=True)
class Shown:
    """One finished run to be shown: which model, where it lies, what it scored."""

    model: str
    folder: Path
    scores: Sequence[Score]


def show_scores(runs: Sequence[Shown], *, by_attribute: bool = False) -> int:
    """Print the scores of `runs`, what they lost and where they lie; return 1 when a task's score is undefined."""
    out = console()
    print_task_scores(out, [(run.model, run.scores) for run in runs])
    for run in runs:
        if by_attribute:
            print_attribute_scores(out, run.scores)
        _show_losses(out, run)
        _show_usage(out, run.folder)
    out.print(f"\nStored in {', '.join(str(run.folder) for run in runs)}", markup=False)
    if not by_attribute:
        out.print("`equivox score RUN --by-attribute` shows every attribute of a run.", markup=False)
    undefined = sum(score.is_whole and not score.defined for run in runs for score in run.scores)
    if undefined:
        out.print(f"{undefined} task score(s) undefined, see above.", style="yellow")
    return EXIT_INCOMPLETE if undefined else EXIT_DONE


def _show_usage(out: Console, folder: Path) -> None:
    usage = read_usage(folder)
    if usage:
        cost = f", cost {usage['cost']:.2f}" if usage["cost"] else ""
        out.print(
            f"  the server was asked {usage['requests']:.0f} times: {usage['prompt_tokens']:.0f} prompt and "
            f"{usage['completion_tokens']:.0f} completion tokens{cost}",
            markup=False,
        )


def _show_losses(out: Console, run: Shown, shown: int = 10) -> None:
    told = set()
    for score in run.scores:
        c = score.coverage
        losses = (score.task, c.requested, c.generated, c.answered, c.parsed, c.used)
        if not score.is_whole or c.used == c.requested or losses in told:
            continue
        told.add(losses)
        worst = f"; whatever the missing had said, {score.name} would lie in "
        worst += interval(score.worst_low, score.worst_high)
        out.print(
            f"  {run.model} {score.task}: {c.requested} requested → {c.generated} generated → {c.answered} "
            f"answered → {c.parsed} parsed → {c.used} used{worst if math.isfinite(score.worst_low) else ''}",
            markup=False,
        )
    for corpus, count in read_manifest(run.folder).get("samples_without_group", {}).items():
        out.print(f"  {count} samples of {corpus} carry no value of what is compared and were not asked", markup=False)
    failures = count_failures(run.folder)
    for error, count in failures.most_common(shown):
        out.print(f"  failed {count} times: {error}", markup=False)
    if len(failures) > shown:
        out.print(f"  … and {len(failures) - shown} other reasons, see {run.folder}/responses", markup=False)


def show_continuations(found: Mapping[str, DomainStatistics], diverse: Mapping[str, Diversity]) -> None:
    """Print what a corpus of continuations is like, one line per domain."""
    table = Table(box=None, pad_edge=False)
    names = ("domain", "speakers", "instances", "contexts", "mean seconds", "mean words", "agreement", "groups")
    rouge = ("mean ROUGE-L", "largest") if diverse else ()
    for name in (*names, *rouge):
        table.add_column(name, justify="left" if name in {"domain", "groups"} else "right")
    for domain, entry in found.items():
        means = (percent(entry.mean_seconds), percent(entry.mean_words))
        scores = (diverse[domain].mean, diverse[domain].largest) if diverse else ()
        table.add_row(
            domain,
            *(f"{count:,}" for count in (entry.speakers, entry.instances, entry.contexts)),
            *means,
            percent(100 * entry.agreement),
            escape(", ".join(f"{group} {count:,}" for group, count in entry.groups.items())),
            *(score_value(score, "share") for score in scores),
        )
    console().print(table)


def show_agreement(folder: Path, tasks: Sequence[Task]) -> None:
    """Print how far the annotators of a run agree, attribute by attribute; nothing with fewer than two."""
    found = agreement(folder, tasks)
    if not found:
        return
    table = Table(
        title=f"Agreement of {', '.join(found[0].annotators)}", title_justify="left", box=None, pad_edge=False
    )
    for name in ("task", "attribute", "Krippendorff's α", "responses", ""):
        table.add_column(name, justify="right" if name in {"Krippendorff's α", "responses"} else "left")
    for entry in found:
        alpha = DASH if entry.undefined else f"{entry.alpha:.3f}"
        table.add_row(entry.task, entry.attribute, alpha, str(entry.n_responses), escape(entry.undefined or ""))
    console().print(table)


def show_status(folder: Path, tasks: Sequence[Task]) -> int:
    """Print what of a run is done, missing and failed, and by whom it was annotated; 1 while something is missing."""
    out = console()
    names = annotators_of(folder)
    table = Table(title=str(folder), title_justify="left", box=None, pad_edge=False)
    for name in ("task", "requested", "answered", "failed", "missing", *(f"annotated by {name}" for name in names)):
        table.add_column(name, justify="left" if name == "task" else "right")
    missing = 0
    for counted in count_requests(folder, tasks):
        missing += counted.missing
        counts = (counted.requested, counted.answered, counted.failed, counted.missing)
        annotated = (counted.annotated.get(name) for name in names)
        table.add_row(
            counted.task,
            *(str(count) for count in counts),
            *(DASH if count is None else str(count) for count in annotated),
        )
    out.print(table)
    for error, count in count_failures(folder).most_common(10):
        out.print(f"  failed {count} times: {error}", markup=False)
    _show_usage(out, folder)
    if missing:
        out.print("Give the command that began this run again to go on.")
    return EXIT_INCOMPLETE if missing else EXIT_DONE
