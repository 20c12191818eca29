import math

import numpy as np
import pytest
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import cluster_share, parity_deviation, sign_flip_test


def test_hand_worked_flips():
    # Clusters sum to 2, 1 and −1 (n = 4). All 8 patterns give |±2 ±1 ±1|/4: 4 twice, 2 four times, 0 twice.
    # Observed |2 + 1 − 1| = 2: at least as far out are 6 of 8.
    found = sign_flip_test([1, 1, 1, -1], clusters=["a", "a", "b", "c"], rng=generator())
    assert found.mean == pytest.approx(0.5)
    assert found.p == pytest.approx(6 / 8)
    assert found.exact
    assert (found.n, found.n_clusters) == (4, 3)


def test_against_scipy_on_single_values():
    values = generator(2).normal(0.4, 1.0, size=10)
    mine = sign_flip_test(values.tolist(), clusters=None, rng=generator())
    theirs = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert mine.exact
    assert mine.p == pytest.approx(theirs.pvalue)


def test_drawn_flips_approach_the_exact_ones():
    values = generator(3).normal(0.3, 1.0, size=13)
    exact = sign_flip_test(values.tolist(), clusters=None, n_resamples=10_000, rng=generator())
    drawn = sign_flip_test(values.tolist(), clusters=None, n_resamples=8_000, rng=generator())
    assert exact.exact
    assert not drawn.exact
    assert drawn.p == pytest.approx(exact.p, abs=0.02)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_of_the_values_changes_no_p(unit):
    values = generator(2).normal(1.0, 1.0, size=12)
    clusters = np.repeat(np.arange(6), 2)
    plain = sign_flip_test(values, clusters=clusters, rng=generator())
    assert sign_flip_test(unit * values, clusters=clusters, rng=generator()).p == plain.p < 0.1
    # 0.1 + 0.2 - 0.3 is not 0 in binary: what rounding leaves of a cluster is no side.
    balanced = sign_flip_test(
        [0.1 * unit, 0.2 * unit, -0.3 * unit] * 8, clusters=np.repeat(np.arange(8), 3), rng=generator()
    )
    assert balanced.undefined is not None or balanced.p == 1.0


def test_missing_is_counted_and_nothing_known_is_undefined():
    found = sign_flip_test([1, math.nan, -1, 1], clusters=["a", "a", "b", "c"], rng=generator())
    assert (found.n, found.n_missing, found.n_clusters) == (3, 1, 3)
    nothing = sign_flip_test([math.nan], clusters=None, rng=generator())
    assert nothing.undefined == "every value is missing"
    assert math.isnan(nothing.mean)
    balanced = sign_flip_test([1, -1], clusters=["a", "a"], rng=generator())
    assert balanced.undefined is not None
    assert math.isnan(balanced.p)


def test_repeated_readings_of_one_context_are_one_unit():
    once = sign_flip_test([1, 1, 1, 1, -1], clusters=list("abcde"), rng=generator())
    tenfold = sign_flip_test([1, 1, 1, 1, -1] * 10, clusters=list("abcde") * 10, rng=generator())
    assert once.p == pytest.approx(tenfold.p)
    assert once.mean == pytest.approx(tenfold.mean)


def test_parity_of_all_alike_and_of_balance():
    alike = parity_deviation([1] * 8, clusters=list("abcdefgh"), rng=generator())
    assert (alike.share, alike.deviation) == (100.0, 100.0)
    assert alike.p == pytest.approx(2 / 2**8)
    assert "all clusters have the same share: no interval" in alike.notes
    balanced = parity_deviation([1, 0] * 8, clusters=[f"c{i}" for i in range(16)], rng=generator())
    assert balanced.deviation == 0.0
    assert balanced.p == 1.0
    assert balanced.ci_low == 0.0


def test_parity_without_a_meaningful_choice_is_undefined():
    found = parity_deviation([math.nan] * 3, clusters=None, rng=generator())
    assert found.undefined == "no choice was stereotypical or anti-stereotypical"
    assert math.isnan(found.share)
    assert math.isnan(found.deviation)
    assert found.n_missing == 3


