"""Tables of validity on designs: unequal blocks, units in every group, groups whose speakers differ unlike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equivox.statistics import compare_joint_shift, distribution_shift
from equivox.statistics.distance import ntvd_of_shares
from equivox.statistics.results import DistributionShift
from validity.distance import of_clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_LABELLINGS = 499


class Tally:
    """Counts over runs: mean estimate, how often the interval holds the truth, p ≤ .05, and interval against star."""

    def __init__(self, truth: float) -> None:
        self.truth = truth
        self.seen: list[tuple[float, float, float, float, bool]] = []

    def add(self, found: DistributionShift) -> None:
        """Count one sample."""
        star = found.p_cluster <= 0.05 + 1e-12
        self.seen.append((found.estimate, found.ci_low, found.ci_high, star, star != (found.ci_low > 0)))

    def cells(self) -> str:
        """Return the cells of a table's row."""
        estimate, low, high, star, against = np.array(self.seen, dtype=float).T
        holds = (low <= self.truth + 1e-9) & (self.truth <= high + 1e-9)
        shares = [f"{100 * share.mean():.1f} %" for share in (holds, star, against)]
        return f"{self.truth:.1f} | {estimate.mean():.1f} | {' | '.join(shares)} |"


def answered(shares: Floats, correlation: float, responses: int, rng: np.random.Generator) -> Ints:
    """Draw the answers of speakers who differ by `correlation` around their row of `shares`: K · responses codes."""
    own = of_clusters(shares, correlation, rng)
    return np.concatenate([rng.choice(shares.shape[1], responses, p=row) for row in own])


UNEQUAL = {
    "10/10, 10/10, 10/10": ((10, 10), (10, 10), (10, 10)),
    "16/4, 4/16, 10/10": ((16, 4), (4, 16), (10, 10)),
    "3/1, 1/3, 2/2": ((3, 1), (1, 3), (2, 2)),
}


def held_table(runs: int, seed: int) -> Iterator[str]:
    """Accents that hold women and men in unequal numbers: what the accent does is known, whatever the gender does."""
    yield "| women/men | gender shift | accent shift | truth | estimate | holds it | p ≤ .05 | star against interval |"
    yield "|---|---|---|---|---|---|---|---|"
    for place, (name, women_and_men) in enumerate(UNEQUAL.items()):
        group = np.repeat(np.arange(3), [sum(both) for both in women_and_men])
        gender = np.concatenate([np.repeat([0, 1], both) for both in women_and_men])
        for gender_shift, accent_shift in ((0.4, 0.0), (0.4, 0.15), (0.2, 0.15)):
            rng = np.random.default_rng([seed, 8, place, round(100 * gender_shift), round(100 * accent_shift)])
            shares = np.full((len(group), 10), (1 - gender_shift) * (1 - accent_shift) / 10)
            shares[np.arange(len(group)), gender] += gender_shift
            shares[np.arange(len(group)), 2 + group] += (1 - gender_shift) * accent_shift
            tally = Tally(100 * (1 - gender_shift) * accent_shift)
            speaker = np.repeat(np.arange(len(group)), 30)
            for _ in range(runs):
                tally.add(
                    distribution_shift(
                        answered(shares, 0.02, 30, rng),
                        group[speaker],
                        clusters=speaker,
                        blocks=gender[speaker],
                        min_count=2,
                        n_resamples=N_LABELLINGS,
                        rng=rng,
                    )
                )
            yield f"| {name} | {100 * gender_shift:g} | {100 * accent_shift:g} | {tally.cells()}"


def crossed_table(runs: int, seed: int) -> Iterator[str]:
    """One item in both groups: found within items, and as if the items' two sides were other items."""
    yield (
        "| items × answers a group | effect | truth | estimate | holds it | p ≤ .05 | star against interval |"
        " p ≤ .05 without pairs |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for items, answers in ((24, 4), (60, 1)):
        unit = np.repeat(np.arange(items), 2 * answers)
        group = np.tile(np.repeat([0, 1], answers), items)
        for effect in (0.0, 0.6, 1.2):
            rng = np.random.default_rng([seed, 9, items, round(10 * effect)])
            # Yes or no; how often yes is said differs widely between items (a standard deviation of 2 in log odds).
            often = np.random.default_rng(seed).normal(0, 2, 100_000)
            truth = 100 * float((_odds(often + effect) - _odds(often)).mean())
            tally, unpaired = Tally(truth), 0
            for _ in range(runs):
                own = rng.normal(0, 2, items)[unit] + effect * group
                said = (rng.random(len(unit)) < _odds(own)).astype(np.int64)
                tally.add(
                    distribution_shift(said, group, clusters=unit, min_count=2, n_resamples=N_LABELLINGS, rng=rng)
                )
                apart = distribution_shift(
                    said, group, clusters=2 * unit + group, min_count=2, n_resamples=N_LABELLINGS, rng=rng
                )
                unpaired += apart.p_cluster <= 0.05 + 1e-12
            yield f"| {items} × {answers} | {effect:g} | {tally.cells()} {100 * unpaired / runs:.1f} % |"


def _odds(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)), dtype=np.float64)


