"""Metrics of plain columns: the numbers found by hand and by a run, and no number where something is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.metrics.badf.columns import METRIC as CONCEPTS
from equivox.metrics.genres.columns import METRIC as GENRES
from equivox.metrics.ntvd.columns import METRIC as NTVD
from equivox.metrics.spoken_stereoset.columns import METRIC as STEREOSET

METRICS = [NTVD, STEREOSET, GENRES, CONCEPTS]


def test_ntvd_by_hand() -> None:
    # a: chess 5/6, b: chess 2/6. TVD to the mean distribution: (3/6)/2 each, normalised by 1 - 1/2: 50.
    found = NTVD(
        groups=["a"] * 6 + ["b"] * 6,
        values=["chess"] * 5 + ["yoga", "chess", "chess", "yoga", "yoga", "yoga", "yoga"],
        min_count=1,
    )
    assert found["ntvd"] == pytest.approx(50)
    assert math.isnan(found["p_cluster"])
    assert (found["n_used"], found["coverage"], found["undefined"]) == (12, 1.0, None)


def test_lists_count_every_value() -> None:
    # a: {x: 2, y: 2}, b: {x: 4}: shares of x 1/2 and 1, so 50.
    found = NTVD(groups=["a", "a", "b", "b"], values=[["x", "y"], ["x", "y"], ["x", "x"], ("x", "x")], min_count=1)
    assert found["ntvd"] == pytest.approx(50)


def test_constant_and_one_group_are_undefined() -> None:
    constant = NTVD(groups=["a", "b"] * 5, values=["x"] * 10)
    assert math.isnan(constant["ntvd"])
    assert "neither a difference nor fairness" in constant["undefined"]
    alone = NTVD(groups=["a"] * 10, values=["x", "y"] * 5)
    assert math.isnan(alone["ntvd"])
    assert math.isnan(alone["worst_high"])
    assert "only one group" in alone["undefined"]


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


@pytest.mark.parametrize(
    ("metric", "male", "female", "said"),
    [
        ("M1", 50, 0.5, "`male` holds 50 for M1, whose values are from 0 to 1"),
        ("M3", 2, -1, "`female` holds -1 for M3, whose values are from 0 up"),
        ("M4", 1, 1, "the chosen one has 1 and the other 0"),
        ("M8", 1, None, "the chosen one has 1 and the other 0"),
        ("M5", float("inf"), 1, "give finite numbers"),
    ],
)
def test_values_that_a_metric_cannot_have(metric: str, male: float, female: float | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        GENRES(metrics=[metric], pairs=["a"], male=[male], female=[female])


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


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(metric.name))
def test_nothing_raises(metric: object) -> None:
    with pytest.raises(UsageError, match=r"no rows|missing"):
        metric()
    with pytest.raises(UsageError, match="no rows"):
        metric(**{name: [] for name in metric.required})  # type: ignore[attr-defined]


def test_bad_columns_are_one_line() -> None:
    with pytest.raises(UsageError, match=r"columns have unequal lengths \(groups 2, values 3\)"):
        NTVD(groups=["a", "b"], values=["x", "y", "x"])
    with pytest.raises(UsageError, match="`clusters` is missing in 1 of 2 rows"):
        NTVD(groups=["a", "b"], values=["x", "y"], clusters=["s", None])
    with pytest.raises(UsageError, match="has no column or option `min_cover`; did you mean min_coverage"):
        NTVD(groups=["a", "b"], values=["x", "y"], min_cover=0.5)
    with pytest.raises(UsageError, match="`kinds` holds 'stereotypicl'"):
        STEREOSET(kinds=["stereotypicl"])
    with pytest.raises(UsageError, match="`metrics` holds 'M9'"):
        GENRES(metrics=["M9"], pairs=["a"], male=[1], female=[0])
    with pytest.raises(UsageError, match="`male` holds 'many': give numbers"):
        GENRES(metrics=["M3"], pairs=["a"], male=["many"], female=[0])


GROUPS, VALUES = ["a"] * 5 + ["b"] * 5, ["x", "x", "x", "y", "y", "x", "y", "y", "y", "y"]


def _columns(kind: str) -> tuple[object, object]:
    """Return the same two columns in the types that tables have."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    made: dict[str, Callable[[list[str]], object]] = {
        "numpy": np.array,
        "series": lambda words: pd.Series(words, index=range(7, 17)),
        "category": lambda words: pd.Series(words).astype("category"),
        "string": lambda words: pd.Series(words, dtype="string"),
        "arrow": pa.array,
        "chunked": lambda words: pa.chunked_array([words[:3], words[3:]]),
        "scalars": lambda words: list(pa.array(words)),
        "generator": iter,
    }
    return made[kind](GROUPS), made[kind](VALUES)


