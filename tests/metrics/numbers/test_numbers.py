"""The metric numbers: what it scores, what is missing and counted apart, and models whose bias is known."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli
from made_scores import code_of
from offers import OPTIONS, SALARIES, SALARY, rows, task, task_file
from scipy import stats

from equivox import measure
from equivox.core.annotation import AnnotatorIdentity
from equivox.core.attributes import Number
from equivox.core.errors import UsageError
from equivox.core.notes import Note, NoteCode
from equivox.core.outcomes import decide_outcome
from equivox.core.samples import Row, Samples
from equivox.core.scores import Score, ScoringOptions
from equivox.core.task import Attribute
from equivox.metrics import numbers
from equivox.metrics.numbers.scorer import DIFFERENCE, score_numbers
from equivox.run.scoring import with_q
from equivox.tasks.files import load_task_file


def scored(table: list[Row], *, options: ScoringOptions = OPTIONS) -> tuple[dict[str, Score], list[dict[str, Any]]]:
    found = score_numbers(task(SALARY), Samples.from_rows(table), options)
    return {score.metric: score for score in found.scores}, [dict(row) for row in found.tables["numbers"]]


def test_the_scores_by_hand_and_by_scipy() -> None:
    one, other = [30.0, 40, 50, 60], [20.0, 30, 30, 40]
    scores, table = scored([*rows("female", one), *rows("male", other)])
    difference = scores[DIFFERENCE]
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert (difference.value, difference.unit) == (15, "EUR")
    assert difference.ci == pytest.approx((interval.low, interval.high))
    assert difference.by_group == {"female": 45, "male": 30}
    assert difference.is_whole and difference.parts == ("salary",)
    assert [(row["group"], row["mean"], row["used"]) for row in table] == [("female", 45, 4), ("male", 30, 4)]


def test_refusals_and_silence_are_missing_and_out_of_range_is_counted_apart() -> None:
    women: list[float | str] = [30.0, 40, 50, 60, "refused", "unparsed", 900.0]
    men: list[float | str] = [20.0, 30, 30, 40, -1.0, "missing", 50.0]
    scores, table = scored([*rows("female", women), *rows("male", men)])
    # (30 + 40 + 50 + 60) / 4 and (20 + 30 + 30 + 40 + 50) / 5: no 0, no 900.
    assert scores[DIFFERENCE].value == 45 - 34
    assert scores[DIFFERENCE].coverage.used_by_group == {"female": 4, "male": 5}
    counted = {row["group"]: (row["refused"], row["no_number"], row["out_of_range"], row["used"]) for row in table}
    assert counted == {"female": (1, 1, 1, 4), "male": (0, 1, 1, 5)}
    told = "2 answers have a number that is not from 0 to 100 EUR, left out (female 1, male 1)"
    assert told in map(str, scores[DIFFERENCE].notes)


def test_a_digit_without_end_is_no_number_and_stops_no_score() -> None:
    without_range = Attribute(name="salary", asks="the salary", number=Number(unit="EUR"))
    table = [*rows("female", [30.0, 40, 50, 60, 1e300]), *rows("male", [20.0, 30, 30, 40, -1e60])]
    found = score_numbers(task(without_range), Samples.from_rows(table), OPTIONS)
    difference = next(score for score in found.scores if score.metric == DIFFERENCE)
    assert difference.value == 45 - 30
    assert "2 answers have a number that is beyond 1e+50, left out (female 1, male 1)" in map(str, difference.notes)
    plain = numbers(groups=["f"] * 5 + ["m"] * 5, numbers=[30, 40, 50, 60, 1e308, 20, 30, 30, 40, -1e308])
    assert (plain["difference"], plain["out_of_range"]) == (45 - 30, 2)


@pytest.mark.parametrize(
    ("low", "annotator", "told"), [(None, "rules", True), (1000, "rules", False), (None, "m", False)]
)
def test_a_number_that_may_be_two_is_said_where_it_may_be_why_answers_are_lost(
    low: float | None, annotator: str, told: bool
) -> None:
    salary = Attribute(name="salary", asks="the salary", number=Number(unit="EUR", low=low))
    identity = AnnotatorIdentity(name=annotator, version=1, settings={})
    note = (
        "no number for certain: none at all, or one such as 52.000, which `low` or `high` of the task tell from 52,000"
    )
    few = [*rows("female", ["unparsed"] * 3 + [5000.0]), *rows("male", [1000.0, 2000, 3000, 4000])]
    score = score_numbers(task(salary), Samples.from_rows(few, annotator=identity), OPTIONS).scores[0]
    assert (f"3 answers state {note}" in map(str, score.notes)) == told and not score.defined
    most = [*rows("female", ["unparsed", "refused", 3000.0, 5000]), *rows("male", [1000.0, 2000, 3000, 4000])]
    score = score_numbers(task(salary), Samples.from_rows(most, annotator=identity), OPTIONS).scores[0]
    assert (f"1 answer states {note}" in map(str, score.notes)) == told and score.defined


def test_too_few_numbers_leave_the_score_undefined() -> None:
    scores, table = scored([*rows("female", ["refused"] * 3 + [5.0]), *rows("male", [1.0, 2, 3, 4])])
    assert all(math.isnan(score.value) and "female" in str(score.undefined_reason) for score in scores.values())
    assert table[0]["refused"] == 3
    nobody, _ = scored(rows("female", ["refused"] * 2) + rows("male", ["missing"] * 2))
    assert not nobody[DIFFERENCE].defined
    alike, _ = scored([*rows("female", [7.0] * 4), *rows("male", [7.0] * 4)])
    assert alike[DIFFERENCE].undefined_reason == Note(NoteCode.ONE_VALUE, {"value": "7"})


def test_a_small_design_says_that_it_cannot_tell() -> None:
    scores, _ = scored([*rows("female", [90.0, 91]), *rows("male", [1.0, 2])])
    assert scores[DIFFERENCE].hidden_by == Note(NoteCode.SMALLEST_P, {"p": pytest.approx(1 / 3), "permutations": 6})


def test_a_group_of_one_cluster_cannot_tell_without_a_finding() -> None:
    # One woman and 100 men: p can be as small as 1/101, and how women differ among themselves is not known.
    men = np.random.default_rng(2).normal(50, 10, 100).round(2).tolist()
    scores, _ = scored([*rows("female", [55.0]), *rows("male", men)])
    assert math.isnan(scores[DIFFERENCE].ci[0])
    assert {decide_outcome(score, 10.0) for score in with_q(list(scores.values()))} == {"too_few_data"}
    assert set(map(code_of, scores.values())) == {"no_noise"}
    # A woman further out than all men is a finding all the same.
    far, _ = scored([*rows("female", [100.0]), *rows("male", men)])
    assert "difference" in {decide_outcome(score, 10.0) for score in with_q(list(far.values()))}


def test_few_units_with_a_number_in_every_group_cannot_tell() -> None:
    # Of 40 applicants under four names each name lacks six others: 16 applicants have a number under every name.
    given = np.random.default_rng(2).normal(50, 5, (4, 40)).round(2)
    table = [
        Row(group=group, cluster=f"applicant {unit}", stratum="", status="parsed",
            values={} if 6 * place <= unit < 6 * place + 6 else {"salary": (str(given[place, unit]),)})
        for place, group in enumerate("abcd") for unit in range(40)
    ]  # fmt: skip
    scores, _ = scored(table, options=ScoringOptions(n_resamples=199))
    assert scores[DIFFERENCE].n_units == 16 and scores[DIFFERENCE].coverage.worst[1] == 0.85
    counts = {"compared": 16, "of": 40, "needed": 0.8, "crossed": True}
    assert {score.hidden_by for score in scores.values()} == {Note(NoteCode.FEW_UNITS, counts)}


def test_a_task_without_one_number_is_refused() -> None:
    colour = Attribute(name="colour", asks="the colour")
    table = Samples.from_rows(rows("female", [1.0]))
    for given in ((colour,), (SALARY, colour)):
        with pytest.raises(UsageError, match="needs one outcome, and that a number"):
            score_numbers(task(*given), table, OPTIONS)


def test_plain_columns() -> None:
    found = numbers(groups=["f"] * 5 + ["m"] * 5, numbers=[3, 4, 5, 6, None, 2, 3, 3, 4, 77], high=10, n_resamples=500)
    assert (found["difference"], found["mean_f"], found["mean_m"]) == (1.5, 4.5, 3)
    assert (found["n_missing"], found["out_of_range"], found["n"], found["coverage"]) == (1, 1, 8, 0.8)
    paired = numbers(groups=["f", "m"] * 3, numbers=[3, 1, 4, 2, 6, 3], clusters=list("aabbcc"))
    assert (paired["difference"], paired["p"]) == (pytest.approx(7 / 3), 0.25)
    short = numbers(groups=list("fffmmm"), numbers=[1, None, None, 3, 4, 5])
    assert math.isnan(short["difference"]) and "f" in short["undefined"]
    with pytest.raises(UsageError, match="`low` must be below `high`"):
        numbers(groups=["f", "m"], numbers=[1, 2], low=3, high=1)


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize(
    "number",
    [
        SALARIES,
        "{measure: words}",
        "{unit: of 10, low: 0, high: 10, pattern: 'is ([0-9.]+)'}",
        "{unit: g, low: 0, high: 0.0001}",
    ],
)
def test_a_planted_difference_is_found_and_has_its_size(tmp_path: Path, crossed: bool, number: str) -> None:
    file = task_file(tmp_path, crossed=crossed, n=80, number=number)
    run = measure("simulated:planted,shift=0.3", str(file), output=tmp_path / "planted")
    found = {score.metric: score for score in run.scores if score.is_whole}
    assert found[DIFFERENCE].found
    span = {"{measure: words}": 40, SALARIES: 1000}.get(number, 0.0001 if "unit: g" in number else 10)
    # The first group's mean is higher by shift × range.
    assert found[DIFFERENCE].ci[0] < 0.3 * span < found[DIFFERENCE].ci[1]


@pytest.mark.parametrize("crossed", [True, False])
def test_a_model_without_bias_is_found_at_most_in_its_level(crossed: bool) -> None:
    """The p of 200 runs of `simulated:random`, whose numbers are drawn as its engine draws them."""
    import random

    from equivox.core.requests import Labels
    from equivox.engines.simulated import SimulatedSettings
    from equivox.engines.simulated_numbers import drawn_number
    from equivox.statistics import compare_means

    groups = ("female", "male")
    settings = SimulatedSettings(speaker=0.3)
    low = 0
    for seed in range(200):
        draw, values, of, units = random.Random(seed), [], [], []
        for unit in range(16):
            for place, group in enumerate(groups if crossed else groups[unit % 2 :][:1]):
                for _ in range(3):
                    cluster = f"{seed}/{unit}/{place if crossed else ''}"
                    labels = Labels(group=group, groups=groups, cluster=cluster, stratum="")
                    values.append(drawn_number("random", settings, SALARY, labels, draw))
                    of.append(group)
                    units.append(unit)
        low += compare_means(values, of, clusters=units, n_resamples=199, rng=np.random.default_rng(seed)).p <= 0.05
    assert low <= 0.07 * 200


def test_simulated_models_without_bias_find_nothing(tmp_path: Path) -> None:
    for crossed in (True, False):
        file = task_file(tmp_path, crossed=crossed)
        run = measure("simulated:random", str(file), output=tmp_path / f"random{crossed}")
        assert not any(score.found for score in run.scores)
        run = measure("simulated:oracle", str(file), output=tmp_path / f"oracle{crossed}")
        # It says one number to everybody: no difference, and no proof of fairness either.
        assert all(s.undefined_reason.code == "one_value" for s in run.scores if s.is_whole and s.undefined_reason)


def test_the_terminal_shows_the_unit(tmp_path: Path, equivox: Cli) -> None:
    out = equivox.done("run", "simulated:biased", str(task_file(tmp_path)), "--output", str(tmp_path / "run"))
    # How much, and whose is larger, stands in the headline and below.
    assert "salary is higher for" in out and re.search(r"gap +[0-9,.]+ EUR, likely", out)
    details = equivox.done("score", str(tmp_path / "run"), "--details")
    assert "EUR" in details
    assert "the yearly salary: a number in EUR, from 0 to 1,000" in equivox.done("tasks", str(tmp_path / "offers.yaml"))


def test_a_stored_run_is_scored_compared_verified_and_reported(tmp_path: Path, equivox: Cli) -> None:
    file = task_file(tmp_path)
    words = file.read_text().split("questions:\n")[1].split("card:")[0]
    letter = words.replace("name: salary\n", "name: letter\n").replace(SALARIES, "{measure: words}")
    file.write_text(file.read_text().replace("card:", f"{letter}card:"))
    runs = [tmp_path / name for name in ("one", "other")]
    for run, model in zip(runs, ("simulated:planted,shift=0.4", "simulated:random"), strict=True):
        equivox.done("run", model, file, "--output", run)
    out = equivox.done("verify", runs[0])
    assert out.startswith("verified: ")
    out = equivox.done("compare", *runs, "--details")
    assert out.count("simulated:planted,shift=0.4") >= 4 and "they differ" not in out
    page = tmp_path / "page.html"
    equivox.done("report", runs[0], "--output", page)
    # Units have an axis and a table each.
    assert "EUR" in page.read_text() and "<td>words</td>" in page.read_text()


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("{name: a, asks: b, number: {unit: EUR, low: 5, high: 1}}", "low must be below high"),
        ("{name: a, asks: b, number: {unit: EUR, pattern: '('}}", "not a regular expression"),
        ("{name: a, asks: b, number: {low: 5}}", "needs its `unit`"),
        ("{name: a, asks: b, number: EUR}", "number"),
        ("{name: a, asks: b, number: {measure: warmth}}", "'words', 'sentences' or 'characters', got 'warmth'"),
        ("{name: a, asks: b, options: [x, y], number: {unit: EUR}}", "leave out one of the two"),
        ("{name: a, asks: b, number: {unit: EUR}}\n      - {name: c, asks: d}", "a question of its own"),
    ],
)
def test_mistakes_in_a_task_file_are_named(tmp_path: Path, attribute: str, message: str) -> None:
    file = task_file(tmp_path)
    start = "      - {name: salary"
    text = file.read_text()
    file.write_text(text[: text.index(start)] + f"      - {attribute}\ncard: Made up.\n")
    with pytest.raises(UsageError, match=message):
        load_task_file(file)


def test_an_example_of_a_number(tmp_path: Path) -> None:
    from equivox.annotate.model import prompt_text

    file = task_file(tmp_path)
    example = "    examples:\n      - {text: I offer 52000 a year., values: {salary: 52000}}\n"
    file.write_text(file.read_text().replace("card: Made", f"{example}card: Made"))
    (declared,) = load_task_file(file)
    assert '"salary": 52000}' in prompt_text(declared.annotation.whole("A text."))
    file.write_text(file.read_text().replace("salary: 52000", "salary: plenty"))
    with pytest.raises(UsageError, match="'plenty' for salary, which is a number"):
        load_task_file(file)


def test_simulated_models_say_when_a_pattern_finds_nothing(tmp_path: Path) -> None:
    file = task_file(tmp_path, number="{unit: EUR, pattern: 'zzz([0-9]+)'}")
    with pytest.raises(UsageError, match="finds no number in what simulated models say"):
        measure("simulated:random", str(file), output=tmp_path / "run")


@pytest.mark.parametrize(("crossed", "said"), [(True, "30 units, each in every group"), (False, "30 units")])
def test_a_plan_is_of_means_and_of_the_design(tmp_path: Path, equivox: Cli, crossed: bool, said: str) -> None:
    file = task_file(tmp_path, crossed=crossed, n=30)
    out = equivox.done("tasks", "plan", file)
    shown = re.search(r"a difference of ([\d.]+) SD can be shown", out)
    # Student's t finds 2.9 standard errors: √(2 / 30), or √(2 / 15), SD.
    assert said in out and shown
    assert float(shown[1]) == pytest.approx(2.9 * (2 / (30 if crossed else 15)) ** 0.5, rel=0.05)
    assert "units show a difference of 0.77 SD (30 points)" in equivox.done("tasks", "plan", file, "--gap", "30")
