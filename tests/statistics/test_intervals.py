import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import distribution_shift, inputs, joint_shift, ntvd, ntvd_bounds, share_bounds
from equivox.statistics.encode import Answers, encode_design, encode_values
from equivox.statistics.evidence import draw_evidence
from equivox.statistics.intervals import invert, mean_interval, spreads
from equivox.statistics.noise import (
    MOST_BORROWED,
    Noise,
    _alikeness,
    _degrees,
    _lent,
    _pull,
    _pulls,
    hidden_errors,
    noise_over_clusters,
    noise_over_responses,
    of_deviations,
)


def test_response_noise_is_the_multinomial_covariance():
    # Group a: 50, 30, 20 of 100. Covariance of its shares: (diag p − p pᵀ) / 99.
    codes = np.repeat([0, 1, 2, 0, 1], [50, 30, 20, 10, 10])
    group = np.repeat([0, 1], [100, 20])
    given = Answers(np.arange(120), codes, [slice(0, 3)])
    factors = noise_over_responses(given, encode_design(group, None, None)).factors
    p = np.array([0.5, 0.3, 0.2])
    assert factors[0].T @ factors[0] == pytest.approx((np.diag(p) - np.outer(p, p)) / 99, abs=1e-12)


def test_multi_valued_responses_carry_their_dependence():
    # Every response says x and y together, or z twice: P = (.25, .25, .5) from 4 responses, two of each kind.
    # Pulls: ±(1, 1, −2)/16 each, so Σ pull pullᵀ = 4 · vvᵀ/256 with v = (1, 1, −2); times 4/3.
    rows, codes = np.arange(4).repeat(2), np.array([0, 1, 0, 1, 2, 2, 2, 2])
    given = Answers(rows, codes, [slice(0, 3)])
    factors = noise_over_responses(given, encode_design(["a"] * 4, None, None)).factors
    v = np.array([1, 1, -2])
    assert factors[0].T @ factors[0] == pytest.approx(np.outer(v, v) * 4 / 256 * 4 / 3, abs=1e-12)


def over_clusters(counts, group, rng, held=None):
    """Return the noise of answers given as clusters x values."""
    counts = np.asarray(counts)
    cluster = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    codes = np.concatenate([np.repeat(np.arange(counts.shape[1]), row) for row in counts])
    design = encode_design(np.asarray(group)[cluster], cluster, None if held is None else np.asarray(held)[cluster])
    return noise_over_clusters(Answers(np.arange(len(codes)), codes, [slice(0, counts.shape[1])]), design, rng)


def test_cluster_noise_against_resampled_clusters():
    rng = generator(2)
    counts = rng.multinomial(30, rng.dirichlet(np.full(4, 3.0), size=80))
    group = np.arange(80) % 2
    found = over_clusters(counts, group, rng)
    own = counts[group == 0]
    drawn = own[rng.integers(0, 40, size=(20_000, 40))].sum(axis=1)
    shares = drawn / drawn.sum(axis=1, keepdims=True)
    # The plain bootstrap leaves out the factor 40/39. Shrinkage gives the simpler covariance a weight of 4/43.
    assert found.factors[0].T @ found.factors[0] == pytest.approx(np.cov(shares.T) * 40 / 39, rel=0.2, abs=1e-4)


def test_noise_of_independent_responses_is_the_multinomial_s():
    # 24 speakers alike, 600 answers each: a share of one half among 7,200 answers has the error √(.25/7200) = .00589,
    # and half the difference of two has that over √2.
    rng = generator(3)
    errors = [
        over_clusters(rng.multinomial(600, [0.5, 0.5], size=24), np.arange(24) % 2, rng).errors()[0, 0]
        for _ in range(40)
    ]
    assert np.mean(errors) == pytest.approx(math.sqrt(0.25 / 7200 / 2), rel=0.05)


def test_a_value_that_a_group_never_gave_is_not_impossible():
    counts = np.array([[9, 1, 0], [8, 2, 0], [9, 1, 0], [5, 3, 2], [6, 2, 2], [7, 2, 1]])
    found = over_clusters(counts, np.repeat([0, 1], 3), generator(4))
    assert found.factors[0][:, 2].any()


