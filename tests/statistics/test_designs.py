"""Blocks, unlike groups, other items, rare values, the second test, and the power of a design."""

import math

import numpy as np
import pytest
from scipy import stats
from seeded import generator

from equivox.core.errors import UsageError
from equivox.statistics import distribution_shift, inputs
from equivox.statistics.design_noise import noise_of
from equivox.statistics.encode import Answers, encode_design, encode_values
from equivox.statistics.evidence import draw_evidence


def answers(p, responses, rng):
    """Draw `responses` codes from each row of p; return them with the row that each is from."""
    codes = np.concatenate([rng.choice(len(row), size=responses, p=row) for row in p])
    return codes, np.arange(len(p)).repeat(responses)


def spoken(n_groups, per_group, gender_shift, group_shift, correlation, rng):
    """Speakers, half of them women, whose answers differ by gender, by group and by person."""
    speakers = np.arange(n_groups * per_group)
    group, gender = speakers // per_group, speakers % 2
    p = np.full((len(speakers), 8), 1 / 8)
    p *= 1 - gender_shift - group_shift
    p[speakers, gender] += gender_shift
    p[speakers, 2 + group % 6] += group_shift
    drawn = rng.gamma(p * (1 - correlation) / correlation) + 1e-300
    codes, speaker = answers(drawn / drawn.sum(axis=1, keepdims=True), 60, rng)
    return codes, group[speaker], speaker, gender[speaker]


def test_permutations_stay_within_blocks():
    # Groups a, b and blocks m, f with one speaker each: each block has 2 permutations, together 4, of which the two
    # that exchange nothing or everything give the observed distance.
    speakers = np.array(["s1", "s2", "s3", "s4"]).repeat(5)
    groups, blocks = np.array(["a", "b", "a", "b"]).repeat(5), np.array(["m", "m", "f", "f"]).repeat(5)
    values = np.array(["x", "y", "x", "y"]).repeat(5)
    found = distribution_shift(values, groups, clusters=speakers, blocks=blocks, min_count=1, rng=generator())
    assert (found.n_labellings, found.exact_cluster, found.p_cluster) == (4, True, 0.5)


def test_a_gender_difference_hides_no_accent_difference():
    # Six accents of two women and two men, an accent shift of 15 beside a gender shift of 50.
    free, blocked = [], []
    for seed in range(12):
        rng = generator([2, seed])
        codes, group, speaker, gender = spoken(6, 4, 0.5, 0.15, 0.01, rng)
        for found, blocks in ((free, None), (blocked, gender)):
            one = distribution_shift(codes, group, clusters=speaker, blocks=blocks, n_resamples=199, rng=rng)
            found.append(one.p_cluster <= 0.05)
    assert sum(blocked) >= 10
    assert sum(free) <= 4


def test_what_blocks_may_not_be():
    with pytest.raises(UsageError, match="`blocks` has 's1' in more than one block"):
        distribution_shift(["x", "y"], ["a", "a"], clusters=["s1", "s1"], blocks=["m", "f"], rng=generator())
    with pytest.raises(UsageError, match="`blocks` was given without `clusters`"):
        distribution_shift(["x", "y"], ["a", "b"], clusters=None, blocks=["m", "f"], rng=generator())


def test_few_varied_speakers_against_many_alike():
    # No effect: 12 speakers who differ widely, 60 who hardly do. Permutations alone reject most of these.
    plain, guarded = [], []
    for seed in range(20):
        rng = generator([3, seed])
        group = np.repeat([0, 1], [12, 60])
        p = np.stack([rng.dirichlet(np.full(6, 1 / 6) * ((1 - r) / r)) for r in np.where(group == 0, 0.2, 0.02)])
        codes, speaker = answers(p, 40, rng)
        found = distribution_shift(codes, group[speaker], clusters=speaker, n_resamples=199, rng=rng)
        observed = found.ntvd - 1e-9 * found.ntvd
        plain.append((1 + (found.null_cluster >= observed).sum()) / 200 <= 0.05)
        guarded.append(found.p_cluster <= 0.05)
        assert found.p_cluster >= found.p_noise
    assert sum(plain) >= 10
    assert sum(guarded) <= 3


def test_a_group_of_one_speaker_borrows_the_noise_of_the_others():
    """Thirteen speakers of one kind, one of them a group alone: 80 samples without an effect, 5 % and two errors."""
    draw = generator(9)
    group, speaker = np.repeat([0] + [1] * 12, 50), np.repeat(np.arange(13), 50)
    rejected, held = 0, 0
    for _ in range(80):
        own = draw.dirichlet(np.full(4, 0.25 * 9), size=13)  # Two answers of one speaker are correlated by .1.
        codes, _ = answers(own, 50, draw)
        found = distribution_shift(codes, group, clusters=speaker, min_count=1, n_resamples=39, rng=draw)
        assert "a group has one cluster: its noise is taken to be like that of the others" in found.notes
        rejected += found.p_noise <= 0.05
        held += found.ci_low == 0.0
    assert rejected <= 8
    assert held >= 72
    # Two speakers have noise to lend, one has none.
    for n_speakers, note in ((3, "its noise is taken to be like"), (2, "treats responses as independent")):
        few = slice(50 * n_speakers)
        alone = distribution_shift(codes[few], group[few], clusters=speaker[few], min_count=1, n_resamples=39, rng=draw)
        assert any(note in told for told in alone.notes)


def test_units_that_never_differ_suppose_one_that_moves_the_most_frequent_value_to_the_rarest():
    # Four units answer x, x, y, z, z, z in both groups: nothing moves the groups apart. One more of five moves a fifth
    # from z, which is given most, to y.
    said, group, unit = ["x", "x", "y", "z", "z", "z"] * 8, np.tile(np.repeat([0, 1], 6), 4), np.repeat(range(4), 12)
    answers = Answers.of([encode_values(inputs.values(said, "values"), 1)])
    found = noise_of(answers, encode_design(group, unit, None), generator(), weights=None)
    assert found.alike and found.shared is not None and not found.shared.any()
    assert [own.tolist() for own in found.supposed] == [[[0, 0, 0], [0, 0.2, -0.2]]] * 2


def test_p_of_noise_is_students_where_the_clusters_of_a_group_are_alike():
    # All of group a say x, so that the noise that was seen is that of group b. Two values of two groups have one
    # deviation: its error and degrees of freedom give the p of Student's t.
    codes = np.array([0] * 30 + [0] * 3 + [1] * 7 + [0] * 9 + [1] + [0] * 6 + [1] * 4)
    group, cluster = np.repeat([0, 1], 30), np.repeat(np.arange(6), 10)
    design = encode_design(group, cluster, None)
    given = encode_values(inputs.values(codes, "values"), 1)
    evidence = draw_evidence({"said": given}, design, 20_000, np.random.default_rng(3))
    found = distribution_shift(codes, group, clusters=cluster, min_count=1, n_resamples=20_000, rng=generator(3))
    assert evidence.model.alike
    error = float(evidence.model.errors(seen=True)[0, 0])
    expected = 2 * stats.t.sf(0.4 / 2 / error, evidence.model.degrees[0])
    # 1,000 draws: three standard errors of their share.
    assert found.p_noise == pytest.approx(expected, abs=3 * math.sqrt(expected / 1_000))
