"""GENRES beside other models: sums over NEPs, total bias scores with their interval, who is favoured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Cli, csv_rows
from planted_narratives import PLANTED
from sample_runs import sample_runs

from equivox.compare.ranking import Judged, judge, missing_cohorts
from equivox.compare.runs import Comparison, open_comparison
from equivox.metrics.genres.cohort import METRICS, N_SUMS, total_bias, value_of_sums
from equivox.metrics.genres.measures import METRIC_OF, Pair, measure
from equivox.metrics.scoring import aligned


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    models = {"0": "oracle", "1": "planted,shift=0.6", "2": "random,seed=4"}
    return [*sample_runs(tmp_path_factory.mktemp("relative"), models, "genres_standin", 4_999).values()]


@pytest.fixture(scope="module")
def judged(runs: Sequence[Path]) -> Judged:
    return judge(open_comparison(runs), n_resamples=499)


@pytest.mark.parametrize("metric", METRICS)
def test_sums_over_neps_give_the_metric(metric: str) -> None:
    rng = np.random.default_rng(3)
    choice = METRIC_OF[metric].name in {"M4", "M8"}
    male = rng.integers(0, 2, size=12).astype(float)
    female = 1 - male if choice else rng.integers(0, 2, size=12).astype(float)
    pairs = [Pair(nep=str(i), male=m, female=f) for i, (m, f) in enumerate(zip(male, female, strict=True))]
    sums = np.array([12, male.sum(), female.sum(), (male**2).sum(), (female**2).sum()])
    expected = measure(METRIC_OF[metric], pairs, n_resamples=9, rng=rng).value
    assert float(value_of_sums(metric, sums)) == pytest.approx(expected)


def test_sums_without_a_nep_or_spread_are_no_score() -> None:
    assert math.isnan(value_of_sums("M1", np.zeros(5)))
    assert math.isnan(value_of_sums("M7", np.array([3.0, 3, 3, 3, 3])))
    one, other = aligned([{"n": (1.0, 2, 3, 4, 9)}, {}], N_SUMS)
    assert one.shape == other.shape == (1, 5) and not other.any()


@pytest.mark.long
def test_the_scores_of_the_tests_are_the_stored_ones(runs: Sequence[Path], judged: Judged) -> None:
    stored = {
        (model, s.task, s.metric): s.value
        for model, s in open_comparison(runs).scores()
        if s.is_whole and s.metric in METRICS
    }
    tests = [t for t in judged.tests if t.undefined is None]
    assert {t.task for t in tests} >= {"genres_standin", "genres_standin:cs"}
    for test in tests:
        assert test.value_a == pytest.approx(stored[test.model_a, test.task, test.metric])
        assert test.value_b == pytest.approx(stored[test.model_b, test.task, test.metric])


def test_the_planted_bias_is_further_whichever_side_it_favours(judged: Judged) -> None:
    own = {
        t.metric: t
        for t in judged.tests
        if t.task == "genres_standin" and "planted" in t.model_a and "random" in t.model_b
    }
    assert set(own) == set(METRICS)
    for metric, test in own.items():
        error = (test.ci_high - test.ci_low) / 4
        assert test.further > 0 and abs(test.further - abs(PLANTED[metric]) * 0.6) < 4 * error
        assert test.p < 0.05, metric
    assert {math.copysign(1, own[m].value_a) for m in METRICS} == {1.0, -1.0}


def test_the_total_bias_score_is_that_of_the_cohort(runs: Sequence[Path], judged: Judged) -> None:
    values: dict[str, dict[str, float]] = {}
    for model, s in open_comparison(runs).scores():
        if s.is_whole and s.task == "genres_standin" and s.metric in METRICS:
            values.setdefault(model, {})[s.metric] = s.value
    expected = total_bias(values)
    assert len(judged.cohorts) == 3
    for score in judged.cohorts:
        assert score.total == pytest.approx(expected.total[score.model])
        assert score.cohort == f"3 runs: {', '.join(values)}"
        assert score.stand_ins
        assert score.no_interval is None
        assert 0 < score.ci_low < score.ci_high < 8 * math.sqrt(2)


@pytest.mark.long
def test_compare_names_the_cohort(equivox: Cli, runs: Sequence[Path], tmp_path: Path) -> None:
    folders = ("--tables", tmp_path / "tables")
    out = equivox.done("compare", *runs, *folders, "--resamples", 199)
    assert "Ranks, the first nearest to no bias" in out
    rows = csv_rows(tmp_path / "tables" / "cohort.csv")
    assert [row["model"].partition(",")[0] for row in rows] == [
        f"simulated:{m}" for m in ("oracle", "planted", "random")
    ]
    assert "Totals relative to the compared models" in (tmp_path / "tables" / "cohort.tex").read_text()


def test_one_relationship_has_no_total(runs: Sequence[Path]) -> None:
    comparison = open_comparison(runs)
    assert missing_cohorts(comparison) == []
    single = [replace(run, scores=[s for s in run.scores if s.task.endswith(":ar")]) for run in comparison.runs]
    (reason,) = missing_cohorts(replace(comparison, runs=single))
    assert "over several relationships" in reason
    assert missing_cohorts(Comparison((), ())) == []
