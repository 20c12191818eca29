"""What a design holds equal is held equal in the estimate, the interval and the test alike."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import distribution_shift, inputs, joint_shift
from equivox.statistics.distance import ntvd_of_shares
from equivox.statistics.encode import Answers, encode_design, encode_values, standard
from equivox.statistics.evidence import draw_evidence
from equivox.statistics.noise import noise_over_clusters
from equivox.statistics.nulls import null_over_clusters


def drawn(shares, rng, correlation=0.02):
    """Draw each row's own shares, so that answers of one speaker are alike."""
    found = rng.gamma(shares * (1 - correlation) / correlation) + 1e-300
    return found / found.sum(axis=1, keepdims=True)


def accents(women_and_men, gender_shift, accent_shift, seed, responses=30):
    """Speakers of accents that hold women and men in unequal numbers, who answer unlike by gender and by accent."""
    rng = generator(seed)
    group = np.repeat(np.arange(len(women_and_men)), [sum(both) for both in women_and_men])
    gender = np.concatenate([np.repeat([0, 1], both) for both in women_and_men])
    shares = np.full((len(group), 10), (1 - gender_shift) * (1 - accent_shift) / 10)
    shares[np.arange(len(group)), gender] += gender_shift
    shares[np.arange(len(group)), 2 + group % 8] += (1 - gender_shift) * accent_shift
    codes = np.concatenate([rng.choice(10, responses, p=row) for row in drawn(shares, rng)])
    speaker = np.repeat(np.arange(len(group)), responses)
    return distribution_shift(
        codes, group[speaker], clusters=speaker, blocks=gender[speaker], n_resamples=199, min_count=2, rng=rng
    )


UNEQUAL = [(16, 4), (4, 16), (10, 10)]


@pytest.mark.parametrize("crossed", [True, False])
def test_strata_that_clusters_span_in_unequal_numbers_are_told(crossed):
    # Each of a's clusters has 3 rows in x and 1 in y, each of b's 1 and 3: half of the rows would have to move.
    rows = [(g, f"{'' if crossed else g}{unit}", s) for g, own in (("a", "xxxy"), ("b", "xyyy")) for unit in range(3)
            for s in own]  # fmt: skip
    groups, clusters, strata = zip(*rows, strict=True)
    told = "strata are not held equal, because clusters span them: 50 % of a are in other strata than b"
    assert any(note.startswith(told) for note in encode_design(groups, clusters, strata).notes)
    # As many of each, in another order, and strata that hold whole clusters are told nothing of.
    alike = ["xy"[row % 2] for row in range(len(rows))]
    whole = [cluster[-1] for cluster in clusters]
    for held in (alike, whole):
        assert not any("not held equal" in note for note in encode_design(groups, clusters, held).notes)


def test_weights_by_hand():
    # Group a holds 3 answers of stratum x and 1 of y, group b 1 and 3: every stratum has half of all answers, so that
    # the one cluster of a in y counts twice of its 1, and those in x two thirds.
    counts = np.array([[2, 0], [1, 0], [0, 1], [1, 0], [0, 3]])
    found = standard(counts, np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), [slice(0, 2)], 2)
    assert found.weights[:, 0] == pytest.approx([2 / 3, 2 / 3, 2, 2, 2 / 3])
    assert not found.balanced
    assert found.common.all()


def test_a_stratum_without_a_group_counts_for_none():
    counts = np.array([[2, 1], [1, 1], [3, 3]])
    found = standard(counts, np.array([0, 1, 0]), np.array([0, 0, 1]), [slice(0, 2)], 2)
    assert found.common.tolist() == [[True], [False]]
    # Of the stratum that counts each group has all of its own, as it is; dealt to either group, what a cluster has
    # beyond the mean counts by the stratum's 5 / 2 answers a cluster. The other stratum counts for nobody.
    assert found.weights[:, 0] == pytest.approx([1, 1, 0])
    assert found.deals[:, 0] == pytest.approx(np.array([[2 / 5, 2 / 5], [2 / 5, 2 / 5], [0, 0]]))
    codes, group, speaker = [0, 1] * 6, np.repeat([0, 1, 0], 4), np.repeat([0, 1, 2], 4)
    one = distribution_shift(
        codes, group, clusters=speaker, blocks=group * 0 + speaker // 2, min_count=1, rng=generator()
    )
    assert any("1 of 3 clusters are in strata or blocks without all groups" in note for note in one.notes)


def test_a_stratum_without_any_answer_to_a_question_is_no_imbalance():
    # Nobody in the second stratum answers the second question; the first has as many answers of each group.
    counts = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]])
    found = standard(counts, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), [slice(0, 2), slice(2, 4)], 2)
    assert found.common.all() and found.balanced


