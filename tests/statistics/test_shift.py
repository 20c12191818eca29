import itertools
import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import distribution_shift, joint_shift, ntvd
from equivox.statistics.encode import Answers
from equivox.statistics.nulls import null_over_clusters, null_over_responses
from equivox.statistics.results import ShiftNumbers


def design(n_clusters=8, responses=6, n_groups=2):
    clusters = [f"s{cluster:02}" for cluster in range(n_clusters) for _ in range(responses)]
    groups = [f"g{cluster % n_groups}" for cluster in range(n_clusters) for _ in range(responses)]
    return groups, clusters


def answers(n, n_values=5, seed=0, per_response=1):
    drawn = generator(seed).integers(0, n_values, size=(n, per_response))
    return [[f"v{code}" for code in row] for row in drawn.tolist()]


def table(values, groups):
    names, kept = sorted(set(groups)), sorted({value for answer in values for value in answer})
    return np.array(
        [
            [sum(answer.count(v) for answer, g in zip(values, groups, strict=True) if g == name) for v in kept]
            for name in names
        ]
    )


def test_numbers_of_a_hand_worked_table():
    # a: 3 chess, 1 yoga; b: 1 chess, 3 yoga; c: 2 and 2. P̄ = (1/2, 1/2).
    # Half-distances 1/4, 1/4, 0: TVD = 1/6; divided by 2/3: 25 %.
    values = [["chess"]] * 3 + [["yoga"]] + [["chess"]] + [["yoga"]] * 3 + [["chess"], ["yoga"]] * 2
    found = distribution_shift(values, list("aaaabbbbcccc"), clusters=None, min_count=1, rng=generator())
    assert found.ntvd == pytest.approx(25.0)
    assert found.groups == ("a", "b", "c")
    assert found.values == ("chess", "yoga")
    assert found.by_group == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]))
    assert found.deviations == pytest.approx(np.array([[0.25, -0.25], [-0.25, 0.25], [0, 0]]))
    assert found.attainable_max == pytest.approx(200 / 3)  # 3 groups on 2 values: 1 − (4 + 1)/9 = 4/9; over 2/3
    assert found.estimate < found.ntvd


def test_rare_values_are_removed_and_counted():
    values = [["chess"]] * 10 + [["yoga"]] * 10 + [["golf"]] * 3 + [[]]
    groups = ["a", "b"] * 12
    found = distribution_shift(values, groups, clusters=None, rng=generator())
    assert found.removed_values == {"golf": 3}
    assert found.removed_share == pytest.approx(3 / 23)
    assert (found.n_responses, found.n_used) == (24, 20)


def test_every_value_of_a_response_counts():
    values = [["x", "y", "z"], ["x", "x", "y"], ["z", "z", "y"], ["y", "x", "z"]]
    groups = ["a", "a", "b", "b"]
    # a: x 3, y 2, z 1; b: x 1, y 2, z 3. ½(|3−1| + |1−3|)/6 = 1/3 between groups: nTVD 33.3
    found = distribution_shift(values, groups, clusters=None, min_count=1, rng=generator())
    assert found.ntvd == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("values", "groups", "reason"),
    [
        ([["x"], ["y"]], ["a", "a"], "only one group, 'a'"),
        ([[], []], ["a", "b"], "no response has a value"),
        ([["x"], ["x"]], ["a", "b"], "every answer is the same value, 'x'"),
        ([["x"], ["y"], []], ["a", "a", "b"], "no usable response in group 'b'"),
    ],
)
def test_undefined_is_nan_with_a_reason(values, groups, reason):
    found = distribution_shift(values, groups, clusters=None, min_count=1, rng=generator())
    assert reason in found.undefined
    for name in {field.name for field in fields(ShiftNumbers)}:
        assert math.isnan(getattr(found, name)), name