def test_agreeing_clusters_leave_noise():
    counts = np.array([[10, 0], [10, 0], [10, 0], [10, 0], [0, 10], [0, 10], [0, 10], [0, 10]])
    found = over_clusters(counts, np.repeat([0, 1], 4), generator(5))
    # One more speaker of five moves a share of 1/5: as the other group answers, and with the rarest value.
    assert found.alike
    (of_a, of_b) = found.supposed
    assert of_a == pytest.approx(np.array([[-0.2, 0.2], [0, 0]]))
    assert of_b == pytest.approx(np.array([[0.2, -0.2], [0.2, -0.2]]))
    # Where all agree on everything, the distance is 0 and the interval is not.
    values, speakers = [["x"], ["y"]] * 12, np.arange(12).repeat(2)
    same = distribution_shift(values, speakers % 2, clusters=speakers, min_count=1, rng=generator())
    assert (same.ntvd, same.estimate, same.ci_low) == (0, 0, 0)
    assert 5 < same.ci_high < 50
    assert found.errors().min() > 0.05


def test_blocks_are_no_noise():
    # Men and women of each group answer unlike, in the same way: around their blocks nothing is left but chance.
    rng = generator(6)
    p = np.where(np.arange(24)[:, None] % 2 == 0, [0.9, 0.1], [0.1, 0.9])
    counts, group = np.stack([rng.multinomial(100, row) for row in p]), np.repeat([0, 1], 12)
    free = over_clusters(counts, group, rng)
    blocked = over_clusters(counts, group, rng, held=np.arange(24) % 2)
    assert blocked.errors().max() < 0.25 * free.errors().min()


def test_the_variance_of_a_deviation_from_the_mean_of_independent_groups():
    # P_1 - (P_1 + P_2 + P_3)/3 is (2 P_1 - P_2 - P_3)/3.
    variances = np.array([[9.0, 1.0], [18.0, 1.0], [36.0, 1.0]])
    assert of_deviations(variances) == pytest.approx(np.array([[10, 2 / 3], [13, 2 / 3], [19, 2 / 3]]))
    assert of_deviations(np.array([[3.0], [5.0]])) == pytest.approx(np.array([[2], [2]]))


@pytest.mark.parametrize("alpha", [4.0, 60.0])
def test_groups_that_vary_like_a_dirichlet_borrow_its_precision(alpha):
    shares = generator(8).dirichlet(alpha * np.array([0.5, 0.3, 0.2]), size=4_000)
    assert _alikeness(shares, np.full(4_000, 1e9)) == pytest.approx(alpha, rel=0.1)
    # With as many answers of each group as that, noise of the answers is taken off.
    counts = np.stack([generator(n).multinomial(40, own) for n, own in enumerate(shares)])
    assert _alikeness(counts / 40, np.full(4_000, 40.0)) == pytest.approx(alpha, rel=0.25)


def test_groups_without_a_common_value_borrow_one_answer_and_alike_ones_all():
    assert _alikeness(np.eye(2), np.full(2, 100.0)) == 1
    assert _alikeness(np.full((3, 2), 0.5), np.full(3, 100.0)) == pytest.approx(MOST_BORROWED)
    assert _alikeness(np.full((2, 2), 0.5), np.array([0.0, 5.0])) == 1
    # By hand: 10 and 30 answers, mean (.5, .5), within 1/2, between 10 · .18 + 30 · .02 = 2.4, and 40 - 1000/40 = 15.
    spread = (2.4 - 0.5) / (15 * 0.5)
    assert _alikeness(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([10.0, 30.0])) == pytest.approx(1 / spread - 1)


def test_a_group_without_freedom_has_the_correlation_of_the_others():
    # Correlations of (1.9 - 1)/9 = 0.1 with 3 degrees of freedom and (2.6 - 1)/4 = 0.4 with 1: 0.175 on average.
    found = _lent(np.array([[1.9], [2.6], [77.0]]), np.array([3.0, 1.0, 0.0]), np.array([[10.0], [5.0], [21.0]]))
    assert found == pytest.approx(np.array([[1.9], [2.6], [1 + 20 * 0.175]]))
    # Clusters that are less alike than chance lend nothing, and nor do clusters of one answer.
    assert _lent(np.array([[0.5], [1.0]]), np.array([2.0, 0.0]), np.array([[10.0], [5.0]]))[1] == 1
    assert _lent(np.array([[3.0], [1.0]]), np.array([2.0, 0.0]), np.array([[1.0], [5.0]]))[1] == 1


