"""A leaderboard: all runs below a folder as one static page and as JSON, sortable, filtered by coverage and version.

Only scores that were measured in the same way may be ranked: rows show the versions of the task and of the corpus, and
the annotator. An undefined score has no rank, and its reason is shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.errors import RequestError
from equivox.core.scores import Score, Verdict, verdict
from equivox.core.version import __version__
from equivox.report.numbers import DASH, p_value, score_interval, score_value, share
from equivox.report.safe_page import render_page
from equivox.report.score_tables import marked
from equivox.report.verdicts import lost_shares, unequal_losses
from equivox.run.manifest import read_manifest


@dataclass(frozen=True, kw_only=True)
class Row:
    """One score of one run. `distance` is the estimated distance from "no bias"; None if it is undefined.

    `verdict` says whether a difference was found; `cannot_tell` says why the design could not have found anything,
    whatever the answers; None if it could, or if something was found. `lost` says which answers the groups lose
    unequally, with the largest and the smallest share; it is empty if none are. `data` and `task_version` are the
    beginnings of content hashes of corpus and task; rows in which they differ cannot be compared.
    """

    model: str
    task: str
    metric: str
    value: float | None
    distance: float | None
    ci_low: float | None
    ci_high: float | None
    p_cluster: float | None
    p_these: float | None
    q: float | None
    used: float
    lost: str
    data: str
    task_version: str
    limit: int | None
    annotator: str
    made_with: str
    run: str
    verdict: Verdict
    cannot_tell: str | None
    undefined: str | None
    shown: dict[str, str]


def find_runs(folder: Path) -> list[Path]:
    """Return the scored runs below `folder`; RequestError if there is none."""
    if not folder.is_dir():
        raise RequestError(f"`runs` must be a folder with runs in it, got {folder}")
    found = sorted(path.parent for path in folder.rglob("manifest.json") if (path.parent / "scores.json").is_file())
    if not found:
        raise RequestError(f"{folder} holds no scored run; give the folder that runs were written into")
    return found


def board_rows(runs: Sequence[Path], *, below: Path) -> list[Row]:
    """Return every score of a whole task of every run, in the order task, metric, distance; all lie in `below`.

    q is computed over all runs together.
    """
    comparison = open_comparison(runs)
    rows = [_row(run, score, below) for run in comparison.runs for score in run.scores if score.is_whole]
    return sorted(rows, key=lambda row: (row.task, row.metric, row.distance is None, row.distance or 0.0, row.model))


def _row(run: ComparedRun, score: Score, folder: Path) -> Row:
    manifest = read_manifest(run.folder)
    identity = manifest["identity"]
    plain = score.as_dict()
    used = score.coverage.used / score.coverage.requested if score.coverage.requested else 0.0
    distance = None if math.isnan(score.distance) else score.distance
    return Row(
        model=run.model,
        task=score.task,
        metric=score.name,
        **{name: plain[name] for name in ("value", "ci_low", "ci_high", "p_cluster", "p_these", "q", "undefined")},
        distance=distance,
        verdict=verdict([score]),
        cannot_tell=score.untold,
        used=used,
        lost="; ".join(
            f"{one.attribute}: {lost_shares(one.mover)}"
            for one in unequal_losses(run)
            if one.task == score.task and one.mover is not None
        ),
        data=" ".join(f"{name} {fingerprint[:8]}" for name, fingerprint in identity["corpora"].items()),
        task_version=str(identity["tasks"].get(score.task, ""))[:8],
        limit=identity["limit"],
        annotator=run.annotator,
        made_with=str(manifest["equivox"]),
        run=run.folder.relative_to(folder).as_posix(),
        shown={
            "value": score_value(score.value, score.unit) + marked(score),
            "distance": DASH if distance is None else score_value(distance, score.unit),
            "interval": score_interval(score.ci_low, score.ci_high, score.unit),
            "p": p_value(score.p_cluster),
            "p_these": p_value(score.p_these),
            "q": p_value(score.q),
            "used": share(score.coverage.used, score.coverage.requested),
        },
    )


def board_json(rows: Sequence[Row]) -> str:
    """Return the rows as JSON."""
    records: list[dict[str, Any]] = [
        {name: value for name, value in asdict(row).items() if name != "shown"} for row in rows
    ]
    return json.dumps({"equivox": __version__, "rows": records}, indent=1, ensure_ascii=False) + "\n"


def board_html(rows: Sequence[Row]) -> str:
    """Return the rows as one self-contained HTML page."""
    source = resources.files(__name__)
    return render_page(
        source.joinpath("board.html.j2"),
        style=resources.files("equivox.report.page").joinpath("report.css"),
        script=source.joinpath("board.js"),
        version=__version__,
        rows=rows,
        tasks=sorted({row.task for row in rows}),
        metrics=sorted({row.metric for row in rows}),
        versions=sorted({f"{row.data} · task {row.task_version}" for row in rows}),
    )
