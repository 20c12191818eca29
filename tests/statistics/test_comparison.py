import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import compare_joint_shift, ntvd
from equivox.statistics.comparison import _Added, _crossing, bracketed
from equivox.statistics.noise import Noise
from equivox.statistics.two_models import ContrastNoise, _short


def compare_shift(values_a, values_b, groups, **given):
    """Two models compared on one attribute."""
    return compare_joint_shift({"values": values_a}, {"values": values_b}, groups, **given)


def model(rng, shift, groups, n_values=4):
    own = np.array([int(group[1]) for group in groups])
    codes = np.where(rng.random(len(groups)) < shift, own, rng.integers(0, n_values, size=len(groups)))
    return [[f"v{code}"] for code in codes]


def design(n_clusters, responses):
    clusters = [f"s{i:02}" for i in np.arange(n_clusters).repeat(responses)]
    return [f"g{int(name[1:]) % 2}" for name in clusters], clusters


def shares(values, groups):
    return [[sum(v == [f"v{k}"] and g == name for v, g in zip(values, groups, strict=True)) for k in range(4)]
            for name in ("g0", "g1")]  # fmt: skip


def every_swap(a, b, clusters, mean):
    """Return `mean` of one model's answers less that of the other's, with the models exchanged in each set of clusters.

    `mean` is a function of two models' answers by attribute: the first one's distance where both answered.
    """
    names = sorted(set(clusters))
    for flips in itertools.product([False, True], repeat=len(names)):
        swap = [flips[names.index(name)] for name in clusters]
        one = {k: [y if s else x for x, y, s in zip(a[k], b[k], swap, strict=True)] for k in a}
        two = {k: [x if s else y for x, y, s in zip(a[k], b[k], swap, strict=True)] for k in a}
        yield mean(one, two) - mean(two, one)


@pytest.mark.parametrize(
    ("n_groups", "n_clusters", "weights", "crossed"),
    [
        (2, 4, {"x": 1.0}, False),
        (2, 4, {"x": 3.0, "y": 1.0}, False),
        (3, 6, {"x": 1.0, "y": 1.0}, False),
        (2, 5, {"x": 1.0}, True),
    ],
    ids=["one attribute", "weights", "three groups", "units in every group"],
)
def test_against_every_swap(n_groups, n_clusters, weights, crossed):
    rng = generator(2)
    clusters = [f"s{i}" for i in np.arange(n_clusters).repeat(6)]
    groups = [f"g{(row if crossed else int(name[1:])) % n_groups}" for row, name in enumerate(clusters)]
    a = {"x": model(rng, 0.6, groups), "y": model(rng, 0.2, groups)}
    b = {"x": model(rng, 0.1, groups), "y": model(rng, 0.4, groups)}
    if not crossed:  # else a missing answer would weigh the others
        a["y"][3] = b["x"][5] = []
    a, b = ({name: own[name] for name in weights} for own in (a, b))

    def mean(one, other):
        found = 0.0
        for name, weight in weights.items():
            both = [i for i in range(len(groups)) if one[name][i] and other[name][i]]
            table = [
                [sum(one[name][i] == [f"v{k}"] and groups[i] == group for i in both) for k in range(4)]
                for group in sorted(set(groups))
            ]
            found += weight * ntvd(table) / sum(weights.values())
        return found

    found = compare_joint_shift(a, b, groups, clusters=clusters, weights=weights, min_count=1, rng=rng)
    null = list(every_swap(a, b, clusters, mean))
    assert (found.ntvd_a, found.ntvd_b) == pytest.approx((mean(a, b), mean(b, a)))
    assert found.exact
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(found.difference) - 1e-9))
    assert found.ci_low < found.estimate < found.ci_high


@pytest.mark.parametrize("n_resamples", [99, 1_000, 1_500, 2_001])
def test_the_smallest_p_is_that_of_the_draws_asked_for(n_resamples):
    rng = generator(4)
    groups, clusters = design(40, 10)
    a, b = model(rng, 0.9, groups), model(rng, 0.0, groups)
    found = compare_shift(a, b, groups, clusters=clusters, n_resamples=n_resamples, rng=generator())
    # No draw of noise reaches so large a difference; at least a thousand are made.
    assert found.p_distance == pytest.approx(2 / (1 + max(n_resamples, 1_000)))
    assert found.p == pytest.approx(1 / (1 + n_resamples))