def test_a_pull_is_a_residual_over_what_its_own_cluster_takes_of_the_mean():
    # Clusters 3 + 1, 1 + 3 and 2 + 2 of 12: residuals of ±1/12 and 0, over √(1 - 4/12).
    own = np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    half = 1 / 12 / math.sqrt(2 / 3)
    assert _pull(own, 12.0) == pytest.approx(np.array([[half, -half], [-half, half], [0, 0]]))
    assert _pull(np.zeros((2, 2)), 0.0).tolist() == [[0, 0], [0, 0]]
    # Unequal clusters: 6 + 2 and 1 + 3, of 12. Shares 7/12 and 5/12; the residual of the first is 6 - 8 · 7/12.
    pulls = _pull(np.array([[6.0, 2.0], [1.0, 3.0]]), 12.0)
    assert pulls[:, 0] == pytest.approx([(6 - 14 / 3) / 12 / math.sqrt(4 / 12), (1 - 7 / 3) / 12 / math.sqrt(8 / 12)])


def test_a_lone_cluster_of_a_stratum_lends_its_weight_to_the_others():
    # Two clusters of stratum 0 pull; that of stratum 1 has as many answers, which is as much noise again for two.
    own = np.array([[3.0, 1.0], [1.0, 3.0], [0.0, 4.0]])
    pulls, freedom = _pulls(own, np.array([0, 0, 1]), [slice(0, 2)])
    alone, _ = _pulls(own[:2], np.array([0, 0]), [slice(0, 2)])
    # Alone they are two thirds as many answers: pulls are per answer of the group, of 8 then and of 12 here.
    assert pulls == pytest.approx(alone * 8 / 12 * math.sqrt(1 + 16 / 32)) and freedom == 1
    # Where every cluster is alone, they are one stratum.
    assert _pulls(own, np.array([0, 1, 2]), [slice(0, 2)])[0] == pytest.approx(_pulls(own, None, [slice(0, 2)])[0])
    assert _pulls(own, None, [slice(0, 2)])[1] == 2


def test_noise_has_the_spread_of_student_s_t():
    # One column, two groups of which one is noisy: its deviation is half a normal; with 5 degrees a t, of variance 5/3.
    noise = Noise([np.ones((1, 1)), np.zeros((1, 1))], (5.0,), math.inf)
    drawn = noise.draw(400_000, generator(3))[:, 0, 0]
    single, joint = noise.scales(400_000, [5.0, math.inf], generator(4))
    assert (2 * drawn * single).var() == pytest.approx(5 / 3, rel=0.03)
    assert (2 * drawn * joint).var() == pytest.approx(1, rel=0.02)
    assert noise.errors()[0, 0] == pytest.approx(0.5)


def test_clear_shift_of_two_values_is_the_difference_of_two_proportions():
    # 300 of 400 against 100 of 400: nTVD = 50 points, far from zero, so the interval is Wald's:
    # 50 ± 1.96 · 100 · √(.75 · .25 · 2 / 399) = 50 ± 6.01.
    values = [["x"]] * 300 + [["y"]] * 100 + [["x"]] * 100 + [["y"]] * 300
    found = distribution_shift(values, ["a"] * 400 + ["b"] * 400, clusters=None, n_resamples=1, rng=generator())
    half = 196 * math.sqrt(0.75 * 0.25 * 2 / 399)
    assert (found.ci_low, found.ci_high) == pytest.approx((50 - half, 50 + half), abs=0.7)


