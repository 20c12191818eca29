"""Do the tests between models keep their level? `python -m validity.comparison` prints its tables.

nTVD: two models answer the same items, in two attributes. What each is from parity is known by construction: a share of
its answers is the group's own, and everything else comes from a distribution that a speaker has, whatever the group.

Scores of sums over clusters and ranks: each model has a known distance from the target, on either side of it; clusters
have something in common for all models, models spread differently, and where the world is uneven clusters differ in
size and spread, and errors are skewed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equivox.statistics import compare_joint_shift, compare_totals, rank_models


@dataclass(frozen=True)
class Model:
    """`shift`: the share of the group's own answers; `values`: the common ones; `words`: a prefix of them.

    With `steps` a group has no answers of its own: the first half of the common ones is more frequent in one of two
    groups, and the second half in the other, each by the same share.
    """

    shift: float
    values: int = 6
    words: str = ""
    steps: bool = False


@dataclass(frozen=True)
class World:
    """Two models on `speakers` x `responses` in two groups."""

    name: str
    a: Model
    b: Model
    speakers: int = 24
    responses: int = 30
    groups: int = 2
    uneven: bool = False
    """Speakers gave 5 to 80 answers and differ in how much they vary; the second model lacks 30 %, of some speakers."""


WORLDS = (
    World("no bias, alike", Model(0.0), Model(0.0)),
    World("both 20, alike", Model(0.2), Model(0.2)),
    World("both 20, other words", Model(0.2, words="a"), Model(0.2, words="b")),
    World("both 0, 4 and 30 values", Model(0.0, 4), Model(0.0, 30)),
    World("both 20, 4 and 30 values", Model(0.2, 4), Model(0.2, 30)),
    World("both 20, 4 and 30 other values", Model(0.2, 4, "a"), Model(0.2, 30, "b")),
    World("both 0, 4 and 30 values", Model(0.0, 4), Model(0.0, 30), 6, 30, uneven=True),
    World("both 20, 4 and 30 values", Model(0.2, 4), Model(0.2, 30), 24, 30, uneven=True),
    World("both 0, 4 and 30 values", Model(0.0, 4), Model(0.0, 30), 12, 30, groups=6, uneven=True),
    World("both 20, other words", Model(0.2, words="a"), Model(0.2, words="b"), 24, 30, groups=6, uneven=True),
    World("both 20, yes or no", Model(0.2, 2, steps=True), Model(0.2, 2, steps=True), 12, 20),
    World("both 10, yes or no", Model(0.1, 2, steps=True), Model(0.1, 2, steps=True), 24, 30),
    World("15 in 40 small steps, and 0", Model(0.15, 40, steps=True), Model(0.0, 40), 24, 20),
    World("20 and 10", Model(0.2), Model(0.1)),
    World("20 and 0", Model(0.2), Model(0.0)),
    World("40 and 20", Model(0.4), Model(0.2)),
    World("40 with 4 values, 20 with 30", Model(0.4, 4), Model(0.2, 30)),
    World("20 and 10", Model(0.2), Model(0.1), 90, 80),
)


def answers(
    model: Model, groups: list[str], codes: np.ndarray, rng: np.random.Generator, *, uneven: bool = False
) -> list[list[str]]:
    """Two answers of one speaker are correlated by about 0.02 beyond the group; unevenly, by 0.01 to 0.2."""
    even = np.full(model.values, 1.0 / model.values)
    alike = [rng.choice([4.0, 20.0, 99.0]) if uneven else 49.0 for _ in range(codes.max() + 1)]
    half = np.where(np.arange(model.values) < model.values / 2, model.shift, -model.shift) * model.steps
    group_of = dict(zip(codes.tolist(), groups, strict=True))
    bases = [even * (1 + half * (1 if int(group[1:]) % 2 else -1)) for group in group_of.values()]
    of_speaker = np.stack([rng.dirichlet(b * each) for b, each in zip(bases, alike, strict=True)]).cumsum(axis=1)
    common = (rng.random(len(codes))[:, None] > of_speaker[codes]).sum(axis=1)
    own = rng.random(len(codes)) < model.shift * (not model.steps)
    return [[f"{model.words}{g if o else c}"] for g, o, c in zip(groups, own, common, strict=True)]


def table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per world: how often each p is up to 0.05, and the interval without zero."""
    for world in WORLDS:
        rng = np.random.default_rng(seed)
        truth = 100 * (world.a.shift - world.b.shift)
        rejected, held = np.zeros(3), 0
        n = runs if world.speakers < 50 else runs // 4
        for _ in range(n):
            sizes = rng.integers(5, 81, world.speakers) if world.uneven else world.responses
            codes = np.arange(world.speakers).repeat(sizes)
            groups, clusters = [f"g{code % world.groups}" for code in codes], [f"s{code:03}" for code in codes]
            a, b = (
                {name: answers(m, groups, codes, rng, uneven=world.uneven) for name in "xy"} for m in (world.a, world.b)
            )
            if world.uneven:
                lost = rng.random(len(codes)) < rng.choice([0.0, 0.6], world.speakers)[codes]
                b = {name: [[] if gone else value for gone, value in zip(lost, b[name], strict=True)] for name in b}
            found = compare_joint_shift(a, b, groups, clusters=clusters, min_count=5, n_resamples=499, rng=rng)
            rejected += [found.p <= 0.05, found.p_distance <= 0.05, found.p_both <= 0.05]
            held += found.ci_low <= truth <= found.ci_high
        shares = " | ".join(f"{100 * share / n:.1f} %" for share in rejected)
        size = "5–80" if world.uneven else world.responses
        yield f"| {world.name} | {world.speakers} × {size} | {world.groups} | {shares} | {100 * held / n:.1f} % |"


