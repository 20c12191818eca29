import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from equivox.core.errors import RequestError
from equivox.statistics import adjust


def test_by_hand():
    # p sorted .01, .02, .04, .5 of 4: .01·4/1, .02·4/2, .04·4/3, .5 → .04, .04, .0533, .5.
    p = [0.5, 0.01, 0.04, 0.02]
    assert adjust(p) == pytest.approx([0.5, 0.04, 0.16 / 3, 0.04])
    assert adjust(p, method="by")[1] == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([("bh", "fdr_bh"), ("by", "fdr_by")]))
def test_against_statsmodels(p, methods):
    assert adjust(p, method=methods[0]) == pytest.approx(multipletests(p, method=methods[1])[1])


def test_undefined_tests_stay_nan_and_do_not_count():
    assert adjust([0.01, math.nan, 0.03]) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
    assert math.isnan(adjust([math.nan])[0])
    assert adjust([]) == []


def test_requests_that_cannot_be_meant():
    with pytest.raises(RequestError, match="`p` holds a number that is no probability"):
        adjust([0.2, 1.5])
    with pytest.raises(RequestError, match="`method` is 'holm'"):
        adjust([0.5], method="holm")
