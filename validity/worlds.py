"""Simulated worlds that measure the statistics engine against known truths.

A world draws samples from a population whose distance between groups is known, and asks the engine for an estimate, an
interval and a p of each. Its summary tells how far the estimates lie from the truth, how often the interval holds it
and how often p is .05 or less. Worlds are in worlds.toml, the numbers of an earlier engine in baseline.json.

`python -m validity.worlds` measures all of them (about an hour), `--subset` a telling few in minutes; both return 1
when a limit is broken. Samples have a random stream of their own, so that all engines see the same ones; another engine
replaces the three functions `measure_*`.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import functools
import json
import math
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import binom

from equivox.core.columns import EncodedLabels, EncodedValues

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BASELINE = Path(__file__).with_name("baseline.json")
MIN_COUNT = 10
RARE = 0.001  # a limit is broken where chance alone breaks it less often than this


class Measured(NamedTuple):
    """The engine's answer to one sample."""

    estimate: float
    low: float
    high: float
    p: float


class Sample(NamedTuple):
    """A truth, and a way to ask the engine."""

    truth: float
    measure: Callable[[Generator], Measured | None]


def encode_labels(codes: Ints) -> EncodedLabels:
    """Name codes so that their order stays."""
    return EncodedLabels(codes, [f"{code:04d}" for code in range(int(codes.max()) + 1)])


def encode_values(rows: Ints, codes: Ints, n_values: int, n_rows: int) -> EncodedValues:
    """Name the codes of values so that their order stays."""
    return EncodedValues(rows, codes, [f"v{code:03d}" for code in range(n_values)], n_rows)


def measure_groups(
    rows: Ints, codes: Ints, n_values: int, groups: Ints, units: Ints, blocks: Ints | None, n_rows: int,
    rng: Generator, items: Ints | None = None,
) -> Measured | None:  # fmt: skip
    """Measure how far groups lie apart; this engine needs no items."""
    from equivox.statistics import compare_groups

    found = compare_groups(
        encode_values(rows, codes, n_values, n_rows), encode_labels(groups), clusters=encode_labels(units),
        blocks=None if blocks is None else encode_labels(blocks), min_count=MIN_COUNT, n_resamples=199, rng=rng,
    )  # fmt: skip
    return None if found.undefined else Measured(found.estimate, found.low, found.high, found.p)


def measure_means(numbers: Floats, groups: Ints, units: Ints, blocks: Ints | None, rng: Generator) -> Measured | None:
    """Measure the difference of means: first minus second group, or the largest."""
    from equivox.statistics import compare_means

    within = None if blocks is None else encode_labels(blocks)
    labels, clusters = encode_labels(groups), encode_labels(units)
    found = compare_means(numbers, labels, clusters=clusters, blocks=within, n_resamples=999, rng=rng)
    return None if found.undefined else Measured(found.difference, found.low, found.high, found.p)


def measure_runs(
    codes_a: Ints, codes_b: Ints, n_values: int, groups: Ints, units: Ints, rng: Generator
) -> Measured | None:
    """Measure how much further groups lie apart in run a."""
    from equivox.statistics import compare_runs

    rows = np.arange(len(groups))
    run_a, run_b = ({"v": encode_values(rows, codes, n_values, len(rows))} for codes in (codes_a, codes_b))
    found = compare_runs(run_a, run_b, encode_labels(groups), clusters=encode_labels(units), n_resamples=499, rng=rng)
    return None if found.undefined else Measured(found.further, found.ci_low, found.ci_high, found.p)


def sample_groups(
    codes: Ints, n_values: int, groups: Ints, units: Ints, truth: float | Floats, rows: Ints | None = None,
    blocks: Ints | None = None, items: Ints | None = None,
) -> Sample:  # fmt: skip
    """Return answers as a sample; the truth is over the values kept.

    `truth` is a distance, or the population's shares, groups × values. Without `rows` each row has one answer.
    """
    kept = np.bincount(codes, minlength=n_values) >= MIN_COUNT
    if kept.sum() < 2:
        return Sample(math.nan, lambda _: None)
    truth = truth if isinstance(truth, float) else measure_distance(truth[:, kept])
    asked = (np.arange(len(codes)) if rows is None else rows, codes, n_values, groups, units, blocks, len(groups))
    return Sample(truth, lambda rng: measure_groups(*asked, rng, items=items))


