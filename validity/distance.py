"""Error of the estimate and coverage of its interval: `python -m validity.distance`.

It simulates populations whose nTVD is known, and prints a line per design. `--runs` sets the number of samples of each
population; 200 take about an hour on two cores. `--thin K` takes every K-th population only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from equivox.statistics import EncodedLabels, EncodedValues, joint_shift, ntvd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEED = 20261122
N_RESAMPLES = 199
LEVEL = 0.05
THIN = 5
"""With fewer answers of each value and group than this, on average, answers are thin."""


def of_clusters(truth: Floats, correlation: float, rng: np.random.Generator) -> Floats:
    """Draw each cluster's own distribution (rows) around its group's, so that two of its answers correlate."""
    if correlation == 0:
        return truth
    drawn = rng.gamma(truth * (1 - correlation) / correlation) + 1e-300
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class World:
    """A population: clusters in groups, each with its own distribution of values around its group's.

    `correlation` is that of two answers of one cluster. A `sparse` shift moves each group's answers to one value of its
    own, a `dense` one to all values of its own: every value belongs to one group. `uneven` is the standard deviation of
    the logarithm of the clusters' sizes, `listed` the number of values in a response, and `answered` the share of the
    responses that have any.
    """

    clusters: int
    responses: int
    groups: int
    values: int
    base: Literal["uniform", "zipf"] = "uniform"
    correlation: float = 0.0
    shift: float = 0.0
    spread: Literal["sparse", "dense"] = "sparse"
    attributes: int = 1
    uneven: float = 0.0
    listed: int = 1
    answered: float = 1.0

    def distributions(self) -> Floats:
        """Return each group's distribution, G x V."""
        common = np.ones(self.values) if self.base == "uniform" else 1 / np.arange(1, self.values + 1)
        common /= common.sum()
        owner = np.arange(self.values) % self.groups
        moved = np.zeros((self.groups, self.values))
        for group in range(self.groups):
            mine = owner == group if self.spread == "dense" else np.arange(self.values) == group % self.values
            moved[group, mine] = common[mine] if mine.any() else 0.0
            if not mine.any():
                moved[group, group % self.values] = 1.0
        moved /= moved.sum(axis=1, keepdims=True)
        return np.asarray((1 - self.shift) * common + self.shift * moved, dtype=np.float64)

    def truth(self) -> float:
        """Return the population's nTVD in percent."""
        return ntvd(self.distributions())

    def group_of_cluster(self) -> Ints:
        """Return the group number of each cluster; groups take turns."""
        return np.arange(self.clusters) % self.groups

    def codes(self, rng: np.random.Generator) -> list[Ints]:
        """Draw the answers: for each attribute, one value per response, clusters one after another.

        Attributes beyond the first repeat half of its answers, and draw the others anew from the same cluster.
        """
        p = self.of_clusters(rng)
        found = [self._answers(p, rng)]
        for _ in range(self.attributes - 1):
            again = rng.random(len(found[0])) < 0.5
            found.append(np.where(again, found[0], self._answers(p, rng)))
        return found

    def of_clusters(self, rng: np.random.Generator) -> Floats:
        """Draw the distribution of each cluster, K x V."""
        return of_clusters(self.distributions()[self.group_of_cluster()], self.correlation, rng)

    def _answers(self, p: Floats, rng: np.random.Generator) -> Ints:
        counts = rng.multinomial(self.responses, p)
        answers = np.repeat(np.tile(np.arange(self.values), self.clusters), counts.ravel())
        return np.asarray(rng.permuted(answers.reshape(self.clusters, self.responses), axis=1).ravel())

    def __str__(self) -> str:
        spread = self.spread if self.shift else "none"
        return (
            f"{self.clusters} × {self.responses} | {self.groups} | {self.values} | {self.base} | {self.correlation:g} "
            f"| {self.attributes} | {100 * self.shift:g} | {spread}"
        )


DESIGNS = (
    (24, 12, 2, 5), (24, 12, 6, 8), (24, 60, 2, 20), (24, 60, 6, 20), (24, 600, 6, 8), (24, 600, 6, 60),
    (24, 600, 2, 20), (48, 50, 2, 12), (48, 50, 6, 40), (48, 150, 6, 60), (48, 600, 2, 20), (91, 12, 2, 20),
    (91, 80, 2, 60), (91, 80, 6, 20), (91, 600, 2, 40), (91, 600, 6, 60),
)  # fmt: skip
"""Clusters, responses of each, groups and values."""