def test_nothing_frequent_enough_is_undefined():
    rare = distribution_shift([["x"], ["y"]] * 4, ["a", "b"] * 4, clusters=None, rng=generator())
    assert rare.undefined == "no value is seen 10 times or more"
    one = distribution_shift([["x"]] * 12 + [["y"]], ["a", "b"] * 6 + ["a"], clusters=None, rng=generator())
    assert one.undefined == "only one value, 'x', is seen 10 times or more"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": []}, "`groups` is empty"),
        ({"values": [["x"]]}, "`values` has 1 entries, `groups` has 4"),
        ({"values": "xyxy"}, "`values` is a str: give one column"),
        ({"values": [["x"], {"y": 1}, ["x"], ["y"]]}, "`values` holds a mapping"),
        ({"values": [["x"], ["y", ["z"]], ["x"], ["y"]]}, r"`values` holds \['z'\] at position 1"),
        ({"groups": ["a", "a", "b", None]}, "`groups` is missing for 1 of 4 responses, first at position 3"),
        ({"groups": ["a", "a", ["b"], "b"]}, r"`groups` holds \['b'\] at position 2"),
        ({"clusters": ["s", "s", "t"]}, "`clusters` has 3 entries, `groups` has 4"),
        ({"clusters": ["s", "s", "t", math.nan]}, "`clusters` is missing for 1 of 4 responses"),
        ({"strata": ["s", None, "t", None]}, "`strata` is missing for 2 of 4 responses, first at position 1"),
        ({"clusters": ["s", "t", "t", "u"]}, "of 3, 1 in 2, 2 in 1 of 2 groups"),
        ({"clusters": None, "strata": ["1", "1", "1", "1"]}, "`strata` was given without"),
        ({"min_count": 0}, "`min_count` is 0"),
        ({"n_resamples": 0}, "`n_resamples` is 0"),
        ({"confidence": 1.0}, "`confidence` is 1.0"),
    ],
)
def test_bad_requests_name_argument_value_and_fix(change, words):
    asked = {
        "values": [["x"], ["y"], ["x"], ["y"]],
        "groups": ["a", "a", "b", "b"],
        "clusters": ["s", "s", "t", "t"],
        "min_count": 1,
    } | change
    values, groups = asked.pop("values"), asked.pop("groups")
    with pytest.raises(UsageError, match=words):
        distribution_shift(values, groups, rng=generator(), **asked)


def test_exact_cluster_p_against_every_permutation():
    groups, clusters = design(n_clusters=6, responses=5)
    values = answers(30, 3)
    found = distribution_shift(values, groups, clusters=clusters, min_count=1, rng=generator())
    profiles = {name: [value for value, own in zip(values, clusters, strict=True) if own == name] for name in clusters}
    names = sorted(profiles)
    null = []
    for first in itertools.combinations(names, 3):  # 6 choose 3 = 20 ways to call three speakers g0
        moved = [(answer, "a" if name in first else "b") for name in names for answer in profiles[name]]
        null.append(ntvd(table([answer for answer, _ in moved], [group for _, group in moved])))
    assert found.exact_cluster
    assert found.n_labellings == 20
    assert sorted(found.null_cluster) == pytest.approx(sorted(null))
    assert found.p_cluster == pytest.approx(np.mean(np.array(null) >= found.ntvd - 1e-9))
    assert found.null_mean == pytest.approx(np.mean(null))


def test_strata_hold_the_labels_of_their_clusters():
    # Two strata with 2 + 2 speakers: (4 choose 2)² = 36 permutations instead of 8 choose 4 = 70.
    groups, clusters = design(n_clusters=8, responses=5)
    strata = ["s1" if cluster < "s04" else "s2" for cluster in clusters]
    values = answers(40, 3)
    found = distribution_shift(values, groups, clusters=clusters, strata=strata, min_count=1, rng=generator())
    free = distribution_shift(values, groups, clusters=clusters, min_count=1, rng=generator())
    assert (found.n_labellings, free.n_labellings) == (36, 70)
    names = sorted(set(clusters))
    null = []
    for one, two in itertools.product(itertools.combinations(names[:4], 2), itertools.combinations(names[4:], 2)):
        moved = ["a" if name in one + two else "b" for name in clusters]
        null.append(ntvd(table(values, moved)))
    assert sorted(found.null_cluster) == pytest.approx(sorted(null))


def test_clusters_across_strata_move_whole():
    groups, clusters = design()
    found = distribution_shift(
        answers(48), groups, clusters=clusters, strata=["s1", "s2"] * 24, min_count=1, rng=generator()
    )
    assert found.n_labellings == math.comb(8, 4)
    assert "clusters span several strata: whole clusters are permuted freely" in found.notes