def test_as_many_units_in_one_group_as_in_all_are_one_design_and_more_are_two():
    groups, units = [*"ababab"], [*"uuvvwx"]
    assert encode_design(groups, units, None).crossed
    with pytest.raises(UsageError, match="of 5, 2 in 2, 3 in 1 of 2 groups"):
        encode_design([*groups, "a"], [*units, "y"], None)


def test_without_common_support_nothing_is_compared():
    codes, group = [0, 1] * 8, np.repeat([0, 1], 8)
    one = distribution_shift(codes, group, clusters=np.repeat(range(4), 4), blocks=group, min_count=1, rng=generator())
    assert one.undefined == "no stratum or block has usable responses of all 2 groups: nothing to compare"


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_equal_mixes_need_no_weights(seed):
    rng = generator(seed)
    counts = np.repeat(rng.multinomial(6, np.full(3, 1 / 3), size=1), 12, axis=0)
    held = np.tile([0, 0, 1], 4)
    assert standard(counts, np.repeat([0, 1], 6), held, [slice(0, 3)], 2).balanced


def test_gender_in_unequal_numbers_is_no_accent():
    # Women and men differ by 40 points and accents by nothing: 21.6 and 13.0 points were seen here without weights.
    found = [accents(UNEQUAL, 0.4, 0.0, seed) for seed in range(8)]
    assert np.mean([one.estimate for one in found]) < 4
    assert min(one.ntvd for one in found) > 10
    assert sum(one.p_cluster <= 0.05 for one in found) <= 1


def test_an_accent_is_found_beside_gender_in_unequal_numbers():
    # Each accent moves 15 % of the 60 % of answers that gender leaves: a true distance of 9.
    found = [accents(UNEQUAL, 0.4, 0.15, seed) for seed in range(8)]
    assert np.mean([one.estimate for one in found]) == pytest.approx(9, abs=1.5)
    assert sum(one.ci_low <= 9 <= one.ci_high for one in found) >= 7
    assert sum(one.p_cluster <= 0.05 for one in found) >= 7


def test_one_speaker_of_each_group_in_blocks_of_both_leaves_one_degree_of_freedom():
    # The second speaker of each group has a block of his own, where there is nobody to compare him with.
    speaker = np.arange(4).repeat(10)
    codes, group, block = generator().integers(0, 3, 40), speaker % 2, np.array([0, 0, 1, 2])[speaker]
    values = encode_values(inputs.values(codes, "values"), 1)
    evidence = draw_evidence({"x": values}, encode_design(group, speaker, None, block), 99, generator())
    assert evidence.model.degrees == (1.0,)
    found = distribution_shift(codes, group, clusters=speaker, blocks=block, min_count=1, rng=generator())
    assert 0 == found.ci_low < found.ci_high <= 100 and found.p_cluster == 1
    assert any("every group has one cluster" in note for note in found.notes)
    assert any("2 of 4 clusters are in strata or blocks without all groups" in note for note in found.notes)


def test_a_lone_speaker_of_a_block_borrows_noise():
    # Three women and one man, and the reverse: a lone speaker shows no noise, which was taken for none.
    counts = [(3, 1), (1, 3), (2, 2), (2, 2), (3, 1), (1, 3)]
    found = [accents(counts, 0.4, 0.0, seed, responses=60) for seed in range(8)]
    assert np.mean([one.estimate for one in found]) < 5
    assert sum(one.p_cluster <= 0.05 for one in found) <= 1
    shifted = [accents(counts, 0.4, 0.2, seed, responses=60) for seed in range(8)]
    assert np.mean([one.estimate for one in shifted]) == pytest.approx(12, abs=2.5)
    assert sum(one.p_cluster <= 0.05 for one in shifted) >= 6


def test_strata_that_hold_whole_speakers_are_no_noise():
    # The same column as strata and as blocks says the same.
    rng = generator(3)
    group, kind = np.arange(40) % 2, np.arange(40) // 2 % 2
    shares = np.where(kind[:, None] == 0, [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1])
    shares = 0.8 * shares + 0.2 * np.eye(4)[2 + group]
    codes = np.concatenate([rng.choice(4, 20, p=row) for row in drawn(shares, rng)])
    speaker = np.repeat(np.arange(40), 20)
    both = [
        distribution_shift(codes, group[speaker], clusters=speaker, rng=generator(5), **{held: kind[speaker]})
        for held in ("strata", "blocks")
    ]
    assert both[0].ci_low > 0
    assert (both[0].estimate, both[0].ci_low, both[0].ci_high) == pytest.approx(
        (both[1].estimate, both[1].ci_low, both[1].ci_high)
    )