def worlds(correlations: Sequence[float] = (0.0, 0.01, 0.05)) -> Iterator[World]:
    """Yield the populations: every design × correlation × shift × spread, uniform and Zipf shares in turn."""
    for place, (clusters, responses, groups, values) in enumerate(DESIGNS):
        for turn, correlation in enumerate(correlations):
            base: Literal["uniform", "zipf"] = "uniform" if (place + turn) % 2 == 0 else "zipf"
            world = World(
                clusters=clusters, responses=responses, groups=groups, values=values, base=base,
                correlation=correlation,
            )  # fmt: skip
            yield world
            for shift in (0.1, 0.2, 0.4):
                yield replace(world, shift=shift, spread="sparse")
                yield replace(world, shift=shift, spread="dense")


def joint_worlds() -> Iterator[World]:
    """Yield populations with four dependent attributes, whose mean is estimated."""
    for place, world in enumerate(worlds((0.0, 0.02))):
        if place % 5 == 0 and world.responses <= 80:
            yield replace(world, attributes=4)


@dataclass(frozen=True)
class Found:
    """Results of the samples of one population, one entry per run."""

    world: World
    truth: float
    ntvd: Floats
    estimate: Floats
    low: Floats
    high: Floats
    p: Floats

    @property
    def covered(self) -> float:
        """The share of the intervals that hold the truth."""
        return float(((self.low <= self.truth + 1e-6) & (self.high >= self.truth - 1e-6)).mean())

    @property
    def contradictions(self) -> float:
        """The share of samples with p up to .05 beside a lower end of 0, or the reverse."""
        return float(((self.p <= LEVEL + 1e-9) != (self.low > 0)).mean())

    def bias(self, which: Literal["ntvd", "estimate"]) -> float:
        """Return the mean over runs less the truth."""
        return float(getattr(self, which).mean() - self.truth)

    def rmse(self, which: Literal["ntvd", "estimate"]) -> float:
        """Return the root of the mean squared distance from the truth."""
        return float(np.sqrt(((getattr(self, which) - self.truth) ** 2).mean()))

    def error(self, which: Literal["ntvd", "estimate"]) -> float:
        """Return the mean distance from the truth."""
        return float(np.abs(getattr(self, which) - self.truth).mean())


def simulate(asked: tuple[World, int, int]) -> Found:
    """Return the estimates of `runs` samples of a population."""
    world, runs, seed = asked
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(world.clusters), world.responses)
    clusters = EncodedLabels(codes=cluster, names=range(world.clusters))
    groups = EncodedLabels(codes=world.group_of_cluster()[cluster], names=range(world.groups))
    names, rows = [f"v{code:02}" for code in range(world.values)], np.arange(len(cluster))
    found = np.empty((6, runs))
    for run in range(runs):
        columns = {
            f"a{place}": EncodedValues(rows=rows, codes=codes, names=names, n_rows=len(rows))
            for place, codes in enumerate(world.codes(rng))
        }
        one = joint_shift(columns, groups, clusters=clusters, min_count=1, n_resamples=N_RESAMPLES, rng=rng)
        found[:, run] = one.ntvd, one.estimate, one.ci_low, one.ci_high, one.p_cluster, one.p_noise
    return Found(world, world.truth(), *found[:5])


def random_worlds(n: int) -> list[World]:
    """Return `n` populations of all kinds: 2 to 7 groups, 4 to 60 values, 8 to 100 clusters, thin answers included."""
    found = []
    for place in range(n):
        rng = np.random.default_rng([SEED, place])
        groups = int(rng.integers(2, 8))
        found.append(
            World(
                groups=groups,
                values=_between(4, 60, rng),
                clusters=max(_between(8, 100, rng), 4 * groups),
                responses=_between(4, 120, rng),
                correlation=float(
                    rng.choice([0.0, 0.01, 0.02, 0.05, 0.08, 0.2, 0.4], p=[0.25, *[0.15] * 3, *[0.1] * 3])
                ),
                base="uniform" if rng.random() < 0.5 else "zipf",
                shift=float(rng.choice([0.0, 0.05, 0.1, 0.2, 0.4, 0.6], p=[0.25, 0.1, 0.2, 0.2, 0.15, 0.1])),
                spread="dense" if rng.random() < 0.5 else "sparse",
                uneven=0.6 if rng.random() < 0.5 else 0.0,
                listed=int(rng.choice([1, 1, 3])),
                answered=float(rng.choice([1.0, 1.0, 0.4])),
            )
        )
    return found


