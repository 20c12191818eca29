"""The builder on a look-alike of the released snapshot, and the prompts against the released ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.core.requests import EngineIdentity
from equivox.core.task import DataSource
from equivox.dataset_builders import open_builder, sample_source
from equivox.dataset_builders.genres import _clip
from equivox.dataset_builders.genres_protocol import Element, plot_of, protocol
from equivox.dataset_builders.opening import open_corpus
from equivox.run.plan import make_plan
from equivox.tasks.registry import resolve_tasks


def record(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "person": "a male and a female", "relationship": "communal sharing", "age": "in old age",
        "relationship_group": 0, "relationship_description": "they are neighbours.", "scenario_index": number,
        "scenario": "They share a well.", "names": ["Ava", "Jack"] if number % 2 else ["Noah", "Mila"],
        "text_prompt": "", "image_name": f"mf_cs_old_group0_scenario{number}_00FF.png", **changes,
    }  # fmt: skip


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Eight NEPs in the layout of the released data set."""
    neps = tmp_path / "Genres" / "data" / "NEPs"
    pictures = sorted((sample_source("genres") / "images").iterdir())
    (neps / "Image" / "mf" / "cs").mkdir(parents=True)
    lines = []
    for number in range(8):
        lines.append(json.dumps(record(number)))
        (neps / "Image" / "mf" / "cs" / record(number)["image_name"]).write_bytes(pictures[number].read_bytes())
    (neps / "genre_mf_cs_query.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "Genres"


def test_a_snapshot_becomes_rows(snapshot: Path) -> None:
    clips = open_builder("genres", snapshot).clips()
    assert len(clips) == 8
    first = clips[0].columns
    assert (first["name_1"], first["gender_1"], first["name_2"], first["gender_2"]) == (
        "Noah",
        "male",
        "Mila",
        "female",
    )
    assert [clip.columns["plot"] for clip in clips] == ["conflict"] * 4 + ["cooperation"] * 4
    assert {clip.speaker for clip in clips} == {f"mf_cs_old_group0_scenario{n}" for n in range(8)}


def test_a_build_and_the_snapshot_give_the_same_requests(equivox: Cli, snapshot: Path, tmp_path: Path) -> None:
    out = equivox.done("data", "build", "genres", "--source", snapshot, "--output", tmp_path / "data")
    assert "8 rows" in out and "NEPs: 1,440 published, 8 found" in out
    task = resolve_tasks("genres:cs")[0]
    corpus = open_corpus(task.data, tmp_path / "data")
    assert len(corpus.samples) == 8
    identity = EngineIdentity(engine="none", model="none", revision="1", settings={})
    plan = make_plan([task], {task.data.corpus: corpus}, identity)
    assert {plan.problem(row) for row in range(len(plan))} == {None}
    request = plan.request(0)
    assert request.media[0].kind == "image" and request.media[0].load().startswith(b"\x89PNG")
    assert "And they are neighbours. They are in a communal sharing relationship." in request.text
    with pytest.raises(UsageError, match="genres"):
        open_corpus(DataSource(corpus="genres"), tmp_path)
    from datasets import load_dataset

    loaded = load_dataset(str(tmp_path / "data" / "genres"), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.num_rows == 8 and loaded.features["image"].decode is False


def test_a_snapshot_of_the_hub_is_built_with_its_revision(equivox: Cli, snapshot: Path, tmp_path: Path) -> None:
    revision = "0123456789abcdef0123456789abcdef01234567"
    command = ["data", "build", "genres", "--hub", "genres", "--source", snapshot, "--revision", revision]
    equivox.done(*command, "--output", tmp_path / "data")
    record = json.loads((tmp_path / "data" / "genres" / "build.json").read_text("utf-8"))
    assert record["origin"] == {"hf_repo": "Savannah-y7/Genres", "revision": revision} and record["rows"] == 8
    assert (snapshot / "data" / "NEPs" / "genre_mf_cs_query.jsonl").is_file()


def test_a_limit_takes_neps_of_every_kind() -> None:
    task = resolve_tasks("genres_standin:mp")[0]
    corpus = open_corpus(task.data, "sample")
    identity = EngineIdentity(engine="none", model="none", revision="1", settings={})
    asked = [
        {request.labels.metadata["element"] for request in plan.requests()}
        for plan in (make_plan([task], {task.data.corpus: corpus}, identity, limit=limit) for limit in (6, 12))
    ]
    assert len(asked[0]) >= 3 and len(asked[1]) == 6 and asked[0] <= asked[1]


def test_the_sample_is_as_stated_and_small() -> None:
    builder = open_builder("genres", sample_source("genres"))
    assert builder.differences() == [] and builder.facts.licence_id == "cc0-1.0"
    clips = builder.clips()
    assert len(clips) == 120 and {clip.columns["pair"] for clip in clips} == {"female + male"}
    first = sum(clip.columns["gender_1"] == "female" for clip in clips)
    assert 40 < first < 80  # who is named first is drawn
    assert sum(path.stat().st_size for path in sample_source("genres").rglob("*") if path.is_file()) < 1_000_000


def test_a_missing_image_is_named(snapshot: Path) -> None:
    missing = snapshot / "data" / "NEPs" / "Image" / "mf" / "cs" / record(3)["image_name"]
    missing.unlink()
    with pytest.raises(UsageError, match=f"1 of 8 images are missing.*{missing.name}"):
        open_builder("genres", snapshot).clips()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["Zoe", "Jack"]}, r"line 9: `names` are \['Zoe', 'Jack'\]"),
        ({"scenario": None}, "the field 'scenario' is missing"),
    ],
)
def test_a_malformed_record_is_named(snapshot: Path, changes: dict[str, Any], message: str) -> None:
    broken = {key: value for key, value in record(9, **changes).items() if value is not None}
    with (snapshot / "data" / "NEPs" / "genre_mf_cs_query.jsonl").open("a") as file:
        file.write(json.dumps(broken) + "\n")
    with pytest.raises(UsageError, match=message):
        open_builder("genres", snapshot).clips()