def by_hand(counts, labels, stratum, n_groups):
    """Return the nTVD of what clusters have beyond the mean of their stratum, dealt to `labels`."""
    sizes = counts.sum(axis=1)
    found = np.zeros((n_groups, counts.shape[1]))
    for code in np.unique(stratum):
        mine = stratum == code
        share = counts[mine].sum(axis=0) / counts[mine].sum()
        for group in range(n_groups):
            own = mine & (labels == group)
            beyond = (counts[own] - sizes[own, None] * share).sum(axis=0)
            found[group] += sizes[mine].sum() / sizes.sum() * beyond / (own.sum() * sizes[mine].mean())
    return float(ntvd_of_shares(found[None])[0])


@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_null_within_strata_against_every_permutation_by_hand(n_groups):
    rng = generator(n_groups)
    sizes = [[2, 1, 1], [1, 2, 1]] if n_groups == 3 else [[3, 1], [1, 2]]
    group = np.concatenate([np.repeat(range(n_groups), row) for row in sizes])
    stratum = np.repeat([0, 1], [sum(row) for row in sizes])
    counts = rng.multinomial(9, [0.5, 0.3, 0.2], size=len(group)) + rng.integers(0, 3, size=(len(group), 3))
    found = standard(counts, group, stratum, [slice(0, 3)], n_groups)
    null, observed, n, exact = null_over_clusters(
        counts, group, stratum, [slice(0, 3)], n_groups=n_groups, n_resamples=5_000, rng=rng, standard=found
    )
    first, second = group[stratum == 0], group[stratum == 1]
    every = {a + b for a in itertools.permutations(first.tolist()) for b in itertools.permutations(second.tolist())}
    expected = sorted(by_hand(counts, np.array(labels), stratum, n_groups) for labels in every)
    assert exact
    assert n == len(every)
    assert np.sort(null[:, 0]) == pytest.approx(expected)
    assert observed[0] == pytest.approx(by_hand(counts, group, stratum, n_groups))


def crossed(items, repeats, effect, seed, spread=2.0):
    """Items that are given to both groups, answered `repeats` times each; items differ widely."""
    rng = generator([7, seed])
    base = rng.normal(0, spread, (items, 4))
    tilt = np.linspace(-0.5, 0.5, 4) * effect
    logits = np.stack([base - tilt, base + tilt], axis=1)
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    codes = np.concatenate([rng.choice(4, repeats, p=shares[i, g]) for i in range(items) for g in range(2)])
    item, group = np.repeat(np.arange(items), 2 * repeats), np.tile(np.repeat([0, 1], repeats), items)
    return codes, item, group, rng


def test_one_item_given_to_every_group_is_compared_within_the_item():
    within, apart = [], []
    for seed in range(12):
        codes, item, group, rng = crossed(24, 4, 1.2, seed)
        for found, units in ((within, item), (apart, 2 * item + group)):
            found.append(distribution_shift(codes, group, clusters=units, min_count=2, n_resamples=499, rng=rng))
    assert within[0].n_clusters == 24
    mean = joint_shift({"first": codes, "second": codes}, group, clusters=item, min_count=2, n_resamples=99, rng=rng)
    assert mean.n_clusters == 24
    assert any("within units" in note for note in within[0].notes)
    # The true distance is 22.3 with items of this kind; without the pairs a quarter of it is found.
    assert np.mean([one.estimate for one in within]) == pytest.approx(21, abs=4)
    assert sum(one.p_cluster <= 0.05 for one in within) >= 9
    assert sum(one.p_cluster <= 0.05 for one in apart) <= 6


def test_items_with_unequal_numbers_of_answers_are_weighed_alike_beside_another_question():
    codes, item, group, rng = crossed(16, 4, 1.5, 2)
    kept = rng.random(len(codes)) < 0.7
    many = np.where(rng.random(128) < 0.5, codes, rng.integers(0, 30, 128))
    columns = {"few": codes[kept], "many": many[kept], "third": np.where(rng.random(128) < 0.5, codes, 3)[kept]}
    asked = {"clusters": item[kept], "min_count": 1, "n_resamples": 99}
    both = joint_shift(columns, group[kept], rng=generator(), **asked).attributes
    for name, own in columns.items():
        alone = distribution_shift(own, group[kept], rng=generator(2), **asked)
        assert both[name].estimate == pytest.approx(alone.estimate)
        assert (both[name].ci_low, both[name].ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=3)


def test_swapped_items_without_an_effect():
    found = []
    for seed in range(24):
        codes, item, group, rng = crossed(24, 4, 0.0, seed)
        found.append(distribution_shift(codes, group, clusters=item, min_count=2, n_resamples=199, rng=rng))
    assert sum(one.p_cluster <= 0.05 for one in found) <= 3
    assert sum(one.ci_low == 0 for one in found) >= 21


