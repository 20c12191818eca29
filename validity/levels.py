"""Level of the tests and coverage of the intervals: `python -m validity.levels` writes validity/tables.md.

With 1,000 null runs and 200 runs of each population it takes about an hour and a half on two cores; `--runs`,
`--interval-runs` and `--thin` change that, `--output -` prints the page instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from equivox.statistics import distribution_shift
from equivox.statistics.distance import ntvd_of_shares
from equivox.statistics.encode import Answers, encode_design
from equivox.statistics.intervals import invert
from equivox.statistics.noise import N_NOISE, noise_over_clusters
from validity import comparison, designs, distance, hidden, numbers
from validity.distance import of_clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_LABELLINGS = 499
SEED = 20261121


@dataclass(frozen=True, kw_only=True)
class World:
    """A population: clusters in groups, each with its own distribution around its group's."""

    clusters: int
    responses: int
    values: int
    groups: int
    correlation: float = 0.0
    shift: float = 0.0
    spread: int = 1
    unequal: bool = False
    sizes: Literal["equal", "random", "by group"] = "equal"

    def distributions(self) -> Floats:
        """Mix each group with a distribution of its own on `spread` values: nTVD = 100 · shift exactly."""
        p = np.full((self.groups, self.values), (1 - self.shift) / self.values)
        for group in range(self.groups):
            p[group, group * self.spread : (group + 1) * self.spread] += self.shift / self.spread
        return p

    def group_of_cluster(self) -> Ints:
        """Deal the clusters to the groups: evenly, or 1 : 2 : 3 ... when `unequal`."""
        if not self.unequal:
            return np.arange(self.clusters) % self.groups
        sizes = np.arange(1, self.groups + 1) / np.arange(1, self.groups + 1).sum()
        return np.searchsorted(np.cumsum(sizes), (np.arange(self.clusters) + 0.5) / self.clusters)

    def cluster_distributions(self, rng: np.random.Generator) -> Floats:
        """Draw each cluster's own distribution."""
        return of_clusters(self.distributions()[self.group_of_cluster()], self.correlation, rng)

    def counts(self, rng: np.random.Generator) -> Ints:
        """Draw clusters × values counts."""
        return rng.multinomial(self.responses, self.cluster_distributions(rng))


def rows(
    world: World, rng: np.random.Generator, *, per_response: int = 1
) -> tuple[list[list[str]], list[str], list[str]]:
    """Draw responses as `distribution_shift` takes them: values, groups, clusters."""
    p, group = world.cluster_distributions(rng), world.group_of_cluster()
    values, groups, clusters = [], [], []
    for cluster in range(world.clusters):
        larger = {"equal": 1.0, "random": rng.uniform(0.5, 2.0), "by group": 0.5 + 1.5 * cluster / world.clusters}
        n = int(world.responses * larger[world.sizes])
        drawn = rng.choice(world.values, size=(n, per_response), p=p[cluster])
        values += [[f"v{code:02}" for code in answer] for answer in drawn.tolist()]
        groups += [f"g{group[cluster]}"] * n
        clusters += [f"c{cluster:03}"] * n
    return values, groups, clusters


def confounded(rng: np.random.Generator) -> tuple[list[list[str]], list[str], list[str], list[str]]:
    """Two strata that answer differently and hold the two groups in unequal numbers; no group effect within."""
    values, groups, clusters, strata = [], [], [], []
    shares = (np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4]))
    for stratum, (n_first, n_second) in enumerate(((9, 3), (3, 9))):
        for index in range(n_first + n_second):
            p = rng.dirichlet(shares[stratum] * 49)
            drawn = rng.choice(4, size=40, p=p)
            values += [[f"v{code}"] for code in drawn.tolist()]
            groups += ["a" if index < n_first else "b"] * 40
            clusters += [f"s{stratum}c{index:02}"] * 40
            strata += [f"s{stratum}"] * 40
    return values, groups, clusters, strata