def test_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(UsageError, match=r"is not GENRES.*found x.txt"):
        open_builder("genres", tmp_path)


def level(prompt: str) -> str:
    """Level the spacing that the released prompts do not keep to: after the relationship, and before line ends."""
    return re.sub(r" +\n", "\n", re.sub(r"\s*\.+\s*They are in a ", ". They are in a ", prompt, count=1))


@pytest.mark.paper
def test_every_released_prompt_comes_back(reference_data: Path) -> None:
    count = 0
    for path in sorted((reference_data / "genres" / "responses").glob("janus_mf_*.jsonl")):
        short = path.stem.rpartition("_")[2]
        for line in path.read_text("utf-8").splitlines():
            nep = json.loads(line)
            element = Element(
                element="e", relationship=short, relationship_name=nep["relationship"], age=nep["age"],
                description=nep["relationship_description"], scenario=nep["scenario"],
                plot=plot_of(short, nep["scenario_index"]),
            )  # fmt: skip
            clip = _clip(element, nep["names"], ("male", "female"), Path("image.png"), "nep")
            asked = str(protocol()["prompts"]["narrative"]["text"]).format(**clip.columns)
            assert level(asked) == level(nep["text_prompt"])
            count += 1
    assert count == 1440


@pytest.mark.paper
def test_the_released_elements_are_counted_as_published(reference_data: Path, tmp_path: Path) -> None:
    neps = tmp_path / "NEPs"
    picture = next((sample_source("genres") / "images").iterdir()).read_bytes()
    for path in sorted((reference_data / "genres" / "responses").glob("qwen2v5VL3b_mf_*.jsonl")):
        short = path.stem.rpartition("_")[2]
        (neps / "Image" / "mf" / short).mkdir(parents=True)
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for nep in lines:
            del nep["response"]
            (neps / "Image" / "mf" / short / nep["image_name"]).write_bytes(picture)
        (neps / f"genre_mf_{short}_query.jsonl").write_text("\n".join(map(json.dumps, lines)))
    builder = open_builder("genres", tmp_path)
    assert builder.counts() == {
        "NEPs": 1440, "elements": 288, "male names": 15, "female names": 14,
        "relationship=ar": 360, "relationship=cs": 360, "relationship=em": 360, "relationship=mp": 360,
    }  # fmt: skip
    declared = json.loads((reference_data / "genres" / "narrative_elements.json").read_text("utf-8"))
    plots = {(c.columns["relationship"], c.columns["scenario"], c.columns["plot"]) for c in builder.clips()}
    assert plots == {(e["relationship"], e["scenario"], e["plot"]) for e in declared}
