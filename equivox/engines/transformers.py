"""Transformers: a slow engine for models that vLLM does not support; it follows the same rules as the vLLM engine.

Requests are answered one at a time unless `batch_size` is given; sampled answers always are, so that each has its own
seed. Media are counted in the tensors that the model's processor returned.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from annotated_types import Ge

from equivox.core import media
from equivox.core.errors import UsageError, one_line
from equivox.core.fields import Public, checked, public_names, read_fields
from equivox.core.lazy import torch
from equivox.core.reasoning import split_reasoning
from equivox.core.requests import Engine, EngineIdentity, MediaPart, Request, Response
from equivox.core.task import Patch, digest
from equivox.engines import arguments as common
from equivox.engines import patching
from equivox.engines.arguments import ChatArguments, chat_template, generation_parameters, sort_arguments
from equivox.engines.checkpoint import Checkpoint, open_checkpoint
from equivox.engines.limits import failed, free, refuse_dropped, refuse_missing_modality, refuse_short_context
from equivox.engines.messages import RESAMPLED, SAMPLING_RATE, chat_of
from equivox.engines.transformers_loading import (
    Loaded,
    arrived,
    configuration,
    generation,
    load,
    logprobs,
    on_device,
    version,
)

_ALIASES = {"model": "model_name", "pretrained": "model_name", "max_length": "max_model_length"}
_REFUSED: Mapping[str, tuple[Any, str]] = {
    "add_special_tokens": (None, "the model's chat template adds its own special tokens; leave it out"),
    "cache_dir": (None, "responses are kept in the run's folder; HF_HOME says where models are kept"),
    "compile": (False, "answers of different lengths compile anew each; for speed use `equivox vllm`"),
    "continuous_batching": (False, "for speed use `equivox vllm`"),
    "multichoice_continuations_start_space": (None, "no task scores the likelihood of given answers; leave it out"),
    "override_chat_template": (True, "a prompt is always a chat; to use another template give `chat_template`"),
    "pairwise_tokenization": (None, "no task scores the likelihood of given answers; leave it out"),
    "skip_special_tokens": (True, "an annotator reads text; leave it out"),
    "subfolder": (None, "download the folder and name it"),
}


@checked
@dataclass(frozen=True, kw_only=True)
class _Arguments(ChatArguments):
    """The arguments of lighteval's transformers models, and where hidden states are patched."""

    model_name: Public[str]
    batch_size: Public[Annotated[int, Ge(1)] | None] = None
    device: Public[str | None] = None
    dtype: Public[str | None] = None
    max_model_length: Public[Annotated[int, Ge(1)] | None] = None
    model_loading_kwargs: Public[Mapping[str, Any]] = field(default_factory=dict)
    model_parallel: Public[bool | None] = None
    patch: Public[Mapping[str, Any]] = field(default_factory=dict)
    revision: Public[str | None] = None
    tokenizer: Public[str | None] = None
    trust_remote_code: Public[bool | None] = None


_PARTS = "attn_implementation model pretrained source_layer target target_layer target_token torch_dtype transformers"
PUBLIC = public_names(_Arguments) | common.PUBLIC | frozenset(_PARTS.split())
"""Names of arguments and of their parts that may be written down."""

_NEUTRAL = {"batch_size", "chat_template", "device", "model_name", "model_parallel", "revision"}