PLAIN = World(clusters=24, responses=60, values=20, groups=6)
NULLS: dict[str, World | None] = {
    "no effect": PLAIN,
    "speaker effect": replace(PLAIN, correlation=0.02),
    "speaker effect, 600 responses each": replace(PLAIN, correlation=0.02, responses=600),
    "unequal groups, clusters of unequal size": replace(PLAIN, correlation=0.02, unequal=True, sizes="random"),
    "two groups, 91 speakers": World(clusters=91, responses=80, values=60, groups=2, correlation=0.02),
    "multi-valued (three per response)": replace(PLAIN, correlation=0.02),
    "strata": None,
    "not exchangeable: a group's size sets its clusters'": replace(
        PLAIN, correlation=0.02, unequal=True, sizes="by group"
    ),
}


def null_table(runs: int, seed: int) -> Iterator[str]:
    """Share of runs without a group effect in which each test rejects at 5 %."""
    yield "| design | speakers × responses | groups | values | p_cluster ≤ .05 | p_response ≤ .05 |"
    yield "|---|---|---|---|---|---|"
    for name, world in NULLS.items():
        rng = np.random.default_rng([seed, len(name)])
        rejected = np.zeros(2)
        for _ in range(runs):
            strata = None
            if world is None:
                values, groups, clusters, strata = confounded(rng)
            else:
                values, groups, clusters = rows(world, rng, per_response=3 if "multi" in name else 1)
            found = distribution_shift(
                values, groups, clusters=clusters, strata=strata, n_resamples=N_LABELLINGS, rng=rng
            )
            rejected += np.array([found.p_cluster, found.p_response]) <= 0.05 + 1e-12
        shares = 100 * rejected / runs
        design = (
            "24 × 40 | 2 | 4"
            if world is None
            else f"{world.clusters} × {world.responses} | {world.groups} | {world.values}"
        )
        yield f"| {name} | {design} | {shares[0]:.1f} % | {shares[1]:.1f} % |"


def blocks_table(runs: int, seed: int) -> Iterator[str]:
    """Power for an accent shift of 10, with two women and two men an accent, as a gender shift grows."""
    yield "| gender shift | found without blocks | found within blocks |"
    yield "|---|---|---|"
    speakers = np.arange(24)
    group, gender = speakers // 4, speakers % 2
    for gender_shift in (0.0, 0.1, 0.2, 0.4):
        rng = np.random.default_rng([seed, 5, int(100 * gender_shift)])
        found = np.zeros(2)
        for _ in range(runs):
            p = np.full((24, 20), (1 - gender_shift - 0.1) / 20)
            p[speakers, gender] += gender_shift
            p[speakers, 2 + group] += 0.1
            drawn = rng.gamma(p * 99) + 1e-300
            drawn /= drawn.sum(axis=1, keepdims=True)
            codes = np.concatenate([rng.choice(20, size=60, p=row) for row in drawn])
            cluster = speakers.repeat(60)
            for place, blocks in enumerate((None, gender[cluster])):
                one = distribution_shift(
                    codes, group[cluster], clusters=cluster, blocks=blocks, n_resamples=N_LABELLINGS, rng=rng
                )
                found[place] += one.p_cluster <= 0.05 + 1e-12
        yield f"| {100 * gender_shift:g} | {100 * found[0] / runs:.0f} % | {100 * found[1] / runs:.0f} % |"


def sample(world: World, rng: np.random.Generator) -> tuple[Ints, Floats, Floats, Floats]:
    """Draw one sample: counts by cluster, deviations, draws of its noise and standard errors."""
    group = world.group_of_cluster()
    counts = world.counts(rng)
    totals = np.stack([counts[group == code].sum(axis=0) for code in range(world.groups)]).astype(np.float64)
    shares = totals / totals.sum(axis=1, keepdims=True)
    cluster = np.arange(world.clusters).repeat(counts.sum(axis=1))
    codes = np.repeat(np.tile(np.arange(world.values), world.clusters), counts.ravel())
    answers = Answers(np.arange(len(codes)), codes, [slice(0, world.values)])
    noise = noise_over_clusters(answers, encode_design(group[cluster], cluster, None), rng)
    drawn = noise.draw(N_NOISE, rng) * noise.scales(N_NOISE, [noise.joint_degrees], rng)[0][:, None, None]
    return counts, shares - shares.mean(axis=0), drawn, noise.errors()


