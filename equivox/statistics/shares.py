"""Shares over units: their interval, the sign-flip test, and the parity deviation that it tests."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equivox.core.errors import UsageError
from equivox.core.notes import Note, NoteCode
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, LabelColumn, NumberColumn
from equivox.statistics.permutation import all_swaps, p_value, swaps


@dataclass(frozen=True, kw_only=True)
class Share:
    """A share in percent with its interval and standard error; NaN if `undefined`, or a note, gives a reason.

    `degrees` are the degrees of freedom of the standard error.
    """

    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    error: float = math.nan
    degrees: float = math.nan
    n: int = 0
    n_clusters: int = 0
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()


def cluster_share(
    hits: NumberColumn,
    *,
    clusters: LabelColumn | None,
    confidence: float = 0.95,
) -> Share:
    """Return the share of ones among ones and zeros, with an interval over clusters.

    Parameters
    ----------
    hits
        1 or 0 per response. A missing one is left out.
    clusters
        The unit that gave several responses, one label per response. None makes each response a cluster.
    confidence
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Share
        In percent; zero means that there are no ones. NaN with a reason when every number is missing. Only the interval
        is NaN, with a note, when there are fewer than two clusters or all have the same share.

    Raises
    ------
    UsageError
        No numbers, a number other than 0 and 1, a missing cluster, or columns of unequal lengths.

    Notes
    -----
    The standard error of a ratio of sums over clusters, and Student's t, on the scale of log odds: Korn & Graubard
    1999, Analysis of Health Surveys, section 2.4; `scale_residuals` says what clusters of unequal size change.

    Examples
    --------
    Three clusters of two answers, with 1, 1 and 2 hits. Their residuals are (-1, -1, 2)/18, so that the standard error
    is √(3/2 · 6)/18 = 1/6, which is 3/4 in log odds. Student's t with 2 degrees of freedom is 4.30.

    >>> found = cluster_share([1, 0, 0, 1, 1, 1], clusters=["a", "a", "b", "b", "c", "c"])
    >>> round(found.share, 1), round(found.low, 1), round(found.high, 1), found.n_clusters
    (66.7, 7.4, 98.1, 3)
    """
    inputs.check_share(confidence, "confidence")
    column = inputs.numbers(hits, "hits")
    known = ~np.isnan(column)
    if not np.isin(column[known], (0.0, 1.0)).all():
        raise UsageError("`hits` holds a number other than 0 and 1: use 1 for a hit, 0 for none, NaN for missing")
    cluster = inputs.cluster_codes(clusters, "hits", len(column))
    if not known.any():
        return Share(undefined=Note(NoteCode.NOTHING_USABLE))
    _, code = np.unique(cluster[known], return_inverse=True)
    sums = np.bincount(code, weights=column[known]).astype(np.float64)
    sizes = np.bincount(code).astype(np.float64)
    low, high, error, degrees, notes = _interval(sums, sizes, confidence)
    return Share(
        share=100 * float(column[known].mean()),
        low=low,
        high=high,
        error=error,
        degrees=degrees,
        n=int(known.sum()),
        n_clusters=len(sizes),
        notes=notes,
    )


def _interval(hits: Floats, sizes: Floats, confidence: float) -> tuple[float, float, float, float, tuple[Note, ...]]:
    """Return the interval of a ratio of sums over clusters, its standard error in percent and the degrees of freedom.

    With fewer than two clusters, or equal shares in all, the numbers are NaN and a note says so.
    """
    from scipy.special import stdtrit

    n_clusters = len(sizes)
    if n_clusters < 2 or np.ptp(hits / sizes) == 0:
        return math.nan, math.nan, math.nan, math.nan, (Note(NoteCode.NO_NOISE),)
    share = hits.sum() / sizes.sum()
    stretch, degrees = scale_residuals(sizes)
    residuals = stretch * (hits - share * sizes) / sizes.sum()
    error = math.sqrt(n_clusters / (n_clusters - 1) * (residuals**2).sum())
    reach = float(stdtrit(degrees, 0.5 + confidence / 2)) * error / (share * (1 - share))
    odds = math.log(share / (1 - share))
    low, high = 100 / (1 + np.exp([reach - odds, -reach - odds]))
    return float(low), float(high), 100 * error, degrees, ()


@dataclass(frozen=True, kw_only=True)
class SignFlip:
    """A mean of signed values with its two-sided sign-flip p; numbers are NaN when `undefined` says why."""

    mean: float = math.nan
    p: float = math.nan
    n: int
    n_missing: int
    n_clusters: int
    exact: bool = False
    null: Floats
    undefined: Note | None = None


def sign_flip_test(
    values: NumberColumn,
    *,
    clusters: LabelColumn | None,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> SignFlip:
    """Test whether signed values are symmetric about zero, flipping the signs of whole clusters.

    Parameters
    ----------
    values
        One signed number per response, such as +1 stereotypical and −1 anti-stereotypical, or male − female. A missing
        one is left out and counted.
    clusters
        The unit that gave several responses (a context, a NEP), one label per response. None makes each response a
        cluster.
    n_resamples, rng
        As in `equivox.statistics`. What is drawn are sign patterns of the clusters.

    Returns
    -------
    SignFlip
        `mean` is over values, in their unit; zero means balance. `p` is two-sided and never 0. NaN with a reason when
        every value is missing, or when every cluster sums to zero and no flip can change anything.

    Raises
    ------
    UsageError
        No values, an infinite value, a missing cluster, or columns of unequal lengths.

    Notes
    -----
    Fisher's randomisation test for pairs; (1 + b)/(1 + B) after Phipson & Smyth 2010, doi:10.2202/1544-6115.1585.

    Examples
    --------
    Three contexts, two responses each, all stereotypical: 2 of the 8 sign patterns are as extreme.

    >>> found = sign_flip_test([1, 1, 1, 1, 1, 1], clusters=["a", "a", "b", "b", "c", "c"],
    ...                        rng=np.random.default_rng(1))
    >>> found.mean, found.p, found.exact
    (1.0, 0.25, True)
    """
    inputs.check_resamples(n_resamples)
    column = inputs.numbers(values, "values")
    cluster = inputs.cluster_codes(clusters, "values", len(column))
    known = ~np.isnan(column)
    n = int(known.sum())
    n_missing = len(column) - n
    _, code = np.unique(cluster[known], return_inverse=True)
    sums: Floats = np.sort(np.bincount(code, weights=column[known]).astype(np.float64))
    if not sums.any():
        reason = Note(NoteCode.NOTHING_USABLE if n == 0 else NoteCode.NO_NOISE)
        return SignFlip(n=n, n_missing=n_missing, n_clusters=len(sums), null=np.empty(0), undefined=reason)
    exact = all_swaps(len(sums), n_resamples)
    flipped = [(2.0 * pattern - 1.0) @ sums for pattern in swaps(len(sums), n_resamples, len(sums), rng)]
    null = np.concatenate(flipped) / n
    mean = float(sums.sum()) / n
    return SignFlip(
        mean=mean,
        p=p_value(np.abs(null), abs(mean), exact=exact, size=float(np.abs(column[known]).mean())),
        n=n,
        n_missing=n_missing,
        n_clusters=len(sums),
        exact=exact,
        null=null,
    )


def compute_least_flip_p(n_clusters: int, n_resamples: int) -> float:
    """Return the smallest p that flipping this number of clusters can give, for any values; 1 of none.

    All patterns are counted when they are few enough, and two of them are always the furthest out: a pattern and its
    opposite.

    >>> compute_least_flip_p(6, 10_000), compute_least_flip_p(40, 999)
    (0.03125, 0.001)
    """
    return 2.0 / 2 ** max(n_clusters, 1) if all_swaps(n_clusters, n_resamples) else 1.0 / (1 + n_resamples)


@dataclass(frozen=True, kw_only=True)
class Parity:
    """The share of stereotypical choices and its distance from one half, with test and intervals, in percent."""

    share: float = math.nan
    deviation: float = math.nan
    p: float = math.nan
    share_low: float = math.nan
    share_high: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    n_missing: int
    n_clusters: int = 0
    undefined: Note | None = None
    notes: tuple[Note, ...] = ()


def parity_deviation(
    choices: NumberColumn,
    *,
    clusters: LabelColumn | None,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Parity:
    """Return the distance of a two-way choice from parity, 2 · |50 − share| in percent; the unit is the cluster.

    Parameters
    ----------
    choices
        1 stereotypical, 0 anti-stereotypical. A missing one is neither: it is left out and counted.
    clusters
        The unit that gave several choices (a context), one label per choice. None makes each choice a cluster.
    n_resamples, confidence, rng
        As in `cluster_share` and `sign_flip_test`.

    Returns
    -------
    Parity
        `deviation` is zero when the share is 50 %, and 100 when all choices are the same. `share_low` and `share_high`
        are the interval of `cluster_share`, which contains 50 where p is above 1 - confidence, and only there. `ci_low`
        and `ci_high` are its image under 2 · |50 − share|, so that `ci_low` is 0 exactly when the interval contains 50.
        NaN with a reason when every choice is missing.
        Only the interval is NaN, with a note, when there are fewer than two clusters or all have the same share.

    Raises
    ------
    UsageError
        A choice other than 0 and 1; otherwise as `sign_flip_test`.

    Notes
    -----
    slbs: arXiv 2408.07665; parity deviation: arXiv 2604.17248, section 3.4. Exact balance has p = 1.

    Examples
    --------
    >>> found = parity_deviation([1, 1, 1, 0], clusters=["a", "b", "c", "d"], rng=np.random.default_rng(1))
    >>> found.share, found.deviation, found.p
    (75.0, 50.0, 0.625)
    """
    inputs.check_share(confidence, "confidence")
    column = inputs.numbers(choices, "choices")
    if not np.isin(column[~np.isnan(column)], (0.0, 1.0)).all():
        raise UsageError("`choices` holds a number other than 0 and 1: use 1 stereotypical, 0 anti, NaN neither")
    cluster = inputs.cluster_codes(clusters, "choices", len(column))
    if np.isnan(column).all():
        return Parity(n_missing=len(column), undefined=Note(NoteCode.NOTHING_USABLE))
    tested = sign_flip_test(2 * column - 1, clusters=cluster, n_resamples=n_resamples, rng=rng)
    found = cluster_share(column, clusters=cluster, confidence=confidence)
    p = tested.p if tested.undefined is None else 1.0
    low, high = found.low, found.high
    if p > 1 - confidence:  # The test does not rule 50 out, so the interval does not either.
        low, high = float(np.minimum(low, 50.0)), float(np.maximum(high, 50.0))
    elif found.share > 50:  # It does, and so does the interval, whose end may be as near as numbers can be.
        low = float(np.maximum(low, np.nextafter(50.0, 100.0)))
    else:
        high = float(np.minimum(high, np.nextafter(50.0, 0.0)))
    ends = 2 * abs(50 - low), 2 * abs(50 - high)
    return Parity(
        share=found.share,
        deviation=2 * abs(50 - found.share),
        p=p,
        share_low=low,
        share_high=high,
        ci_low=0.0 if low <= 50 <= high else min(ends),
        ci_high=max(ends),
        n=found.n,
        n_missing=tested.n_missing,
        n_clusters=found.n_clusters,
        notes=found.notes,
    )


def scale_residuals(sizes: Floats) -> tuple[Floats, float]:
    """Return what the residuals of a ratio of sums over units are multiplied with (K), and its degrees of freedom.

    A large unit draws the ratio to itself, so that its residual is too small: it is divided by √(1 − its share of
    the answers) (Bell & McCaffrey 2002, Survey Methodology 28, 169-181). There are as many degrees of freedom as
    units of one size that would weigh the same, (Σn)²/Σn² (Kish 1965, Survey Sampling, section 11.7), less one; at
    least one. Two or more units of one size have factors of 1 and one degree of freedom less than units. A
    unit of size 0 is absent.

    >>> scale_residuals(np.array([5.0, 5.0, 5.0, 0.0]))[1]
    2.0
    """
    here = sizes[sizes > 0]
    if np.ptp(here) == 0:
        return np.ones(len(sizes)), max(1.0, len(here) - 1.0)
    weight = sizes / sizes.sum()
    return np.sqrt((1 - 1 / len(here)) / (1 - weight)), max(1.0, float(1 / (weight**2).sum()) - 1)
