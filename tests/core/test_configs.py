"""Every configuration that comes with the package is valid and opens without loading a model."""

from __future__ import annotations

import importlib.util
import itertools
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from equivox.annotate import AnnotatorFile, annotator_names, open_annotator
from equivox.configs import load_config, read_config_file
from equivox.core.errors import UsageError
from equivox.core.yaml_files import load_yaml
from equivox.engines import ModelFile, model_names, open_engine
from equivox.tasks.registry import resolve_tasks

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = {"vibe": 11, "genres": 6, "badf": 3, "spoken_stereoset": 4}
NEEDS = {"vllm": "vllm", "transformers": "transformers", "endpoint": "openai"}


def opens_or_says_what_is_missing(engine: str, opening: object) -> None:
    """With the engine's library installed it opens; without it, one line says what to install."""
    if importlib.util.find_spec(NEEDS[engine]) is not None and engine == "endpoint":
        opening()
        return
    try:
        opening()
    except UsageError as error:
        assert any(hint in str(error).lower() for hint in ("pip install -c constraints", "not found", "offline"))


@pytest.mark.parametrize("name", model_names())
def test_every_model_file_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    declared = read_config_file(ModelFile, name, "models")
    # Models that are newer than the papers have none.
    assert set(declared.papers) <= set(PUBLISHED)
    if declared.engine != "vllm":
        assert declared.note, "a model that vLLM does not run says why, and by which engine it is served"
    opens_or_says_what_is_missing(declared.engine, lambda: open_engine(name, [], trust_remote_code=True))


@pytest.mark.parametrize("name", [name for name in annotator_names() if name != "rules"])
def test_every_annotator_file_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    declared = read_config_file(AnnotatorFile, name, "annotators")
    opens_or_says_what_is_missing(declared.engine, lambda: open_annotator(name))


def test_every_published_model_has_its_file() -> None:
    declared = [read_config_file(ModelFile, name, "models") for name in model_names()]
    # Phi-4-multimodal counts for two papers, Qwen3-8B was read under BADF alone; Llama-3.2-3B has a file per engine.
    named = {(paper, file.model_parameters["model_name"]) for file in declared for paper in file.papers}
    papers = [paper for paper, _ in named]
    assert {paper: papers.count(paper) for paper in PUBLISHED} == PUBLISHED


def test_every_model_that_the_user_serves_has_its_command_and_its_port() -> None:
    ports = {}
    for name in model_names():
        declared = read_config_file(ModelFile, name, "models")
        place = urlsplit(str(declared.model_parameters.get("base_url", "")))
        if place.hostname != "127.0.0.1":
            assert not declared.serve
            continue
        words = shlex.split(declared.serve)
        assert "\n" not in declared.serve and words[words.index("--port") + 1] == str(place.port)
        named = words[words.index("--served-model-name" if "docker" in words else "--name") + 1]
        assert named == declared.model_parameters["model_name"]
        for word in words:
            assert not word.startswith("examples/") or (ROOT / word).is_file()
        ports[name] = place.port
    assert sorted(ports.values()) == list(range(8001, 8001 + len(ports))) and len(ports) == 7


