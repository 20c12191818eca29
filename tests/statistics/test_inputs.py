"""Arguments of the statistics: numbers, tables and mappings in other forms give the same result."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from equivox.core.errors import UsageError
from equivox.statistics import (
    adjust,
    adjust_hierarchy,
    association_scores,
    association_test,
    cluster_share,
    compare_joint_shift,
    compare_totals,
    correlations,
    cramers_v,
    distribution_shift,
    inputs,
    joint_shift,
    ntvd,
    ntvd_bounds,
    parity_deviation,
    rank_models,
    sign_flip_test,
    total_bias_score,
)


def rng():
    return np.random.default_rng(1)


def plain(result):
    """A result as nested lists that can be compared, NaN included."""
    if dataclasses.is_dataclass(result):
        return {field.name: plain(getattr(result, field.name)) for field in dataclasses.fields(result)}
    if isinstance(result, dict):
        return {name: plain(value) for name, value in result.items()}
    return repr(result.tolist() if isinstance(result, np.ndarray) else result)


def test_tables_hold_the_attributes():
    frame = pd.DataFrame({"hobby": ["x", "y", "y", None] * 6, "mood": ["s", "t", "t", "s"] * 6})
    groups, clusters = ["a", "b"] * 12, [1, 2, 3, 4] * 6
    lists = {name: [[v] if isinstance(v, str) else [] for v in column] for name, column in frame.items()}
    asked = {"clusters": clusters, "min_count": 1, "n_resamples": 50}
    one = joint_shift(lists, groups, rng=rng(), **asked)
    for table in (frame, pa.Table.from_pandas(frame)):
        assert plain(joint_shift(table, groups, rng=rng(), **asked)) == plain(one)
    two = compare_joint_shift(lists, lists, groups, rng=rng(), **asked)
    assert plain(compare_joint_shift(frame, pa.Table.from_pandas(frame), groups, rng=rng(), **asked)) == plain(two)
    with pytest.raises(UsageError, match="`attributes` is a list: give a mapping"):
        joint_shift([["x"]], groups, clusters=None, rng=rng())


NUMBER_FORMS = {
    "tuple": tuple,
    "with None": lambda column: [None if math.isnan(x) else x for x in column],
    "with NA": lambda column: [pd.NA if math.isnan(x) else x for x in column],
    "numpy": np.array,
    "numpy objects": lambda column: np.array([None if math.isnan(x) else x for x in column], dtype=object),
    "masked": lambda column: np.ma.masked_invalid(column),
    "masked integers": lambda column: np.ma.array(np.nan_to_num(column).astype(int), mask=np.isnan(column)),
    "pandas": pd.Series,
    "pandas objects": lambda column: pd.Series([pd.NA if math.isnan(x) else x for x in column], dtype=object),
    "pandas integers": lambda column: pd.Series([pd.NA if math.isnan(x) else int(x) for x in column], dtype="Int64"),
    "pyarrow": lambda column: pa.array([None if math.isnan(x) else x for x in column]),
    "pyarrow booleans": lambda column: pa.array([None if math.isnan(x) else bool(x) for x in column]),
    "pyarrow chunks": lambda column: pa.chunked_array([[None if math.isnan(x) else int(x) for x in column], []]),
    "iterator": iter,
}


@pytest.mark.parametrize("form", NUMBER_FORMS)
def test_numbers_in_every_form(form):
    outcome = [1.0, 0.0, math.nan, 1.0, 1.0, 0.0, 1.0, 1.0]
    np.testing.assert_array_equal(inputs.numbers(NUMBER_FORMS[form](outcome), "hits"), outcome)


def test_a_value_of_the_groups_shows_in_the_result():
    # a says the second name in 2 of 3 answers, b never.
    for answers in ([3, 10, 10, 3, 3, 3], np.array([[3], [10], [10], [3], [3], [3]]), pd.Series([3, 10, 10, 3, 3, 3])):
        found = distribution_shift(answers, ["a"] * 3 + ["b"] * 3, clusters=None, min_count=1, rng=rng())
        assert (found.values, found.ntvd) == (("3", "10"), pytest.approx(200 / 3))


def test_no_clusters_is_a_cluster_for_each():
    column = [1, 0, None, 1, 1]
    drawn = [lambda column, test=test, **c: test(column, n_resamples=50, rng=rng(), **c)
             for test in (sign_flip_test, parity_deviation)]  # fmt: skip
    for test in (*drawn, cluster_share):
        apart = test(column, clusters=None)
        assert plain(test(column, clusters=range(5))) == plain(apart)
        with pytest.raises(UsageError, match="`clusters` is missing for 1 of 5 responses"):
            test(column, clusters=[1, 1, None, 2, 2])
        with pytest.raises(UsageError, match=r"`clusters` has 2 entries, `\w+` has 5"):
            test(column, clusters=[1, 1])


@pytest.mark.parametrize("wrong", ["text", {"a": 1}, [[1, 2]], ["a"], pd.DataFrame({"a": [1]}), pa.table({"a": [1]})])
def test_what_is_no_column_of_numbers(wrong):
    with pytest.raises(UsageError, match="`values`"):
        sign_flip_test(wrong, clusters=None, rng=rng())


def test_tables_of_counts_in_every_form():
    counts = [[10, 4], [3, 9]]
    frame = pd.DataFrame(counts, index=["f", "m"])
    for table in (frame, np.array(counts), tuple(map(tuple, counts))):
        assert ntvd(table) == ntvd(counts)
        assert cramers_v(table) == cramers_v(counts)
        assert plain(association_test(table, rng=rng())) == plain(association_test(counts, rng=rng()))
        assert plain(ntvd_bounds(table, pd.Series([1, 2]))) == plain(ntvd_bounds(counts, [1, 2]))

        def share(sums):
            return sums[..., 0] / sums[..., 1]

        assert plain(compare_totals(table, frame + 1, share, rng=rng())) == plain(
            compare_totals(np.array(counts), np.array(counts) + 1, share, rng=rng())
        )
    with pytest.raises(UsageError, match="`by_group` is no table of numbers"):
        ntvd([[1, 2], [3]])
    with pytest.raises(UsageError, match="`missing` has 1 entries, `counts` has 2 rows"):
        ntvd_bounds(counts, [1])
    with pytest.raises(UsageError, match="no count"):
        ntvd_bounds(counts, [1, None])
    with pytest.raises(UsageError, match="`by_group` has a negative entry, a gap"):
        ntvd(np.ma.array(counts, mask=[[0, 1], [0, 0]]))


def test_counts_of_phrases_in_every_form():
    for form in (tuple, np.array, pd.Series, pa.array):
        assert association_scores(form([18, 9]), form([100, 90])) == association_scores([18, 9], [100, 90])
    with pytest.raises(UsageError, match="a missing number"):
        association_scores([1, None], [3, 4])


def test_named_numbers_in_every_form():
    p = [0.01, 0.5, math.nan]
    for given_p in (pd.Series(p), pa.array(p), [0.01, 0.5, None]):
        assert adjust(given_p) == pytest.approx(adjust(p), nan_ok=True)
    for given_p in (pd.Series({"a": 0.01, "b": 0.5}), {"a": 0.01, "b": 0.5, "c": None}):
        assert adjust_hierarchy(given_p)["a"] == 0.02
    columns = {"x": [1.0, 2.0, 4.0, math.nan], "y": [2.0, 1.0, 3.0, 9.0]}
    for given_columns in (pd.DataFrame(columns), pa.table(columns), columns | {"x": [1, 2, 4, None]}):
        assert correlations(given_columns) == correlations(columns)
    distances = {"x": 1.0, "y": 2.0}
    assert rank_models(pd.Series(distances), {("x", "y"): (-1.0, None)}) == rank_models(
        distances, {("x", "y"): (-1.0, math.nan)}
    )
    models = {"a": {"M1": 1.0}, "b": {"M1": 3.0}, "c": {"M1": math.nan}}
    lacking = models | {"a": pd.Series({"M1": 1.0}), "c": {"M1": None}}
    both = {name: models[name] for name in "ab"}
    found, expected = (total_bias_score(m, cohort=both, cohort_name="two") for m in (lacking, models))
    assert plain(found) == plain(expected)
    assert found.undefined == {"c": "no value for M1"}
    with pytest.raises(UsageError, match="`p` is no mapping"):
        adjust_hierarchy([0.1])
