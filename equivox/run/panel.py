"""A panel: several annotators of one run combined by majority, with what their disagreement does to the scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equivox.annotate.merging import lemmas
from equivox.core.annotation import AnnotatorIdentity
from equivox.core.errors import UsageError
from equivox.core.files import write_document
from equivox.core.samples import ENDED, Row, Samples, samples_table
from equivox.core.scores import NAN, Score, ScoringOptions
from equivox.core.segments import WHOLE, SegmentAnnotation
from equivox.core.task import Task
from equivox.run.annotating import count_answered, write_samples
from equivox.run.pipeline import writing
from equivox.run.scoring import open_samples, read_scores, score
from equivox.run.store import annotations_folder

PANEL = "panel"
"""The name under which a panel's annotations and scores are stored."""


@dataclass(frozen=True, kw_only=True)
class PanelScore:
    """A score of the panel beside those of its members.

    `disagreement` is the share, in percent, of the responses with a value from any member on which the members' values
    differ; for a task it is the mean over its outcome attributes. `alone_low` and `alone_high` are the smallest and
    largest headline that one member alone gives: NaN, with `undefined`, if a member's score is.
    """

    task: str
    attribute: str | None
    name: str
    headline: float
    alone_low: float
    alone_high: float
    disagreement: float
    undefined: str | None = None


def score_panel(
    folder: Path, tasks: Sequence[Task], members: Sequence[str], options: ScoringOptions
) -> tuple[list[Score], list[PanelScore]]:
    """Combine the annotations of `members` by majority, score them as the annotator `panel`, and compare.

    An attribute's value counts if more than half of the members give it. A response on which no value has a majority
    has none: it counts as not annotated, so that coverage falls. Values are compared in lower case and by lemma; the
    wording of the first member that gives the value is kept.

    Raises
    ------
    UsageError
        Fewer than three members, a member twice, or one that has not annotated the run or was not scored.
    """
    if len(members) < 3 or len(set(members)) < len(members):
        raise UsageError(
            f"a panel needs three or more different annotators, got {', '.join(members) or 'none'}: two annotators "
            "have no majority"
        )
    alone = {name: read_scores(folder, name) for name in members}
    with writing(folder):
        disagreement = combine(folder, tasks, members)
        scores = score(folder, tasks, PANEL, options)
    return scores, [_compared(own, alone, disagreement) for own in scores if not own.subset]


def combine(folder: Path, tasks: Sequence[Task], members: Sequence[str]) -> dict[tuple[str, str], float]:
    """Store the panel's samples of each task; return the disagreement of each attribute, and of each task under ""."""
    opened = {name: open_samples(folder, tasks, name) for name in members}
    identity = AnnotatorIdentity(name=PANEL, version="1", settings={"members": list(members)})
    write_document(annotations_folder(folder, PANEL) / "annotator.json", identity.as_dict())
    n_answered = count_answered(folder)
    disagreement: dict[tuple[str, str], float] = {}
    for task in tasks:
        of_task = [opened[name][task.name] for name in members]
        rows = [list(samples.rows()) for samples in of_task]
        combined = [_combined(same) for same in zip(*rows, strict=True)]
        table = samples_table(combined)
        if ENDED in of_task[0].columns:
            table = table.append_column(ENDED, of_task[0].read([ENDED]).column(ENDED))
        write_samples(folder, PANEL, task, table, n_answered=n_answered)
        disagreement |= {(task.name, a.name): _disagreement(of_task, a.name) for a in task.attributes}
        outcomes = [disagreement[task.name, a.name] for a in task.outcomes]
        known = [share for share in outcomes if not math.isnan(share)]
        disagreement[task.name, ""] = math.fsum(known) / len(known) if known else NAN
    return disagreement


def _combined(same: Sequence[Row]) -> Row:
    """Return one sample with the majority of its annotations."""
    first = same[0]
    if len({(row.key, row.sample_id, row.repeat) for row in same}) > 1:
        raise UsageError("the annotators' tables hold different samples; annotate again with each of them")
    if not first.answered:
        return first
    names = dict.fromkeys(name for row in same for name in row.segments)
    segments = {
        name: _majority([row.segments.get(name) for row in same])
        for name in names
        if name == WHOLE or sum(name in row.segments for row in same) * 2 > len(same)
    }
    whole = segments.get(WHOLE)
    return replace(
        first,
        status=whole.status if whole else first.status,
        values=whole.values if whole else {},
        segments=segments,
    )


def _majority(given: Sequence[SegmentAnnotation | None]) -> SegmentAnnotation:
    """Return the values and the status that more than half give; without a majority the status is `unparsed`."""
    known = [one for one in given if one is not None]
    status, n = Counter(one.status for one in known).most_common(1)[0]
    status = status if n * 2 > len(given) else "unparsed"
    values: dict[str, tuple[str, ...]] = {}
    for attribute in dict.fromkeys(name for one in known for name in one.values):
        votes: Counter[str] = Counter()
        wording: dict[str, str] = {}
        for one in known:
            for value in one.values.get(attribute, ()):
                wording.setdefault(_comparable(value), value)
            votes.update({_comparable(value) for value in one.values.get(attribute, ())})
        kept = tuple(wording[value] for value in wording if votes[value] * 2 > len(given))
        if kept:
            values[attribute] = kept
    return SegmentAnnotation(status, values)


def _comparable(value: str) -> str:
    return lemmas(value.strip().casefold())


def _disagreement(members: Sequence[Samples], attribute: str) -> float:
    """Return the share of responses, in percent, on which the members' values differ; NaN if nobody gives a value."""
    lists = [samples.values(attribute).lists() for samples in members]
    differ = total = 0
    for given in zip(*lists, strict=True):
        labels = {frozenset(_comparable(value) for value in values) for values in given}
        if labels != {frozenset()}:
            total += 1
            differ += len(labels) > 1
    return 100 * differ / total if total else NAN


def _compared(
    own: Score, alone: Mapping[str, Sequence[Score]], disagreement: Mapping[tuple[str, str], float]
) -> PanelScore:
    key = (own.task, own.attribute, own.metric, own.subset)
    theirs = [s for scores in alone.values() for s in scores if (s.task, s.attribute, s.metric, s.subset) == key]
    undefined = own.undefined_reason or next((s.undefined_reason for s in theirs if not s.defined), None)
    headlines = [s.headline for s in theirs]
    return PanelScore(
        task=own.task,
        attribute=own.attribute,
        name=own.metric,
        headline=own.headline,
        alone_low=NAN if undefined or not headlines else min(headlines),
        alone_high=NAN if undefined or not headlines else max(headlines),
        disagreement=disagreement.get((own.task, own.attribute or ""), NAN),
        undefined=None if undefined is None else str(undefined),
    )
