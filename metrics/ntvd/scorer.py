"""Scores of the distance between the groups' distributions of answers, and the comparison of two models by it.

One score per attribute, and one for the task (the mean over its outcome attributes, tested jointly). Echo attributes
are scored and never averaged. Refusals are scored for every task, whatever its metric (`equivox.run.scoring`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equivox.core.columns import EncodedLabels, EncodedValues, cross_count
from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.samples import Samples
from equivox.core.scores import LEVEL, NAN, LargestShift, Score, Scored, ScoringOptions, effective_min_count
from equivox.core.task import OTHER, REFUSAL, Attribute, Task
from equivox.metrics.scoring import find_few_units, list_notes, named, rng_of, statistics

_DESCRIPTION = {"metric": "nTVD", "unit": "percent of the largest possible distance"}


def score_distribution_shift(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the nTVD scores of one task: the task itself first, then its attributes.

    The table `values` holds the count of each value in each group, and its share in percent of all values that the
    attribute's score compares; it contains shares for undefined scores too.

    A score is NaN with its reason if any group's usable share is below the coverage floor, if there is nothing to
    compare (one value, one group), or, for the task, if no outcome attribute is defined. Random numbers depend only on
    the options' seed and the task's name, so the same samples always give the same scores.
    """
    if not task.outcomes:
        raise UsageError(f"{task.name}: nTVD needs an attribute with the role outcome; add one to its annotation")
    whole, outcomes = _joint(task, samples, options, task.outcomes)
    echoes = [a for a in task.attributes if a.role == "echo"]
    echo_scores = _joint(task, samples, options, echoes)[1] if echoes else []
    whole = _without_some(whole, outcomes, options)
    few = list_notes(find_few_units(task, samples, samples.has_status("parsed"), options.min_coverage))
    scores = [replace(whole, notes=(*few, *whole.notes)), *outcomes, *echo_scores]
    # Rare values are not left out of refusals, because even a few matter.
    min_counts = {REFUSAL.name: 1} | {score.attribute: score.min_count for score in scores if not score.subset}
    return Scored(scores, {"values": _value_shares(task, samples, min_counts)})


def _without_some(whole: Score, outcomes: Sequence[Score], options: ScoringOptions) -> Score:
    """Return the score of a task with a note on each outcome that too few answers state, and that its mean leaves out.

    The others alone cannot tell that the task shows no difference. Nor can a mean in which one outcome differs, of
    which there is more evidence than of the mean (Bonferroni over the outcomes): the noise of the others hides it.
    """
    short = [part for part in outcomes if whole.defined and part.coverage.shortfall(options.min_coverage) is not None]
    notes = [
        Note(NoteCode.LEFT_OUT, {"attribute": part.attribute, "reason": part.undefined_reason.plain})
        for part in short
        if part.undefined_reason is not None
    ]
    p, clearest = min(((one.p, str(one.attribute)) for one in outcomes if not math.isnan(one.p)), default=(NAN, ""))
    if len(whole.parts) > 1 and len(whole.parts) * p <= min(LEVEL, whole.p):
        notes.append(Note(NoteCode.HIDDEN_BY_MEAN, {"attribute": clearest, "p": p}))
    return replace(whole, notes=(*notes, *whole.notes))


def _value_shares(
    task: Task, samples: Samples, min_counts: Mapping[str | None, int]
) -> list[dict[str, str | int | float]]:
    """Return the share of each value within each group, as in Fig. 2 of the paper."""
    shares: list[dict[str, str | int | float]] = []
    for attribute in task.attributes:
        values = samples.values(attribute.name)
        counts = _counts(values, samples.groups)
        overall = counts.sum(axis=0)
        kept = [code for code in np.argsort(-overall, kind="stable") if overall[code] >= min_counts[attribute.name]]
        for group, name in enumerate(samples.groups.names):
            if not counts[group].sum():
                continue
            total = counts[group, kept].sum()
            shares += [
                {
                    "attribute": attribute.name,
                    "role": attribute.role,
                    "value": values.names[code],
                    "group": name,
                    "n": int(counts[group, code]),
                    "percent": 100 * float(counts[group, code]) / float(total) if total else NAN,
                }
                for code in kept
            ]
    return shares


def _counts(values: EncodedValues, groups: EncodedLabels) -> NDArray[np.int64]:
    """Return the count of each value (columns) in each group (rows)."""
    return cross_count(groups.codes[values.rows], values.codes, (len(groups.names), len(values.names)))