def alternatives(
    counts: Ints, deviations: Floats, centred: Floats, errors: Floats, world: World
) -> dict[str, tuple[float, float]]:
    """Compute the intervals that were tried and not taken, from the same cluster noise."""
    drawn = np.sort(ntvd_of_shares(deviations + centred))
    observed = float(ntvd_of_shares(deviations[None])[0])
    low, high = np.quantile(drawn, [0.025, 0.975])
    bias = norm.ppf(np.clip((drawn < observed).mean(), 1e-3, 1 - 1e-3))
    group = world.group_of_cluster()
    left_out = np.empty(world.clusters)
    for cluster in range(world.clusters):
        kept = np.arange(world.clusters) != cluster
        totals = np.stack([counts[kept & (group == code)].sum(axis=0) for code in range(world.groups)]).astype(float)
        left_out[cluster] = ntvd_of_shares((totals / totals.sum(axis=1, keepdims=True))[None])[0]
    pull = left_out.mean() - left_out
    acceleration = (pull**3).sum() / (6 * max((pull**2).sum(), 1e-12) ** 1.5)

    def adjusted(a: float) -> tuple[float, float]:
        z = np.array([bias + norm.ppf(q) for q in (0.025, 0.975)])
        ends = np.quantile(drawn, norm.cdf(bias + z / (1 - a * z)))
        return float(ends[0]), float(ends[1])

    grid = np.linspace(0, 2, 81)
    tails = np.quantile(np.stack([ntvd_of_shares(t * deviations + centred) for t in grid]), [0.975, 0.025], axis=1)
    theta = [float(np.interp(observed, np.maximum.accumulate(tail), grid)) for tail in tails]
    theta = [0.0 if tail[0] >= observed else t for t, tail in zip(theta, tails, strict=True)]
    return {
        "percentile": (float(low), float(high)),
        "basic": (max(0.0, 2 * observed - float(high)), max(0.0, 2 * observed - float(low))),
        "bias-corrected percentile": adjusted(0.0),
        "BCa": adjusted(float(acceleration)),
        "inversion along the observed direction": (theta[0] * observed, theta[1] * observed),
        "inversion, sparsest and densest spread (taken)": invert(
            deviations, centred, errors, [slice(0, world.values)], 0.95
        ),
    }


def choice_table(runs: int, seed: int) -> Iterator[str]:
    """Coverage of each construction on the same samples."""
    base = World(clusters=24, responses=12, values=8, groups=2, shift=0.2)
    tried = {
        "24 × 12, 2 groups, 8 values, nTVD 20, one value": base,
        "24 × 12, 2 groups, 8 values, nTVD 20, 4 values": replace(base, spread=4),
        "24 × 12, 6 groups, 8 values, nTVD 20, one value": replace(base, groups=6),
        "91 × 80, 2 groups, 60 values, nTVD 5, one value": replace(
            base, clusters=91, responses=80, values=60, shift=0.05
        ),
        "91 × 80, 2 groups, 60 values, nTVD 5, 30 values": replace(
            base, clusters=91, responses=80, values=60, shift=0.05, spread=30
        ),
        "24 × 600, 6 groups, 60 values, nTVD 20, one value": replace(base, groups=6, responses=600, values=60),
        "24 × 600, 6 groups, 60 values, nTVD 20, 10 values": replace(
            base, groups=6, responses=600, values=60, spread=10
        ),
    }
    head: list[str] = []
    for index, (name, world) in enumerate(tried.items()):
        rng = np.random.default_rng([seed, 2, index])
        covered: dict[str, int] = {}
        for _ in range(runs):
            for method, (low, high) in alternatives(*sample(world, rng), world).items():
                covered[method] = covered.get(method, 0) + (low <= 100 * world.shift <= high)
        if not head:
            head = [f"| design | {' | '.join(covered)} |", "|---|" + "---|" * len(covered)]
            yield from head
        yield f"| {name} | " + " | ".join(f"{100 * n / runs:.1f} %" for n in covered.values()) + " |"


