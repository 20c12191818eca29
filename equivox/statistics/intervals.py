"""Confidence intervals: of the population nTVD by test inversion (validity/tables.md), and of means.

Worst-case bounds: the smallest and largest value of a score over all possible missing answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.distance import mean_ntvd, ntvd, ntvd_of_shares, quantile
from equivox.statistics.inputs import Floats, NumberColumn

RESAMPLES = 9999
"""Number of resamples of the interval of a mean."""
TINY = 1e-12
"""Replaces a standard error of zero, so that any deviation is far larger than its noise."""


def invert(
    deviations: Floats,
    noise: Floats,
    errors: Floats,
    slices: Sequence[slice],
    confidence: float,
    *,
    lengths: Floats | None = None,
    alike: bool = False,
    rejected: bool | None = None,
    most: float = math.inf,
) -> tuple[float, float]:
    """Return the interval of population shifts that are compatible with the observed one.

    A plug-in distance is too long by an amount that depends on how the true shift is spread: a value whose
    true deviation is large against its noise adds none, one without a true deviation adds all of its noise.
    The true spread is not known exactly, so each limit is computed under the least favourable spread that is
    compatible with the data:

    - lower limit: the sparsest. Deviations that noise alone may reach somewhere among so many values are set to zero,
      the others are kept.
    - upper limit: the densest. Deviations beyond 3 standard errors are kept; all others have one size, the
      largest (one-sided 84 %) that their mean square allows.

    Along each spread S the candidates t·S are tested; a candidate is kept if the observed nTVD is not in a tail
    of nTVD(t·S + noise).

    Parameters
    ----------
    deviations
        G x V, P_g - P̄ as observed.
    noise
        B x G x V draws of the sampling error of the deviations.
    errors
        G x V, the standard error of each deviation.
    slices
        The columns of each attribute; the distance is the mean over attributes.
    confidence
        Coverage; half of the remaining probability is on each side.
    lengths
        The distances of `noise` alone, B, where they are known already.
    alike
        Whether part of the noise is only supposed (`Noise.alike`). Then the upper limit is at least the distance that
        noise alone stays below with the probability `confidence`.
    rejected
        Whether the test rejects a shift of zero at the level 1 - confidence. It looks to one side, since a distance has
        no other. Then the lower limit is above zero: where half of the level does not lift it, the whole level does.
        If the test does not reject, the lower limit is 0, so that they agree. None: there is no test.
    most
        The attainable maximum, which no limit exceeds.

    Returns
    -------
    tuple
        The lower and the upper limit in percent; both zero when no value deviates and nothing is noisy.
    """
    tail = (1.0 - confidence) / 2.0
    errors = np.where(errors > 0, errors, TINY)

    distance = partial(mean_ntvd, slices=slices)
    observed = float(distance(deviations[None])[0])
    lengths = distance(noise) if lengths is None else lengths
    largest = 2.0 * observed + 4.0 * quantile(lengths, 0.99) + 1.0

    def limit(spread: Floats, share: float) -> float:
        length = float(distance(spread[None])[0])
        if length == 0.0:  # no deviation at all: zero is the only candidate
            return 0.0
        unit = spread / length
        alone = quantile(lengths, share) - observed
        return _root(lambda t: quantile(distance(t * unit + noise), share) - observed, alone, largest)

    sparsest, densest = spreads(deviations, noise, errors, slices)
    low, high = limit(sparsest, 1.0 - tail), limit(densest, tail)
    if rejected and low == 0.0:
        low = limit(sparsest, confidence)
    # An observed distance below nearly all of noise would leave nothing: the interval is never narrower than the noise.
    high = max(high, low + (quantile(lengths, 1.0 - tail) - quantile(lengths, 0.5)))
    high = max(high, quantile(lengths, confidence)) if alike else high
    return 0.0 if rejected is False else min(low, most), min(high, most)


def _root(rising: Callable[[float], float], first: float, largest: float) -> float:
    """Return the point where a rising function, `first` at 0, crosses zero on [0, largest]; 0 if it starts above."""
    from scipy.optimize import brentq

    if first >= 0.0:
        return 0.0
    last = rising(largest)
    if last <= 0.0:
        return largest
    # Each value costs the distances of all draws; scipy asks for both ends again.
    ends = {0.0: first, largest: last}
    return float(brentq(lambda t: ends[t] if t in ends else rising(t), 0.0, largest, xtol=1e-2))


def spreads(deviations: Floats, noise: Floats, errors: Floats, slices: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return the sparsest and the densest possible spread of the true shift over the values.

    The sparsest keeps the deviations that noise alone hardly reaches, or else the largest one, and sets the others to
    zero. The largest of n standard normal numbers is about √(2 log n) (Donoho & Johnstone 1994,
    doi:10.1093/biomet/81.3.425); the threshold is 2.5 at least.
    """
    z = np.abs(deviations) / errors
    n = z.size / 2 if len(z) == 2 else z.size
    threshold = min(max(2.5, np.sqrt(2 * np.log(n))), float(z.max()) * (1 - 1e-9))
    return np.where(z > threshold, deviations, 0.0), _densest(deviations, noise, errors, slices)


