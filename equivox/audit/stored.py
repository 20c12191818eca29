"""Audits that are kept with a run: scores as people would have annotated the answers, and how often they agree.

`RUN/audit/NAME/` holds the key, the labels and the result; NAME is `answers` for whole answers, else a stage of the
annotation. `equivox.audit.kept` makes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from equivox.core.errors import EquivoxError
from equivox.core.files import read_document
from equivox.core.scores import LEVEL, NAN, Score

AUDIT_FOLDER = "audit"
AUDIT_FILE = "audit.json"
ANSWERS = "answers"
"""The name of an audit of whole answers."""


@dataclass(frozen=True, kw_only=True)
class AdjustedScore:
    """A score with the annotator's errors corrected by labels of its own run, task and attribute.

    That of a task has no `attribute`: it is the mean over the task's attributes.

    `value` is the score as published, `estimate` that of the population, with its interval `own_low` to `own_high`; all
    take the annotator at its word. `corrected` is the estimate that annotations by people would give, in the score's
    unit (zero: the groups differ by no more than noise; `unclipped` may be below zero). `ci_low` to `ci_high` is its
    interval, which holds the noise of the labels. They are NaN, with `undefined`, if labels are too few. `labels` is
    how many responses of each group are labelled; about `labels_to_halve` in every group would make the interval half
    as wide (None: labels alone do not).
    `run` is the folder of the score's run.
    """

    model: str
    task: str
    attribute: str
    value: float
    estimate: float
    own_low: float
    own_high: float
    corrected: float = NAN
    unclipped: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    labels: Mapping[str, int] = field(default_factory=dict)
    labels_to_halve: int | None = None
    undefined: str | None = None
    notes: Sequence[str] = ()
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class StoredAudit:
    """An audit as it is kept with a run.

    `name` is `answers` or a stage, `annotator` is the one that was checked, `raters` counts the people and
    `n_responses` what they labelled. `agreement` holds the percent of labels, by attribute, that the annotator met;
    `surely` the lower end of the 95 % interval of this share, where an answer that it could not annotate, on which
    people are split, or that they passed over is not met either (0 without a label); `unsettled` the most answers of an
    attribute that people are split on or passed over; `groups` the groups with a label. `unequal` names the attributes
    in which it met more of one group's than of another's, beyond chance.
    """

    name: str
    annotator: str
    raters: int
    n_responses: int
    agreement: Mapping[str, float] = field(default_factory=dict)
    surely: Mapping[str, float] = field(default_factory=dict)
    unsettled: int = 0
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unequal: Sequence[str] = ()
    corrected: Mapping[tuple[str, str], AdjustedScore] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """The audit in one sentence: who checked how many answers, and how often the annotator met the labels."""
        people = "1 person" if self.raters == 1 else f"{self.raters} people"
        what = "responses" if self.name == ANSWERS else f"answers of the stage {self.name}"
        without = f", {self.unsettled} without one counted as not met" if self.unsettled else ""
        surely = f" (surely {self.least_agreement:.0f} % or more{without})"
        met = f"; it agrees on {_percents(self._shares)} of the labels, by attribute{surely}" if self._shares else ""
        errs = f", and errs more on some groups in {', '.join(self.unequal)}" if self.unequal else ""
        return f"annotator {self.annotator} checked by {people} on {self.n_responses} {what}{met}{errs}"

    @property
    def least_agreement(self) -> float:
        """The percent of labels that the annotator surely meets of the attribute with the fewest; 0 without a label."""
        return min(self.surely.values(), default=0.0)

    @property
    def _shares(self) -> list[float]:
        return [share for share in self.agreement.values() if share is not None and not math.isnan(share)]

    def of(self, score: Score) -> AdjustedScore | None:
        """Return a score as people's labels correct it; None without one, and if the annotations have changed since.

        The score's own estimate and interval are taken from the score, which may have been computed again.
        """
        found = self.corrected.get((score.task, score.attribute or ""))
        if found is None or score.subset:
            return None
        if found.value != score.value and not (math.isnan(found.value) and math.isnan(score.value)):
            return None
        return replace(found, estimate=score.estimate, own_low=score.ci[0], own_high=score.ci[1])


def audit_files(run: Path) -> list[Path]:
    """Return the results of all audits that are kept with a run, by name."""
    return sorted((run / AUDIT_FOLDER).glob(f"*/{AUDIT_FILE}"))


def stored_audits(run: Path, annotator: str) -> list[StoredAudit]:
    """Return the audits of `annotator` that are kept with a run, by name; a damaged one is left out."""
    found = []
    for path in audit_files(run):
        with suppress(EquivoxError, AttributeError, KeyError, TypeError):
            document = read_document(path)
            if document["annotator"] == annotator:
                found.append(_audit(path.parent.name, document))
    return found


def _audit(name: str, document: Mapping[str, Any]) -> StoredAudit:
    known = {f.name for f in fields(AdjustedScore)}
    scores = []
    for one in document["scores"]:
        kept: dict[str, Any] = {n: NAN if v is None and n in _NUMBERS else v for n, v in one.items() if n in known}
        kept |= dict.fromkeys(OF_THE_SCORE, NAN) | {"model": ""}
        scores.append(AdjustedScore(**kept))
    return StoredAudit(
        name=name,
        annotator=document["annotator"],
        raters=document["raters"],
        n_responses=document["n_responses"],
        agreement={one["attribute"]: one["agreement"] for one in document["attributes"]},
        surely={one["attribute"]: _surely(one) for one in document["attributes"]},
        unsettled=max(map(_unsettled, document["attributes"]), default=0),
        groups={one["attribute"]: frozenset(one["by_group"]) for one in document["attributes"]},
        # An annotator's errors depend on the group, by Bonferroni's correction.
        unequal=[
            one["attribute"]
            for one in document["attributes"]
            if (p := one.get("p_groups")) is not None and p * len(document["attributes"]) < LEVEL
        ],
        corrected={(one.task, one.attribute): one for one in scores},
    )


def _surely(audited: Mapping[str, Any]) -> float:
    """Return the lower end, in percent, of Wilson's interval of the share of labels that an annotator meets.

    Of what it could not annotate, what people are split on and what they passed over nobody knows that it is met.

    All of 16 labels are the fewest that show 80 %:

    >>> [round(_surely({"n": n, "agreement": 100.0, "unread": 0})) for n in (5, 10, 16, 40)]
    [57, 72, 81, 91]
    """
    if not audited["n"]:
        return 0.0
    from scipy.stats import binomtest

    met = round(audited["agreement"] / 100 * audited["n"])
    of = audited["n"] + audited["unread"] + _unsettled(audited)
    return float(100 * binomtest(met, of).proportion_ci(method="wilson").low)


def _unsettled(audited: Mapping[str, Any]) -> int:
    """Return how many answers people are split on or passed over."""
    return int(audited.get("split", 0) + audited.get("unlabelled", 0))


OF_THE_SCORE = ("estimate", "own_low", "own_high")
"""Numbers of an adjusted score that are those of its score; they are not kept."""
_NUMBERS = frozenset({"value", "estimate", "own_low", "own_high", "corrected", "unclipped", "ci_low", "ci_high"})


def _percents(shares: Sequence[float]) -> str:
    low, high = math.floor(min(shares)), math.floor(max(shares))
    return f"{low} %" if low == high else f"{low} to {high} %"
