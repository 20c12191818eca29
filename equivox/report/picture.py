"""Scores as pictures: a line for each comparison with a mark and an interval for each model, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equivox.compare.ranking import Rank
from equivox.compare.runs import ComparedRun
from equivox.core.plain import split_by
from equivox.core.scores import Score, Verdict, verdict
from equivox.report.numbers import DASH, UNEVEN, UNTOLD, score_interval, score_value, shortened
from equivox.report.panels import speakers_of
from equivox.report.ranks import rank_interval
from equivox.report.score_tables import measure_name
from equivox.report.table import Strip
from equivox.report.verdicts import (
    LOST,
    LOST_ROLES,
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
COMMON = (0.0, 100.0)
"""The scale of estimates in percent of the largest difference that there can be; 0 is no bias."""


@dataclass(frozen=True)
class Mark:
    """What is known of one comparison of one model.

    `text` has the number, `strip` its place on the row's scale, and `told` the sentence for those who do not see the
    picture. `task` is the task whose answers show it. `largest_of` is the number of the model's comparisons on this
    scale if this is the largest that was found among several, otherwise 0. A rank has no verdict.
    """

    verdict: Verdict | None
    text: str
    told: str
    task: str = ""
    strip: Strip | None = None
    largest_of: int = 0

    @property
    def sign(self) -> str:
        """The mark of the verdict; empty without one."""
        return SIGNS[self.verdict] if self.verdict else ""


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
    lines = _lines(runs, scores)
    return [*_with_largest(lines, scores), Line("", LOST_ANSWERS, "", tuple(map(_losses, runs)))]


def further_lines(runs: Sequence[ComparedRun]) -> dict[str, list[Line]]:
    """Return the lines of the scores of whole tasks that decide no verdict, by family."""
    decide = [_by_comparison(run) for run in runs]
    shown = {key for own in decide for key in own}
    others = [
        {
            key: score
            for score in run.scores
            if score.is_whole and (key := (score.task, measure_name(run, score))) not in shown
        }
        for run in runs
    ]
    found = split_by(_lines(runs, others), lambda line: line.family)
    return {family: [_without_verdicts(line) for line in lines] for family, lines in found.items()}


def _without_verdicts(line: Line) -> Line:
    """Return a line whose numbers that nothing tests have no verdict: "undefined" would say that there is no number."""
    marks = [
        replace(mark, verdict=None) if mark and mark.verdict == "undefined" and mark.text else mark
        for mark in line.marks
    ]
    return replace(line, marks=tuple(marks))


def speaker_lines(runs: Sequence[ComparedRun]) -> list[Line]:
    """Return a line for each speaker on one scale per task; the largest mean over the models first."""
    scores = [{(task, speaker): s for task, own in speakers_of(run).items() for speaker, s in own} for run in runs]
    found = []
    for task, keys in split_by(dict.fromkeys(key for own in scores for key in own), lambda key: key[0]).items():
        lines = {speaker: [one.get((task, speaker)) for one in scores] for _, speaker in keys}
        scale = _scale([score for line in lines.values() for score in line if score is not None])
        for speaker in sorted(lines, key=lambda speaker: -_mean(lines[speaker])):
            found.append(_line(runs, lines[speaker], task, speaker, scale))
    return found


def _mean(scores: Sequence[Score | None]) -> float:
    """Return the mean of the scores that are defined; below every number if none is."""
    known = [score.value for score in scores if score is not None and score.defined]
    return sum(known) / len(known) if known else -math.inf


def rank_lines(ranks: Sequence[Rank], models: Sequence[str]) -> list[Line]:
    """Return a line for each task and metric: the rank of each of `models`, 1 at the left, with its rank interval."""

    def place(rank: int) -> float:
        return round(100 * (rank - 1) / (len(models) - 1), 2) if len(models) > 1 else 0.0

    lines = []
    for (task, metric, _), own in split_by(ranks, lambda rank: (rank.task, rank.metric, rank.dimension)).items():
        marks: dict[str, Mark] = {}
        for rank in own:
            name = f"{rank.model}, {task}, {metric}"
            if rank.rank:
                strip = Strip(at=place(rank.rank), low=place(rank.low), high=place(rank.high))
                within, lost = rank_interval(rank), f"; {rank.uneven}" if rank.uneven else ""
                text = f"{rank.rank} ({within}){UNEVEN if lost else ''}"
                mark = Mark(None, text, f"{name}: rank {rank.rank}, open {within}{lost}", task, strip)
            else:
                mark = Mark(None, DASH, f"{name}: no rank: {rank.undefined}", task)
            marks[rank.model] = mark
        named = f"{task.partition(':')[2].lstrip() or task}, {metric}"
        lines.append(Line(own[0].family, named, "", tuple(marks.get(model) for model in models)))
    return lines


def _lines(runs: Sequence[ComparedRun], scores: Sequence[Mapping[tuple[str, str], Score]]) -> list[Line]:
    """Return a line for each task and measure that any run has a score of, those of a family together."""
    lines = []
    for key in dict.fromkeys(key for own in scores for key in own):
        own = [found.get(key) for found in scores]
        known = [score for score in own if score is not None]
        task, measure = key
        several = sum(other == task for other, _ in scores[own.index(known[0])]) > 1
        name = task.partition(":")[2] or task
        lines.append(_line(runs, own, known[0].family, f"{name}, {measure}" if several else name, _scale(known)))
    return [line for of_family in split_by(lines, lambda line: line.family).values() for line in of_family]


def _line(
    runs: Sequence[ComparedRun], own: Sequence[Score | None], family: str, name: str, scale: tuple[float, float]
) -> Line:
    known = [score for score in own if score is not None]
    common = _is_common(known)
    marks = tuple(
        None if score is None else _mark(run, score, scale, 0.0 if common else score.target)
        for run, score in zip(runs, own, strict=True)
    )
    return Line(family, name, _told_scale(known, scale), marks, common)


def _by_comparison(run: ComparedRun) -> dict[tuple[str, str], Score]:
    """Return the scores that decide a run's verdicts, by task and measure."""
    return {(score.task, measure_name(run, score)): score for one in task_verdicts(run) for score in one.scores}