Floats = np.ndarray


def totals(truth: Sequence[float], clusters: int, uneven: bool, rng: np.random.Generator) -> list[Floats]:
    """Return sums and sizes over clusters of models that lie `truth` from zero."""
    sizes = rng.integers(1, 30, clusters) if uneven else np.full(clusters, 8)
    spread = 0.02 + 0.3 * rng.exponential(1, clusters) if uneven else np.full(clusters, 0.2)
    common = 0.7 * rng.standard_normal(clusters) * spread
    found = []
    for distance, wide in zip(truth, rng.permutation(np.geomspace(1, 4, len(truth))), strict=True):
        error = rng.exponential(1, clusters) - 1 if uneven else rng.standard_normal(clusters)
        found.append(np.stack([(distance + common + error * spread * wide) * sizes, sizes], axis=1))
    return found


def mean(sums: Floats) -> Floats:
    """Return the score: what the clusters' sums come to, divided by their sizes."""
    return sums[..., 0] / sums[..., 1]


def totals_table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per world: how often `p_further` calls equally distant models different."""
    for truth, name in (((0.3, 0.3), "same side"), ((0.3, -0.3), "opposite sides"), ((0.0, 0.0), "both at the target")):
        for clusters in (6, 12, 40):
            for uneven in (False, True):
                rng = np.random.default_rng(seed)
                counted = np.zeros(3)
                for _ in range(runs):
                    a, b = totals(truth, clusters, uneven, rng)
                    found = compare_totals(a, b, mean, target=0.0, sizes=1, n_resamples=999, rng=rng)
                    counted += [found.p_further <= 0.05, found.p_further <= 0.01,
                                found.further_low <= 0 <= found.further_high]  # fmt: skip
                shares = " | ".join(f"{100 * share / runs:.1f} %" for share in counted)
                yield f"| {name} | {clusters} | {'uneven, skewed' if uneven else 'even'} | {shares} |"


RANKED = (
    ("4, all equally far, on both sides", (0.5, -0.5, 0.5, -0.5)),
    ("4, two equally far", (0.0, 0.0, 0.4, 1.0)),
    ("10, all equally far, on both sides", (0.4, -0.4) * 5),
    ("10, in groups of equals", (0.0, 0.0, 0.0, 0.2, -0.2, 0.4, 0.4, -0.4, 0.9, 1.0)),
)


def ranks_table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per world: how often all intervals of ranks hold the population's at once."""
    for name, truth in RANKED:
        far = np.abs(truth)
        right = [(1 + int((far < own).sum()), len(far) - int((far > own).sum())) for own in far]
        for clusters in (6, 12, 40):
            rng = np.random.default_rng(seed)
            held = told = 0
            for _ in range(runs):
                models = totals(truth, clusters, True, rng)
                distances = {str(i): abs(float(mean(own.sum(axis=0)))) for i, own in enumerate(models)}
                tests = {}
                for i, j in itertools.combinations(range(len(far)), 2):
                    found = compare_totals(models[i], models[j], mean, target=0.0, sizes=1, n_resamples=2000, rng=rng)
                    tests[str(i), str(j)] = found.further, found.p_further
                ranks = list(rank_models(distances, tests).values())
                held += all(r.low <= low and r.high >= high for r, (low, high) in zip(ranks, right, strict=True))
                told += sum(len(r.nearer_than) for r in ranks)
            yield f"| {name} | {clusters} | {100 * held / runs:.1f} % | {told / runs:.1f} of {len(tests)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    lines = (
        table(asked.runs, asked.seed),
        totals_table(3 * asked.runs, asked.seed),
        ranks_table(asked.runs, asked.seed),
    )
    for part in lines:
        for line in part:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