def _joint(
    task: Task, samples: Samples, options: ScoringOptions, attributes: Sequence[Attribute]
) -> tuple[Score, list[Score]]:
    """Return the score of the task and of each attribute."""
    from equivox.metrics.ntvd.published import compute_published_p

    min_count = effective_min_count(options, len(samples))
    parsed = samples.has_status("parsed")
    values = {a.name: samples.values(a.name) for a in attributes}
    used = {name: parsed & own.has_value for name, own in values.items()}
    coverages = {name: samples.coverage(mask) for name, mask in used.items()}
    short = {name: coverage.shortfall(options.min_coverage) for name, coverage in coverages.items()}
    enough = [a.name for a in attributes if short[a.name] is None and coverages[a.name].used]
    joint: statistics.Shift | None = None
    published: dict[str, float] = {}
    if enough:
        answers, groups = {name: values[name].take(parsed) for name in enough}, samples.groups.take(parsed)
        joint = statistics.compare_attributes(
            answers,
            groups,
            **samples.design(parsed, strata=bool(task.strata)),
            items=samples.items.take(parsed) if samples.items else None,
            min_count=min_count,
            n_resamples=options.n_resamples,
            rng=rng_of(options.seed, task.name, task.condition),
        )
        kept = {name: _keep_names(answers[name], joint.attributes[name].values) for name in joint.defined}
        if kept:
            rng = rng_of(options.seed, task.name, task.condition)
            published = compute_published_p(kept, groups, n_resamples=options.n_resamples, rng=rng)
    shifts = joint.attributes if joint else {}
    parts = [
        _attribute_score(
            task,
            a,
            samples,
            values[a.name],
            min_count,
            coverages[a.name],
            short[a.name],
            shifts.get(a.name),
            published.get(a.name, NAN),
        )
        for a in attributes
    ]
    coverage = samples.coverage(np.any(list(used.values()), axis=0))
    reason = coverage.shortfall(options.min_coverage)
    if reason is None and (joint is None or joint.undefined is not None):
        reasons = {str(part.attribute): part.undefined_reason.plain for part in parts if part.undefined_reason}
        reason = Note(NoteCode.NO_ATTRIBUTE, {"reasons": reasons})
    numbers = {}
    if joint is not None and reason is None:
        numbers = {**joint.evidence, "p_published": published[""]}
    # The means of the attributes' bounds bound the task's mean.
    known = () if joint is None else joint.defined
    averaged = [part for part in parts if not known or part.attribute in known]
    whole = Score(
        **named(task) | _DESCRIPTION | {"role": attributes[0].role},
        **numbers,
        missing_bounds=(
            sum(part.missing_bounds[0] for part in averaged) / len(averaged),
            sum(part.missing_bounds[1] for part in averaged) / len(averaged),
        ),
        coverage=coverage,
        undefined_reason=reason,
        by_group=max((part.by_group for part in averaged), key=_spread, default={}) if reason is None else {},
    )
    mean_of = Note(NoteCode.MEAN_OF, {"attributes": list(joint.defined) if joint else [], "of": len(attributes)})
    largest = [_find_largest(parts, code) for code in (NoteCode.RARE_VALUES, NoteCode.OTHER_VALUES)]
    return replace(whole, notes=(mean_of, *list_notes(*largest), *whole.notes)), parts


def _keep_names(values: EncodedValues, names: Sequence[str]) -> EncodedValues:
    """Return the values that are among `names`; the others are left out."""
    kept = np.isin(values.names, names)[values.codes]
    return replace(values, rows=values.rows[kept], codes=values.codes[kept])


def _find_largest(parts: Sequence[Score], code: NoteCode) -> Note | None:
    """Return the note of a code with the largest share; None without any."""
    notes = [note for part in parts for note in part.notes if note.code == code]
    return max(notes, key=lambda note: note.values["share"], default=None)


def _attribute_score(
    task: Task,
    attribute: Attribute,
    samples: Samples,
    values: EncodedValues,
    min_count: int,
    coverage: Coverage,
    shortfall: Note | None,
    shift: statistics.Shift | None,
    p_published: float,
) -> Score:
    reason = shortfall or (None if shift else Note(NoteCode.NOTHING_USABLE))
    if reason is None and shift is not None and shift.undefined is not None:
        reason = shift.undefined
    defined = shift if reason is None else None
    rare = 0.0 if shift is None or math.isnan(shift.removed_share) else shift.removed_share
    notes = [Note(NoteCode.RARE_VALUES, {"share": rare, "min_count": min_count})]
    if attribute.options and len(values.codes):
        notes.append(Note(NoteCode.OTHER_VALUES, {"share": _share_of_other(values)}))
    score = Score(
        **named(task) | _DESCRIPTION | {"attribute": attribute.name, "role": attribute.role},
        **({**defined.evidence, "p_published": p_published} if defined else {}),
        missing_bounds=_worst_case(samples, values, attribute, coverage, shift),
        largest_shift=_largest_shift(defined) if defined else None,
        by_group=_shares_of_largest(defined) if defined else {},
        coverage=coverage,
        undefined_reason=reason,
    )
    return replace(score, notes=(*notes, *score.notes))


