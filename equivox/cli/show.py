"""Output of commands: progress on stderr, results on stdout."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, echo, echo_error, show_tables
from equivox.compare.agreement import agreement
from equivox.compare.runs import ComparedRun, compared_run
from equivox.compare.verification import verify_with_labels
from equivox.core.endings import TRUNCATED, WITHHELD
from equivox.core.errors import UsageError
from equivox.core.files import write_whole
from equivox.core.lazy import pc
from equivox.core.notes import ErrorKind
from equivox.core.progress import Event
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.text import how_many
from equivox.report.details import list_change_tables, list_score_tables
from equivox.report.failures import annotation_failures, find_unreadable_reply, request_failures
from equivox.report.numbers import DASH, in_words
from equivox.report.progress_bars import progress_bars
from equivox.report.table import Table
from equivox.report.verdict import write_screen
from equivox.run.generating import IMPORTED, count_failure_kinds, count_failures
from equivox.run.live import SILENT_S, Live, read_live, read_usage
from equivox.run.manifest import read_manifest
from equivox.run.opening import LeftOut, usable_runs
from equivox.run.plan import read_plan
from equivox.run.scoring import open_samples, read_scores, scores_path
from equivox.run.store import Store, annotations_folder, annotators_of, count_annotation_failures, response_schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from equivox.report.drawing import Format


def usable(
    named: Iterable[tuple[str, Callable[[], Path]]], *, verified: bool = False
) -> tuple[list[tuple[Path, str]], list[LeftOut]]:
    """Return the scored runs that can be used, and the others, each named with its reason.

    With `verified` the numbers of a run must be those that its answers give. Names and folders are as in `usable_runs`.
    UsageError if none of several can be used.
    """

    def check(folder: Path) -> None:
        read_scores(folder)
        if verified:
            refuse_unverified(folder)

    found, left_out = usable_runs(named, check)
    for name, reason in left_out:
        echo_error(f"left out: {name}: {reason}")
    if not found:
        raise UsageError(f"none of the {len(left_out)} runs can be used; the lines above give the reasons")
    return found, left_out


def refuse_unverified(*runs: Path) -> None:
    """Raise UsageError for a run whose numbers are not what its answers give; computing them shows progress."""
    with progress_bars(quiet=False) as progress:
        for run in runs:
            if (doubt := verify_with_labels(run, progress=progress).doubt) is not None:
                raise UsageError(
                    f"{run} cannot be used: its numbers differ from those of its answers ({doubt}); `equivox verify` "
                    "lists them, `equivox score` computes the scores again, and the run's command sends missing "
                    "requests"
                )


def show_scores(named: Sequence[tuple[str, Path, Sequence[Score], str | None]], *, details: bool = False) -> int:
    """Print what runs say: what failed, then the first screen; return 1 if a task has no result.

    `named` holds the model, the folder, the scores of each run, and by which annotator they are, None: by its own. With
    `details` every field of every score stands before the screen.
    """
    runs = [compared_run(*each) for each in named]
    if details:
        show_tables(list_score_tables(runs))
    show_tables(list_change_tables(runs))
    failed = 0
    for run in runs:
        _show_usage(run.folder)
        if served := read_manifest(run.folder).get("served_as"):
            echo(f"  the server answered as {', '.join(served)}")
        if run.annotator_answered:
            echo(f"  the server of the annotator {run.annotator} answered as {run.annotator_answered}")
        _show_failures(run.folder)
        failed += _show_annotation_failures(
            run.folder, run.annotator, *count_annotation_failures(run.folder, run.annotator)
        )
        _show_annotator(run)
    echo(f"\n{write_screen(runs)}\n")
    return code_of((score for run in runs for score in run.scores), lacking=bool(failed))


def code_of(scores: Iterable[Score], *, lacking: bool = False) -> int:
    """Return 1 if a task's score has no result, and say how many have none, or if something else is lacking; else 0."""
    undefined = sum(score.is_whole and score.outcome == "no_result" for score in scores)
    if undefined:
        echo(f"{how_many(undefined, 'score')} of whole tasks without a result; `--details` shows why.", "yellow")
    return EXIT_INCOMPLETE if undefined or lacking else EXIT_DONE


