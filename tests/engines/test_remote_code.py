"""Code of a model's repository runs when the user says so, never because a file of equivox does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox import engines
from equivox.annotate import open_annotator
from equivox.configs import config_names
from equivox.core.errors import UsageError
from equivox.engines import is_pinned, model_names, open_engine, runs_remote_code
from equivox.engines.function import FunctionEngine
from equivox.report.dry_run import code_notes

PHI, STORY = "phi-4-multimodal-instruct", "vibe_gender:story"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NEEDING = {name for name in model_names() if runs_remote_code(name)}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of the models that are opened; none of them is loaded."""
    seen: list[dict[str, Any]] = []

    def one(scheme: str, arguments: Mapping[str, Any]) -> FunctionEngine:
        seen.append(dict(arguments))
        return FunctionEngine(lambda request: "x", name=scheme, revision="1")

    monkeypatch.setattr(engines, "_one_engine", one)
    return seen


def config(path: str) -> str:
    return resources.files("equivox.configs").joinpath(path).read_text("utf-8")


def test_no_packaged_file_gives_the_users_consent() -> None:
    assert len(NEEDING) == 6
    for folder in ("models", "annotators", "runs"):
        for name in config_names(folder):
            assert "trust_remote_code" not in config(f"{folder}/{name}.yaml")


def test_a_run_file_names_the_models_that_run_code() -> None:
    for name in config_names("runs"):
        lines = config(f"runs/{name}.yaml").splitlines()
        for model in NEEDING & {line.strip().removeprefix("- ") for line in lines}:
            assert any(line.startswith("#") and model in line and "--trust-remote-code" in line for line in lines)


@pytest.mark.parametrize("model", sorted(NEEDING))
def test_without_consent_nothing_is_opened(model: str, opened: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match=rf"would run with {model}; .*`--trust-remote-code`"):
        open_engine(model, [])
    with pytest.raises(UsageError, match=rf"would run with {model};"):
        open_annotator(model)
    assert opened == []
    open_engine(model, [], trust_remote_code=True)
    assert [given["trust_remote_code"] for given in opened] == [True]


@pytest.mark.parametrize(("trusted", "given"), [(False, None), (True, True)])
def test_consent_reaches_a_model_that_is_named_by_its_arguments(
    trusted: bool, given: bool | None, opened: list[dict[str, Any]]
) -> None:
    open_engine("vllm:model_name=org/model", [], trust_remote_code=trusted)
    open_engine("qwen3-8b", [], trust_remote_code=trusted)
    # Consent is for the models that need it: the second one does not.
    assert [arguments.get("trust_remote_code") for arguments in opened] == [given, None]


def test_a_users_own_file_is_the_users_word(tmp_path: Path, opened: list[dict[str, Any]]) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"engine: vllm\nremote_code: true\nmodel_parameters: {{model_name: o/m, revision: {COMMIT}}}\n")
    with pytest.raises(UsageError, match="would run with"):
        open_engine(str(own), [])
    own.write_text(own.read_text().replace("{model_name", "{trust_remote_code: true, model_name"))
    open_engine(str(own), [])
    open_engine("vllm:model_name=o/m,trust_remote_code=true", [])
    assert [given["trust_remote_code"] for given in opened] == [True, True]


@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_the_commands_refuse_in_one_line(command: str, tmp_path: Path, equivox: Cli, opened: list[Any]) -> None:
    asked = ["run", PHI, STORY, "--annotator", "qwen3-8b"] if command == "run" else ["reproduce", "vibe"]
    assert f"would run with {PHI}; " in equivox.refused(*asked, "--data", "sample", "--output", tmp_path / "out")
    assert not any("Phi" in given["model_name"] for given in opened)


def test_a_dry_run_of_a_run_file_names_the_models(
    tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = equivox("reproduce", "vibe", "--dry-run")
    assert code == 1
    assert f"only with `--trust-remote-code`: {PHI}." in out
    assert f"No pinned revision: {PHI}, " in out and ", qwen3-8b. The newest" in out
    assert "gemini" not in out.partition("No pinned")[2].partition("\n")[0]
    check = ("reproduce", "vibe", "--data", "sample", "--dry-run", "--models")
    code, out, _ = equivox(*check, PHI)
    assert code == 1
    assert f"would run with {PHI}; " in " ".join(out.split())
    assert f"only with `--trust-remote-code`: {PHI}." in out and "No pinned revision: " in out
    code, out, _ = equivox(*check, PHI, "--trust-remote-code")
    assert "would run with" not in out


def test_a_dry_run_names_what_is_not_pinned() -> None:
    assert any("No pinned revision: qwen3-8b." in note for note in code_notes(["qwen3-8b"], ["rules"]))
    assert not code_notes([f"vllm:model_name=org/model,revision={COMMIT}"], ["rules"])


def test_only_a_commit_or_a_folder_is_pinned(tmp_path: Path) -> None:
    named = {"model_name": "org/model"}
    assert not is_pinned("vllm", named)
    assert not is_pinned("transformers", {**named, "revision": "main"})
    assert is_pinned("transformers", {**named, "revision": COMMIT})
    assert is_pinned("vllm", {"pretrained": str(tmp_path)})
    assert is_pinned("endpoint", named) and is_pinned("simulated", "oracle")


def test_the_report_names_the_revision(tmp_path: Path, equivox: Cli) -> None:
    run, page = tmp_path / "run", tmp_path / "report.html"
    equivox("run", "simulated:oracle", STORY, "--data", "sample", "--scoring", "n_resamples=99", "--output", run)
    equivox.done("report", run, "--output", page)
    revision = engines.open_engine("simulated:oracle", []).identity.revision
    assert revision in page.read_text()
