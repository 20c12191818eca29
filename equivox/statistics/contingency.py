"""Association between groups and an attribute that is present or absent: χ², exact p, effect size, and BADF's score.

Groups of a few clusters that differ in very many values, where permutations are too few for a small p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, Ints, NumberColumn
from equivox.statistics.permutation import p_value


@dataclass(frozen=True, kw_only=True)
class Association:
    """Tests of one table of groups × outcomes; numbers are NaN when `undefined` says why.

    Attributes
    ----------
    chi2, dof, p
        Pearson's χ², its degrees of freedom and its p, as scipy computes them; this p is the published one.
    p_exact
        For a `sparse` table Fisher's exact p (2 × 2) or a permutation p (larger tables); otherwise equal to `p`.
    method
        How `p_exact` was computed: "chi2", "Fisher", "permutation" or "none".
    v
        Bias-corrected Cramér's V.
    n
        The sum of the table.
    sparse
        Whether an expected count is below 5.
    """

    chi2: float = math.nan
    dof: int = 0
    p: float = math.nan
    p_exact: float = math.nan
    method: str = "none"
    v: float = math.nan
    n: int
    sparse: bool = True
    undefined: str | None = None


def association_test(table: ArrayLike, *, n_resamples: int = 10_000, rng: np.random.Generator) -> Association:
    """Test whether the outcome depends on the group, and compute the effect size.

    Parameters
    ----------
    table
        Groups × outcomes, whole counts; for BADF identities × (stories with the phrase, stories without).
    n_resamples
        Tables drawn if a permutation p is needed: for a sparse table with more than two groups or outcomes.
    rng
        The only source of randomness.

    Returns
    -------
    Association
        χ² is zero when all groups have the same shares, and V when they differ no more than chance gives on average.
        NaN with a reason when a row or a column is empty: a phrase in all stories or in none says nothing.

    Raises
    ------
    UsageError
        Fewer than two rows or columns; negative, fractional or missing counts.

    Notes
    -----
    Yates' correction for 2 × 2 tables only, as in `scipy.stats.chi2_contingency` (arXiv 2508.01412). Counts are taken
    as independent; where stories share a cluster, use a cluster-level test. The permutation p draws tables with both
    margins fixed and orders them by χ²; Fisher's test orders 2 × 2 tables by probability.

    Examples
    --------
    One story of 12 with the phrase in one group, 6 of 12 in the other:

    >>> found = association_test([[1, 11], [6, 6]], rng=np.random.default_rng(1))
    >>> round(found.p, 4), round(found.p_exact, 4), found.sparse, found.method
    (0.0724, 0.0686, True, 'Fisher')
    """
    from scipy import stats

    inputs.check_resamples(n_resamples)
    counts = _counts(table)
    n = int(counts.sum())
    if (counts.sum(axis=0) == 0).any() or (counts.sum(axis=1) == 0).any():
        return Association(n=n, undefined="a group or an outcome is empty: the table has one row or column")
    chi2, p, dof, expected = stats.chi2_contingency(counts)
    sparse = bool((expected < 5).any())
    p_exact, method = float(p), "chi2"
    if sparse and counts.shape == (2, 2):
        p_exact, method = float(stats.fisher_exact(counts).pvalue), "Fisher"
    elif sparse:
        drawn = stats.random_table(counts.sum(axis=1), counts.sum(axis=0)).rvs(n_resamples, random_state=rng)
        null = ((drawn - expected) ** 2 / expected).sum(axis=(1, 2))
        observed = float(((counts - expected) ** 2 / expected).sum())
        p_exact, method = p_value(null, observed, exact=False), "permutation"
    return Association(
        chi2=float(chi2),
        dof=int(dof),
        p=float(p),
        p_exact=p_exact,
        method=method,
        v=cramers_v(counts),
        n=n,
        sparse=sparse,
    )


def _counts(table: ArrayLike) -> Ints:
    counts = inputs.counts(table, "table")
    if min(counts.shape) < 2:
        raise UsageError(f"`table` has shape {counts.shape}: give two or more groups and outcomes")
    return counts


def cramers_v(table: ArrayLike) -> float:
    """Return bias-corrected Cramér's V, the strength of an association between 0 and 1.

    Zero means no more association than chance gives on average. NaN means that a row or a column of the table is empty.
    The χ² in it has no continuity correction.

    Raises
    ------
    UsageError
        As `association_test`.

    Notes
    -----
    Bergsma 2013, doi:10.1016/j.jkss.2012.10.002: φ̃² = max(0, χ²/n − (r−1)(c−1)/(n−1)), k̃ = k − (k−1)²/(n−1), V =
    √(φ̃² / (min(r̃, c̃) − 1)).

    Examples
    --------
    >>> round(cramers_v([[10, 0], [0, 10]]), 9), cramers_v([[5, 5], [5, 5]])
    (1.0, 0.0)
    """
    counts = _counts(table)
    if (counts.sum(axis=0) == 0).any() or (counts.sum(axis=1) == 0).any():
        return float("nan")
    n = float(counts.sum())
    n_rows, n_columns = counts.shape
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    phi2 = max(0.0, chi2 / n - (n_rows - 1) * (n_columns - 1) / (n - 1))
    rows = n_rows - (n_rows - 1) ** 2 / (n - 1)
    columns = n_columns - (n_columns - 1) ** 2 / (n - 1)
    smaller = min(rows, columns) - 1
    return float("nan") if smaller <= 0 else float(np.sqrt(phi2 / smaller))


def association_scores(with_phrase: NumberColumn, lengths: NumberColumn) -> tuple[float, ...]:
    """Return BADF's score of a phrase for each identity: (df_i − c) / len_i, in stories per phrase token.

    Parameters
    ----------
    with_phrase
        df_i: the number of stories of identity i that contain the phrase.
    lengths
        len_i: the number of phrase tokens of identity i after unification, repeats included.

    Returns
    -------
    tuple of float
        One score per identity. c is the df of the other identity when there are two, and the smallest df otherwise.
        Zero means that the phrase is no more frequent than with the other identity, or than with the one that has it
        least. NaN for an identity without tokens.

    Raises
    ------
    UsageError
        Fewer than two identities, columns of unequal lengths, or negative or missing counts.

    Notes
    -----
    arXiv 2508.01412, as in its released code. A score is larger where an identity has fewer tokens, so it compares
    phrases within one identity, not identities whose stories differ in length.

    Examples
    --------
    >>> association_scores([18, 9], [100, 90])
    (0.09, -0.1)
    >>> association_scores([3, 6, 8], [100, 100, 100])
    (0.0, 0.03, 0.05)
    """
    found, tokens = inputs.numbers(with_phrase, "with_phrase"), inputs.numbers(lengths, "lengths")
    if len(found) < 2:
        raise UsageError(f"`with_phrase` has {len(found)} entry: a score compares two or more identities")
    inputs.same_length("with_phrase", len(found), {"lengths": len(tokens)})
    if not (found.min() >= 0 and tokens.min() >= 0):
        raise UsageError("`with_phrase` or `lengths` holds a negative or a missing number: give counts")
    others = found[::-1] if len(found) == 2 else np.full(len(found), found.min())
    scores = np.full(len(found), np.nan)
    np.divide(found - others, tokens, out=scores, where=tokens > 0)
    return tuple(scores.tolist())


LEAST_DEGREES = 3
"""With fewer degrees of freedom between clusters than this, nothing is known of how they differ."""

LEAST_P = 1e-6
"""Nobody knows the tails of a distribution beyond this from a few clusters."""

_ALIKE = 1e-12

_CAREFUL = 2.0
"""The number of independent values is taken as its estimate over this: few clusters estimate it too high as often."""


def few_clusters_p(shares: NDArray[np.float64], group: Ints, stratum: Ints) -> float:
    """Return the p of a difference between groups in the shares of many values, from few clusters.

    The groups' sum of squares over all values is compared with that of the clusters of one group, within strata. Both
    are about χ² with a number of degrees of freedom for each independent value. How many values are independent is
    estimated by the clusters' covariance, and halved. So p can be small with five pairs of clusters, of which there are
    only 32 permutations; but it supposes that clusters differ about normally, where permutations suppose nothing.

    Parameters
    ----------
    shares
        K x V, the share of each cluster's answers with each value, scaled so that values count alike.
    group, stratum
        The codes of the K clusters. A stratum is compared within itself, such as a pair of names.

    Returns
    -------
    float
        Between `LEAST_P` and 1, which means that the groups do not differ at all. NaN with fewer than `LEAST_DEGREES`
        degrees of freedom, or if groups differ and no cluster differs from another of its group.

    Notes
    -----
    Dempster 1958, doi:10.1214/aoms/1177706437; the trace of the squared covariance: Bai & Saranadasa 1996, Statistica
    Sinica 6:311-329. validity/tables.md has its level.
    """
    from scipy.special import fdtrc

    held, both = _projection([stratum]), _projection([stratum, group])
    between, within = both - held, np.eye(len(group)) - both
    of_groups, freedom = round(float(np.trace(between))), round(float(np.trace(within)))
    if of_groups < 1 or freedom < LEAST_DEGREES:
        return math.nan
    left = within @ shares
    cross = left @ left.T / freedom
    size, square = float(np.trace(cross)), float((cross**2).sum())
    total = float((shares**2).sum())
    apart = float(((between @ shares) ** 2).sum())
    if size <= _ALIKE * total:
        return math.nan if apart > _ALIKE * total else 1.0
    squared = freedom**2 / ((freedom + 2) * (freedom - 1)) * (square - size**2 / freedom)
    independent = max(1.0, size**2 / max(squared, size**2 * 1e-9) / _CAREFUL)
    ratio = apart / of_groups / size
    return max(LEAST_P, float(fdtrc(independent * of_groups, independent * freedom, ratio)))


def _projection(codes: list[Ints]) -> Floats:
    """Return the K x K projection onto the means of all of the codes' classes."""
    columns = np.concatenate([code[:, None] == np.unique(code) for code in codes], axis=1).astype(np.float64)
    return np.asarray(columns @ np.linalg.pinv(columns), dtype=np.float64)
