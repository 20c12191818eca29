"""The column metrics as functions: each has the columns and options of its metric by name, and gives its numbers."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys

import pytest

from equivox import metrics as columns
from equivox.core.columns import ColumnMetric
from equivox.core.errors import UsageError
from equivox.metrics.badf.columns import METRIC as BADF
from equivox.metrics.badf.counts import METRIC as COUNTS
from equivox.metrics.badf.released import LISTED
from equivox.metrics.genres.columns import METRIC as GENRES
from equivox.metrics.ntvd.columns import METRIC as NTVD
from equivox.metrics.numbers.columns import METRIC as NUMBERS
from equivox.metrics.spoken_stereoset.columns import METRIC as SPOKEN

METRICS: list[ColumnMetric[...]] = [NTVD, NUMBERS, SPOKEN, GENRES, BADF, COUNTS, LISTED]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_an_editor_shows_every_column_and_option(metric: ColumnMetric[...]) -> None:
    shown = inspect.signature(metric.measure).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in shown.values())
    required = {name for name, parameter in shown.items() if parameter.default is parameter.empty}
    assert required == set(metric.required)
    assert list(shown)[: len(metric.kinds)] == list(metric.kinds)
    with pytest.raises(UsageError, match="takes its columns by name"):
        metric(["f", "m"])


@pytest.mark.parametrize(
    "first", ["", "import equivox.metrics.{name}", "import equivox.tasks.registry as r; r.builtin_tasks()"]
)
def test_the_name_means_the_function_whatever_was_imported_before(first: str) -> None:
    code = "".join(
        f"{first.format(name=name)}\nfrom equivox.metrics import {name}\nassert {name}.name == '{name}'\n"
        for name in ("ntvd", "spoken_stereoset", "genres", "concept_associations")
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("FEMALE", "'female' and 'FEMALE', which differ in case, space, coding or `.0`"),
        ("female ", "'female' and 'female ', which differ in case, space, coding or `.0`"),
        ("fe\u200bmale", r"'female' and 'fe\\u200bmale', which differ in case, space, coding or `.0`"),
        ("nan", "the text 'nan', a missing entry"),
        ("NaN", "the text 'NaN', a missing entry"),
    ],
)
def test_groups_are_not_told_apart_by_spelling(spelled: str, message: str) -> None:
    groups = ["female", "male", spelled, "male"] * 4
    with pytest.raises(UsageError, match=message):
        columns.ntvd(groups=groups, values=["tea", "ale"] * 8, n_resamples=99)
    with pytest.raises(UsageError, match=message):
        columns.concept_associations(identities=groups, phrases=[["calm"], ["brave"]] * 8, n_resamples=99)
    # Groups of several words, and speakers, are what they are.
    columns.ntvd(groups=["north east", "south"] * 8, values=["tea", "ale"] * 8, clusters=list("aAbBcCdDeEfFgGhH"))
    # One speaker under two spellings would count as two.
    two = ["Zoë", "Max", "Zoe\u0308 ", "Max"] * 4
    for measure, own in (
        (columns.ntvd, {"values": ["tea", "ale"] * 8}),
        (columns.numbers, {"numbers": [1.0, 2.0] * 8}),
    ):
        with pytest.raises(UsageError, match=r"`clusters` holds 'Zo\\xeb' and 'Zoe\\u0308 '"):
            measure(groups=["f", "m"] * 8, clusters=two, n_resamples=99, **own)


def test_a_whole_number_with_a_missing_one_beside_it_is_the_same_group() -> None:
    # A column of 1 and 2 becomes one of 1.0 and 2.0 where pandas finds a value missing; two tables together have four.
    with pytest.raises(
        UsageError, match=r"`groups` holds '1' and '1\.0', which differ in case, space, coding or `\.0`"
    ):
        columns.ntvd(groups=["1", "2", "1.0", "2.0"] * 4, values=["tea", "ale"] * 8, n_resamples=99)
    with pytest.raises(UsageError, match=r"`groups` holds 'f × 1' and 'f × 1\.0'"):
        columns.ntvd(groups=["f × 1", "m × 2", "f × 1.0", "m × 2.0"] * 4, values=["tea", "ale"] * 8, n_resamples=99)
    columns.ntvd(groups=["1.5", "1.50", "10", "100"] * 4, values=["tea", "ale"] * 8, n_resamples=99)


def test_a_p_stands_beside_the_smallest_that_there_could_be() -> None:
    # Two clusters of each group: 4! / (2! 2!) = 6 permutations, of which two tell the groups apart as well as this one.
    columns = {"groups": list("aabb") * 3, "clusters": list("1234") * 3}
    found = NTVD(values=list("xxyy") * 3, **columns)
    assert (found["ntvd"], found["p_cluster"], found["p_least"]) == (100, pytest.approx(1 / 3), pytest.approx(1 / 3))
    found = NUMBERS(numbers=[1, 1, 2, 2] * 3, **columns)
    assert (found["p"], found["p_least"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    # Clusters without an answer cannot be permuted: three of group a and two of b are 5! / (3! 2!) = 10 permutations.
    groups, clusters = list("aaaabb") * 2, list("123456") * 2
    found = NTVD(groups=groups, clusters=clusters, values=["x", "x", "x", None, "y", "y"] * 2, min_coverage=0.7)
    assert (found["p_cluster"], found["p_least"]) == (pytest.approx(0.1), pytest.approx(0.1))
    # Three of ten units have answers of both groups, and flip: 2 / 2^3. Four of the others lack those of b, three of a.
    columns = {"groups": list("ab") * 10, "clusters": [f"unit {row // 2}" for row in range(20)], "min_coverage": 0.5}
    numbers = [None if row in (1, 4, 7, 8, 11, 12, 15) else row % 2 for row in range(20)]
    assert NUMBERS(numbers=numbers, **columns)["p_least"] == 0.25
    assert NTVD(values=[None if n is None else "xy"[n] for n in numbers], **columns)["p_least"] == 0.25
    # Three contexts that all lean one way: flips of three signs, 2 / 2^3.
    found = SPOKEN(kinds=["stereotypical"] * 3, contexts=list("abc"))
    assert (found["p"], found["p_least"]) == (0.25, 0.25)
    assert all(math.isnan(one(**given)["p_least"]) for one, given in (
        (NTVD, {"groups": list("ab"), "values": list("xy")}),
        (NTVD, {"groups": list("ab"), "values": ["x", None], "clusters": list("12")}),
        (NUMBERS, {"groups": list("ab"), "numbers": [1, None]}),
        (SPOKEN, {"kinds": ["other"] * 3}),
    ))  # fmt: skip
