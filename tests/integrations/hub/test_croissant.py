"""`croissant.json` beside a pushed corpus: mlcroissant reads it and finds no error."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from equivox.dataset_builders.base import Column, CorpusFacts
from equivox.integrations.hub.dataset_card import croissant
from equivox.integrations.hub.dataset_folder import corpus_tasks, write_dataset

# mlcroissant and rdflib, which it reads the document with, use what pandas and rdflib call outdated.
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index is deprecated"),
]

RECOMMENDED = {"croissant/citeAs", "schema.org/creator", "schema.org/datePublished"}
"""Properties that mlcroissant asks for and that the embedded samples do not state."""


@pytest.fixture(scope="module", params=["spoken_stereoset", "genres", "badf"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("croissant") / request.param
    write_dataset(request.param, "sample", folder, repo=f"org/{request.param}")
    return request.param, folder


@pytest.fixture(scope="module")
def mlcroissant() -> Any:
    """The library; its import takes seconds, so that collecting this file does not import it."""
    return importlib.import_module("mlcroissant")


def said(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "croissant.json").read_text("utf-8")))


def test_mlcroissant_finds_no_error(written: tuple[str, Path], mlcroissant: Any) -> None:
    _, folder = written
    data = mlcroissant.Dataset(folder / "croissant.json")
    assert not data.metadata.ctx.issues.errors
    for warning in data.metadata.ctx.issues.warnings:
        assert any(term in warning for term in RECOMMENDED), warning


def test_what_the_corpus_states_is_in_the_responsible_ai_fields(written: tuple[str, Path], mlcroissant: Any) -> None:
    name, folder = written
    told = mlcroissant.Dataset(folder / "croissant.json").metadata
    assert len(told.data_use_cases) == len(corpus_tasks(name))
    # The samples name no page and no paper; the grid has a paper.
    stated = said(folder)["rai:dataCollection"]
    assert "arxiv.org/abs/2508.01412" in stated if name == "badf" else stated == "Not stated."
    if name == "spoken_stereoset":
        # 60 recordings ask about gender, half of the speakers are women; 36 ask about age, without a gender.
        assert "Rows by gender: female 30, male 30, not known 36." in told.data_biases
        assert any("synthetic voices" in line for line in told.data_limitations)
        assert any(line.startswith("gender: ") for line in told.personal_sensitive_information)
        assert not any(line.startswith("context: ") for line in told.personal_sensitive_information)


def test_nothing_is_said_that_the_facts_do_not_state() -> None:
    record = {"notes": [], "files": {}}
    bare = json.loads(croissant("org/x", CorpusFacts(name="x", title="X", licence="none stated"), [], record))
    assert {name for name in bare if name.startswith("rai:")} == {"rai:dataCollection"}
    assert bare["license"] == "none stated"
    assert not {"citeAs", "sameAs", "datePublished"} & set(bare)
    full = CorpusFacts(
        name="x", title="X", licence="MIT", licence_id="mit", homepage="https://x.org", citation="Doe 2020",
        columns=(Column(name="accent", meaning="as told by the speaker"),), cannot_say=("Read speech only.",),
    )  # fmt: skip
    told = json.loads(croissant("org/x", full, [], {"notes": ["two clips are silent"], "files": {}}))
    assert (told["license"], told["citeAs"], told["sameAs"]) == ("mit", "Doe 2020", "https://x.org")
    assert "Doe 2020; https://x.org" in told["rai:dataCollection"]
    assert told["rai:dataLimitations"] == ["Read speech only."]
    assert told["rai:personalSensitiveInformation"] == ["accent: as told by the speaker"]
    assert told["rai:dataPreprocessingProtocol"] == ["two clips are silent"]
