"""Why to trust what is shown of some runs, and why not: each reason in a few words, with a mark."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from equivox.annotate.rules import is_exact
from equivox.audit.stored import StoredAudit
from equivox.compare.asking import named_annotator
from equivox.compare.runs import ComparedRun, recorded_apart
from equivox.core.redact import redacted_text
from equivox.core.scores import DEFAULT_OPTIONS, Score, left_out_of, unusual_options
from equivox.core.text import how_many
from equivox.core.variants import is_intervention
from equivox.dataset_builders.corpus import SAMPLE
from equivox.report.failures import told_gap
from equivox.report.verdicts import (
    LOST,
    SMALLEST_GAP,
    clusters_of,
    listed,
    task_verdicts,
    unequal_losses,
    untold_losses,
)
from equivox.run.plan import without_group

Mark = Literal["good", "bad", "neutral"]
SIGNS: Mapping[Mark, str] = {"good": "✓", "bad": "✗", "neutral": ""}

WELL_USED = 0.9
"""Share of the answers that must enter every score for a good mark."""
ENOUGH_AGREEMENT = 80.0
"""Percent of people's labels that an annotator must surely meet, for every attribute, for a good mark.

That is the lower end of an interval, so that few labels show little: 16 that are all met are the fewest. Labels must be
of every group, and errors must not depend on the group.
"""


@dataclass(frozen=True)
class Trust:
    """One thing that speaks for or against trusting what is shown, or that a reader must know."""

    text: str
    mark: Mark

    def __str__(self) -> str:
        """Return the text with a sign for its mark."""
        return f"{self.text} {SIGNS[self.mark]}".strip()


def losses_in_words(losses: Sequence[str]) -> str:
    """Return ways to lose an answer, by the attributes of their scores, as a list in words."""
    return listed([LOST[name][0] for name in losses])


def reasons_to_trust(runs: Sequence[ComparedRun]) -> Iterator[Trust]:
    """Yield what speaks for and against the numbers of some runs, and what a reader must know of them."""
    told = [(run, one) for run in runs for one in task_verdicts(run)]
    used = [(run, score) for run, one in told for score in one.scores]
    # What a later turn or other words lost is lost, too; so is an attribute that a mean leaves out.
    used += [
        (run, s)
        for run in runs
        for s in run.scores
        if s.is_whole and s.role == "outcome" and is_intervention(s.condition)
    ]
    used += [(run, part) for run, whole in used for part in left_out_of(whole, run.scores)]
    shares = [score.coverage.share for _, score in used if score.coverage.requested]
    if shares:
        yield Trust(f"{_percents(shares)} of answers used", "good" if min(shares) >= WELL_USED else "bad")
    for run in runs:
        if run.answered_by:
            yield Trust(f"{run.answered_by} answered, not the model that was asked", "bad")
    yield from _lost(runs)
    yield from dict.fromkeys(_annotated(run) for run in runs)
    yield from dict.fromkeys(one for run in runs for one in _recorded(run))
    if asked := clusters_of([one for _, one in told]):
        # More clusters would not show what a score leaves out, or what cancels in it.
        unseen = [[s.hidden_difference for s in one.scores] for _, one in told if one.verdict == "cannot tell"]
        untold = any(not any(reasons) for reasons in unseen)
        yield Trust(f"{asked}{', too few for some tests' if untold else ''}", "bad" if untold else "neutral")
    for outside, of, note in dict.fromkeys(found for _, score in used for found in _uncompared(score)):
        yield Trust(note, "bad" if outside > (1 - WELL_USED) * of else "neutral")
    yield from dict.fromkeys(Trust(less, "bad") for run in runs for less in _asks_less(run))
    yield from dict.fromkeys(source for run in runs for source in _sources(run))


_UNCOMPARED = re.compile(r"(\d+) of (\d+) .+ (?:leave them out|are left out)")
"""Notes of `statistics` on what has no counterpart in another group, so that its answers, though used, say nothing."""


def _uncompared(score: Score) -> Iterator[tuple[int, int, str]]:
    """Yield how many clusters, units or strata of a score are left out, of how many, and the note on it."""
    for note in score.notes if score.defined else ():
        if found := _UNCOMPARED.fullmatch(note):
            yield int(found[1]), int(found[2]), note


def _lost(runs: Sequence[ComparedRun]) -> Iterator[Trust]:
    """Yield a bad mark for each run that loses the answers of one group more often than those of another."""
    for run in runs:
        whose = f" ({run.model})" if len(runs) > 1 else ""
        if losses := list(dict.fromkeys(str(score.attribute) for score in unequal_losses(run))):
            yield Trust(f"groups differ in {losses_in_words(losses)}{whose}", "bad")
        told = {str(score.attribute): score for score in reversed(untold_losses(run))}
        for name, score in told.items():
            if name not in losses:
                yield Trust(f"{LOST[name][0]}{whose}: {told_gap(score)}", "bad")


def _recorded(run: ComparedRun) -> Iterator[Trust]:
    """Yield a bad mark for each low sampling rate that the recordings of one group have more often than another's."""
    for rate, shares in recorded_apart(run):
        if max(shares.values()) - min(shares.values()) >= SMALLEST_GAP:
            told = ", ".join(f"{group} {share:.0f} %" for group, share in shares.items())
            yield Trust(f"groups were recorded unlike, at {rate:,} Hz: {told}", "bad")