@pytest.mark.parametrize("per_response", [1, 3])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_response_null_against_scipy(per_response, n_groups):
    rng = generator(3)
    values = answers(90, 6, seed=4, per_response=per_response)
    codes = np.arange(90) % n_groups
    counts = np.array([[answer.count(f"v{code}") for code in range(6)] for answer in values])
    found = distribution_shift(values, [f"g{g}" for g in codes], clusters=None, min_count=1, rng=rng)

    def statistic(labels):
        return ntvd(np.array([counts[labels == group].sum(axis=0) for group in range(n_groups)]))

    theirs = stats.permutation_test(
        (codes,), statistic, permutation_type="pairings", n_resamples=4_000, alternative="greater", rng=rng
    )
    assert stats.ks_2samp(found.null_response, theirs.null_distribution).pvalue > 0.001
    assert found.p_response == pytest.approx(theirs.pvalue, abs=0.03)
    assert found.p_paper == pytest.approx((found.p_response * 10_001 - 1) / 10_000)


def test_permuting_types_and_permuting_responses_agree(monkeypatch):
    # Few distinct answers go through random tables, many are permuted one by one: the same null either way.
    from equivox.statistics import nulls

    values = answers(400, 3, seed=5, per_response=2)
    groups = ["a", "b", "c", "d"] * 100
    tables = distribution_shift(values, groups, clusters=None, min_count=1, rng=generator())
    monkeypatch.setattr(nulls, "_from_tables", None)
    monkeypatch.setattr(nulls, "TABLE_CELL_COST", 1e9)
    rows = distribution_shift(values, groups, clusters=None, min_count=1, rng=generator())
    assert stats.ks_2samp(tables.null_response, rows.null_response).pvalue > 0.001
    assert rows.null_mean_response == pytest.approx(tables.null_mean_response, rel=0.02)