def test_order_of_the_models_only_turns_the_sign():
    rng = generator(3)
    groups, clusters = design(12, 10)
    a, b = model(rng, 0.5, groups), model(rng, 0.0, groups)
    one = compare_shift(a, b, groups, clusters=clusters, rng=generator())
    two = compare_shift(b, a, groups, clusters=clusters, rng=generator())
    assert one.difference == pytest.approx(-two.difference)
    assert one.p == pytest.approx(two.p, abs=0.01)
    assert one.ci_low == pytest.approx(-two.ci_high, abs=2)
    # Noise adds more to the distance of many values.
    few, many = answers(rng, groups, 2, 0.25), answers(rng, groups, 25, 0.25)
    one, two = (
        compare_shift(*both, groups, clusters=clusters, min_count=1, rng=generator())
        for both in ((few, many), (many, few))
    )
    assert (one.ci_low, one.ci_high) == pytest.approx((-two.ci_high, -two.ci_low), abs=4)


@pytest.mark.parametrize("n_values", [2, 4])
def test_a_model_against_itself(n_values):
    rng = generator(4)
    groups, clusters = design(8, 10)
    a = model(rng, 0.4, groups, n_values)
    found = compare_shift(a, a, groups, clusters=clusters, rng=rng)
    assert found.difference == 0.0
    assert found.p == found.p_distance == found.p_both == 1.0
    # No cluster shows how far the two may lie apart in others.
    assert found.estimate == 0.0 and math.isnan(found.ci_low) and math.isnan(found.ci_high)


def test_two_clusters_of_the_only_group_that_varies_show_no_interval():
    groups, clusters = ["g0"] * 20 + ["g1"] * 20, [*"a" * 10, *"b" * 10, *"c" * 10, *"d" * 10]
    a, b = (["y"] * n + ["n"] * (20 - n) + ["y"] * 20 for n in (3, 13))
    found = compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=generator())
    assert math.isnan(found.p_both) and math.isnan(found.ci_low) and found.undefined is None


def test_level_and_coverage():
    rng = generator(5)
    groups, clusters = design(16, 15)
    rejected = held = 0
    for _ in range(150):
        a, b = model(rng, 0.0, groups), model(rng, 0.0, groups)
        found = compare_shift(a, b, groups, clusters=clusters, n_resamples=199, rng=rng)
        rejected += found.p <= 0.05 + 1e-12
        a, b = model(rng, 0.5, groups), model(rng, 0.2, groups)
        found = compare_shift(a, b, groups, clusters=clusters, n_resamples=1, rng=rng)
        held += found.ci_low <= 30 <= found.ci_high  # nTVD 50 and 20 by construction
    assert 1 <= rejected <= 17  # 7.5 ± 2.7
    assert held >= 135


def test_items_one_model_lacks_are_dropped_for_both():
    rng = generator(6)
    groups, clusters = design(8, 6)
    a, b = model(rng, 0.3, groups), model(rng, 0.3, groups)
    a[0], b[1] = [], []
    found = compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=rng)
    assert (found.n_used, found.n_dropped) == (46, 2)
    kept = [i for i in range(48) if i > 1]
    assert found.ntvd_a == pytest.approx(ntvd(shares([a[i] for i in kept], [groups[i] for i in kept])))


def test_a_cluster_without_an_answer_of_both_is_not_counted():
    rng = generator(6)
    groups, clusters = design(8, 6)
    a, b = model(rng, 0.3, groups), model(rng, 0.3, groups)
    a[:6] = [[]] * 6
    found = compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=rng)
    assert (found.n_used, found.n_clusters) == (42, 7)


def test_undefined_says_why():
    groups, clusters = design(4, 3)
    same = compare_shift([["x"]] * 12, [["x"]] * 12, groups, clusters=clusters, min_count=1, rng=generator())
    assert same.undefined is not None
    assert math.isnan(same.difference)
    one = compare_shift([["x"], ["y"]], [["x"], ["y"]], ["g", "g"], clusters=["s", "t"], min_count=1, rng=generator())
    assert one.undefined == "only one group, 'g': a difference needs two"
    lost = compare_shift(
        [["x"], ["y"], []], [["x"], ["y"], ["x"]], ["g", "g", "h"], clusters=["s", "t", "u"], min_count=1,
        rng=generator(),
    )  # fmt: skip
    assert lost.undefined == "no sample that both models answered in group 'h'"
    # Model a is silent in one group of each stratum.
    silent = compare_shift(
        [["x"], [], [], ["y"]], [["x"], ["y"], ["y"], ["x"]], list("ghgh"), clusters=list("stuv"), min_count=1,
        strata=[1, 1, 2, 2], rng=generator(),
    )  # fmt: skip
    assert silent.undefined == "no stratum or block has answers of both models in all groups: nothing to compare"