def test_confidence_is_heard():
    values = [["x"]] * 60 + [["y"]] * 40 + [["x"]] * 40 + [["y"]] * 60
    widths = []
    for confidence in (0.5, 0.8, 0.99):
        found = distribution_shift(
            values, ["a"] * 100 + ["b"] * 100, clusters=None, n_resamples=1, confidence=confidence, rng=generator()
        )
        widths.append(found.ci_high - found.ci_low)
    assert widths == sorted(widths)


def test_no_deviation_and_no_noise():
    nothing = np.zeros((2, 3))
    assert invert(nothing, np.zeros((50, 2, 3)), nothing, [slice(0, 3)], 0.95) == (0.0, 0.0)
    noise = generator(4).normal(0, 0.05, size=(500, 2, 3))
    low, high = invert(nothing, noise, np.full((2, 3), 0.05), [slice(0, 3)], 0.95)
    # Nothing but noise, of which the interval is as wide as its upper half.
    lengths = 50 * np.abs(noise[:, 0] - noise[:, 1]).sum(axis=1)
    assert (low, high) == pytest.approx((0, np.quantile(lengths, 0.975) - np.quantile(lengths, 0.5)))
    # Noise that is in part supposed may hide any distance that it reaches in 95 of 100 draws.
    low, high = invert(nothing, noise, np.full((2, 3), 0.05), [slice(0, 3)], 0.95, alike=True)
    assert (low, high) == pytest.approx((0, np.quantile(lengths, 0.95)))
    certain = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0]])  # nTVD 100 without any noise
    assert invert(certain, np.zeros((50, 2, 3)), nothing, [slice(0, 3)], 0.95) == pytest.approx((100, 100), abs=0.01)


def test_the_interval_may_lie_below_the_plug_in():
    # 20 values, 6 groups of 50, no shift: the plug-in is about 27, all of it noise.
    rng = generator(5)
    found = []
    for _ in range(20):
        values = [[f"v{code}"] for code in rng.integers(0, 20, size=300)]
        groups = [f"g{group}" for group in range(6)] * 50
        found.append(distribution_shift(values, groups, clusters=None, min_count=1, n_resamples=1, rng=rng))
    assert sum(shift.ci_low > 0 for shift in found) <= 3
    assert np.mean([shift.ci_high for shift in found]) < np.mean([shift.ntvd for shift in found])


@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_sparsest_spread_keeps_what_noise_reaches_nowhere_among_so_many(n_groups):
    # The largest of n normal numbers is about √(2 log n), 3.77 of 1,200. Two groups deviate alike, and count once.
    n_values = {2: 1_200, 3: 400}[n_groups]
    largest = math.sqrt(2 * math.log(1_200))
    deviations = np.zeros((n_groups, n_values))
    deviations[0, :4] = [largest + 0.02, largest - 0.02, 2.6, 9.0]
    deviations[1] = -deviations[0]
    noise = generator().normal(size=(50, n_groups, n_values))
    error = np.full_like(deviations, 0.25)
    sparsest, _ = spreads(deviations * error, noise, error, [slice(0, n_values)])
    assert np.flatnonzero(sparsest[0]).tolist() == np.flatnonzero(sparsest[1]).tolist() == [0, 3]
    # Where noise could reach all of them, the largest is kept.
    few, _ = spreads(deviations / 9, noise, np.ones_like(deviations), [slice(0, n_values)])
    assert np.flatnonzero(few[0]).tolist() == [3]


def test_the_densest_spread_gives_all_the_size_that_their_mean_square_allows():
    # Two deviate by 2 errors of 0.5, so the surplus is 4 - 0.973. The mean square of the draws is 0 or 2: its standard
    # deviation is 1, and √(1 + 2 · 3.027) times that at this size. The third deviates by 4 errors, and is kept.
    deviations = np.array([[1.0, -1.0, 2.0], [-1.0, 1.0, -2.0]])
    noise = np.stack([np.zeros((2, 3)), np.full((2, 3), math.sqrt(2) * 0.5)])
    _, densest = spreads(deviations, noise, np.full((2, 3), 0.5), [slice(0, 3)])
    size = math.sqrt(3.027 + math.sqrt(1 + 2 * 3.027)) * 0.5
    assert densest == pytest.approx(np.array([[size, -size, 2], [-size, size, -2]]))


