"""Model arguments with values that cannot be meant: one line each, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Cli

from equivox.core.errors import UsageError
from equivox.core.requests import EngineIdentity
from equivox.core.yaml_files import parse_model_args
from equivox.engines import engine_from_args
from equivox.engines.arguments import generation_parameters
from equivox.engines.vllm_arguments import VLLMArguments
from equivox.run.pipeline import refuse_overrides

SERVER = "model_name=m,base_url=http://127.0.0.1:9/v1"
WRONG = {
    "max_concurrency=0": "greater than or equal to 1, got 0",
    "max_concurrency=-1": "greater than or equal to 1, got -1",
    "max_concurrency=2000": "less than or equal to 1024, got 2000",
    "max_concurrency=true": "valid integer, got True",
    "max_concurrency='8'": "valid integer, got '8'",
    "max_concurrency=1.5": "valid integer, got 1.5",
    "requests_per_minute=-5": "greater than or equal to 0, got -5",
    "timeout_s=-1": "greater than 0, got -1",
    "timeout_s=0": "greater than 0, got 0",
    "timeout_s=.nan": "finite number, got nan",
    "timeout_s=.inf": "finite number, got inf",
    "timeout_s=true": "valid number, got True",
    "timeout_s=soon": "valid number, got 'soon'",
    "max_retries=-1": "greater than or equal to 0, got -1",
    "max_audio_seconds=-3": "greater than or equal to 0, got -3",
    "max_audio_seconds=.inf": "finite number, got inf",
    "send_seed=1": "valid boolean, got 1",
    "modalities=[text, adio]": "'audio'",
    "extra_body={a: 2024-01-01}": "date is not a value of JSON, got datetime.date(2024, 1, 1); put it into quotes",
    "extra_body={a: {b: [.nan]}}": "finite number, got nan",
    "extra_body={1: a}": "the name 1 is no text; put it into quotes",
    "extra_body={a: 2024-13-45}": "month must be in 1..12",
    "extra_body={a: 1, a: 2}": "the key 'a' is given twice",
    "extra_body=text": "extra_body",
}


@pytest.mark.parametrize("argument", WRONG)
def test_an_argument_out_of_its_range_is_one_line(argument: str, equivox: Cli, tmp_path: Path) -> None:
    output = tmp_path / "run"
    err = equivox.refused(
        "run",
        f"endpoint:{SERVER},{argument}",
        "vibe_gender:story",
        "--data",
        "sample",
        "--annotator",
        "rules",
        "--output",
        output,
    )
    assert argument.partition("=")[0] in err and WRONG[argument] in err


def test_values_at_the_ends_of_their_ranges_are_taken() -> None:
    given = "max_concurrency=1024,requests_per_minute=0,timeout_s=1,max_retries=0,max_audio_seconds=0"
    assert engine_from_args("endpoint", parse_model_args(f"{SERVER},{given},extra_body={{a: [1, {{b: null}}]}}"))


def test_a_key_given_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text("model_parameters:\n  model_name: a\n  dtype: half\n  model_name: b\n")
    with pytest.raises(UsageError, match=r"the key 'model_name' is given twice.*line 4"):
        parse_model_args(str(file))


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("temperature", -1, "greater than or equal to 0"),
        ("temperature", float("nan"), "finite"),
        ("temperature", "1", "valid number"),
        ("top_p", 0, "greater than 0"),
        ("top_p", 1.5, "less than or equal to 1"),
        ("top_k", -1, "greater than or equal to 0"),
        ("max_new_tokens", 0, "greater than or equal to 1"),
        ("max_new_tokens", True, "valid integer"),
    ],
)
def test_a_generation_parameter_out_of_its_range_is_refused(name: str, value: object, hint: str) -> None:
    with pytest.raises(UsageError, match=f"generation parameters.*{name}.*{hint}"):
        generation_parameters({name: value}, {name: name})


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        *(({"max_audio_seconds": value}, "max_audio_seconds.*finite") for value in (float("nan"), float("inf"))),
        *(({"max_audio_seconds": value}, "max_audio_seconds.*greater than 0, got") for value in (-1, 0)),
        *(({"max_audio_seconds": value}, "max_audio_seconds.*valid number, got") for value in (True, "1")),
        ({"system_prompt": 3}, "system_prompt.*valid string, got 3; put it into quotes"),
        ({"chat_template_kwargs": "x"}, "chat_template_kwargs.*got 'x'"),
        ({"generation_parameters": 3}, "generation_parameters.*got 3"),
        ({"structured_outputs_config": 3}, "`structured_outputs_config` must be {name: value, …}, got 3"),
    ],
)
def test_arguments_of_an_engine_on_this_machine_have_their_types(given: dict[str, object], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        VLLMArguments.parse({"model_name": "org/model"} | given)


@pytest.mark.parametrize(
    ("argument", "field", "value"),
    [
        ("generation_parameters", "temperature", 1.0),
        ("generation_parameters", "top_p", 0.9),
        ("extra_body", "top_k", 40),
    ],
)
def test_greedy_beside_arguments_that_sample_is_refused(argument: str, field: str, value: float) -> None:
    identity = EngineIdentity(engine="vllm", model="m", revision="", settings={argument: {field: value}})
    with pytest.raises(UsageError, match=rf"`sampling` is greedy, but the model arguments set {argument}=.{field}"):
        refuse_overrides(identity, "greedy")
    refuse_overrides(identity, "as-declared")
    same = EngineIdentity(engine="vllm", model="m", revision="", settings={argument: {"temperature": 0.0}})
    refuse_overrides(same, "greedy")


def test_a_greedy_run_of_a_server_that_samples_is_one_line(equivox: Cli, tmp_path: Path) -> None:
    arguments = f"{SERVER},extra_body={{temperature: 1.0}}"
    asked = ("vibe_gender:story", "--data", "sample", "--sampling", "greedy", "--annotator", "rules")
    asked = (*asked, "--output", tmp_path / "run")
    err = equivox.refused("run", f"endpoint:{arguments}", *asked)
    assert "extra_body={temperature: 1.0}, which would take its place" in err


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("planted,shift=nan", "finite number, got nan"),
        ("planted,shift=2", "less than or equal to 1, got 2"),
        ("planted,shift=0.2,shift=0.5", "gives an option twice"),
        ("oracle,seed=1.5", "valid integer, got 1.5"),
        ("planted,shift=much", "valid number, got 'much'"),
        ("oracle,fail=-0.1", "greater than or equal to 0, got -0.1"),
    ],
)
def test_a_simulated_model_out_of_its_range_is_one_line(model: str, hint: str, equivox: Cli, tmp_path: Path) -> None:
    asked = ("vibe_gender:story", "--data", "sample", "--output", tmp_path / "run")
    assert hint in equivox.refused("run", f"simulated:{model}", *asked)
