import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from equivox.core.errors import RequestError
from equivox.statistics import adjust


def test_by_hand():
    # p sorted .01, .02, .04, .5 of 4: .01·4/1, .02·4/2, .04·4/3, .5 → .04, .04, .0533, .5.
    found = adjust({"a": 0.5, "b": 0.01, "c": 0.04, "d": 0.02}, family="four")
    assert [found.q[name] for name in "bdca"] == pytest.approx([0.04, 0.04, 0.16 / 3, 0.5])
    assert found.discoveries() == ("b", "d")
    by = adjust({"a": 0.5, "b": 0.01, "c": 0.04, "d": 0.02}, family="four", method="by")
    assert by.q["b"] == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([("bh", "fdr_bh"), ("by", "fdr_by")]))
def test_against_statsmodels(p, methods):
    mine = adjust({str(i): value for i, value in enumerate(p)}, family="drawn", method=methods[0])
    theirs = multipletests(p, method=methods[1])[1]
    assert list(mine.q.values()) == pytest.approx(theirs)


def test_undefined_tests_stay_nan_and_do_not_count():
    found = adjust({"a": 0.01, "b": math.nan, "c": 0.03}, family="task", method="bh")
    assert found.size == 2
    assert found.undefined == ("b",)
    assert math.isnan(found.q["b"])
    assert found.q["a"] == pytest.approx(0.02)
    nothing = adjust({"a": math.nan}, family="task")
    assert nothing.size == 0
    assert nothing.discoveries() == ()


def test_false_discoveries_are_controlled():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        p = np.concatenate([rng.uniform(size=30), rng.uniform(0, 0.002, size=10)])
        found = adjust({str(i): float(value) for i, value in enumerate(p)}, family="mixed")
        named = found.discoveries()
        shares.append(sum(int(name) < 30 for name in named) / max(len(named), 1))
    assert np.mean(shares) < 0.05


def test_requests_that_cannot_be_meant():
    with pytest.raises(RequestError, match="`p` is empty"):
        adjust({}, family="none")
    with pytest.raises(RequestError, match=r"`p` of 'a' is 1\.5"):
        adjust({"a": 1.5}, family="one")
    with pytest.raises(RequestError, match="`method` is 'holm'"):
        adjust({"a": 0.5}, family="one", method="holm")
