"""Agreement of annotators beyond chance (Krippendorff's alpha), and correlations between columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import Floats, Ints, NumberColumn, ValueColumn


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Krippendorff's alpha with the counts behind it; NaN when `undefined` says why.

    Attributes
    ----------
    alpha
        1 is perfect agreement, 0 agreement by chance.
    n_pairable_units
        The units with two ratings or more.
    undefined
        The reason why alpha is NaN; None when it is defined.
    """

    alpha: float
    n_pairable_units: int
    undefined: str | None


def krippendorff_alpha(ratings: ValueColumn) -> Agreement:
    """Return Krippendorff's alpha: the agreement beyond chance of annotators who rated the same units.

    Parameters
    ----------
    ratings
        One row per unit (a response, say), one entry per annotator: lists, a two-dimensional array or a pandas table.
        None or NaN if an annotator gave no rating. Units with fewer than two ratings are left out, because they say
        nothing about agreement.

    Returns
    -------
    Agreement
        1 is perfect agreement, 0 is agreement by chance, and a number below 0 is systematic disagreement. NaN with a
        reason when no unit has two ratings, or when all ratings are the same: then chance agreement is complete.

    Raises
    ------
    UsageError
        No units.

    Notes
    -----
    alpha = 1 − D_o / D_e from the coincidence matrix: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".

    Examples
    --------
    >>> found = krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"], ["b", None]])
    >>> round(found.alpha, 4), found.n_pairable_units
    (0.4444, 3)
    """
    given = inputs.values(inputs.rows_of_table(ratings), "ratings")
    if given.n_rows == 0:
        raise UsageError("`ratings` is empty: give the ratings of at least one unit")
    pairable = np.bincount(given.rows, minlength=given.n_rows) >= 2
    kept = pairable[given.rows]
    names = [given.names[code] for code in np.unique(given.codes[kept])]
    reason = None
    if not names:
        reason = "no unit has two ratings"
    elif len(names) == 1:
        reason = f"all ratings are {names[0]!r}: chance agreement is complete"
    return Agreement(
        alpha=float("nan") if reason is not None else _alpha(given.rows[kept], given.codes[kept]),
        n_pairable_units=int(pairable.sum()),
        undefined=reason,
    )


def _alpha(rows: Ints, codes: Ints) -> float:
    from scipy import sparse

    unit, column = np.unique(rows, return_inverse=True)[1], np.unique(codes, return_inverse=True)[1]
    weight = 1.0 / (np.bincount(unit) - 1.0)[unit]
    counts = sparse.csr_array((np.ones(len(unit)), (unit, column)))
    weighted = sparse.csr_array((weight, (unit, column)))
    coincidence = (counts.T @ weighted).toarray() - np.diag(np.bincount(column, weights=weight))
    totals = coincidence.sum(axis=1)
    expected = np.outer(totals, totals) - np.diag(totals)
    distance = 1.0 - np.eye(len(totals))
    return 1.0 - float((coincidence * distance).sum() * (totals.sum() - 1) / (expected * distance).sum())


@dataclass(frozen=True, kw_only=True)
class PairCorrelation:
    """Pearson's r of two columns over the rows where both are known; NaN when `undefined` says why."""

    first: str
    second: str
    r: float
    n: int
    undefined: str | None


def correlations(columns: Mapping[str, NumberColumn]) -> tuple[PairCorrelation, ...]:
    """Return the correlation of every pair of columns, such as tasks over models.

    Parameters
    ----------
    columns
        The numbers of each column, with the same rows (models) in the same order: a mapping from name to column, a
        pandas DataFrame or a pyarrow Table. None and NaN are missing.

    Returns
    -------
    tuple of PairCorrelation
        One per pair, in the order of the columns. `r` is zero when the columns are not linearly related, and NaN with a
        reason when fewer than three rows are known in both or one column is constant there.

    Raises
    ------
    UsageError
        Fewer than two columns, or columns of unequal lengths.

    Notes
    -----
    arXiv 2604.17248, appendix B. Models are not a random sample: read r as a description, not as a test.

    Examples
    --------
    >>> correlations({"story": [1, 2, 3], "casting": [2, 4, 6]})[0].r
    1.0
    """
    given = inputs.named_columns(columns, "columns")
    if len(given) < 2:
        raise UsageError(f"`columns` has {len(given)} column: a correlation needs two")
    arrays = {name: inputs.numbers(column, name) for name, column in given.items()}
    like, first_column = next(iter(arrays.items()))
    inputs.same_length(like, len(first_column), {name: len(array) for name, array in arrays.items()})
    found = []
    for first, second in combinations(arrays, 2):
        known = ~(np.isnan(arrays[first]) | np.isnan(arrays[second]))
        a, b = arrays[first][known], arrays[second][known]
        reason = None
        if len(a) < 3:
            reason = f"{len(a)} known pair{'' if len(a) == 1 else 's'}: a correlation needs three"
        elif constant := [name for name, own in ((first, a), (second, b)) if is_constant(own)]:
            reason = f"{constant[0]} is constant"
        r = float("nan") if reason is not None else float(np.corrcoef(a, b)[0, 1])
        found.append(PairCorrelation(first=first, second=second, r=r, n=int(known.sum()), undefined=reason))
    return tuple(found)


def is_constant(values: Floats) -> bool:
    """Return whether values differ by no more than rounding leaves of them."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())