def _densest(deviations: Floats, noise: Floats, errors: Floats, slices: Sequence[slice]) -> Floats:
    """Keep deviations of 3 standard errors or more; give all others the one size that their mean square allows.

    The mean square of z = deviation / error is 1 + size² (0.973 + size² when cut at 3); its own sampling
    error is read off the noise draws, whose values are dependent.
    """
    z = deviations / errors
    stands = np.abs(z) > 3.0
    spread = np.where(stands, deviations, 0.0)
    for part in slices:
        rest = ~stands[:, part]
        if not rest.any():
            continue
        surplus = max(0.0, float((z[:, part][rest] ** 2).mean()) - 0.973)
        error = float(((noise[:, :, part] / errors[:, part])[:, rest] ** 2).mean(axis=1).std())
        size = np.sqrt(surplus + error * np.sqrt(1 + 2 * surplus))
        spread[:, part] += np.where(rest, np.sign(z[:, part]) * size * errors[:, part], 0.0)
    return spread


def mean_interval(values: Sequence[float], *, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95 % BCa interval of the mean of independent values, in their unit; NaN if nothing varies.

    Efron 1987, https://doi.org/10.1080/01621459.1987.10478410, as scipy computes it.
    """
    from scipy import stats

    if len(set(values)) < 2:
        return math.nan, math.nan
    found = stats.bootstrap((np.asarray(values),), np.mean, n_resamples=RESAMPLES, rng=rng).confidence_interval
    return float(found.low), float(found.high)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A score with its smallest and its largest possible value, in percent; NaN if nothing is known."""

    observed: float
    low: float
    high: float
    n_missing: int


def share_bounds(hits: int, decided: int, missing: int) -> Bounds:
    """Return a share with its bounds if each of `missing` answers could have been a hit or not.

    Parameters
    ----------
    hits, decided, missing
        Counts: the hits, the answers whose outcome is known (hits included), and the answers whose outcome is not.

    Returns
    -------
    Bounds
        In percent. `observed` is hits / decided. It is NaN when nothing was decided, and the bounds are then 0 and 100.

    Raises
    ------
    UsageError
        Negative counts, more hits than decided answers, or no answers at all.

    Notes
    -----
    Manski 1989, doi:10.2307/145818: nothing is assumed about why answers are missing.

    Examples
    --------
    >>> share_bounds(30, 50, 50)
    Bounds(observed=60.0, low=30.0, high=80.0, n_missing=50)
    """
    if min(hits, decided, missing) < 0 or hits > decided:
        raise UsageError(
            f"`hits` is {hits}, `decided` {decided}, `missing` {missing}: give counts from 0, hits up to decided"
        )
    total = decided + missing
    if total == 0:
        raise UsageError("`decided` and `missing` are both 0: there is nothing to bound")
    return Bounds(
        observed=100 * hits / decided if decided else float("nan"),
        low=100 * hits / total,
        high=100 * (hits + missing) / total,
        n_missing=missing,
    )


def ntvd_bounds(counts: ArrayLike, missing: NumberColumn) -> Bounds:
    """Return the nTVD of the known answers, with its bounds when some answers of each group are missing.

    Parameters
    ----------
    counts
        A G x V table: the count of each value in each group.
    missing
        The number of missing values of each group (responses × values per response).

    Returns
    -------
    Bounds
        In percent. `high` supposes that the missing answers of each group were one new value that no other group gave.
        `low` supposes that they were the values that bring the groups closest together; fractions of an answer are
        allowed, so `low` is never too high. A `low` of zero means that the missing answers could explain the whole
        shift. `observed` is NaN when a group has no known answer.

    Raises
    ------
    UsageError
        As `ntvd`; also another number of entries in `missing` than groups, a negative or missing entry, or a group with
        neither known nor missing answers.

    Notes
    -----
    High: the distance obeys the triangle inequality, and one new value per group attains it. Low: a linear program.
    Both bounds concern this sample; sampling error is not included.

    Examples
    --------
    Ten of group b's twenty answers are missing; if all were the second value, there would be no shift:

    >>> found = ntvd_bounds([[10, 10], [10, 0]], [0, 10])
    >>> round(found.observed, 6), round(found.low, 6), round(found.high, 6)
    (50.0, 0.0, 50.0)
    """
    table = inputs.matrix(counts, "counts")
    if table.shape[0] < 2:
        raise UsageError(f"`counts` has shape {table.shape}: give one row per group, two or more")
    absent = inputs.numbers(missing, "missing")
    if len(absent) != len(table):
        raise UsageError(f"`missing` has {len(absent)} entries, `counts` has {len(table)} rows: give one per group")
    if not (absent >= 0).all() or not np.isfinite(table).all() or (table < 0).any():
        raise UsageError("`counts` or `missing` holds something that is no count: give numbers from 0")
    totals = table.sum(axis=1) + absent
    if (totals == 0).any():
        raise UsageError("`counts` has a group without known or missing answers: leave that group out")
    known = table / totals[:, None]
    gap = absent / totals
    alone = np.concatenate([known, np.diag(gap)], axis=1)
    return Bounds(
        observed=ntvd(table) if (table.sum(axis=1) > 0).all() else float("nan"),
        low=_closest(known, gap),
        high=float(ntvd_of_shares(alone[None])[0]),
        n_missing=int(absent.sum()),
    )


def _closest(known: Floats, gap: Floats) -> float:
    """Return the smallest nTVD over all ways to fill each group's gap, by linear programming.

    Variables: the filling q (G × V, rows summing to the gap) and d ≥ |P_g − P̄|; the sum of d is least.
    """
    from scipy import optimize, sparse

    n_groups, n_values = known.shape
    if not gap.any():
        return float(ntvd_of_shares(known[None])[0])
    size = n_groups * n_values
    # Sparse arrays go in, because scipy 1.18 warns when `kron` has to choose between an array and a matrix.
    centring = sparse.kron(
        sparse.csr_array(np.eye(n_groups) - 1.0 / n_groups), sparse.eye_array(n_values), format="csr"
    )
    unit = sparse.eye_array(size, format="csr")
    above = sparse.hstack([centring, -unit], format="csr")
    below = sparse.hstack([-centring, -unit], format="csr")
    fill = sparse.kron(sparse.eye_array(n_groups), sparse.csr_array(np.ones((1, n_values))), format="csr")
    filled = sparse.hstack([fill, sparse.csr_array((n_groups, size))], format="csr")
    offset = (known - known.mean(axis=0)).ravel()
    found = optimize.milp(
        np.concatenate([np.zeros(size), np.ones(size)]),
        constraints=[
            optimize.LinearConstraint(above, ub=-offset),
            optimize.LinearConstraint(below, ub=offset),
            optimize.LinearConstraint(filled, gap, gap),
        ],
    )
    least = float(np.asarray(found.fun, dtype=np.float64))
    return max(0.0, float(least * 50.0 / (n_groups - 1)))


def student_half(squares: Sequence[float], degrees: Sequence[float], level: float) -> float:
    """Return half the width of an interval whose squared error is a sum, by Student's t (Welch and Satterthwaite).

    It is NaN if a part of the error is not known, and 0 without an error.
    """
    from scipy.special import stdtrit

    spread = sum(squares)
    if math.isnan(spread) or not spread:
        return spread
    return float(stdtrit(freedom_of(squares, degrees), 0.5 + level / 2) * math.sqrt(spread))


def student_p(squares: Sequence[float], degrees: Sequence[float], value: float) -> float:
    """Return the two-sided p of a difference whose squared error is a sum, as `student_half`.

    It is 0 without noise, and where a part of the error is not known: permutations alone decide there.
    """
    from scipy.special import stdtr

    spread = sum(squares)
    if math.isnan(spread) or not spread:
        return 0.0
    return float(2 * stdtr(freedom_of(squares, degrees), -abs(value) / math.sqrt(spread)))


def freedom_of(squares: Sequence[float], degrees: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of squared errors (Welch and Satterthwaite); `squares` are not all 0."""
    spread = sum(squares)
    # Shares are used because the squares may be too small to be squared again.
    return 1 / sum((own / spread) ** 2 / n for own, n in zip(squares, degrees, strict=True))


def of_ratio(sizes: Floats) -> tuple[Floats, float]:
    """Return what the residuals of a ratio of sums over clusters are multiplied with (K), and its degrees of freedom.

    A large cluster draws the ratio to itself, so that its residual is too small: it is divided by √(1 − its share of
    the answers) (Bell & McCaffrey 2002, Survey Methodology 28, 169-181). There are as many degrees of freedom as
    clusters of one size that would weigh the same, (Σn)²/Σn² (Kish 1965, Survey Sampling, section 11.7), less one; at
    least one. Two or more clusters of one size have factors of 1 and one degree of freedom less than clusters. A
    cluster of size 0 is absent.

    >>> of_ratio(np.array([5.0, 5.0, 5.0, 0.0]))[1]
    2.0
    """
    here = sizes[sizes > 0]
    if np.ptp(here) == 0:
        return np.ones(len(sizes)), max(1.0, len(here) - 1.0)
    weight = sizes / sizes.sum()
    return np.sqrt((1 - 1 / len(here)) / (1 - weight)), max(1.0, float(1 / (weight**2).sum()) - 1)