def evidence_of(columns, group, cluster, items=None, seed=1):
    """Return the evidence of attributes, each given as one code per response."""
    values = {name: inputs.values([str(code) for code in codes], name) for name, codes in columns.items()}
    design = encode_design(group, cluster, None, None, items)
    return draw_evidence({name: encode_values(own, 1) for name, own in values.items()}, design, 99, generator(seed))


def test_further_draws_have_the_spread_of_student_s_t_with_the_degrees_of_what_is_tested():
    # Twelve speakers answer a question of two values, about which some agree more, and one of thirty values.
    rng, speaker = generator(), np.arange(12).repeat(30)
    often = np.where(np.arange(12) < 4, 0.9, 0.5)
    columns = {"few": rng.random(360) < often[speaker], "many": rng.integers(0, 30, 360)}
    found = evidence_of(columns, speaker % 2, speaker)
    seen = found.model.errors(seen=True)[:, :2]
    for places, degrees in (([0], found.model.degrees[0]), ([0, 1], found.model.joint_degrees)):
        drawn = np.concatenate(list(found.more_noise(20_000, np.arange(2), places)))
        assert drawn.std(axis=0) / seen == pytest.approx(math.sqrt(degrees / (degrees - 2)), abs=0.015)
    assert found.model.degrees[0] < 0.6 * found.model.joint_degrees


def test_many_symmetric_values_give_the_normal_interval() -> None:
    values = [place / 400 for place in range(401)]
    # n evenly spaced values on [0, 1]: mean 1/2, variance (n + 1) / (12 (n − 1)) = 402 / 4800.
    half = 1.96 * math.sqrt(402 / 4800 / 401)
    low, high = mean_interval(values, rng=np.random.default_rng(0))
    assert (low, high) == pytest.approx((0.5 - half, 0.5 + half), abs=0.001)


def test_equal_values_have_no_interval() -> None:
    assert all(math.isnan(end) for end in mean_interval([1.0, 1.0, 1.0], rng=np.random.default_rng(0)))


@pytest.mark.parametrize("values", [["x"] * 16 + ["y"] * 16, [["x", "y"]] * 16 + [["x"]] * 16])
def test_responses_that_agree_within_groups_have_the_noise_of_as_many_clusters(values):
    # The noise of 16 answers that agree is unknown, not zero, whether they have clusters of their own or none.
    alone, clustered = (
        distribution_shift(values, ["a"] * 16 + ["b"] * 16, clusters=clusters, min_count=1, rng=generator())
        for clusters in (None, range(32))
    )
    assert (alone.ci_low, alone.ci_high) == pytest.approx((clustered.ci_low, clustered.ci_high), abs=2)
    # At 95 % up to 3/16 of a group's answers that were not seen may be otherwise (rule of three).
    assert alone.ntvd * (1 - 2 * 3 / 16) < alone.ci_low < alone.ntvd * (1 - 3 / 16)


@pytest.mark.parametrize("n", [6, 10, 40, 200])
@pytest.mark.parametrize("apart", [False, True])
def test_units_that_agree_in_what_they_say_of_groups_leave_an_interval(n: int, apart: bool) -> None:
    """A model that answers every one of n swapped texts alike may yet answer 3 / n of others otherwise (rule of three).

    The same holds where it says x of one group and y of the other, each time. Neither interval had any width.
    """
    values = ["x"] * n + ["y"] * n if apart else ["xyz"[unit % 3] for unit in range(n)] * 2
    units = [*range(n)] * 2
    found = distribution_shift(values, ["a"] * n + ["b"] * n, clusters=units, min_count=1, rng=generator())
    near, far = (100 - found.ci_high, 100 - found.ci_low) if apart else (found.ci_low, found.ci_high)
    assert near == pytest.approx(0, abs=0.01)
    # Few units leave Student's t with few degrees of freedom.
    assert 0.7 * 300 / n < far < 1.6 * 300 / n
    assert found.ci_low - 1e-9 <= found.estimate <= found.ci_high + 1e-9
    # A second question that is answered in the same way has the same interval.
    asked = {"first": values, "second": values}
    both = joint_shift(asked, ["a"] * n + ["b"] * n, clusters=units, min_count=1, n_resamples=99, rng=generator())
    for one in both.attributes.values():
        assert (one.ci_low, one.ci_high) == pytest.approx((found.ci_low, found.ci_high), rel=0.15, abs=0.5)