def show_older(folder: Path, first: Sequence[Event]) -> None:
    """Print how many responses of a run are of an earlier start: the model may have changed since.

    `first` holds the first event of the start that has just ended, if there was one.
    """
    for done, total in ((event.done, event.total) for event in first if event.done):
        began = f"by the run that began {read_manifest(folder)['created']}"
        told = f"{done} of {total} responses were already saved {began}"
        if done == total:
            failed = count_failures(folder).total()
            of_them = f"; `--retry-failed` repeats the {failed} that failed" if failed else ""
            told = f"All {total} responses were already saved {began}{of_them}"
        echo(f"{told}; to start over, give another `--output` than {folder}", "yellow")


def _show_annotator(run: ComparedRun) -> None:
    """Print by whom the scores are, if not by the run's annotator, and how that changes."""
    own = read_manifest(run.folder)["command"]["annotator"]
    if run.annotator != own:
        echo(
            f"  {run.annotator} gave these scores. Tables and reports show the scores by {own}, the run's annotator; "
            f"to change that, use `equivox score {run.folder} --use {run.annotator}`"
        )


def _show_usage(folder: Path) -> None:
    """Print what the servers of the model and of each annotator were asked for."""
    used = [("the model", read_usage(folder))]
    used += [(f"the annotator {name}", read_usage(annotations_folder(folder, name))) for name in annotators_of(folder)]
    for who, usage in used:
        if not usage:
            continue
        sent = how_many(round(usage["requests"]), "request")
        echo(
            f"  the server of {who} received {sent}: {usage['prompt_tokens']:.0f} prompt and "
            f"{usage['completion_tokens']:.0f} completion tokens"
        )


def _show_failures(folder: Path) -> None:
    """Print what requests to the model failed on, by their errors, and how they are asked again."""
    failures = count_failures(folder)
    for line in request_failures(failures, 10):
        echo(f"  {line}")
    # A recording that cannot be used is the corpus's, and no model was asked about it.
    kinds = count_failure_kinds(folder)
    if kinds.total() > kinds[ErrorKind.MEDIA] and read_manifest(folder)["identity"]["model"]["engine"] != IMPORTED:
        echo("  Repeat the run's command with --retry-failed to send the failed requests again.", "yellow")


def show_agreement(folder: Path, tasks: Sequence[Task]) -> None:
    """Print the agreement of a run's annotators on each attribute; nothing with fewer than two."""
    found = agreement(folder, tasks)
    if not found:
        return
    table = Table(
        caption=f"Agreement of {', '.join(found[0].annotators)}",
        columns=("task", "attribute", "Krippendorff's α", "responses", ""),
        align="llrrl",
        rows=[
            [o.task, o.attribute, DASH if o.undefined else f"{o.alpha:.3f}", str(o.n_responses), o.undefined or ""]
            for o in found
        ],
    )
    show_tables([table])


def show_status(folder: Path, tasks: Sequence[Task]) -> int:
    """Print done, missing, failed and annotated requests of a run; return 1 while requests or scores are missing."""
    names = annotators_of(folder)
    counted = _count_requests(folder, tasks, names)
    columns = (*_COUNTED, *(f"{what} by {name}" for name in names for what in _ANNOTATED))
    rows = [
        [task, *(DASH if counts[name] is None else str(counts[name]) for name in columns)] for task, counts in counted
    ]
    align = "l" + "r" * len(columns)
    show_tables([Table(caption=str(folder), columns=("task", *columns), align=align, rows=rows)])
    live = read_live(folder)
    missing = (
        any(counts["missing"] for _, counts in counted) or live is not None or not scores_path(folder, None).exists()
    )
    _show_failures(folder)
    if live is not None:
        echo(f"  {live_line(live, time.time())}")
    unannotated = sum(
        [_show_annotation_failures(folder, name, *count_annotation_failures(folder, name)) for name in names]
    )
    _show_usage(folder)
    if missing and (live is None or live.age(time.time()) > SILENT_S):
        echo("Repeat the command that began this run to resume it.")
    return EXIT_INCOMPLETE if missing or unannotated else EXIT_DONE


