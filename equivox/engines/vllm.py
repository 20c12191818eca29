"""vLLM: text, speech and images take one path; responses are yielded as they finish, and failures stay separate.

A sliding window of requests is kept inside vLLM; finished requests leave it at once, and the media of the next few are
read and decoded in threads meanwhile, so memory does not grow with the number of requests. Consecutive requests about
one clip share its decoding and hit vLLM's caches. If the engine dies, it is started again once for the requests that
were lost.

"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from queue import Empty
from typing import Any

from equivox.core.errors import RunError, UsageError, one_line
from equivox.core.reasoning import split_reasoning
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.engines.checkpoint import Checkpoint, open_checkpoint
from equivox.engines.limits import (
    failed,
    refuse_dropped,
    refuse_missing_modality,
    refuse_short_context,
    refuse_too_many_media,
    too_much_audio,
)
from equivox.engines.messages import RESAMPLED, MediaAhead, chat_of
from equivox.engines.quiet import Noise
from equivox.engines.vllm_arguments import (
    PUBLIC,
    VLLMArguments,
    adapters,
    refuse_missing_package,
    refuse_missing_vllm,
    refuse_wrong_adapters,
    version,
)
from equivox.engines.vllm_loading import batch_invariant, configuration, load, media_limits, unload

_PATIENCE_S = 1.0
_DEATHS = 2
"""The number of times that vLLM may die in a row without an answer in between."""
_TOO_LONG = ("maximum model length", "maximum context length", "longer than the maximum")


_Sent = tuple[Request, Sequence[int]]
"""A request inside vLLM, and the number of tokens of each of the media that vLLM found in its prompt."""


class VLLMEngine(Engine):
    """One model on this machine's vLLM.

    Nothing is loaded until the first request is generated; `check` reads vLLM's configuration of the model without
    its weights. A closed engine can be used again, and loads again.
    """

    audio_sent = RESAMPLED

    def __init__(self, arguments: VLLMArguments, checkpoint: Checkpoint) -> None:
        self.arguments = arguments
        self.checkpoint = checkpoint
        self.modalities = checkpoint.modalities
        self.longest_audio_s = arguments.max_audio_seconds or checkpoint.longest_audio_s
        settings = arguments.settings() | {"vllm": version()}
        if arguments.max_audio_seconds is not None:
            settings["max_audio_seconds"] = arguments.max_audio_seconds
        if batch_invariant():
            settings["batch_invariant"] = True
        self.identity = EngineIdentity(
            engine="vllm", model=checkpoint.name, revision=checkpoint.revision, settings=settings, public=PUBLIC
        )
        spread = arguments.engine
        self.gpus = int(spread.get("tensor_parallel_size", 1)) * int(spread.get("pipeline_parallel_size", 1))
        self.able = frozenset({"turns"})
        self._llm: Any = None
        self._noise: Noise | None = None
        self._arrived: list[Any] = []
        self._adapters = adapters(arguments.engine)
        self._worn: str | None = None

    @classmethod
    def from_args(cls, arguments: Mapping[str, Any]) -> VLLMEngine:
        """Build from `lighteval vllm` or EngineArgs arguments; nothing heavy is imported.

        Raises UsageError when vLLM is not installed, an argument has no meaning here or the model cannot be found.
        """
        refuse_missing_vllm()
        parsed = VLLMArguments.parse(arguments)
        engine = parsed.engine
        return cls(
            parsed,
            open_checkpoint(engine["model"], revision=engine.get("revision"), cache=engine.get("download_dir")),
        )

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for requests that this model or vLLM cannot answer; weights are not loaded."""
        refuse_missing_package(self.checkpoint)
        refuse_wrong_adapters(self._adapters, self.checkpoint, requests)
        config = configuration(self.arguments.engine, self.checkpoint)
        limits = media_limits(config, self.checkpoint)
        self.modalities = frozenset({"text", *limits})
        refuse_missing_modality(self.checkpoint, self.modalities, requests)
        refuse_too_many_media(self.checkpoint, limits, requests)
        if requests:
            from vllm.tokenizers import cached_tokenizer_from_config

            tokenizer = cached_tokenizer_from_config(config.model_config)
            limit = int(config.model_config.max_model_len)
            refuse_dropped(
                self.checkpoint,
                requests,
                lambda messages: tokenizer.apply_chat_template(
                    messages,
                    tokenize=False,
                    chat_template=self.arguments.chat_template,
                    **self.arguments.chat_template_kwargs,
                ),
            )
            refuse_short_context(
                requests, limit, tokens=lambda text: len(tokenizer.encode(text)), answer=self._max_tokens
            )
        most = max((request.sampling.logprobs for request in requests), default=0)
        if 0 <= config.model_config.max_logprobs < most:
            raise UsageError(
                f"a task asks for {most} logprobs per token, vLLM gives {config.model_config.max_logprobs}; "
                f"add max_logprobs={most} to the model arguments"
            )
        self._check_schemas(requests)

    def _check_schemas(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for a schema that the grammar backend cannot compile."""
        schemas = {json.dumps(request.schema) for request in requests if request.schema is not None}
        if not schemas or self.arguments.engine["structured_outputs_config"]["backend"] != "guidance":
            return
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams
        from vllm.v1.structured_output.backend_guidance import validate_guidance_grammar

        for schema in schemas:
            try:
                params = SamplingParams(structured_outputs=StructuredOutputsParams(json=json.loads(schema)))
                validate_guidance_grammar(params, tokenizer=None)
            except Exception as error:
                raise UsageError(f"vLLM's guidance backend refuses a schema: {one_line(error)}") from error

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield each response as soon as it is finished; at most 4 × max_num_seqs requests are taken at a time.

        Raises UsageError when the model cannot be loaded, RunError when vLLM keeps dying without an answer.
        """
        sent: dict[str, _Sent] = {}
        struck: set[str] = set()
        fruitless = 0
        with closing(MediaAhead(requests)) as ahead:
            try:
                while True:
                    try:
                        yield from self._fill(ahead, sent, struck)
                        if not sent:
                            return
                        outputs = self._step()
                    except _Dead as death:
                        fruitless += 1
                        if fruitless > _DEATHS:
                            raise RunError(
                                f"{self.checkpoint.name} died {fruitless} times in a row: {death}"
                            ) from death
                        self.close()
                        lost = [request for request, _ in sent.values()]
                        sent.clear()
                        ahead.put_back(request for request in lost if request.key not in struck)
                        for request in lost:
                            if request.key in struck:
                                yield failed(request, f"vLLM died twice with this request: {death}")
                        struck.update(request.key for request in lost)
                        continue
                    for output in outputs:
                        if output.finished:
                            fruitless = 0
                            yield self._response(sent.pop(output.request_id), output)
            finally:
                if sent and self._llm is not None:
                    self._llm.llm_engine.abort_request(list(sent))

    def _fill(self, ahead: MediaAhead, sent: dict[str, _Sent], struck: Collection[str]) -> Iterator[Response]:
        """Pass requests to vLLM until the window is full; yield the failures of those that cannot be sent.

        To change between writing prompts and computing costs a processor its caches, so texts go in by twice the number
        that vLLM computes at a time. Media take memory while they wait, and threads make them ready meanwhile: their
        window is half as large and filled by small portions, and they are waited for only as long as vLLM has too few.
        Few of those that were inside when vLLM died (`struck`) go in together: with the next death they all fail.
        """
        computed = self._computed()
        ahead.take(1)
        if ahead.first is None:
            return
        window, portion = _room(ahead.first, computed, struck)
        if sent and window - len(sent) < portion:
            return
        while ahead.first is not None and len(sent) < _room(ahead.first, computed, struck)[0]:
            if len(sent) >= computed and not ahead.ready():
                return
            failure = self._send(ahead.first, ahead.media, sent)
            ahead.drop()
            if failure is not None:
                yield failure
            ahead.take(window - len(sent))

    def close(self) -> None:
        """Stop vLLM and free its memory; the next request starts it again."""
        llm, noise = self._llm, self._noise
        self._llm = self._noise = None
        if llm is not None:
            unload(llm)
        if noise is not None:
            noise.close()

    def _computed(self) -> int:
        """Return the number of requests that vLLM computes at a time; loads the model if necessary."""
        if self._llm is None:
            self._llm, self._noise = load(self.arguments.engine, self.checkpoint)
            self._watch()
        return int(self._llm.llm_engine.vllm_config.scheduler_config.max_num_seqs)

    def _watch(self) -> None:
        """Record the media features that vLLM sends to its core process, and detect the death of that process.

        For each request, the features, their positions and the path of the chosen adapter are recorded. vLLM waits for
        ever for a core that was killed (by the system when memory runs out): its monitor detects the death but wakes
        no waiting caller.
        """
        core = self._llm.llm_engine.engine_core
        hand_over = core.add_request

        def add_request(request: Any) -> Any:
            self._arrived = list(request.mm_features or [])
            self._worn = request.lora_request.lora_path if request.lora_request is not None else None
            return hand_over(request)

        core.add_request = add_request
        if not hasattr(core, "outputs_queue"):
            return  # the core is in this process
        resources, wait = core.resources, core.outputs_queue.get

        def get() -> Any:
            while True:
                try:
                    return wait(timeout=_PATIENCE_S)
                except Empty:
                    if resources.engine_dead:
                        raise RuntimeError("the engine process was killed (out of memory?)") from None

        core.outputs_queue.get = get

    def _send(
        self, request: Request, media: Callable[[], Sequence[Mapping[str, Any]]], sent: dict[str, _Sent]
    ) -> Response | None:
        """Pass the request to vLLM with its `media`; return a failed response if they or it cannot be used."""
        from vllm.v1.engine.exceptions import EngineDeadError

        arguments = self.arguments
        self._arrived, self._worn = [], None
        try:
            messages = chat_of(request, media(), arguments.system_prompt)
            if reason := too_much_audio(request, messages, self.longest_audio_s, self.checkpoint.name):
                return failed(request, reason)
            (name,) = self._llm.enqueue_chat(
                [messages],
                self._sampling_params(request),
                use_tqdm=False,
                chat_template=arguments.chat_template,
                chat_template_kwargs=dict(arguments.chat_template_kwargs) or None,
            )
        except EngineDeadError as error:
            raise self._dead(error) from error
        except Exception as error:  # any failure of this one request
            return failed(request, self._explained(error))
        # vLLM returns its internal name, `74-9005af0c`; its outputs have the external one, `74`.
        tokens = [int(feature.mm_position.get_num_embeds()) for feature in self._arrived]
        sent[name.rpartition("-")[0]] = request, tokens
        self._require_adapter(request)
        return None

    def _require_adapter(self, request: Request) -> None:
        """Raise RunError unless vLLM chose the adapter of the request's media; without it vLLM would say nothing."""
        for kind in {part.kind for part in request.media} & set(self._adapters):
            located = self._llm.llm_engine.vllm_config.lora_config.default_mm_loras[kind]
            if self._worn != located:
                chosen = "no adapter" if self._worn is None else "another adapter"
                raise RunError(
                    f"{self.checkpoint.name}: vLLM chose {chosen} for the {kind} of {request.sample_id} instead of "
                    f"{self._adapters[kind]}, so another model would answer; install the vLLM that "
                    "equivox names (0.32)"
                )

    def _step(self) -> list[Any]:
        try:
            return list(self._llm.llm_engine.step())
        except Exception as error:  # after any error the requests inside are lost
            raise self._dead(error) from error

    def _dead(self, error: Exception) -> _Dead:
        reason = self._noise.reason() if self._noise is not None else None
        return _Dead(one_line(reason or f"{type(error).__name__}: {error}"))

    def _sampling_params(self, request: Request) -> Any:
        """Return new parameters for each request, because vLLM changes them; `skip_clone` says that it may."""
        from vllm.sampling_params import SamplingParams, StructuredOutputsParams

        sampling = request.sampling
        given = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "frequency_penalty": sampling.frequency_penalty,
            "max_tokens": sampling.max_new_tokens,
            "stop": list(sampling.stop) or None,
            "logprobs": sampling.logprobs or None,
            "seed": request.seed,
            "skip_clone": True,
        }
        if request.schema is not None:
            given["structured_outputs"] = StructuredOutputsParams(json=dict(request.schema))
        # Lists among the arguments are copied: without a clone vLLM would keep them.
        own = {
            name: list(value) if isinstance(value, list) else value for name, value in self.arguments.sampling.items()
        }
        return SamplingParams(**(given | own))

    def _max_tokens(self, request: Request) -> int:
        return int(self.arguments.sampling.get("max_tokens", request.sampling.max_new_tokens))

    def _explained(self, error: Exception) -> str:
        reason = one_line(error)
        if any(words in reason for words in _TOO_LONG):
            limit = self._llm.llm_engine.model_config.max_model_len
            return f"the prompt is longer than max_model_length={limit}; raise it ({one_line(error, 120)})"
        return f"{type(error).__name__}: {reason}"

    def _response(self, entry: _Sent, output: Any) -> Response:
        (request, media_tokens), completion = entry, output.outputs[0]
        tokens, reason = len(completion.token_ids), completion.finish_reason
        if reason not in ("stop", "length"):
            return failed(request, f"vLLM gave up on it ({reason})")
        if reason == "length" and tokens < self._max_tokens(request):
            limit = self._llm.llm_engine.model_config.max_model_len
            return failed(request, f"cut off after {tokens} tokens by max_model_length={limit}; raise it")
        text, thinking = split_reasoning(completion.text, request.sampling.reasoning)
        return Response(
            key=request.key,
            text=text,
            thinking=thinking,
            finish_reason=reason,
            prompt_tokens=len(output.prompt_token_ids or ()),
            completion_tokens=tokens,
            media_items=sum(map(bool, media_tokens)),
            media_tokens=sum(media_tokens),
            logprobs=_logprobs(completion) if request.sampling.logprobs else None,
        )


def _room(request: Request, computed: int, struck: Collection[str]) -> tuple[int, int]:
    """Return how many requests are inside at the most when this one is, and how many go in together."""
    if request.key in struck:
        return max(1, computed // 16), 0
    return (2 * computed, computed // 4) if request.media else (4 * computed, 2 * computed)


class _Dead(Exception):
    """The engine died; the message gives the cause."""


def _logprobs(completion: Any) -> str:
    """Return OpenAI's format: for each token its text, its log-probability, and the likeliest alternatives."""
    entries = []
    for token, candidates in zip(completion.token_ids, completion.logprobs, strict=True):
        ranked = sorted(candidates.values(), key=lambda candidate: -candidate.logprob)
        entries.append(
            _entry(candidates[token]) | {"top_logprobs": [_entry(candidate) for candidate in ranked]},
        )
    return json.dumps(entries, ensure_ascii=False)


def _entry(candidate: Any) -> dict[str, Any]:
    return {"token": candidate.decoded_token, "logprob": candidate.logprob}