def planted_table(runs: int, seed: int) -> Iterator[str]:
    """Coverage of the public function on the planted reference: 24 × 12 answers, 8 values, true nTVD 20."""
    yield "| planted shift | true nTVD | interval holds it |"
    yield "|---|---|---|"
    base = World(clusters=24, responses=12, values=8, groups=2, shift=0.2)
    for name, world, clustered in (
        ("2 groups, speakers alike", base, True),
        ("6 groups, speakers alike", replace(base, groups=6), True),
        ("2 groups, speakers differ (0.02)", replace(base, correlation=0.02), True),
        ("6 groups, speakers differ (0.02)", replace(base, groups=6, correlation=0.02), True),
        ("2 groups, no clusters given", base, False),
        ("6 groups, no clusters given", replace(base, groups=6), False),
    ):
        rng = np.random.default_rng([seed, 3, len(name)])
        held = 0
        for _ in range(runs):
            values, groups, clusters = rows(world, rng)
            found = distribution_shift(
                values, groups, clusters=clusters if clustered else None, min_count=1, n_resamples=1, rng=rng
            )
            held += found.ci_low <= 20 <= found.ci_high
        yield f"| {name} | 20 | {100 * held / runs:.1f} % |"


PAGE = """# Validity: do the numbers hold?

This page is written by `python -m validity.levels` ({runs} null runs, {interval_runs} runs per interval,
seed {seed}). Every table simulates a population whose truth is known and counts how often a number is right
about it.

## Tests: how often do they report a difference when there is none?

At a level of 5 % a valid test rejects in 5 % of runs without a group effect; with {runs} runs, chance leaves
about ±{error:.1f} points. Speakers differ by a Dirichlet distribution around the common one; "speaker effect"
means that two answers of one speaker are correlated by 0.02.

{nulls}

`p_cluster` permutes the groups over whole speakers and keeps its level as long as speakers are exchangeable.
`p_response` permutes them over single answers, which is right only when speakers do not differ. With a speaker
effect it counts every answer of a speaker as new evidence about the group. In the `strata` row the strata answer
differently and hold the groups in unequal numbers; permutations within strata are valid, permutations over
everything are not.

In the last row the smallest group is one speaker, who also gave the fewest answers (a quarter of the largest number).
Its noise is of another size, so speakers are not exchangeable even without a group effect; it is taken to be correlated
as that of the other groups' speakers is, and a note says so.

### Groups whose speakers differ unlike

Permutations suppose that the speakers of all groups differ alike, and lost as many answers. The groups' own noise does
not. `p_cluster` is the larger of both p-values. The last two columns show what that costs where there is a shift of 15.
This table has four times as many runs per row.

{unlike}

### Blocks

Two women and two men an accent, an accent shift of 10 on one value, speakers that differ (.01). A gender shift that
all accents share is no accent effect; without blocks it counts as noise and hides one.

{blocks}

Accents that hold women and men in unequal numbers: estimate and interval are standardised, so that a gender shift is no
accent shift. "Star against interval" counts samples with p up to .05 beside a lower end of 0, or the reverse.

{held}

### One item in every group

Items differ widely in how often the answer is yes; every item is given to both groups. Comparing within items takes
these differences out. Without pairs each side of an item is a cluster of its own.

{crossed}

## The estimate and the interval

Every population below has a known nTVD. `sparse` moves each group's answers to one value of its own, `dense` to all
values of its own. `contradicts` counts samples with p up to .05 beside a lower end of 0, or the reverse.

### Random populations

Groups, values, speakers, answers, shifts and correlations are drawn at random; half of the populations have speakers
of unequal size, a third has three values in each response, and in a third 60 % of the answers are missing. An oracle
knows which values differ and in which direction.

{random}

### Single attributes

{single_summary}

{single}

### Means of four dependent attributes, as they head every table

{joint_summary}

{joint}

### Speakers who differ widely (correlation .2)

These are outside of what the estimate is meant for; the table says what then happens.

{wide_summary}

{wide}

### Why not a bootstrap interval

The nTVD of a sample is larger than that of the population: every value contributes the absolute size of its
noise. A bootstrap sample has the noise of the sample plus further noise, so percentile intervals are too high. A
correction by what resampling adds removes only part of what sampling added, because a deviation that is mostly
noise hardly grows with more noise. How much is left depends on how the true shift is spread over the values, and
the data show that only roughly. The absolute value has a kink at zero, and no estimator of a sum of absolute values
is accurate for both sparse and dense shifts (Cai & Low 2011, doi:10.1214/10-AOS849).

The interval therefore inverts a test. It takes each limit under the least favourable spread that the data allow
(`equivox/statistics/intervals.py`):

1. The sampling error of P_g is drawn with the covariance of the cluster residuals, shrunk to that of independent
   responses times their design effect, and scaled by √(df/χ²) for having been estimated.
2. Lower limit: deviations that noise alone reaches (2.5 standard errors, more for many values) are set to zero, the
   others stay as observed. This spread has the largest bias, so the smallest truth.
3. Upper limit: deviations beyond three standard errors stay; all others get one common size, the largest
   (one-sided 84 %) that their mean square allows. This spread has the smallest bias, so the largest truth.
4. Along each spread, the limit is the scale at which the observed nTVD becomes a 2.5 % tail event.

Coverage of 95 % intervals on the same samples ({interval_runs} runs each):

{choice}

### Planted shift

The simulated model moves a fifth of each group's answers to a value that no other group has, so the truth is exactly
20. The intervals come from `distribution_shift`:

{planted}

## Two models: how often is one called further from parity when both are equally far?

Two models answer the same samples, in two attributes. Their distances from parity are known by construction
(`python -m validity.comparison`, {pair_runs} runs per row, a quarter of that in the last). The
columns say how often each p is up to
5 %. In the first twelve rows the models are equally far, so a valid test stays at or below 5 % (chance leaves about
±{pair_error:.1f} points); in the others they are not.
With 5–80 responses, speakers differ in how many they gave and in how much
they vary. The second model lacks 30 % of the responses, for some speakers more than half. When that leaves a group with
one speaker there is no interval, which counts as an interval that does not hold.

| models, nTVD | speakers × responses | groups | p (exchangeable) | p_distance | p_both | interval holds |
|---|---|---|---|---|---|---|
{pairs}

`p` is right about exchangeable models only. It tells two models of equal bias apart when one has more different
answers, because noise adds more to its nTVD. `p_both` decides in `equivox compare`. It also asks whether the largest
part that noise may have added explains the difference. It is conservative: a difference of 10 needs a larger design
than the small one here.

### Two models within blocks

Six accents of two women and two men. Both models shift by gender; one shifts more by accent.

{compared}

### Scores of sums over clusters

Two models are equally far from the target ({totals_runs} runs per row, chance leaves
±{totals_error:.1f} points). The table says how often
`p_further` is up to 5 % and up to 1 %, and how often the interval of the difference of distances holds zero. Uneven
clusters have 1 to 29 answers, spreads that differ up to a hundredfold, and errors from an exponential distribution.

| models | clusters | clusters are | p_further ≤ .05 | ≤ .01 | interval holds 0 |
|---|---|---|---|---|---|
{totals}

Sign flips assume symmetric differences. With strongly skewed and uneven clusters p is right at 5 %, and up to two and
a half times too frequent at 1 %.

### Numbers

Means of two groups of clusters with five numbers each, of which 30 % of the variance is the cluster's
({numbers_runs} runs per row, chance leaves ±{numbers_error:.1f} points): without a difference, with one of 30 %,
and with one group three times as high. Log-normal numbers are named by the standard deviation of their logarithm;
salaries have about 0.5.

| numbers | clusters | p ≤ .05, no difference | p ≤ .05, 30 % | interval holds, no difference | 30 % | three times |
|---|---|---|---|---|---|---|
{numbers}

p keeps its level: no difference is made up. The interval holds for normal numbers and for salaries. It is too short
where numbers are strongly skewed and the groups far apart, and where few numbers far from all others carry a mean,
above all with few clusters: `low` and `high` leave such numbers out and count them. A difference of 30 % of strongly
skewed numbers is hardly ever found.

### Sides that cancel

Two groups of people are asked about several items. Each item shifts the answers of one group from one value to another,
half of the items to either side, so that over all items the groups are told the same
({hidden_runs} runs per row,
chance leaves ±{hidden_error:.1f} points). Log-normal numbers are apart
by half a standard deviation within each item where values are by 20 points.

| people a group × items × answers | values | correlation | shift | p_cluster ≤ .05 | p_items | numbers: p | p_items |
|---|---|---|---|---|---|---|---|
{cancelling}

### Ranks

Models have known distances on both sides of the target, in the uneven and skewed clusters of the table above; some
vary four times as widely as others. The table says how often the rank intervals hold the population's ranks of all
models at once ({pair_runs} runs, chance leaves ±{pair_error:.1f} points), and
how many of the pairs are told apart on average.

| models | clusters | all intervals hold | pairs told apart |
|---|---|---|---|
{ranks}

With few clusters hardly any pair is told apart. When ten models are equally far, the intervals hold in 93.5 %
with 40 such clusters: Holm's correction looks at small p, which skewed clusters give too often.

## Limits of these simulations

- Fewer than four clusters per group were not simulated. The cluster-level test stays exact (permutations are
  enumerated) but cannot reach small p. The interval rests on a covariance that is estimated from very few clusters.
- With one cluster in every group, or without clusters, the interval treats answers as independent and is too narrow
  whenever speakers differ. The result's notes say so.
- Values removed by `min_count` are removed from the truth, too: the interval is about the distribution over
  kept values.

"""


