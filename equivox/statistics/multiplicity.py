"""False discovery rate over a family of tests that is declared before looking at the results."""

from __future__ import annotations

from typing import Literal

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import inputs
from equivox.statistics.inputs import NumberColumn


def adjust(p: NumberColumn, *, method: Literal["bh", "by"] = "bh") -> list[float]:
    """Return the p-values of one family, adjusted by Benjamini–Hochberg or Benjamini–Yekutieli.

    Parameters
    ----------
    p
        The p-value of every test of the family, NaN or None if a test is undefined. Decide on the family before looking
        at the results.
    method
        "bh" for independent or positively dependent tests, "by" for any dependence (stricter by a factor of about log
        n).

    Returns
    -------
    list of float
        The q of each test, NaN if its p is missing; such a test does not count. Of the tests with q ≤ 0.05, at most
        5 % are expected to be false discoveries.

    Raises
    ------
    RequestError
        A p outside [0, 1], or another method.

    Notes
    -----
    Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x; Benjamini & Yekutieli 2001,
    doi:10.1214/aos/1013699998; computed by `scipy.stats.false_discovery_control`.

    Examples
    --------
    >>> adjust([0.01, 0.04, float("nan")])
    [0.02, 0.04, nan]
    """
    if method not in ("bh", "by"):
        raise RequestError(f"`method` is {method!r}: use 'bh' or 'by'")
    if not len(p):
        return []
    given = inputs.numbers(p, "p")
    if ((given < 0) | (given > 1)).any():
        raise RequestError("`p` holds a number that is no probability: give numbers from 0 to 1, NaN when undefined")
    tested, q = ~np.isnan(given), np.full(len(given), np.nan)
    if tested.any():
        from scipy import stats

        q[tested] = stats.false_discovery_control(given[tested], method=method)
    return list(q.tolist())