def test_requests_that_cannot_be_meant():
    groups, clusters = design(4, 3)
    with pytest.raises(UsageError, match="`values_b` has 1 entries"):
        compare_shift([["x"]] * 12, [["x"]], groups, clusters=clusters, rng=generator())
    with pytest.raises(UsageError, match="`min_count` is 0"):
        compare_shift([["x"]] * 12, [["x"]] * 12, groups, clusters=clusters, min_count=0, rng=generator())


def test_one_attribute_is_the_same_alone_and_jointly():
    rng = generator(8)
    groups, clusters = design(12, 8)
    a, b = model(rng, 0.5, groups), model(rng, 0.1, groups)
    alone = compare_shift(a, b, groups, clusters=clusters, rng=generator())
    joint = compare_joint_shift({"x": a, "x2": a}, {"x": b, "x2": b}, groups, clusters=clusters, rng=generator())
    # Twice the same attribute says no more than once: nothing is counted twice.
    assert (joint.difference, joint.p) == pytest.approx((alone.difference, alone.p))
    assert (joint.ci_low, joint.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=1.5)


def answers(rng, groups, n_values, shift):
    """A fifth of the answers, say, is the group's own; the others are spread over `n_values` common ones."""
    own = rng.random(len(groups)) < shift
    common = rng.integers(0, n_values, size=len(groups))
    return [[group if mine else f"c{value}"] for group, mine, value in zip(groups, own, common, strict=True)]


def test_equal_bias_in_many_words_and_in_few():
    rng = generator(9)
    groups, clusters = design(16, 20)
    exchanged = further = 0
    for _ in range(40):
        few = {name: answers(rng, groups, 3, 0.2) for name in "xy"}
        many = {name: answers(rng, groups, 25, 0.2) for name in "xy"}
        found = compare_joint_shift(few, many, groups, clusters=clusters, min_count=2, n_resamples=199, rng=rng)
        exchanged += found.p <= 0.05
        further += found.p_both <= 0.05
    # Both are 20 from parity by construction. That they are not exchangeable is seen, and is not taken for bias.
    assert exchanged >= 30
    assert further <= 4


def test_the_joint_test_keeps_its_level_and_finds_what_is_there():
    rng = generator(10)
    groups, clusters = design(16, 20)
    exchanged = further = found_out = 0
    for _ in range(60):
        a, b, c = ({name: model(rng, shift, groups) for name in "xyz"} for shift in (0.2, 0.2, 0.6))
        found = compare_joint_shift(a, b, groups, clusters=clusters, n_resamples=199, rng=rng)
        exchanged += found.p <= 0.05 + 1e-12
        further += found.p_both <= 0.05
        found_out += compare_joint_shift(c, b, groups, clusters=clusters, n_resamples=199, rng=rng).p_both <= 0.05
    assert exchanged <= 8  # 3 ± 1.7
    assert further <= exchanged
    assert found_out == 60


def test_opposite_sides_are_no_evidence():
    # Of 25 values each is seen rarely: noise alone makes the second model's plug-in distance the larger one.
    rng = generator(11)
    groups, clusters = design(8, 12)
    few, many = answers(rng, groups, 2, 0.25), answers(rng, groups, 60, 0.0)
    found = compare_shift(few, many, groups, clusters=clusters, min_count=1, rng=rng)
    assert found.difference < 0 < found.estimate
    assert found.p_both == 1.0


def test_what_cannot_be_compared_jointly():
    groups, clusters = design(4, 3)
    x = model(generator(1), 0.5, groups)
    part = compare_joint_shift(
        {"x": x, "same": [["v"]] * 12}, {"x": x, "same": [["v"]] * 12}, groups, clusters=clusters, min_count=1,
        rng=generator(),
    )  # fmt: skip
    assert part.attributes == ("x",)
    assert "constant answers" in part.left_out["same"]
    for wrong, hint in (
        (({}, {}), "nothing"),
        (({"x": x}, {"y": x}), "`attributes_a` has x and `attributes_b` y"),
        (({"x": x}, {"x": x[:3]}), r"`attributes_b\['x'\]` has 3 entries"),
    ):
        with pytest.raises(UsageError, match=hint):
            compare_joint_shift(*wrong, groups, clusters=clusters, rng=generator())
    with pytest.raises(UsageError, match="`weights` has 0"):
        compare_joint_shift({"x": x}, {"x": x}, groups, clusters=clusters, weights={"x": 0}, rng=generator())


