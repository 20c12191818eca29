"""BADF of tables that were made elsewhere, such as the released files: a list of associations, and people's labels.

`association_list` counts the associations of a list. `annotated_stories`, `exclusivity_labels` and
`cluster_labels` check BADF's annotator against people (arXiv 2508.01412, appendix H): how often each stage is right.
`equivox label` takes the labels of a run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.scores import NAN
from equivox.metrics.badf.associations import LEVEL, summary
from equivox.metrics.column_metric import Column, ColumnMetric, groups_of, row_coverage
from equivox.metrics.scoring import statistics


def listed_associations(
    *,
    identities: Column,
    scores: Column,
    p_values: Column,
    exclusive: Column = (),
    min_coverage: float = 0.8,
) -> dict[str, Any]:
    """Return Table 14 of a list: associations, mean score and mean p, of all and of each identity.

    A row is one phrase of one identity in one category of places, with its score and its published p. Rows with a
    score up to 0 or a p above .05 are no associations. `exclusive` is YES for a fact of the identity, which is dropped,
    and NO otherwise; a row without it is kept. A row without score or p counts against coverage. NaN, with the reason
    in `undefined`, when too few rows of an identity are usable; the means of no associations are NaN.

    A list says nothing of the phrases that were tested and not kept: what chance gives is not known, nor is q.
    """
    who = groups_of("identities", identities)
    usable = [score is not None and p is not None for score, p in zip(scores, p_values, strict=True)]
    coverage = row_coverage(usable, who)
    reason = coverage.shortfall(min_coverage)
    kept: list[tuple[str, float, float]] = []
    facts = 0
    for identity, score, p, answer in zip(who, scores, p_values, exclusive, strict=True):
        # What is not known is kept, as published.
        known = answer is not None and answer.strip().lower() != "unparsed"
        is_fact = known and _yes_or_no("exclusive", answer) == "YES"
        if score is None or p is None:
            continue
        if not 0 <= p <= 1:
            raise UsageError(f"`p_values` holds {p:g} for {identity}: a p lies between 0 and 1")
        if score > 0 and p <= LEVEL:
            facts += is_fact
            if not is_fact:
                kept.append((identity, score, p))
    result: dict[str, Any] = {}
    everybody: list[str | None] = [None, *sorted(set(who))]
    for group in everybody:
        own = [(score, p) for name, score, p in kept if group in {None, name}]
        ending = "" if group is None else f"_{group}"
        names = [f"{name}{ending}" for name in ("associations", "mean_score", "mean_p")]
        cell = summary([score for score, _ in own], [p for _, p in own])
        result |= dict.fromkeys(names, NAN) if reason else dict(zip(names, cell, strict=True))
    return {
        **result,
        "exclusive": NAN if reason else facts,
        "n_rows": len(who),
        "coverage": coverage.share,
        "undefined": None if reason is None else str(reason),
    }


def story_shares(*, recall: Column, precision: Column, decomposition_accuracy: Column) -> dict[str, Any]:
    """Return the means of three shares per story, 0 to 1, with 95 % intervals over stories.

    A story that lacks one of the three is left out and counted in `left_out`; the means of none are NaN.
    """
    given = {"recall": recall, "precision": precision, "decomposition_accuracy": decomposition_accuracy}
    whole = [values for values in zip(*given.values(), strict=True) if None not in values]
    result: dict[str, Any] = {}
    for name, values in zip(given, zip(*whole, strict=True) if whole else [()] * 3, strict=True):
        for value in values:
            if not 0 <= value <= 1:
                raise UsageError(f"`{name}` holds {value:g}: give a share from 0 to 1")
        low, high = compute_mean_interval(values, rng=np.random.default_rng(0))
        mean = math.fsum(values) / len(values) if values else NAN
        result |= {name: mean, f"{name}_low": low, f"{name}_high": high}
    reason = None if whole else "no story has all three shares"
    return result | {"n_rows": len(whole), "left_out": len(recall) - len(whole), "undefined": reason}


def exclusivity_agreement(*, gold: Column, answer: Column) -> dict[str, Any]:
    """Return how often an annotator's YES or NO is that of people: share, 95 % interval over phrases, Krippendorff's α.

    `exclusive_found` of `exclusive` phrases that people call exclusive were called so. A phrase without one of the two
    answers is left out and counted in `left_out`. The interval is NaN if all labels agree, α if all are equal.
    """
    pairs = [(_yes_or_no("gold", a), _yes_or_no("answer", b)) for a, b in zip(gold, answer, strict=True) if a and b]
    if not pairs:
        nothing = dict.fromkeys(("agreement", "agreement_low", "agreement_high", "alpha"), NAN)
        return nothing | {"n_rows": 0, "left_out": len(gold), "undefined": "no phrase has both answers"}
    right = [float(a == b) for a, b in pairs]
    found = [b == "YES" for a, b in pairs if a == "YES"]
    low, high = compute_mean_interval(right, rng=np.random.default_rng(0))
    return {
        "agreement": sum(right) / len(right),
        "agreement_low": low,
        "agreement_high": high,
        "alpha": statistics.krippendorff_alpha(pairs).alpha,
        "agreed": int(sum(right)),
        "exclusive": len(found),
        "exclusive_found": sum(found),
        "n_rows": len(pairs),
        "left_out": len(gold) - len(pairs),
        "undefined": None,
    }


def _yes_or_no(name: str, value: str) -> str:
    if value.strip().upper() not in {"YES", "NO"}:
        raise UsageError(f"`{name}` holds {value!r}: give YES or NO, nothing where it is not known")
    return value.strip().upper()


def cluster_agreement(*, gold: Column, found: Column) -> dict[str, Any]:
    """Return homogeneity, completeness and V-measure of an encoder's clusters against those of people, 0 to 1."""
    pairs = [(a, b) for a, b in zip(gold, found, strict=True) if a and b]
    names = ("homogeneity", "completeness", "v_measure")
    values = measure_clusters([a for a, _ in pairs], [b for _, b in pairs]) if pairs else [NAN] * 3
    counts = {"n_rows": len(pairs), "left_out": len(gold) - len(pairs)}
    reason = None if pairs else "no phrase has both clusters"
    return dict(zip(names, values, strict=True)) | counts | {"undefined": reason}