@pytest.mark.parametrize("n_values", [1, 9])
def test_the_size_of_noise_has_the_degrees_of_the_clusters_less_the_groups_for_each_value(n_values):
    # Of 100 normal pulls in each of two groups, all values have as much noise and none depends on another.
    drawn = generator(7).normal(size=(60, 2, 100, n_values))
    found = [1 / _degrees([(own, np.zeros(n_values), 99.0) for own in both], [slice(0, n_values)]) for both in drawn]
    assert 1 / np.mean(found) == pytest.approx(198 * n_values, rel=0.1)


def test_two_values_have_no_more_degrees_than_welch_s():
    # How many of ten answers are yes. Leaving out each of four alike far from their mean shows little of the noise.
    said = [2, 2, 8, 8], [4, 5, 6, 5, 4, 5, 6, 5, 5, 4, 6, 5]
    codes = np.concatenate([np.arange(10) < yes for own in said for yes in own])
    group, cluster = np.repeat([0, 1], [40, 120]), np.arange(16).repeat(10)
    degrees = evidence_of({"said": codes}, group, cluster).model.degrees
    assert degrees == pytest.approx((stats.ttest_ind(*said, equal_var=False).df,))
    # A speaker with more answers than all others together leaves hardly any degrees.
    codes, group, cluster = (np.concatenate([own, own[30:40].repeat(9)]) for own in (codes, group, cluster))
    assert evidence_of({"said": codes}, group, cluster).model.degrees[0] < 1.5


def test_an_attribute_of_few_clusters_has_their_degrees_beside_one_of_many():
    # Six of 24 speakers give an answer that counts; all of them answer the other question.
    rng, speaker = generator(), np.arange(24).repeat(20)
    said = [str(rng.random() < 0.2 * (own % 5)) if own < 6 else None for own in speaker]
    few = speaker < 6
    alone = evidence_of({"few": np.array(said)[few]}, speaker[few] % 2, speaker[few]).model.degrees
    values = {"few": said, "many": [str(code) for code in rng.integers(0, 30, 480)]}
    occurrences = {name: encode_values(inputs.values(own, name), 1) for name, own in values.items()}
    both = draw_evidence(occurrences, encode_design(speaker % 2, speaker, None, None, None), 99, generator(1))
    assert both.model.degrees[0] == pytest.approx(alone[0])


def test_degrees_of_noise_are_those_of_leaving_out_each_cluster_by_hand():
    # Squared pulls 4, 1 and 1 in one group and a variance of 4 in the other. Without each cluster, 2, 5 and 5 are left,
    # times 3/2 for one cluster less, times 2 / (2 + 4) degrees: 1, 2.5 and 2.5. A deviation has half of the difference
    # of both groups, so that the two errors add up to the root of the sum of both variances.
    one, other = np.array([[2.0], [1.0], [1.0]]), np.zeros((3, 1))
    found = _degrees([(one, np.zeros(1), 2.0), (other, np.array([4.0]), 2.0)], [slice(0, 1)])
    sizes = np.sqrt([5, 6.5, 6.5])
    assert found == pytest.approx(1 / (2 * 2 / 3 * ((sizes - sizes.mean()) ** 2).sum() / sizes.mean() ** 2))


def test_errors_that_labels_did_not_show_by_hand():
    shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    # If 1 - .025^(1/10) of all labels were wrong, ten would show none in 2.5 %; a normal number exceeds 1.96 as often.
    unseen = hidden_errors(shares, 0, 10.0, 0.025, seen=False, left=0.5)
    moved = 0.5 * (1 - 0.025**0.1) / 1.959964
    # Towards the mean of the groups, and from the first value to the rarest one.
    assert unseen == pytest.approx(moved * np.array([[-0.2, 0, 0.2], [-1, 1, 0]]), rel=1e-6)
    seen = hidden_errors(shares, 1, 9.0, 0.025, seen=True, left=1.0)
    assert seen == pytest.approx(np.array([[0.2, 0, -0.2], [0, 1, -1]]) / 10)


