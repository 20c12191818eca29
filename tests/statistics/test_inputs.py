"""What people have in place of lists of texts: the same data in another form give the same result."""

import dataclasses
import enum
import fractions
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.core.errors import UsageError
from equivox.statistics import (
    EncodedLabels,
    EncodedValues,
    adjust,
    adjust_hierarchy,
    association_scores,
    association_test,
    cluster_correlation,
    cluster_share,
    compare_joint_shift,
    compare_totals,
    correlations,
    cramers_v,
    distribution_shift,
    group_means,
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


def encoded_labels(column, order):
    """The column as codes into names that stand in a given order, with one that does not occur."""
    names = order.permutation(["never", *sorted(set(column))]).tolist()
    return EncodedLabels(codes=np.array([names.index(name) for name in column], dtype=np.int32), names=names)


def encoded_values(column, order):
    """The values as codes, the entries in a given order; one code in ten is preceded by a missing one."""
    flat = [(row, value) for row, answer in enumerate(column) for value in answer]
    names = ["never", *dict.fromkeys(value for _, value in flat)]
    entries = [(row, names.index(value)) for row, value in flat] + [(row, -1) for row in range(0, len(column), 10)]
    entries = [entries[at] for at in order.permutation(len(entries))]
    rows, codes = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return EncodedValues(rows=rows, codes=codes, names=names, n_rows=len(column))


LABEL_FORMS = {
    "tuple": lambda column, _: tuple(column),
    "numpy text": lambda column, _: np.array(column),
    "numpy objects": lambda column, _: np.array(column, dtype=object),
    "pandas": lambda column, _: pd.Series(column, index=range(7, 7 + len(column))),
    "pandas objects": lambda column, _: pd.Series(column, dtype=object),
    "pandas categories": lambda column, _: pd.Series(pd.Categorical(column, [*sorted(set(column))[::-1], "never"])),
    "pandas index": lambda column, _: pd.Index(column),
    "pyarrow": lambda column, _: pa.array(column, pa.string()),
    "pyarrow dictionary": lambda column, _: pa.array(column, pa.string()).dictionary_encode(),
    "pyarrow chunks": lambda column, _: pa.chunked_array(
        [pa.array(part, pa.string()).dictionary_encode() for part in (column[:3], column[3:])]
    ),
    "encoded": encoded_labels,
}

VALUE_FORMS = {
    "tuples": lambda column, _: tuple(map(tuple, column)),
    "arrays": lambda column, _: [np.array(answer) for answer in column],
    "with gaps": lambda column, _: [[*answer, None, math.nan, pd.NA] if answer else None for answer in column],
    "numpy objects": lambda column, _: np.fromiter(map(list, column), dtype=object, count=len(column)),
    "pandas": lambda column, _: pd.Series(column, dtype=object),
    "pandas arrow": lambda column, _: pd.Series(column, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    "pyarrow": lambda column, _: pa.array([answer or None for answer in column], pa.list_(pa.string())),
    "pyarrow sliced": lambda column, _: pa.array([["other"], *column, []], pa.list_(pa.string()))[1:-1],
    "pyarrow chunks": lambda column, _: pa.chunked_array(
        [pa.array(part, pa.large_list(pa.string())) for part in (column[:4], column[4:])]
    ),
    "encoded": encoded_values,
}


@st.composite
def responses(draw):
    """Several values per response, of clusters that each lie in one group and one stratum."""
    n = draw(st.integers(4, 40))
    cluster = draw(st.lists(st.integers(0, 7), min_size=n, max_size=n))
    values = draw(st.lists(st.lists(st.sampled_from(["chess", "yoga", "golf", "é", ""]), max_size=3), min_size=n,
                           max_size=n))  # fmt: skip
    return values, [f"g{c % 2}" for c in cluster], [f"c{c}" for c in cluster], [f"s{c // 4}" for c in cluster]


@settings(max_examples=40, deadline=None)
@given(responses(), st.sampled_from(sorted(LABEL_FORMS)), st.sampled_from(sorted(VALUE_FORMS)), st.integers(0, 9))
def test_every_form_of_the_same_data_has_the_same_result(data, label_form, value_form, seed):
    values, *columns = data
    order = np.random.default_rng(seed)
    given_values = VALUE_FORMS[value_form](values, order)
    given_columns = [LABEL_FORMS[label_form](column, order) for column in columns]
    asked = {"min_count": 2, "n_resamples": 20}
    found = [
        joint_shift({"a": v, "b": v}, g, clusters=c, strata=s, rng=rng(), **asked)
        for v, g, c, s in ((values, *columns), (given_values, *given_columns))
    ]
    assert plain(found[0]) == plain(found[1])
    turned = values[::-1]
    given_turned = VALUE_FORMS[value_form](turned, order)
    compared = [
        compare_joint_shift({"v": a}, {"v": b}, g, clusters=c, rng=rng(), **asked)
        for a, b, (g, c, _) in ((values, turned, columns), (given_values, given_turned, given_columns))
    ]
    assert plain(compared[0]) == plain(compared[1])


PLAIN_FORMS = {
    "list": list,
    "numpy": np.array,
    "pandas": pd.Series,
    "pandas categories": lambda column: pd.Series(pd.Categorical(column)),
    "pyarrow": pa.array,
    "numpy n x 1": lambda column: np.array(column)[:, None],
}


@pytest.mark.parametrize("form", PLAIN_FORMS)
@pytest.mark.parametrize("names", [("chess", "yoga"), (3, 10), (True, False), (0.5, 2.5)])
def test_plain_values_are_one_value_each(form, names):
    column = [names[at] for at in (0, 1, 1, 0, 0, 0)]
    groups = ["a", "a", "a", "b", "b", "b"]
    lists = distribution_shift([[value] for value in column], groups, clusters=None, min_count=1, rng=rng())
    found = distribution_shift(PLAIN_FORMS[form](column), groups, clusters=None, min_count=1, rng=rng())
    assert plain(found) == plain(lists)
    assert found.values == tuple(map(str, sorted(names)))
    assert found.ntvd == pytest.approx(200 / 3)  # a says the second name in 2 of 3 answers, b never


def test_a_text_is_one_value_and_never_its_letters():
    found = distribution_shift(["chess", ["yoga"], "yoga", ["chess", "yoga"]], ["a", "a", "b", "b"], clusters=None,
                               min_count=1, rng=rng())  # fmt: skip
    assert found.values == ("chess", "yoga")


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "D")])
def test_a_missing_value_is_no_value(missing):
    groups = ["a", "a", "b", "b", "b"]
    empty = distribution_shift([["x"], [], ["y"], ["x"], ["y"]], groups, clusters=None, min_count=1, rng=rng())
    for column in (["x", missing, "y", "x", "y"], [["x"], [missing], ["y"], ["x", missing], "y"]):
        found = distribution_shift(column, groups, clusters=None, min_count=1, rng=rng())
        assert plain(found) == plain(empty)
    assert (empty.n_responses, empty.n_used) == (5, 4)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", None, "y", "x", "y"]),
        pd.Series(["x", None, "y", "x", "y"], dtype="category"),
        pa.array(["x", None, "y", "x", "y"]),
        np.ma.array(["x", "x", "y", "x", "y"], mask=[0, 1, 0, 0, 0]),
        EncodedLabels(codes=np.array([0, -1, 1, 0, 1]), names=("x", "y")),
    ],
)
def test_a_gap_in_a_column_is_no_value(column):
    groups = ["a", "a", "b", "b", "b"]
    empty = distribution_shift([["x"], [], ["y"], ["x"], ["y"]], groups, clusters=None, min_count=1, rng=rng())
    assert plain(distribution_shift(column, groups, clusters=None, min_count=1, rng=rng())) == plain(empty)
    with pytest.raises(UsageError, match="`groups` is missing for 1 of 5 responses, first at position 1: name it"):
        distribution_shift(["x"] * 5, column, clusters=None, rng=rng())