def measure_distance(shares: Floats) -> float:
    """Return the nTVD of shares or counts, groups × values, in percent."""
    shares = shares / shares.sum(axis=1, keepdims=True)
    return float(50 * np.abs(shares - shares.mean(axis=0)).sum() / (len(shares) - 1))


def extend(entries: float | Sequence[float], groups: int) -> NDArray[Any]:
    """Give each group an entry; the last serves all further groups."""
    given = np.atleast_1d(entries)
    return np.append(given, np.repeat(given[-1], groups - len(given)))


def make_base(values: int, base: str) -> Floats:
    """Return the shares that all groups start from."""
    weights = 1 / np.arange(1, values + 1) if base == "zipf" else np.ones(values)
    return np.asarray(weights / weights.sum())


@functools.cache
def make_population(groups: int, values: int, base: str, shift: float, spread: str, seed: int = 3) -> Floats:
    """Return shares, groups × values, that lie `shift` (0 to 1) apart.

    `spread` tells which values shift: "one" a group, "all" (each prefers one group), or all at "random".
    """
    common = make_base(values, base)
    if spread == "random":
        direction = np.random.default_rng(seed).normal(size=(groups, values))
        near, far = 0.0, 30.0
        for _ in range(60):
            middle = (near + far) / 2
            too_near = measure_distance(common * np.exp(middle * direction)) < 100 * shift
            near, far = (middle, far) if too_near else (near, middle)
        shares = common * np.exp(near * direction)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
    value, group = np.arange(values), np.arange(groups)[:, None]
    own = common * (value % groups == group if spread == "all" else value == group % values)
    return np.asarray((1 - shift) * common + shift * own / own.sum(axis=1, keepdims=True))


def draw_units(rng: Generator, shares: Floats, correlation: float, noise: str = "dirichlet") -> Floats:
    """Draw each unit's own shares around its row of `shares`.

    Noise may also be "stuck" (a share `correlation` of the units gives one answer always) or "heavy" (each unit has a
    correlation of its own, mostly tiny).
    """
    if correlation == 0:
        return shares
    if noise == "stuck":
        own = shares.copy()
        for unit in np.flatnonzero(rng.random(len(shares)) < correlation):
            own[unit] = np.arange(shares.shape[1]) == rng.choice(shares.shape[1], p=shares[unit])
        return own
    odds: Any = (1 - correlation) / correlation
    if noise == "heavy":
        odds = 1 / np.clip(rng.beta(0.15, 0.15 * odds, size=(len(shares), 1)), 1e-4, 0.98) - 1
    own = rng.gamma(shares * odds) + 1e-300
    return np.asarray(own / own.sum(axis=1, keepdims=True))


def draw_sizes(rng: Generator, units: int, size: int, kind: str) -> Ints:
    """Draw how many answers each unit gives."""
    if kind == "even":
        return np.full(units, size)
    if kind == "lognormal":
        return np.maximum(1, np.round(size * np.exp(rng.normal(0, 0.8, units) - 0.32))).astype(np.int64)
    return np.clip(np.round(size * rng.pareto(1.1, units) + 2), 1, 400).astype(np.int64)


def draw_answers(rng: Generator, shares: Floats, sizes: Ints | int, counted: bool = False) -> tuple[Ints, Ints]:
    """Draw answers, as codes and units; `counted` ones are in order."""
    sizes = np.broadcast_to(sizes, len(shares))
    units = np.repeat(np.arange(len(shares)), sizes)
    if counted:
        counts = rng.multinomial(sizes, shares / shares.sum(axis=1, keepdims=True))
        return np.repeat(np.tile(np.arange(shares.shape[1]), len(shares)), counts.ravel()), units
    return (shares.cumsum(axis=1)[units, :-1] <= rng.random((len(units), 1))).sum(axis=1), units


