"""Runs compared by numbers: pairs of models, conditions and the gate; what either lacks is left out for both."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from commands import Cli
from offers import OPTIONS, SALARY, rows, task, task_file
from scipy import stats

from equivox import measure
from equivox.compare.conditions import condition_tests
from equivox.compare.gate import check_run
from equivox.compare.pairs import PairedTest, open_runs, paired_tests
from equivox.compare.runs import open_comparison
from equivox.core.errors import UsageError
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.notes import Note, NoteCode
from equivox.core.outcomes import compute_smallest_relevant, count_units_needed, decide_outcome
from equivox.core.samples import Samples
from equivox.metrics.numbers.scorer import DIFFERENCE, compare_means, score_numbers

Answers = Sequence[float | str]


def compared(a: tuple[Answers, Answers], b: tuple[Answers, Answers]) -> PairedValues:
    """Compare two models by their answers to women and to men."""
    both = [Samples.from_rows([*rows("female", list(own[0])), *rows("male", list(own[1]))]) for own in (a, b)]
    scores = [score_numbers(task(SALARY), samples, OPTIONS).scores[0] for samples in both]
    return compare_means(DIFFERENCE, [PairedTask(task(SALARY), *both, *scores)], 2_000, np.random.default_rng(1))


def test_what_either_model_lacks_counts_for_neither() -> None:
    women = ([30.0, 40, 50, 60, 70, 35], [20.0, 20, "refused", 30, 900.0, 22])
    men = ([20.0, 30, 30, 40, 25, "unparsed"], [20.0, 21, 24, 30, 23, 20.0])
    found = compared((women[0], men[0]), (women[1], men[1]))
    # Of six women the third is refused by b and the fifth is out of its range; of six men a lacks the sixth.
    a, b = (
        (np.array([30.0, 40, 60, 35]), np.array([20.0, 30, 30, 40, 25])),
        (
            np.array([20.0, 20, 30, 22]),
            np.array([20.0, 21, 24, 30, 23]),
        ),
    )
    assert found.value_a == pytest.approx(a[0].mean() - a[1].mean())
    assert found.value_b == pytest.approx(b[0].mean() - b[1].mean())
    assert found.further == pytest.approx(abs(found.value_a) - abs(found.value_b))
    assert (found.n_samples, found.n_clusters, found.parts) == (9, 9, ("salary",))
    ends = [
        stats.ttest_ind(one, other, equal_var=False).confidence_interval()
        for one, other in ((a[0] - b[0], a[1] - b[1]), (a[0] + b[0], a[1] + b[1]))
    ]
    corners = [math.copysign(min(abs(u), abs(v)), u * v) for u in ends[0] for v in ends[1]]
    assert (found.ci_low, found.ci_high) == pytest.approx((min(corners), max(corners)))


def test_nothing_in_common_is_no_number() -> None:
    found = compared(
        ([30.0, 40, "refused", "refused"], [1.0, 2, 3, 4]), (["refused", "refused", 5.0, 6], [1.0, 2, 3, 4])
    )
    assert math.isnan(found.further) and math.isnan(found.p) and found.parts == ()
    assert found.undefined == Note(NoteCode.EMPTY_GROUP, {"groups": ["female"]})
    with pytest.raises(UsageError, match="task by task"):
        compare_means(DIFFERENCE, [], 99, np.random.default_rng(1))


@pytest.fixture(scope="module", params=[True, False], ids=["crossed", "nested"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("numbers")
    file = task_file(folder, crossed=request.param, n=60)
    found = {name: folder / name for name in ("planted", "again", "random", "other")}
    models = ("planted,shift=0.4", "planted,shift=0.4,seed=7", "random", "random,seed=7")
    for (name, output), model in zip(found.items(), models, strict=True):
        measure(f"simulated:{model}", str(file), output=output)
        assert name
    (folder / "fair.txt").write_text("Treat everybody alike.")
    return {**found, "file": file, "system": folder / "fair.txt"}


def between(one: Path, other: Path) -> PairedTest:
    (found,) = paired_tests(open_runs(open_comparison([one, other])))
    return found


def test_two_runs_are_tested_against_each_other(runs: dict[str, Path]) -> None:
    found = between(runs["planted"], runs["random"])
    assert (found.metric, found.unit) == (DIFFERENCE, "EUR")
    # 0.4 of 1,000 EUR was planted in one of them.
    assert found.q < 0.05 and found.ci_low < 400 < found.ci_high
    back = between(runs["random"], runs["planted"])
    assert (back.further, back.ci_low) == pytest.approx((-found.further, -found.ci_high))
    for one, other in (("random", "other"), ("planted", "again")):
        alike = between(runs[one], runs[other])
        assert alike.p > 0.05 and alike.ci_low < 0 < alike.ci_high


def test_a_task_that_differs_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    file = task_file(tmp_path, crossed=False, n=30)
    measure("simulated:random", str(file), output=tmp_path / "run")
    test = between(runs["planted"], tmp_path / "run")
    assert math.isnan(test.p) and "not the same in both runs" in str(test.undefined)


def test_the_gate_holds_the_difference(runs: dict[str, Path]) -> None:
    worse = check_run(runs["planted"], runs["random"], {"": 50.0})
    assert worse.outcome == "worse"
    assert {check.metric for check in worse.checks} >= {DIFFERENCE}
    assert check_run(runs["other"], runs["random"], {"": 900.0}).outcome == "pass"


def test_a_system_prompt_that_helps_is_found(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    measure("simulated:planted,shift=0.5,obeys=0.9", str(runs["file"]), output=run, system=str(runs["system"]))
    tests = [test for _, test in condition_tests(open_runs(open_comparison([run])))]
    (found,) = [test for test in tests if test.metric == DIFFERENCE]
    # Of 0.5 × 1,000 EUR one tenth is left.
    assert found.q < 0.05 and found.ci_low < 450 < found.ci_high


def test_the_terminal_says_it(runs: dict[str, Path], equivox: Cli) -> None:
    out = equivox.done("compare", runs["planted"], runs["random"], "--details")
    assert re.search(r"mean difference +(\S+) +\S+ +.*\1", out)
    code, out, _ = equivox("gate", runs["planted"], "--baseline", runs["random"], "--margin", "50")
    assert code == 3 and "mean difference" in out


def test_a_design_that_may_miss_what_matters_says_so(runs: dict[str, Path]) -> None:
    score = next(s for s in open_comparison([runs["random"]]).runs[0].scores if s.metric == DIFFERENCE)
    # Uniform from 0 to 1,000: the SD is 289 EUR, and 0.251 SD set normal distributions a tenth apart.
    assert score.sd == pytest.approx(1000 / 12**0.5, rel=0.15)
    assert compute_smallest_relevant(score, 10.0) == pytest.approx(0.2513 * score.sd, rel=1e-3)
    assert decide_outcome(score, 10.0) == "too_few_data"
    assert count_units_needed(score, 10.0) > score.n_units
    # Looking for more, it is large enough; an interval that rules it out on both sides says so too.
    assert decide_outcome(score, 99.0) == "no_difference"
    assert decide_outcome(dataclasses.replace(score, ci=(-1.0, 1.0)), 10.0) == "no_difference"
    assert decide_outcome(dataclasses.replace(score, ci=(-500.0, 1.0)), 10.0) == "too_few_data"


@pytest.mark.parametrize("held", ["stratum", "block"])
def test_what_the_score_holds_equal_the_comparison_holds_equal(held: str) -> None:
    # Long texts have 50 more from model a, and women have three of four of them; within texts nothing differs.
    texts = {"female": ["long"] * 3 + ["short"], "male": ["long"] + ["short"] * 3}
    noise = {"female": [1.0, 2, 3, 2], "male": [2.0, 1, 3, 2]}
    asked = task(SALARY) if held == "block" else dataclasses.replace(task(SALARY), strata=("text",))
    both = []
    for more in (50.0, 0.0):
        own = [
            dataclasses.replace(row, **{held: text, "values": {**row.values, "salary": (str(salary),)}})
            for group, own in texts.items()
            for row, text, number in zip(rows(group, [0.0] * 4), own, noise[group], strict=True)
            for salary in [number + more * (text == "long")]
        ]
        both.append(Samples.from_rows(own))
    scores = [score_numbers(asked, samples, OPTIONS).scores[0] for samples in both]
    found = compare_means(DIFFERENCE, [PairedTask(asked, *both, *scores)], 999, np.random.default_rng(1))
    assert (found.value_a, found.value_b) == pytest.approx((scores[0].value, scores[1].value))
    # (2 + 2) / 2 against (2 + 2) / 2.
    assert found.value_a == pytest.approx(0) and found.further == pytest.approx(0)
