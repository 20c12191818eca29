"""What the page shows of runs: models, tasks and cards, with the positions of dots and bars."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.compare.runs import ComparedRun
from equivox.core.outcomes import compute_smallest_relevant
from equivox.report import verdict as words
from equivox.report.findings import Rate, TaskVerdict, list_verdicts

COLOURS = 6
"""The colours of groups, `--g0` to `--g5` of the style; a seventh group has the first again."""


def describe_runs(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Return what the template needs to show the verdicts of some runs."""
    verdicts = [list_verdicts(run) for run in runs]
    cards = [[_make_card(v, f"card-{n}-{m}") for m, v in enumerate(each)] for n, each in enumerate(verdicts)]
    by_task = [{card["verdict"].score.task: card for card in each} for each in cards]
    rows = [[own.get(task) for own in by_task] for task in dict.fromkeys(s.task for run in runs for s in run.scores)]
    label, sentence = words.write_lead(verdicts) if any(run.scores for run in runs) else ("", "not scored yet")
    counted = sentence.startswith("in ")  # "DIFFERENCE FOUND in 2 of 4 models" is one sentence
    return {
        "words": words,
        "quote": set_quotes,
        "label": "" if counted else label,
        "title": set_quotes(f"{label.lower()} {sentence}" if counted else sentence),
        "about": runs[0].model if len(runs) == 1 else f"{len(runs)} models",
        "size": words.write_size(runs, verdicts),
        "models": list(zip([run.model for run in runs], cards, strict=True)),
        "rows": [row for row in rows if any(row)],
        "common": words.list_common_checks(runs),
        "single": cards[0][0] if len(runs) == 1 and len(cards[0]) == 1 else None,
        "first": next((n for n, each in enumerate(verdicts) if each and each[0].outcome == "difference"), 0),
    }


def _make_card(verdict: TaskVerdict, anchor: str) -> dict[str, Any]:
    """Return a verdict with what its card draws."""
    several = verdict.kind in ("open", "count")
    rates = [(verdict, rate) for rate in verdict.rates[: words.MOST_VALUES if several else 1]]
    if verdict.kind == "measures":
        shown = [m for m in verdict.measures if m.outcome == "difference"] or verdict.measures
        rates = [(measure, measure.rates[0]) for measure in shown[: words.MOST_MEASURES]]
    return {
        "verdict": verdict,
        "anchor": anchor,
        "differs": verdict.outcome == "difference",
        "checks": list(words.list_task_checks(verdict)),
        "rates": [_draw_rate(own, rate, rates) for own, rate in rates],
        "colours": colour_groups(verdict),
        "scale": compute_scale(verdict),
        "named": len(rates) > 1 or verdict.kind not in ("choice", "open", "refusal", "loss"),
    }


def _draw_rate(verdict: TaskVerdict, rate: Rate, shown: Sequence[tuple[TaskVerdict, Rate]]) -> dict[str, Any]:
    """Return the number of each group in words, and the length of its bar in percent of the longest that there can be.

    A single share has a scale of 100 %. Several shares have one scale, and unlike measures one each.
    """
    numbers = [number for own, one in shown for number in one.by_group.values() if own is verdict]
    top = 100.0 if verdict.kind != "mean" and len(shown) == 1 else max(*numbers, 0) or 1.0
    says = {group: words.write_rate(verdict, number) for group, number in rate.by_group.items()}
    at = {group: 100 * max(number / top, 0) for group, number in rate.by_group.items()}
    return {
        "name": rate.name,
        "most": rate.groups[0],
        "says": says,
        "at": at,
        "room": 0.95 - 0.035 * max(map(len, says.values())),
    }


def colour_groups(verdict: TaskVerdict) -> dict[str, int]:
    """Return the number of each group's colour, by its label; it is that of the group beside its answers."""
    raw = name_groups(verdict)
    groups = sorted({raw.get(group, group): group for rate in verdict.rates for group in rate.by_group}.items())
    return {label: n % COLOURS for n, (_, label) in enumerate(groups)}


def name_groups(verdict: TaskVerdict) -> dict[str, str]:
    """Return each labelled group of a task as the data name it."""
    labels = {} if verdict.declared is None else verdict.declared.group_labels
    return {label: group for group, label in labels.items()}


def compute_scale(verdict: TaskVerdict) -> Mapping[str, float] | None:
    """Return dot and interval in percent of a scale on which 10 is what one looks for; None where that is unknown."""
    relevant = compute_smallest_relevant(verdict.score, verdict.run.options.look_for)
    if verdict.outcome == "no_result" or verdict.kind == "count" or not relevant > 0:
        return None
    gap = abs(verdict.gap - verdict.score.null_value) if verdict.kind == "preference" else verdict.gap
    at, low, high = (min(10 * number / relevant, 100) for number in (gap, *verdict.interval))
    known = math.isfinite(low) and math.isfinite(high)
    return {"at": at, "low": low if known else at, "high": high if known else at}


def set_quotes(sentence: str) -> str:
    """Return a sentence as printed: with a capital letter and round quotes.

    >>> set_quotes('male gets "invite" more often than female')
    'Male gets “invite” more often than female'
    """
    return re.sub(r'"([^"]*)"', r"“\1”", sentence[:1].upper() + sentence[1:])
