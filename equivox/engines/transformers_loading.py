"""Load a model with transformers, map a task's sampling to `generate` arguments, and count the media that arrived."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from equivox.core.errors import UsageError, one_line
from equivox.core.lazy import torch
from equivox.engines.checkpoint import Checkpoint
from equivox.engines.quiet import debugging, quiet

_INSTALL = 'in a checkout of equivox: pip install -c constraints.txt ".[transformers]"'
_FEATURES = {
    "audio": ("input_features", "input_audio_embeds", "audio_values", "input_values"),
    "image": ("image_grid_thw", "pixel_values", "image_sizes"),
}
"""Names in processors for the tensors with one row per media item, in order of preference."""


@dataclass(frozen=True)
class Loaded:
    """A model in memory. `tokenizer` is that of its processor; `placeholders` are the token ids of media."""

    model: Any
    processor: Any
    tokenizer: Any
    placeholders: Mapping[str, int]


def version() -> str:
    """Return the version of transformers without importing it; UsageError if it or torch is missing."""
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None:
        raise UsageError(f"transformers and torch are not both installed; {_INSTALL}")
    return metadata.version("transformers")


def import_transformers() -> Any:
    """Import transformers without its output; UsageError if it cannot be imported."""
    try:
        import transformers
        from transformers.utils import logging

        if not debugging():
            logging.set_verbosity_error()
            logging.disable_progress_bar()
    except Exception as error:  # a broken build can raise any error
        raise UsageError(
            f"transformers cannot be imported ({type(error).__name__}: {one_line(error)}); {_INSTALL}"
        ) from error
    return transformers


def configuration(checkpoint: Checkpoint, arguments: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return the model's configuration, the class that loads it and its tokenizer, without any weights."""
    transformers = import_transformers()
    try:
        options = _options(checkpoint, arguments)
        config = transformers.AutoConfig.from_pretrained(checkpoint.location, **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            arguments.get("tokenizer", checkpoint.location), **({} if "tokenizer" in arguments else options)
        )
    except Exception as error:
        raise UsageError(f"transformers cannot read {checkpoint.name}: {one_line(error, 400)}") from error
    from transformers.models.auto import modeling_auto

    # Only the text part of a model that can also speak is loaded.
    inner = getattr(config, "thinker_config", config)
    if type(inner) in modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING:
        return inner, transformers.AutoModelForMultimodalLM, tokenizer
    remote = "AutoModelForCausalLM" in getattr(config, "auto_map", {})
    if type(config) in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING or remote:
        return config, transformers.AutoModelForCausalLM, tokenizer
    raise UsageError(
        f"transformers {transformers.__version__} has no class that generates text with "
        f"{', '.join(checkpoint.architectures) or config.model_type} of {checkpoint.name}; "
        "use `equivox vllm`, or `equivox run endpoint:…` and a server that has"
    )


def load(checkpoint: Checkpoint, arguments: Mapping[str, Any]) -> Loaded:
    """Load model and processor; UsageError, in one line, when that fails."""
    with quiet() as noise:
        try:
            return _load(checkpoint, arguments)
        except UsageError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error, 400)}"
            raise UsageError(f"transformers cannot load {checkpoint.name}: {reason}") from error
        finally:
            noise.close()


def _load(checkpoint: Checkpoint, arguments: Mapping[str, Any]) -> Loaded:
    transformers = import_transformers()
    config, model_class, tokenizer = configuration(checkpoint, arguments)
    options = _options(checkpoint, arguments)
    placing = {"device_map": "auto"} if arguments.get("model_parallel") else {}
    model = model_class.from_pretrained(
        checkpoint.location,
        config=config,
        dtype=arguments.get("dtype", "auto"),
        **options,
        **placing,
        **arguments.get("model_loading_kwargs", {}),
    )
    model = model.eval()
    if not placing:
        model = model.to(arguments.get("device", "cuda" if torch.cuda.is_available() else "cpu"))
    own = model.generation_config
    # The task decides the decoding; the checkpoint's defaults (top_k, penalties) must not apply.
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=own.eos_token_id if own.eos_token_id is not None else tokenizer.eos_token_id,
        pad_token_id=own.pad_token_id,
        bos_token_id=own.bos_token_id,
    )
    processor = tokenizer
    if checkpoint.modalities != {"text"}:
        processor = transformers.AutoProcessor.from_pretrained(checkpoint.location, **options)
        tokenizer = processor.tokenizer
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.padding_side = "left"
    if model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id
    return Loaded(model, processor, tokenizer, _placeholders(processor, model.config))


