"""Rates of suites without any difference that show a star: `python -m validity.suites` prints them.

A suite is 11 models × 10 tasks; a task has 3 to 5 attributes that depend on each other. Nothing differs between the
groups. Two kinds of suites are counted: of the real test (`joint_shift` on speakers that each have a way of answering),
and of normal numbers, of which there can be many more. Beside the rate of `adjust_hierarchy` stand those of stars by
plain p, and of Benjamini and Hochberg in each run's family of tasks and family of attributes, as it was before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from equivox.statistics import adjust, adjust_hierarchy, joint_shift

MODELS, TASKS = 11, 10
SPEAKERS, RESPONSES, N_RESAMPLES = 24, 4, 2_999
LEVEL = 0.05

Suite = dict[str, float]
"""The p-value of every task (`model/task`) and of every attribute (`model/task/attribute`)."""


def real_suite(rng: np.random.Generator) -> Suite:
    """Return the p-values of `joint_shift` where speakers have ways of their own, and groups do not matter."""
    speaker = np.repeat(np.arange(SPEAKERS), RESPONSES)
    group = np.array(["f", "m"])[speaker % 2]
    found: Suite = {}
    for name, n_attributes in tasks(rng):
        # A mood of the response moves all of its attributes, so that they depend on each other.
        mood = rng.normal(size=(len(speaker), 1)) + rng.normal(size=(SPEAKERS, 1))[speaker]
        latent = mood + rng.normal(size=(len(speaker), n_attributes))
        values = {f"{a}": np.digitize(latent[:, a], (-1.5, 0.0, 1.5)) for a in range(n_attributes)}
        shift = joint_shift(values, group, clusters=speaker, min_count=2, n_resamples=N_RESAMPLES, rng=rng)
        found[name] = shift.p_cluster
        found |= {f"{name}/{attribute}": own.p_cluster for attribute, own in shift.attributes.items()}
    return found


def normal_suite(rng: np.random.Generator) -> Suite:
    """Return the p-values of normal numbers with correlation .5 within a task, and of their mean."""
    from scipy import stats

    found: Suite = {}
    for name, n in tasks(rng):
        z = np.sqrt(0.5) * (rng.normal() + rng.normal(size=n))
        found[name] = float(2 * stats.norm.sf(abs(z.mean()) / np.sqrt((1 + (n - 1) * 0.5) / n)))
        found |= {f"{name}/{a}": float(p) for a, p in enumerate(2 * stats.norm.sf(np.abs(z)))}
    return found


def tasks(rng: np.random.Generator) -> Iterator[tuple[str, int]]:
    """Yield the name of every task of every model, and its number of attributes."""
    for model in range(MODELS):
        for task in range(TASKS):
            yield f"{model}/{task}", int(rng.integers(3, 6))


def starred(suite: Suite) -> tuple[bool, bool, bool]:
    """Return whether a suite shows a star: by the hierarchy, by each run's families, by plain p."""
    below: dict[str, list[str]] = {}
    for name in suite:
        if name.count("/") == 2:
            below.setdefault(name.rpartition("/")[0], []).append(name)
    hierarchy = adjust_hierarchy(suite, list(below.items())).q
    families: dict[tuple[str, int], Suite] = {}
    for name, p in suite.items():
        families.setdefault((name.partition("/")[0], name.count("/")), {})[name] = p
    apart = [q for family in families.values() for q in adjust(list(family.values()))]
    return (
        any(q < LEVEL for q in hierarchy.values()),
        any(q < LEVEL for q in apart),
        any(p < LEVEL for p in suite.values()),
    )


def rates(suite: Callable[[np.random.Generator], Suite], n: int, seed: int) -> np.ndarray:
    """Return the shares of `n` suites that show a star, in percent."""
    rng = np.random.default_rng([seed, n])
    return 100 * np.mean([starred(suite(rng)) for _ in range(n)], axis=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per kind of suite; return 1 if the hierarchy shows a star clearly more often than 5 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=100, help="suites of the real test; about 8 s each")
    parser.add_argument("--normal", type=int, default=2_000, help="suites of normal numbers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    sys.stdout.write("| suites | n | a star by q | by each run's q, as before | by plain p |\n|---|---|---|---|---|\n")
    bad = False
    for name, suite, n in (("joint_shift", real_suite, options.suites), ("normal", normal_suite, options.normal)):
        if n:
            found = rates(suite, n, options.seed)
            sys.stdout.write(f"| {name} | {n:,} | {found[0]:.1f} % | {found[1]:.1f} % | {found[2]:.1f} % |\n")
            sys.stdout.flush()
            bad |= found[0] > 5 + 3 * 100 * np.sqrt(0.05 * 0.95 / n)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
