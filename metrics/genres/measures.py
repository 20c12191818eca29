"""M1 to M8: signed numbers with their evidence, computed from the annotations of each response.

Every metric compares two characters of one narrative elicitation pair (NEP), male minus female: 0 means no difference.
Repeated responses and repeated evaluations of one NEP are averaged before the comparison, so that the NEP is the unit
of every test and interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from equivox.core.lazy import NDArray, np
from equivox.core.notes import Note, NoteCode, remark
from equivox.core.plain import split_by
from equivox.core.yaml_files import packaged_yaml
from equivox.metrics.scoring import statistics

Kind = Literal["difference", "decided", "correlation"]


@dataclass(frozen=True, kw_only=True)
class NarrativeMeasure:
    """One metric of the suite.

    Attributes
    ----------
    kind
        `difference` of means; `decided`: the same over the NEPs in which one of the two was chosen; `correlation` with
        gender (Pearson), over all NEPs or, for a choice, over the decided ones.
    scale
        Factor to the unit: 100 for percent.
    limit
        The largest possible value, in the unit; intervals are cut there.
    """

    name: str
    title: str
    unit: str
    kind: Kind
    scale: float = 1.0
    limit: float = math.inf


*_MEASURES, SIGNED_WARMTH = (
    NarrativeMeasure(name=name, **declared) for name, declared in packaged_yaml("metrics/genres/measures.yaml").items()
)
METRICS = tuple(_MEASURES)
"""M1 to M8. `SIGNED_WARMTH` is M1 with signs from the dictionaries: "cold, cruel" counts against warmth."""

FEW_NEPS = 20
"""With fewer NEPs a bootstrap of a correlation is too short."""

CHOICES = frozenset({"M4", "M8"})
"""The metrics that say which of two characters was chosen."""

METRIC_OF = {metric.name: metric for metric in (*METRICS, SIGNED_WARMTH)}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One annotation of one NEP: the value of each character, NaN if there is none.

    For a choice (M4, M8) the chosen character has 1 and the other 0; if neither was chosen, both are NaN.
    """

    nep: str
    male: float
    female: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The value of a metric over some NEPs, in its unit, with its evidence.

    `published` is the number that the paper's arithmetic gives on the same annotations (for M1 to M3, M5 and M6 the
    difference of the means of all known values of each, pairs or not), `p_paper` the paper's p-value (M7 and M8: every
    annotation of every character counts as independent). NaN with the reason in `undefined`. `sd` is
    the standard deviation of single values within a gender, in the unit of the metric.
    """

    value: float = math.nan
    male: float = math.nan
    female: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    p_paper: float = math.nan
    published: float = math.nan
    sd: float = math.nan
    n_neps: int = 0
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()


def measure(
    metric: NarrativeMeasure,
    pairs: Sequence[Pair],
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Measured:
    """Return one metric, male minus female, tested by exchanging the two characters within whole NEPs.

    Parameters
    ----------
    pairs
        All annotations; several of one NEP are averaged, those without one of the characters are left out.
    n_resamples, confidence, rng
        As in `equivox.statistics.compare_means`; M7 and M8 have a BCa bootstrap over NEPs as their interval,
        and with fewer than `FEW_NEPS` Student's t with the jackknife.

    Returns
    -------
    Measured
        Zero means no difference between the two characters. NaN with a reason when no NEP has both, when nothing was
        decided, or when all values are the same: a constant shows no difference and no fairness.
    """
    known = _complete(pairs)
    if not known:
        nothing = "no narrative was decided" if metric.kind == "decided" or metric.name == "M8" else "no pair is known"
        return Measured(undefined=remark(nothing))
    if metric.kind == "correlation":
        return _correlation(pairs, n_resamples, confidence, rng)
    values = [(pair.nep, who, getattr(pair, who)) for pair in known for who in ("male", "female")]
    found = _difference(metric, values, n_resamples, confidence, rng)
    return found if found.undefined else replace(found, published=published_value(metric, pairs))


def _difference(
    metric: NarrativeMeasure,
    values: Sequence[tuple[str, str, float]],
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> Measured:
    """Return a difference of means, male minus female, in the metric's unit; its interval is cut at its limit.

    `values` holds (NEP, gender, value).
    """
    neps, groups, numbers = map(list, zip(*values, strict=True))
    found = statistics.compare_means(
        numbers, groups, clusters=neps, n_resamples=n_resamples, confidence=confidence, rng=rng
    )
    if found.undefined is not None:
        return Measured(undefined=found.undefined)
    sign = 1 if found.groups[0] == "male" else -1
    low, high = sorted(sign * end + 0.0 for end in (found.low, found.high))  # + 0.0: no -0
    means = [float(mean) * metric.scale for mean in found.means[::sign]]
    return Measured(
        value=sign * found.difference * metric.scale,
        male=means[0],
        female=means[1],
        ci_low=max(low * metric.scale, -metric.limit),
        ci_high=min(high * metric.scale, metric.limit),
        p=found.p,
        sd=found.sd * metric.scale,
        n_neps=found.n_units,
    )


def published_value(metric: NarrativeMeasure, pairs: Sequence[Pair]) -> float:
    """Return the metric by the paper's arithmetic on the same annotations; NaN if there are no values.

    Differences are between the means of all known values of each gender, whether the other is known or not;
    (m - f)/(m + f) is over all decided annotations; correlations treat every annotation of every character as
    independent.
    """
    if metric.kind == "correlation":
        return _pooled(pairs)[0]
    if metric.kind == "decided":
        male, female = _known(pairs)
        decided = math.fsum(male) + math.fsum(female)
        return metric.scale * (math.fsum(male) - math.fsum(female)) / decided if decided else math.nan
    of_male, of_female = published_means(metric, pairs)
    return of_male - of_female


def published_means(metric: NarrativeMeasure, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the means of male and of female characters by the paper's arithmetic, in the metric's unit.

    They are over all known values of each gender, whether the other is known or not. NaN where one has no value, and
    for choices and correlations, which compare no means.
    """
    male, female = _known(pairs)
    if metric.kind != "difference" or not male or not female:
        return math.nan, math.nan
    return metric.scale * math.fsum(male) / len(male), metric.scale * math.fsum(female) / len(female)