def test_a_group_with_one_cluster_leaves_the_distance_open():
    groups, clusters = ["g0"] * 6 + ["g1"] * 6, ["s"] * 6 + ["t"] * 3 + ["u"] * 3
    a, b = [["x"]] * 6 + [["y"]] * 6, [["x"], ["y"]] * 6
    found = compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=generator())
    assert found.undefined is None and found.p <= 1
    assert math.isnan(found.p_distance) and math.isnan(found.p_both) and math.isnan(found.estimate)
    # Beside an attribute that two clusters of each group answered, one that a single cluster of g0 did is as open.
    groups, clusters = design(4, 6)
    x = model(generator(2), 0.3, groups)
    y = [value if cluster != "s00" else [] for value, cluster in zip(x, clusters, strict=True)]
    both = compare_joint_shift({"x": x, "y": x}, {"x": x, "y": y}, groups, clusters=clusters, min_count=1,
                               rng=generator())  # fmt: skip
    assert both.attributes == ("x", "y")
    assert math.isnan(both.p_both)


def test_two_units_in_every_group_leave_the_distance_open():
    # The noise of two is Student's t with one degree of freedom, which has no mean: ends lay in reversed order.
    groups, units = ["g0", "g1", "g2", "g3"] * 4, ["x"] * 8 + ["y"] * 8
    a, b = (model(generator(run), 0.3, groups) for run in range(2))
    found = compare_shift(a, b, groups, clusters=units, min_count=1, rng=generator())
    assert found.undefined is None and found.p in (0.5, 1)
    assert np.isnan([found.p_distance, found.p_both, found.estimate, found.ci_low, found.ci_high]).all()


def test_swaps_are_all_counted_as_soon_as_they_are_no_more_than_are_drawn():
    # Four clusters: 2 to the power of 4 swaps.
    groups, clusters = design(4, 6)
    x, y = model(generator(2), 0.3, groups), model(generator(3), 0.0, groups)
    found = [
        compare_shift(x, y, groups, clusters=clusters, min_count=1, n_resamples=n, rng=generator()) for n in (15, 16)
    ]
    assert [one.exact for one in found] == [False, True]
    assert found[1].p * 16 == pytest.approx(round(found[1].p * 16))


def test_the_interval_of_a_clear_difference_is_student_s_t_with_clusters_less_groups():
    # Four clusters in two groups have two degrees of freedom, however many answers they gave. Where every deviation is
    # far from zero, the difference is a sum of shares, and its 95 % and 50 % intervals are as wide as those of t.
    def said(shares):
        return np.concatenate([np.where(np.arange(200) < round(200 * share), "x", "y") for share in shares])

    a, b = said([0.94, 0.86, 0.06, 0.14]), said([0.71, 0.69, 0.29, 0.31])
    clusters, widths = np.arange(4).repeat(200), []
    for confidence in (0.95, 0.5):
        found = compare_shift(
            a, b, clusters // 2, clusters=clusters, min_count=1, n_resamples=20_000, confidence=confidence,
            rng=generator(1),
        )  # fmt: skip
        widths.append(found.ci_high - found.ci_low)
    expected = stats.t.ppf(0.975, 2) / stats.t.ppf(0.75, 2)
    assert widths[0] / widths[1] == pytest.approx(expected, rel=0.07)


def test_the_estimate_lies_in_its_interval_where_one_model_shares_no_answer_between_groups():
    rng = generator()
    groups, clusters = np.array(["a", "b"]).repeat(16), np.arange(16).repeat(2)
    apart = [[group + str(rng.integers(2))] for group in groups]
    found = compare_shift(apart, [["p"], ["q"]] * 16, groups, clusters=clusters, min_count=1, n_resamples=99, rng=rng)
    assert found.ci_low <= found.estimate <= found.ci_high <= 100 == pytest.approx(found.difference)


