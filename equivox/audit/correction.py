"""Scores as people would have annotated the answers: the annotator's errors corrected by labels of some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from equivox.audit.labels import Label, Unit, comparable
from equivox.audit.stored import AdjustedScore
from equivox.core.hashing import seed_of
from equivox.core.lazy import np
from equivox.core.samples import UNANSWERED, Samples
from equivox.core.scores import DEFAULT_OPTIONS, Score
from equivox.core.task import UNSTATED, Attribute
from equivox.engines import model_label
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.scoring import open_samples, read_records, read_scores

MIN_LABELS = 5
"""The number of labelled responses that every group of a task needs before its score is corrected."""


def corrected_scores(by_attribute: Mapping[str, Sequence[Unit]], annotator: str | None) -> list[AdjustedScore]:
    """Return every attribute score of the audited runs as people would have annotated it.

    A score takes the labels of its own run, task and attribute, never those of another model or task.
    """
    found = []
    for run in sorted({unit.run for units in by_attribute.values() for unit in units}):
        manifest = read_manifest(run)
        model = model_label(str(manifest["command"]["model"]))
        scores = read_scores(run, annotator)
        tasks = read_tasks(run)
        samples = open_samples(run, tasks, annotator or str(manifest["command"]["annotator"]))
        stratified = {task.name for task in tasks if task.strata}
        declared = {(task.name, attribute.name): attribute for task in tasks for attribute in task.attributes}
        measures = {(task.name, measure.name): measure for task in tasks for measure in task.metric.measures}
        wording = _wordings(run, annotator)
        own_found: list[AdjustedScore] = []
        for score in scores:
            attribute = declared.get((score.task, score.attribute or ""))
            measure = measures.get((score.task, score.metric))
            if attribute is None or not score.defined or score.subset or measure is None or measure.corrected is None:
                continue
            # A response that several tasks share is on the sheet once, so that its label speaks for all of them.
            units = [u for u in by_attribute.get(attribute.name, ()) if (u.run, u.attribute) == (run, attribute)]
            design = samples[score.task], score.task in stratified, score.min_count
            plain = _as_stored(model, run, score)
            if adjusted := _corrected(plain, *design, attribute, units, wording, measure.corrected):
                own_found.append(adjusted)
        for score in scores:
            measure = measures.get((score.task, score.metric))
            if score.is_whole and score.defined and measure is not None and measure.corrected is not None:
                parts = {one.attribute: one for one in own_found if one.task == score.task}
                if parts.keys() & set(score.parts):
                    found.append(_whole(model, run, score, parts))
        found += own_found
    return found


def _as_stored(model: str, run: Path, score: Score) -> AdjustedScore:
    """Return a score that takes the annotator at its word, without a correction."""
    return AdjustedScore(
        model=model,
        task=score.task,
        attribute=score.attribute or "",
        value=score.value,
        estimate=score.estimate,
        own_low=score.ci[0],
        own_high=score.ci[1],
        run=str(run),
    )


def _whole(model: str, run: Path, score: Score, parts: Mapping[str, AdjustedScore]) -> AdjustedScore:
    """Return a task's score corrected by labels: the mean of its attributes, as its score is.

    The attributes share their responses. The mean of the ends of their intervals holds whatever their errors have in
    common; it is wider than needed where they have little.
    """
    plain = _as_stored(model, run, score)
    if unlabelled := [name for name in score.parts if name not in parts]:
        return replace(plain, undefined=f"no label is about {', '.join(unlabelled)}")
    own = [parts[name] for name in score.parts]
    if reason := next((f"{one.attribute}: {one.undefined}" for one in own if one.undefined), None):
        return replace(plain, undefined=reason)
    to_halve = [one.labels_to_halve for one in own]
    return replace(
        plain,
        # As in the task's own estimate, noise that lies below zero counts against noise above it.
        corrected=max(0.0, fmean(one.unclipped for one in own)),
        unclipped=fmean(one.unclipped for one in own),
        ci_low=fmean(one.ci_low for one in own),
        ci_high=fmean(one.ci_high for one in own),
        labels={group: min(one.labels[group] for one in own) for group in own[0].labels},
        labels_to_halve=None if None in to_halve else max(n for n in to_halve if n is not None),
    )


def _wordings(run: Path, annotator: str | None) -> dict[tuple[str, Label], str]:
    """Return, for each open attribute and comparable label, the wording that the run's scores count it as."""
    rows = read_records(run, "", "open_values", annotator) or []
    return {(row["attribute"], comparable([row["value"]])): row["counts_as"] for row in rows}


def _corrected(
    score: AdjustedScore,
    samples: Samples,
    strata: bool,
    min_count: int,
    attribute: Attribute,
    units: Sequence[Unit],
    wording: Mapping[tuple[str, Label], str],
    correct: Callable[..., Any],
) -> AdjustedScore | None:
    """Return the score corrected by the labels of its responses; None if none of them is labelled.

    All answered responses count, those that the annotator could not parse as well: people may find a value there.
    """

    def one(value: str) -> str:
        if attribute.options:
            return value
        (plain,) = comparable([value])
        return wording.get((attribute.name, (plain,)), plain)

    answered = ~samples.has_status(*UNANSWERED, "empty")
    keys = [key for key, has in zip(samples.keys, answered.tolist(), strict=True) if has]
    place = {key: number for number, key in enumerate(keys)}
    known = [unit for unit in units if unit.response in place]
    settled = [(place[u.response], u.agreed, u.weight) for u in known if u.agreed is not None]
    if not settled:
        return None
    if few := _selected(known):
        return replace(score, undefined=few)
    values = samples.values(attribute.name)
    values = values.renamed([one(name) for name in values.names])
    if attribute.role != "refusal":  # As the score does: a response that declines has no other value.
        values = values.only(samples.has_status("parsed"))
    found = correct(
        values.take(answered),
        samples.groups.take(answered),
        **samples.design(answered, strata=strata),
        labelled_rows=[row for row, _, _ in settled],
        labels=[sorted({one(value) for value in label if value != UNSTATED}) for _, label, _ in settled],
        weights=[weight for _, _, weight in settled],
        min_count=min_count,
        min_labels=MIN_LABELS,
        rng=np.random.default_rng(seed_of(score.task, score.attribute)),
    )
    split = sum(unit.is_labelled for unit in known) - len(settled)
    return replace(
        score,
        corrected=found.estimate,
        unclipped=found.estimate_unclipped,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        labels=dict(zip(found.groups, found.labels, strict=True)),
        labels_to_halve=found.labels_to_halve,
        undefined=found.undefined,
        notes=[*found.notes, *([f"{split} responses on which people are split are left out"] if split else [])],
    )


def _selected(units: Sequence[Unit]) -> str | None:
    """Return why labels are no random part of what was drawn; None where they are, but for a few."""
    drawn = Counter(unit.group for unit in units)
    settled = Counter(unit.group for unit in units if unit.agreed is not None)
    for group in sorted(drawn):
        if settled[group] < DEFAULT_OPTIONS.min_coverage * drawn[group]:
            return (
                f"people settled on a label of {settled[group]} of {drawn[group]} drawn answers of group {group}; "
                f"every group needs {100 * DEFAULT_OPTIONS.min_coverage:g} %; label the sheet from its top"
            )
    return None
