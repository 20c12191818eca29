"""Every argument of `lighteval vllm` and of vLLM's engine arrives, is refused with a reason, or is an error."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import SMALL, on_gpu

from equivox.core.errors import UsageError
from equivox.engines.checkpoint import open_checkpoint
from equivox.engines.transformers import TransformersEngine
from equivox.engines.vllm import VLLMEngine
from equivox.engines.vllm_arguments import ALIASES, NEUTRAL, OWN, REFUSED, VLLMArguments
from equivox.engines.vllm_loading import load

# The fields of VLLMModelConfig and ModelConfig in lighteval 0.13.0.
LIGHTEVAL = [
    "model_name",
    "tokenizer",
    "revision",
    "dtype",
    "tensor_parallel_size",
    "data_parallel_size",
    "pipeline_parallel_size",
    "gpu_memory_utilization",
    "enable_prefix_caching",
    "max_model_length",
    "quantization",
    "load_format",
    "swap_space",
    "seed",
    "trust_remote_code",
    "add_special_tokens",
    "multichoice_continuations_start_space",
    "pairwise_tokenization",
    "max_num_seqs",
    "max_num_batched_tokens",
    "subfolder",
    "is_async",
    "override_chat_template",
    "generation_parameters",
    "system_prompt",
    "cache_dir",
]


def parse(**arguments: Any) -> VLLMArguments:
    return VLLMArguments.parse({"model_name": "org/model"} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"swap_space": 4}, "swap_space=4 cannot be used: this vLLM has none"),
        ({"data_parallel_size": 2}, "data_parallel_size=2 cannot be used: .*`--workers` says how many"),
        ({"is_async": True}, "is_async=True cannot be used"),
        ({"override_chat_template": False}, "a prompt is always a chat"),
        ({"pairwise_tokenization": True}, "no task scores the likelihood"),
        ({"subfolder": "x"}, "from the top of its repository"),
        ({"max_model_length": 4, "max_model_len": 4}, "max_model_len is given twice"),
        ({"pretrained": "m"}, "model is given twice"),
        ({"generation_parameters": {"seed": 1}}, "seed cannot be used: every response has its own seed"),
        ({"generation_parameters": {"temprature": 1}}, "unknown generation parameter 'temprature'; did you mean temp"),
        ({"max_audio_seconds": -1}, "`max_audio_seconds`: input should be greater than 0, got -1"),
        ({"chat_template": "nowhere.jinja"}, "`chat_template` 'nowhere.jinja' is no template and no file"),
        ({"system_prompt": 3}, "`system_prompt`: input should be a valid string, got 3"),
    ],
)
def test_what_cannot_be_meant_is_an_error_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(**arguments)


def test_harmless_values_of_refused_words_are_accepted() -> None:
    assert "data_parallel_size" not in parse(data_parallel_size=1, is_async=False, override_chat_template=True).engine


def test_a_model_must_be_named() -> None:
    with pytest.raises(UsageError, match="need model_name=org/model"):
        VLLMArguments.parse({"dtype": "bfloat16"})


def test_settings_hold_what_changes_answers_and_nothing_else() -> None:
    assert parse(gpu_memory_utilization=0.5, max_num_seqs=7, tensor_parallel_size=2).settings() == {}
    assert parse(trust_remote_code=False).settings() == {}
    changing = {"dtype": "float16", "max_model_length": 512, "quantization": "awq", "system_prompt": "Be brief."}
    assert parse(**changing).settings() == changing
    given = parse(generation_parameters={"temperature": 0.5, "max_new_tokens": 9}, trust_remote_code=True)
    assert given.settings() == {
        "generation_parameters": {"temperature": 0.5, "max_tokens": 9},
        "trust_remote_code": True,
    }
    # A template is named by its content: a file and its text are one setting.
    assert len(parse(chat_template="{{ messages }}").settings()["chat_template"]) == 16


def test_the_batch_invariant_mode_is_part_of_the_model(
    model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vllm", reason="the mode is vLLM's: make test-engine")
    usual = VLLMEngine.from_args({"model_name": model("llama")})
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    invariant = VLLMEngine.from_args({"model_name": model("llama")})
    assert invariant.identity.as_public_dict()["settings"]["batch_invariant"] is True
    assert "batch_invariant" not in usual.identity.settings
    if on_gpu():
        invariant.check([])
        return
    # vLLM 0.32 on a CPU never ends loading in this mode.
    with pytest.raises(UsageError, match="batch-invariant mode needs a GPU"):
        invariant.check([])


def test_without_vllm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'vLLM is not installed; .*constraints-vllm.txt "\.\[vllm\]"`'):
        VLLMEngine.from_args({"model_name": "org/model"})
    with pytest.raises(UsageError, match=r'not both installed; .*constraints.txt "\.\[transformers\]"'):
        TransformersEngine.from_args({"model_name": "org/model"})


def test_every_argument_reaches_vllm(model: Callable[[str], str]) -> None:
    """Give every field of EngineArgs that has a plain default another value than that, and find it again."""
    pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")
    from vllm import EngineArgs

    from equivox.engines.vllm_loading import engine_args

    declared = {field.name: field for field in dataclasses.fields(EngineArgs)}
    assert set(NEUTRAL) <= set(declared)
    assert [word for word in LIGHTEVAL if ALIASES.get(word, word) not in {*declared, *OWN, *REFUSED}] == []
    given: dict[str, Any] = {"model": model("llama")}
    for name in set(declared) - set(REFUSED) - {"model", "revision", "fail_on_environ_validation"}:
        if name.startswith("_"):
            continue
        default = declared[name].default
        if isinstance(default, bool):
            given[name] = not default
        elif isinstance(default, int) and name != "optimization_level":
            given[name] = default + 1
        elif isinstance(default, float):
            given[name] = default / 2 + 0.01
        elif isinstance(default, str):
            given[name] = f"other-{default}"
    assert len(given) > 120
    engine = VLLMEngine.from_args(given)
    arrived = engine_args(engine.arguments.engine, engine.checkpoint)
    assert {name: getattr(arrived, name) for name in given} == given
    for unknown, meant in (("max_model_lenght", "max_model_length"), ("_api_process_rank", "")):
        misspelt = VLLMEngine.from_args({"model_name": model("llama"), unknown: 4})
        with pytest.raises(UsageError, match=f"unknown model argument '{unknown}'.*{meant}"):
            misspelt.check([])


@pytest.mark.long
def test_lightevals_words_reach_vllms_configuration(model: Callable[[str], str]) -> None:
    pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")
    from equivox.engines.vllm_loading import configuration

    given = SMALL | {
        "model_name": model("llama"),
        "max_model_length": 1024,
        "max_num_seqs": 7,
        "max_num_batched_tokens": 1536,
        "gpu_memory_utilization": 0.41,
        "seed": 11,
        "enable_prefix_caching": False,
        "load_format": "safetensors",
        "tokenizer": model("llama"),
        "dtype": "float32",
    }
    engine = VLLMEngine.from_args(given)
    config = configuration(engine.arguments.engine, engine.checkpoint)
    assert config.model_config.max_model_len == 1024
    assert config.model_config.seed == 11
    assert str(config.model_config.dtype) == "torch.float32"
    assert config.model_config.trust_remote_code is False
    assert config.scheduler_config.max_num_seqs == 7
    assert config.scheduler_config.max_num_batched_tokens == 1536
    assert config.cache_config.gpu_memory_utilization == 0.41
    assert config.cache_config.enable_prefix_caching is False
    assert config.load_config.load_format == "safetensors"
    assert config.structured_outputs_config.backend == "guidance"
    assert config.structured_outputs_config.disable_any_whitespace is True


def test_arguments_of_the_transformers_engine(model: Callable[[str], str]) -> None:
    pytest.importorskip("transformers", reason="the engine tests need transformers: make test-engine")
    known = {"model_name": model("llama"), "dtype": "float32", "max_length": 512, "batch_size": 2, "device": "cpu"}
    engine = TransformersEngine.from_args(known)
    assert engine.identity.settings["max_model_length"] == 512
    assert "batch_size" not in engine.identity.settings and "device" not in engine.identity.settings
    for arguments, message in (
        ({"compile": True}, "compile=True cannot be used"),
        ({"batchsize": 2}, "unknown model argument 'batchsize'; did you mean batch_size"),
        ({"batch_size": 1.5}, "`batch_size`: input should be a valid integer, got 1.5"),
    ):
        with pytest.raises(UsageError, match=message):
            TransformersEngine.from_args({"model_name": model("llama")} | arguments)


def test_on_a_cpu_the_cache_takes_what_requests_need_and_the_user_decides(
    model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    vllm = pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")
    if on_gpu():
        pytest.skip("vLLM measures the memory of a GPU itself")
    from vllm.platforms import current_platform

    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")
    monkeypatch.setattr(vllm.LLM, "from_engine_args", lambda given: given)
    checkpoint = open_checkpoint(model("llama"))

    def requested(**arguments: Any) -> int | None:
        given = VLLMArguments.parse({"model": model("llama"), "max_model_len": 2048, "dtype": "float32"} | arguments)
        started, noise = load(given.engine, checkpoint)
        noise.close()
        return started.kv_cache_memory_bytes

    free = 2**40
    total = current_platform.get_device_total_memory()
    monkeypatch.setattr(current_platform, "get_current_memory_usage", lambda: total - free)
    sizes = checkpoint.config
    token = 2 * sizes["num_hidden_layers"] * sizes["num_key_value_heads"] * sizes["head_dim"] * 4
    assert requested() == 8 * 2048 * token
    weights = (Path(checkpoint.location) / "model.safetensors").stat().st_size
    free = weights + 2**20
    assert requested() == 2**19
    free = weights // 2
    assert requested() == 0
    assert requested(kv_cache_memory_bytes=2**29) == 2**29
    assert requested(gpu_memory_utilization=0.5) is None