def test_noise_of_half_a_difference_has_both_signs_and_student_s_spread():
    # Two groups with errors of 3 and 4 in their only value: half the difference has one of 5 / 2.
    for degrees, variance in ((math.inf, 6.25), (10.0, 6.25 * 10 / 8)):
        noise = Noise([np.array([[3.0]]), np.array([[4.0]])], (degrees,), degrees)
        drawn = ContrastNoise(SimpleNamespace(n_groups=2), noise, generator()).draw(200_000)[:, 0, 0]
        assert drawn.var() == pytest.approx(variance, rel=0.03)
        assert np.sign(drawn[:100_000]).tolist() == (-np.sign(drawn[100_000:])).tolist()


def test_noise_has_one_root_where_columns_depend_on_each_other() -> None:
    # The same covariance by other rows: rounding would choose another triangular root.
    rng = np.random.default_rng(3)
    shares = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 8))
    shares -= shares.mean(axis=1, keepdims=True)
    rotation, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    root = _short(shares)
    assert root.shape == (8, 8)
    np.testing.assert_allclose(root.T @ root, shares.T @ shares, atol=1e-9)
    np.testing.assert_allclose(_short(rotation @ shares), root, atol=1e-6)
    np.testing.assert_array_equal(_short(shares[:5]), shares[:5])


@pytest.mark.parametrize(
    ("least", "most", "p"),
    [
        # Of seven changes one is as far out as 3, two are as 2, and what rounding leaves parts nothing.
        (3 + 1e-13, 3 + 1e-13, 2 * 2 / 8),
        (-3 - 1e-13, -3 - 1e-13, 2 * 2 / 8),
        (2.0, 3.0, 2 * 3 / 8),
        (-1.0, 1.0, 1.0),
    ],
)
def test_p_and_interval_of_a_bracketed_difference_by_hand(least, most, p):
    # Changes count from their mean, 5; a third of them lies between -1 and 1.
    found = bracketed(np.arange(2.0, 9.0), least, most, 1 / 3)
    assert found == pytest.approx((p, least - 1, most + 1))


def test_the_longer_tail_of_changes_counts_to_both_sides():
    # From their mean, 0, one of five changes is 4 away, the others 1: the same is possible to the other side.
    found = bracketed(np.array([4.0, -1, -1, -1, -1]), -3.0, -3.0, 0.2)
    assert found == pytest.approx((2 * 2 / 6, -3 - 1, -3 + 1))
    assert bracketed(np.array([4.0, -1, -1, -1, -1]), 3.0, 3.0, 0.2)[0] == found[0]


@pytest.mark.parametrize("shape", [[[0.2, -0.2]], [[0.0, 0.0]]])
def test_noise_adds_to_a_distance_of_two_values_what_it_adds_to_a_folded_normal_number(shape):
    tables = SimpleNamespace(
        length=lambda spread: float(np.abs(spread).sum()),
        lengths=lambda start, noise: np.abs(start + noise).sum(axis=(1, 2)),
    )
    normal = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    added = _Added(tables, [np.array(shape)] * 2, 3.0 * normal[:, None, None] * np.array([[0.5, -0.5]]))
    for true in (0.0, 1.0, 2.0, 4.5, 9.0, 40.0):
        longer = stats.foldnorm.mean(true / 3.0, scale=3.0)
        assert added.at(true) == pytest.approx([longer - true] * 2, abs=0.06)
        # Where noise alone would be as long, the true distance is seen as it is at 0.
        assert added.to(longer) == pytest.approx([longer - true] * 2, abs=0.25)
    assert added.to(1.5) == (1.5, 1.5)  # shorter than noise is on its own: all of it may be noise
    nothing = _Added(tables, [np.array(shape)], np.zeros((9, 1, 2)))
    assert (nothing.at(5.0), nothing.to(5.0)) == ((0.0, 0.0), (0.0, 0.0))


def test_a_crossing_ends_where_differences_end():
    assert [_crossing(lambda true: true + 30.0, level) for level in (-90.0, 10.0, 140.0)] == [
        -100.0,
        pytest.approx(-20.0),
        100.0,
    ]