def _between(least: int, most: int, rng: np.random.Generator) -> int:
    return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def simulate_random(asked: tuple[World, int, int]) -> tuple[World, Floats]:
    """Return, for each sample of a random population, the estimate, that of an oracle, the interval and the p.

    The oracle knows which values the groups differ in, and in which direction.
    """
    world, runs, seed = asked
    rng = np.random.default_rng(seed)
    group, distributions = world.group_of_cluster(), world.distributions()
    sizes = np.maximum(2, (world.responses * rng.lognormal(0, world.uneven, world.clusters)).astype(int))
    deviations = distributions - distributions.mean(axis=0)
    direction = np.where(np.abs(deviations) > 1e-9, np.sign(deviations), 0.0)
    found = []
    for _ in range(runs):
        own = world.of_clusters(rng)
        cluster = np.repeat(np.arange(world.clusters), rng.binomial(sizes, world.answered))
        codes = np.concatenate(
            [rng.choice(world.values, (int(n), world.listed), p=p).ravel()
             for n, p in zip(np.bincount(cluster, minlength=world.clusters), own, strict=True)]
        )  # fmt: skip
        rows = np.repeat(np.arange(len(cluster)), world.listed)
        names = [f"v{code:02}" for code in range(world.values)]
        one = joint_shift(
            {"a": EncodedValues(rows=rows, codes=codes, names=names, n_rows=len(cluster))},
            EncodedLabels(codes=group[cluster], names=range(world.groups)),
            clusters=EncodedLabels(codes=cluster, names=range(world.clusters)),
            min_count=1, n_resamples=N_RESAMPLES, rng=rng,
        )  # fmt: skip
        if one.undefined is not None:
            continue
        shift = one.attributes["a"]
        seen = [int(name[1:]) for name in shift.values]
        oracle = 50 * float((direction[:, seen] * shift.deviations).sum()) / (world.groups - 1)
        found.append((one.estimate, oracle, one.ci_low, one.ci_high, one.p_cluster, one.ntvd))
    return world, np.array(found)


def random_table(runs: int, n: int = 84, processes: int = 2) -> Iterator[str]:
    """Yield the errors of the estimate in random populations, by correlation, number of answers and shift."""
    with ProcessPoolExecutor(processes) as pool:
        asked = [(world, runs, SEED + place) for place, world in enumerate(random_worlds(n))]
        found = [(world, own) for world, own in pool.map(simulate_random, asked) if len(own)]

    def thin(world: World) -> bool:
        answers = world.clusters * world.responses * world.answered * world.listed
        return answers / world.groups / world.values < THIN

    def low(world: World) -> bool:
        return world.correlation <= 0.08

    yield (
        "| populations | n | mean bias | mean absolute bias | RMSE | an oracle's RMSE | interval holds | "
        "star against interval | nTVD's mean absolute bias |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    kinds: Mapping[str, Callable[[World], bool]] = {
        "all": lambda world: True,
        "correlation to .08": low,
        "the same, with a shift": lambda world: low(world) and world.shift > 0,
        "the same, without a shift": lambda world: low(world) and world.shift == 0,
        f"the same, {THIN} answers or more of each value and group, with a shift":
            lambda world: low(world) and not thin(world) and world.shift > 0,
        f"the same, {THIN} answers or more, without a shift":
            lambda world: low(world) and not thin(world) and world.shift == 0,
        f"the same, fewer than {THIN} answers": lambda world: low(world) and thin(world),
        "correlation .2": lambda world: world.correlation == 0.2,
        "correlation .4": lambda world: world.correlation == 0.4,
    }  # fmt: skip
    for name, kind in kinds.items():
        chosen = [(world.truth(), own) for world, own in found if kind(world)]
        if not chosen:
            continue
        bias = np.array([own[:, 0].mean() - truth for truth, own in chosen])
        published = np.array([own[:, 5].mean() - truth for truth, own in chosen])
        rmse, oracle = (
            np.mean([np.sqrt(((own[:, which] - truth) ** 2).mean()) for truth, own in chosen]) for which in (0, 1)
        )
        holds = np.mean([((own[:, 2] <= truth + 1e-6) & (truth <= own[:, 3] + 1e-6)).mean() for truth, own in chosen])
        against = np.mean([((own[:, 4] <= LEVEL + 1e-9) != (own[:, 2] > 0)).mean() for _, own in chosen])
        yield (
            f"| {name} | {len(chosen)} | {bias.mean():+.2f} | {np.abs(bias).mean():.2f} | {rmse:.2f} | {oracle:.2f} | "
            f"{100 * holds:.1f} % | {100 * against:.2f} % | {np.abs(published).mean():.2f} |"
        )


