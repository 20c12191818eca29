"""Do the tests between two models keep their level? `python -m benchmarks.comparison` prints the table of validity.md.

Two models answer the same items, in two attributes. What each is from parity is known by construction: a share of its
answers is the group's own, and everything else comes from a distribution that a speaker has, whatever the group.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equivox.statistics import compare_joint_shift


@dataclass(frozen=True)
class Model:
    """`shift`: the share of the group's own answers; `values`: the common ones; `words`: a prefix of them."""

    shift: float
    values: int = 6
    words: str = ""


@dataclass(frozen=True)
class World:
    """Two models on `speakers` x `responses` in two groups."""

    name: str
    a: Model
    b: Model
    speakers: int = 24
    responses: int = 30


WORLDS = (
    World("no bias, alike", Model(0.0), Model(0.0)),
    World("both 20, alike", Model(0.2), Model(0.2)),
    World("both 20, other words", Model(0.2, words="a"), Model(0.2, words="b")),
    World("both 0, 4 and 30 values", Model(0.0, 4), Model(0.0, 30)),
    World("both 20, 4 and 30 values", Model(0.2, 4), Model(0.2, 30)),
    World("both 20, 4 and 30 other values", Model(0.2, 4, "a"), Model(0.2, 30, "b")),
    World("20 and 10", Model(0.2), Model(0.1)),
    World("20 and 0", Model(0.2), Model(0.0)),
    World("40 and 20", Model(0.4), Model(0.2)),
    World("40 with 4 values, 20 with 30", Model(0.4, 4), Model(0.2, 30)),
    World("20 and 10", Model(0.2), Model(0.1), 90, 80),
)


def answers(model: Model, groups: list[str], codes: np.ndarray, rng: np.random.Generator) -> list[list[str]]:
    """Two answers of one speaker are correlated by about 0.02 beyond the group."""
    even = np.full(model.values, 49.0 / model.values)
    of_speaker = np.stack([rng.dirichlet(even) for _ in range(codes.max() + 1)]).cumsum(axis=1)
    common = (rng.random(len(codes))[:, None] > of_speaker[codes]).sum(axis=1)
    own = rng.random(len(codes)) < model.shift
    return [[f"{model.words}{g if o else c}"] for g, o, c in zip(groups, own, common, strict=True)]


def table(runs: int, seed: int) -> Iterator[str]:
    """Yield one line per world: how often each p is up to 0.05, and the interval without zero."""
    for world in WORLDS:
        rng = np.random.default_rng(seed)
        codes = np.arange(world.speakers).repeat(world.responses)
        groups, clusters = [f"g{code % 2}" for code in codes], [f"s{code:03}" for code in codes]
        truth = 100 * (world.a.shift - world.b.shift)
        rejected, held = np.zeros(3), 0
        n = runs if world.speakers < 50 else runs // 4
        for _ in range(n):
            a, b = ({name: answers(m, groups, codes, rng) for name in "xy"} for m in (world.a, world.b))
            found = compare_joint_shift(a, b, groups, clusters=clusters, min_count=5, n_resamples=499, rng=rng)
            rejected += [found.p <= 0.05, found.p_distance <= 0.05, found.p_both <= 0.05]
            held += found.ci_low <= truth <= found.ci_high
        shares = " | ".join(f"{100 * share / n:.1f} %" for share in rejected)
        yield f"| {world.name} | {world.speakers} × {world.responses} | {shares} | {100 * held / n:.1f} % |"


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
