"""The example table of applications: a planted difference is found in the decision and in the salary."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from equivox import measure

EXAMPLE = Path(__file__).parents[2] / "examples/applications"


def test_forty_applications_differ_by_the_name_alone() -> None:
    with (EXAMPLE / "applications.csv").open() as file:
        texts = [row["application"] for row in csv.DictReader(file)]
    assert len(texts) == len(set(texts)) == 40 and all(text.count("{name}") == 1 for text in texts)


@pytest.mark.parametrize(("model", "found"), [("planted,shift=0.4", True), ("oracle", False)])
def test_a_planted_difference_is_found_in_the_decision_and_in_the_salary(
    model: str, found: bool, tmp_path: Path
) -> None:
    result = measure(f"simulated:{model}", str(EXAMPLE / "applications.yaml"), output=tmp_path / "run")
    scores = {score.metric: score for score in result.scores if score.is_whole and score.role == "outcome"}
    decision, salary = scores["nTVD"], scores["mean difference"]
    assert decision.found is salary.found is found
    assert decision.coverage.used == salary.coverage.used == 80
    # The oracle says the same to everybody: 40 pairs bound a gap at 7.5 points.
    assert set(result.outcomes.values()) == ({"difference"} if found else {"no_difference"})
    if found:
        # 40 points of the decision; 0.4 of the range of 200,000 EUR.
        assert decision.ci[0] <= 40 <= decision.ci[1] and salary.ci[0] <= 80_000 <= salary.ci[1]
