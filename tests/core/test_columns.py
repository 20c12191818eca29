"""Columns: every form of the same data has the same codes, and each odd column is refused on one line."""

import enum
import fractions
import math
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.core import columns
from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.core.errors import UsageError


def encode_labels(column, order):
    """Return the column as codes into names in a given order, one of which does not occur."""
    names = order.permutation(["never", *sorted(set(column))]).tolist()
    return EncodedLabels(codes=np.array([names.index(name) for name in column], dtype=np.int32), names=names)


def encode_values(column, order):
    """Return the values as codes, the entries in a given order; one code in ten is preceded by a missing one."""
    flat = [(row, value) for row, answer in enumerate(column) for value in answer]
    names = ["never", *dict.fromkeys(value for _, value in flat)]
    entries = [(row, names.index(value)) for row, value in flat] + [(row, -1) for row in range(0, len(column), 10)]
    rows, codes = np.array([entries[at] for at in order.permutation(len(entries))], dtype=np.int64).reshape(-1, 2).T
    return EncodedValues(rows=rows, codes=codes, names=names, n_rows=len(column))


def chunk(column, at, kind):
    return pa.chunked_array([pa.array(part, kind) for part in (column[:at], column[at:])])


LABELS = {
    "tuple": lambda column, _: tuple(column),
    "iterator": lambda column, _: iter(column),
    "numpy text": lambda column, _: np.array(column),
    "numpy objects": lambda column, _: np.array(column, dtype=object),
    "pandas": lambda column, _: pd.Series(column, index=range(7, 7 + len(column))),
    "pandas objects": lambda column, _: pd.Series(column, dtype=object),
    "pandas string": lambda column, _: pd.Series(column, dtype="string"),
    "pandas categories": lambda column, _: pd.Series(pd.Categorical(column, [*sorted(set(column))[::-1], "never"])),
    "pandas index": lambda column, _: pd.Index(column),
    "pyarrow": lambda column, _: pa.array(column, pa.string()),
    "pyarrow scalars": lambda column, _: list(pa.array(column, pa.string())),
    "pyarrow dictionary": lambda column, _: pa.array(column, pa.string()).dictionary_encode(),
    "pyarrow chunks": lambda column, _: chunk(column, 3, pa.string()).dictionary_encode(),
    "encoded": encode_labels,
    "encoded arrow": lambda column, _: EncodedLabels.of_arrow(chunk(column, 3, pa.string())),
}
VALUES = {
    "tuples": lambda column, _: tuple(map(tuple, column)),
    "arrays": lambda column, _: [np.array(answer) for answer in column],
    "with gaps": lambda column, _: [[*answer, None, math.nan, pd.NA] if answer else None for answer in column],
    "numpy objects": lambda column, _: np.fromiter(map(list, column), dtype=object, count=len(column)),
    "pandas": lambda column, _: pd.Series(column, dtype=object),
    "pandas arrow": lambda column, _: pd.Series(column, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    "pyarrow": lambda column, _: pa.array([answer or None for answer in column], pa.list_(pa.string())),
    "pyarrow sliced": lambda column, _: pa.array([["other"], *column, []], pa.list_(pa.string()))[1:-1],
    "pyarrow chunks": lambda column, _: chunk(column, 4, pa.large_list(pa.string())),
    "encoded": encode_values,
    "encoded lists": lambda column, _: EncodedValues.of(column),
}


def read(function, column):
    """Return what a column holds; a response's values in the order of their names."""
    found = function(column, "column")
    rows = found.rows if isinstance(found, EncodedValues) else range(len(found.codes))
    return sorted(zip(rows, found.codes.tolist(), strict=True)), tuple(found.names), len(found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["chess", "yoga", "golf", "é", ""]), max_size=3), min_size=4, max_size=30),
    st.sampled_from(sorted(LABELS)), st.sampled_from(sorted(VALUES)), st.integers(0, 9),
)  # fmt: skip
def test_every_form_of_the_same_data_has_the_same_codes(answers, label_form, value_form, seed):
    order = np.random.default_rng(seed)
    assert read(columns.values, VALUES[value_form](answers, order)) == read(columns.values, answers)
    names = [f"g{len(answer)}" for answer in answers]
    assert read(columns.labels, LABELS[label_form](names, order)) == read(columns.labels, names)


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
        (pd.Series([10, 9], dtype="Int64"), ("9", "10")),
        (pd.Series(pd.Categorical([10, 9])), ("9", "10")),
        (pa.array([0.5, 2.5, 10]), ("0.5", "2.5", "10")),
        ([True, False, True], ("False", "True")),
        ([1, 1.0, "1", True], ("1", "True")),
        ([1, np.int64(1), np.float32(1)], ("1",)),
        ([np.int64(2), fractions.Fraction(1, 2), 1.5], ("1/2", "1.5", "2")),
        (["NA", "None", "null", "nan"], ("NA", "None", "nan", "null")),
        (["007", "7", "1e5"], ("007", "1e5", "7")),
        ([("a", 1), ("a", 1), "b"], ("('a', 1)", "b")),
        ([Voice.LOW, Voice.HIGH], ("Voice.HIGH", "Voice.LOW")),
        ([Word.CHESS, "chess"], ("chess",)),
        (["\ud800", "a"], ("a", "\ud800")),
        (np.array(["2024-01-02"], dtype="datetime64[D]"), ("2024-01-02",)),
        (EncodedLabels(codes=np.array([0, 1, 2, 0]), names=("x", "y", "x")), ("x", "y")),
    ],
)  # fmt: skip
def test_labels_are_named_by_their_text(column, names):
    found = columns.labels(column, "groups")
    assert found.names == names
    assert sorted(set(found.codes.tolist())) == list(range(len(names)))
    several = isinstance(column, list) and isinstance(column[0], tuple)
    assert several or columns.values(column, "values").names == names