def draw_nested(
    rng: Generator, groups: int, units: int | Sequence[int], size: int, values: int, base: str | Sequence[float],
    shift: float, spread: str, correlation: float | Sequence[float], *, sizes: str = "even",
    noise: str = "dirichlet", missing: Sequence[float] = (), seed: int = 3, counted: bool = True,
) -> Sample:  # fmt: skip
    """Draw units in one group each; some answers may be missing."""
    if isinstance(base, str):
        population = make_population(groups, values, base, shift, spread, seed)
    else:  # the share of yes in each group
        population = np.array([[yes, 1 - yes] for yes in extend(base, groups)])
    counts, correlations = extend(units, groups), extend(correlation, groups)
    group = np.repeat(np.arange(groups), counts)
    every = zip(population, counts, correlations, strict=True)
    own = np.vstack([draw_units(rng, np.tile(around, (count, 1)), alike, noise) for around, count, alike in every])
    number = draw_sizes(rng, len(group), size, sizes)
    if missing:
        number = rng.binomial(number, 1 - np.array(missing)[group])
    codes, unit = draw_answers(rng, own, number, counted)
    return sample_groups(codes, values, group[unit], unit, population)


draw_nested_in_turn = functools.partial(draw_nested, counted=False)  # answer by answer


def draw_withheld(rng: Generator, shift: float, given: Sequence[float]) -> Sample:
    """Draw answers, some withheld: value 0 is `given` this often."""
    population, group = make_population(2, 8, "zipf", shift, "one"), np.repeat([0, 1], 25)
    chance = np.array([[often, *(0.9,) * 7] for often in given])
    codes, units = draw_answers(rng, draw_units(rng, population[group], 0.05), 20)
    rows = np.flatnonzero(rng.random(len(codes)) < chance[group[units], codes])
    return sample_groups(codes[rows], 8, group[units], units, measure_distance(population * chance), rows)


def draw_listed(rng: Generator, shift: float, empty: Sequence[float], truth: float) -> Sample:
    """Draw lists, many `empty`, of units that list more or less."""
    population, group = make_population(2, 20, "uniform", shift, "all"), np.repeat([0, 1], 16)
    own = draw_units(rng, population[group], 0.05) + 1e-6
    own /= own.sum(axis=1, keepdims=True)
    talk, units = rng.gamma(2, 0.5, 32), np.repeat(np.arange(32), 20)
    lists: list[Ints] = []
    for unit in units:
        length = min(20, 1 + rng.poisson(1.5 * talk[unit])) if rng.random() > empty[group[unit]] else 0
        lists.append(rng.choice(20, length, replace=False, p=own[unit]) if length else np.empty(0, np.int64))
    rows = np.repeat(np.arange(len(lists)), [len(listed) for listed in lists])
    return sample_groups(np.concatenate(lists), 20, group[units], units, truth, rows)


def draw_crossed(rng: Generator, units: int, size: int, interaction: float, shift: float, groups: int = 2) -> Sample:
    """Draw units that are in all groups and answer each otherwise."""
    population, common = make_population(groups, 8, "uniform", shift, "one"), rng.dirichlet(np.full(8, 0.7), units)
    codes = []
    for shares in population:
        own = interaction * rng.dirichlet(np.full(8, 0.7), units)
        codes.append(draw_answers(rng, (1 - interaction) * (common + shares) / 2 + own, size)[0])
    unit, group = np.tile(np.repeat(np.arange(units), size), groups), np.repeat(np.arange(groups), units * size)
    truth = measure_distance((1 - interaction) * population / 2 + (1 + interaction) / 16)
    return sample_groups(np.concatenate(codes), 8, group, unit, truth)


def draw_partly_crossed(rng: Generator, nested: int, crossed: int, shift: float) -> Sample:
    """Draw `nested` units in each group, and `crossed` ones in both."""
    population = make_population(2, 8, "zipf", shift, "one")
    middle, firsts = population.mean(axis=0), (0, nested, 2 * nested, 2 * nested)
    drawn = [draw_answers(rng, draw_units(rng, np.tile(shares, (nested, 1)), 0.1), 20) for shares in population]
    both = draw_units(rng, np.tile(middle, (crossed, 1)), 0.1)
    for tilt in population / middle:
        drawn.append(draw_answers(rng, both * tilt / (both * tilt).sum(axis=1, keepdims=True), 20))
    codes = np.concatenate([codes for codes, _ in drawn])
    units = np.concatenate([units + first for (_, units), first in zip(drawn, firsts, strict=True)])
    return sample_groups(codes, 8, np.repeat([0, 1, 0, 1], [len(one) for one, _ in drawn]), units, population)