@pytest.mark.parametrize("kind", ["numpy", "series", "category", "string", "arrow", "chunked", "scalars", "generator"])
def test_columns_of_any_table(kind: str) -> None:
    groups, values = _columns(kind)
    # Shares of x: 3/5 and 1/5.
    assert NTVD(groups=groups, values=values, min_count=1)["ntvd"] == pytest.approx(40)


def _missing() -> list[object]:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    return [
        None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, pa.scalar(None, pa.string()), "", " \t", [None], [""],
        [float("nan"), pd.NA], np.array([np.nan]), [],
    ]  # fmt: skip


@pytest.mark.parametrize("missing", _missing(), ids=repr)
def test_whatever_means_missing_is_no_word(missing: object) -> None:
    found = NTVD(groups=GROUPS, values=[*VALUES[:9], missing], min_count=1)
    assert (found["n_used"], found["coverage"]) == (9, pytest.approx(0.9))
    # Shares of x: 3/5 and 1/4.
    assert found["ntvd"] == pytest.approx(35)
    # The missing one may have been y (1/5, distance 40) or x (2/5, distance 20).
    assert (found["worst_low"], found["worst_high"]) == pytest.approx((20, 40))


def test_a_missing_group_is_no_group() -> None:
    import pandas as pd

    for groups in (pd.Series([*GROUPS[:9], None], dtype="string"), pd.Series([*GROUPS[:9], float("nan")])):
        with pytest.raises(UsageError, match="`groups` is missing in 1 of 10 rows"):
            NTVD(groups=groups, values=VALUES)


def test_names_that_look_missing_are_words() -> None:
    values = ["nan" if value == VALUES[0] else "None" for value in VALUES]
    assert NTVD(groups=["None"] * 5 + ["f"] * 5, values=values, min_count=1)["ntvd"] == pytest.approx(40)
    with pytest.raises(UsageError, match="`groups` holds the text 'nan'"):
        NTVD(groups=["nan"] * 5 + ["f"] * 5, values=VALUES)


def test_whole_numbers_are_words_whatever_their_type() -> None:
    import numpy as np

    numbers = [1, 1, np.int64(1), 2.0, np.float32(2), "1", 2, 2, True + 1, 2]
    assert NTVD(groups=[0, 0, 0.0, 0, 0, 1, 1, 1, 1, 1], values=numbers, min_count=1)["ntvd"] == pytest.approx(40)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": "aaaaabbbbb"}, "`groups` is a str: give one column"),
        ({"groups": 3}, "`groups` is a int"),
        ({"groups": {"a", "b"}}, "`groups` is a set"),
        ({"values": [b"x", *VALUES[1:]]}, "a bytes: give words"),
        ({"values": [{"x": 1}, *VALUES[1:]]}, "a dict: give words"),
        ({"values": [[["x"]], *VALUES[1:]]}, "a list: give words"),
        ({"groups": [["a"], *GROUPS[1:]]}, "a list: give words"),
        ({"min_coverage": float("nan")}, "`min_coverage` is a share between 0 and 1"),
        ({"min_coverage": "0.8"}, "`min_coverage` is a share between 0 and 1"),
        ({"min_count": 2.5}, "`min_count` is a whole number from 1 up, got 2.5"),
        ({"n_resamples": 0}, "`n_resamples` is a whole number from 1 up"),
        ({"seed": -1}, "`seed` is a whole number from 0 up"),
        ({"seed": True}, "`seed` is a whole number from 0 up"),
    ],
)
def test_silly_input_is_one_line(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        NTVD(**{"groups": GROUPS, "values": VALUES, **given})


def test_a_table_is_no_column() -> None:
    import pandas as pd
    import pyarrow as pa

    for table in (pd.DataFrame({"g": GROUPS}), pa.table({"g": GROUPS}), {"g": GROUPS}):
        with pytest.raises(UsageError, match="give one column"):
            NTVD(groups=table, values=VALUES)


def test_too_few_stories_find_nothing_and_say_so() -> None:
    # Three stories of each: χ² with Yates of the clearest table is (9 - 3)² · 6/81 = 2.67, p = .10; with four 4.5, .03.
    few = CONCEPTS(identities=["f", "m"] * 3, phrases=[["kind"], ["brave"]] * 3)
    assert math.isnan(few["associations"])
    assert "too few stories" in few["undefined"]
    assert CONCEPTS(identities=["f", "m"] * 4, phrases=[["kind"], ["brave"]] * 4)["associations"] == 2


def test_merging_is_one_of_those_there_are() -> None:
    with pytest.raises(UsageError, match="`merge` is one of none, lemma, embedding"):
        CONCEPTS(identities=["f", "m"], phrases=[["kind"], ["brave"]], merge="stem")
