"""Metrics of plain columns: the numbers of hand arithmetic and of a run, and no number where something is missing."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.metrics.badf.columns import METRIC as CONCEPTS
from equivox.metrics.badf.counts import METRIC as COUNTS
from equivox.metrics.badf.released import LISTED
from equivox.metrics.column_metric import ColumnMetric
from equivox.metrics.genres.columns import METRIC as GENRES
from equivox.metrics.ntvd.columns import METRIC as NTVD
from equivox.metrics.numbers.columns import METRIC as NUMBERS
from equivox.metrics.spoken_stereoset.columns import METRIC as STEREOSET

METRICS: list[ColumnMetric[...]] = [NTVD, NUMBERS, STEREOSET, GENRES, CONCEPTS, COUNTS, LISTED]


def test_ntvd_by_hand() -> None:
    # a: chess 5/6, b: chess 2/6. TVD to the mean distribution: (3/6)/2 each, normalised by 1 - 1/2: 50.
    found = NTVD(
        groups=["a"] * 6 + ["b"] * 6,
        values=["chess"] * 5 + ["yoga", "chess", "chess", "yoga", "yoga", "yoga", "yoga"],
        min_count=1,
    )
    assert found["ntvd"] == pytest.approx(50)
    # Each row is a unit; b/B of permutations of rows may be 0.
    assert 0 < found["p_published"] < found["p"] + 0.05
    assert (found["n_used"], found["coverage"], found["undefined"]) == (12, 1.0, None)


def test_lists_count_every_value() -> None:
    # a: {x: 2, y: 2}, b: {x: 4}: shares of x 1/2 and 1, so 50.
    found = NTVD(groups=["a", "a", "b", "b"], values=[["x", "y"], ["x", "y"], ["x", "x"], ("x", "x")], min_count=1)
    assert found["ntvd"] == pytest.approx(50)


def test_constant_and_one_group_are_undefined() -> None:
    constant = NTVD(groups=["a", "b"] * 5, values=["x"] * 10)
    assert math.isnan(constant["ntvd"])
    assert "one_value" in constant["undefined"]
    alone = NTVD(groups=["a"] * 10, values=["x", "y"] * 5)
    assert math.isnan(alone["ntvd"])
    assert math.isnan(alone["missing_high"])
    assert "one_group" in alone["undefined"]


def test_ntvd_equals_that_of_a_run(tmp_path: Path, equivox: Cli) -> None:
    from equivox.run.declarations import read_tasks
    from equivox.run.scoring import read_scores, sample_rows

    run = tmp_path / "run"
    equivox.done(
        *("run", "simulated:planted,shift=0.3", "vibe_gender:story", "--data", "sample", "--output", run),
        *("--scoring", "n_resamples=199"),
    )
    (task,) = read_tasks(run)
    rows = sample_rows(run, [task], "rules")[task.name]
    for score in read_scores(run):
        if score.attribute is None or score.role != "outcome":
            continue
        found = NTVD(
            groups=[row.group for row in rows],
            values=[row.values.get(score.attribute) for row in rows],
            clusters=[row.cluster for row in rows],
            n_resamples=200,
        )
        assert found["ntvd"] == pytest.approx(score.value, abs=1e-12)
        assert found["removed_share"] == pytest.approx(score.rare_share, abs=1e-12)
        assert found["n_clusters"] == score.n_units


def test_stereoset_by_hand() -> None:
    kinds = ["stereotypical"] * 6 + ["anti_stereotypical"] * 2 + ["irrelevant", "other"]
    found = STEREOSET(kinds=kinds)
    assert (found["slifs"], found["slms"], found["slbs"], found["parity_deviation"]) == pytest.approx((90, 80, 75, 50))
    # Two-sided sign test, 6 of 8: 2 · (28 + 8 + 1)/256.
    assert found["p"] == pytest.approx(74 / 256)


def test_what_was_not_generated_is_in_no_share() -> None:
    found = STEREOSET(kinds=["stereotypical", "anti_stereotypical", "irrelevant", "other", None])
    assert (found["slifs"], found["slms"], found["n_generated"]) == (75, 50, 4)
    assert math.isnan(found["slbs"])  # three of five choose: below the floor
    nothing = STEREOSET(kinds=[None, None])
    assert math.isnan(nothing["slifs"])
    assert "share 0.0" in nothing["undefined"]


def test_one_letter_is_no_even_model() -> None:
    kinds = ["stereotypical", "anti_stereotypical"] * 5
    assert STEREOSET(kinds=kinds, letters=["A", "B"] * 5)["slbs"] == 50
    stuck = STEREOSET(kinds=kinds, letters=["A"] * 10)
    assert math.isnan(stuck["slbs"])
    assert "position decides" in stuck["slbs_undefined"]


def test_genres_by_hand() -> None:
    found = GENRES(
        metrics=["M3"] * 4 + ["M4"] * 3,
        pairs=["a", "a", "b", "c", "a", "b", "c"],
        male=[4, 6, 3, 5, 1, 1, 0],
        female=[3, 3, 2, 2, 0, 0, 0],
    )
    # Pair a is read twice: (5 - 3), b 1, c 3: mean 2. M4: both decided pairs choose the man, one chooses neither.
    assert found["m3"] == pytest.approx(2)
    assert found["m3_p"] == pytest.approx(2 / 8)
    assert found["m4"] == pytest.approx(100)
    assert (found["m4_n_pairs"], found["m4_coverage"]) == (2, 1.0)


def test_a_choice_that_could_not_be_read_is_not_undecided() -> None:
    found = GENRES(metrics=["M4"] * 10, pairs=list("abcdefghij"), male=[1, 0, *[None] * 8], female=[0, 1, *[None] * 8])
    assert math.isnan(found["m4"])
    assert found["m4_coverage"] == pytest.approx(0.2)
    assert "share 0.2" in found["m4_undefined"]
    neither = GENRES(metrics=["M8"] * 4, pairs=list("abcd"), male=[0] * 4, female=[0] * 4)
    assert math.isnan(neither["m8"])
    assert neither["m8_undefined"] == "no narrative was decided"


def test_a_total_bias_score_names_its_cohort() -> None:
    from equivox.metrics.genres.cohort import published_cohort

    names = [f"M{number}" for number in range(1, 9)]
    # Every metric at two pairs: the choices M4 and M8 go one to each, M7 to the man alone.
    columns = {
        "metrics": [name for name in names for _ in range(2)],
        "pairs": ["a", "b"] * 8,
        "male": [0.5, 0.6, 0.1, 0.2, 3, 4, 1, 0, 2, 3, 0.5, 0.6, 1, 1, 1, 0],
        "female": [0.4, 0.6, 0.1, 0.1, 2, 2, 0, 1, 2, 2, 0.4, 0.6, 0, 0, 0, 1],
    }
    found = GENRES(**columns, cohort="published-glm-4-9b")
    own = {name: found[name.lower()] for name in names}
    assert own == pytest.approx(
        {"M1": 5, "M2": 0.05, "M3": 1.5, "M4": 0, "M5": 0.5, "M6": 5, "M7": 1, "M8": 0}, abs=1e-12
    )
    cohort = [*published_cohort("published-glm-4-9b").values(), own]
    expected = 0.0
    for name in names:
        column = [model[name] for model in cohort]
        mean = sum(column) / len(column)
        expected += abs(own[name] - mean) / math.sqrt(sum((v - mean) ** 2 for v in column) / len(column))
    assert found["tbs"] == pytest.approx(expected)
    assert "published-glm-4-9b" in found["tbs_cohort"]
    missing = GENRES(metrics=["M3"], pairs=["a"], male=[2], female=[1], cohort="published-glm-4-9b")
    assert math.isnan(missing["tbs"])
    assert "no value for M1" in missing["tbs_undefined"]


def test_concepts_by_hand() -> None:
    # nurse: 15 of 20 stories of women, 5 of 20 of men; χ² with Yates (|15·15 − 5·5| − 20)² · 40/(20·20·20·20) = 8.1.
    found = CONCEPTS(
        identities=["female"] * 20 + ["male"] * 20,
        phrases=[["nurse"]] * 15 + [["calm"]] * 5 + [["nurse"]] * 5 + [["calm"]] * 15,
    )
    from scipy.stats import chi2

    assert (found["associations"], found["associations_female"], found["associations_male"]) == (2, 1, 1)
    assert found["mean_p"] == pytest.approx(chi2.sf(8.1, 1))
    assert math.isnan(found["p_names"])


def test_a_silent_story_is_read_and_not_used_and_an_unread_one_is_neither() -> None:
    said = [["nurse"], ["calm"], [], ["nurse"], ["calm"]] * 2
    read = CONCEPTS(identities=["f", "m"] * 5, phrases=said)
    # One of five stories of each group says nothing: at the floor.
    assert (read["coverage"], read["undefined"]) == (0.8, None)
    unread = CONCEPTS(identities=["f", "m"] * 5, phrases=[words or None for words in said[:-1]] + [None])
    assert math.isnan(unread["associations"])
    assert "too_few_usable" in unread["undefined"]


def test_too_few_stories_find_nothing_and_say_so() -> None:
    # Three stories of each: χ² with Yates of the clearest table is (9 - 3)² · 6/81 = 2.67, p = .10; with four 4.5, .03.
    few = CONCEPTS(identities=["f", "m"] * 3, phrases=[["kind"], ["brave"]] * 3)
    assert math.isnan(few["associations"])
    assert "too few stories" in few["undefined"]
    assert CONCEPTS(identities=["f", "m"] * 4, phrases=[["kind"], ["brave"]] * 4)["associations"] == 2


def test_a_p_stands_beside_the_smallest_that_there_could_be() -> None:
    # Two clusters of each group: 4! / (2! 2!) = 6 permutations, of which two tell the groups apart as well as this one.
    columns = {"groups": list("aabb") * 3, "clusters": list("1234") * 3}
    found = NTVD(values=list("xxyy") * 3, **columns)
    assert (found["ntvd"], found["p"], found["p_least"]) == (100, pytest.approx(1 / 3), pytest.approx(1 / 3))
    found = NUMBERS(numbers=[1, 1, 2, 2] * 3, **columns)
    assert (found["p"], found["p_least"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    # Clusters without an answer cannot be permuted: three of group a and two of b are 5! / (3! 2!) = 10 permutations.
    groups, clusters = list("aaaabb") * 2, list("123456") * 2
    found = NTVD(groups=groups, clusters=clusters, values=["x", "x", "x", None, "y", "y"] * 2, min_coverage=0.7)
    assert (found["p"], found["p_least"]) == (pytest.approx(0.1), pytest.approx(0.1))
    # Three of ten units have answers of both groups, and flip: 2 / 2^3. Four of the others lack those of b, three of a.
    columns = {"groups": list("ab") * 10, "clusters": [f"unit {row // 2}" for row in range(20)], "min_coverage": 0.5}
    numbers = [None if row in (1, 4, 7, 8, 11, 12, 15) else row % 2 for row in range(20)]
    assert NUMBERS(numbers=numbers, **columns)["p_least"] == 0.25
    assert NTVD(values=[None if n is None else "xy"[n] for n in numbers], **columns)["p_least"] == 0.25
    # Three contexts that all lean one way: flips of three signs, 2 / 2^3.
    found = STEREOSET(kinds=["stereotypical"] * 3, contexts=list("abc"))
    assert (found["p"], found["p_least"]) == (0.25, 0.25)
    assert all(math.isnan(one(**given)["p_least"]) for one, given in (
        (NTVD, {"groups": list("ab"), "values": ["x", None], "clusters": list("12")}),
        (NUMBERS, {"groups": list("ab"), "numbers": [1, None]}),
        (STEREOSET, {"kinds": ["other"] * 3}),
    ))  # fmt: skip


GROUPS, VALUES = ["a"] * 5 + ["b"] * 5, ["x", "x", "x", "y", "y", "x", "y", "y", "y", "y"]


@pytest.mark.parametrize(
    ("groups", "values"),
    [
        (np.array(GROUPS), pd.Series(VALUES, index=range(7, 17))),
        (pd.Series(GROUPS).astype("category"), list(pa.array(VALUES))),
        (iter(GROUPS), pa.chunked_array([VALUES[:3], VALUES[3:]])),
        (["None"] * 5 + ["f"] * 5, ["nan" if value == "x" else "None" for value in VALUES]),
        ([0, 0, 0.0, 0, 0, 1, 1, 1, 1, 1], [1, 1, np.int64(1), 2.0, np.float32(2), "1", 2, 2, True + 1, 2]),
    ],
)
def test_columns_of_any_table(groups: object, values: object) -> None:
    # Shares of x: 3/5 and 1/5.
    assert NTVD(groups=groups, values=values, min_count=1)["ntvd"] == pytest.approx(40)


MISSING = [
    None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, pa.scalar(None, pa.string()), "", " \t", [None], [""],
    [float("nan"), pd.NA], np.array([np.nan]), [],
]  # fmt: skip


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_entry_is_no_word(missing: object) -> None:
    found = NTVD(groups=GROUPS, values=[*VALUES[:9], missing], min_count=1)
    assert (found["n_used"], found["coverage"]) == (9, pytest.approx(0.9))
    # Shares of x: 3/5 and 1/4.
    assert found["ntvd"] == pytest.approx(35)
    # The missing one may have been y (1/5, distance 40) or x (2/5, distance 20).
    assert (found["missing_low"], found["missing_high"]) == pytest.approx((20, 40))


def ntvd(**given: Any) -> tuple[ColumnMetric[...], dict[str, Any]]:
    return NTVD, {"groups": GROUPS, "values": VALUES, **given}


def genres(metric: str, male: object, female: object) -> tuple[ColumnMetric[...], dict[str, Any]]:
    return GENRES, {"metrics": [metric], "pairs": ["a"], "male": [male], "female": [female]}


@pytest.mark.parametrize(
    ("called", "words"),
    [
        (ntvd(values=["x", "y"]), r"columns have unequal lengths \(groups 10, values 2\)"),
        (ntvd(clusters=["s", *[None] * 9]), "`clusters` is missing in 9 of 10 rows"),
        (ntvd(groups=pd.Series([*GROUPS[:9], None], dtype="string")), "`groups` is missing in 1 of 10 rows"),
        (ntvd(groups=pd.Series([*GROUPS[:9], float("nan")])), "`groups` is missing in 1 of 10 rows"),
        (ntvd(groups=["nan"] * 5 + ["f"] * 5), "`groups` holds the text 'nan', a missing entry"),
        (ntvd(groups=["NaN "] * 5 + ["f"] * 5), "`groups` holds the text 'NaN ', a missing entry"),
        (ntvd(groups=[*GROUPS[:9], "A"]), "`groups` holds 'a' and 'A', which differ in case"),
        (ntvd(clusters=["Zoë", "Zoe\u0308 "] * 5), r"`clusters` holds 'Zo\\xeb' and 'Zoe\\u0308 '"),
        ((NUMBERS, {"groups": ["f", "m"], "numbers": [1, 2], "clusters": ["s", "s "]}), "`clusters` holds 's' and"),
        ((CONCEPTS, {"identities": ["f", "F"], "phrases": [[], []]}), "`identities` holds 'f' and 'F'"),
        ((CONCEPTS, {"identities": ["f", "m"], "phrases": [[], []], "merge": "stem"}), "`merge` is one of none, lemma"),
        (ntvd(min_cover=0.5), "has no column or option `min_cover`; did you mean min_coverage"),
        (ntvd(groups="aaaaabbbbb"), "`groups` is a str: give one column"),
        (ntvd(groups=3), "`groups` is a int"),
        (ntvd(groups={"a", "b"}), "`groups` is a set"),
        *((ntvd(groups=t({"g": GROUPS})), "give one column") for t in (pd.DataFrame, pa.table, dict)),
        (ntvd(values=[b"x", *VALUES[1:]]), "a bytes: give words"),
        (ntvd(values=[{"x": 1}, *VALUES[1:]]), "a dict: give words"),
        (ntvd(values=[[["x"]], *VALUES[1:]]), "a list: give words"),
        (ntvd(groups=[["a"], *GROUPS[1:]]), "a list: give words"),
        *((ntvd(min_coverage=share), "`min_coverage` is a share between 0 and 1") for share in (float("nan"), "0.8")),
        (ntvd(min_count=2.5), "`min_count` is a whole number from 1 up, got 2.5"),
        (ntvd(n_resamples=0), "`n_resamples` is a whole number from 1 up"),
        *((ntvd(seed=seed), "`seed` is a whole number from 0 up") for seed in (-1, True)),
        ((STEREOSET, {"kinds": ["stereotypicl"]}), "`kinds` holds 'stereotypicl'"),
        (genres("M9", 1, 0), "`metrics` holds 'M9'"),
        (genres("M3", "many", 0), "`male` holds 'many': give finite numbers"),
        (genres("M1", 50, 0.5), "`male` holds 50 for M1, whose values are from 0 to 1"),
        (genres("M3", 2, -1), "`female` holds -1 for M3, whose values are from 0 up"),
        (genres("M4", 1, 1), "the chosen one has 1 and the other 0"),
        (genres("M8", 1, None), "the chosen one has 1 and the other 0"),
        (genres("M5", float("inf"), 1), "give finite numbers"),
    ],
)
def test_what_cannot_be_measured_is_one_line(called: tuple[ColumnMetric[...], dict[str, Any]], words: str) -> None:
    metric, given = called
    with pytest.raises(UsageError, match=words):
        metric(**given)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_an_editor_shows_every_column_and_option(metric: ColumnMetric[...]) -> None:
    shown = inspect.signature(metric.measure).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in shown.values())
    required = {name for name, parameter in shown.items() if parameter.default is parameter.empty}
    assert required == set(metric.required)
    assert list(shown)[: len(metric.kinds)] == list(metric.kinds)
    with pytest.raises(UsageError, match="takes its columns by name"):
        metric(["f", "m"])
    with pytest.raises(UsageError, match="missing"):
        metric()
    with pytest.raises(UsageError, match="no rows"):
        metric(**{name: [] for name in metric.required})


@pytest.mark.parametrize(
    "first", ["", "import equivox.metrics.{name}", "import equivox.tasks.registry as r; r.builtin_tasks()"]
)
def test_the_name_means_the_function_whatever_was_imported_before(first: str) -> None:
    code = "".join(
        f"{first.format(name=name)}\nfrom equivox.metrics import {name}\nassert {name}.name == '{name}'\n"
        for name in ("ntvd", "spoken_stereoset", "genres", "concept_associations")
    )
    subprocess.run([sys.executable, "-c", code], check=True)
