"""How often an annotator and people give the same value of an attribute, and on what they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from equivox.core.lazy import np
from equivox.core.scores import NAN
from equivox.labels.reading import Label, Rating
from equivox.labels.result import AttributeCheck, GroupAgreement


def measure_agreement(attribute: str, ratings: Sequence[Rating]) -> AttributeCheck:
    """Return the agreement of the annotator with people on one attribute."""
    from equivox.statistics import krippendorff_alpha

    labelled = [rating for rating in ratings if rating.people]
    settled = [rating for rating in labelled if rating.agreed is not None]
    read = [rating for rating in settled if rating.annotated is not None]
    met = {group: [r.annotated == r.agreed for r in read if r.group == group] for group in {r.group for r in read}}
    raters = sorted({person for rating in ratings for person in rating.people})
    alpha = krippendorff_alpha(
        [[_join(label) for label in (r.annotated, *(r.people.get(person) for person in raters))] for r in ratings]
    )
    errors = Counter((r.group, _join(r.agreed) or "", _join(r.annotated) or "") for r in read)
    of_all = _share([hit for hits in met.values() for hit in hits]) if read else None
    return AttributeCheck(
        attribute=attribute,
        n=len(read),
        agreement=NAN if of_all is None else of_all.agreement,
        ci=(NAN, NAN) if of_all is None else of_all.ci,
        alpha=alpha.alpha,
        by_group={group: _share(hits) for group, hits in sorted(met.items())},
        p_groups=_test_groups(list(met.values())),
        errors=[
            (group, people, annotator, n)
            for (group, people, annotator), n in errors.most_common()
            if people != annotator
        ],
        split=len(labelled) - len(settled),
        unread=len(settled) - len(read),
        unlabelled=len(ratings) - len(labelled),
        undefined=alpha.undefined if settled else f"people say different things of all {len(labelled)} responses",
    )


def _join(label: Label | None) -> str | None:
    return None if label is None else " + ".join(label)


def _share(met: Sequence[bool]) -> GroupAgreement:
    from scipy.stats import binomtest

    test = binomtest(sum(met), len(met))
    low, high = test.proportion_ci(method="wilson")
    return GroupAgreement(agreement=100 * test.statistic, ci=(100 * float(low), 100 * float(high)), n=len(met))


def _test_groups(met: Sequence[Sequence[bool]]) -> float:
    """Return the p-value of equal agreement in all groups; NaN with one group, no errors or only errors."""
    from scipy import stats

    table = [[sum(group), len(group) - sum(group)] for group in met]
    if len(table) < 2 or not all(map(sum, zip(*table, strict=True))):
        return NAN
    if len(table) == 2:
        return float(stats.fisher_exact(np.array(table)).pvalue)
    return float(stats.chi2_contingency(table).pvalue)
