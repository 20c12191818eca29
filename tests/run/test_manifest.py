"""The manifest: what tells two runs apart, what is published of it, and what no manifest holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from equivox.core.errors import DamageError, UsageError
from equivox.core.files import read_document, write_document
from equivox.engines import EngineIdentity
from equivox.engines.function import FunctionEngine
from equivox.run.declarations import read_tasks, write_tasks
from equivox.run.generating import note_served_models
from equivox.run.manifest import (
    annotator_answered,
    answered_by,
    differences,
    new_manifest,
    public_manifest,
    read_manifest,
    run_identity,
)
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

MODEL = EngineIdentity(engine="fake", model="org/m", revision="1")


def written(folder: Path, **command: object) -> Path:
    identity = run_identity(engine=MODEL, tasks=(), corpora={}, limit=None, seed=0)
    manifest = new_manifest(identity, {"model": "fake:m", "data": "sample", "annotator": "rules"} | command)
    write_document(folder / "manifest.json", manifest)
    return folder


def test_differences_are_told_from_both_sides() -> None:
    told = differences({"old": 1, "same": [1], "of": {"a": 1, "b": 2}}, {"new": 2, "same": [1], "of": {"a": 1, "c": 3}})
    assert differences({"of": {"a": 1}}, {"of": "a"}) == ["of: {'a': 1} there, a here"]
    assert told == [
        "new: none there, 2 here", "of.b: 2 there, none here", "of.c: none there, 3 here", "old: 1 there, none here",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "published"),
    [
        ("data", ".", "corpora"), ("data", "./", "corpora"), ("data", "../corpora", "corpora"),
        ("model", "vllm:model_name=org/m,dtype=bfloat16", "vllm:org/m"), ("model", "/home/me/omni.yaml", "omni"),
        ("model", "transformers:model_name=/home/me/tiny", "transformers:tiny"),
        ("model", "of my own, in /home/me/notes.yaml", "notes"),
    ],
)  # fmt: skip
def test_of_the_data_and_of_the_model_the_names_are_published(
    name: str, value: str, published: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpora").mkdir()
    monkeypatch.chdir(tmp_path / "corpora")
    assert public_manifest(read_manifest(written(tmp_path, **{name: value})))["command"][name] == published


def test_of_the_file_that_a_server_answers_as_the_name_is_shown_and_published(tmp_path: Path) -> None:
    place = "/home/me/models/tiny.gguf"
    served = {"served_as": [place], "annotators_served_as": {"judge": [place]}}
    manifest = read_manifest(written(tmp_path)) | served
    assert answered_by(manifest) == annotator_answered(manifest, "judge") == "tiny.gguf"
    assert "/home" not in str(public_manifest(manifest))


@pytest.mark.parametrize("annotator", ["../rules", "a/b", ""])
def test_an_annotator_that_is_no_file_name_is_damage(annotator: str, tmp_path: Path) -> None:
    with pytest.raises(DamageError, match="no file can be called after its annotator"):
        read_manifest(written(tmp_path, annotator=annotator))


@pytest.mark.parametrize(("number", "version"), [(1, "0.1.0"), (2, "0.2.0"), (2, "0.3.0"), (4, "0.5")])
def test_a_run_of_another_format_names_the_version_that_reads_it(number: object, version: str, tmp_path: Path) -> None:
    path = written(tmp_path) / "manifest.json"
    write_document(path, read_document(path) | {"format": number, "equivox": version})
    with pytest.raises(UsageError, match=f"was made by equivox {version}.* read it with version {version}, or run"):
        read_manifest(tmp_path)


class Served(FunctionEngine):
    """An engine of the model org/m that says by which names it answered."""

    served_as: Sequence[str] = ()


def test_a_server_that_answers_by_the_name_it_was_asked_for_is_not_noted(tmp_path: Path) -> None:
    engine = Served(lambda request: "A nurse.", name="org/m", revision="1")
    written(tmp_path)
    note_served_models(tmp_path, engine)
    engine.served_as = ["org/m"]
    note_served_models(tmp_path, engine)
    assert "served_as" not in read_manifest(tmp_path)
    engine.served_as = ["org/m", "org/m-0613"]
    note_served_models(tmp_path, engine)
    assert read_manifest(tmp_path)["served_as"] == ["org/m", "org/m-0613"]


def test_tasks_without_a_manifest_are_no_run(tmp_path: Path) -> None:
    write_tasks(tmp_path, resolve_tasks("vibe_gender:story"))
    with pytest.raises(UsageError, match=r"it has no manifest\.json"):
        read_tasks(tmp_path)


def test_a_folder_of_another_run_says_what_is_other(tmp_path: Path) -> None:
    def run(temperature: int, name: str = "nurse") -> None:
        engine = FunctionEngine(lambda request: "A nurse.", name=name, revision="1", settings={"heat": temperature})
        tasks = resolve_tasks("badf_two:gender")
        execute(RunSpec(model=name, tasks=tasks, data="sample", limit=2, output=tmp_path / "run"), engine=engine)

    run(0)
    # The setting is private: that it is another one is all that can be said.
    with pytest.raises(UsageError, match=r"holds another run .the model arguments differ"):
        run(1)
    with pytest.raises(UsageError, match=r"holds another run .*model\.model: nurse there, chef here"):
        run(0, "chef")
