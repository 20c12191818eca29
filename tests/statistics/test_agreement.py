import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from equivox.core.errors import UsageError
from equivox.statistics import clustering, krippendorff_alpha


def test_published_example():
    # Krippendorff 2011, example C: four observers, twelve units, values 1 to 5.
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = list(zip(*observers, strict=True))
    found = krippendorff_alpha(units)
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    assert found.n_pairable_units == 11


def test_by_hand():
    # aa, bb, ab: coincidences a–a 2, b–b 2, a–b 1 each way; n = 6, 3 of each.
    # D_o = 2/6, D_e = 2·3·3/(6·5) = .6; 1 − (1/3)/.6 = 4/9.
    assert krippendorff_alpha([["a", "a"], ["b", "b"], ["a", "b"]]).alpha == pytest.approx(4 / 9)


def test_ratings_in_every_form():
    units = [["a", "b", None], ["b", "b", "a"], ["a", "a", "a"], [None, "b", None]]
    one = krippendorff_alpha(units)
    assert one.n_pairable_units == 3
    frame = pd.DataFrame(units)
    for form in (frame, frame.astype("category"), np.array(units, dtype=object), pa.array(units), map(tuple, units)):
        assert krippendorff_alpha(form) == one
    numbers = [[1, 2, math.nan], [2, 2, 1], [1, 1, 1], [math.nan, 2, math.nan]]
    assert krippendorff_alpha(np.array(numbers)).alpha == pytest.approx(one.alpha)
    assert krippendorff_alpha(pd.DataFrame(numbers)).alpha == pytest.approx(one.alpha)


def test_a_text_is_one_rating():
    assert krippendorff_alpha(["aa", "bb"]).undefined == "no unit has two ratings"


def test_perfect_and_systematic():
    assert krippendorff_alpha([["a", "a"], ["b", "b"]]).alpha == pytest.approx(1.0)
    assert krippendorff_alpha([["a", "b"], ["a", "b"]]).alpha < 0


def test_constant_ratings_are_no_agreement():
    found = krippendorff_alpha([["a", "a"], ["a", "a"]])
    assert math.isnan(found.alpha)
    assert found.undefined == "all ratings are 'a': chance agreement is complete"
    alone = krippendorff_alpha([["a", None], ["b", math.nan]])
    assert math.isnan(alone.alpha)
    assert alone.undefined == "no unit has two ratings"


def test_order_of_units_and_annotators_is_nothing():
    units = [["a", "b", None], ["b", "b", "a"], ["a", "a", "a"]]
    one = krippendorff_alpha(units).alpha
    assert krippendorff_alpha([unit[::-1] for unit in units[::-1]]).alpha == pytest.approx(one)


def test_clusters_against_labels_by_hand():
    # Labels aabb in clusters 1 1 1 2: H(label) = ln 2, H(cluster) = 2 ln 2 - .75 ln 3, H(both) = 1.5 ln 2. What both
    # have in common is I = H(label) + H(cluster) - H(both); homogeneity is I / H(label), completeness I / H(cluster).
    label, cluster = math.log(2), 2 * math.log(2) - 0.75 * math.log(3)
    common = label + cluster - 1.5 * math.log(2)
    expected = (common / label, common / cluster, 2 * common / (label + cluster))
    assert clustering("aabb", "1112") == pytest.approx(expected)
    # Turned round, homogeneity is completeness.
    assert clustering("1112", "aabb") == pytest.approx((expected[1], expected[0], expected[2]))
    assert clustering("aaaa", "1122") == (1.0, 0.0, 0.0) and clustering("aa", "11") == (1.0, 1.0, 1.0)
    assert clustering("abab", "1122") == pytest.approx((0, 0, 0))


def test_requests_that_cannot_be_meant():
    with pytest.raises(UsageError, match="`ratings` is empty"):
        krippendorff_alpha([])
