"""Is what an average hides found, and nothing else? `python -m validity.hidden` prints two tables of validity.md.

Sides that cancel: each item (a job) shifts answers to one side or the other, half of the items to each, so that over
all of them the groups are told the same. Variety: two conditions of known variety.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.statistics import distribution_shift, group_means, variety_difference

SHIFTS = (0.0, 0.2, 0.4)
"""The share of the answers to an item that one group is told and the other is not; in SD for numbers, two and a half
times that."""
DESIGNS = ((12, 12, 1, 3, 0.0), (12, 12, 1, 3, 0.1), (24, 6, 4, 6, 0.02), (24, 4, 1, 2, 0.0), (45, 60, 1, 20, 0.0))
"""People a group, items, answers of each person to an item, values, and the correlation within people."""
VARIETIES = ((2, 6, 10, 0.0), (2, 12, 20, 0.05), (2, 24, 50, 0.02), (4, 10, 20, 0.1), (2, 45, 4, 0.0), (2, 3, 12, 0.05))
"""Groups, clusters of each, answers of each, and the correlation within clusters."""


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


def _varieties() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield two conditions by name: the shares of the values in each."""
    even, falling = np.full(8, 1 / 8), 1 / np.arange(1, 41)
    # Of either, three pairs of four differ.
    common = (1 + np.sqrt(1 - 200 * (1 - 0.25 * 199))) / 200
    rare = np.r_[common, np.full(199, (1 - common) / 199)]
    yield "the same 40 values, falling", falling, falling
    yield "8 values, and 8 others", np.r_[even, 0 * even], np.r_[0 * even, even]
    yield "4 values, and one beside 199 rare ones", np.r_[np.full(4, 1 / 4), np.zeros(196)], rare
    yield "8 values, and 4 of them", even, np.r_[np.full(4, 1 / 4), np.zeros(4)]
    yield "100 values, and 4 of them", np.full(100, 1 / 100), np.r_[np.full(4, 1 / 4), np.zeros(96)]


def variety_table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per pair of conditions and design: the mean difference, how often p is up to .05, and coverage."""
    for name, *shares in _varieties():
        first, second = (own / own.sum() for own in shares)
        truth = 100 * float((second**2).sum() - (first**2).sum())
        for groups, clusters, answers, correlation in VARIETIES:
            rng, found = np.random.default_rng(seed), []
            cluster = np.arange(groups * clusters).repeat(answers)
            for _ in range(runs):
                told = [_of_clusters(own, cluster, correlation, rng) for own in (first, second)]
                columns = [[EncodedValues(np.arange(len(own)), own, [str(v) for v in range(len(first))], len(own))]
                           for own in told]  # fmt: skip
                one = variety_difference(*columns, cluster // clusters, clusters=cluster, n_resamples=199, rng=rng)
                found.append((one.difference, one.p <= 0.05, one.ci_low <= truth <= one.ci_high))
            mean, rejected, held = np.mean(found, axis=0)
            design = f"{groups} × {clusters} × {answers} | {correlation:g}"
            known, mean = (round(own, 1) + 0.0 for own in (truth, mean))  # no -0.0
            yield f"| {name} | {design} | {known} | {mean} | {100 * rejected:.1f} % | {100 * held:.1f} % |"


def _of_clusters(shares: np.ndarray, cluster: np.ndarray, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Return the code of each answer; those of a cluster are correlated."""
    own = np.broadcast_to(shares, (int(cluster.max()) + 1, len(shares)))
    if correlation:
        own = rng.gamma(np.maximum(own, 1e-12) * (1 - correlation) / correlation) + 1e-300
    total = (own / own.sum(axis=1, keepdims=True)).cumsum(axis=1)[cluster]
    return (rng.random(len(cluster))[:, None] > total).sum(axis=1).clip(max=len(shares) - 1).astype(np.int64)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    for table in (cancelling_table, variety_table):
        for line in table(asked.runs, asked.seed):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
