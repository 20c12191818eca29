"""Tables of an annotator's check against people, of what a run file lacks, and of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equivox.audit.agreement import Audit
from equivox.audit.stored import AdjustedScore
from equivox.core.text import how_many, listed
from equivox.report.numbers import DASH, p_value, percent, score_interval, score_value
from equivox.report.table import Table
from equivox.run.panel import PanelScore

SHOWN = 3
"""Up to this many errors of an attribute are shown, and names of what waits for something; of more, the first."""


def audit_tables(audit: Audit) -> list[Table]:
    """Return agreement per attribute with the most frequent errors, and each score without and with correction."""
    agreement = Table(
        caption=f"The annotator against {_people(audit)}, {audit.n_responses} responses",
        columns=(
            "attribute", "labelled", "agree %", "interval", "κ", "α", "by group %", "p groups", "unread", "split",
            "passed over",
        ),
        align="lrrrrrlrrrr",
        rows=[
            [
                *(entry.attribute, str(entry.n), percent(entry.agreement)),
                score_interval(entry.ci_low, entry.ci_high, "percent"),
                *(score_value(entry.kappa, "κ"), score_value(entry.alpha, "α")),
                ", ".join(f"{group} {percent(value)}" for group, value in entry.by_group.items()),
                *(p_value(entry.p_groups), str(entry.unread), str(entry.split), str(entry.unlabelled)),
            ]
            for entry in audit.attributes
        ],
        remarks=_disagreement(audit),
        notes=[
            "p groups: whether the annotator errs more on one group than on another, which distorts the comparison; "
            "κ, α: 1 all agree, 0 as by chance.\nunread: answers that the annotator could not read; split: that people "
            "label unlike; passed over: rows without a label above one with one. None of them counts as met."
        ],
    )  # fmt: skip
    known = {score.attribute for score in audit.scores}
    others = [entry.attribute for entry in audit.attributes if entry.n and entry.attribute not in known]
    why = "labels correct no score of it: none is defined, or its metric has no correction; agreement is all they say"
    corrected = Table(
        caption="Scores without and with people's labels",
        columns=(
            "model", "task", "attribute", "estimate", "interval", "corrected", "interval with labels", "labels a group"
        ),
        align="lllrrrrl",
        rows=[
            [
                *(score.model, score.task, score.attribute or "all"),
                *(percent(score.estimate), score_interval(score.own_low, score.own_high, "percent")),
                *(percent(score.corrected), score_interval(score.ci_low, score.ci_high, "percent")),
                ", ".join(f"{group} {n}" for group, n in score.labels.items()),
            ]
            for score in audit.scores
        ],
        remarks=[
            *(f"{DASH} {_named(score)}: {score.undefined}" for score in audit.scores if score.undefined),
            *(f"{_named(score)}: {note}" for score in audit.scores for note in score.notes),
            *(f"{DASH} {name}: {why}" for name in others),
        ],
        notes=[
            "estimate: as the annotator read the responses; corrected: as people would, by their labels of this model "
            "and task (PPI++).\nIts interval holds the noise of the labels as well as that of the clusters."
        ],
    )  # fmt: skip
    return [agreement, corrected]


def stage_audit_table(audit: Audit) -> Table:
    """Return the agreement of people and annotator at one stage, a line per attribute, with the frequent errors."""
    what = "response" if audit.n_responses == 1 else "responses or findings"
    return Table(
        caption=f"The annotator at the stage {audit.stage} against {_people(audit)}, {audit.n_responses} {what}",
        columns=(
            "attribute", "labelled", "passed over", "agree %", "interval", "κ", "α", "precision", "recall", "unread",
            "split",
        ),
        align="lrrrrrrrrrr",
        rows=[
            [
                *(entry.attribute, str(entry.n), str(entry.unlabelled), percent(entry.agreement)),
                score_interval(entry.ci_low, entry.ci_high, "percent"),
                *(score_value(entry.kappa, "κ"), score_value(entry.alpha, "α")),
                *(percent(entry.precision), percent(entry.recall), str(entry.unread), str(entry.split)),
            ]
            for entry in audit.attributes
        ],
        remarks=_disagreement(audit),
        notes=[
            "agree: all values alike; of a list, precision and recall: shares of the annotator's values that people "
            "give too, and of people's that it gives. Passed over: rows without a label before the last one with one."
        ],
    )  # fmt: skip


def _people(audit: Audit) -> str:
    return f"{len(audit.raters)} {'person' if len(audit.raters) == 1 else 'people'} ({', '.join(audit.raters)})"


def _disagreement(audit: Audit) -> list[str]:
    """Return why numbers are undefined, and the most frequent errors of each attribute."""
    undefined = [f"{DASH} {entry.attribute}: {entry.undefined}" for entry in audit.attributes if entry.undefined]
    return undefined + [
        f"{entry.attribute}: people say {said!r}, the annotator {read!r}, {how_many(n, 'time')}"
        for entry in audit.attributes
        for said, read, n in entry.errors[:SHOWN]
    ]


def _named(score: AdjustedScore) -> str:
    return " ".join(filter(None, (score.model, score.task, score.attribute)))


def stage_table(measures: Sequence[Mapping[str, Any]], left_out: Mapping[str, int]) -> Table:
    """Return how people judge the annotator's lists, a line per attribute, see `equivox.audit.kept.score_shares`."""
    return Table(
        caption="stages against people",
        columns=("measure", "value", "interval", "labels"),
        align="lrrr",
        rows=[
            [
                one["name"],
                f"{one['value']:.4f}" if one["value"] == one["value"] else DASH,
                score_interval(one["low"], one["high"], "share"),
                str(one["n"]),
            ]
            for one in measures
        ],
        remarks=[f"{n} texts of {name} were judged by nobody and are left out" for name, n in left_out.items()],
        notes=["interval: 95 %, over the labels"],
    )


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