def test_the_interval_of_yes_and_no_holds_the_truth_where_clusters_are_few_and_unequal():
    """Both models are 20 from parity. Chance brings one of them near 0, where its noise seemed small."""
    rng = generator(1)
    sizes = np.tile([80, 40, 10, 5, 5, 5], 2)
    clusters = np.arange(12).repeat(sizes)
    sides = np.where(np.arange(12) < 6, 0.6, 0.4)
    held = 0
    for _ in range(300):
        a, b = ([[str(yes)] for yes in rng.random(290) < rng.beta(8 * sides, 8 - 8 * sides)[clusters]] for _ in "ab")
        found = compare_shift(
            a, b, [str(c < 6) for c in clusters], clusters=clusters.astype(str), min_count=1, n_resamples=499, rng=rng
        )
        held += found.ci_low <= 0.0 <= found.ci_high
    assert held >= 264  # 90 % of 600 samples hold it; 83 % did


def test_models_of_opposite_sides_whose_noise_they_share_are_not_told_apart():
    """Of yes and no both are 20 from parity, one to either side: what brings the one nearer takes the other away."""
    rng = generator(3)
    groups, clusters = ["f"] * 120 + ["m"] * 120, np.arange(24).repeat(10).astype(str)
    sides = np.where(np.arange(24) < 12, 0.1, -0.1)
    held, n = 0, 200
    for _ in range(n):
        shared = 0.5 + rng.uniform(-0.27, 0.27, 24)
        a, b = ([[str(yes)] for yes in rng.random(240) < (shared + side).repeat(10)] for side in (sides, -sides))
        found = compare_shift(a, b, groups, clusters=clusters, n_resamples=99, rng=rng)
        assert (found.p_distance <= 0.05) == (not found.ci_low <= 0.0 <= found.ci_high)
        held += found.ci_low <= 0.0 <= found.ci_high
    assert held >= 0.92 * n  # 95 %, up to two errors of 200 samples


def test_two_values_of_two_groups_are_tested_to_the_same_and_to_the_opposite_side():
    # Units of one answer each: 30 of 40 against 18 of 40, and 22 against 14 of the same ones. Of Student's two tests of
    # x - y and x + y that of x - y is the larger, 2 · Pr(t > d / s) with 78 degrees of freedom.
    a = np.repeat([1, 0, 1, 0], [30, 10, 18, 22])
    b = np.repeat([1, 0, 1, 0], [22, 18, 14, 26])
    groups, clusters = list("f" * 40 + "m" * 40), np.arange(80).astype(str)
    found = compare_shift(
        a.astype(str), b.astype(str), groups, clusters=clusters, n_resamples=100_000, rng=generator(4)
    )
    apart, summed = (stats.ttest_ind(own[:40], own[40:]) for own in (a - b, a + b))
    assert apart.pvalue > summed.pvalue
    assert found.difference == pytest.approx(30.0 - 20.0)
    assert found.p_distance == pytest.approx(apart.pvalue, rel=0.05)
    ends = 100 * np.array(apart.confidence_interval())
    assert (found.ci_low, found.ci_high) == pytest.approx((ends[0], ends[1]), abs=0.6)


def test_the_interval_holds_a_difference_of_many_small_steps():
    """One model is 15 from parity, over 40 values, the other is not: its many steps hide in the noise."""
    rng = generator(2)
    clusters = np.arange(24).repeat(20)
    steps = np.where(np.arange(40) < 20, 0.15 / 40, -0.15 / 40)
    held = []
    for _ in range(60):
        a, b = (
            [[str(rng.choice(40, p=shares))] for own in range(24) for shares in [
                rng.dirichlet(50 * (1 / 40 + (steps if own < 12 else -steps) * biased))
            ] for _ in range(20)]
            for biased in (1, 0)
        )  # fmt: skip
        found = compare_shift(
            a, b, [str(c < 12) for c in clusters], clusters=clusters.astype(str), min_count=1, n_resamples=499, rng=rng
        )
        held.append(found.ci_low <= 15.0 <= found.ci_high)
    assert sum(held) >= 53  # 98 % of 200 samples hold it; 62 % did


def test_models_are_swapped_in_single_clusters_of_a_stratum():
    # Strata that all groups hold alike change neither what is compared nor what is swapped: each speaker, not stratum.
    groups, clusters = design(8, 6)
    rng = generator(4)
    a, b = model(rng, 0.6, groups), model(rng, 0.2, groups)
    strata = ["xy"[int(name[1:]) // 4] for name in clusters]
    held, free = (
        compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=generator(), **given)
        for given in ({"strata": strata}, {})
    )
    assert (held.n_clusters, held.exact, held.difference) == (8, True, pytest.approx(free.difference))
    assert held.p == free.p
