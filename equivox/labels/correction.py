"""Scores as people would have annotated the answers: the annotator's errors corrected by labels of some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.core.hashing import seed_of
from equivox.core.lazy import np
from equivox.core.samples import UNANSWERED, Samples
from equivox.core.scores import DEFAULT_OPTIONS, Score
from equivox.core.task import UNSTATED, Attribute, Task
from equivox.labels.reading import Label, Rating, comparable
from equivox.labels.result import CorrectedScore
from equivox.run.declarations import read_tasks
from equivox.run.scoring import open_samples, read_records, read_scores

MIN_LABELS = 5
"""The number of labelled responses that every group of a task needs before its score is corrected."""

_Wording = Callable[[Attribute, str], str]
"""Function that returns the wording that a value of an attribute is counted as."""


def correct_scores(run: Path, ratings: Sequence[Rating], annotator: str) -> list[CorrectedScore]:
    """Return the scores of a run as people would have annotated it: those of tasks, then those of attributes."""
    tasks = {task.name: task for task in read_tasks(run)}
    corrections = {
        (task.name, measure.name): measure.corrected for task in tasks.values() for measure in task.metric.measures
    }
    scores = [
        score
        for score in read_scores(run, annotator)
        if score.defined and not score.subset and corrections.get((score.task, score.metric)) is not None
    ]
    opened = open_samples(run, [tasks[name] for name in {score.task for score in scores}], annotator)
    wording = _open_wording(run, annotator)
    parts: dict[str, dict[str, CorrectedScore]] = {}
    for score in scores:
        task, correct = tasks[score.task], corrections[score.task, score.metric]
        # An answer that several tasks share is on the sheet once, so that its label speaks for all of them.
        labelled = [r for r in ratings if r.attribute.name == score.attribute and r.attribute in task.attributes]
        if labelled and correct is not None:
            corrected = _correct_attribute(score, task, opened[task.name], labelled, wording, correct)
            if corrected is not None:
                parts.setdefault(task.name, {})[corrected.attribute] = corrected
    whole = [
        _average(score, parts[score.task])
        for score in scores
        if score.is_whole and parts.get(score.task, {}).keys() & set(score.parts)
    ]
    return [*whole, *(part for of_task in parts.values() for part in of_task.values())]


def _uncorrected(score: Score) -> CorrectedScore:
    return CorrectedScore(task=score.task, attribute=score.attribute or "", metric=score.metric, value=score.value)


def _average(score: Score, parts: Mapping[str, CorrectedScore]) -> CorrectedScore:
    """Return a task's score corrected by labels: the mean of its attributes, as its score is.

    The attributes share their responses. The mean of the ends of their intervals holds whatever their errors have in
    common; it is wider than needed where they have little.
    """
    plain = _uncorrected(score)
    if unlabelled := [name for name in score.parts if name not in parts]:
        return replace(plain, undefined=f"no label is about {', '.join(unlabelled)}")
    averaged = [parts[name] for name in score.parts]
    if reason := next((f"{part.attribute}: {part.undefined}" for part in averaged if part.undefined), None):
        return replace(plain, undefined=reason)
    return replace(
        plain,
        corrected=fmean(part.corrected for part in averaged),
        ci=(fmean(part.ci[0] for part in averaged), fmean(part.ci[1] for part in averaged)),
        labels={group: min(part.labels[group] for part in averaged) for group in averaged[0].labels},
    )


def _open_wording(run: Path, annotator: str) -> _Wording:
    """Return the function that gives the wording that the run's scores count an open value as."""
    rows = read_records(run, "", "open_values", annotator) or []
    known: dict[tuple[str, Label], str] = {
        (row["attribute"], comparable([row["value"]])): row["counts_as"] for row in rows
    }

    def wording(attribute: Attribute, value: str) -> str:
        if attribute.options:
            return value
        label = comparable([value])
        return known.get((attribute.name, label), label[0])

    return wording


def _correct_attribute(
    score: Score,
    task: Task,
    samples: Samples,
    ratings: Sequence[Rating],
    wording: _Wording,
    correct: Callable[..., Any],
) -> CorrectedScore | None:
    """Return the score corrected by the labels of its responses; None if none of them is labelled.

    All answered responses count, those that the annotator could not parse as well: people may see a value there.
    """
    attribute = ratings[0].attribute
    answered = ~samples.has_status(*UNANSWERED, "empty")
    keys = [key for key, has in zip(samples.keys, answered.tolist(), strict=True) if has]
    row_of = {key: number for number, key in enumerate(keys)}
    known = [rating for rating in ratings if rating.response in row_of]
    settled = [(row_of[r.response], r.agreed, r.weight) for r in known if r.agreed is not None]
    if not settled:
        return None
    plain = _uncorrected(score)
    if few := _describe_gaps(known):
        return replace(plain, undefined=few)
    values = samples.values(attribute.name)
    values = values.renamed([wording(attribute, name) for name in values.names])
    if attribute.role != "refusal":  # As in the score: a response that declines has no other value.
        values = values.only(samples.has_status("parsed"))
    result = correct(
        values.take(answered),
        samples.groups.take(answered),
        **samples.design(answered, strata=bool(task.strata)),
        labelled_rows=[row for row, _, _ in settled],
        labels=[sorted({wording(attribute, v) for v in label if v != UNSTATED}) for _, label, _ in settled],
        weights=[weight for _, _, weight in settled],
        min_count=score.min_count,
        min_labels=MIN_LABELS,
        rng=np.random.default_rng(seed_of(score.task, score.attribute)),
    )
    split = sum(bool(rating.people) for rating in known) - len(settled)
    return replace(
        plain,
        corrected=result.estimate,
        ci=(result.low, result.high),
        labels=dict(zip(result.groups, result.labels, strict=True)),
        undefined=result.undefined,
        notes=[*result.notes, *([f"{split} responses on which people are split are left out"] if split else [])],
    )


def _describe_gaps(ratings: Sequence[Rating]) -> str | None:
    """Return why labels are no random part of the drawn answers; None where they are, but for a few."""
    drawn = Counter(rating.group for rating in ratings)
    settled = Counter(rating.group for rating in ratings if rating.agreed is not None)
    for group in sorted(drawn):
        if settled[group] < DEFAULT_OPTIONS.min_coverage * drawn[group]:
            return (
                f"people settled on a label of {settled[group]} of {drawn[group]} drawn answers of group {group}; "
                f"every group needs {100 * DEFAULT_OPTIONS.min_coverage:g} %; label the sheet from its top"
            )
    return None