def test_parity_interval_against_scipy():
    rng = generator(5)
    hits, sizes = rng.binomial(6, 0.6, size=40), np.full(40, 6)
    choices = [1.0] * 0
    clusters = []
    for cluster, hit in enumerate(hits):
        choices += [1.0] * hit + [0.0] * (6 - hit)
        clusters += [f"c{cluster}"] * 6
    found = parity_deviation(choices, clusters=clusters, rng=generator())
    theirs = stats.bootstrap(
        (100 * hits / sizes,), np.mean, n_resamples=5_000, method="BCa", rng=generator()
    ).confidence_interval
    assert (found.share_low, found.share_high) == pytest.approx((theirs.low, theirs.high), abs=0.8)
    assert found.ci_high == pytest.approx(2 * (found.share_high - 50))


@pytest.mark.parametrize("hits", [[1, 0, 2, 1, 0, 1, 0, 2], [2, 1, 3, 2, 1, 2, 2, 1]])
def test_parity_is_as_far_on_either_side(hits):
    # Clearly off one half, and near it: the interval of the deviation is that of the opposite choices.
    choices = np.concatenate([np.repeat([1.0, 0.0], [hit, 4 - hit]) for hit in hits])
    clusters = np.repeat(np.arange(8), 4)
    found, other = (parity_deviation(own, clusters=clusters, rng=generator()) for own in (choices, 1 - choices))
    assert (other.share_low, other.share_high) == pytest.approx((100 - found.share_high, 100 - found.share_low))
    assert (other.ci_low, other.ci_high) == pytest.approx((found.ci_low, found.ci_high))
    assert found.ci_high == pytest.approx(2 * max(50 - found.share_low, found.share_high - 50))


def test_bad_choices_are_named():
    with pytest.raises(UsageError, match="`choices` holds a number other than 0 and 1"):
        parity_deviation([2.0], clusters=None, rng=generator())
    with pytest.raises(UsageError, match="`values` has shape"):
        sign_flip_test([], clusters=None, rng=generator())
    with pytest.raises(UsageError, match="`clusters` has 1 entries"):
        sign_flip_test([1, 1], clusters=["a"], rng=generator())
    with pytest.raises(UsageError, match="infinite"):
        sign_flip_test([math.inf], clusters=None, rng=generator())


def test_by_hand_and_what_is_missing_is_left_out():
    found = cluster_share([1, 1, 0, math.nan, 1, 0], clusters=["a", "a", "b", "b", "c", "c"])
    assert (found.share, found.n, found.n_clusters, found.undefined) == (60.0, 5, 3, None)
    assert found.low <= 60 <= found.high


def test_many_single_answers_have_the_interval_of_a_binomial_share():
    hits = [1] * 300 + [0] * 700
    found = cluster_share(hits, clusters=None)
    exact = stats.binomtest(300, 1000).proportion_ci(method="wilson")
    assert found.low == pytest.approx(100 * exact.low, abs=0.4)
    assert found.high == pytest.approx(100 * exact.high, abs=0.4)


UNEVEN = [1, 2, 2, 3, 4, 6, 8, 12, 18, 40, 70, 160]


@pytest.mark.parametrize("sizes", [[8] * 8, UNEVEN])
def test_the_interval_of_a_share_leaves_out_one_half_where_the_test_does_and_only_there(sizes):
    draw, clusters = generator(7), np.repeat(np.arange(len(sizes)), sizes)
    outside = []
    for _ in range(100):
        share = draw.choice([0.3, 0.5, 0.6, 0.7])
        hits = draw.random(len(clusters)) < np.repeat(draw.beta(9 * share, 9 - 9 * share, len(sizes)), sizes)
        found = parity_deviation(hits.astype(float), clusters=clusters, n_resamples=499, rng=draw)
        outside.append(not found.share_low <= 50 <= found.share_high)
        assert outside[-1] == (found.p <= 0.05) == (found.ci_low > 0)
    assert 10 < sum(outside) < 90


