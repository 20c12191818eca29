"""The scoring stage: from what is stored to scores; no engine and no annotator is opened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from equivox.annotate.base import annotation_key
from equivox.errors import RequestError
from equivox.families import with_q
from equivox.manifest import read_manifest
from equivox.progress import Progress, no_progress
from equivox.reading import plan_rows, stored_annotations, stored_annotator, stored_responses, values_by_attribute
from equivox.scores import Row, Score, ScoringOptions, ScoringTable
from equivox.store import write_text
from equivox.task import Task


def scoring_rows(folder: Path, tasks: Sequence[Task], annotator: str) -> dict[str, list[Row]]:
    """Return, for each task, one row per planned request with what became of it."""
    by_name = {task.name: task for task in tasks}
    identity = stored_annotator(folder, annotator)
    responses, annotations = stored_responses(folder), stored_annotations(folder, annotator)
    rows: dict[str, list[Row]] = {task.name: [] for task in tasks}
    for planned in plan_rows(folder):
        response = responses.get(planned["key"])
        status, values = "missing", {}
        if response is not None and response["text"] is None:
            status = "failed"
        elif response is not None:
            key = annotation_key(identity, by_name[planned["task"]], planned["key"], response["text"])
            annotation = annotations.get(key)
            status = annotation["status"] if annotation else "unparsed"
            values = values_by_attribute(annotation["values"]) if annotation else {}
        rows[planned["task"]].append(
            Row(
                group=planned["group"],
                cluster=planned["cluster"],
                stratum=planned["stratum"],
                status=status,
                values=values,
            )
        )
    return rows


def score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: str,
    options: ScoringOptions,
    *,
    progress: Progress = no_progress,
) -> list[Score]:
    """Compute all scores of the run in `folder` from the readings of `annotator`, store them, and return them."""
    rows = scoring_rows(folder, tasks, annotator)
    scores: list[Score] = []
    progress("score", 0, len(tasks))
    for number, task in enumerate(tasks, start=1):
        scores += task.scorer(task, ScoringTable(rows[task.name], options))
        progress("score", number, len(tasks))
    scores = with_q(scores)
    document = {
        "annotator": stored_annotator(folder, annotator).as_dict(),
        "options": vars(options),
        "scores": [entry.as_dict() for entry in scores],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(scores_path(folder, annotator), text + "\n")
    return scores


def scores_path(folder: Path, annotator: str) -> Path:
    """Return where the scores by `annotator` lie: `scores.json` for the run's own, `scores-<name>.json` for others."""
    own = read_manifest(folder)["command"]["annotator"]
    return folder / ("scores.json" if annotator == own else f"scores-{annotator}.json")


def read_scores(folder: Path, annotator: str | None = None) -> list[Score]:
    """Return the scores that were last computed for the run in `folder`, by its own annotator or another."""
    path = folder / "scores.json" if annotator is None else scores_path(folder, annotator)
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError:
        raise RequestError(f"{folder} has no {path.name}; compute it with `equivox score {folder}`") from None
    return [Score.from_dict(record) for record in document["scores"]]
