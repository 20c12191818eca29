"""The report: one HTML file that needs nothing else, built from what runs stored.

Everything from a run is hostile until it is text: the template escapes all of it, and the page's
Content-Security-Policy lets nothing run but the one script of this package.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equivox
from equivox.compare.runs import ComparedRun, Comparison, open_comparison, task_correlations, top_movers
from equivox.core.errors import RequestError
from equivox.core.samples import Row
from equivox.core.scores import Score
from equivox.core.segments import WHOLE
from equivox.report.numbers import interval, p_value, percent, score_interval, score_value, share, stars
from equivox.report.page.compared import genres_panels, side_by_side, speaker_panels
from equivox.report.safe_page import render_page
from equivox.report.tables import NTVD

if TYPE_CHECKING:
    from equivox.report.blind_sheet import Drawn

METHODS = (
    (
        "nTVD",
        "How far the distributions of the groups' answers lie apart: 0 all groups get the same answers, 100 no two "
        "groups share one. Noise can only add to it, so it stands beside its floor. Max is the most that these answers "
        "allow.",
    ),
    ("floor, excess", "The mean of the score when labels are dealt to other clusters, and what stands above it."),
    (
        "interval",
        "95 %, for the population's value. For nTVD the noise is removed: the interval may lie below the value.",
    ),
    (
        "p cluster, q",
        "p cluster moves labels between the units that carry them (speakers, contexts, narrative pairs), within what "
        "is held equal; q is after Benjamini and Hochberg, over all scores of one kind shown here. Stars: * below "
        "0.05, ** below 0.001.",
    ),
    (
        "p paper",
        "As published: labels moved between single responses. It takes differences between clusters for bias, and is "
        "shown to compare with the paper.",
    ),
    (
        "places",
        "1 is nearest to no bias, as measured. The places open are those that the tests of all pairs of models leave, "
        "95 % for all models of a task together (Mogstad et al. 2024, Holm's correction). Models that share a letter "
        "are not told apart: that is no proof that they are alike.",
    ),
    (
        "paired tests",
        "Two models on the items that both answered: they change places within whole clusters. For nTVD a difference "
        "must also stand out when all that noise may add to either model is allowed for.",
    ),
    (
        "coverage",
        "requested, generated, answered (not refused), parsed, used. A score is undefined where too little of any "
        "group can be used. Worst case: what the score would be, whatever the missing answers had said.",
    ),
)


def build_report(folders: Sequence[Path], *, examples: int = 0, data: str | None = None, movers: int = 4) -> str:
    """Return the report of the runs in `folders` as HTML.

    `examples` responses of each model, task and group are shown with their recordings or images, none by default: the
    papers' ethics sections ask for care with single answers. `data` says where the corpora lie now.
    """
    from equivox.compare.ranking import judge

    comparison = open_comparison(folders)
    source = resources.files(__name__)
    shown = list(_examples(comparison, examples, data)) if examples else []
    return render_page(
        source.joinpath("report.html.j2"),
        style=source.joinpath("report.css"),
        script=source.joinpath("report.js"),
        version=equivox.__version__,
        models=[run.model for run in comparison.runs],
        caveats=comparison.caveats,
        cards=list(_cards(comparison)),
        made_up=any(run.model.startswith("simulated:") for run in comparison.runs),
        readers=sorted({run.annotator for run in comparison.runs}),
        sections=list(_sections(comparison)),
        compared=side_by_side(comparison, judge(comparison)),
        panels=list(genres_panels(comparison)),
        speakers=list(speaker_panels(comparison)),
        movers=_by_model(_movers(comparison, movers)),
        heat_maps=list(_heat_maps(comparison)),
        correlations=list(_correlations(comparison)),
        coverage=list(_coverage(comparison)),
        covered=_covered(comparison),
        failures=list(_failures(comparison)),
        examples=shown,
        filter_models=sorted({entry["model"] for entry in shown}),
        filter_tasks=sorted({entry["task"] for entry in shown}),
        filter_groups=sorted({entry["group"] for entry in shown}),
        methods=METHODS,
        manifests=list(_manifests(comparison)),
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass(frozen=True)
class Verdict:
    """What one model does in one family of tasks, in plain words."""

    model: str
    state: str
    text: str


NOT_COUNTED = {"parity deviation", "position bias"}
"""The one is slbs again, and its test the same; the other is about the order of options, not about people."""

MARKS = {"found": "●", "none": "○", "undefined": "—"}


def _cards(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield what was found in each family of tasks, model by model."""
    questions = {name: card.splitlines()[0].partition(": ") for name, card in _task_cards(comparison).items() if card}
    for number, family in enumerate(_families(comparison)):
        task = next(s.task for _, s in comparison.scores() if s.is_whole and s.family == family)
        question = questions.get(task.partition("@")[0], ("", "", ""))
        question_ = question[2] or question[0]
        yield {
            "title": family,
            "anchor": f"family-{number}",
            "question": question_[:1].upper() + question_[1:],
            "verdicts": [
                {**vars(_verdict(run.model, own)), "mark": MARKS[_verdict(run.model, own).state]}
                for run in comparison.runs
                if (own := [s for s in run.scores if s.is_whole and s.family == family])
            ],
        }