def _share_of_other(values: EncodedValues) -> float:
    """Return the share of the values that are none of the options."""
    is_other = np.array([name == OTHER for name in values.names], dtype=bool)
    return float(is_other[values.codes].mean())


def _worst_case(
    samples: Samples,
    values: EncodedValues,
    attribute: Attribute,
    coverage: Coverage,
    shift: statistics.Shift | None,
) -> tuple[float, float]:
    """Return the smallest and largest nTVD that the missing responses allow; NaN if nothing is known."""
    groups = list(coverage.requested_by_group)
    known = None if shift is None or not shift.values else set(shift.values)
    names = [(name, code) for code, name in enumerate(values.names) if known is None or name in known]
    counts = _counts(values, samples.groups)[:, [code for _, code in sorted(names)]]
    if not counts.sum() or len(groups) < 2:
        return NAN, NAN
    missing = [attribute.count * (coverage.requested_by_group[g] - coverage.used_by_group[g]) for g in groups]
    if any(not total and not lost for total, lost in zip(counts.sum(axis=1), missing, strict=True)):
        # All values of a group were too rare to be compared, so its distance from the others has no bounds.
        return NAN, NAN
    bounds = statistics.ntvd_bounds(counts.tolist(), missing)
    return bounds.low, bounds.high


def _shares_of_largest(shift: statistics.Shift) -> dict[str, float]:
    """Return the share of each group, in percent, of the value whose shares differ most."""
    return dict(zip(shift.groups, (100 * shift.by_group[:, _most_unequal(shift)]).tolist(), strict=True))


def _most_unequal(shift: statistics.Shift) -> int:
    """Return the place of the value whose shares differ most between groups."""
    shares = 100 * shift.by_group
    return int((shares.max(axis=0) - shares.min(axis=0)).argmax())


def _spread(by_group: Mapping[str, float]) -> float:
    return max(by_group.values(), default=0.0) - min(by_group.values(), default=0.0)


def _largest_shift(shift: statistics.Shift) -> LargestShift:
    shares, value = 100 * shift.by_group, _most_unequal(shift)
    high, low = int(shares[:, value].argmax()), int(shares[:, value].argmin())
    return LargestShift(
        value=shift.values[value],
        high_group=shift.groups[high],
        high_share=float(shares[high, value]),
        low_group=shift.groups[low],
        low_share=float(shares[low, value]),
    )


def compare_shifts(name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare the mean over tasks of the mean over the attributes that are defined for both models."""
    total = sum(len(task.samples_a) for task in tasks)
    columns: tuple[dict[str, EncodedValues], dict[str, EncodedValues]] = ({}, {})
    weights: dict[str, float] = {}
    start = 0
    for paired in tasks:
        shared = [part for part in paired.score_a.parts if part in paired.score_b.parts]
        if not shared:
            return PairedValues(undefined=remark(f"no attribute of {paired.task.name} is defined for both models"))
        for attribute in shared:
            label = attribute if len(tasks) == 1 else f"{paired.task.name}/{attribute}"
            weights[label] = 1 / len(shared)
            for column, samples in zip(columns, (paired.samples_a, paired.samples_b), strict=True):
                stated = samples.parsed_values(attribute)
                column[label] = replace(stated, rows=stated.rows + start, n_rows=total)
        start += len(paired.samples_a)
    strata, blocks = _held(tasks)
    return statistics.compare_runs(
        columns[0],
        columns[1],
        EncodedLabels.concatenated([paired.samples_a.groups for paired in tasks]),
        clusters=EncodedLabels.concatenated([paired.samples_a.clusters for paired in tasks]),
        strata=strata,
        blocks=blocks,
        weights=weights,
        min_count=max(max(paired.score_a.min_count, paired.score_b.min_count) for paired in tasks),
        n_resamples=n_resamples,
        rng=rng,
    )


def _held(tasks: Sequence[PairedTask]) -> tuple[EncodedLabels | None, EncodedLabels | None]:
    """Return the strata and the blocks that every task holds equal, as the scores of one model do; None for neither."""
    strata = [paired.samples_a.strata for paired in tasks if paired.task.strata]
    blocks = [paired.samples_a.blocks for paired in tasks if paired.samples_a.blocks]
    return (
        EncodedLabels.concatenated(strata) if len(strata) == len(tasks) else None,
        EncodedLabels.concatenated(blocks) if len(blocks) == len(tasks) else None,
    )
