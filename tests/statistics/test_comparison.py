import itertools
import math

import numpy as np
import pytest

from equivox.errors import RequestError
from equivox.statistics import compare_shift, ntvd


def generator(seed=1):
    return np.random.default_rng(seed)


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


def test_against_every_swap():
    rng = generator(2)
    groups, clusters = design(4, 6)
    a, b = model(rng, 0.6, groups), model(rng, 0.1, groups)
    found = compare_shift(a, b, groups, clusters=clusters, min_count=1, rng=rng)
    null = []
    for flips in itertools.product([False, True], repeat=4):
        swap = [flips[int(name[1:])] for name in clusters]
        one = [y if s else x for x, y, s in zip(a, b, swap, strict=True)]
        two = [x if s else y for x, y, s in zip(a, b, swap, strict=True)]
        null.append(ntvd(shares(one, groups)) - ntvd(shares(two, groups)))
    assert found.difference == pytest.approx(ntvd(shares(a, groups)) - ntvd(shares(b, groups)))
    assert found.exact
    assert found.p == pytest.approx(np.mean(np.abs(null) >= abs(found.difference) - 1e-9))


def test_order_of_the_models_only_turns_the_sign():
    rng = generator(3)
    groups, clusters = design(12, 10)
    a, b = model(rng, 0.5, groups), model(rng, 0.0, groups)
    one = compare_shift(a, b, groups, clusters=clusters, rng=generator())
    two = compare_shift(b, a, groups, clusters=clusters, rng=generator())
    assert one.difference == pytest.approx(-two.difference)
    assert one.p == pytest.approx(two.p, abs=0.01)
    assert one.ci_low == pytest.approx(-two.ci_high, abs=2)


def test_a_model_against_itself():
    rng = generator(4)
    groups, clusters = design(8, 10)
    a = model(rng, 0.4, groups)
    found = compare_shift(a, a, groups, clusters=clusters, rng=rng)
    assert found.difference == 0.0
    assert found.p == 1.0
    assert found.ci_low <= 0.0 <= found.ci_high


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
    assert lost.undefined == "no item that both models answered in group 'h'"


def test_requests_that_cannot_be_meant():
    groups, clusters = design(4, 3)
    with pytest.raises(RequestError, match="`values_b` has 1 entries"):
        compare_shift([["x"]] * 12, [["x"]], groups, clusters=clusters, rng=generator())
    with pytest.raises(RequestError, match="`min_count` is 0"):
        compare_shift([["x"]] * 12, [["x"]] * 12, groups, clusters=clusters, min_count=0, rng=generator())
