"""Unequal losses: do answers of some groups fail, or are they refused, cut off or without a value, more often?

Every task is tested, whatever its metric, because what is lost in one group alone is a difference of its own, and
because the task's score says nothing of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equivox.core.columns import EncodedLabels, cross_count
from equivox.core.hashing import seed_of
from equivox.core.notes import Note, NoteCode
from equivox.core.samples import UNANNOTATED, UNANSWERED, Samples, value_column
from equivox.core.scores import NAN, LargestShift, Score, ScoringOptions
from equivox.core.task import REFUSAL, UNSTATED, Attribute, Task

Bools = NDArray[np.bool_]

CUT_OFF = "truncated"
"""The way to lose the rest of an answer."""

LOST = {
    REFUSAL.name: ({"refused"}, {"parsed"}),
    "failure": ({*UNANSWERED, "empty"}, {"refused", "parsed", "unparsed", UNANNOTATED}),
    UNANNOTATED: ({"unparsed", UNANNOTATED}, {"refused", "parsed"}),
    UNSTATED: (set[str](), {"parsed"}),
    CUT_OFF: (set[str](), {"empty", "refused", "parsed", "unparsed", UNANNOTATED}),
}
"""The ways to lose an answer: the statuses of those that are lost, and of those that they are counted among.

Failures are counted among all requests; what the annotator could not annotate, in whole or in a part of it, among the
responses; refusals, among those that were annotated. An annotated answer is lost, too, if it lacks a usable value of an
outcome (`lost_of`), and a response is lost in part if the token limit cut it off, whatever was found in what there is
of it."""


def by_group(task: Task, samples: Samples) -> Samples:
    """Return samples with the group that each was asked about, of a task that asks about several in every sample."""
    told = f"metadata.{task.compares}"
    if len(samples.groups.names) > 1 or told not in samples.columns:
        return samples
    table = samples.read(samples.columns)
    return replace(samples, source=table.set_column(table.column_names.index("group"), "group", table[told]))


def lost_of(task: Task, samples: Samples, way: str) -> tuple[Bools, Bools]:
    """Return which samples are lost in one of the ways of `LOST`, and which they are counted among.

    An answer lacks a value of an outcome if it does not state it, or if its number is out of the range. Outcomes that
    are annotated in segments alone, as those of GENRES and BADF, are left to their metrics.
    """
    lost, kept = LOST[way]
    counted = samples.has_status(*lost, *kept)
    if way == CUT_OFF:
        return counted & samples.truncated, counted
    if way == UNANNOTATED:
        return counted & (samples.has_status(*lost) | samples.has_part("unparsed")), counted
    if way != UNSTATED:
        return samples.has_status(*lost), counted
    columned = [outcome for outcome in task.outcomes if value_column("", outcome.name) in samples.columns]
    stated: list[Bools] = [states(samples, outcome) for outcome in columned]
    return counted & ~np.all([np.ones(len(samples), dtype=bool), *stated], axis=0), counted


def states(samples: Samples, outcome: Attribute) -> Bools:
    """Return which samples have a value of an outcome that its score can use."""
    values, number = samples.values(outcome.name), outcome.number
    if number is None:
        return values.has_value
    inside = np.array([number.holds(float(name)) for name in values.names], dtype=bool)
    found = np.zeros(len(samples), dtype=bool)
    found[values.rows[inside[values.codes]]] = True
    return found


def loss_scores(task: Task, samples: Samples, options: ScoringOptions) -> list[Score]:
    """Return the nTVD between the groups of each way to lose an answer; [] for a task that compares no groups.

    0 means that the same share is lost in every group. A way that no answer was lost in has no score; that nothing was
    refused is told as such. No score has a floor of coverage but that of refusals, which speak of answers alone. Of an
    undefined score, `largest_shift` has the shares as counted.
    """
    samples = by_group(task, samples)
    if len(samples.groups.names) < 2:
        return []
    found = [_loss(task, samples, options, name) for name in LOST]
    return [score for score in found if score is not None]


def _loss(task: Task, samples: Samples, options: ScoringOptions, name: str) -> Score | None:
    from equivox.statistics import compare_groups

    is_lost, used = lost_of(task, samples, name)
    refusals = name == REFUSAL.name
    if not (refusals or is_lost.any()):
        return None
    coverage = samples.coverage(used, refusal_counts=True)
    reason = coverage.shortfall(options.min_coverage) if refusals else None
    if reason is None and not is_lost.any():
        reason = Note(NoteCode.NO_REFUSALS if used.any() else NoteCode.NOTHING_USABLE)
    low, high = _bounds(samples, used, is_lost)
    groups = samples.groups.take(used)
    score = Score(
        task=task.name, condition=task.condition, dimension=task.dimension, attribute=name,
        role="refusal" if refusals else "loss", metric="nTVD", unit="percent of the largest possible distance",
        coverage=coverage, missing_bounds=(low, high), undefined_reason=reason,
        largest_shift=shares_of_lost(is_lost[used], groups) if is_lost.any() else None,
    )  # fmt: skip
    if reason is not None:
        return score
    seed = seed_of(options.seed, task.name, task.condition)
    design = samples.design(used, strata=bool(task.strata))
    shift = compare_groups(
        EncodedLabels(is_lost[used].astype(np.int64), ("no", "yes")), groups, **design,
        items=samples.items.take(used) if samples.items else None, min_count=1,
        n_resamples=options.n_resamples, rng=np.random.default_rng(seed),
    )  # fmt: skip
    if shift.undefined is not None:
        return replace(score, undefined_reason=shift.undefined)
    shares = 100 * shift.by_group[:, shift.values.index("yes")]
    high, low = int(shares.argmax()), int(shares.argmin())
    return replace(
        score,
        **shift.evidence,
        by_group=dict(zip(shift.groups, shares.tolist(), strict=True)),
        largest_shift=LargestShift(
            value="yes", high_group=shift.groups[high], high_share=float(shares[high]),
            low_group=shift.groups[low], low_share=float(shares[low]),
        ),
    )  # fmt: skip


def shares_of_lost(lost: Bools, groups: EncodedLabels) -> LargestShift:
    """Return the groups with the largest and the smallest share of lost answers; a group without samples has none."""
    of_group = {
        name: 100 * float(lost[groups.codes == code].mean())
        for code, name in enumerate(groups.names)
        if (groups.codes == code).any()
    }
    high, low = max(of_group, key=lambda name: (of_group[name], name)), min(of_group, key=lambda n: (of_group[n], n))
    return LargestShift(value="yes", high_group=high, high_share=of_group[high], low_group=low, low_share=of_group[low])


def _bounds(samples: Samples, used: NDArray[np.bool_], is_lost: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the smallest and largest nTVD over all that could be true of the other samples; NaN if none is used."""
    from equivox.statistics import ntvd_bounds

    if not used.any():
        return NAN, NAN
    n_groups = len(samples.groups.names)
    counts = cross_count(samples.groups.codes[used], is_lost[used].astype(np.int64), (n_groups, 2))
    requested = np.bincount(samples.groups.codes, minlength=n_groups)
    bounds = ntvd_bounds(counts.tolist(), (requested - counts.sum(axis=1)).tolist())
    return bounds.low, bounds.high