class TransformersEngine(Engine):
    """Engine for one transformers model on this machine; the model is loaded for the first request."""

    audio_sent = RESAMPLED
    able = frozenset({"turns", "hidden states"})

    def __init__(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> None:
        self.arguments = arguments
        self.checkpoint = checkpoint
        self.modalities = checkpoint.modalities
        self.longest_audio_s = arguments.get("max_audio_seconds") or checkpoint.longest_audio_s
        settings = {name: value for name, value in arguments.items() if name not in _NEUTRAL}
        if arguments.get("chat_template") is not None:
            settings["chat_template"] = digest(arguments["chat_template"])[:16]
        self.identity = EngineIdentity(
            engine="transformers",
            model=checkpoint.name,
            revision=checkpoint.revision,
            settings=settings | {"transformers": version()},
            public=PUBLIC,
        )
        # A device that is named and is no GPU takes none.
        self.gpus = 0 if str(arguments.get("device", "cuda")).partition(":")[0] in ("cpu", "mps") else 1
        self._loaded: Loaded | None = None

    @classmethod
    def from_args(cls, arguments: Mapping[str, Any]) -> TransformersEngine:
        """Build an engine from the arguments of lighteval's transformers models; nothing heavy is imported.

        Raises UsageError when transformers is not installed, an argument is unknown or the model cannot be found.
        """
        version()
        known = [own.name for own in fields(_Arguments)]
        given = sort_arguments(arguments, known=known, aliases=_ALIASES, refused=_REFUSED)
        if not isinstance(given.get("model_name"), str):
            raise UsageError("model arguments need model_name=org/model, or a folder")
        given = {name: value for name, value in given.items() if value is not None}
        parsed = dict(vars(read_fields(_Arguments, given, what="model")))
        parsed["chat_template"] = chat_template(parsed["chat_template"])
        parsed["generation_parameters"] = generation_parameters(
            parsed["generation_parameters"], {"stop_tokens": "stop"}, without=("presence_penalty", "stop_token_ids")
        )
        patching.check_settings(parsed["patch"])
        parsed = {name: value for name, value in parsed.items() if value not in (None, {})}
        return cls(parsed, open_checkpoint(parsed["model_name"], revision=parsed.get("revision")))

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for requests that this model or transformers cannot answer; weights are not loaded."""
        if any(request.schema is not None for request in requests):
            raise UsageError(
                "transformers cannot hold an answer to a schema; annotate with `vllm:` or `endpoint:`, or with `rules`"
            )
        config, _, tokenizer = configuration(self.checkpoint, self.arguments)
        refuse_missing_modality(self.checkpoint, self.modalities, requests)
        for patch in {self._patch(request.patch) for request in requests if request.patch is not None}:
            patching.check_layers(patch, config.get_text_config().num_hidden_layers, model=self.checkpoint.name)
        refuse_dropped(self.checkpoint, requests, lambda messages: self._applied(tokenizer, messages))
        if requests and (limit := self._limit(config)):
            refuse_short_context(
                requests,
                limit,
                tokens=lambda text: len(tokenizer.encode(text)),
                answer=lambda request: int(self._sampling(request)["max_new_tokens"]),
            )

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield the responses in order; a request with unreadable media or a too long prompt fails alone."""
        size = int(self.arguments.get("batch_size", 1))
        if self._loaded is None:
            self._loaded = load(self.checkpoint, self.arguments)
        for alike, group in itertools.groupby(requests, key=self._alike):
            # Sampled requests are not batched: a batch has one seed, but each response needs its own.
            for batch in _batches(group, 1 if alike is None else size):
                yield from self._isolated(self._loaded, batch)

    def close(self) -> None:
        """Free the model's memory; the next request loads it again."""
        if self._loaded is not None:
            self._loaded = None
            free()

    def _isolated(self, loaded: Loaded, batch: Sequence[Request]) -> Iterator[Response]:
        """Answer a batch; if that fails, answer each request separately, so that only the bad request fails."""
        try:
            answers = self._answer(loaded, batch)
        except Exception as error:  # any failure of this batch
            free()
            if len(batch) == 1:
                yield failed(batch[0], f"{type(error).__name__}: {one_line(error)}")
            else:
                for request in batch:
                    yield from self._isolated(loaded, [request])
            return
        yield from answers

    def _alike(self, request: Request) -> str | None:
        """Return a key that is equal for requests that can share a batch; None for a request that cannot."""
        sampling = self._sampling(request)
        if sampling["temperature"] > 0:
            return None
        patch = None if request.patch is None else vars(self._patch(request.patch))
        return json.dumps([sampling, [part.kind for part in request.media], patch], sort_keys=True)

    def _patch(self, declared: Patch) -> Patch:
        """Return the patch of a request with the layers or texts that the model's arguments set."""
        return replace(declared, **self.arguments.get("patch", {}))

    def _sampling(self, request: Request) -> dict[str, Any]:
        task = {name: value for name, value in vars(request.sampling).items() if name not in ("repeats", "reasoning")}
        return task | dict(self.arguments.get("generation_parameters", {}))

    def _limit(self, config: Any) -> int | None:
        """Return the largest number of tokens of prompt and answer together."""
        stated: int | None = self.arguments.get("max_model_length")
        return stated or getattr(config.get_text_config(), "max_position_embeddings", None)

    def _answer(self, loaded: Loaded, batch: Sequence[Request]) -> list[Response]:
        sampling, first = self._sampling(batch[0]), batch[0]
        grafts: list[patching.Graft] = []
        if first.patch is None:
            inputs = self._inputs(loaded, batch)
        else:
            inputs, grafts = self._patched_inputs(loaded, batch)
        width = inputs["input_ids"].shape[1]
        limit = self._limit(loaded.model.config)
        if limit is not None and width + sampling["max_new_tokens"] > limit:
            raise ValueError(
                f"the prompt ({width} tokens) and an answer of {sampling['max_new_tokens']} are longer than "
                f"max_model_length={limit}"
            )
        torch.manual_seed(first.seed)
        patched: AbstractContextManager[None] = nullcontext()
        if first.patch is not None:
            patched = patching.grafted(loaded.model, self._patch(first.patch).target_layer, grafts, width)
        with torch.inference_mode(), patched:
            output = loaded.model.generate(
                **on_device(inputs, loaded.model),
                **generation(sampling, loaded.tokenizer, width),
                return_dict_in_generate=True,
                output_logits=bool(sampling["logprobs"]),
            )
        return [
            self._response(loaded, request, sampling, inputs, output, row, width) for row, request in enumerate(batch)
        ]

    def _inputs(self, loaded: Loaded, batch: Sequence[Request]) -> Any:
        """Render each prompt with the model's chat template and return the processor's tensors for the batch."""
        texts = [self._render(loaded, request) for request in batch]
        options: dict[str, Any] = {"return_tensors": "pt", "padding": True, "add_special_tokens": False}
        audio = [self._audio(part) for request in batch for part in request.media if part.kind == "audio"]
        images = [_image(part) for request in batch for part in request.media if part.kind == "image"]
        if audio:
            options |= {"audio": audio, "sampling_rate": SAMPLING_RATE}
        if images:
            options["images"] = images
        renderer = loaded.processor if audio or images else loaded.tokenizer
        return renderer(text=texts, **options)

    def _patched_inputs(self, loaded: Loaded, batch: Sequence[Request]) -> tuple[Any, list[patching.Graft]]:
        """Return the target prompts of a batch and the hidden states for each, from source prompts run one by one."""
        texts, states, words = [], [], []
        for request in batch:
            if request.patch is None or request.media:
                raise ValueError("hidden states are replaced in prompts of text alone")
            patch = self._patch(request.patch)
            source = self._render(loaded, request)
            shift = source.index(request.text)
            ids, offsets = self._tokens(loaded, source)
            span = patching.span_tokens(offsets, *(shift + place for place in request.patched_span))
            tokens = torch.tensor([ids], device=loaded.model.device)
            states.append(patching.source_states(loaded.model, tokens, patch.source_layer, span))
            target = patching.target_text(patch, len(span))
            rendered = self._render(loaded, replace(request, text=target))
            start = rendered.index(target)
            _, offsets = self._tokens(loaded, rendered)
            places = patching.word_tokens(offsets, rendered, patch.target_token, (start, start + len(target)))
            texts.append(rendered + patch.answer)
            words.append(places)
        inputs = loaded.tokenizer(text=texts, return_tensors="pt", padding=True, add_special_tokens=False)
        # Prompts are padded on the left.
        padding = (inputs["attention_mask"] == 0).sum(dim=1).tolist()
        grafts: list[patching.Graft] = [
            (state, [place + pad for place in places])
            for state, places, pad in zip(states, words, padding, strict=True)
        ]
        return inputs, grafts

    def _tokens(self, loaded: Loaded, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the tokens of `text` and the character range of each."""
        found = loaded.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(found["input_ids"]), [tuple(pair) for pair in found["offset_mapping"]]

    def _render(self, loaded: Loaded, request: Request) -> str:
        messages = chat_of(
            request, [{"type": part.kind} for part in request.media], self.arguments.get("system_prompt")
        )
        for message in messages:
            # Templates of models without media take texts alone.
            if message["role"] == "user" and len(message["content"]) == 1:
                message["content"] = message["content"][0]["text"]
        renderer = loaded.processor if getattr(loaded.processor, "chat_template", None) else loaded.tokenizer
        return self._applied(renderer, messages)

    def _applied(self, renderer: Any, messages: list[dict[str, Any]]) -> str:
        """Return messages as the chat template writes them."""
        template = {"chat_template": self.arguments["chat_template"]} if "chat_template" in self.arguments else {}
        return str(
            renderer.apply_chat_template(
                messages,
                add_generation_prompt=True,
                tokenize=False,
                **template,
                **self.arguments.get("chat_template_kwargs", {}),
            )
        )

    def _audio(self, part: MediaPart) -> Any:
        samples = media.decode_audio(part.load(), name=part.name, sampling_rate=SAMPLING_RATE)
        seconds = len(samples) / SAMPLING_RATE
        if self.longest_audio_s is not None and seconds > self.longest_audio_s:
            raise media.MediaError(
                f"{part.name}: {seconds:.1f} s of audio, {self.checkpoint.name} hears the first "
                f"{self.longest_audio_s:g} s"
            )
        return samples

    def _response(
        self,
        loaded: Loaded,
        request: Request,
        sampling: Mapping[str, Any],
        inputs: Any,
        output: Any,
        row: int,
        width: int,
    ) -> Response:
        tokens = output.sequences[row, width:].tolist()
        stated = loaded.model.generation_config.eos_token_id
        ends = set() if stated is None else set(stated) if isinstance(stated, list) else {stated}
        end = next((place for place, token in enumerate(tokens) if token in ends), None)
        written = tokens if end is None else tokens[:end]
        text = loaded.tokenizer.decode(written, skip_special_tokens=True)
        stopped = [place for stop in sampling["stop"] if (place := text.find(stop)) >= 0]
        if stopped:
            text = text[: min(stopped)]
        answer, thinking = split_reasoning(text, request.sampling.reasoning)
        kinds = [part.kind for part in request.media]
        items, media_tokens = arrived(loaded, inputs, kinds, row, len(inputs["input_ids"]))
        return Response(
            key=request.key,
            text=answer,
            thinking=thinking,
            finish_reason="stop" if end is not None or stopped else "length",
            prompt_tokens=int(inputs["attention_mask"][row].sum()),
            completion_tokens=len(written) + (end is not None),
            media_items=items,
            media_tokens=media_tokens,
            logprobs=logprobs(loaded, output, row, written, sampling["logprobs"]) if sampling["logprobs"] else None,
        )


def _batches(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    requests = iter(requests)
    while batch := list(itertools.islice(requests, size)):
        yield batch


def _image(part: MediaPart) -> Any:
    from PIL import Image

    data, _ = media.checked_image(part.load(), name=part.name)
    return Image.open(io.BytesIO(data)).convert("RGB")