def _percents(shares: Sequence[float]) -> str:
    """Return a range of shares in whole percents, rounded down.

    >>> _percents([0.94, 0.989]), _percents([1.0]), _percents([0.9999])
    ('94–98 %', '100 %', '99 %')
    """
    low, high = (math.floor(100 * share + 1e-9) for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low}–{high} %"


def _annotated(run: ComparedRun) -> Trust:
    if run.read_by_rules:
        return Trust(f"{run.model} was annotated by rules, which are made for simulated models", "bad")
    if is_exact(run.model, run.annotator):
        return Trust("the annotator, rules, cannot err on simulated answers", "good")
    if run.audits:
        least = min(audit.least_agreement for audit in run.audits)
        # A mean holds every attribute, whichever people labelled.
        scored = {s.attribute for s in run.scores if s.attribute and s.role == "outcome" and not s.subset and s.defined}
        unlabelled = sorted(scored.difference(*(audit.groups for audit in run.audits)))
        unchecked = dict.fromkeys(
            [*unlabelled, *(group for audit in run.audits for group in _without_labels(run, audit))]
        )
        well = least >= ENOUGH_AGREEMENT and not unchecked and not any(audit.unequal for audit in run.audits)
        told = [*(audit.told for audit in run.audits), *(f"no label is about {group}" for group in unchecked)]
        told += ["it is the model itself"] * run.judges_itself
        return Trust("; ".join(told), "good" if well else "bad")
    itself = ", the model itself," if run.judges_itself else ""
    return Trust(f"annotator {named_annotator(run)}{itself} not checked by people", "bad")


def _without_labels(run: ComparedRun, audit: StoredAudit) -> Iterator[str]:
    """Yield the groups, each with an attribute, of which an audit has no label although it has some of that attribute.

    A question about findings belongs to no group.
    """
    for attribute, labelled in audit.groups.items():
        compared = {
            group for s in run.scores if s.attribute == attribute and not s.subset
            for group in s.coverage.requested_by_group
        }  # fmt: skip
        if labelled - {""}:
            yield from (f"{attribute} of {group}" for group in sorted(compared - labelled))


def _asks_less(run: ComparedRun) -> list[str]:
    """Return which options ask less of a run's scores than is declared, in words."""
    found = unusual_options(run.options)
    if run.options.min_coverage > DEFAULT_OPTIONS.min_coverage:
        del found["min_coverage"]
    # Words of a lower similarity count as one, so that fewer of them differ.
    if run.options.merge_threshold > DEFAULT_OPTIONS.merge_threshold:
        found.pop("merge_threshold", None)
    named = ("min_coverage", "look_for", "encoder", "merge_threshold")
    return [redacted_text(found[name]) for name in named if name in found]


def _sources(run: ComparedRun) -> Iterator[Trust]:
    if run.model.startswith("simulated:"):
        yield Trust("simulated models, whose bias is known", "neutral")
    corpora = list(dict.fromkeys(task.data.corpus for task in run.tasks))
    if run.origin.data == SAMPLE and any(task.data.table is None for task in run.tasks):
        yield Trust("the embedded sample, not the published corpora", "bad")
    elif corpora:
        own = " (own data)" if any(task.data.table is not None for task in run.tasks) else ""
        yield Trust(f"data: {listed(corpora)}{own}", "neutral")
    chosen = {task.data.corpus: task.data.wanted for task in run.tasks if task.data.table is not None}
    for corpus, wanted in chosen.items():
        if wanted:
            rows = " and ".join(f"{column} is {' or '.join(values)}" for column, values in wanted.items())
            yield Trust(f"of {corpus} only the rows whose {rows}", "neutral")
    for corpus, count in run.origin.without_group.items():
        yield Trust(f"{how_many(count, 'sample')} of {corpus} without a value of what is compared left out", "bad")
    if again := run.origin.again:
        told = ", ".join(f"{group or 'all'} {share:.0f} %" for group, share in again.items())
        uneven = max(again.values()) - min(again.values()) >= SMALLEST_GAP
        yield Trust(f"failed, and asked again until answered: {told}", "bad" if uneven else "neutral")
    alike: dict[str, int] = {}
    for task in run.tasks:
        alike[without_group(task)] = max(alike.get(without_group(task), 0), run.origin.alike.get(task.name, 0))
    for corpus, count in alike.items():
        if count:
            yield Trust(f"{how_many(count, 'unit')} of {corpus} asked what another one was: no further evidence", "bad")
    if run.origin.limit is not None:
        yield Trust(f"cut to {run.origin.limit:,} samples a task", "bad")
