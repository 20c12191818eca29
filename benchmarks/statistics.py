"""Speed of the permutation tests next to naive numpy and scipy alone: `python -m benchmarks.statistics`.

All contestants run in this process on the same data, so that the ratios hold on any machine. Each time is the best of
three. `--skip-leaderboard` leaves out the last table, which takes about two minutes.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
from scipy.stats import random_table

from equivox.statistics import EncodedLabels, EncodedValues, encode, inputs, joint_shift
from equivox.statistics.distance import ntvd_of_counts
from equivox.statistics.inputs import Ints
from equivox.statistics.nulls import null_over_clusters, null_over_responses

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


class Answers:
    """Answers of `n` responses, with values of unequal frequency."""

    def __init__(self, n: int, n_values: int, n_groups: int, n_clusters: int, per_response: int = 1) -> None:
        rng = np.random.default_rng(1)
        shares = rng.dirichlet(np.full(n_values, 2.0))
        self.n, self.n_values, self.n_groups = n, n_values, n_groups
        self.rows = np.arange(n).repeat(per_response)
        self.codes = rng.choice(n_values, size=n * per_response, p=shares)
        cluster = np.arange(n) % n_clusters
        self.cluster_group = np.arange(n_clusters) % n_groups
        self.group = self.cluster_group[cluster]
        flat = np.bincount(cluster[self.rows] * n_values + self.codes, minlength=n_clusters * n_values)
        self.by_cluster: Ints = flat.reshape(n_clusters, n_values)

    def ours(self) -> None:
        """Permutations over responses, as equivox does."""
        answers = encode.Answers(self.rows, self.codes, [slice(0, self.n_values)])
        null_over_responses(
            answers, self.group, n_groups=self.n_groups, n_resamples=N_RESAMPLES, rng=np.random.default_rng(2)
        )

    def ours_by_cluster(self) -> None:
        """Permutations over clusters, as equivox does."""
        null_over_clusters(
            self.by_cluster, self.cluster_group, None, [slice(0, self.n_values)], n_groups=self.n_groups,
            n_resamples=N_RESAMPLES, rng=np.random.default_rng(2),
        )  # fmt: skip

    def naive(self) -> None:
        """One shuffle and one count per permutation."""
        rng = np.random.default_rng(2)
        for _ in range(N_RESAMPLES):
            moved = rng.permutation(self.group)[self.rows]
            flat = np.bincount(moved * self.n_values + self.codes, minlength=self.n_groups * self.n_values)
            ntvd_of_counts(flat.reshape(1, self.n_groups, self.n_values))

    def naive_by_cluster(self) -> None:
        """One shuffle of the clusters and one sum per permutation."""
        rng = np.random.default_rng(2)
        for _ in range(N_RESAMPLES):
            moved = rng.permutation(self.cluster_group)
            tables = np.stack([self.by_cluster[moved == code].sum(axis=0) for code in range(self.n_groups)])
            ntvd_of_counts(tables[None])

    def scipy_alone(self) -> None:
        """All tables from scipy at once; single-valued answers only."""
        drawn = random_table(np.bincount(self.group), np.bincount(self.codes)).rvs(
            N_RESAMPLES, random_state=np.random.default_rng(2)
        )
        ntvd_of_counts(drawn.astype(np.float64))


def side_by_side() -> None:
    write("10,000 permutations, seconds (best of three) and how many times faster equivox is\n")
    write("| test | responses × values × groups | equivox | naive numpy | scipy random_table alone |")
    write("|---|---|---|---|---|")
    for n, n_values, n_groups, n_clusters, per_response in (
        (7_442, 60, 2, 91, 1),
        (14_400, 100, 6, 24, 1),
        (7_442, 60, 2, 91, 3),
        (14_400, 100, 6, 24, 3),
    ):
        data = Answers(n, n_values, n_groups, n_clusters, per_response)
        size = f"{n:,} × {n_values} × {n_groups}" + (f", {per_response} values each" if per_response > 1 else "")
        mine, naive = best_of(data.ours), best_of(data.naive, 1)
        alone = "cannot: values move together"
        if per_response == 1:
            theirs = best_of(data.scipy_alone)
            alone = f"{theirs:.3f} ({theirs / mine:.1f}×)"
        write(f"| responses | {size} | {mine:.3f} | {naive:.2f} ({naive / mine:.1f}×) | {alone} |")
    for n, n_values, n_groups, n_clusters in ((7_442, 60, 2, 91), (14_400, 100, 6, 24)):
        data = Answers(n, n_values, n_groups, n_clusters)
        mine, naive = best_of(data.ours_by_cluster), best_of(data.naive_by_cluster, 1)
        size = f"{n_clusters} clusters, {n:,} × {n_values} × {n_groups}"
        write(f"| clusters | {size} | {mine:.3f} | {naive:.2f} ({naive / mine:.1f}×) | – |")


def growth() -> None:
    write("\nHow the cost of 10,000 permutations grows (seconds)\n")
    write("| what grows | value | responses | responses, 3 values each | clusters |")
    write("|---|---|---|---|---|")
    base = {"n": 6_000, "n_values": 40, "n_groups": 3, "n_clusters": 60}
    for name, steps in (
        ("n", (1_500, 6_000, 24_000, 96_000)),
        ("n_values", (10, 40, 160, 640)),
        ("n_groups", (2, 3, 6, 12)),
        ("n_clusters", (24, 60, 240, 960)),
    ):
        for step in steps:
            single, triple = Answers(**(base | {name: step})), Answers(**(base | {name: step}), per_response=3)
            times = [best_of(run, 1) for run in (single.ours, triple.ours, single.ours_by_cluster)]
            write(f"| {name} | {step:,} | " + " | ".join(f"{seconds:.3f}" for seconds in times) + " |")


def task(rng: np.random.Generator, n: int, widths: tuple[int, ...], per_response: int) -> dict[str, EncodedValues]:
    """Draw the attributes of one task; a task with `per_response` > 1 is multi-valued."""
    drawn = {}
    rows = np.arange(n).repeat(per_response)
    for index, width in enumerate(widths):
        codes = rng.choice(width, size=n * per_response, p=rng.dirichlet(np.full(width, 0.7)))
        names = [f"v{code:02}" for code in range(width)]
        drawn[f"attribute {index}"] = EncodedValues(rows=rows, codes=codes, names=names, n_rows=n)
    return drawn


def reading() -> None:
    """Three single-valued attributes, groups and 91 clusters: how long the columns take to read, and the test."""
    write("\nSeconds to read the columns of three attributes, and to test them with 10,000 permutations\n")
    write("| responses | lists of texts | pyarrow lists | encoded | test in all, encoded |")
    write("|---|---|---|---|---|")
    for n in (100_000, 1_000_000):
        encoded = task(np.random.default_rng(1), n, (60, 5, 20), 1)
        cluster = np.arange(n) % 91
        labels = [EncodedLabels(codes=codes, names=range(91)) for codes in (cluster % 2, cluster)]
        flat = [pa.array(column.names).take(pa.array(column.codes)) for column in encoded.values()]
        arrow = [pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), column) for column in flat]
        columns = (
            ([column.to_pylist() for column in arrow], [codes.codes.tolist() for codes in labels]),
            (arrow, [pa.array(codes.codes) for codes in labels]),
            (list(encoded.values()), labels),
        )
        times = [
            best_of(
                lambda v=values, c=carriers: [inputs.values(x, "x") for x in v] + [inputs.labels(x, "x") for x in c]
            )
            for values, carriers in columns
        ]
        test = best_of(lambda e=encoded, c=labels: joint_shift(e, c[0], clusters=c[1], rng=np.random.default_rng(2)), 1)
        write(f"| {n:,} | " + " | ".join(f"{seconds:.3f}" for seconds in [*times, test]) + " |")


TASKS = (
    ((60, 4, 5, 40, 6, 50), 1),
    ((60,), 3),
    ((4, 5, 4, 5, 2), 1),
    ((5, 20, 4, 6), 1),
    ((30, 5, 40, 40), 1),
)
"""Values of each attribute of the five tasks, and values per response: 20 attributes."""


def one_model(asked: tuple[int, int, int, int]) -> float:
    """Score one model on the five tasks of one dimension; return this process's peak memory in GiB."""
    n, n_clusters, n_groups, seed = asked
    rng = np.random.default_rng([1, seed])
    clusters = np.arange(n) % n_clusters
    for widths, per_response in TASKS:
        joint_shift(task(rng, n, widths, per_response), clusters % n_groups, clusters=clusters, rng=rng)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def leaderboard(processes: int = 2) -> None:
    """11 models × 2 dimensions × 5 tasks with 20 attributes in all: all tests, intervals, and the task means."""
    asked = [(*design, model) for design in ((7_442, 91, 2), (14_400, 24, 6)) for model in range(11)]
    start = time.perf_counter()
    with ProcessPoolExecutor(processes) as pool:
        peak = max(pool.map(one_model, asked))
    seconds = time.perf_counter() - start
    write("\nWhole leaderboard: 11 models × 2 dimensions × 20 attributes in 5 tasks, all tests, intervals, task means")
    write(f"{seconds:.0f} s in {processes} processes (bound 150 s), peak memory {peak:.2f} GiB each (bound 2 GiB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip-leaderboard", action="store_true")
    asked = parser.parse_args()
    side_by_side()
    growth()
    reading()
    if not asked.skip_leaderboard:
        leaderboard()


if __name__ == "__main__":
    main()