def compute_mean_interval(values: Sequence[float], *, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % BCa interval of the mean of independent values, in their unit; NaN if nothing varies.

    Efron 1987, https://doi.org/10.1080/01621459.1987.10478410, as scipy computes it.
    """
    from scipy import stats

    if len(set(values)) < 2:
        return math.nan, math.nan
    found = stats.bootstrap((np.asarray(values),), np.mean, n_resamples=9999, rng=rng).confidence_interval
    return float(found.low), float(found.high)


def measure_clusters(gold: Sequence[Hashable], found: Sequence[Hashable]) -> tuple[float, float, float]:
    """Return homogeneity, completeness and V-measure of clusters against labels, 0 to 1.

    Homogeneity is 1 if no cluster mixes labels, completeness is 1 if no label is spread over clusters; V is their
    harmonic mean. With a single label homogeneity is 1, with a single cluster completeness is 1. Rosenberg and
    Hirschberg 2007, ACL D07-1043. Both sequences have the same length, which is not 0.

    >>> measure_clusters("aabb", "1122")
    (1.0, 1.0, 1.0)
    >>> measure_clusters("aabb", "1111")
    (0.0, 1.0, 0.0)
    """
    of_gold, of_found = _entropy(gold), _entropy(found)
    together = _entropy(list(zip(gold, found, strict=True)))
    homogeneity = 1.0 if of_gold == 0 else 1 - (together - of_found) / of_gold
    completeness = 1.0 if of_found == 0 else 1 - (together - of_gold) / of_found
    total = homogeneity + completeness
    return homogeneity, completeness, 2 * homogeneity * completeness / total if total > 0 else 0.0


def _entropy(labels: Sequence[Hashable]) -> float:
    n = len(labels)
    return -math.fsum(k / n * math.log(k / n) for k in Counter(labels).values())


LISTED = ColumnMetric(
    name="association_list",
    measure=listed_associations,
    required={"identities": "text", "scores": "number", "p_values": "number"},
    optional={"exclusive": "text"},
    description=(
        "BADF of a list of associations, such as the released files: their number, mean score and mean p per identity "
        "(Table 14)."
    ),
    citation="arXiv:2508.01412",
)

STORIES = ColumnMetric(
    name="annotated_stories",
    measure=story_shares,
    required={"recall": "number", "precision": "number", "decomposition_accuracy": "number"},
    description="How well BADF's annotator takes phrases out of stories, by people's labels of each story.",
    citation="arXiv:2508.01412",
)

EXCLUSIVITY = ColumnMetric(
    name="exclusivity_labels",
    measure=exclusivity_agreement,
    required={"gold": "text", "answer": "text"},
    description="How often BADF's annotator agrees with people on whether a phrase is a fact of one identity.",
    citation="arXiv:2508.01412",
)

CLUSTERS = ColumnMetric(
    name="cluster_labels",
    measure=cluster_agreement,
    required={"gold": "text", "found": "text"},
    description="How well clusters of phrases agree with those of people: homogeneity, completeness, V-measure.",
    citation="ACL D07-1043",
)