class Voice(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Word(enum.StrEnum):
    CHESS = "chess"


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ([10, 9, 10], ("9", "10")),
        (np.array([10, -9, 10]), ("-9", "10")),
        (np.array([10**15, 3, 3]), ("3", str(10**15))),
        (np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64), (str(2**64 - 2), str(2**64 - 1))),
        ([1, 1.0, "1", True], ("1", "True")),
        ([np.int64(2), fractions.Fraction(1, 2), 1.5], ("1/2", "1.5", "2")),
        ([("a", 1), ("a", 1), "b"], ("('a', 1)", "b")),
        ([Voice.LOW, Voice.HIGH], ("Voice.HIGH", "Voice.LOW")),
        ([Word.CHESS, "chess"], ("chess",)),
        (np.array(["2024-01-02"], dtype="datetime64[D]"), ("2024-01-02",)),
        (EncodedLabels(codes=np.array([0, 1, 2, 0]), names=("x", "y", "x")), ("x", "y")),
        (pd.Series([10, 9], dtype="Int64"), ("9", "10")),
    ],
)
def test_labels_are_named_by_their_text(column, names):
    found = inputs.labels(column, "groups")
    assert found.names == names
    assert sorted(set(found.codes.tolist())) == list(range(len(names)))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("abc", "`groups` is the text 'abc'"),
        ({"a": 1}, "`groups` is a dict"),
        ({"a", "b"}, "`groups` is a set"),
        (7, "`groups` is a int"),
        (np.zeros((2, 2)), r"`groups` is a ndarray of shape \(2, 2\)"),
        (pd.DataFrame({"a": [1]}), "`groups` is a DataFrame of shape"),
        (pa.table({"a": [1]}), "`groups` is a Table of shape"),
        (pa.array([["a"]]), r"`groups` holds \['a'\] at position 0"),
        (EncodedLabels(codes=np.array([0, 2]), names=("a", "b")), "the codes of `groups` hold 2: .* below 2"),
        (EncodedLabels(codes=np.array([0.0]), names=("a", "b")), "the codes of `groups` have type float64"),
    ],
)
def test_what_is_no_column_of_labels(column, words):
    with pytest.raises(UsageError, match=words):
        inputs.labels(column, "groups")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": [0, 4]}, "the rows of `values` hold 4: use positions from 0 that are below 2"),
        ({"rows": [-1, 0]}, "the rows of `values` hold -1"),
        ({"rows": [0]}, "`values` has 1 rows and 2 codes"),
        ({"codes": [0, -2]}, "the codes of `values` hold -2"),
        ({"codes": [[0], [1]]}, r"the codes of `values` have type int64 and shape \(2, 1\)"),
    ],
)
def test_encoded_values_that_cannot_be_meant(change, words):
    given = {"rows": [0, 1], "codes": [0, 1], "names": ("x", "y"), "n_rows": 2} | change
    column = EncodedValues(**given | {name: np.array(given[name]) for name in ("rows", "codes")})
    with pytest.raises(UsageError, match=words):
        inputs.values(column, "values")


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
    label = [0.0, 1.0] * 4
    groups, clusters = [1, 2] * 4, [0, 0, 1, 1, 2, 2, 3, 3]
    form = NUMBER_FORMS[form]

    def results(column, x, g, c):
        return [
            sign_flip_test(column(), clusters=c, rng=rng()),
            parity_deviation(column(), clusters=c, n_resamples=50, rng=rng()),
            cluster_share(column(), clusters=c),
            cluster_correlation(x(), column(), clusters=c, rng=rng()),
            group_means(column(), g, clusters=c, rng=rng()),
        ]

    one = results(lambda: outcome, lambda: label, groups, clusters)
    two = results(lambda: form(outcome), lambda: form(label), np.array(groups), pd.Series(clusters))
    assert list(map(plain, one)) == list(map(plain, two))


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


def test_a_million_responses_are_read_at_once():
    # Columns stay columns: the memory is that of a few integer arrays (8 MB each), not of a million Python lists.
    import tracemalloc

    n = 10**6
    codes = np.arange(n) % 7
    values = EncodedValues(rows=np.arange(n), codes=codes, names=[f"v{code}" for code in range(7)], n_rows=n)
    arrow = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), [f"v{code}" for code in range(7)])
    for column in (values, EncodedLabels(codes=codes, names=values.names), EncodedLabels.of_arrow(arrow)):
        tracemalloc.start()
        found = inputs.values(column, "values")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (len(found.codes), found.names[-1]) == (n, "v6")
        assert peak < 80 * 2**20
