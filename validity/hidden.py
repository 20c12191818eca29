"""Is what an average hides found, and nothing else? `python -m validity.hidden` prints a table of validity.md.

Sides that cancel: each item (a job) shifts answers to one side or the other, half of the items to each, so that over
all of them the groups are told the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from equivox.core.columns import EncodedLabels
from equivox.statistics import distribution_shift, group_means

SHIFTS = (0.0, 0.2, 0.4)
"""The share of the answers to an item that one group is told and the other is not; in SD for numbers, two and a half
times that."""
DESIGNS = ((12, 12, 1, 3, 0.0), (12, 12, 1, 3, 0.1), (24, 6, 4, 6, 0.02), (24, 4, 1, 2, 0.0), (45, 60, 1, 20, 0.0))
"""People a group, items, answers of each person to an item, values, and the correlation within people."""


def cancelling_table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per design and shift: how often each p is up to .05, of values and of numbers."""
    for people, items, answers, values, correlation in DESIGNS:
        for shift in SHIFTS:
            rng, counted = np.random.default_rng(seed), np.zeros(4)
            person, item = (own.ravel() for own in np.indices((2 * people, items, answers))[:2])
            side = np.where((person < people) == (item % 2 == 0), 1, -1)
            design = {"clusters": person.tolist(), "items": item.tolist(), "n_resamples": 199, "rng": rng}
            for _ in range(runs):
                told = _told(side, item, person, shift, values, correlation, rng)
                names = tuple(map(str, range(values)))
                found = distribution_shift(EncodedLabels(told, names), person < people, min_count=1, **design)
                level = rng.lognormal(10, 1, items)[item]
                scores = 0.5 * rng.standard_normal(2 * people)[person] + rng.standard_normal(len(item))
                means = group_means(level * np.exp(0.5 * (scores + 1.25 * shift * side)), person < people, **design)
                counted += [found.p_cluster <= 0.05, found.p_items <= 0.05, means.p <= 0.05, means.p_items <= 0.05]
            shares = " | ".join(f"{share:.1f} %" for share in 100 * counted / runs)
            yield f"| {people} × {items} × {answers} | {values} | {correlation:g} | {100 * shift:.0f} | {shares} |"


def _told(
    side: np.ndarray, item: np.ndarray, person: np.ndarray, shift: float, values: int, correlation: float,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Return the code of each answer: half of `shift` moves from the first value to the second, or the other way."""
    shares = rng.dirichlet(np.full(values, 2.0), size=int(item.max()) + 1)[item]
    moved = np.minimum(shift / 2, np.where(side > 0, shares[:, 0], shares[:, 1])) * side
    shares[:, 0] -= moved
    shares[:, 1] += moved
    if correlation:
        own = rng.gamma(np.maximum(shares, 1e-9) * (1 - correlation) / correlation)
        shares = (own + 1e-300) / (own + 1e-300).sum(axis=1, keepdims=True)
    return (rng.random(len(side))[:, None] > shares.cumsum(axis=1)).sum(axis=1).clip(max=values - 1).astype(np.int64)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    for line in cancelling_table(asked.runs, asked.seed):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
