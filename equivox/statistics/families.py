"""Many tests: one family, or the tests of a run as one hierarchy, the scores of tasks first."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.inputs import NumberColumn

Name = TypeVar("Name", bound=Hashable)


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
    UsageError
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
        raise UsageError(f"`method` is {method!r}: use 'bh' or 'by'")
    if not len(p):
        return []
    given = inputs.numbers(p, "p")
    if ((given < 0) | (given > 1)).any():
        raise UsageError("`p` holds a number that is no probability: give numbers from 0 to 1, NaN when undefined")
    tested, q = ~np.isnan(given), np.full(len(given), np.nan)
    if tested.any():
        from scipy import stats

        q[tested] = stats.false_discovery_control(given[tested], method=method)
    return list(q.tolist())


def adjust_hierarchy(
    p: Mapping[str, float],
    below: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    level: float = 0.05,
) -> dict[str, float]:
    """Return the p-values of everything that is shown, adjusted together.

    Parameters
    ----------
    p
        The p-value of every test by name. NaN or None if a test is undefined.
    below
        Families below a first test: its name, and the names of the family's tests, such as the attributes of a task.
        Every other name is a first test. If a first test is undefined, the tests below it are first tests.
    level
        The level at which first tests count as found; it decides how many families are opened.

    Returns
    -------
    dict
        The adjusted p of every name, NaN if its p is NaN. First tests are adjusted by Holm's method over all of them:
        of everything that has no effect, at least one has q below the level in at most 5 % of cases, whatever the
        dependence. A family is adjusted by Holm's method over its own tests and multiplied by (first tests / first
        tests found); no q is below that of its first test. On average at most 5 % of the families below a found test
        hold a false finding.

    Raises
    ------
    UsageError
        A p outside [0, 1], a name in two families, a name without a p, or a family below a test of a family.

    Notes
    -----
    Holm 1979, Scandinavian Journal of Statistics 6:65–70; families below selected tests: Benjamini & Bogomolov 2014,
    doi:10.1111/rssb.12028.

    Examples
    --------
    Two tasks; the first has two attributes. Holm over the tasks: .01 · 2 and .2 · 1. One of two tasks is found, so the
    attributes' p (after Holm: .02 · 2 and .3) are multiplied by 2.

    >>> p = {"story": 0.01, "casting": 0.2, "job": 0.01, "name": 0.3}
    >>> adjust_hierarchy(p, [("story", ("job", "name"))])
    {'story': 0.02, 'casting': 0.2, 'job': 0.04, 'name': 0.6}
    """
    inputs.check_share(level, "level")
    given = inputs.named_numbers(p, "p")
    if wrong := [name for name, value in given.items() if not (math.isnan(value) or 0.0 <= value <= 1.0)]:
        raise UsageError(f"`p` of {wrong[0]!r} is {given[wrong[0]]}: use a probability, or NaN when undefined")
    inner = [name for _, family in below for name in family]
    if len(set(inner)) < len(inner):
        raise UsageError("`below` names a test twice: a test stands in one family")
    if unknown := [name for name in (*inner, *(first for first, _ in below)) if name not in given]:
        raise UsageError(f"`below` names {unknown[0]!r}, which has no p: give NaN for an undefined test")
    if deeper := [first for first, _ in below if first in set(inner)]:
        raise UsageError(f"`below` has a family below {deeper[0]!r}, which is itself below a test: use two levels")
    opened = [(first, family) for first, family in below if not math.isnan(given[first])]
    lower = {name for _, family in opened for name in family}
    q = adjust_holm({name: value for name, value in given.items() if name not in lower})
    n_first = sum(not math.isnan(value) for value in q.values())
    spread = n_first / max(1, sum(value < level for value in q.values()))
    for first, family in opened:
        adjusted = adjust_holm({name: given[name] for name in family})
        q |= {name: float(np.clip(value * spread, q[first], 1.0)) for name, value in adjusted.items()}
    return {name: q[name] for name in given}


def adjust_holm(p: Mapping[Name, float]) -> dict[Name, float]:
    """Return p after Holm's step-down; NaN stays NaN."""
    tested = sorted((name for name, value in p.items() if not math.isnan(value)), key=lambda name: p[name])
    q = dict.fromkeys(p, math.nan)
    largest = 0.0
    for place, name in enumerate(tested):
        largest = max(largest, min(1.0, p[name] * (len(tested) - place)))
        q[name] = largest
    return q
