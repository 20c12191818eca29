"""Tables of an annotator's check against people, of what a run file lacks, and of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equivox.core.scores import Score
from equivox.core.text import how_many, listed
from equivox.labels.result import Audit, CorrectedScore
from equivox.report.notes import write_note
from equivox.report.numbers import DASH, p_value, percent, score_interval, score_value
from equivox.report.table import Table
from equivox.run.panel import PanelScore

SHOWN = 3
"""Up to this many errors of an attribute are shown, and names of what waits for something; of more, the first."""


def audit_tables(audit: Audit, scores: Sequence[Score]) -> list[Table]:
    """Return the agreement of each attribute, and each of `scores` without and with correction by labels."""
    return [_agreement_table(audit), _corrected_table(audit, scores)]


def _agreement_table(audit: Audit) -> Table:
    rows = []
    for entry in audit.attributes:
        measured = [percent(entry.agreement), score_interval(*entry.ci, "percent"), score_value(entry.alpha, "α")]
        counts = map(str, (entry.unread, entry.split, entry.unlabelled))
        rows.append([entry.attribute, "all", str(entry.n), *measured, p_value(entry.p_groups), *counts])
        for group, met in entry.by_group.items():
            share = [percent(met.agreement), score_interval(*met.ci, "percent")]
            rows.append(["", group, str(met.n), *share, *[""] * 5])
    return Table(
        caption=f"The annotator {audit.annotator} against {audit.people}, {audit.n_responses} responses",
        columns=(
            "attribute", "group", "labelled", "agree %", "interval", "α", "p groups", "unread", "split", "passed over"
        ),
        align="llrrrrrrrr",
        rows=rows,
        remarks=[
            *(f"{DASH} {entry.attribute}: {entry.undefined}" for entry in audit.attributes if entry.undefined),
            *(
                f"{entry.attribute}, {group or 'all'}: people say {people!r}, the annotator {read!r}, "
                f"{how_many(n, 'time')}"
                for entry in audit.attributes
                for group, people, read, n in entry.errors[:SHOWN]
            ),
        ],
        notes=[
            "p groups: whether the annotator errs more on one group than on another, which distorts the comparison; "
            "α (Krippendorff): 1 all agree, 0 as by chance.\nunread: answers that the annotator could not read; split: "
            "answers that people label unlike; passed over: rows without a label above one with one. None of them "
            "counts as met."
        ],
    )  # fmt: skip


def _corrected_table(audit: Audit, scores: Sequence[Score]) -> Table:
    pairs = [(score, entry) for score in scores if (entry := audit.of(score)) is not None]
    known = {entry.attribute for _, entry in pairs}
    others = [entry.attribute for entry in audit.attributes if entry.n and entry.attribute not in known]
    why = "labels correct no score of it: none is defined, or its metric has no correction; agreement is all they say"
    return Table(
        caption="Scores without and with people's labels",
        columns=("task", "attribute", "estimate", "interval", "corrected", "interval with labels", "labels a group"),
        align="llrrrrl",
        rows=[
            [
                *(score.task, score.attribute or "all"),
                *(percent(score.estimate), score_interval(*score.ci, "percent")),
                *(percent(entry.corrected), score_interval(*entry.ci, "percent")),
                ", ".join(f"{group} {n}" for group, n in entry.labels.items()),
            ]
            for score, entry in pairs
        ],
        remarks=[
            *(f"{DASH} {_name(entry)}: {write_note(entry.undefined)}" for _, entry in pairs if entry.undefined),
            *(f"{_name(entry)}: {write_note(note)}" for _, entry in pairs for note in entry.notes),
            *(f"{DASH} {name}: {why}" for name in others),
        ],
        notes=[
            "estimate: as the annotator read the responses; corrected: as people would, by their labels (PPI++).\nIts "
            "interval holds the noise of the labels as well as that of the clusters."
        ],
    )


def _name(score: CorrectedScore) -> str:
    return " ".join(filter(None, (score.task, score.attribute)))


def missing_table(found: Mapping[tuple[str, str], Sequence[str]]) -> Table:
    """Return what is missing before a run file can be run, and what waits for it, a line each: reasons are long."""
    order = list(dict.fromkeys(kind for kind, _ in found))
    lines = [
        f"{kind}, needed by {listed(waiting, SHOWN)}: {why}"
        for (kind, why), waiting in sorted(found.items(), key=lambda entry: order.index(entry[0][0]))
    ]
    return Table(caption=f"{len(found)} missing", remarks=lines)


def panel_table(members: Sequence[str], scores: Sequence[PanelScore]) -> Table:
    """Return a panel's scores beside the smallest and largest that one of its members gives alone."""
    return Table(
        caption=f"A panel of {', '.join(members)}",
        columns=("task", "attribute", "metric", "panel", "one alone", "disagree"),
        align="lllrrr",
        rows=[
            [
                *(entry.task, entry.attribute or "", entry.name),
                DASH if entry.headline != entry.headline else percent(entry.headline),
                score_interval(entry.alone_low, entry.alone_high, "percent"),
                DASH if entry.disagreement != entry.disagreement else f"{entry.disagreement:.0f} %",
            ]
            for entry in scores
        ],
        remarks=[
            f"{DASH} {' '.join(filter(None, (entry.task, entry.attribute, entry.name)))}: {entry.undefined}"
            for entry in scores
            if entry.undefined
        ],
        grouped=1,
        notes=[
            "panel: by the majority of the annotators; one alone: the smallest and the largest that one of them gives, "
            "so how much the choice of the annotator matters;\ndisagree: the responses on which their values differ."
        ],
    )
