"""How often an annotator and people give the same value, attribute by attribute, and on what they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from equivox.audit.labels import Label, Unit
from equivox.audit.stored import AdjustedScore
from equivox.core.lazy import np
from equivox.core.plain import as_plain
from equivox.core.scores import NAN
from equivox.core.task import OTHER, UNSTATED


@dataclass(frozen=True, kw_only=True)
class AttributeAudit:
    """Comparison of the annotator with people on one attribute, over all labelled responses.

    `agreement` is the share of responses, in percent, for which the annotator and most people give the same value, with
    its Wilson interval. `kappa` is Cohen's κ of the two and `alpha` Krippendorff's α of all (1 all agree, 0 by chance;
    NaN if nothing varies, with `undefined`). `by_group` holds agreement per group; `p_groups` tests whether it differs
    (Fisher or χ²), because an annotator that errs more on one group distorts the comparison. `errors` counts pairs
    (people's value, annotator's value), the most frequent first. `split` counts responses on which people disagree
    evenly; they enter only α. `unread` counts responses that the annotator could not parse, `unlabelled` rows of the
    sheet that people passed over. For lists of a stage, `precision` is the mean share, in percent, of the annotator's
    values that a person gives too, and `recall` that of a person's values that the annotator gives; NaN where there are
    no such values.
    """

    attribute: str
    n: int
    agreement: float
    ci_low: float
    ci_high: float
    kappa: float
    alpha: float
    by_group: Mapping[str, float]
    p_groups: float
    errors: Sequence[tuple[str, str, int]] = field(default_factory=tuple)
    split: int = 0
    unread: int = 0
    undefined: str | None = None
    unlabelled: int = 0
    precision: float = NAN
    recall: float = NAN


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The result of checking an annotator against labels; `stage` is empty for those of whole responses."""

    raters: Sequence[str]
    n_responses: int
    attributes: Sequence[AttributeAudit]
    scores: Sequence[AdjustedScore]
    stage: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as plain JSON values; NaN becomes None."""
        return dict(as_plain(asdict(self)))


def attribute_audit(name: str, units: Sequence[Unit]) -> AttributeAudit:
    """Return the comparison of the annotator with people on one attribute."""
    from scipy.stats import binomtest

    from equivox.statistics import krippendorff_alpha

    labelled = [unit for unit in units if unit.is_labelled]
    settled = [unit for unit in labelled if unit.agreed is not None]
    read = [unit for unit in settled if unit.given is not None]
    right = sum(unit.given == unit.agreed for unit in read)
    low, high = binomtest(right, len(read)).proportion_ci(method="wilson") if read else (NAN, NAN)
    raters = sorted({rater for unit in units for rater in unit.people})
    alpha = krippendorff_alpha([[unit.given, *(unit.people.get(rater) for rater in raters)] for unit in units])
    kappa, reason = _kappa(read)
    if labelled and not settled:
        reason = f"people say different things of all {len(labelled)} responses; adjudicated.csv takes what is decided"
    errors = Counter(
        (" + ".join(unit.agreed or ()), " + ".join(unit.given or ())) for unit in read if unit.given != unit.agreed
    )
    by_group = {
        group: [u.given == u.agreed for u in read if u.group == group]
        for group in sorted({unit.group for unit in read})
    }
    return AttributeAudit(
        attribute=name,
        n=len(read),
        agreement=100 * right / len(read) if read else NAN,
        ci_low=100 * float(low),
        ci_high=100 * float(high),
        kappa=kappa,
        alpha=alpha.alpha,
        by_group={group: 100 * sum(hits) / len(hits) for group, hits in by_group.items()},
        p_groups=_p_groups(list(by_group.values())),
        errors=[(people, annotator, n) for (people, annotator), n in errors.most_common()],
        split=len(labelled) - len(settled),
        unread=len(settled) - len(read),
        undefined=reason,
        unlabelled=len(units) - len(labelled),
    )


def _kappa(units: Sequence[Unit]) -> tuple[float, str | None]:
    labels = sorted({label for unit in units for label in (unit.given, unit.agreed) if label is not None})
    if len(labels) < 2:
        return NAN, "no response labelled" if not labels else "everyone always says the same: κ has nothing to correct"
    place = {label: index for index, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for unit in units:
        if unit.given is not None and unit.agreed is not None:
            table[place[unit.agreed], place[unit.given]] += 1
    n = table.sum()
    agreement, chance = np.trace(table) / n, np.sum((table.sum(axis=0) / n) * (table.sum(axis=1) / n))
    return float((agreement - chance) / (1 - chance)), None


def _p_groups(hits: Sequence[Sequence[bool]]) -> float:
    """Return the p-value of equal agreement in all groups; NaN with one group, no errors or only errors."""
    from scipy import stats

    table = [[sum(group), len(group) - sum(group)] for group in hits]
    if len(table) < 2 or not sum(row[0] for row in table) or not sum(row[1] for row in table):
        return NAN
    if len(table) == 2:
        return float(stats.fisher_exact(np.array(table)).pvalue)
    return float(stats.chi2_contingency(table).pvalue)


def by_place(units: Sequence[Unit]) -> list[Unit]:
    """Return units whose options differ, such as two names, with the places of the options in place of their texts.

    Otherwise every name would be a category of its own, which hardly anything is by chance.
    """
    offered = {unit.attribute.options for unit in units}
    if len(offered) < 2 or not all(offered):
        return list(units)
    shared = {OTHER, UNSTATED}.union(set.intersection(*map(set, offered)))

    def placed(unit: Unit, label: Label) -> Label:
        places = {value: f"option {place}" for place, value in enumerate(unit.attribute.options, 1)}
        return tuple(value if value in shared else places[value] for value in label)

    return [
        replace(
            unit,
            given=unit.given and placed(unit, unit.given),
            people={name: placed(unit, label) for name, label in unit.people.items()},
            decided=unit.decided and placed(unit, unit.decided),
        )
        for unit in units
    ]


def with_lists(audit: AttributeAudit, units: Sequence[Unit]) -> AttributeAudit:
    """Return the audit of an attribute with precision and recall if it is a list."""
    if not units[0].attribute.is_list:
        return audit
    precision, recall = [], []
    for unit in units:
        for label in unit.people.values() if unit.given is not None else ():
            read, said = set(unit.given or ()) - {UNSTATED}, set(label) - {UNSTATED}
            if read:
                precision.append(len(read & said) / len(read))
            if said:
                recall.append(len(read & said) / len(said))
    return replace(
        audit,
        precision=100 * fmean(precision) if precision else NAN,
        recall=100 * fmean(recall) if recall else NAN,
    )
