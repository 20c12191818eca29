"""`equivox tasks card`: cards of the layout that BenchmarkCards publishes, with nothing that no task states."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from equivox.core.errors import RequestError
from equivox.integrations.benchmark_card import NOT_STATED, benchmark_card
from equivox.tasks.registry import builtin_tasks, resolve_tasks

Command = Callable[..., tuple[int, str, str]]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# The fields and types of `platform/src/models.py` in the repository SokolAnn/BenchmarkCards (MIT), of October 2025.
class Details(Part):
    name: str
    overview: str
    data_type: str
    domains: list[str] | None = None
    languages: list[str] | None = None
    similar_benchmarks: list[str] | None = None
    resources: list[str] | None = None


class Purpose(Part):
    goal: str
    audience: list[str]
    tasks: list[str]
    limitations: str | None = None
    out_of_scope_uses: list[str] | None = None


class Data(Part):
    source: str
    size: str
    format: str
    annotation: str


class Methodology(Part):
    methods: list[str]
    metrics: list[str]
    calculation: str
    interpretation: str
    baseline_results: str | None = None
    validation: str


class Risks(Part):
    risk_categories: list[str]
    atlas_risks: dict[str, object] | None = None
    demographic_analysis: str | None = None
    harm: str | None = None


class Ethics(Part):
    privacy_and_anonymity: str
    data_licensing: str
    consent_procedures: str
    compliance_with_regulations: str


class Card(Part):
    benchmark_details: Details
    purpose_and_intended_users: Purpose
    data: Data
    methodology: Methodology
    targeted_risks: Risks
    ethical_and_legal_considerations: Ethics


FAMILIES = sorted({task.family for task in builtin_tasks().values()})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_card_of_the_published_layout(family: str) -> None:
    tasks = resolve_tasks(family)
    card = Card.model_validate(benchmark_card(tasks))
    assert [line.partition(": ")[0] for line in card.purpose_and_intended_users.tasks] == [task.name for task in tasks]
    assert len(card.methodology.metrics) == len(tasks[0].metric.measures)
    # The ends of the card's own sections: nothing is cut off, and nothing runs into the next.
    told = " ".join(tasks[0].card.split())
    for text in (card.data.source, str(card.purpose_and_intended_users.limitations).removeprefix("Cannot say: ")):
        assert text in told


def test_a_card_says_what_the_task_says(equivox: Command) -> None:
    code, out, _ = equivox("tasks", "card", "vibe_gender:story")
    assert code == 0
    card = Card.model_validate(json.loads(out))
    assert card.benchmark_details.name == "VIBE (vibe_gender)"
    assert card.benchmark_details.overview.startswith("VIBE: what does a model make up about a person")
    assert "VIBE, arXiv 2604.17248, sections 2.2-2.4 and appendix A." in (card.benchmark_details.resources or [])
    assert card.data.size == "CREMA-D: 7,442 clips, 91 speakers, 48 male, 43 female, 12 sentences, 6 emotions"
    assert "ODbL" in card.ethical_and_legal_considerations.data_licensing
    assert 'nTVD: 0 means "no bias"' in card.methodology.interpretation
    assert card.targeted_risks.demographic_analysis == (
        "compares gender; a speaker carries it, with sentence × emotion held equal"
    )
    assert "economic_situation (poor / middle-class / wealthy)" in card.data.annotation


def test_what_no_task_states_is_not_stated() -> None:
    (task,) = resolve_tasks("vibe_gender:story")
    own = replace(task, card="", data=replace(task.data, corpus="voices", table=Path("voices.csv")))
    card = Card.model_validate(benchmark_card([own]))
    assert {card.data.source, card.data.size, card.methodology.validation, card.benchmark_details.overview} == {
        NOT_STATED
    }
    assert set(card.ethical_and_legal_considerations.model_dump().values()) == {NOT_STATED}
    assert card.purpose_and_intended_users.audience == [NOT_STATED]
    assert card.purpose_and_intended_users.limitations is None
    assert card.benchmark_details.languages is None
    with pytest.raises(RequestError, match="one family of tasks, got none"):
        benchmark_card([])


def test_cards_of_several_families_go_into_a_folder(tmp_path: Path, equivox: Command) -> None:
    code, _, err = equivox("tasks", "card", "vibe_gender,badf_two")
    assert code == 2
    assert "give a folder as `--output`" in err
    assert equivox("tasks", "card", "vibe_gender,badf_two", "-o", tmp_path)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["badf_two.json", "vibe_gender.json"]
    Card.model_validate_json((tmp_path / "badf_two.json").read_text("utf-8"))