_COUNTED = ("requested", "answered", "failed", "missing", "cut off", "withheld")
_ANNOTATED = {"annotated": ("parsed", "refused", "empty"), "found refused or empty": ("refused", "empty")}
"""What an annotator can tell of a response, and the statuses that say so."""


def _count_requests(
    folder: Path, tasks: Sequence[Task], annotators: Sequence[str]
) -> list[tuple[str, dict[str, int | None]]]:
    """Return the numbers of requests of each task by what became of them, which are columns of a table.

    Responses that an annotator could tell something of are annotated; None if its annotations are stale or not
    complete.
    """
    plan = read_plan(folder).select(["task", "key"])
    responses = Store(folder / "responses", response_schema()).table(("key", "error", "finish_reason")).combine_chunks()
    found = []
    for task in tasks:
        keys = plan.filter(pc.equal(plan["task"], task.name))["key"]
        place = pc.index_in(keys, value_set=responses["key"].combine_chunks())
        errors, ended = responses["error"].take(place), responses["finish_reason"].take(place).to_pylist()
        missing, failed = place.null_count, len(errors) - errors.null_count
        numbers = (
            len(keys),
            len(keys) - missing - failed,
            failed,
            missing,
            ended.count(TRUNCATED),
            ended.count(WITHHELD),
        )
        counts: dict[str, int | None] = dict(zip(_COUNTED, numbers, strict=True))
        for name in annotators:
            try:
                samples = open_samples(folder, [task], name)[task.name]
            except UsageError:
                samples = None
            for what, statuses in _ANNOTATED.items():
                counts[f"{what} by {name}"] = None if samples is None else int(samples.has_status(*statuses).sum())
        found.append((task.name, counts))
    return found


def live_line(live: Live, now: float) -> str:
    """Return in words how far a run is that is under way, or where it was stopped.

    >>> run = Live(
    ...     "generate", 40, 100, failed=1, waiting="2 of 2 workers", per_second=3.0, noted=1e9, host="a", process=7
    ... )
    >>> live_line(run, 1e9 + 1)
    'generate: 40 of 100, 1 failed, 3.0 a second, about 20 s left, 2 of 2 workers (noted 1 s ago by process 7 on a)'
    >>> live_line(run, 1e9 + 7200)
    'generate stopped, or hangs: 40 of 100, 1 failed, 2 of 2 workers (noted 2 h ago by process 7 on a)'
    """
    silent = live.age(now) > SILENT_S
    words = [f"{live.done} of {live.total}"]
    words += [f"{live.failed} failed"] if live.failed else []
    if not silent and math.isfinite(live.seconds_left):
        words += [f"{live.per_second:.1f} a second", f"about {in_words(live.seconds_left)} left"]
    words += [live.waiting] if live.waiting else []
    return (
        f"{live.stage}{' stopped, or hangs' if silent else ''}: {', '.join(words)} "
        f"(noted {in_words(live.age(now))} ago by process {live.process} on {live.host})"
    )


def _show_annotation_failures(folder: Path, annotator: str, failures: Counter[str], unreadable: Counter[str]) -> int:
    """Print what an annotator failed on, one unreadable reply, and the repair; return how often it failed."""
    for line in annotation_failures(annotator, failures, unreadable):
        echo(f"  {line}")
    if unreadable and (reply := find_unreadable_reply(folder, annotator)) is not None:
        echo(f"    such as: {reply}")
    if failures or unreadable:
        echo("  Fix the judge, then repeat its command with --redo-judge: it repeats only these annotations.", "yellow")
    return failures.total()


def figure_format(path: Path, option: str) -> Format:
    """Return the format that the file's name asks for; UsageError for another than svg, png or pdf."""
    from equivox.report.drawing import Format

    kind = path.suffix.removeprefix(".")
    if kind not in get_args(Format):
        raise UsageError(f"`{option}` must end in .svg, .png or .pdf, got {path.name}")
    return kind  # type: ignore[return-value]


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure in the format of its file's name, whole or not at all, and say where it is."""
    from equivox.report.drawing import rendered

    drawn = rendered(figure, figure_format(path, "output"))
    write_whole(path, lambda temporary: temporary.write_bytes(drawn))
    echo(f"Figure: {path.resolve()}")