def draw_talkative(rng: Generator, talkers: Sequence[float]) -> Sample:
    """Draw units, some of which (`talkers`) say more and answer otherwise."""
    few, many = make_base(8, "zipf"), make_base(8, "zipf")[::-1]
    group, chance = np.repeat([0, 1], 20), np.array(talkers)
    talks = rng.random(40) < chance[group]
    shares, sizes = np.where(talks[:, None], many, few), np.where(talks, 80, 10)
    codes, units = draw_answers(rng, draw_units(rng, shares, 0.02), sizes)
    truth = measure_distance(np.outer(80 * chance, many) + np.outer(10 * (1 - chance), few))
    return sample_groups(codes, 8, group[units], units, truth)


def draw_blocked(
    rng: Generator, counts: Sequence[Sequence[int]], block_shift: float, shift: float, size: int
) -> Sample:
    """Draw units of two blocks, unequal in number, that answer by both."""
    group = np.repeat(np.arange(len(counts)), np.sum(counts, axis=1))
    block = np.concatenate([np.repeat([0, 1], pair) for pair in counts])
    by_group = (1 - shift) / 8 + shift * np.eye(8)[2 : 2 + len(counts)]
    population = (1 - block_shift) * by_group[:, None] + block_shift * np.eye(8)[:2]
    codes, units = draw_answers(rng, draw_units(rng, population[group, block], 0.03), size)
    truth = measure_distance(np.average(population, axis=1, weights=np.bincount(block)))
    return sample_groups(codes, 8, group[units], units, truth, blocks=block[units])


