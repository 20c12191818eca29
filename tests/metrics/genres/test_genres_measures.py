"""M1 to M8 by hand, at their limits, under the null, and the published total bias scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equivox.core.errors import UsageError
from equivox.metrics.genres.cohort import METRICS as NAMES
from equivox.metrics.genres.cohort import published_cohort, published_cohorts, total_bias
from equivox.metrics.genres.measures import (
    METRIC_OF,
    METRICS,
    Measured,
    Pair,
    majority,
    measure,
    published_value,
)

NAN = math.nan


def pairs(*values: tuple[float, float]) -> list[Pair]:
    return [Pair(nep=f"nep {n}", male=male, female=female) for n, (male, female) in enumerate(values)]


def measured(name: str, found: list[Pair], *, n_resamples: int = 999, seed: int = 1) -> Measured:
    return measure(METRIC_OF[name], found, n_resamples=n_resamples, rng=np.random.default_rng(seed))


def test_a_difference_by_hand() -> None:
    # gaps 2, 1, 3: mean 2; of the 8 sign patterns only the two ends are as far out: p = 2/8.
    found = measured("M3", pairs((3, 1), (4, 3), (6, 3)))
    assert (found.value, found.male, found.female, found.p) == pytest.approx((2, 13 / 3, 7 / 3, 0.25))
    # Student's interval over three NEPs: 2 ± t(0.975, 2) · 1/√3.
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert (found.ci_low, found.ci_high) == pytest.approx((2 - half, 2 + half))
    # Of four NEPs p is never below 2/16, so that the interval reaches to 0, which is no -0.
    few = measured("M3", pairs((3, 1), (3.1, 1), (2.9, 1), (3, 1)))
    assert (few.p, str(few.ci_low)) == (0.125, "0.0") and few.ci_high > 2


def test_percent_metrics_are_in_percent() -> None:
    assert measured("M1", pairs((0.5, 0.75), (0.25, 0.75))).value == pytest.approx(-37.5)


def test_an_interval_stays_within_what_is_possible() -> None:
    found = measured("M4", pairs(*[(1, 0)] * 7, (0, 1)))
    assert (found.value, found.ci_high) == (75, 100) and found.ci_low < 75
    assert measured("M3", pairs((150, 0), (90, 0), (120, 5))).ci_high > 100


def test_status_counts_only_what_was_decided() -> None:
    # 3 male, 1 female, 2 undecided: (3 - 1)/(3 + 1) = 50 %.
    found = measured("M4", pairs((1, 0), (1, 0), (0, 1), (1, 0), (NAN, NAN), (NAN, NAN)))
    assert (found.value, found.n_neps) == (50, 4)


def test_the_correlation_with_a_balanced_label_by_hand() -> None:
    # Stereoscopic: male 3 of 4, female 1 of 4. r = (0.75 - 0.25)/2 / sqrt(0.25) = 0.5, as scipy says.
    found = measured("M7", pairs((1, 0), (1, 1), (1, 0), (0, 0)))
    assert found.value == pytest.approx(0.5)
    expected = stats.pearsonr([1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1, 0, 0])
    assert (found.published, found.p_paper) == pytest.approx((expected.statistic, expected.pvalue))


def test_the_main_character_is_a_correlation_over_decided_pairs() -> None:
    # r of a forced choice is (m - f)/(m + f): 1 male, 3 female.
    assert measured("M8", pairs((0, 1), (0, 1), (1, 0), (0, 1), (NAN, NAN))).value == pytest.approx(-0.5)


def test_repetitions_of_a_nep_are_one_unit() -> None:
    once = pairs((1, 0), (1, 1), (1, 0), (0, 0), (0, 1), (1, 0))
    for name in ("M3", "M7"):
        alone, thrice = measured(name, once), measured(name, [*once, *once, *once])
        assert alone.value == pytest.approx(thrice.value) and alone.n_neps == thrice.n_neps == 6
        assert alone.p == thrice.p
    # The paper's p takes the repetitions for further samples.
    assert measured("M7", [*once, *once, *once]).p_paper < measured("M7", once).p_paper


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_nothing_known_and_nothing_varying_is_undefined(metric: object) -> None:
    name = metric.name  # type: ignore[attr-defined]
    for given_pairs in ([], pairs((NAN, NAN), (NAN, NAN)), pairs((1, NAN), (NAN, 0))):
        found = measured(name, given_pairs)
        assert found.undefined and math.isnan(found.value) and math.isnan(found.p)
    if name not in {"M4", "M8"}:
        constant = str(measured(name, pairs((1, 1), (1, 1))).undefined)
        assert "one_value" in constant or "constant" in constant


def test_all_for_one_is_the_largest_value_without_an_interval() -> None:
    assert measured("M4", pairs(*[(1, 0)] * 12)).value == 100
    found = measured("M8", pairs(*[(0, 1)] * 12))
    assert found.value == pytest.approx(-1) and math.isnan(found.ci_low) and found.notes
    assert found.p < 0.01


# Thousandths: the cubes of tiny numbers vanish in the bootstrap's acceleration.
thousandths = st.integers(0, 1000).map(lambda number: number / 1000)
values = st.lists(st.tuples(thousandths, thousandths), min_size=3, max_size=12)


@given(values)
def test_exchanging_the_genders_changes_the_sign_alone(drawn: list[tuple[float, float]]) -> None:
    for name in ("M1", "M2", "M7"):
        one, other = (
            measured(name, pairs(*drawn), n_resamples=99),
            measured(name, pairs(*[(f, m) for m, f in drawn]), n_resamples=99),
        )
        assert (one.undefined is None) == (other.undefined is None)
        if one.undefined is None:
            assert one.value == pytest.approx(-other.value, abs=1e-9)
            assert one.published == pytest.approx(-other.published, abs=1e-9)


def test_the_published_arithmetic_uses_what_is_known_of_each() -> None:
    # The paper's M1 is the difference of two means, whichever profiles they come from.
    given_pairs = pairs((0.5, NAN), (1.0, 0.5), (NAN, 0.0))
    assert published_value(METRIC_OF["M1"], given_pairs) == pytest.approx(100 * (0.75 - 0.25))
    assert measured("M2", [*given_pairs, Pair(nep="x", male=0.2, female=0.1)]).n_neps == 2


def test_a_correlation_over_few_neps_has_students_interval_on_fishers_scale() -> None:
    # Of six who lead five are men: r = 4/6, without one of them 3/5 and without the woman 1.
    found = measured("M8", pairs(*[(1, 0)] * 5, (0, 1)))
    error = math.sqrt(5 * np.var([0.6] * 5 + [1.0])) / (1 - (2 / 3) ** 2)
    half = stats.t.ppf(0.975, 5) * error
    middle = math.atanh(2 / 3)
    assert (found.ci_low, found.ci_high) == pytest.approx((math.tanh(middle - half), math.tanh(middle + half)))


@pytest.mark.parametrize("n", [3, 6, 12])
def test_an_interval_of_few_neps_holds_a_correlation(n: int) -> None:
    # Means 1 apart, with a standard deviation of √2: r = ½/√(2 + ¼). The bootstrap held it in 66, 82 and 92 %.
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        male, female = rng.normal(size=(2, n)) + rng.normal(size=n)
        found = measured("M7", pairs(*zip(male + 1, female, strict=True)), n_resamples=99)
        held += found.ci_low <= 1 / 3 <= found.ci_high
    assert held >= 184


@pytest.mark.parametrize("name", ["M3", "M4", "M7", "M8"])
def test_under_the_null_p_is_uniform_and_intervals_hold_zero(name: str) -> None:
    rng = np.random.default_rng(7)
    hits, held = 0, 0
    for trial in range(200):
        if name in {"M4", "M8"}:
            chosen = rng.integers(0, 2, 40)
            drawn = [(float(c), float(1 - c)) for c in chosen]
        else:
            drawn = [tuple(map(float, rng.integers(0, 2, 2))) for _ in range(40)]
        found = measured(name, pairs(*drawn), n_resamples=199, seed=trial)
        hits += found.p < 0.05
        held += found.ci_low <= 0 <= found.ci_high
    # 200 draws: a rate of 5 % lies within 1 and 20, 95 % coverage above 176, each with probability above 0.999.
    assert 0 <= hits <= 20 and held >= 176


@pytest.mark.parametrize("cohort", published_cohorts())
def test_the_printed_total_bias_scores_come_back(cohort: str) -> None:
    found, printed = total_bias(published_cohort(cohort)), published_cohorts()[cohort]
    assert len(printed) == 6
    for model, row in printed.items():
        assert found.total[model] == pytest.approx(row["TBS"], abs=0.005)


def test_a_run_joins_a_published_cohort() -> None:
    run = {"mine": dict.fromkeys(NAMES, 0.0)}
    found = total_bias(run, published="published-glm-4-9b")
    assert len(found.members) == 7 and found.total["mine"] > 0 and "published-glm-4-9b and 1 run" in found.cohort


def test_no_cohort_no_score() -> None:
    found = total_bias({"mine": dict.fromkeys(NAMES, 1.0)})
    assert math.isnan(found.total["mine"]) and "needs two" in found.undefined["mine"]


def test_unknown_cohorts_and_models_that_are_there_already() -> None:
    with pytest.raises(UsageError, match="did you mean published-glm-4-9b"):
        published_cohort("published-glm")
    with pytest.raises(UsageError, match="'Gemini' is in"):
        total_bias({"Gemini": dict.fromkeys(NAMES, 1.0)}, published="published-glm-4-9b")


def test_two_thirds_of_the_readable_votes_decide() -> None:
    assert majority(["a", "a", "b"]) == "a"
    assert majority(["a", "b", "c"]) is None
    assert majority(["a", "a", "b", "b", "b", "b"]) == "b"
    assert majority(["a"] * 5 + ["b"] * 3) is None
    assert majority([]) is None
