"""Differences within items whose sides cancel over all of them: by hand, and under no difference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from seeded import generator

from equivox.core.notes import Note, NoteCode
from equivox.statistics import distribution_shift, group_means

PERSON = np.arange(8).repeat(4)
WOMAN = PERSON < 4
NURSE = np.tile([True, True, False, False], 8)
JOB = np.where(NURSE, "nurse", "pilot")
# Of the 70 ways to deal 4 + 4 people, the two that part women from men are the furthest within jobs.
FURTHEST = pytest.approx(2 / 70)


def test_values_whose_sides_cancel() -> None:
    # Women are taken as nurses and not as pilots, men the other way round: over both jobs everybody is as often taken.
    taken = np.where(WOMAN == NURSE, "taken", "left")
    found = distribution_shift(taken, WOMAN, clusters=PERSON, items=JOB, min_count=1, rng=generator())
    assert (found.ntvd, found.p_cluster, found.p_items) == (0, 1, FURTHEST)
    assert Note(NoteCode.WITHIN_ITEMS, {"p": FURTHEST}) in found.evidence["notes"]
    # Strata are items where there are none: here each person is in both.
    found = distribution_shift(taken, WOMAN, clusters=PERSON, strata=JOB, min_count=1, rng=generator())
    assert found.p_items == FURTHEST
    # Nothing is compared within one item, nor within items of which a group has one answer each.
    for items in (None, np.zeros(32), np.arange(32) % 16):
        found = distribution_shift(taken, WOMAN, clusters=PERSON, items=items, min_count=1, rng=generator())
        assert np.isnan(found.p_items)


def test_who_is_asked_more_often_about_an_item_does_not_differ_within_it() -> None:
    # Every nurse is taken and no pilot is. Women are asked about three nurses and a pilot, men the other way round.
    nurse = np.where(WOMAN, np.arange(32) % 4 > 0, np.arange(32) % 4 == 0)
    design = {"clusters": PERSON, "items": nurse, "rng": generator()}
    assert distribution_shift(np.where(nurse, "taken", "left"), WOMAN, min_count=1, **design).p_items == 1
    assert group_means(np.where(nurse, 9.0, 5.0), WOMAN, **design).p_items == 1
    # Held in two blocks that are told otherwise, of which one has three women and a man: nobody differs within a block.
    block = np.isin(PERSON, [0, 1, 2, 4])
    told = np.where(block == NURSE, "taken", "left")
    found = distribution_shift(told, WOMAN, clusters=PERSON, items=JOB, blocks=block, min_count=1, rng=generator())
    assert found.p_items == 1


def test_nothing_is_swapped_between_items_that_are_units() -> None:
    # Each letter was sent four times under both names, and always taken under one: a swap turns its side alone.
    letter, woman = np.arange(12).repeat(8), np.tile(np.arange(2).repeat(4), 12)
    taken = (woman == letter % 2).astype(float)
    design = {"clusters": letter, "items": letter, "rng": generator()}
    assert np.isnan(distribution_shift(taken, woman, min_count=1, **design).p_items)
    assert np.isnan(group_means(taken, woman, **design).p_items)


def test_numbers_whose_sides_cancel() -> None:
    # Women are offered 2 more as nurses and 200 less as pilots, who earn a hundred times as much; people differ by 40.
    level = np.where(NURSE, 1, 100)
    offered = level * (50 + PERSON % 4 + np.where(WOMAN == NURSE, 1, -1))
    found = group_means(offered, WOMAN, clusters=PERSON, items=JOB, rng=generator())
    assert found.p > 0.05 and found.p_items == FURTHEST
    # What a group has in all items is no difference whose sides cancel; it is left to the first test.
    found = group_means(level * (50 + 4 * WOMAN), WOMAN, clusters=PERSON, items=JOB, rng=generator())
    assert found.p_items > 0.05
    assert np.isnan(group_means(offered, WOMAN, clusters=PERSON, rng=generator()).p_items)


def test_the_level_of_an_item_is_no_difference_within_it() -> None:
    # Groups differ as pilots alone, in numbers that vary as much as those of nurses.
    offered = generator().standard_normal(32) + np.where(NURSE, 0, np.where(WOMAN, 1, -1))

    def p_items(numbers: np.ndarray) -> float:
        return group_means(numbers, WOMAN, clusters=PERSON, items=JOB, rng=generator()).p_items

    assert p_items(offered) == p_items(offered + np.where(NURSE, 0, 500)) < 1


def test_numbers_by_hand_where_an_item_has_fewer_answers() -> None:
    # Everybody is asked about three nurses and a pilot; each job counts alike.
    job = np.tile(["nurse", "nurse", "nurse", "pilot"], 8)
    offered = generator().standard_normal(32) + np.where((job == "nurse") == WOMAN, 0.3, -0.3)
    beyond = np.zeros(32)
    for one in ("nurse", "pilot"):
        own = offered[job == one]
        beyond[job == one] = (own - own.mean()) / own.std()
    beyond -= np.array([beyond[person == PERSON].mean() for person in PERSON])

    def between(women: tuple[int, ...]) -> float:
        whose = np.isin(PERSON, women)
        cells = [(whose == side) & (job == one) for side in (True, False) for one in ("nurse", "pilot")]
        return sum(float(beyond[cell].sum()) ** 2 / int(cell.sum()) for cell in cells)

    every = np.array([between(women) for women in itertools.combinations(range(8), 4)])
    found = group_means(offered, WOMAN, clusters=PERSON, items=job, rng=generator())
    assert found.p_items == pytest.approx((every >= between((0, 1, 2, 3)) - 1e-9).mean()) and found.p_items < 0.9


def test_sides_that_cancel_over_blocks() -> None:
    # Of twelve people, six nurses and six pilots, women are taken as nurses and men as pilots. Blocks hold the jobs
    # equal, so that nothing differs on average. Of 20 x 20 ways to deal them, two times two are the furthest.
    person = np.arange(12).repeat(4)
    woman, nurse = person % 2 == 0, person < 6
    design = {"clusters": person, "blocks": np.where(nurse, "nurse", "pilot"), "rng": generator()}
    found = distribution_shift(np.where(woman == nurse, "taken", "left"), woman, min_count=1, **design)
    assert (found.ntvd, found.p_items) == (0, pytest.approx(4 / 400))
    numbers = group_means(50.0 + person // 2 + np.where(woman == nurse, 9, -9), woman, **design)
    assert numbers.difference == pytest.approx(0) and numbers.p_items == pytest.approx(4 / 400)
    # Beside items, the smaller of two p-values counts twice.
    found = distribution_shift(
        np.where(woman == nurse, "taken", "left"), woman, items=np.arange(48) % 2, min_count=1, **design
    )
    assert found.p_items == pytest.approx(8 / 400)


def test_units_in_every_group_are_swapped_within_themselves() -> None:
    # Each of ten letters, for one of two jobs, was sent under both names. Of the 2^10 swaps, four set the groups as far
    # apart within jobs: none, all, and those of the letters of one job.
    letter = np.arange(10).repeat(4)
    woman, nurse = np.tile([True, True, False, False], 10), letter < 5
    offered = 50.0 + 7 * letter + np.where(woman == nurse, 1, -1)
    found = group_means(offered, woman, clusters=letter, items=nurse, rng=generator())
    assert found.difference == pytest.approx(0)
    assert found.p_items == pytest.approx(4 / 2**10, abs=0.004)


@pytest.mark.parametrize("numbers", [False, True])
def test_people_who_are_treated_alike_seldom_differ_within_items(numbers: bool) -> None:
    # Items differ widely in their answers, people a little; 9 items of 24 people, of whom half are women.
    rng, p = generator(8), []
    person, item = np.arange(24).repeat(9), np.tile(np.arange(9), 24)
    design = {"clusters": person, "items": item, "n_resamples": 99, "rng": rng}
    for _ in range(200):
        if numbers:
            values = rng.lognormal(10, 1, size=9)[item] * np.exp(rng.normal(size=24)[person] + rng.normal(size=216))
            p.append(group_means(values, person % 2, **design).p_items)
        else:
            shares = rng.dirichlet(np.full(4, 0.5), size=9)[item] * rng.gamma(5, size=(24, 4))[person]
            codes = (rng.random(216) * shares.sum(axis=1) > shares.cumsum(axis=1).T).sum(axis=0)
            p.append(distribution_shift(codes, person % 2, min_count=1, **design).p_items)
    # Binomial(200, 0.05): 99.9 % lie at 21 or below.
    assert 1 <= sum(own <= 0.05 for own in p) <= 21
