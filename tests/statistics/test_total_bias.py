import math

import pytest

from equivox.core.errors import RequestError
from equivox.statistics import total_bias_score


def test_by_hand():
    # M1: 1, 2, 3 has mean 2 and population sd √(2/3); M2: 0, 0, 3 has mean 1 and sd √2.
    models = {"a": {"M1": 1, "M2": 0}, "b": {"M1": 2, "M2": 0}, "c": {"M1": 3, "M2": 3}}
    found = total_bias_score(models, cohort=models, cohort_name="three")
    assert found.total["a"] == pytest.approx(1 / math.sqrt(2 / 3) + 1 / math.sqrt(2))
    assert found.parts["b"] == pytest.approx({"M1": 0.0, "M2": -1 / math.sqrt(2)})
    assert (found.cohort, found.members, found.metrics) == ("three", ("a", "b", "c"), ("M1", "M2"))
    assert found.undefined == {}


def test_a_model_outside_the_cohort():
    cohort = {"a": {"M1": 1}, "b": {"M1": 3}}
    assert total_bias_score({"new": {"M1": 6}}, cohort=cohort, cohort_name="two").total["new"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("cohort", "reason"),
    [
        ({}, "the cohort has 0 model"),
        ({"a": {"M1": 1.0}}, "the cohort has 1 model"),
        ({"a": {"M1": 1.0}, "b": {"M1": 1.0}}, "does not vary in M1"),
        ({"a": {"M1": 1.0}, "b": {"M1": math.nan}}, "cohort member b has no value for M1"),
    ],
)
def test_undefined_cohorts(cohort, reason):
    found = total_bias_score({"x": {"M1": 2.0}}, cohort=cohort, cohort_name="c")
    assert math.isnan(found.total["x"])
    assert reason in found.undefined["x"]


def test_a_model_that_lacks_a_metric_is_undefined_and_the_others_are_not():
    cohort = {"a": {"M1": 1.0, "M2": 1.0}, "b": {"M1": 3.0, "M2": 2.0}}
    found = total_bias_score({"x": {"M1": 2.0}, **cohort}, cohort=cohort, cohort_name="c")
    assert math.isnan(found.total["x"])
    assert found.undefined == {"x": "no value for M2"}
    assert found.total["a"] == pytest.approx(2.0)


def test_requests_that_cannot_be_meant():
    with pytest.raises(RequestError, match="`scores` is empty"):
        total_bias_score({}, cohort={}, cohort_name="c")
    with pytest.raises(RequestError, match="`cohort` has no metrics"):
        total_bias_score({"a": {}}, cohort={"a": {}, "b": {}}, cohort_name="c")
