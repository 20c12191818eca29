"""The page: verdicts of runs as one HTML document; `equivox report` writes it, and `equivox view` adds the answers.

The content of a run is not trusted: the template escapes all of it, and the page's Content-Security-Policy allows
only the one script of this package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from equivox.compare.ranking import judge
from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.redact import without_places
from equivox.core.version import __version__
from equivox.report.details import list_comparison_tables, list_score_tables, make_test_frames
from equivox.report.failures import annotation_failures, request_failures
from equivox.report.page.document import describe_runs
from equivox.report.page.examples import find_examples
from equivox.report.safe_page import render_page
from equivox.report.table import Table, as_html
from equivox.report.view.answers import STATUSES
from equivox.run.generating import count_failures
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.opening import LeftOut
from equivox.run.store import count_annotation_failures

MOST_ERRORS = 5
"""Errors of a run that are listed, the most frequent first."""


def build_report(
    folders: Sequence[Path], left_out: Sequence[LeftOut] = (), *, examples: int = 0, data: str | None = None
) -> str:
    """Return the report of the runs in `folders` as HTML, which names the runs in `left_out` with their reasons.

    `examples` pairs of answers are shown of each difference with their recordings or pictures, none by default: the
    papers' ethics sections ask for care with single answers. `data` is where the corpora are now.
    """
    comparison = open_comparison(folders, left_out)
    pairs = find_examples(comparison.runs, examples, data) if examples else {}
    tables = {"Scores": list_score_tables(comparison.runs)}
    for each in list_comparison_tables(make_test_frames(judge(comparison)), details=True).values():
        tables[each[0].caption.partition(":")[0]] = each
    return render_runs(comparison.runs, comparison.caveats, tables, examples=pairs)


def render_runs(
    runs: Sequence[ComparedRun],
    caveats: Sequence[str],
    tables: Mapping[str, Sequence[Table]],
    *,
    examples: Mapping[tuple[str, str], Any] | None = None,
    offered: Sequence[tuple[str, Sequence[str]]] = (),
) -> str:
    """Return the page about some runs; with `offered`, each model with its tasks, it reads answers from its server.

    `tables` are all numbers by title, `examples` are pairs of answers by model and task.
    """
    source = resources.files(__name__)
    return render_page(
        source.joinpath("page.html.j2"),
        styles=[source.joinpath("page.css")],
        script=source.joinpath("page.js"),
        **describe_runs(runs),
        version=__version__,
        caveats=caveats,
        numbers={title: [as_html(table) for table in own] for title, own in tables.items()},
        failures=list(_list_failures(runs)),
        manifests=[(run.model, _write_manifest(run.folder)) for run in runs],
        examples=examples or {},
        offered=offered,
        statuses=STATUSES,
    )


def _list_failures(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """Yield what requests and annotations of each run failed on."""
    for run in runs:
        annotated = count_annotation_failures(run.folder, run.annotator)
        requested = request_failures(count_failures(run.folder), MOST_ERRORS)
        for line in (*requested, *annotation_failures(run.annotator, *annotated)):
            yield f"{run.model}: {line}"


def _write_manifest(folder: Path) -> str:
    """Return what a run states of itself, without paths of this machine and without the hashes of its files."""
    manifest = public_manifest(read_manifest(folder))
    manifest.pop("files", None)
    return json.dumps(without_places(manifest), indent=1, ensure_ascii=False)
