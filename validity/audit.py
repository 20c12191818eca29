"""Coverage of scores that are corrected by people's labels: `python -m validity.audit` prints the table.

The annotator reads one fifth of one group's answers as another value. With 200 runs a line it takes about four minutes
on one core; `--runs` changes that. `unclipped` is the mean of the corrected estimates before they are cut off at zero.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.statistics import CorrectedShift, corrected_shift, distribution_shift
from validity.levels import World

SEED = 20261122
ERROR = 0.2
READ_AS = 4
"""The value that the annotator takes answers of group 1 for; no group has more of it than the others."""


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """Values as people read them and as the annotator read them, and which responses are labelled."""

    people: NDArray[np.int64]
    read: NDArray[np.int64]
    groups: NDArray[np.int64]
    clusters: NDArray[np.int64]
    labelled: NDArray[np.int64]

    def corrected(self, rng: np.random.Generator) -> CorrectedShift:
        """Return the shift as people would annotate it."""
        return corrected_shift(
            self._values(self.read),
            self._names(self.groups),
            clusters=self._names(self.clusters),
            labelled_rows=self.labelled,
            labels=self._values(self.people[self.labelled]),
            rng=rng,
        )

    def plain(self, rng: np.random.Generator) -> tuple[float, float, float]:
        """Return the estimate and the interval from the annotator alone."""
        found = distribution_shift(
            self._values(self.read),
            self._names(self.groups),
            clusters=self._names(self.clusters),
            n_resamples=199,
            rng=rng,
        )
        return found.estimate, found.ci_low, found.ci_high

    @staticmethod
    def _names(codes: NDArray[np.int64]) -> EncodedLabels:
        return EncodedLabels(codes, [f"{code:03d}" for code in range(int(codes.max()) + 1)])

    @staticmethod
    def _values(codes: NDArray[np.int64]) -> EncodedValues:
        return EncodedValues(np.arange(len(codes)), codes, [str(code) for code in range(20)], len(codes))


def annotated(world: World, n_labels: int, rng: np.random.Generator, *, error: float = ERROR) -> Annotated:
    """Draw answers of `world`; the annotator takes a share of group 1's for one value."""
    counts, group = world.counts(rng), world.group_of_cluster()
    clusters, people = (np.repeat(part, counts.ravel()) for part in np.indices(counts.shape).reshape(2, -1))
    groups = group[clusters]
    wrong = (groups == 1) & (rng.random(len(groups)) < error)
    labelled = [
        rng.choice(np.flatnonzero(groups == code), n_labels, replace=False) for code in range(int(groups.max()) + 1)
    ]
    return Annotated(
        people=people,
        read=np.where(wrong, READ_AS, people),
        groups=groups,
        clusters=clusters,
        labelled=np.sort(np.concatenate(labelled)),
    )


def lines(runs: int) -> Iterator[str]:
    """Yield the table, a line per population and number of labels."""
    columns = (
        *("groups", "values", "speaker correlation", "truth", "labels a group", "annotator alone", "covers"),
        *("corrected", "covers", "width", "unclipped"),
    )
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for groups, values, correlation in ((2, 6, 0.0), (2, 12, 0.05), (4, 12, 0.02)):
        for shift in (0.0, 0.2):
            world = World(clusters=24, responses=50, values=values, groups=groups, correlation=correlation, shift=shift)
            for n_labels in (10, 50, 200):
                yield _line(world, n_labels, runs)


def _line(world: World, n_labels: int, runs: int) -> str:
    truth = 100 * world.shift
    rng = np.random.default_rng([SEED, n_labels, world.groups, world.values, round(truth)])
    plain, corrected = [], []
    for _ in range(runs):
        data = annotated(world, n_labels, rng)
        plain.append(data.plain(rng))
        found = data.corrected(rng)
        corrected.append((found.estimate, found.ci_low, found.ci_high, found.estimate_unclipped))
    cells = []
    for name, each in (("plain", np.array(plain)), ("corrected", np.array(corrected))):
        covered = ((each[:, 1] <= truth) & (truth <= each[:, 2])).mean()
        cells += [f"{each[:, 0].mean():.1f}", f"{100 * covered:.0f} %"]
        if name == "corrected":
            cells += [f"{(each[:, 2] - each[:, 1]).mean():.1f}", f"{each[:, 3].mean():.1f}"]
    facts = (world.groups, world.values, world.correlation, f"{truth:.0f}", n_labels)
    return f"| {' | '.join(map(str, facts))} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs a line")
    arguments = parser.parse_args()
    for line in lines(arguments.runs):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