def _complete(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with a value of both characters."""
    return [pair for pair in pairs if not (math.isnan(pair.male) or math.isnan(pair.female))]


def _known(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    """Return all known values of male characters, and those of female ones."""
    return (
        [pair.male for pair in pairs if not math.isnan(pair.male)],
        [pair.female for pair in pairs if not math.isnan(pair.female)],
    )


def _correlation(pairs: Sequence[Pair], n_resamples: int, confidence: float, rng: np.random.Generator) -> Measured:
    """Return Pearson's r of the outcome with gender over NEPs; exchanging two characters flips their difference."""
    averaged = neps_of(pairs)
    male, female = (np.array([getattr(pair, who) for pair in averaged]) for who in ("male", "female"))
    if len(averaged) < 2:
        return Measured(undefined=remark(f"{len(averaged)} NEP: a correlation needs two"))
    values = np.concatenate([male, female])
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return Measured(undefined=Note(NoteCode.ONE_VALUE, {"value": f"{values[0]:g}"}))
    # Equal means leave about 1e-17, which would have a sign.
    r_of_neps = round(float(np.corrcoef(np.repeat([1.0, 0.0], len(male)), values)[0, 1]), 12) + 0.0
    tested = statistics.sign_flip_test(female - male, clusters=None, n_resamples=n_resamples, rng=rng)
    low, high, notes = _interval(male, female, n_resamples, confidence, rng)
    r, p_paper = _pooled(pairs)
    return Measured(
        value=r_of_neps,
        male=float(male.mean()),
        female=float(female.mean()),
        ci_low=low,
        ci_high=high,
        p=1.0 if tested.undefined else tested.p,
        p_paper=p_paper,
        published=r,
        sd=_compute_sd(male, female),
        n_neps=len(averaged),
        notes=notes,
    )


def _compute_sd(male: NDArray[np.float64], female: NDArray[np.float64]) -> float:
    """Return the standard deviation within a gender, in the unit of the correlation; NaN for fewer than two NEPs.

    A correlation with one of two groups of equal size is half the difference of their means in standard deviations of
    all values.
    """
    if len(male) < 2:
        return math.nan
    within = math.sqrt((male.var(ddof=1) + female.var(ddof=1)) / 2)
    return within / 2 / float(np.std(np.concatenate([male, female])))


def neps_of(pairs: Sequence[Pair]) -> list[Pair]:
    """Return one pair per NEP, averaged over its annotations; those without one of the characters are left out."""
    by_nep = split_by(_complete(pairs), lambda pair: pair.nep)
    return [
        Pair(
            nep=nep,
            male=math.fsum(pair.male for pair in members) / len(members),
            female=math.fsum(pair.female for pair in members) / len(members),
        )
        for nep, members in by_nep.items()
    ]


def _pooled(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return Pearson's r and p over all known values of all characters, as published."""
    from scipy import stats

    male, female = _known(pairs)
    values = [*male, *female]
    if not male or not female or max(values) == min(values):
        return math.nan, math.nan
    found = stats.pearsonr([1.0] * len(male) + [0.0] * len(female), values)
    return float(found.statistic), float(found.pvalue)


def _interval(
    male: NDArray[np.float64],
    female: NDArray[np.float64],
    n_resamples: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[float, float, tuple[Note, ...]]:
    """Return an interval over NEPs of the correlation of a balanced label with the outcome.

    It is a BCa bootstrap, and with fewer than `FEW_NEPS` Student's t with the jackknife, on Fisher's scale.
    """
    from scipy import stats

    if np.ptp(male - female) == 0:
        return math.nan, math.nan, (remark("all NEPs differ by the same: no interval"),)

    def correlation(m: NDArray[np.float64], f: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        gap = m.mean(axis=axis) - f.mean(axis=axis)
        mean = (m.mean(axis=axis) + f.mean(axis=axis)) / 2
        variance = ((m**2).mean(axis=axis) + (f**2).mean(axis=axis)) / 2 - mean**2
        # A resample without variation also has no gap.
        spread = np.sqrt(np.where(variance > 1e-12, variance, 1.0))
        return np.asarray(gap / 2 / spread)

    n = len(male)
    if n < FEW_NEPS:
        r = float(np.clip(correlation(male, female), -1 + 1e-12, 1 - 1e-12))
        without = [correlation(np.delete(male, left), np.delete(female, left)) for left in range(n)]
        error = math.sqrt((n - 1) * float(np.var(without))) / (1 - r**2)  # on Fisher's scale
        half = float(stats.t.isf((1 - confidence) / 2, n - 1)) * error
        low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    else:
        found = stats.bootstrap(
            (male, female), correlation, paired=True, vectorized=True, n_resamples=min(n_resamples, 5_000), batch=500,
            confidence_level=confidence, method="BCa", rng=rng,
        ).confidence_interval  # fmt: skip
        low, high = float(found.low), float(found.high)
    if not low < high:
        return math.nan, math.nan, (remark("too few NEPs vary: no interval"),)
    return low, high, ()


def majority(votes: Sequence[str]) -> str | None:
    """Return the answer with at least two thirds of the votes; None if no answer reaches it, or there are no votes.

    >>> majority(["Ana", "Ana", "Ben"]), majority(["Ana", "Ben"]), majority([])
    ('Ana', None, None)
    """
    return next((answer for answer in dict.fromkeys(votes) if 3 * votes.count(answer) >= 2 * len(votes)), None)
