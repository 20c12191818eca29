"""Speed and memory of leader clustering, and how they grow: `python -m benchmarks.unify`.

Two cases: `worst`, in which no two phrases are near and every one leads, and `grouped`, in which each of many centres
has several wordings. Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence

import numpy as np

from equivox.annotate.merging import leader_clusters

SIZES = (12_500, 25_000, 50_000, 100_000)
DIMENSIONS = 768
THRESHOLD = 0.63
WORDINGS = 8
LIMIT_SECONDS, LIMIT_GIB = 300, 4


def vectors(case: str, n: int) -> np.ndarray:
    """Return `n` vectors of one case, the same each time."""
    rng = np.random.default_rng(n)
    drawn = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    if case == "grouped":
        centres = rng.standard_normal((max(1, n // WORDINGS), DIMENSIONS), dtype=np.float32)
        drawn *= 0.5
        for start in range(0, n, 4096):
            rows = drawn[start : start + 4096]
            rows += centres[rng.integers(len(centres), size=len(rows))]
    return drawn


def measure(case: str, n: int) -> tuple[float, float, int]:
    """Return seconds, peak memory in GiB, and the number of clusters."""
    given = vectors(case, n)
    start = time.perf_counter()
    leaders = leader_clusters(given, THRESHOLD)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, len(np.unique(leaders))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per case and size; return 1 when the largest is above a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args(arguments)
    sys.stdout.write("case     phrases  clusters  seconds  peak GiB\n")
    too_much = False
    for case in ("grouped", "worst"):
        for n in options.sizes:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, gib, clusters = pool.apply(measure, (case, n))
            sys.stdout.write(f"{case:<8} {n:>7,} {clusters:>9,} {seconds:>8.1f} {gib:>9.2f}\n")
            sys.stdout.flush()
            too_much |= seconds > LIMIT_SECONDS or gib > LIMIT_GIB
    sys.stdout.write(f"limits: {LIMIT_SECONDS} s and {LIMIT_GIB} GiB: {'exceeded' if too_much else 'kept'}\n")
    return int(too_much)


if __name__ == "__main__":
    raise SystemExit(main())