def test_share_by_hand():
    # 30 of 50, 50 missing: from 30/100 to 80/100.
    assert share_bounds(30, 50, 50).low == 30.0
    assert share_bounds(30, 50, 50).high == 80.0
    nothing = share_bounds(0, 0, 4)
    assert math.isnan(nothing.observed)
    assert (nothing.low, nothing.high) == (0.0, 100.0)


def fillings(counts, missing, extra):
    """Every way to give the missing answers a value, with `extra` values nobody gave."""
    width = len(counts[0]) + extra
    padded = [[*row, *[0] * extra] for row in counts]
    per_group = [list(itertools.combinations_with_replacement(range(width), m)) for m in missing]
    for chosen in itertools.product(*per_group):
        filled = np.array(padded, dtype=float)
        for group, codes in enumerate(chosen):
            for code in codes:
                filled[group, code] += 1
        yield ntvd(filled)


@pytest.mark.parametrize(
    ("counts", "missing"),
    [([[3, 1], [1, 2]], [1, 2]), ([[2, 2, 1], [1, 0, 4]], [2, 1]), ([[2, 1], [1, 1], [0, 3]], [1, 1, 1])],
)
def test_bounds_against_every_filling(counts, missing):
    found = ntvd_bounds(counts, missing)
    every = list(fillings(counts, missing, extra=len(counts)))
    assert found.high == pytest.approx(max(every))
    assert found.low <= min(every) + 1e-9
    assert found.observed == pytest.approx(ntvd(counts))


def test_low_is_reached_when_fractions_are_whole():
    # b misses ten answers; as the second value they make both groups (10, 10).
    found = ntvd_bounds([[10, 10], [10, 0]], [0, 10])
    assert found.low == pytest.approx(0.0, abs=1e-9)
    # As a's value, two of b's ten bring b to (.2, .8); the third group comes to the middle of two that share nothing.
    assert ntvd_bounds([[10, 0], [0, 8]], [0, 2]).low == pytest.approx(80.0)
    assert ntvd_bounds([[4, 0], [0, 4], [3, 1]], [0, 0, 4]).low == pytest.approx(50.0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_any_truth_lies_within(rows, missing):
    counts = np.array([[row[0] + 1, *row[1:]] for row in rows])
    absent = np.array(missing[: len(counts)])
    found = ntvd_bounds(counts, absent.tolist())
    assert found.low - 1e-7 <= found.observed <= found.high + 1e-7
    rng = np.random.default_rng(1)
    for _ in range(5):
        filled = counts + np.stack([rng.multinomial(m, np.full(3, 1 / 3)) for m in absent])
        assert found.low - 1e-7 <= ntvd(filled) <= found.high + 1e-7


def test_nothing_missing_leaves_no_room():
    found = ntvd_bounds([[7, 2, 1], [5, 2, 3]], [0, 0])
    assert (found.low, found.high) == pytest.approx((20.0, 20.0))
    assert found.n_missing == 0


def test_a_group_without_answers_may_have_said_anything():
    found = ntvd_bounds([[5, 5], [0, 0]], [0, 10])
    assert math.isnan(found.observed)
    assert (found.low, found.high) == pytest.approx((0.0, 100.0), abs=1e-9)


def test_requests_that_cannot_be_meant():
    with pytest.raises(UsageError, match="`hits` is 3"):
        share_bounds(3, 2, 0)
    with pytest.raises(UsageError, match="both 0"):
        share_bounds(0, 0, 0)
    with pytest.raises(UsageError, match="`counts` has shape"):
        ntvd_bounds([[1, 2]], [0])
    with pytest.raises(UsageError, match="`missing` has 1 entries"):
        ntvd_bounds([[1, 2], [2, 1]], [0])
    with pytest.raises(UsageError, match="no count"):
        ntvd_bounds([[1, 2], [2, 1]], [0, -1])
    with pytest.raises(UsageError, match="without known or missing"):
        ntvd_bounds([[1, 2], [0, 0]], [0, 0])