def test_floor_of_two_equal_groups_by_hand():
    # V values, n responses, two groups of n/2: a value's difference of shares is about normal with variance
    # 4 p(1−p)/n, so the mean nTVD is 50 · Σ √(2/π) · √(4 p (1−p) / n) = 100 √(2/π) · V · √(p(1−p)/n).
    n, n_values = 4_000, 40
    p = 1 / n_values
    expected = 100 * math.sqrt(2 / math.pi) * n_values * math.sqrt(p * (1 - p) / n)
    values = answers(n, n_values, seed=6)
    found = distribution_shift(values, ["a", "b"] * (n // 2), clusters=None, rng=generator())
    assert found.null_mean_response == pytest.approx(expected, rel=0.02)


def test_p_is_never_zero_and_the_paper_s_may_be():
    values = [["x"]] * 50 + [["y"]] * 50
    found = distribution_shift(values, ["a"] * 50 + ["b"] * 50, clusters=None, n_resamples=99, rng=generator())
    assert found.p_response == pytest.approx(1 / 100)
    assert found.p_paper == 0.0
    assert math.isnan(found.p_cluster)
    assert any("no clusters were given" in note for note in found.notes)


def test_two_speakers_per_group_cannot_be_significant_and_say_so():
    groups, clusters = design(n_clusters=4, responses=20)
    values = [["x"] if group == "g0" else ["y"] for group in groups]
    found = distribution_shift(values, groups, clusters=clusters, rng=generator())
    assert found.p_cluster == pytest.approx(2 / 6)
    assert any("p = 0.33" in note for note in found.notes)
    assert any("adds one hypothetical cluster" in note for note in found.notes)
    # Two speakers a group that agree are no proof: the interval is wide, and its lower end is 0, as p asks.
    assert found.estimate == pytest.approx(100) and (found.ci_low, found.ci_high) == (0.0, pytest.approx(100))


@pytest.mark.parametrize("design_of", ["nested", "crossed", "responses"])
def test_groups_that_share_no_answer_may_share_some_elsewhere(design_of):
    # Of 24 clusters none was seen to answer as the other group does. If 5 % do, that is seen in .95^24 = 29 % of all
    # such samples, and the shift is 100·(1 − 2·.05) = 90.
    units = [f"u{n}" for n in range(12) for _ in "ab" for _ in range(4)]
    groups = [group for _ in range(12) for group in "ab" for _ in range(4)]
    words = answers(len(groups), 3)
    apart = [[group + word for word in own] for group, own in zip(groups, words, strict=True)]
    clusters = {"nested": [u + g for u, g in zip(units, groups, strict=True)], "crossed": units, "responses": None}
    found = distribution_shift(apart, groups, clusters=clusters[design_of], rng=generator())
    assert any("adds one hypothetical cluster" in note for note in found.notes)
    assert found.ci_low <= found.estimate <= found.ci_high
    assert found.ci_low < (90 if design_of != "responses" else 97)
    assert found.p_response < 0.001
    # One answer that two groups share is an observation: nothing is supposed beside it.
    apart[0] = apart[-1]
    found = distribution_shift(apart, groups, clusters=clusters[design_of], rng=generator())
    assert not any("adds one hypothetical cluster" in note for note in found.notes)


def test_what_rounding_leaves_of_clusters_that_are_alike_says_nothing_of_the_noise():
    # All clusters of a group give one answer. 7 of 25 times 25 is 7 less a rounding error; 8 of 25 times 25 is 8.
    def found(sizes):
        groups = [group for group in "abc" for size in sizes for _ in range(size)]
        clusters = [f"{group}{n}" for group in "abc" for n, size in enumerate(sizes) for _ in range(size)]
        return distribution_shift([[group] for group in groups], groups, clusters=clusters, rng=generator())

    even, rounded = found((8, 8, 9)), found((7, 9, 9))
    assert even.p_cluster < 0.01 and 0 < even.ci_low < 50
    assert rounded.ci_low == pytest.approx(even.ci_low)


def test_one_cluster_per_group_falls_back_to_responses():
    groups, clusters = design(n_clusters=2, responses=40)
    found = distribution_shift(answers(80), groups, clusters=clusters, rng=generator())
    assert found.p_cluster == 1.0
    assert any("one cluster" in note for note in found.notes)
    assert found.ci_low <= found.ci_high


def same(one, other, *fields):
    for field in fields:
        assert getattr(one, field) == pytest.approx(getattr(other, field), nan_ok=True), field


EVERYTHING = ("ntvd", "null_mean", "null_mean_response", "p_response", "p_cluster", "p_paper", "ci_low", "ci_high")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(2, 3))
def test_row_order_and_names_change_nothing(seed, per_response, n_groups):
    groups, clusters = design(n_clusters=12, responses=4, n_groups=n_groups)
    values = answers(48, 4, seed=seed, per_response=per_response)
    asked = {"min_count": 1, "n_resamples": 200}
    found = distribution_shift(values, groups, clusters=clusters, rng=generator(), **asked)
    order = generator(seed).permutation(48)
    shuffled = distribution_shift(
        [values[i] for i in order],
        [groups[i] for i in order],
        clusters=[clusters[i] for i in order],
        rng=generator(),
        **asked,
    )
    same(found, shuffled, *EVERYTHING)
    renamed = distribution_shift(
        values,
        [{"g0": "zz", "g1": "m", "g2": "a"}[group] for group in groups],
        clusters=[f"speaker {99 - int(cluster[1:])}" for cluster in clusters],
        rng=generator(),
        **asked,
    )
    same(found, renamed, "ntvd", "null_mean", "null_mean_response", "p_response", "p_cluster", "p_paper")
    assert renamed.ci_high == pytest.approx(found.ci_high, rel=0.2, abs=2)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_merging_equal_shards_keeps_the_distance(seed):
    groups, clusters = design()
    values = answers(48, 4, seed=seed)
    one = distribution_shift(values, groups, clusters=clusters, min_count=1, n_resamples=100, rng=generator())
    two = distribution_shift(
        values * 2, groups * 2, clusters=clusters * 2, min_count=1, n_resamples=100, rng=generator()
    )
    same(one, two, "ntvd", "attainable_max", "null_mean")
    assert one.by_group == pytest.approx(two.by_group)


def test_missing_responses_only_change_the_counts():
    groups, clusters = design()
    values = answers(48, 4)
    found = distribution_shift(values, groups, clusters=clusters, min_count=1, rng=generator())
    more = distribution_shift(
        [*values, [], []], [*groups, "g0", "g1"], clusters=[*clusters, "s00", "s01"], min_count=1, rng=generator()
    )
    same(found, more, *EVERYTHING)
    assert (more.n_responses, more.n_used) == (50, 48)


def test_planted_shift_is_found_at_its_size():
    # Half of each group's 4,000 answers per value, 20 % moved to the group's own value: truth 20, noise about 1.
    rng = generator(8)
    groups, clusters = design(n_clusters=20, responses=400)
    codes = rng.integers(0, 8, size=8_000)
    own = np.array([int(group[1]) for group in groups])
    codes = np.where(rng.random(8_000) < 0.2, own, codes)
    found = distribution_shift([[f"v{code}"] for code in codes], groups, clusters=clusters, rng=rng)
    assert found.ntvd == pytest.approx(20, abs=3)
    assert found.ci_low <= 20 <= found.ci_high
    assert found.p_cluster < 0.001
    assert found.deviations[0, 0] == pytest.approx(0.1, abs=0.02)


def test_joint_is_the_mean_with_its_own_null():
    groups, clusters = design()
    hobby, budget = answers(48, 4, seed=1), answers(48, 3, seed=2)
    task = joint_shift(
        {"hobby": hobby, "budget": budget}, groups, clusters=clusters, min_count=1, n_resamples=500, rng=generator()
    )
    alone = distribution_shift(hobby, groups, clusters=clusters, min_count=1, n_resamples=500, rng=generator())
    shifts = task.attributes
    assert shifts["hobby"].ntvd == pytest.approx(alone.ntvd)
    assert shifts["hobby"].p_cluster == pytest.approx(alone.p_cluster)  # 70 permutations, enumerated in both
    assert task.ntvd == pytest.approx((shifts["hobby"].ntvd + shifts["budget"].ntvd) / 2)
    assert task.null_cluster == pytest.approx((shifts["hobby"].null_cluster + shifts["budget"].null_cluster) / 2)
    assert task.null_mean == pytest.approx((shifts["hobby"].null_mean + shifts["budget"].null_mean) / 2)
    assert task.p_cluster == pytest.approx(np.mean(task.null_cluster >= task.ntvd - 1e-9))
    assert task.attainable_max == pytest.approx(100)


def test_the_same_attribute_twice_is_no_more_evidence():
    # With separate permutations the mean of two copies would have a null that is too narrow.
    groups, clusters = design(n_clusters=10, responses=6)
    values = answers(60, 4)
    task = joint_shift({"one": values, "two": values}, groups, clusters=clusters, min_count=1, rng=generator())
    alone = task.attributes["one"]
    assert task.p_cluster == alone.p_cluster
    assert task.p_response == alone.p_response
    assert task.null_response.std() == pytest.approx(alone.null_response.std())
    assert (task.ci_low, task.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.5)


def test_an_attribute_has_the_same_noise_alone_and_beside_another():
    # About one question some of six speakers agree more, so that its noise has fewer degrees of freedom.
    rng, speaker = generator(5), np.arange(6).repeat(30)
    columns = {
        "few": (rng.random(180) < np.where(np.arange(6) < 2, 0.9, 0.5)[speaker]).astype(int),
        "many": rng.integers(0, 30, 180),
    }
    asked = {"clusters": speaker, "min_count": 1, "n_resamples": 99}
    both = joint_shift(columns, speaker % 2, rng=generator(), **asked).attributes
    for name, codes in columns.items():
        alone = distribution_shift(codes, speaker % 2, rng=generator(2), **asked)
        assert both[name].ci_high == pytest.approx(alone.ci_high, rel=0.1)
        assert both[name].p_noise == pytest.approx(alone.p_noise, abs=0.02)


def test_joint_leaves_out_what_is_undefined():
    groups, clusters = design()
    task = joint_shift(
        {"hobby": answers(48, 3), "budget": [["low"]] * 48}, groups, clusters=clusters, min_count=1, rng=generator()
    )
    assert task.defined == ("hobby",)
    assert "left out as undefined: budget" in task.notes
    assert task.ntvd == pytest.approx(task.attributes["hobby"].ntvd)
    nothing = joint_shift({"budget": [["low"]] * 48}, groups, clusters=clusters, rng=generator())
    assert math.isnan(nothing.ntvd)
    assert "budget: every answer is the same value" in nothing.undefined


def test_joint_needs_an_attribute():
    with pytest.raises(UsageError, match="`attributes` is empty"):
        joint_shift({}, ["a", "b"], clusters=None, rng=generator())


def test_memory_stays_flat():
    import tracemalloc

    groups, clusters = design(n_clusters=20, responses=100)
    values = answers(2_000, 100, per_response=3)
    tracemalloc.start()
    distribution_shift(values, groups, clusters=clusters, n_resamples=5_000, rng=generator())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150 * 2**20


def test_permutations_are_all_counted_as_soon_as_they_are_no_more_than_are_drawn():
    # Two clusters in each of two groups: 6 permutations.
    groups, clusters = design(n_clusters=4)
    exact = [
        distribution_shift(answers(24), groups, clusters=clusters, min_count=1, n_resamples=n, rng=generator())
        for n in (5, 6)
    ]
    assert [found.exact_cluster for found in exact] == [False, True]
    assert [len(found.null_cluster) for found in exact] == [5, 6]


def test_counts_as_large_as_16_bits_hold_and_one_more():
    # Two clusters say x, two say y, 32,768 times each: a group can have 65,536 of a value, which 16 bits do not hold.
    counts = np.array([[2**15, 0], [2**15, 0], [0, 2**15], [0, 2**15]])
    null, observed, n, exact = null_over_clusters(
        counts, np.array([0, 0, 1, 1]), None, [slice(0, 2)], n_groups=2, n_resamples=6, rng=generator()
    )
    assert (n, exact) == (6, True)
    assert observed[0] == pytest.approx(100)
    assert np.sort(null[:, 0]) == pytest.approx([0, 0, 0, 0, 100, 100])


def test_a_value_twice_in_a_response_is_another_answer_than_once():
    # Four responses say x, four say it twice, four say y; of every way to deal six of twelve to a group, the distances
    # are counted here one by one.
    kinds = np.repeat([0, 1, 2], 4)
    said = np.array([[1, 0], [2, 0], [0, 1]])[kinds]
    every = set()
    for members in itertools.combinations(range(12), 6):
        mine = np.isin(np.arange(12), members)
        every.add(round(ntvd(np.stack([said[mine].sum(axis=0), said[~mine].sum(axis=0)])), 6))
    rows, columns = np.repeat(np.arange(12), said.sum(axis=1)), np.concatenate([np.repeat([0, 1], row) for row in said])
    given = Answers(rows, columns, [slice(0, 2)])
    null = null_over_responses(given, np.arange(12) % 2, n_groups=2, n_resamples=2_000, rng=generator())
    assert {round(value, 6) for value in null[:, 0].tolist()} == every


def test_a_p_at_the_level_rejects_and_the_interval_says_so():
    # Three clusters in each of two groups, all of whose answers differ: the p of 20 permutations is 2/20.
    values = (["x"] * 9 + ["y"] + ["y"] * 9 + ["x"]) * 3
    groups, clusters = (["a"] * 10 + ["b"] * 10) * 3, np.arange(6).repeat(10)
    found = [
        distribution_shift(values, groups, clusters=clusters, min_count=1, confidence=confidence, rng=generator())
        for confidence in (0.9, 0.91)
    ]
    assert [one.p_cluster for one in found] == [0.1, 0.1]
    assert found[0].ci_low > 0 == found[1].ci_low


@pytest.mark.parametrize(("silent", "is_noted"), [(1, False), (2, True)])
def test_an_attribute_that_one_cluster_of_a_group_answers_is_noted(silent, is_noted):
    groups, clusters = design(n_clusters=6, responses=10)
    hobby, mood = answers(60, seed=1), answers(60, seed=2)
    names = [name for name in sorted(set(clusters)) if groups[clusters.index(name)] == "g0"][:silent]
    mood = [[] if cluster in names else said for cluster, said in zip(clusters, mood, strict=True)]
    found = joint_shift({"hobby": hobby, "mood": mood}, groups, clusters=clusters, min_count=1, rng=generator())
    assert any("mood: a group has one cluster with an answer" in note for note in found.notes) == is_noted


def test_answers_that_all_hold_the_same_values_are_constant_in_any_order():
    always = [["x", "y"], ["y", "x"]] * 4
    found = distribution_shift(always, [*"aabb"] * 2, clusters=None, min_count=1, rng=generator())
    assert found.undefined is not None and "every answer holds the same values, 'x', 'y'" in found.undefined
    once = [["x", "y"], ["x"], ["x", "y", "y"]] * 4
    found = distribution_shift(once, [*"ab"] * 6, clusters=None, min_count=1, rng=generator())
    assert found.undefined is None


@pytest.mark.parametrize(("n_each", "permutations"), [(1, 2), (2, 6)])
def test_so_few_clusters_that_none_of_their_permutations_is_rare_are_told(n_each, permutations):
    # One value for each group: of the C(2n, n) permutations two are as far apart as what was seen.
    values = [["x"]] * (5 * n_each) + [["y"]] * (5 * n_each)
    groups, clusters = ["f"] * (5 * n_each) + ["m"] * (5 * n_each), np.arange(2 * n_each).repeat(5)
    found = distribution_shift(
        values, groups, clusters=clusters, min_count=1, n_resamples=99, rng=np.random.default_rng(0)
    )
    told = f"{permutations} permutations of the clusters: the most extreme has p = {2 / permutations:.2g}"
    assert told in found.notes and found.exact_cluster