def draw_sentences(rng: Generator) -> Sample:
    """Draw units that read the same ten sentences, which groups answer otherwise."""
    own = rng.dirichlet(np.full(6, 0.7), (10, 2))
    units, items = np.repeat(np.arange(40), 20), np.tile(np.repeat(np.arange(10), 2), 40)
    codes, _ = draw_answers(rng, 0.1 + 0.4 * own[items, units // 20], 1)
    return sample_groups(codes, 6, units // 20, units, measure_distance(0.1 + 0.4 * own.mean(axis=0)), items=items)


def draw_numbers(
    rng: Generator, truth: float, counts: Sequence[int], size: int, kind: str, means: Sequence[float],
    spreads: Sequence[float] = (1,),
) -> Sample:  # fmt: skip
    """Draw numbers of units in one group each; normal units have `spreads`."""
    group = np.repeat(np.arange(len(counts)), counts)
    units, mean = np.repeat(np.arange(len(group)), size), np.array(means, dtype=float)[group]
    if kind == "yes":
        own = rng.beta(9 * mean, 9 * (1 - mean))
        numbers = (rng.random(len(units)) < own[units]).astype(float)
    elif kind == "often zero":
        own = rng.beta(1, 2, len(group))
        numbers = np.where(rng.random(len(units)) < own[units], rng.gamma(1, 3 * mean[units]), 0)
    elif kind == "skewed":
        own, rest = rng.normal(size=len(group)), rng.normal(size=len(units))
        numbers = np.exp(math.sqrt(0.3) * own[units] + math.sqrt(0.7) * rest - 0.5) * mean[units]
    else:
        own = rng.normal(size=len(group)) * extend(spreads, len(counts))[group] + mean
        numbers = own[units] + rng.normal(size=len(units))
    return Sample(truth, lambda rng: measure_means(numbers, group[units], units, None, rng))


def draw_crossed_numbers(rng: Generator, truth: float) -> Sample:
    """Draw numbers of 15 units that are in both groups."""
    level, own = rng.normal(0, 2, 15), rng.normal(0, 0.7, (2, 15))
    units, groups = np.tile(np.repeat(np.arange(15), 4), 2), np.repeat([0, 1], 60)
    numbers = level[units] + own[groups, units] + rng.normal(size=120) + truth * (groups == 0)
    return Sample(truth, lambda rng: measure_means(numbers, groups, units, None, rng))


def draw_blocked_numbers(rng: Generator, truth: float) -> Sample:
    """Draw numbers of groups that hold unequal shares of two blocks."""
    group, block, units = np.repeat([0, 1], 20), np.repeat([0, 1, 0, 1], [15, 5, 6, 14]), np.repeat(np.arange(40), 5)
    numbers = (2 * block + truth * (group == 0) + rng.normal(size=40))[units] + rng.normal(size=200)
    return Sample(truth, lambda rng: measure_means(numbers, group[units], units, block[units], rng))


def draw_runs(
    rng: Generator, groups: int, units: int, size: int, values: int, base: str, shifts: Sequence[float],
    spreads: Sequence[str], correlation: float, wordy: bool = False,
) -> Sample:  # fmt: skip
    """Draw two runs over the same units.

    Shifts and spreads are those of run b, then a. Units deviate alike in both runs, unless run a is `wordy`: then it
    has twice the values, and deviations of its own.
    """
    of_b, of_a = (make_population(groups, values, base, *chosen) for chosen in zip(shifts, spreads, strict=True))
    if wordy:
        of_b, of_a = np.hstack([of_b, 0 * of_b]), np.hstack([of_a, of_a]) / 2
    group = np.repeat(np.arange(groups), units)
    own_b, own_a = (draw_units(rng, shares[group], correlation) for shares in (of_b, of_a))
    if not wordy:
        own_a = of_a[group] * own_b / of_b[group]
        own_a /= own_a.sum(axis=1, keepdims=True)
    (codes_a, unit), (codes_b, _) = (draw_answers(rng, own, size) for own in (own_a, own_b))
    asked = (codes_a, codes_b, of_a.shape[1], group[unit], unit)
    return Sample(measure_distance(of_a) - measure_distance(of_b), lambda rng: measure_runs(*asked, rng))


@dataclass(frozen=True)
class World:
    """A population, and what is asked of an engine there."""

    name: str
    kind: str
    seed: tuple[int, ...]
    draw: Callable[..., Sample]
    arguments: tuple[Any, ...]
    level: float = 0.07  # the share of samples that may be rejected where groups do not differ
    slack: float = 0.03  # the power that may be lost against the baseline
    quick: bool = False  # whether it is in the subset


def read_worlds() -> Iterator[World]:
    """Read worlds.toml; seeds come from titles."""
    kinds = {"NUMBERS": "means", "RUNS": "runs"}
    for table, sections in tomllib.loads(Path(__file__).with_name("worlds.toml").read_text("utf-8")).items():
        own, kind = table in {"OWN", *kinds}, kinds.get(table, "groups")
        for function, rows in sections.items():
            for title, row in rows.items():
                *arguments, options = row if row and isinstance(row[-1], dict) else [*row, {}]
                marks = {name: options.pop(name) for name in ("level", "slack", "quick") if name in options}
                draw = functools.partial(globals()[function], **options)
                letters = sum(map(ord, title))
                seeds = {"OWN": (11, letters), "NUMBERS": (letters,), "RUNS": (letters,)}
                seed = seeds.get(table, (79, letters * 1000 + len(title)))
                yield World(title if own else f"{table} {title}", kind, seed, draw, tuple(arguments), **marks)


WORLDS = [*read_worlds()]


def measure_world(world: World, samples: int, seconds: float = math.inf) -> dict[str, Any]:
    """Draw samples while time lasts, and summarise the engine's answers."""
    rng, engine, begun = np.random.default_rng(world.seed), np.random.default_rng((*world.seed, 1)), time.monotonic()
    found: list[tuple[float, ...]] = []
    spent = 0.0
    while len(found) < samples and time.monotonic() - begun < seconds:
        sample = world.draw(rng, *world.arguments)
        started = time.perf_counter()
        found.append((sample.truth, *(sample.measure(engine) or (math.nan,) * 4)))
        spent += time.perf_counter() - started
    table = np.array(found, dtype=float).reshape(-1, 5)
    whole = table[~np.isnan(table).any(axis=1)]
    truths = table[:, 0][~np.isnan(table[:, 0])]
    summary = {"name": world.name, "kind": world.kind, "null": not (np.abs(truths) > 1e-6).any()}
    summary |= {"samples": len(table), "undefined": len(table) - len(whole)}
    numbers = {"seconds": spent / max(len(table), 1), "truth": truths.mean() if len(truths) else 0.0}
    if len(whole):
        truth, estimate, low, high, p = whole.T
        off, holds = estimate - truth, (low <= truth + 1e-6) & (truth <= high + 1e-6)
        numbers |= {"bias": off.mean(), "rmse": np.sqrt((off**2).mean()), "coverage": 100 * holds.mean()}
        numbers |= {"width": np.median(high - low), "found": 100 * (p <= 0.05 + 1e-12).mean()}
    return summary | {name: round(float(number), 4) for name, number in numbers.items()}


def read_baseline() -> dict[str, dict[str, Any]]:
    """Return the summaries of an earlier engine by name, if any."""
    return {row["name"]: row for row in json.loads(BASELINE.read_text())} if BASELINE.exists() else {}


def check_limits(results: Sequence[dict[str, Any]], samples: int) -> list[str]:
    """Return a line for each limit broken by more than chance."""
    worlds, baseline, broken = {world.name: world for world in WORLDS}, read_baseline(), []
    for row in results:
        world, earlier = worlds[row["name"]], baseline.get(row["name"], {})
        drawn, n = row["samples"], row["samples"] - row["undefined"]
        held, found = (round(row.get(name, 0) * n / 100) for name in ("coverage", "found"))
        refused = earlier["undefined"] / earlier["samples"] if earlier else 1.0
        least, power = min(0.93, earlier.get("coverage", 100) / 100), earlier.get("found", 0) / 100 - world.slack
        limits = [
            (float(drawn >= samples), f"{drawn} of {samples} samples"),
            (binom.sf(drawn - n - 1, drawn, min(1, refused + 0.02)), f"{drawn - n} undefined, {refused:.1%} before"),
            (binom.cdf(held, n, least), f"the interval holds in {held} of {n} samples, limit {least:.1%}"),
            (binom.sf(found - 1, n, world.level), f"p ≤ .05 in {found} of {n} samples, at most {world.level:.0%}")
            if row["null"]
            else (binom.cdf(found, n, max(0, power)), f"p ≤ .05 in {found} of {n} samples, at least {power:.1%}"),
        ]
        broken += [f"{world.name}: {text}" for chance, text in limits if chance < RARE]
    return broken


def describe_world(row: dict[str, Any], earlier: dict[str, Any]) -> str:
    """Return a line on a world, with the baseline in brackets."""
    cells = [f"{row['name'][:70]:70} n {row['samples']:3} undefined {row['undefined']:3} truth {row['truth']:5.1f}"]
    labels = {"bias": "bias", "rmse": "rmse", "coverage": "holds", "width": "width", "found": "p ≤ .05"}
    either = {name: [each.get(name, math.nan) for each in (row, earlier)] for name in [*labels, "seconds"]}
    cells += ["{} {:.2f} ({:.2f})".format(label, *either[name]) for name, label in labels.items()]
    return " | ".join([*cells, "{:.3f} s ({:.3f})".format(*either["seconds"])])


def main() -> int:
    """Measure, print and check worlds; return 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, help="samples a world: 400, or 100 of the subset")
    parser.add_argument("--only", default="", metavar="PREFIX,PREFIX", help="worlds whose names begin so")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--subset", action="store_true", help="a few telling worlds")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="where summaries go")
    given = parser.parse_args()
    samples, prefixes = given.samples or (100 if given.subset else 400), tuple(given.only.split(","))
    chosen = [world for world in WORLDS if world.name.startswith(prefixes) and (world.quick or not given.subset)]
    baseline, results = read_baseline(), []
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in pool.map(functools.partial(measure_world, samples=samples), chosen):
            print(describe_world(row, baseline.get(row["name"], {})), flush=True)
            results.append(row)
            if given.output:
                given.output.write_text(json.dumps(results, indent=1) + "\n")
    broken = check_limits(results, samples)
    print(*broken, sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