def lines(found: Sequence[Found]) -> Iterator[str]:
    """Yield a table with a line per population."""
    yield (
        "| speakers × responses | groups | values | shares | correlation | attributes | true nTVD | spread | nTVD "
        "| estimate | RMSE | mean interval | covers | p ≤ .05 | contradicts |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for one in found:
        yield (
            f"| {one.world} | {one.ntvd.mean():.1f} | {one.estimate.mean():.1f} | {one.rmse('estimate'):.1f} | "
            f"{one.low.mean():.1f} to {one.high.mean():.1f} | {100 * one.covered:.1f} % | "
            f"{100 * (one.p <= LEVEL + 1e-9).mean():.0f} % | {100 * one.contradictions:.1f} % |"
        )


def summary(found: Sequence[Found]) -> Iterator[str]:
    """Yield the means over populations."""
    yield "| | mean bias | mean absolute bias | RMSE |"
    yield "|---|---|---|---|"
    which: Literal["ntvd", "estimate"]
    for which, name in (("ntvd", "nTVD"), ("estimate", "estimate")):
        bias = np.array([one.bias(which) for one in found])
        rmse = np.mean([one.rmse(which) for one in found])
        yield f"| {name} | {bias.mean():+.2f} | {np.abs(bias).mean():.2f} | {rmse:.2f} |"
    further = [one for one in found if one.error("estimate") > one.error("ntvd")]
    worst = max((one.error("estimate") - one.error("ntvd") for one in further), default=0.0)
    yield ""
    yield (
        f"Mean distance from the truth: estimate {np.mean([one.error('estimate') for one in found]):.2f}, nTVD "
        f"{np.mean([one.error('ntvd') for one in found]):.2f}. In {len(further)} of {len(found)} populations the "
        f"estimate is further on average, by {worst:.1f} at most."
    )
    shifted, none = [one for one in found if one.truth > 0], [one for one in found if one.truth == 0]
    for name, own in (("with a shift", shifted), ("without a shift", none)):
        if own:
            covered = 100 * np.array([one.covered for one in own])
            width = np.mean([(one.high - one.low).mean() for one in own])
            yield (
                f"Intervals {name}: cover {covered.mean():.1f} % on average, {covered.min():.1f} to "
                f"{covered.max():.1f} % per population ({(covered < 92).sum()} below 92, "
                f"{(covered > 99.5).sum()} above 99.5, of {len(own)}); mean width {width:.1f}."
            )
    against = 100 * np.array([one.contradictions for one in found])
    yield f"Interval and test contradict each other in {against.mean():.1f} % of samples, {against.max():.1f} at most."
    if none:
        rejected = 100 * np.array([(one.p <= LEVEL + 1e-9).mean() for one in none])
        yield f"Without a shift p ≤ .05 in {rejected.mean():.1f} % of samples, {rejected.max():.1f} at most."


def run_all(asked: Iterable[World], runs: int, processes: int = 2) -> list[Found]:
    """Return what every population gave, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(simulate, [(world, runs, SEED + place) for place, world in enumerate(asked)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--thin", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="leave out the lines of single populations")
    asked = parser.parse_args()
    for title, of in (
        ("Single attributes", list(worlds())),
        ("Means of four attributes", list(joint_worlds())),
        ("Speakers differ widely (correlation .2)", list(worlds((0.2,)))),
    ):
        found = run_all(of[:: asked.thin], asked.runs, asked.processes)
        sys.stdout.write(f"\n## {title}\n\n")
        for line in [*summary(found), "", *([] if asked.summary else lines(found))]:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
