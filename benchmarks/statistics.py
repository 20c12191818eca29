"""Speed of the permutation tests beside naive numpy and scipy: `python -m benchmarks.statistics`.

All contestants run in this process on the same data, so that the ratios hold on any machine. Each time is the best of
three.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import random_table

from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.metrics.ntvd.published import permute_responses
from equivox.statistics import build_design, compare_attributes
from equivox.statistics.distance import center, compute_ntvd
from equivox.statistics.inputs import Floats
from equivox.statistics.permutation import permute_groups

N_RESAMPLES = 10_000


def best_of(run: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest run."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def measure_tables(counts: Floats) -> Floats:
    """Return the nTVD of count tables, B from B x G x V."""
    return compute_ntvd(center(counts / counts.sum(axis=2, keepdims=True)), [slice(0, counts.shape[2])])


class Answers:
    """Answers of `n` responses of some units, with values of unequal frequency."""

    def __init__(self, n: int, n_values: int, n_groups: int, n_units: int) -> None:
        rng = np.random.default_rng(1)
        self.codes = rng.choice(n_values, size=n, p=rng.dirichlet(np.full(n_values, 2.0)))
        unit = np.arange(n) % n_units
        self.group_of_unit = np.arange(n_units) % n_groups
        self.group = self.group_of_unit[unit]
        self.shape = (n_groups, n_values)
        flat = np.bincount(unit * n_values + self.codes, minlength=n_units * n_values)
        self.by_unit = flat.reshape(n_units, n_values).astype(np.float64)

    def ours(self) -> None:
        """Permute responses as equivox does, which is the published test."""
        rows = np.arange(len(self.codes))
        permute_responses(
            rows, self.codes, [slice(0, self.shape[1])], self.group, n_groups=self.shape[0], n_resamples=N_RESAMPLES,
            rng=np.random.default_rng(2),
        )  # fmt: skip

    def ours_by_unit(self) -> None:
        """Permute units as equivox does, with Welch's statistic."""
        units = EncodedLabels(np.arange(len(self.by_unit)), range(len(self.by_unit)))
        design = build_design(EncodedLabels(self.group_of_unit, range(self.shape[0])), units)
        permute_groups(self.by_unit, [slice(0, self.shape[1])], design, N_RESAMPLES, np.random.default_rng(2))

    def naive(self) -> None:
        """Shuffle once and count once for each permutation."""
        rng = np.random.default_rng(2)
        for _ in range(N_RESAMPLES):
            moved = rng.permutation(self.group)
            flat = np.bincount(moved * self.shape[1] + self.codes, minlength=self.shape[0] * self.shape[1])
            measure_tables(flat.reshape(1, *self.shape).astype(np.float64))

    def naive_by_unit(self) -> None:
        """Shuffle the units once and sum once for each permutation, without the noise of groups."""
        rng = np.random.default_rng(2)
        for _ in range(N_RESAMPLES):
            moved = rng.permutation(self.group_of_unit)
            measure_tables(np.stack([self.by_unit[moved == code].sum(axis=0) for code in range(self.shape[0])])[None])

    def scipy_alone(self) -> None:
        """Draw all tables from scipy at once."""
        drawn = random_table(np.bincount(self.group), np.bincount(self.codes)).rvs(
            N_RESAMPLES, random_state=np.random.default_rng(2)
        )
        measure_tables(drawn.astype(np.float64))


def compare_tests() -> None:
    write("| 10,000 permutations of | responses × values × groups | equivox, s | naive numpy | scipy random_table |")
    write("|---|---|---|---|---|")
    for n, n_values, n_groups, n_units in ((7_442, 60, 2, 91), (14_400, 100, 6, 24)):
        data = Answers(n, n_values, n_groups, n_units)
        size = f"{n:,} × {n_values} × {n_groups}"
        mine, naive, theirs = best_of(data.ours), best_of(data.naive, 1), best_of(data.scipy_alone)
        write(f"| responses | {size} | {mine:.3f} | {naive / mine:.1f}× | {theirs / mine:.1f}× |")
        mine, naive = best_of(data.ours_by_unit), best_of(data.naive_by_unit, 1)
        write(f"| {n_units} units | {size} | {mine:.3f} | {naive / mine:.1f}× | – |")


def score_answers() -> None:
    """Time the comparison of three attributes of many answers by 91 speakers."""
    write("\n| answers | comparison of three attributes, s |\n|---|---|")
    for n in (10_000, 100_000):
        rng, unit = np.random.default_rng(1), np.arange(n) % 91
        attributes = {
            f"attribute {width}": EncodedValues(
                np.arange(n), rng.choice(width, n, p=rng.dirichlet(np.full(width, 0.7))), range(width), n
            )
            for width in (60, 5, 20)
        }
        groups, units = EncodedLabels(unit % 2, range(2)), EncodedLabels(unit, range(91))
        seconds = best_of(
            lambda a=attributes, g=groups, u=units: compare_attributes(a, g, clusters=u, rng=np.random.default_rng(2))
        )
        write(f"| {n:,} | {seconds:.2f} |")


if __name__ == "__main__":
    compare_tests()
    score_answers()