def test_paired_answers_against_the_exact_sign_test():
    # Eight items answered once in each group: 6 change from x to y, none back. Of 2 to the power of 8 swaps, those of
    # the two unchanged items change nothing: p = 2 / 64.
    values = ["x"] * 6 + ["x", "y"] + ["y"] * 6 + ["x", "y"]
    found = distribution_shift(values, ["f"] * 8 + ["m"] * 8, clusters=list(range(8)) * 2, min_count=1, rng=generator())
    assert (found.n_labellings, found.exact_cluster, found.ntvd) == (256, True, 75.0)
    design = encode_design(["f"] * 8 + ["m"] * 8, list(range(8)) * 2, None, None)
    own = draw_evidence({"x": encode_values(inputs.values(values, "values"), 1)}, design, 99, generator())
    # Eight differences of pairs.
    assert own.model.degrees == (7,) and own.model.joint_degrees == 7
    assert found.p_cluster == pytest.approx(max(2 / 64, found.p_noise))


def test_a_pair_that_lost_an_answer_is_left_out_and_said():
    codes, item, group, rng = crossed(12, 1, 1.0, 1)
    values = [[str(code)] for code in codes]
    values[0] = []
    found = distribution_shift(values, group, clusters=item, min_count=1, rng=rng)
    assert any("1 of 12 units lack an answer in some group" in note for note in found.notes)


def test_three_groups_of_the_same_items():
    codes, item, group, rng = crossed(30, 2, 1.0, 3)
    thirds = np.concatenate([group, np.full(60, 2)])
    found = distribution_shift(
        np.concatenate([codes, codes[group == 0]]), thirds, clusters=np.concatenate([item, item[group == 0]]),
        min_count=2, n_resamples=199, rng=rng,
    )  # fmt: skip
    assert found.n_clusters == 30
    assert found.by_group[0] == pytest.approx(found.by_group[2])
    assert 0 < found.p_cluster <= 1


@pytest.mark.parametrize("shift", [0.0, 0.06, 0.1])
def test_the_star_and_the_interval_agree(shift):
    for seed in range(25):
        rng = generator([8, seed])
        group = np.arange(24) % 2
        shares = (1 - shift) * np.full((24, 8), 1 / 8) + shift * np.eye(8)[group]
        codes = np.concatenate([rng.choice(8, 30, p=row) for row in drawn(shares, rng)])
        speaker = np.repeat(np.arange(24), 30)
        found = distribution_shift(codes, group[speaker], clusters=speaker, n_resamples=199, rng=rng)
        assert (found.p_cluster <= 0.05) == (found.ci_low > 0)


def test_a_small_p_is_as_small_as_the_permutations_allow():
    rng = generator(10)
    group = np.arange(60) % 2
    codes = np.concatenate([rng.choice(2, 40, p=[0.8, 0.2] if g else [0.2, 0.8]) for g in group])
    speaker = np.repeat(np.arange(60), 40)
    found = distribution_shift(codes, group[speaker], clusters=speaker, n_resamples=9_999, rng=rng)
    assert found.p_cluster < 2e-4


def test_strata_and_blocks_together_are_one_code_for_each_pair():
    strata, blocks = [*"xxyyzz"], [*"121212"]
    design = encode_design([*"ababab"], range(6), strata, blocks)
    assert len(set(design.held.tolist())) == 6


def test_clusters_that_never_differ_in_a_value_lend_it_the_noise_of_independent_answers():
    # Five clusters of 40 answers differ between x and y alone; z is always 10 of 40. The clusters' own covariance says
    # nothing of z; it has 4 of the m - 1 + 4 = 8 degrees of freedom, and so half of the variance that independent
    # answers would have there, times the design effect.
    counts = np.array([[2, 28, 10], [8, 22, 10], [15, 15, 10], [22, 8, 10], [28, 2, 10]] * 2)
    cluster = np.repeat(np.arange(10), 40)
    codes = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    design = encode_design(np.repeat([0, 1], 200), cluster, None)
    share = counts[:5].sum(axis=0) / 200
    independent = share * (1 - share) / 200
    pulls = (counts[:5] - 40 * share) / 200
    between = (pulls**2).sum(axis=0) * 5 / 4
    effect = between.sum() / independent.sum()
    answers = Answers(np.arange(400), codes, [slice(0, 3)])
    factors = [noise_over_clusters(answers, design, generator(n)).factors[0] for n in range(30)]
    found = np.mean([(own**2).sum(axis=0)[2] for own in factors])
    assert found == pytest.approx(effect * independent[2] * 4 / 8, rel=0.1)
