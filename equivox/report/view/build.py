"""Build what the page reads: a document of all runs, and a table of answers for each task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.compare.runs import ComparedRun, caveats_of, compared_run, open_comparison
from equivox.core.errors import EquivoxError, RequestError
from equivox.core.files import write_text
from equivox.core.lazy import pa
from equivox.core.version import __version__
from equivox.engines import model_label
from equivox.report.view.answers import RunTables, answers_table, write_answers
from equivox.report.view.document import picture_document, run_document, task_document
from equivox.report.view.pairs import paired
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.opening import LeftOut, by_name, usable_runs
from equivox.run.plan import PLAN_FILE
from equivox.run.scoring import read_scores

DOCUMENT = "view.json"
"""The document that the page reads first; the tables lie beside it."""


Built = Mapping[str, "tuple[pa.Table, dict[str, Any]]"]
"""The table of answers to each task of a run, and what the page knows of the task before."""


class _Damaged(EquivoxError):
    """A run whose files cannot be read."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(reason)
        self.folder = folder


def build(folders: Sequence[Path], output: Path) -> tuple[dict[str, Any], list[Path]]:
    """Write what the page reads of the runs in `folders` into `output`; return the document and the runs in its order.

    A run without scores, or without a plan, is shown as far as it is; one that cannot be read is named with the reason.
    Nothing is written into the runs.
    """
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise RequestError("`view` was given a run twice; name each once")
    output.mkdir(parents=True, exist_ok=True)
    shown, left_out = usable(folders)
    while True:
        if not shown:
            raise RequestError("; ".join(caveats_of(left_out)))
        try:
            return _build(shown, left_out, output), shown
        except _Damaged as error:
            shown = [folder for folder in shown if folder != error.folder]
            left_out = [*left_out, (str(error.folder), str(error))]


def usable(folders: Sequence[Path]) -> tuple[list[Path], list[LeftOut]]:
    """Return the runs whose documents can be read, scored or not, and the others with the reason."""
    found, left_out = usable_runs(by_name(folders), lambda folder: is_scored(folder) and read_scores(folder))
    return [folder for folder, _ in found], left_out


def is_scored(folder: Path) -> bool:
    """Return whether a run has scores."""
    return (folder / "scores.json").is_file()


def _build(folders: Sequence[Path], left_out: Sequence[LeftOut], output: Path) -> dict[str, Any]:
    runs, caveats = _opened(folders)
    document: dict[str, Any] = {
        "kind": "equivox view",
        "version": __version__,
        "tables": "data/",
        "caveats": [*caveats_of(left_out), *caveats],
        "picture": picture_document(runs),
        "runs": [],
        "pair": [],
    }
    built: list[Built] = []
    for number, run in enumerate(runs):
        try:
            own = _tasks(run, output, number, keep=len(runs) > 1 and number < 2)
        except RequestError as error:
            raise _Damaged(run.folder, str(error)) from error
        built.append(own)
        entry = run_document(run)
        document["runs"].append(entry | {"tasks": [entry for _, entry in own.values()]})
    if len(built) > 1:
        document["pair"] = list(_pairs(built[0], built[1], output))
    write_text(output / DOCUMENT, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
    return document


def _tasks(run: ComparedRun, output: Path, number: int, *, keep: bool) -> Built:
    """Write the answers to each task of a run; what is returned has them too, where `keep` says so."""
    tasks = read_tasks(run.folder)
    if not (run.folder / PLAN_FILE).is_file():
        return {}  # stopped before it was planned: the page shows how far it is
    tables = RunTables.of(run.folder, run.annotator)
    found: dict[str, tuple[pa.Table, dict[str, Any]]] = {}
    for place, task in enumerate(tasks):
        table, reason = answers_table(tables, task)
        entry = task_document(run, task, table, reason) | {"file": f"run{number}-task{place}.parquet"}
        write_answers(output / entry["file"], table)
        found[task.name] = (table if keep else table.slice(0, 0), entry)
    return found


def _opened(folders: Sequence[Path]) -> tuple[list[ComparedRun], list[str]]:
    """Return the runs with q over all of them, and why they may not be compared; unscored runs have no scores."""
    scored = [folder for folder in folders if is_scored(folder)]
    if len(scored) == len(folders):
        comparison = open_comparison(folders)
        return list(comparison.runs), list(comparison.caveats)
    found = {}
    for folder in folders:
        if folder not in scored:
            label = model_label(str(read_manifest(folder)["command"]["model"]))
            found[folder] = compared_run(label, folder, ())
    if scored:
        found |= {run.folder: run for run in open_comparison(scored).runs}
    return [found[folder] for folder in folders], []


def _pairs(first: Built, second: Built, output: Path) -> Iterator[dict[str, Any]]:
    for name, (answers, entry) in first.items():
        if name in second:
            table, counts = paired(answers, second[name][0])
            file = f"changed-{entry['file'].partition('-')[2]}"
            write_answers(output / file, table)
            yield {"task": name, "file": file, "n": len(table), **counts}
