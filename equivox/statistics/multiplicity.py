"""False discovery rate over a family of tests that is declared before looking at the results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equivox.core.errors import RequestError
from equivox.statistics import inputs


@dataclass(frozen=True, kw_only=True)
class Family:
    """The adjusted p-values of one family of tests.

    Attributes
    ----------
    name, method
        The family's description, and "bh" or "by".
    size
        The number of tests that were adjusted for one another.
    undefined
        The names whose p is NaN: their q is NaN, and they do not count in `size`.
    q
        The adjusted p of every name.
    """

    name: str
    method: str
    size: int
    undefined: tuple[str, ...]
    q: dict[str, float]

    def discoveries(self, level: float = 0.05) -> tuple[str, ...]:
        """Return the names with q ≤ level, in the order given."""
        return tuple(name for name, q in self.q.items() if q <= level)


def adjust(p: Mapping[str, float], *, family: str, method: Literal["bh", "by"] = "bh") -> Family:
    """Return the p-values of one family, adjusted by Benjamini–Hochberg or Benjamini–Yekutieli.

    Parameters
    ----------
    p
        The p-value of every test of the family by name: a mapping or a pandas Series. NaN or None if a test is
        undefined.
    family
        A description, such as "all attributes × tasks of this run". Decide on the family before looking at the results.
    method
        "bh" for independent or positively dependent tests, "by" for any dependence (stricter by a factor of about log
        n).

    Returns
    -------
    Family
        Of the tests with q ≤ 0.05, at most 5 % are expected to be false discoveries. q is NaN if p is missing.

    Raises
    ------
    RequestError
        An empty family, a p outside [0, 1], or another method.

    Notes
    -----
    Benjamini & Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x; Benjamini & Yekutieli 2001,
    doi:10.1214/aos/1013699998; computed by `scipy.stats.false_discovery_control`.

    Examples
    --------
    >>> found = adjust({"hobby": 0.01, "budget": 0.04, "vibe": float("nan")}, family="one task")
    >>> found.size, found.q["hobby"], found.q["budget"], found.undefined
    (2, 0.02, 0.04, ('vibe',))
    """
    if method not in ("bh", "by"):
        raise RequestError(f"`method` is {method!r}: use 'bh' or 'by'")
    given = inputs.named_probabilities(p, "p")
    if not given:
        raise RequestError("`p` is empty: a family needs at least one test")
    tested = [name for name, value in given.items() if not math.isnan(value)]
    q = dict.fromkeys(given, float("nan"))
    if tested:
        from scipy import stats

        adjusted = stats.false_discovery_control([given[name] for name in tested], method=method)
        q |= dict(zip(tested, np.asarray(adjusted).tolist(), strict=True))
    undefined = tuple(name for name in given if name not in set(tested))
    return Family(name=family, method=method, size=len(tested), undefined=undefined, q=q)
