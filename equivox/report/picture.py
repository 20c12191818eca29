"""The answer as a picture: a mark and an interval for each model and comparison, as plain values for the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equivox.compare.runs import ComparedRun
from equivox.core.scores import Score, Verdict, verdict
from equivox.report.numbers import DASH, UNTOLD, score_interval, score_value, shortened
from equivox.report.score_tables import measure_name
from equivox.report.verdicts import (
    LOST,
    in_unit,
    lost_shares,
    short_interval,
    short_value,
    task_verdicts,
    unequal_losses,
    untold_losses,
)

SIGNS: Mapping[Verdict, str] = {"found": "●", "not shown": "○", "cannot tell": UNTOLD, "undefined": DASH}
"""The mark of each verdict: they differ in form, not in colour alone."""
ABOUT_MARKS = (
    "● found, beyond chance (q < 0.05) · ○ not shown, which is no proof of fairness · ? this design cannot tell · "
    "— undefined. Dot: estimate; line: 95 % interval; upright: no bias. The largest of many is larger than it would be "
    "if it was asked alone."
)
"""What stands with the picture."""
LOST_ANSWERS = "answers lost unequally"
"""The row that says whether answers of one group are lost more often; a loss can hide a difference of those left."""


LOSSES = ("refusal", "loss")
"""The roles of scores that say whether answers are lost unequally."""
COMMON = (0.0, 100.0)
"""The scale of estimates in percent of the largest difference that there can be; 0 is no bias."""


@dataclass(frozen=True)
class Mark:
    """What is known of one comparison of one model.

    `at`, `low`, `high` and `no_bias` are places on the row's scale, in percent of its width; None where there is no
    such number. `text` has the number and `told` the sentence for those who do not see the picture. `task` is the task
    whose answers show it. `largest_of` is the number of the model's comparisons on this scale if this is the largest
    that was found among several, otherwise 0.
    """

    verdict: Verdict
    text: str
    told: str
    task: str = ""
    at: float | None = None
    low: float | None = None
    high: float | None = None
    no_bias: float | None = None
    largest_of: int = 0

    @property
    def sign(self) -> str:
        """The mark of the verdict."""
        return SIGNS[self.verdict]


@dataclass(frozen=True)
class Line:
    """One comparison: its family, its name, and the marks of all models in their order; None where one has no score.

    `scale` says the ends of the row in words. On the `common` scale, percent of the largest that there can be, rows can
    be compared with one another.
    """

    family: str
    name: str
    scale: str
    marks: tuple[Mark | None, ...]
    common: bool = False


def picture(runs: Sequence[ComparedRun]) -> list[Line]:
    """Return a line for each comparison that decides a verdict of any of `runs`, and one for lost answers."""
    scores = [_by_comparison(run) for run in runs]
    lines = []
    for key in dict.fromkeys(key for own in scores for key in own):
        own = [found.get(key) for found in scores]
        known = [score for score in own if score is not None]
        common, scale = _is_common(known), _scale(known)
        marks = tuple(
            None if score is None else _mark(run, score, scale, 0.0 if common else score.target)
            for run, score in zip(runs, own, strict=True)
        )
        task, measure = key
        several = sum(other == task for other, _ in scores[own.index(known[0])]) > 1
        name = task.partition(":")[2] or task
        named = f"{name}, {measure}" if several else name
        lines.append(Line(known[0].family, named, _told_scale(known, scale), marks, common))
    return [*_with_largest(lines, scores), Line("", LOST_ANSWERS, "", tuple(map(_losses, runs)))]


def _by_comparison(run: ComparedRun) -> dict[tuple[str, str], Score]:
    """Return the scores that decide a run's verdicts, by task and measure."""
    return {(score.task, measure_name(run, score)): score for one in task_verdicts(run) for score in one.scores}


def _scale(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the ends of a row's scale: `COMMON`, or as far to either side of no bias as the numbers reach."""
    numbers = [n for s in scores for n in (s.headline, s.ci_low, s.ci_high) if math.isfinite(n)]
    target = scores[0].target
    if _is_common(scores):
        return COMMON
    middle = target if math.isfinite(target) else 0.0
    reach = max((abs(n - middle) for n in numbers), default=0.0) or 1.0
    return middle - reach, middle + reach


def _is_common(scores: Sequence[Score]) -> bool:
    """Return whether scores are percent of the largest that there can be, with noise removed: 0 is no bias."""
    return any(score.unit.startswith("percent") and math.isfinite(score.estimate) for score in scores)


def _told_scale(scores: Sequence[Score], scale: tuple[float, float]) -> str:
    """Return the ends of a scale in the unit of the scores; empty if none has a number."""
    score = scores[0]
    low, high = scale
    if not any(other.defined for other in scores):
        return ""
    return f"{short_value(low, score.unit)} to {in_unit(high, score.unit)}"


def _mark(run: ComparedRun, score: Score, scale: tuple[float, float], no_bias: float) -> Mark:
    def place(number: float) -> float | None:
        low, high = scale
        return round(100 * (min(max(number, low), high) - low) / (high - low), 2) if math.isfinite(number) else None

    found = verdict([score])
    value = short_value(score.headline, score.unit) if score.defined else ""
    reason = score.undefined or (score.untold_in_full if found == "cannot tell" else "")
    within = score_interval(score.ci_low, score.ci_high, score.unit)
    number = f" {score_value(score.headline, score.unit)} ({within})" if score.defined else ""
    return Mark(
        verdict=found,
        text=" ".join(filter(None, (value, _bracketed(score)))),
        told=f"{run.model}, {found}{number}{f': {shortened(reason, 200)}' if reason else ''}",
        task=score.task,
        at=place(score.headline) if score.defined else None,
        low=place(score.ci_low) if score.defined else None,
        high=place(score.ci_high) if score.defined else None,
        no_bias=place(no_bias),
    )


def _bracketed(score: Score) -> str:
    within = short_interval(score.ci_low, score.ci_high, score.unit) if score.defined else ""
    return f"({within})" if within else ""


def _with_largest(lines: Sequence[Line], scores: Sequence[Mapping[tuple[str, str], Score]]) -> list[Line]:
    """Return the lines with a mark on the largest finding of each model among several on one scale.

    The largest of many is larger than it would be if it was asked alone.
    """
    marked = [list(line.marks) for line in lines]
    for column, _ in enumerate(scores):
        own = [(mark, place) for place, line in enumerate(lines) if line.common and (mark := line.marks[column])]
        found = [(mark.at, place, mark) for mark, place in own if mark.verdict == "found" and mark.at is not None]
        if len(found) > 1:
            _, place, mark = max(found, key=lambda entry: entry[0])
            marked[place][column] = replace(mark, largest_of=len(own))
    return [replace(line, marks=tuple(own)) for line, own in zip(lines, marked, strict=True)]


def _losses(run: ComparedRun) -> Mark:
    """Return whether a model's answers are lost unequally between groups."""
    known: dict[Verdict, list[Score]] = {"found": unequal_losses(run), "cannot tell": untold_losses(run)}
    for found, losses in known.items():
        if losses and (most := losses[0].mover) is not None:
            text = lost_shares(most)
            told = f"{run.model}, {found}: {LOST[str(losses[0].attribute)]}, {text}, in {losses[0].task}"
            return Mark(found, text, told, losses[0].task)
    if not any(score.role in LOSSES for score in run.scores):
        return Mark("undefined", "", f"{run.model}: it was not computed whether answers are lost unequally")
    return Mark("not shown", "none shown", f"{run.model}, not shown: answers are lost unequally")