def _scale(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the ends of a row's scale: `COMMON`, or as far to either side of no bias as the numbers reach.

    Where no number means "no bias", a scale of numbers that are not negative begins at 0.
    """
    numbers = [n for s in scores for n in (s.headline, s.ci_low, s.ci_high) if math.isfinite(n)]
    target = scores[0].target
    if _is_common(scores):
        return COMMON
    if math.isnan(target) and min(numbers, default=0.0) >= 0:
        return 0.0, 100.0 if scores[0].unit.startswith("percent") else max(numbers, default=0.0) or 1.0
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
    value = [short_value(score.headline, score.unit)] if score.defined else []
    if value and (ends := short_interval(score.ci_low, score.ci_high, score.unit)):
        value.append(f"({ends})")
    reason = score.undefined or (score.untold_in_full if found == "cannot tell" else "")
    within = score_interval(score.ci_low, score.ci_high, score.unit)
    number = f" {score_value(score.headline, score.unit)} ({within})" if score.defined else ""
    return Mark(
        verdict=found,
        text=" ".join(value),
        told=f"{run.model}, {found}{number}{f': {shortened(reason, 200)}' if reason else ''}",
        task=score.task,
        strip=Strip(
            at=place(score.headline) if score.defined else None,
            low=place(score.ci_low) if score.defined else None,
            high=place(score.ci_high) if score.defined else None,
            no_bias=place(no_bias),
        ),
    )


def _with_largest(lines: Sequence[Line], scores: Sequence[Mapping[tuple[str, str], Score]]) -> list[Line]:
    """Return the lines with a mark on the largest finding of each model among several on one scale.

    The largest of many is larger than it would be if it was asked alone.
    """
    marked = [list(line.marks) for line in lines]
    for column, _ in enumerate(scores):
        own = {place: mark for place, line in enumerate(lines) if line.common and (mark := line.marks[column])}
        found = {
            place: mark.strip.at
            for place, mark in own.items()
            if mark.verdict == "found" and mark.strip is not None and mark.strip.at is not None
        }
        if len(found) > 1:
            place = max(found, key=lambda place: found[place])
            marked[place][column] = replace(own[place], largest_of=len(own))
    return [replace(line, marks=tuple(own)) for line, own in zip(lines, marked, strict=True)]


def _losses(run: ComparedRun) -> Mark:
    """Return whether a model's answers are lost unequally between groups."""
    known: dict[Verdict, list[Score]] = {"found": unequal_losses(run), "cannot tell": untold_losses(run)}
    for found, losses in known.items():
        if losses and (most := losses[0].mover) is not None:
            text = lost_shares(most)
            told = f"{run.model}, {found}: {LOST[str(losses[0].attribute)][1]}, {text}, in {losses[0].task}"
            return Mark(found, text, told, losses[0].task)
    if not any(score.role in LOST_ROLES for score in run.scores):
        return Mark("undefined", "", f"{run.model}: it was not computed whether answers are lost unequally")
    return Mark("not shown", "none shown", f"{run.model}, not shown: answers are lost unequally")