GAP = [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "D")]


@pytest.mark.parametrize(
    "column",
    [
        *(["x", missing, "y"] for missing in GAP),
        pd.Series(["x", None, "y"]),
        pd.Series(["x", None, "y"], dtype="category"),
        pa.array(["x", None, "y"]),
        np.ma.array(["x", "x", "y"], mask=[0, 1, 0]),
        EncodedLabels(codes=np.array([0, -1, 1]), names=("x", "y")),
    ],
)
def test_a_missing_entry_is_no_value_and_no_group(column):
    assert read(columns.values, column) == ([(0, 0), (2, 1)], ("x", "y"), 3)
    with pytest.raises(UsageError, match="`groups` is missing for 1 of 3 responses, first at position 1: name it"):
        columns.labels(column, "groups")


@pytest.mark.parametrize(
    ("column", "entries"),
    [
        (["chess", ["yoga"], "yoga", ("chess", "yoga")], [(0, 0), (1, 1), (2, 1), (3, 0), (3, 1)]),
        ([["chess", "yoga"], None, {"chess"}, []], [(0, 0), (0, 1), (2, 0)]),
        ([["chess"], [pd.NA], np.array(["yoga"]), ["chess", None]], [(0, 0), (2, 1), (3, 0)]),
        (np.array([["chess"], ["yoga"], ["yoga"], ["chess"]]), [(0, 0), (1, 1), (2, 1), (3, 0)]),
    ],
)
def test_a_text_is_one_value_and_a_list_holds_several(column, entries):
    assert read(columns.values, column) == (entries, ("chess", "yoga"), 4)


TWO = EncodedValues(rows=np.array([0, 1]), codes=np.array([0, 1]), names=("x", "y"), n_rows=2)
REFUSED = [
    (columns.labels, "abc", "`column` is a str"),
    (columns.labels, {"a": 1}, "is a dict"),
    (columns.labels, {"a", "b"}, "is a set"),
    (columns.labels, 7, "is a int"),
    (columns.labels, np.zeros((2, 2)), "is a ndarray"),
    (columns.labels, pd.DataFrame({"a": [1]}), "is a DataFrame"),
    (columns.labels, pa.table({"a": [1]}), "is a Table"),
    (columns.labels, pa.array([["a"]]), r"holds \['a'\] at position 0"),
    (columns.labels, EncodedLabels(np.array([0, 2]), ("a", "b")), "the codes of `column` hold 0 to 2"),
    (columns.labels, EncodedLabels(np.array([0.0]), ("a", "b")), "the codes of `column` have type float64"),
    (columns.values, ["x", {"y": 1}], "holds a mapping"),
    (columns.values, ["x", [["y"]]], r"holds \['y'\] at position 1"),
    *(
        (columns.values, EncodedValues(**{**vars(TWO), name: np.array(wrong)}), words)
        for name, wrong, words in (
            ("rows", [0, 4], "the rows of `column` hold 0 to 4: use positions from 0 that are below 2"),
            ("rows", [-1, 0], "the rows of `column` hold -1 to 0"),
            ("rows", [0], "`column` has 1 rows and 2 codes"),
            ("codes", [0, -2], "the codes of `column` hold -2 to 0"),
            ("codes", [[0], [1]], r"the codes of `column` have type int64 and shape \(2, 1\)"),
        )
    ),
    *(
        (lambda groups, name: columns.refuse_alike(name, groups), groups, words)
        for groups, words in (
            (["female", "FEMALE"], "'female' and 'FEMALE', which differ in case, space, coding"),
            (["female", "female "], "'female' and 'female '"),
            (["female", "fe\u200bmale"], r"'female' and 'fe\\u200bmale'"),
            (["weiß", "weiß "], "'weiß' and 'weiß '"),
            (["Zoë", "Zoe\u0308 "], r"'Zo\\xeb' and 'Zoe\\u0308 '"),
            (["1", "1.0"], r"'1' and '1\.0'"),
            (["f × 1", "f × 1.0"], r"'f × 1' and 'f × 1\.0'"),
            (["male", "f\u0435male"], r"'f\\u0435male', a word with Cyrillic and Latin letters"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("function", "column", "words"), REFUSED)
def test_what_is_no_column_and_what_looks_alike_is_refused(function, column, words):
    with pytest.raises(UsageError, match=words):
        function(column, "column")


def test_groups_and_speakers_that_differ_pass():
    columns.refuse_alike("groups", ["1.5", "1.50", "10", "100", "north east", "женщина", "female"])
    columns.refuse_alike("clusters", ["a", "A", "f\u0435male"], case=False)


def test_a_million_responses_stay_columns():
    # The memory is that of a few integer arrays (8 MB each), not of a million Python lists.
    codes = np.arange(10**6) % 7
    names = [f"v{code}" for code in range(7)]
    labels = EncodedLabels.of_arrow(pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names))
    for column in (EncodedValues(np.arange(10**6), codes, names, 10**6), EncodedLabels(codes, names), labels):
        tracemalloc.start()
        found = columns.values(column, "values")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (len(found.codes), found.names[-1]) == (10**6, "v6")
        assert peak < 80 * 2**20
