"""Association between identities and a phrase: χ², exact p, effect size, and BADF's score (arXiv 2508.01412)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Ints, NumberColumn
from equivox.statistics.permutation import p_value


@dataclass(frozen=True, kw_only=True)
class TableTest:
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


def association_test(table: ArrayLike, *, n_resamples: int = 10_000, rng: np.random.Generator) -> TableTest:
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
    TableTest
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
        return TableTest(n=n, undefined="a group or an outcome is empty: the table has one row or column")
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
    return TableTest(
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