def tables(runs: int, interval_runs: int, pair_runs: int, seed: int, processes: int = 2) -> dict[str, str]:
    """Return the tables of the page by their names, each made in a process of its own, the slowest first."""
    with ProcessPoolExecutor(processes) as pool:
        made = {
            name: pool.submit(_joined, table, n, seed)
            for name, table, n in (
                ("pairs", comparison.table, pair_runs),
                ("choice", choice_table, interval_runs),
                ("ranks", comparison.ranks_table, pair_runs),
                ("nulls", null_table, runs),
                ("totals", comparison.totals_table, 3 * pair_runs),
                ("numbers", numbers.table, 10 * interval_runs),
                ("cancelling", hidden.cancelling_table, 2 * interval_runs),
                ("unlike", designs.unlike_table, 4 * interval_runs),
                ("held", designs.held_table, interval_runs),
                ("crossed", designs.crossed_table, interval_runs),
                ("compared", designs.compared_table, interval_runs),
                ("blocks", blocks_table, interval_runs),
                ("planted", planted_table, interval_runs),
            )
        }
        return {name: one.result() for name, one in made.items()}


def _joined(table: Callable[[int, int], Iterator[str]], runs: int, seed: int) -> str:
    start = time.perf_counter()
    lines = "\n".join(table(runs, seed))
    sys.stderr.write(f"{table.__name__}: {time.perf_counter() - start:.0f} s\n")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--interval-runs", type=int, default=200)
    parser.add_argument("--pair-runs", type=int, default=400)
    parser.add_argument("--thin", type=int, default=3, help="take every K-th population of the large grids")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", default=str(Path(__file__).parent / "tables.md"))
    asked = parser.parse_args()
    found = {
        "single": distance.run_all(list(distance.worlds())[:: asked.thin], asked.interval_runs),
        "joint": distance.run_all(distance.joint_worlds(), asked.interval_runs),
        "wide": distance.run_all(list(distance.worlds((0.2,)))[:: asked.thin], asked.interval_runs),
    }
    random = "\n".join(distance.random_table(max(20, asked.interval_runs // 4)))
    page = PAGE.format(
        random=random,
        runs=asked.runs,
        pair_runs=asked.pair_runs,
        totals_runs=3 * asked.pair_runs,
        pair_error=196 * np.sqrt(0.05 * 0.95 / asked.pair_runs),
        totals_error=196 * np.sqrt(0.05 * 0.95 / asked.pair_runs / 3),
        interval_runs=asked.interval_runs,
        numbers_runs=10 * asked.interval_runs,
        hidden_runs=2 * asked.interval_runs,
        hidden_error=196 * np.sqrt(0.05 * 0.95 / asked.interval_runs / 2),
        numbers_error=196 * np.sqrt(0.05 * 0.95 / asked.interval_runs / 10),
        seed=asked.seed,
        error=196 * np.sqrt(0.05 * 0.95 / asked.runs),
        **tables(asked.runs, asked.interval_runs, asked.pair_runs, asked.seed),
        **{name: "\n".join(distance.lines(own)) for name, own in found.items()},
        **{f"{name}_summary": "\n".join(distance.summary(own)) for name, own in found.items()},
    )
    if asked.output == "-":
        sys.stdout.write(page)
    else:
        Path(asked.output).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