def _options(checkpoint: Checkpoint, arguments: Mapping[str, Any]) -> dict[str, Any]:
    options = {"trust_remote_code": bool(arguments.get("trust_remote_code", False))}
    return options | ({"revision": checkpoint.revision} if checkpoint.on_hub else {})


def _placeholders(processor: Any, config: Any) -> dict[str, int]:
    """Return the token ids that stand for media in a prompt, as the processor or the configuration names them."""
    found = {}
    for kind in _FEATURES:
        for owner in (processor, config):
            for name in (f"{kind}_token_id", f"{kind}_token_index"):
                if kind not in found and isinstance(getattr(owner, name, None), int):
                    found[kind] = int(getattr(owner, name))
    return found


def arrived(loaded: Loaded, inputs: Any, kinds: Sequence[str], row: int, rows: int) -> tuple[int, int]:
    """Return the numbers of media items and media tokens that the model received for one row of a batch.

    Items are rows of the processor's feature tensors, divided equally among the rows of the batch (all requests of a
    batch have the same kinds of media), or places within a row where a processor has them. Tokens are the positions in
    the prompt that these features fill.
    """
    items, tokens = 0, 0
    for kind, names in _FEATURES.items():
        tensor = next((inputs[name] for name in names if name in inputs), None)
        places = int((inputs["input_ids"][row] == loaded.placeholders.get(kind, -1)).sum())
        if tensor is not None and places:
            found = len(tensor) // rows
            if kind == "image" and "aspect_ratio_ids" in inputs:
                # Llama 3.2 Vision: one row per prompt, with a place for each image; 0 is an empty place.
                found = int((inputs["aspect_ratio_ids"][row] > 0).sum())
            items += min(found, kinds.count(kind))
            tokens += places
    return items, tokens


def on_device(inputs: Any, model: Any) -> dict[str, Any]:
    """Return a processor's tensors on the model's device, with features in the model's precision."""
    tensors = inputs.to(model.device)
    return {name: value.to(model.dtype) if value.is_floating_point() else value for name, value in tensors.items()}


def generation(sampling: Mapping[str, Any], tokenizer: Any, prompt: int) -> dict[str, Any]:
    """Map a task's sampling settings to `generate` arguments; `prompt` is the length of the prompt in tokens."""
    arguments: dict[str, Any] = {
        "max_new_tokens": int(sampling["max_new_tokens"]),
        "do_sample": sampling["temperature"] > 0,
        "repetition_penalty": sampling.get("repetition_penalty"),
        "min_new_tokens": sampling.get("min_new_tokens"),
    }
    if sampling["temperature"] > 0:
        arguments |= {
            "temperature": float(sampling["temperature"]),
            "top_p": float(sampling["top_p"]),
            "top_k": int(sampling["top_k"]),
            "min_p": sampling.get("min_p"),
        }
    if sampling["stop"]:
        arguments |= {"stop_strings": list(sampling["stop"]), "tokenizer": tokenizer}
    if sampling["frequency_penalty"]:
        arguments["logits_processor"] = [_FrequencyPenalty(float(sampling["frequency_penalty"]), prompt)]
    return {name: value for name, value in arguments.items() if value is not None}


class _FrequencyPenalty:
    """Logits processor that lowers a token's logit by `penalty` per occurrence, as OpenAI's API and vLLM do."""

    def __init__(self, penalty: float, prompt: int) -> None:
        self.penalty = penalty
        self.prompt = prompt

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the `scores` of the next token, lowered for the tokens that each row has generated."""
        written = input_ids[:, self.prompt :]
        counts = scores.new_zeros(scores.shape).scatter_add_(1, written, scores.new_ones(written.shape))
        return scores - self.penalty * counts


def logprobs(loaded: Loaded, output: Any, row: int, tokens: Sequence[int], count: int) -> str:
    """Return OpenAI's format: for each token its text, its log-probability, and the `count` likeliest alternatives."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        return {"token": loaded.tokenizer.decode([token]), "logprob": logprob}

    entries = []
    for place, token in enumerate(tokens):
        values = output.logits[place][row].float().log_softmax(-1)
        best = values.topk(count)
        likeliest = [entry(*pair) for pair in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
        entries.append(entry(token, float(values[token])) | {"top_logprobs": likeliest})
    return json.dumps(entries, ensure_ascii=False)
