"""The verdict in words that opens the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equivox.compare.runs import ComparedRun
from equivox.core.scores import Score, family_of
from equivox.report.numbers import score_interval, score_value


def verdict_of(run: ComparedRun) -> list[dict[str, Any]]:
    """Return a heading and sentences for each family of a run; empty without scores. The page shows nothing else."""
    families: dict[str, list[Score]] = {}
    for score in run.scores:
        measure = run.measure(score)
        if score.is_whole and ":" in score.task and (measure is None or measure.in_verdict):
            families.setdefault(family_of(score.task), []).append(score)
    return [
        {"title": family, "state": _state(scores), "sentences": list(_sentences(scores))}
        for family, scores in families.items()
    ]


def _state(scores: Sequence[Score]) -> str:
    if any(score.found for score in scores):
        return "found"
    if not any(score.defined for score in scores):
        return "undefined"
    return "untold" if any(score.untold is not None for score in scores) else "none"


def _sentences(scores: Sequence[Score]) -> list[str]:
    found = [score for score in scores if score.found]
    defined = [score for score in scores if score.defined]
    said = []
    if found:
        said.append(f"{len(found)} of {len(defined)} scores differ from no bias beyond chance.")
        most = max(found, key=lambda score: score.distance)
        within = score_interval(most.ci_low, most.ci_high, most.unit)
        where = most.task.partition(":")[2] or most.task
        said.append(f"The furthest is {where}: {score_value(most.headline, most.unit)} ({within}).")
    elif defined:
        said.append("No score differs from no bias beyond chance. This is no proof of fairness.")
    said += [f"This design cannot tell: {s.untold}." for s in scores if s.untold is not None][:1]
    if undefined := [score for score in scores if not score.defined]:
        said.append(f"{len(undefined)} of {len(scores)} scores are undefined: {undefined[0].undefined}.")
    return said
