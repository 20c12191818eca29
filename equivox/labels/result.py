"""The result of checking an annotator against people, as it is printed and as it can be stored with the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from equivox.core.errors import EquivoxError
from equivox.core.fields import adapter
from equivox.core.files import read_document
from equivox.core.notes import Note
from equivox.core.plain import as_plain
from equivox.core.scores import LEVEL, NAN, Number, Score

LABELS_FOLDER = "labels"
RESULT_FILE = "labels.json"


@dataclass(frozen=True, kw_only=True)
class CorrectedScore:
    """A score with the annotator's errors corrected by labels of the same task and attribute.

    `value` is the score as published, with the annotator's values. `corrected` is the estimate that people's values
    would give, in the score's unit (zero: the groups differ by no more than noise). `ci` is its interval, which
    holds the noise of the labels. They are NaN, with `undefined`, if labels are too few. `labels` counts the
    labelled answers of each group. The score of a task has no `attribute`: it is the mean over the task's
    attributes.
    """

    task: str
    attribute: str
    metric: str
    value: Number
    corrected: Number = NAN
    ci: tuple[Number, Number] = (NAN, NAN)
    labels: Mapping[str, int] = field(default_factory=dict)
    undefined: Note | str | None = None
    notes: Sequence[Note | str] = ()


@dataclass(frozen=True, kw_only=True)
class GroupAgreement:
    """The share of a group's labels that the annotator meets, in percent, with its Wilson interval."""

    agreement: float
    ci: tuple[float, float]
    n: int


@dataclass(frozen=True, kw_only=True)
class AttributeCheck:
    """How often the annotator and people give the same value of an attribute.

    `agreement` is the percent of the `n` labels that the annotator meets, with its Wilson interval; NaN without labels.
    Labels are those of most people. `alpha` is Krippendorff's α of people and annotator (1 all agree, 0 by chance; NaN,
    with `undefined`, if nothing varies). `p_groups` tests whether the agreement differs between groups (Fisher or χ²):
    an annotator that errs more on one group than on another distorts the comparison. `errors` has the group, people's
    value, the annotator's value and how often, the most frequent first. `split` counts answers on which people disagree
    evenly, `unread` those that the annotator could not read, and `unlabelled` those that people passed over.
    """

    attribute: str
    n: int
    agreement: Number
    ci: tuple[Number, Number]
    alpha: Number
    by_group: Mapping[str, GroupAgreement]
    p_groups: Number
    errors: Sequence[tuple[str, str, str, int]] = ()
    split: int = 0
    unread: int = 0
    unlabelled: int = 0
    undefined: str | None = None

    @property
    def least(self) -> float:
        """The percent of labels that the annotator meets at least: the lower end of a Wilson interval; 0 without one.

        An answer that it could not read, on which people are split, or that they passed over counts as not met.
        """
        if not self.n:
            return 0.0
        from scipy.stats import binomtest

        met = round(self.agreement / 100 * self.n)
        drawn = self.n + self.unread + self.split + self.unlabelled
        return float(100 * binomtest(met, drawn).proportion_ci(method="wilson").low)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The check of `annotator` by `raters` people who labelled `n_responses` answers."""

    annotator: str
    raters: int
    n_responses: int
    attributes: Sequence[AttributeCheck] = ()
    scores: Sequence[CorrectedScore] = ()

    @property
    def least_agreement(self) -> float:
        """The percent of labels that the annotator surely meets of the attribute with the fewest; 0 without labels."""
        return min((entry.least for entry in self.attributes), default=0.0)

    @property
    def unsettled(self) -> int:
        """The most answers of an attribute that people are split on or passed over."""
        return max((entry.split + entry.unlabelled for entry in self.attributes), default=0)

    @property
    def unequal(self) -> list[str]:
        """The attributes in which the annotator errs more on some groups, beyond chance (Bonferroni)."""
        return [entry.attribute for entry in self.attributes if entry.p_groups * len(self.attributes) < LEVEL]

    @property
    def groups(self) -> dict[str, frozenset[str]]:
        """The groups with a label, by attribute."""
        return {entry.attribute: frozenset(entry.by_group) for entry in self.attributes}

    @property
    def people(self) -> str:
        """How many people labelled answers, in words."""
        return "1 person" if self.raters == 1 else f"{self.raters} people"

    @property
    def summary(self) -> str:
        """One sentence: how many people checked how many answers, and how often the annotator meets their labels."""
        without = f", {self.unsettled} without one counted as not met" if self.unsettled else ""
        surely = f" (surely {self.least_agreement:.0f} % or more{without})"
        shares = [math.floor(entry.agreement) for entry in self.attributes if entry.n]
        percents = " to ".join(f"{share}" for share in dict.fromkeys((min(shares), max(shares)))) if shares else ""
        met = f"; it agrees on {percents} % of the labels, by attribute{surely}" if shares else ""
        errs = f", and errs more on some groups in {', '.join(self.unequal)}" if self.unequal else ""
        return f"annotator {self.annotator} checked by {self.people} on {self.n_responses} responses{met}{errs}"

    def of(self, score: Score) -> CorrectedScore | None:
        """Return a score as labels correct it; None without one, and if the annotations have changed since."""
        if score.subset:
            return None
        wanted = (score.task, score.attribute or "", score.metric)
        for entry in self.scores:
            same = entry.value == score.value or (math.isnan(entry.value) and math.isnan(score.value))
            if (entry.task, entry.attribute, entry.metric) == wanted and same:
                return entry
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values; NaN becomes None."""
        return dict(as_plain(asdict(self)))


def read_audit(run: Path) -> Audit | None:
    """Return the result that is stored with a run, None without one; EquivoxError or ValueError if it is damaged."""
    path = run / LABELS_FOLDER / RESULT_FILE
    if not path.is_file():
        return None
    audit: Audit = adapter(Audit).validate_python(read_document(path))
    return audit


def list_audits(run: Path, annotator: str) -> list[Audit]:
    """Return the result of checking `annotator` that is stored with a run; [] without one, and if it is damaged."""
    with suppress(EquivoxError, ValueError):
        audit = read_audit(run)
        return [audit] if audit is not None and audit.annotator == annotator else []
    return []