def _families(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(score.family for _, score in comparison.scores() if score.is_whole))


def _verdict(model: str, scores: Sequence[Score]) -> Verdict:
    """Say what the scores of one model in one family come to."""
    counted = [score for score in scores if score.name not in NOT_COUNTED]
    tested = [score for score in counted if score.defined and math.isfinite(score.p_cluster)]
    undefined = [score for score in counted if not score.defined]
    found = [score for score in tested if score.q < 0.05]
    parts = []
    if found:
        differ = "differs" if len(found) == 1 else "differ"
        parts.append(f"{len(found)} of {len(tested)} tested scores {differ} from no bias beyond chance.")
        parts.append(_furthest(found))
    elif tested:
        which = "the score that was tested does not differ" if len(tested) == 1 else f"none of {len(tested)} differs"
        parts.append(f"{which[0].upper()}{which[1:]} from no bias beyond chance, which is no proof of fairness.")
    elif not undefined:
        parts.append("Nothing was tested.")
    if undefined:
        are = "is" if len(undefined) == 1 else "are"
        parts.append(f"{len(undefined)} of {len(counted)} scores {are} undefined: {undefined[0].undefined}.")
    return Verdict(model, "found" if found else "undefined" if undefined or not tested else "none", " ".join(parts))


def _furthest(found: Sequence[Score]) -> str:
    """Name the largest of scores in one unit; of several metrics, which have no common scale, only which they are."""
    names = list(dict.fromkeys(score.name for score in found))
    if len(names) > 1:
        return f"They are {', '.join(names[:-1])} and {names[-1]}."
    most = max(found, key=lambda score: score.distance)
    known = math.isfinite(most.ci_low) and math.isfinite(most.ci_high)
    within = f" (95 % interval {score_interval(most.ci_low, most.ci_high, most.unit)})" if known else ""
    what = f"{most.name} of {most.task.partition(':')[2] or most.task}, {score_value(most.value, most.unit)}{within}"
    return f"It is {what}." if len(found) == 1 else f"The furthest: {what}."


