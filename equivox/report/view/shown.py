"""The runs that `equivox view` shows: the page about them, and their answers a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from equivox.compare.runs import ComparedRun, caveats_of, compared_run, open_comparison
from equivox.core.errors import UsageError
from equivox.core.text import how_many
from equivox.engines import model_label
from equivox.report.details import list_score_tables
from equivox.report.page import render_runs
from equivox.report.page.examples import list_wordings
from equivox.report.view.answers import Answers, RunTables
from equivox.report.view.media import Corpora, read_medium
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.opening import LeftOut, by_name, usable_runs
from equivox.run.plan import PLAN_FILE
from equivox.run.scoring import read_scores

SIZE = 10
"""Pairs of a page."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Some runs as they are now, with the answers to the tasks that were looked at.

    `tables` has the plan and the responses of each run; a run that was stopped before its plan has none. `left_out` are
    the folders that cannot be read, `data` is where the corpora are now.
    """

    runs: Sequence[ComparedRun]
    caveats: Sequence[str]
    tables: Mapping[Path, RunTables]
    left_out: Sequence[LeftOut]
    data: str | None
    answers: dict[str, Answers] = field(default_factory=dict, repr=False)
    corpora: Corpora = field(default_factory=dict, repr=False)

    @cached_property
    def page(self) -> str:
        """The page about all runs."""
        offered = [(run.model, [task.name for task in read_tasks(run.folder)]) for run in self.runs]
        scored = [run for run in self.runs if run.scores]
        waiting = [f"{run.model} is not scored yet; load this page again" for run in self.runs if not run.scores]
        tables = {"Scores": list_score_tables(scored)} if scored else {}
        return render_runs(self.runs, [*self.caveats, *waiting], tables, offered=offered)

    def read_answers(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return a page of answers as plain values.

        `given` has the `task` as `RUN/NAME`, the number of the `page`, and filters: `group`, `status`, `value` and
        `search`. Pairs of groups that differ in what is searched for come first. UsageError for an unknown task.
        """
        answers, value, page = self._open_answers(given), given.get("value", ""), given.get("page", "0")
        run = next(run for run in self.runs if run.folder == answers.run.folder)
        wordings = list_wordings(run, value) if value else set()
        filters = {key: given.get(key, "") for key in ("group", "status", "search")}
        matching = answers.match(values=wordings, **filters)
        pairs = answers.order_pairs(matching)
        first = SIZE * (int(page) if page.isdecimal() else 0)
        return {
            "tally": f"{int(matching.sum()):,} of {how_many(len(matching), 'answer')}",
            "reason": answers.reason,
            "groups": [group for group in answers.groups if group],
            "picked": sorted(wordings),
            "pages": -(-len(pairs) // SIZE),
            "pairs": answers.describe(pairs[first : first + SIZE].tolist()),
        }

    def read_medium(self, given: Mapping[str, str]) -> tuple[bytes, str]:
        """Return a recording or picture and its type: the `number`th of a `row` of a `task`; UsageError without."""
        row, number = (int(given[name]) if given.get(name, "").isdecimal() else -1 for name in ("row", "number"))
        return read_medium(self._open_answers(given), row, number, self.data, self.corpora)

    def _open_answers(self, given: Mapping[str, str]) -> Answers:
        named = given.get("task", "")
        if named not in self.answers:
            runs = {f"{number}/": run.folder for number, run in enumerate(self.runs) if run.folder in self.tables}
            tasks = {f"{at}{task.name}": (folder, task) for at, folder in runs.items() for task in read_tasks(folder)}
            if named not in tasks:
                raise UsageError("there are no answers to this task yet; load the page again")
            folder, task = tasks[named]
            self.answers[named] = Answers.read(self.tables[folder], task)
        return self.answers[named]


def open_shown(folders: Sequence[Path], data: str | None = None) -> Shown:
    """Return some runs, scored or not, as far as they are; one that cannot be read is a caveat with its reason.

    UsageError if none can be read, or if a run is given twice. Nothing is written into the runs.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("`view` was given a run twice; name each once")
    tables: dict[Path, RunTables] = {}

    def check(folder: Path) -> None:
        if _is_scored(folder):
            read_scores(folder)
        if (folder / PLAN_FILE).is_file():
            tables[folder] = RunTables.read(folder, str(read_manifest(folder)["command"]["annotator"]))

    usable, left_out = usable_runs(by_name(folders), check)
    if not usable:
        raise UsageError("; ".join(caveats_of(left_out)))
    runs, caveats = _open_runs([folder for folder, _ in usable])
    return Shown(runs, [*caveats_of(left_out), *caveats], tables, left_out, data)


def _is_scored(folder: Path) -> bool:
    return (folder / "scores.json").is_file()


def _open_runs(folders: Sequence[Path]) -> tuple[list[ComparedRun], list[str]]:
    """Return the runs and why they may not be compared; unscored runs have no scores."""
    scored = [folder for folder in folders if _is_scored(folder)]
    if len(scored) == len(folders):
        comparison = open_comparison(folders)
        return list(comparison.runs), list(comparison.caveats)
    runs = {run.folder: run for run in open_comparison(scored).runs} if scored else {}
    for folder in folders:
        if folder not in runs:
            label = model_label(str(read_manifest(folder)["command"]["model"]))
            runs[folder] = compared_run(label, folder, ())
    return [runs[folder] for folder in folders], []