def test_a_large_cluster_counts_for_what_it_draws_the_share_to_itself():
    # Clusters of 2, 2 and 4 answers with 1, 2 and 1 hits. Residuals (0, 1, -1)/8, of which the second is divided by
    # √(1 - 1/4) and the last by √(1 - 1/2): error² = (4/3 + 2)/64. (8²)/(4 + 4 + 16) = 8/3 clusters of one size.
    found = cluster_share([1, 0, 1, 1, 1, 0, 0, 0], clusters=[*"aabbcccc"])
    assert found.error == pytest.approx(100 * math.sqrt(10 / 3) / 8)
    half = stats.t.ppf(0.975, 8 / 3 - 1) * found.error / 100 / 0.25
    assert found.high == pytest.approx(100 / (1 + math.exp(-half)))


def test_answers_of_one_cluster_are_not_evidence_of_each_other():
    hits = [1] * 10 + [0] * 10
    apart = cluster_share(hits * 6, clusters=None)
    together = cluster_share(hits * 6, clusters=[f"c{n // 10}" for n in range(120)])
    # Ten like answers per cluster: the standard error is √10 times as large.
    assert (together.high - together.low) / (apart.high - apart.low) == pytest.approx(math.sqrt(10), rel=0.15)


@pytest.mark.parametrize(
    ("sizes", "a", "b"), [([8] * 3, 2, 2), ([8] * 8, 2, 2), ([8] * 8, 1.5, 0.5), ([8] * 30, 3, 2), (UNEVEN, 2.4, 1.6)]
)
def test_intervals_hold_the_true_share_as_often_as_they_say(sizes, a, b):
    """Clusters whose own shares vary widely, few of them too: 95 % intervals of 600 samples, three standard errors."""
    held = 0
    draw = generator(len(sizes))
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(600):
        hits = draw.random(len(clusters)) < np.repeat(draw.beta(a, b, size=len(sizes)), sizes)
        found = cluster_share(hits.astype(float), clusters=clusters)
        # Clusters that are all alike have no interval; they are rare here.
        held += math.isnan(found.low) or found.low <= 100 * a / (a + b) <= found.high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / 600) < held / 600


@pytest.mark.parametrize(
    ("hits", "clusters", "note"),
    [
        ([1, 0, 1], ["a", "a", "a"], "one cluster only"),
        ([1, 1, 1], ["a", "b", "c"], "the same share"),
    ],
)
def test_what_an_interval_cannot_say_is_noted(hits, clusters, note):
    found = cluster_share(hits, clusters=clusters)
    assert note in found.notes[0]
    assert math.isnan(found.low) and math.isnan(found.high)


def test_clusters_have_one_share_whatever_their_sizes_and_not_by_equal_counts_of_ones():
    # One of two and two of four are the same share; one of two and one of four are not.
    alike = cluster_share([1, 0, 1, 1, 0, 0], clusters=[*"aabbbb"])
    assert alike.share == 50 and "the same share" in alike.notes[0]
    unlike = cluster_share([1, 0, 1, 0, 0, 0], clusters=[*"aabbbb"])
    assert unlike.low < unlike.share < unlike.high


def test_nothing_known_is_undefined_and_bad_input_raises():
    found = cluster_share([math.nan, math.nan], clusters=None)
    assert math.isnan(found.share) and found.undefined == "every value is missing"
    with pytest.raises(UsageError, match="`hits` holds a number other than 0 and 1"):
        cluster_share([0.5], clusters=None)
    with pytest.raises(UsageError, match="`hits` has shape"):
        cluster_share([], clusters=None)
    with pytest.raises(UsageError, match="`clusters` has 1 entries"):
        cluster_share([1, 0], clusters=["a"])
    with pytest.raises(UsageError, match="`confidence`"):
        cluster_share([1, 0], clusters=None, confidence=2)
