"""Total bias scores by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from equivox.core.errors import UsageError
from equivox.metrics.genres.total_bias import total_bias_score

Scores = dict[str, dict[str, float]]


def test_three_models_by_hand() -> None:
    # M1: 1, 2, 3 has mean 2 and population sd √(2/3); M2: 0, 0, 3 has mean 1 and sd √2.
    models: Scores = {"a": {"M1": 1, "M2": 0}, "b": {"M1": 2, "M2": 0}, "c": {"M1": 3, "M2": 3}}
    found = total_bias_score(models, cohort=models, cohort_name="three")
    assert found.total["a"] == pytest.approx(1 / math.sqrt(2 / 3) + 1 / math.sqrt(2))
    assert found.parts["b"] == pytest.approx({"M1": 0.0, "M2": -1 / math.sqrt(2)})
    assert (found.cohort, found.members, found.metrics) == ("three", ("a", "b", "c"), ("M1", "M2"))
    assert found.undefined == {}


def test_models_outside_the_cohort_and_models_that_lack_a_metric() -> None:
    cohort: Scores = {"a": {"M1": 1, "M2": 1}, "b": {"M1": 3, "M2": 2}}
    others = {"x": {"M1": 6.0, "M2": 1.5}, "y": {"M1": 2.0}, "z": pd.Series({"M1": 1.0, "M2": math.nan})}
    found = total_bias_score({**others, **cohort}, cohort=cohort, cohort_name="c")  # type: ignore[dict-item]
    assert found.total == pytest.approx({"x": 4.0, "y": math.nan, "z": math.nan, "a": 2.0, "b": 2.0}, nan_ok=True)
    assert set(found.undefined) == {"y", "z"}


@pytest.mark.parametrize(
    "cohort",
    [
        {},
        {"a": {"M1": 1.0}},
        {"a": {"M1": 1.0}, "b": {"M1": 1.0}},
        {"a": {"M1": 0.3}, "b": {"M1": 0.1 + 0.2}},  # equal but for rounding
        {"a": {"M1": 1.0}, "b": {"M1": math.nan}},
    ],
)
def test_cohorts_without_a_spread_score_nobody(cohort: Scores) -> None:
    found = total_bias_score({"x": {"M1": 2.0}}, cohort=cohort, cohort_name="c")
    assert math.isnan(found.total["x"]) and set(found.undefined) == {"x"}


def test_scores_and_cohorts_without_metrics_are_refused() -> None:
    with pytest.raises(UsageError, match="`scores`"):
        total_bias_score({}, cohort={}, cohort_name="c")
    with pytest.raises(UsageError, match="`cohort`"):
        total_bias_score({"a": {}}, cohort={"a": {}, "b": {}}, cohort_name="c")