def _sections(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield one section per family of tasks, with its metrics, each with figure and table."""
    cards = _task_cards(comparison)
    for number, family in enumerate(_families(comparison)):
        rows = [(model, s) for model, s in comparison.scores() if s.is_whole and s.family == family]
        metrics = []
        names = list(dict.fromkeys(score.name for _, score in rows))
        for name in names:
            metrics.append(_metric([(model, s) for model, s in rows if s.name == name], narrow=len(names) > FEW))
        yield {
            "title": family,
            "anchor": f"family-{number}",
            "about": cards.get(rows[0][1].task.partition("@")[0], ""),
            "metrics": metrics,
            "many": len(metrics) > FEW,
        }


FEW = 2
"""Metrics of a family that are shown one below another; more of them stand in columns, their numbers folded."""


def _metric(rows: Sequence[tuple[str, Score]], *, narrow: bool) -> dict[str, Any]:
    from equivox.report.figures import draw_forest, svg_for_page, told_forest

    first = rows[0][1]
    several = len({model for model, _ in rows}) > 1
    labelled = [
        (" ".join(filter(None, (model if several else "", s.task.partition(":")[2] or s.task))), s) for model, s in rows
    ]
    notes = list(dict.fromkeys(note for _, score in rows for note in _remarks(score)))
    has_floor = any(math.isfinite(score.floor) for _, score in rows) or first.name == NTVD
    return {
        "name": first.name,
        "zero_means": first.zero_means,
        "figure": _base64(svg_for_page(draw_forest(labelled, narrow=narrow))),
        "told": told_forest(labelled),
        "has_floor": has_floor,
        "has_target": math.isfinite(first.target) and not has_floor,
        "rows": [
            {
                "model": model,
                "task": _within_family(s),
                "cells": _cells(s, has_floor),
                "notes": " ".join(str(1 + notes.index(note)) for note in _remarks(s)),
            }
            for model, s in rows
        ],
        "notes": notes,
    }


def _within_family(score: Score) -> str:
    """Return a task's name without that of its family, which stands above it."""
    return score.task.partition(":")[2].partition("@")[0] or score.task


def _remarks(score: Score) -> tuple[str, ...]:
    """Return why a score is undefined, or what to know about it."""
    return (f"undefined: {score.undefined}",) if score.undefined else score.notes


def _cells(score: Score, has_floor: bool) -> list[str]:
    value = score_value(score.value, score.unit) + stars(score.p_cluster)
    middle = (
        [score_value(number, score.unit) for number in (score.ceiling, score.floor, score.excess)]
        if has_floor
        else [score_value(score.target, score.unit)]
    )
    return [
        value,
        *middle,
        score_interval(score.ci_low, score.ci_high, score.unit),
        p_value(score.p_cluster),
        p_value(score.q),
        p_value(score.p_paper),
        share(score.coverage.used, score.coverage.requested),
    ]


def _task_cards(comparison: Comparison) -> dict[str, str]:
    from equivox.run.pipeline import run_tasks

    cards: dict[str, str] = {}
    for run in comparison.runs:
        # A run whose tasks are no longer known is shown without their cards.
        with suppress(RequestError):
            cards |= {task.name: task.card.strip() for task in run_tasks(run.folder)}
    return cards


def _movers(comparison: Comparison, wanted: int) -> Iterator[dict[str, str]]:
    from equivox.report.figures import draw_shares, svg_for_page

    for run in comparison.runs:
        for score, shares in top_movers(run, attributes=wanted, values=6):
            if not shares or score.excess <= 0:
                continue
            title = f"{score.task}, {score.attribute}"
            yield {
                "model": run.model,
                "title": f"{title}: nTVD {percent(score.value)}",
                "figure": _base64(svg_for_page(draw_shares(shares, title))),
                "told": "; ".join(
                    f"{s.value}: " + ", ".join(f"{group} {percent(p)} %" for group, p in sorted(s.by_group.items()))
                    for s in shares
                ),
                "caption": (
                    f"{run.model}, {title}: nTVD {percent(score.value)}{stars(score.p_cluster)}, "
                    f"floor {percent(score.floor)}, "
                    f"interval {interval(score.ci_low, score.ci_high)}, q {p_value(score.q)}."
                ),
            }


def _by_model(found: Iterator[dict[str, str]]) -> list[dict[str, Any]]:
    models: dict[str, list[dict[str, str]]] = {}
    for entry in found:
        models.setdefault(entry["model"], []).append(entry)
    return [
        {"model": model, "told": "; ".join(entry["title"] for entry in own), "figures": own}
        for model, own in models.items()
    ]


def _heat_maps(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the associations of every task that finds any, with the strongest of them."""
    import pyarrow.parquet as pq

    from equivox.report.figures import draw_heat_map, heat_maps, svg_for_page
    from equivox.run.scoring import table_path

    maps = {run.model: heat_maps(run) for run in comparison.runs}
    # One scale for all models of a task: a colour means the same in each of their maps.
    most: dict[str, float] = {}
    for found in maps.values():
        for task, rows in found.items():
            most[task] = max(most.get(task, 1.0), *(float(row["count"] or 0) for row in rows))
    for run in comparison.runs:
        for task, rows in maps[run.model].items():
            known = [row for row in rows if row["count"] is not None]
            family = task.partition(":")[0] + "".join(task.partition("@")[1:])
            top = pq.read_table(table_path(run.folder, family, "top")).to_pylist()
            yield {
                "figure": _base64(svg_for_page(draw_heat_map(rows, most=most[task]))),
                "told": "; ".join(f"{r['category']}, {r['identity']}: {r['count']}" for r in known),
                "caption": (
                    f"{run.model}, {task}: associations per kind of place and identity; in brackets those that "
                    "survive correction for everything tested."
                ),
                "top": [
                    [str(r["identity"]), str(r["category"]), str(r["phrase"]), f"{r['score']:.4f}", p_value(r["q"])]
                    for r in top
                    if r["task"] == task
                ],
            }


def _correlations(comparison: Comparison) -> Iterator[dict[str, str]]:
    from equivox.report.figures import draw_correlations, svg_for_page

    found = task_correlations(comparison)
    for dimension, condition in dict.fromkeys((pair.dimension, pair.condition) for pair in found):
        pairs = [pair for pair in found if (pair.dimension, pair.condition) == (dimension, condition)]
        few = next((pair.undefined for pair in pairs if pair.undefined), None)
        yield {
            "figure": _base64(svg_for_page(draw_correlations(pairs))),
            "told": "; ".join(f"{pair.first} and {pair.second}: {score_value(pair.r, 'r')}" for pair in pairs),
            "caption": (
                f"{dimension}, condition {condition}: Pearson's r of the tasks' nTVD over {pairs[0].n_models} models"
                + (f"; {few}." if few else ".")
            ),
        }


def _coverage(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for run in comparison.runs:
        told = set()
        for score in run.scores:
            c = score.coverage
            counts = (c.requested, c.generated, c.answered, c.parsed, c.used)
            if not score.is_whole or (score.task, counts) in told:
                continue
            told.add((score.task, counts))
            known = math.isfinite(score.worst_low) and c.used < c.requested
            yield {
                "model": run.model,
                "task": score.task,
                "counts": [f"{count:,}" for count in counts],
                "worst": f"{score.name} {interval(score.worst_low, score.worst_high)}" if known else "",
            }


def _covered(comparison: Comparison) -> str:
    """Say in a sentence how much of what was asked enters the scores."""
    whole = [(run.model, s) for run in comparison.runs for s in run.scores if s.is_whole and s.coverage.requested]
    if not whole:
        return "Nothing was asked."
    model, least = min(whole, key=lambda entry: entry[1].coverage.used / entry[1].coverage.requested)
    if least.coverage.used == least.coverage.requested:
        return "All that was asked was answered and is used in every score."
    used = share(least.coverage.used, least.coverage.requested)
    return f"The least is used of {model}, {least.task}, {least.name}: {used} of what was asked."


def _failures(comparison: Comparison) -> Iterator[str]:
    from equivox.run.pipeline import count_failures

    for run in comparison.runs:
        for error, count in count_failures(run.folder).most_common(5):
            yield f"{run.model}: failed {count} times: {error}"


def _manifests(comparison: Comparison) -> Iterator[dict[str, str]]:
    for run in comparison.runs:
        text = (run.folder / "manifest.json").read_text("utf-8")
        yield {"model": run.model, "text": json.dumps(json.loads(text), indent=1, ensure_ascii=False)}


def _examples(comparison: Comparison, wanted: int, data: str | None) -> Iterator[dict[str, Any]]:
    from equivox.report.blind_sheet import draw, media_of

    called = {run.folder: run for run in comparison.runs}
    drawn = draw(list(called), n=wanted, per=("model", "task", "group"))
    media = media_of(drawn, data)
    others = {folder: _others(run, [one for one in drawn if one.run == folder]) for folder, run in called.items()}
    for one in sorted(drawn, key=lambda one: (one.model, one.task.name, one.row.group, one.item)):
        run = called[one.run]
        readings = [(run.annotator, one.row), *others[one.run].get(_place(one.task.name, one.row), ())]
        yield _example(one, run.model, media.get(one.item), readings)


def _place(task: str, row: Row) -> tuple[str, str, int]:
    return task, row.key, row.repeat


def _others(run: ComparedRun, drawn: Sequence[Drawn]) -> dict[tuple[str, str, int], list[tuple[str, Row]]]:
    """Return what every further annotator of a run read of the responses drawn."""
    from equivox.run.annotating import annotators_of
    from equivox.run.pipeline import run_tasks
    from equivox.run.scoring import sample_rows

    wanted = {_place(one.task.name, one.row) for one in drawn}
    found: dict[tuple[str, str, int], list[tuple[str, Row]]] = {}
    for name in annotators_of(run.folder):
        if name == run.annotator:
            continue
        for task, rows in sample_rows(run.folder, run_tasks(run.folder), name).items():
            for row in rows:
                if _place(task, row) in wanted:
                    found.setdefault(_place(task, row), []).append((name, row))
    return found


def _example(
    one: Drawn, model: str, medium: tuple[str, bytes] | None, readings: Sequence[tuple[str, Row]]
) -> dict[str, Any]:
    mime, data = medium or ("", b"")
    return {
        "model": model,
        "task": one.task.name,
        "group": one.row.group or "all",
        "prompt": one.prompt,
        "response": one.text,
        "readings": [_reading(annotator, row) for annotator, row in readings],
        "audio": _base64(data) if mime.startswith("audio/") else "",
        "image": _base64(data) if mime.startswith("image/") else "",
        "image_type": mime,
    }


def _reading(annotator: str, row: Row) -> dict[str, Any]:
    """Return what one annotator read: of the whole response, and of each part under the part's name."""
    parts = {
        name: [
            (f"{name}: {attribute}" if name else attribute, list(values)) for attribute, values in part.values.items()
        ]
        for name, part in row.segments.items()
    }
    return {
        "annotator": annotator,
        "status": row.status,
        "whole": parts.pop(WHOLE, []),
        "parts": [(name, values) for name, values in parts.items() if values],
    }
