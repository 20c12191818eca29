"""The published p: permutations of single responses against scipy's and against all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.metrics.ntvd import published
from equivox.metrics.ntvd.published import compute_published_p
from equivox.statistics import inputs, ntvd


def measure(answers: list[list[str]], groups: list[str], n_resamples: int = 4_000) -> dict[str, float]:
    column = inputs.values(answers, "x")
    return compute_published_p(
        {"x": column}, EncodedLabels.of(groups), n_resamples=n_resamples, rng=np.random.default_rng(1)
    )


def distance(answers: list[list[str]], groups: list[str], names: str = "pqr") -> float:
    return ntvd([[sum(a.count(v) for a, g in zip(answers, groups, strict=True) if g == group) for v in names]
                 for group in "ab"])  # fmt: skip


ONE = [[v] for v in "pppqqpqqqp"]
SEVERAL = [["p", "q"], ["p"], ["p", "p"], ["q", "r"], ["r"], ["q"], ["r", "q"], ["p", "r"]]


@pytest.mark.parametrize("answers", [ONE, SEVERAL], ids=["one value", "several values"])
@pytest.mark.parametrize("cost", [0.0, 1e9], ids=["tables", "responses"])
def test_it_is_the_share_of_all_permutations(
    answers: list[list[str]], cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "TABLE_CELL_COST", cost)
    half = len(answers) // 2
    groups = ["a"] * half + ["b"] * half
    null = []
    for of_a in itertools.combinations(range(len(answers)), half):
        null.append(distance(answers, ["a" if i in of_a else "b" for i in range(len(answers))]))
    exact = np.mean(np.array(null) >= distance(answers, groups) - 1e-9)
    assert measure(answers, groups)["x"] == pytest.approx(exact, abs=0.03)


def test_two_values_have_the_p_of_fisher() -> None:
    # Groups of one size: the distance orders tables as Fisher's test does.
    answers, groups = [["p"]] * 14 + [["q"]] * 6 + [["p"]] * 8 + [["q"]] * 12, ["a"] * 20 + ["b"] * 20
    assert measure(answers, groups)["x"] == pytest.approx(
        stats.fisher_exact(np.array([[14, 6], [8, 12]])).pvalue, abs=0.02
    )


def test_it_may_be_zero_and_ignores_speakers_and_missing_answers() -> None:
    answers = [["p"]] * 30 + [["q"]] * 30
    groups = ["a"] * 30 + ["b"] * 30
    assert measure(answers, groups, 500) == {"x": 0.0, "": 0.0}
    assert measure([*answers, []], [*groups, "b"], 500) == {"x": 0.0, "": 0.0}


def test_attributes_are_permuted_together() -> None:
    rng = np.random.default_rng(2)
    columns: dict[str, EncodedValues] = {
        name: inputs.values(rng.choice([*"pqr"], 40).tolist(), name) for name in ("x", "y")
    }
    groups = EncodedLabels.of([*"ab"] * 20)
    found = compute_published_p(columns, groups, n_resamples=2_000, rng=np.random.default_rng(1))
    assert set(found) == {"x", "y", ""}
    # An attribute beside its double has the same p as their mean.
    double = compute_published_p(
        {"x": columns["x"], "y": columns["x"]}, groups, n_resamples=2_000, rng=np.random.default_rng(1)
    )
    assert double["x"] == double["y"] == double[""] == pytest.approx(found["x"], abs=0.05)
