"""Columns, tables and mappings in other forms give the same result; requests without a meaning name their argument."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from equivox import statistics as s
from equivox.core.errors import UsageError
from equivox.statistics import inputs
from equivox.statistics.planning import Plan


def options(**given: Any) -> dict[str, Any]:
    return {"clusters": None, "n_resamples": 19, "rng": np.random.default_rng(1)} | given


def correct(rows: Any, labels: Any, **given: Any) -> object:
    rng = np.random.default_rng(1)
    return s.correct_groups([*"xy"], [*"ab"], clusters=None, labelled_rows=rows, labels=labels, rng=rng, **given)


def missing(value: object, column: list[float]) -> list[object]:
    return [value if math.isnan(x) else x for x in column]


NUMBER_FORMS: list[Callable[[list[float]], Any]] = [
    tuple, np.array, np.ma.masked_invalid, pd.Series, iter,
    lambda column: missing(None, column), lambda column: missing(pd.NA, column),
    lambda column: np.array(missing(None, column), dtype=object),
    lambda column: np.ma.array(np.nan_to_num(column).astype(int), mask=np.isnan(column)),
    lambda column: pd.Series(missing(pd.NA, column), dtype="Int64"), lambda column: pa.array(missing(None, column)),
    lambda column: pa.array([None if math.isnan(x) else bool(x) for x in column]),
    lambda column: pa.chunked_array([pa.array(missing(None, column)), pa.array([], pa.float64())]),
]  # fmt: skip


@pytest.mark.parametrize("form", range(len(NUMBER_FORMS)))
def test_numbers_in_every_form(form: int) -> None:
    column = [1.0, 0.0, math.nan, 1.0, 1.0, 0.0]
    np.testing.assert_array_equal(inputs.numbers(NUMBER_FORMS[form](column), "hits"), column)


def test_labels_values_and_tables_in_every_form() -> None:
    # a says the second value in 2 of 3 answers, b never; the text of a number is its name.
    answers, groups = [3, 10, 10, 3, 3, 3], ["a"] * 3 + ["b"] * 3
    column: Any
    for column in ([str(v) for v in answers], np.array(answers), pd.Series(answers), np.array([[v] for v in answers]),
                   pa.array(answers), pd.Series(answers).astype("category")):  # fmt: skip
        for labels in (s.EncodedLabels.of(groups), pd.Series(groups), pa.array(groups), np.array(groups)):
            found = s.compare_groups(column, labels, min_count=1, **options())  # type: ignore[arg-type]
            assert set(found.values) == {"3", "10"} and found.ntvd == pytest.approx(200 / 3)
    frame: Any = pd.DataFrame({"hobby": ["x", "y", "y", None] * 6, "mood": ["s", "t", "t", "s"] * 6})
    given = options(groups=["a", "b"] * 12, clusters=[1, 2, 3, 4] * 6, min_count=1)
    lists = {name: [[v] if isinstance(v, str) else [] for v in frame[name]] for name in frame}
    for table in (frame, pa.Table.from_pandas(frame)):
        assert s.compare_attributes(table, **given).ntvd == s.compare_attributes(lists, **given).ntvd
        assert s.compare_runs(table, frame, **given).value_a == s.compare_runs(lists, lists, **given).value_a


def test_counts_and_named_numbers_in_every_form() -> None:
    counts, p, columns = [[10, 4], [3, 9]], [0.01, 0.5, math.nan], {"x": [1.0, 2.0, 4.0, math.nan], "y": [2.0, 1, 3, 9]}
    form: Any
    for form in (pd.DataFrame(counts, index=["f", "m"]), np.array(counts), tuple(map(tuple, counts))):
        assert s.ntvd(form) == s.ntvd(counts) and inputs.counts(form, "counts").tolist() == counts
        assert s.ntvd_bounds(form, pd.Series([1, 2])) == s.ntvd_bounds(counts, [1, 2])  # type: ignore[arg-type]
    for form in (pd.Series(p), pa.array(p), [0.01, 0.5, None]):
        assert s.adjust(form) == pytest.approx(s.adjust(p), nan_ok=True)
    for form in (pd.Series({"a": 0.01, "b": 0.5}), {"a": 0.01, "b": 0.5, "c": None}):
        assert s.adjust_hierarchy(form)["a"] == 0.02
    for form in (pd.DataFrame(columns), pa.table(columns), columns | {"x": [1, 2, 4, None]}):
        assert s.correlations(form) == s.correlations(columns)


AB, XY, X, CELLS, GAP = [*"ab"], [*"xy"], {"x": [1, 2]}, [[1.0]], [[1, 2], [1, math.nan]]
WRONG: list[Any] = ["text", {"a": 1}, [[1, 2]], ["a"], [], [math.inf], pd.DataFrame({"a": [1]}), {}, CELLS]
UNITS, MIXED = options(clusters=AB), [*"wwxxyzv"]
LABELLED, TREE = ((0, 0), (0, 2), (-1, 1), (0.5, 1)), {"a": 0.1, "b": 0.1, "c": 0.1}
REFUSED: dict[str, list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]]] = {
    "groups": [(s.build_design, ([], None), {}), (s.build_design, (["a", None], None), {}),
               (s.compare_means, ([1.0], AB), options())],
    "clusters": [(s.build_design, (AB, [*"wxy"]), {}), (s.cluster_share, ([1, 0],), {"clusters": ["a"]}),
                 *((s.build_design, ([*"ababaaa"], MIXED), {held: [*"ppppqpp"]}) for held in ("strata", "blocks"))],
    "strata": [(s.build_design, (AB, AB, ["p"]), {})],
    "blocks": [(s.build_design, ([*"aabb"], [*"wwyy"], None, [*"pqpp"]), {})],  # torn
    "items": [(s.compare_groups, (XY, AB), options(items=["p"]))],
    "values": [(s.compare_groups, ([1, 2, 3], AB), options()),
               *((s.sign_flip_test, (wrong,), options()) for wrong in WRONG[:-2])],
    "min_count": [(s.compare_groups, (XY, AB), options(min_count=0))],
    "n_resamples": [*((call, ([1, 2], AB), options(n_resamples=0)) for call in (s.compare_groups, s.compare_means)),
                    (s.compute_least_p, (CELLS,), {"n_resamples": 0})],
    "confidence": [*((call, ([1, 2], AB), options(confidence=1.0)) for call in (s.compare_groups, s.compare_means)),
                   (s.cluster_share, ([1, 0],), {"clusters": None, "confidence": 2})],
    "attributes": [(s.compare_attributes, (wrong, AB), options()) for wrong in WRONG[-2:]],
    "attributes_a": [(s.compare_runs, ({}, {}, AB), UNITS), (s.compare_runs, (X, {"y": [1, 2]}, AB), UNITS)],
    r"attributes_b\['x'\]": [(s.compare_runs, (X, {"x": [1]}, AB), UNITS)],
    "weights": [(s.compare_runs, (X, X, AB), UNITS | {"weights": {"x": 0.0}}),
                *((correct, ([0, 1], XY), {"weights": by}) for by in ([1], [1, 0]))],
    "totals_b": [(s.compare_totals, (CELLS, b, np.sum), {"rng": None}) for b in ([[1.0, 2.0]], [[math.nan]])],
    "sizes": [(s.compare_totals, (CELLS, CELLS, np.sum), {"rng": None, "sizes": 2})],
    "hits": [*((s.cluster_share, (hits,), {"clusters": None}) for hits in ([0.5], [])), (s.share_bounds, (3, 2, 0), {}),
             (s.share_bounds, (-1, 2, 0), {})],
    "choices": [(s.parity_deviation, ([2.0],), options())], "decided": [(s.share_bounds, (0, 0, 0), {})],
    "by_group": [(s.ntvd, (rows,), {}) for rows in ([[1, 2]], [1, 2], [[1, 2], [0, 0]], [[1, 2], [1, -1]], GAP,
                 [[1, 2], [3]], np.ma.masked_equal([[1, 2], [1, 1]], 2))],
    "n_groups": [(s.attainable_shift, (4, 1), {})], "n_values": [(s.attainable_shift, (0, 2), {})],
    "counts": [*((s.ntvd_bounds, (rows, [0] * len(rows)), {}) for rows in ([[1, 2]], [[1, 2], [0, 0]])),
               *((inputs.counts, (rows, "counts"), {}) for rows in ([[1, 2], [3]], [[1.5]], [[-1]], "a"))],
    "missing": [(s.ntvd_bounds, ([[1, 2], [1, 2]], n), {}) for n in ([0], [0, -1], [1, None])],
    "labelled_rows": [(correct, (rows, XY), {}) for rows in LABELLED], "labels": [(correct, ([0], XY), {})],
    "min_labels": [(correct, ([0, 1], XY), {"min_labels": 1})],
    "p": [(s.adjust, ([0.2, 1.5],), {}), *((s.adjust_hierarchy, (p,), {}) for p in ({"a": 1.5}, [0.1], {"a": "text"}))],
    "method": [(s.adjust, ([0.5],), {"method": "holm"})],
    "below": [(s.adjust_hierarchy, (TREE, below), {}) for below in (
              [("a", "bb")], [("a", "d")], [("a", "b"), ("b", "c")])],
    "distances": [(s.rank_models, (distances, {}), {}) for distances in ({}, {"a": math.nan})],
    "differences": [(s.rank_models, ({"a": 1, "b": 2}, {pair: (1, 0.5)}), {}) for pair in ("ac", "aa")],
    "level": [(s.rank_models, ({"a": 1.0}, {}), {"level": 5})], "ratings": [(s.krippendorff_alpha, ([],), {})],
    "columns": [(s.correlations, ({"a": [1.0]},), {})], "b": [(s.correlations, ({"a": [1, 2], "b": [1]},), {})],
    "units": [(Plan, (), {"units": 5, "answers": 1, "groups": 3})],
    "correlation": [(Plan, (), {"units": 5, "answers": 1, "groups": 2, "correlation": 1.5})],
}  # fmt: skip


@pytest.mark.parametrize("argument", REFUSED)
def test_requests_without_a_meaning_are_refused(argument: str) -> None:
    for call, arguments, given in REFUSED[argument]:
        with pytest.raises(UsageError, match=f"`{argument}`"):
            call(*arguments, **given)
