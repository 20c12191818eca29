"""Single answers on the report: drawn by chance, and the two of each model and task that show best what was found."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from equivox.audit.drawing import Drawn, draw
from equivox.audit.sheet import media_of, with_texts
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.errors import RequestError
from equivox.core.lazy import NDArray, np
from equivox.core.samples import Row, Samples
from equivox.core.segments import WHOLE
from equivox.core.task import Task
from equivox.report.view.answers import RunTables, answers_table
from equivox.report.view.document import telling_of
from equivox.run.scoring import sample_rows
from equivox.run.store import annotators_of


def drawn_examples(comparison: Comparison, wanted: int, data: str | None) -> list[dict[str, Any]]:
    """Return `wanted` answers of each model, task and group, drawn by chance."""
    drawn = draw([run.folder for run in comparison.runs], n=wanted, per=("model", "task", "group"))
    drawn = sorted(drawn, key=lambda one: (one.model, one.task.name, one.row.group, one.item))
    return as_examples(comparison, drawn, data)


def telling_pairs(comparison: Comparison, data: str | None) -> dict[tuple[str, str], dict[str, Any]]:
    """Return, by model and task, the two answers of two groups that show best what was found."""
    told = {}
    for run in comparison.runs:
        tables = RunTables.of(run.folder, run.annotator)
        for task in run.tasks:
            table, _ = answers_table(tables, task)
            if (telling := telling_of(run, task, table)) is not None:
                told[run.folder, task.name] = telling, [table["key"][row].as_py() for row in telling.rows]
    keys = [key for _, pair in told.values() for key in pair]

    def among(task: Task, samples: Samples) -> NDArray[np.bool_]:
        return np.isin(samples.keys, keys)

    drawn = draw([run.folder for run in comparison.runs], n=len(keys), per=("model", "task"), among=among)
    shown = dict(zip([one.row.key for one in drawn], as_examples(comparison, drawn, data), strict=True))
    labels = {run.folder: run.model for run in comparison.runs}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (folder, name), (telling, pair) in told.items():
        answers = [shown[key] for key in pair if key in shown]
        groups = [f"{one['group']} {round(n)} %" for one, n in zip(answers, telling.shares, strict=False)]
        found[labels[folder], name] = {
            "anchor": f"pair-{len(found)}",
            "title": f"{labels[folder]}, {name}",
            "about": f"{telling.attribute.replace('_', ' ')}: {telling.value}",
            "among": telling.among,
            "shares": groups,
            "answers": answers,
        }
    return found


def as_examples(comparison: Comparison, drawn: Sequence[Drawn], data: str | None) -> list[dict[str, Any]]:
    """Return drawn answers as the page shows them, in their order, with recordings and all annotations."""
    called = {run.folder: run for run in comparison.runs}
    media = media_of(drawn, data)
    with suppress(RequestError):  # without its table a text's prompt keeps the names of the columns
        drawn = with_texts(drawn, data)
    others = {folder: _others(run, [one for one in drawn if one.run == folder]) for folder, run in called.items()}
    found = []
    for one in drawn:
        run = called[one.run]
        annotations = [(run.annotator, one.row), *others[one.run].get(_key(one.task.name, one.row), ())]
        found.append(_example(one, run.model, media.get(one.item), annotations))
    return found


def _key(task: str, row: Row) -> tuple[str, str, int]:
    return task, row.key, row.repeat


def _others(run: ComparedRun, drawn: Sequence[Drawn]) -> dict[tuple[str, str, int], list[tuple[str, Row]]]:
    """Return the annotations of the drawn responses by all further annotators of a run."""
    wanted = {_key(one.task.name, one.row) for one in drawn}
    found: dict[tuple[str, str, int], list[tuple[str, Row]]] = {}
    for name in annotators_of(run.folder):
        if name == run.annotator:
            continue
        for task, rows in sample_rows(run.folder, run.tasks, name).items():
            for row in rows:
                if _key(task, row) in wanted:
                    found.setdefault(_key(task, row), []).append((name, row))
    return found


def _example(
    one: Drawn, model: str, medium: tuple[str, bytes] | None, annotations: Sequence[tuple[str, Row]]
) -> dict[str, Any]:
    mime, data = medium or ("", b"")
    uri = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    return {
        "model": model,
        "task": one.task.name,
        "group": one.row.group or "all",
        "prompt": one.prompt,
        "response": one.text,
        "annotations": [_annotation(annotator, row) for annotator, row in annotations],
        "audio": uri if mime.startswith("audio/") else "",
        "image": uri if mime.startswith("image/") else "",
    }


def _annotation(annotator: str, row: Row) -> dict[str, Any]:
    """Return one annotator's values for the whole response and, by name, for each segment."""
    segments = {
        name: [(f"{name}: {one}" if name else one, list(values)) for one, values in segment.values.items()]
        for name, segment in row.segments.items()
    }
    return {
        "annotator": annotator,
        "status": row.status,
        "whole": segments.pop(WHOLE, []),
        "segments": [(name, values) for name, values in segments.items() if values],
    }
