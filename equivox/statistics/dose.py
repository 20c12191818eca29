"""Does an answer move with a dose? The slope within each cluster, and the side of the groups that answers are on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, Ints, LabelColumn, NumberColumn
from equivox.statistics.intervals import student_half
from equivox.statistics.sign_flip import least_p, sign_flip_test
from equivox.statistics.unit_means import NO_NOISE

_ALIKE = 1e-12


@dataclass(frozen=True, kw_only=True)
class DoseSlope:
    """The mean slope within clusters with its two-sided p and interval, per unit of the dose; NaN when `undefined`.

    `means` has the mean at each dose over the items with a number at every dose, every cluster counting once, so that
    what is missing at a dose moves no mean; it is empty where no item has all. `n` numbers entered, `n_missing` were
    missing. `n_clusters` entered, `n_left_out` had no item with numbers at two doses. `p_least` is the smallest p that
    so many clusters can give.
    """

    slope: float = math.nan
    p: float = math.nan
    p_least: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    means: Mapping[float, float] = field(default_factory=dict)
    n: int = 0
    n_missing: int
    n_clusters: int = 0
    n_left_out: int = 0
    exact: bool = False
    undefined: str | None = None


def dose_slope(
    values: NumberColumn,
    doses: NumberColumn,
    *,
    clusters: LabelColumn,
    items: LabelColumn,
    n_resamples: int = 10_000,
    rng: np.random.Generator,
) -> DoseSlope:
    """Return how much a number rises per unit of a dose, within clusters: each is compared with itself alone.

    Parameters
    ----------
    values
        One number per response. A missing one is left out and counted.
    doses
        The dose of each response, such as semitones.
    clusters
        The unit that was given several doses (a speaker), one label per response.
    items
        What was given at several doses (a recording), one label per response. An item is compared with itself, so that
        items that were answered at some doses only do not pass for an effect.
    n_resamples, rng
        As in `equivox.statistics`. What is drawn are the signs of the clusters' slopes.

    Returns
    -------
    DoseSlope
        The slope of a cluster is that of least squares with an intercept for each of its items; `slope` is the mean of
        the clusters' slopes, in units of the values per unit of the dose. Zero means that the values do not rise or
        fall; one that rises and falls alike has a slope of zero, too. NaN with a reason when no item has numbers at two
        doses, or when all numbers are the same. Only the interval is NaN, and p is 1, when every cluster's slope is 0.
        The interval has 95 % and is Student's t over the clusters' slopes.

    Raises
    ------
    RequestError
        No values, an infinite number, a missing dose or label, or columns of unequal lengths.

    Notes
    -----
    If the dose changes nothing, the doses of an item can be exchanged; with doses that lie evenly around their mean,
    that gives each slope either sign alike, which is what the test flips. The interval relies on the central limit
    theorem over clusters: with few, trust p.

    Examples
    --------
    Two speakers whose numbers rise by 1 and by 2 per semitone:

    >>> found = dose_slope([1, 2, 3, 10, 12, 14], [-1, 0, 1] * 2, clusters=["a"] * 3 + ["b"] * 3,
    ...                    items=["a1"] * 3 + ["b1"] * 3, rng=np.random.default_rng(1))
    >>> round(found.slope, 6), found.p, found.means
    (1.5, 0.5, {-1.0: 5.5, 0.0: 7.0, 1.0: 8.5})
    """
    inputs.check_resamples(n_resamples)
    column, dose = inputs.numbers(values, "values"), inputs.numbers(doses, "doses")
    inputs.same_length("values", len(column), {"doses": len(dose)})
    if np.isnan(dose).any():
        raise RequestError("`doses` lacks a number; give every response its dose")
    cluster = inputs.cluster_codes(clusters, "values", len(column))
    item = inputs.cluster_codes(items, "values", len(column))
    known = ~np.isnan(column)
    n_missing, n_all = int((~known).sum()), len(np.unique(cluster))
    column, dose, cluster, item = column[known], dose[known], cluster[known], item[known]
    slopes, entered = _slopes(column, dose, cluster, item)
    n_left_out = n_all - len(slopes)
    if not len(slopes):
        return DoseSlope(n_missing=n_missing, n_left_out=n_left_out, undefined="nothing was answered at two doses")
    column, dose, cluster, item = column[entered], dose[entered], cluster[entered], item[entered]
    n, n_clusters = len(column), len(slopes)
    if np.ptp(column) <= _ALIKE * np.abs(column).max():
        same = "every answer is the same: a constant answer shows no trend and no fairness"
        return DoseSlope(n=n, n_missing=n_missing, n_clusters=n_clusters, n_left_out=n_left_out, undefined=same)
    slope = float(slopes.mean())
    tested = sign_flip_test(slopes, clusters=None, n_resamples=n_resamples, rng=rng)
    square, half = float(slopes.var(ddof=1)) / n_clusters if n_clusters > 1 else 0.0, math.nan
    if square > NO_NOISE * slope**2:
        half = student_half([square], [n_clusters - 1], 0.95)
    return DoseSlope(
        slope=slope,
        p=tested.p if tested.undefined is None else 1.0,
        p_least=least_p(n_clusters, n_resamples),
        ci_low=slope - half,
        ci_high=slope + half,
        means=_means(column, dose, cluster, item),
        n=n,
        n_missing=n_missing,
        n_clusters=n_clusters,
        n_left_out=n_left_out,
        exact=tested.exact,
    )


def _slopes(values: Floats, doses: Floats, cluster: Ints, item: Ints) -> tuple[Floats, Ints]:
    """Return the slope of each cluster that has one, and the rows of their items that were given at two doses."""
    if not len(values):
        return np.empty(0), np.empty(0, dtype=np.int64)
    pair = _pairs(cluster, item)
    size = np.bincount(pair)
    dose = doses - (np.bincount(pair, weights=doses) / size)[pair]
    value = values - (np.bincount(pair, weights=values) / size)[pair]
    squares, products = np.bincount(cluster, weights=dose**2), np.bincount(cluster, weights=dose * value)
    # What rounding leaves of doses, or of numbers, that do not differ is no change of them.
    least = (_ALIKE * float(np.abs(doses).max())) ** 2
    varied = squares > least
    products[np.abs(products) <= _ALIKE * float(np.abs(values).max()) * np.sqrt(squares)] = 0.0
    of_pair = np.bincount(pair, weights=dose**2) > least
    return products[varied] / squares[varied], np.flatnonzero(of_pair[pair])


def _pairs(cluster: Ints, item: Ints) -> Ints:
    """Return which pair of a cluster and an item each row is of, numbered from 0."""
    return np.asarray(np.unique(cluster * (item.max() + 1) + item, return_inverse=True)[1], dtype=np.int64)


def _means(values: Floats, doses: Floats, cluster: Ints, item: Ints) -> dict[float, float]:
    """Return the mean over clusters of their means at each dose, of the items of a cluster with all doses."""
    pair = _pairs(cluster, item)
    every, dose_of = np.unique(doses, return_inverse=True)
    has = np.zeros((int(pair.max()) + 1, len(every)), dtype=bool)
    has[pair, dose_of] = True
    complete = np.asarray(has.all(axis=1))[pair]
    found: dict[float, float] = {}
    for dose in every[: len(every) if complete.any() else 0]:
        here = complete & (doses == dose)
        sizes = np.bincount(cluster[here])
        sums = np.bincount(cluster[here], weights=values[here])
        found[float(dose)] = float((sums[sizes > 0] / sizes[sizes > 0]).mean())
    return found


def group_side(
    values: EncodedValues,
    clusters: EncodedLabels,
    *,
    known: EncodedValues,
    known_groups: EncodedLabels,
    known_clusters: EncodedLabels,
    group: str,
) -> Floats:
    """Return on whose side each answer is: the percentage of those who get its values that would be of `group`.

    If `group` and the others asked equally often, so many percent of all who get a value would be of `group`: 100 ·
    s / (s + o), with its share s in this group and its mean share o in the other groups, in answers that are known.
    50 is on no side. The answers of a cluster are not known when its own values are judged: it must not be compared
    with itself. Each group counts as if it had been given every value once more, so that rare values tell little.

    Parameters
    ----------
    values, clusters
        The values and the cluster of each of N answers.
    known, known_groups, known_clusters
        The values, group and cluster of the answers that tell which value is on which side.
    group
        The group whose side it is.

    Returns
    -------
    Floats
        N percentages above 0 and below 100, the mean over each answer's values; NaN for an answer without a value, and
        for one of a cluster without which a group has no known value.
    """
    if group not in known_groups.names or len(known_groups.names) < 2:
        raise RequestError(f"`group` is {group!r}; name one of two or more groups: {', '.join(known_groups.names)}")
    value_of = {name: code for code, name in enumerate(known.names)}
    cluster_of = {name: code for code, name in enumerate(known_clusters.names)}
    none = len(value_of), len(cluster_of)  # the codes of values and clusters that are not known, or missing
    value = np.array([*(value_of.get(name, none[0]) for name in values.names), none[0]])[values.codes]
    cluster = np.array([*(cluster_of.get(name, none[1]) for name in clusters.names), none[1]])
    cluster = cluster[clusters.codes][values.rows]
    shares = []
    for code in range(len(known_groups.names)):
        here = known_groups.codes[known.rows] == code
        given, by = known.codes[here], known_clusters.codes[known.rows[here]]
        of_value, of_cluster = np.bincount(given, minlength=none[0] + 1), np.bincount(by, minlength=none[1] + 1)
        own = _counts(by * (none[0] + 1) + given, cluster * (none[0] + 1) + value)
        left = len(given) - of_cluster[cluster]
        shares.append(np.where(left > 0, (1 + of_value[value] - own) / (none[0] + 1 + left), np.nan))
    mine = shares.pop(list(known_groups.names).index(group))
    side = 100 * mine / (mine + np.mean(shares, axis=0))
    n = np.bincount(values.rows, minlength=values.n_rows)
    sums = np.bincount(values.rows, weights=side, minlength=values.n_rows)
    return np.asarray(np.where(n > 0, sums / np.maximum(n, 1), np.nan), dtype=np.float64)


def _counts(given: Ints, asked: Ints) -> Ints:
    """Return how often each number of `asked` is in `given`."""
    names, counts = np.unique(given, return_counts=True)
    if not len(names):
        return np.zeros(len(asked), dtype=np.int64)
    place = np.minimum(np.searchsorted(names, asked), len(names) - 1)
    return np.where(names[place] == asked, counts[place], 0)
