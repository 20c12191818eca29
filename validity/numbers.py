"""Do differences of means keep their level? `python -m validity.numbers` prints the table of validity/tables.md.

Numbers have a known mean. A part of each is its cluster's: a person's, or that of an item which every group gets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equivox.statistics import group_means

MEAN = 50_000.0
"""The mean without a difference, such as a salary."""
ANSWERS = 5
"""Answers of each cluster, or of each item in each group."""
OF_CLUSTER = 0.3
"""The share of the variance that is the cluster's."""


@dataclass(frozen=True)
class Kind:
    """How numbers are spread: `skew` is the standard deviation of their logarithm, 0 for normal ones.

    Normal ones have a standard deviation of 20 %. `far` is the share of numbers that are a hundred times as large, as
    salaries typed in cents are.
    """

    name: str
    skew: float = 0.0
    far: float = 0.0


KINDS = (
    Kind("normal"),
    Kind("log-normal, 0.5", 0.5),
    Kind("log-normal, 1", 1.0),
    Kind("log-normal, 1.5", 1.5),
    Kind("normal, 2 % a hundred times as large", far=0.02),
)
TIMES = (1.0, 1.3, 3.0)
"""How many times the mean of one group is that of the other."""
DESIGNS = (("two groups of", 6, False), ("two groups of", 20, False), ("two groups of", 60, False),
           ("in both groups", 12, True), ("in both groups", 40, True))  # fmt: skip


def drawn(kind: Kind, clusters: int, crossed: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers without a difference, groups x clusters x answers, and the codes of their clusters."""
    shape = (2, clusters, ANSWERS)
    own = rng.standard_normal((1 if crossed else 2, clusters, 1))
    scores = np.sqrt(OF_CLUSTER) * own + np.sqrt(1 - OF_CLUSTER) * rng.standard_normal(shape)
    numbers = MEAN * (np.exp(kind.skew * scores - kind.skew**2 / 2) if kind.skew else 1 + 0.2 * scores)
    numbers *= np.where(rng.random(shape) < kind.far, 100.0, 1.0) / (1 + 99 * kind.far)
    codes = np.arange(clusters) if crossed else np.arange(2 * clusters).reshape(2, clusters)
    return numbers, np.broadcast_to(codes[..., None] if crossed else codes[:, :, None], shape)


def table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per population and design: the level, and how often the interval holds the true difference."""
    groups = np.array(["a", "b"])
    for kind in KINDS:
        for name, clusters, crossed in DESIGNS:
            rng = np.random.default_rng(seed)
            counted = np.zeros((len(TIMES), 2))
            for _ in range(runs):
                numbers, codes = drawn(kind, clusters, crossed, rng)
                group = np.broadcast_to(groups[:, None, None], numbers.shape)
                for place, times in enumerate(TIMES):
                    told = numbers * np.array([times, 1.0])[:, None, None]
                    found = group_means(
                        told.ravel(), group.ravel(), clusters=codes.ravel(), n_resamples=999, rng=rng, distances=False
                    )
                    truth = (times - 1) * MEAN
                    counted[place] += [found.p <= 0.05, found.ci_low <= truth <= found.ci_high]
            level, power, *_ = (f"{share:.1f} %" for share in 100 * counted[:, 0] / runs)
            held = " | ".join(f"{share:.1f} %" for share in 100 * counted[:, 1] / runs)
            yield f"| {kind.name} | {name} {clusters} | {level} | {power} | {held} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    for line in table(asked.runs, asked.seed):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