Unlike = tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]
UNLIKE: dict[str, Unlike] = {
    "12 speakers who differ widely, 60 who hardly do": ((12, 60), (0.2, 0.02), (0, 0)),
    "12 speakers who hardly differ, 60 who do widely": ((12, 60), (0.02, 0.2), (0, 0)),
    "61, 22 and 8 speakers": ((61, 22, 8), (0.02, 0.05, 0.1), (0, 0, 0)),
    "30 and 30 speakers": ((30, 30), (0.1, 0.02), (0, 0)),
    "20 and 29 speakers": ((20, 29), (0.3, 0.01), (0, 0)),
    "14, 20 and 20 speakers": ((14, 20, 20), (0.4, 0.02, 0.02), (0, 0, 0)),
    "30 and 45 speakers": ((30, 45), (0.1, 0.02), (0, 0)),
    "five of 8 and one of 11 speakers": ((8,) * 5 + (11,), (0.4,) + (0.02,) * 5, (0,) * 6),
    "15 and 15, 10 and 75 % of answers missing": ((15, 15), (0, 0), (0.1, 0.75)),
    "15 and 15, 10 and 75 % missing, speakers differ": ((15, 15), (0.02, 0.02), (0.1, 0.75)),
    "all equal": ((12, 12), (0.02, 0.02), (0, 0)),
}


def unlike_table(runs: int, seed: int) -> Iterator[str]:
    """Share of runs without an effect in which permutations alone and the test reject; and with a shift of 15."""
    yield (
        "| groups | correlation in each | permutations alone ≤ .05 | p_cluster ≤ .05 | star against interval |"
        " shift of 15: permutations alone | p_cluster |"
    )
    yield "|---|---|---|---|---|---|---|"
    for place, (name, (speakers, correlations, missing)) in enumerate(UNLIKE.items()):
        rng = np.random.default_rng([seed, 4, place])
        group = np.repeat(np.arange(len(speakers)), speakers)
        speaker = np.repeat(np.arange(len(group)), 50)
        found = np.zeros((2, 3))
        for has_shift, shift in enumerate((0.0, 0.15)):
            moved = (1 - shift) / 8 + shift * np.eye(8)[: len(speakers)]
            for _ in range(runs):
                own = [of_clusters(moved[[g] * n], correlations[g], rng) for g, n in enumerate(speakers)]
                codes = np.concatenate([rng.choice(8, 50, p=row) for row in np.concatenate(own)])
                kept = rng.random(len(codes)) >= np.array(missing)[group[speaker]]
                one = distribution_shift(
                    codes[kept],
                    group[speaker][kept],
                    clusters=speaker[kept],
                    min_count=2,
                    n_resamples=N_LABELLINGS,
                    rng=rng,
                )
                plain = (1 + (one.null_cluster >= one.ntvd - 1e-9).sum()) / (1 + len(one.null_cluster))
                star = one.p_cluster <= 0.05 + 1e-12
                found[has_shift] += [plain <= 0.05 + 1e-12, star, star != (one.ci_low > 0)]
        shares = [f"{100 * share / runs:.1f} %" for share in (*found[0], *found[1, :2])]
        yield f"| {name} | {', '.join(f'{r:g}' for r in correlations)} | {' | '.join(shares)} |"


def compared_table(runs: int, seed: int) -> Iterator[str]:
    """Two models on four speakers of each of six accents, two women and two men: the difference of accent shifts."""
    yield "| gender shift of both | true difference | estimate | interval holds it | found |"
    yield "|---|---|---|---|---|"
    group, gender = np.arange(24) // 4, np.arange(24) % 2
    speaker = np.repeat(np.arange(24), 60)
    for gender_shift in (0.0, 0.2, 0.4):
        rng = np.random.default_rng([seed, 10, round(100 * gender_shift)])
        models = []
        for accent_shift in (0.3, 0.1):
            own = (1 - accent_shift) / 12 + accent_shift * np.eye(12)[2 + group]
            models.append((1 - gender_shift) * own + gender_shift * np.eye(12)[gender])
        truth = _distance(models[0], group) - _distance(models[1], group)
        found = []
        for _ in range(runs):
            answers = [answered(shares, 0.01, 60, rng) for shares in models]
            one = compare_joint_shift(
                *({"answers": own} for own in answers),
                group[speaker],
                clusters=speaker,
                blocks=gender[speaker],
                n_resamples=N_LABELLINGS,
                rng=rng,
            )
            found.append((one.estimate, one.ci_low <= truth <= one.ci_high, one.p_both <= 0.05 + 1e-12))
        estimate, holds, star = np.array(found, dtype=float).mean(axis=0)
        yield f"| {100 * gender_shift:g} | {truth:.1f} | {estimate:.1f} | {100 * holds:.0f} % | {100 * star:.0f} % |"


def _distance(shares: Floats, group: Ints) -> float:
    means = np.stack([shares[group == code].mean(axis=0) for code in np.unique(group)])
    return float(ntvd_of_shares(means[None])[0])