def table_of_models() -> dict[str, list[str]]:
    """Return the rows of the table in docs/models.md by the model's name."""
    text = (ROOT / "docs" / "models.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in rows if len(row) == 5}


def test_the_documentation_has_every_model_and_says_what_ran() -> None:
    table = table_of_models()
    assert set(table) == set(model_names())
    titles = {"vibe": "VIBE", "genres": "GENRES", "badf": "BADF", "spoken_stereoset": "Spoken StereoSet"}
    for name, (papers, engine, weights, ran) in table.items():
        declared = read_config_file(ModelFile, name, "models")
        assert engine == declared.engine
        assert papers == (", ".join(titles[paper] for paper in declared.papers) or "–")
        assert ran.startswith(("tiny: ", "not run"))
        if engine == "endpoint":
            assert (weights, declared.gpu_memory_gb) == ("–", None)
        else:
            # Of rounded numbers; vLLM's is what docs/models.md says was measured.
            size = float(weights.removesuffix(" GB"))
            needed = (size + 4.4) / 0.92 if engine == "vllm" else 1.2 * size
            assert declared.gpu_memory_gb == pytest.approx(needed, abs=1.1)


def test_models_whose_answers_have_a_cap_do_not_spend_it_on_thinking() -> None:
    gemini = read_config_file(ModelFile, "gemini-2.5-flash", "models")
    assert gemini.model_parameters["extra_body"] == {"reasoning_effort": "none"}
    qwen = read_config_file(ModelFile, "qwen3-8b", "models")
    assert qwen.model_parameters["chat_template_kwargs"] == {"enable_thinking": False}
    assert "hinking is off" in gemini.note and "hinking is off" in qwen.note


def test_the_demonstration_names_things_that_exist() -> None:
    demo = load_config("runs/demo.yaml")
    tasks = resolve_tasks(demo["tasks"])
    assert {task.family for task in tasks} == {entry.partition(":")[0] for entry in demo["tasks"].split(",")}
    for model in demo["models"]:
        open_engine(model, tasks)


def test_no_file_holds_a_key() -> None:
    for file in (ROOT / "configs").rglob("*.yaml"):
        assert not re.search(r"^\s*(api_key|token|secret)\s*:", file.read_text(), flags=re.MULTILINE), file.name


ANNOTATOR = """\
engine: endpoint
model_parameters: {model_name: m, base_url: http://127.0.0.1:9/v1}
sampling: {temperature: 0}
attempts: 3
"""


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("attempts: 3", "attempts: 0", "`attempts`: input should be greater than or equal to 1, got 0"),
        ("attempts: 3", "attempts: 11", "`attempts`: input should be less than or equal to 10, got 11"),
        ("attempts: 3", "stop_after: -1", "`stop_after`: input should be greater than or equal to 0, got -1"),
        ("attempts: 3", "attempts: true", "valid integer, got True"),
        ("attempts: 3", 'attempts: "3"', "valid integer, got '3'"),
        ("attempts: 3", "attempts: 3\nattempts: 4", "the key 'attempts' is given twice"),
        ("attempts: 3", "attempt: 3", "`attempt`: extra inputs are not permitted"),
        ("engine: endpoint\n", "", "`engine`: field required; known fields: engine"),
        ("engine: endpoint", "engine: magic", "magic"),
        ("model_parameters: ", "parameters: ", "`model_parameters`: field required"),
        (", base_url: http://127.0.0.1:9/v1", "", "base_url"),
        ("engine: endpoint", "[", "not YAML"),
        ("temperature: 0", "heat: 1", "heat"),
        ("temperature: 0", "temperature: -1", "greater than or equal to 0, got -1"),
        ("temperature: 0", "temperature: .inf", "finite number"),
        ("temperature: 0", "top_p: 0", "greater than 0, got 0"),
        ("temperature: 0", "max_new_tokens: -5", "greater than or equal to 1, got -5"),
        ("model_name: m", "model_name: m, max_concurrency: 0", "greater than or equal to 1, got 0"),
        ("model_name: m", "model_name: m, extra_body: {day: 2024-01-01}", "put it into quotes"),
        ("model_name: m", "model_name: &a [*a]", "it holds itself"),
    ],
)
def test_a_wrong_annotator_file_is_one_line(old: str, new: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(ANNOTATOR)
    open_annotator(str(file)).close()
    assert old in ANNOTATOR
    file.write_text(ANNOTATOR.replace(old, new))
    with pytest.raises(UsageError, match=re.escape(hint)):
        open_annotator(str(file))


def test_a_key_that_a_merge_brings_is_not_given_twice() -> None:
    assert load_yaml("a: &a {x: 1}\nb: {<<: *a, x: 2}\n") == {"a": {"x": 1}, "b": {"x": 2}}


def test_anchors_that_stand_for_too_many_entries_are_refused() -> None:
    """A file of 400 bytes stood for a thousand million entries, and every command hung."""
    names = "abcdefghi"
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{name}: &{name} [{','.join(['*' + before] * 10)}]" for before, name in itertools.pairwise(names)]
    with pytest.raises(yaml.YAMLError, match="anchors stand for 1,234,"):
        load_yaml("\n".join(lines))
    assert len(load_yaml("\n".join(lines[:4]))["d"]) == 10


def test_a_file_that_is_not_there_is_told_with_those_of_like_names_beside_it(tmp_path: Path) -> None:
    (tmp_path / "applications.yaml").write_text("name: x")
    with pytest.raises(UsageError, match=r"No such file or directory; did you mean applications.yaml$"):
        read_config_file(AnnotatorFile, str(tmp_path / "aplications.yaml"), "annotators")
    with pytest.raises(UsageError, match=r"No such file or directory; check the path$"):
        read_config_file(AnnotatorFile, str(tmp_path / "nowhere" / "zzz.yaml"), "annotators")
    with pytest.raises(UsageError, match=r"File name too long; check the path$"):
        read_config_file(AnnotatorFile, str(tmp_path / ("long" * 99) / "x.yaml"), "annotators")
