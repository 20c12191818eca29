"""False discovery rate over a family of tests that is declared, not found."""

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
    """Adjusted p-values of one family.

    Attributes
    ----------
    name, method
        What the family is, and "bh" or "by".
    size
        Tests that were adjusted for one another.
    undefined
        Names whose p is NaN: they stay NaN and do not count.
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
    """Adjust the p-values of one family by Benjamini–Hochberg or Benjamini–Yekutieli.

    Parameters
    ----------
    p
        Name and p of every test of the family; NaN where a test is undefined.
    family
        What the family is, such as "all attributes × tasks of this run": fixed before looking.
    method
        "bh" (independent or positively dependent tests) or "by" (any dependence, log n times more strict).

    Returns
    -------
    Family
        q has no zero point of its own; at q ≤ 0.05 at most 5 % of what is called a shift is expected to be none.

    Raises
    ------
    RequestError
        An empty family, a p outside [0, 1], another method.

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
    given = inputs.named_numbers(p, "p")
    if not given:
        raise RequestError("`p` is empty: a family needs at least one test")
    outside = [name for name, value in given.items() if not (math.isnan(value) or 0.0 <= value <= 1.0)]
    if outside:
        raise RequestError(f"`p` of {outside[0]!r} is {given[outside[0]]}: use a probability, or NaN when undefined")
    tested = [name for name, value in given.items() if not math.isnan(value)]
    q = dict.fromkeys(given, float("nan"))
    if tested:
        from scipy import stats

        adjusted = stats.false_discovery_control([given[name] for name in tested], method=method)
        q |= dict(zip(tested, np.asarray(adjusted).tolist(), strict=True))
    undefined = tuple(name for name in given if name not in set(tested))
    return Family(name=family, method=method, size=len(tested), undefined=undefined, q=q)
