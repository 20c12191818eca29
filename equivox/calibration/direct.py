"""Ask a calibration model directly: from the features to its own probabilities, without any engine.

This is the reference that an engine is held against. Clips are decoded by soundfile, features and embeddings are those
of transformers, prompts come from the checkpoint's chat template, and answers are drawn from the softmax itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.calibration.bodies import MARKS, decoded, joined_positions, language_model, message
from equivox.calibration.student import longer
from equivox.core.lazy import torch
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.engines.checkpoint import open_checkpoint
from equivox.engines.messages import SAMPLING_RATE
from equivox.engines.transformers_loading import load

ENGINE = "direct"
_ROWS, _CLIPS = 192, 16
"""How many answers are written, and how many clips are heard, at a time."""


Prompt = tuple[Any, Any]
"""A prompt as the language model gets it: an embedding per token, media among them, of the shape (tokens, width), and
their positions: (1, tokens), or (3, tokens) where images have places."""


class DirectEngine(Engine):
    """The model alone, without an engine around it: every answer is drawn from its own probabilities."""

    modalities = frozenset({"text", *MARKS})

    def __init__(self, folder: Path) -> None:
        self._checkpoint = open_checkpoint(str(folder))
        self.identity = EngineIdentity(
            engine=ENGINE, model=self._checkpoint.name, revision=self._checkpoint.revision, settings={}
        )
        self._loaded: Any = None
        self._embedded: dict[tuple[str, tuple[str, ...]], Prompt] = {}

    def close(self) -> None:
        """Free the model's memory; the next request loads it again."""
        self._loaded = None
        self._embedded.clear()

    @property
    def model(self) -> Any:
        """The model, in single precision on the processor."""
        if self._loaded is None:
            self._loaded = load(self._checkpoint, {"dtype": "float32", "device": "cpu"})
        return self._loaded.model

    @property
    def _tokenizer(self) -> Any:
        return self._loaded.tokenizer

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield an answer to each request, drawn at temperature 1; a request's seed does not matter alone."""
        asked = list(requests)
        for start in range(0, len(asked), _ROWS):
            batch = asked[start : start + _ROWS]
            draw = torch.Generator().manual_seed(batch[0].seed)
            embedded = self.embedded(batch)
            for request, (rows, _), (tokens, ended) in zip(
                batch, embedded, self._drawn(batch, embedded, draw), strict=True
            ):
                yield Response(
                    key=request.key,
                    text=self._tokenizer.decode(tokens, skip_special_tokens=True),
                    finish_reason="stop" if ended else "length",
                    prompt_tokens=len(rows),
                    completion_tokens=len(tokens) + ended,
                    media_items=len(request.media),
                    media_tokens=self.media_tokens(request),
                )

    def embedded(self, requests: Sequence[Request]) -> list[Prompt]:
        """Return the prompt of each request as the language model gets it."""
        model = self.model
        new = {_asked(request): request for request in requests if _asked(request) not in self._embedded}
        for kind in (True, False):
            asked = [request for request in new.values() if bool(request.media) is kind]
            for start in range(0, len(asked), _CLIPS):
                batch = asked[start : start + _CLIPS]
                for request, prompt in zip(batch, self._embed(model, batch), strict=True):
                    self._embedded[_asked(request)] = prompt
        return [self._embedded[_asked(request)] for request in requests]

    def _embed(self, model: Any, batch: Sequence[Request]) -> list[Prompt]:
        """Let transformers make the embeddings of prompts, and take them where its language model gets them."""
        processor = self._loaded.processor
        renderer = processor if getattr(processor, "chat_template", None) else self._tokenizer
        texts = [
            renderer.apply_chat_template(message(request), add_generation_prompt=True, tokenize=False)
            for request in batch
        ]
        options: dict[str, Any] = {"return_tensors": "pt", "padding": True, "add_special_tokens": False}
        parts = [part for request in batch for part in request.media]
        media = [decoded(part) for part in parts]
        if not media:
            inputs = self._tokenizer(text=texts, **options)
        elif parts[0].kind == "image":
            inputs = processor(text=texts, images=media, **options)
        else:
            inputs = processor(text=texts, audio=media, sampling_rate=SAMPLING_RATE, **options)
        taken: list[Any] = []
        places: list[Any] = []

        def take(_: Any, __: Any, given: Mapping[str, Any]) -> None:
            found = given.get("inputs_embeds")
            taken.append(model.get_input_embeddings()(given["input_ids"]) if found is None else found)
            places.append(given.get("position_ids"))

        hook = language_model(model).register_forward_pre_hook(take, with_kwargs=True)
        try:
            with torch.inference_mode():
                model(**inputs, use_cache=False)
        finally:
            hook.remove()
        kept = inputs["attention_mask"].bool()
        rows = [own[mask] for own, mask in zip(taken[0], kept, strict=True)]
        if places[0] is None or places[0].ndim < 3:
            return [(own, torch.arange(len(own))[None]) for own in rows]
        return [(own, places[0][:, row, kept[row]]) for row, own in enumerate(rows)]

    def media_tokens(self, request: Request) -> int:
        """Return how many tokens the media of a request take in its prompt."""
        if not request.media:
            return 0
        whole = self.prompt_tokens(request)
        text = self._tokenizer.apply_chat_template(message(request), add_generation_prompt=True, tokenize=False)
        written = self._tokenizer.encode(text, add_special_tokens=False)
        marked = sum(text.count(mark) for mark in MARKS.values())
        return whole - len(written) + int(marked)

    def prompt_tokens(self, request: Request) -> int:
        """Return how many tokens a request's prompt has, media included."""
        ((rows, _),) = self.embedded([request])
        return len(rows)

    def _drawn(self, batch: Sequence[Request], prompts: Sequence[Prompt], draw: Any) -> list[tuple[list[int], bool]]:
        """Draw an answer to each prompt, token by token; returns its tokens without the end, and whether it ended."""
        model, end = self.model, self._tokenizer.eos_token_id
        padded = torch.nn.utils.rnn.pad_sequence
        limit = max(request.sampling.max_new_tokens for request in batch)
        # Padded on the left, so that all answers begin at one place.
        rows = padded([own.flip(0) for own, _ in prompts], batch_first=True).flip(1)
        mask = padded([torch.ones(len(own)) for own, _ in prompts], batch_first=True).flip(1).long()
        places = joined_positions([positions for _, positions in prompts], left=True)
        written: list[list[int]] = [[] for _ in batch]
        going = [True] * len(batch)
        past = None
        with torch.inference_mode():
            for _ in range(limit):
                out = language_model(model)(
                    inputs_embeds=rows, attention_mask=mask, position_ids=places, past_key_values=past, use_cache=True
                )
                past = out.past_key_values
                chances = model.lm_head(out.last_hidden_state[:, -1]).softmax(-1)
                tokens = torch.multinomial(chances, 1, generator=draw)
                for row, token in enumerate(tokens[:, 0].tolist()):
                    if going[row] and token != end:
                        written[row].append(token)
                    going[row] = going[row] and token != end
                if not any(going):
                    break
                rows = model.get_input_embeddings()(tokens)
                mask = torch.cat([mask, torch.ones(len(batch), 1, dtype=mask.dtype)], dim=1)
                # A prompt ends with text, whose positions in time, height and width are one.
                places = places[..., -1:] + 1
        return [(tokens, not still) for tokens, still in zip(written, going, strict=True)]

    def log_likelihoods(self, answered: Sequence[tuple[Request, str, bool]]) -> list[float]:
        """Return the model's own log-probability of each answer to its request; the third entry: it ended by itself.

        The text is split into tokens again, in the way that the model was taught.
        """
        found: list[float] = []
        for start in range(0, len(answered), _ROWS):
            found += self._log_likelihoods(answered[start : start + _ROWS])
        return found

    def _log_likelihoods(self, answered: Sequence[tuple[Request, str, bool]]) -> list[float]:
        model = self.model
        prompts = self.embedded([request for request, _, _ in answered])
        end = [self._tokenizer.eos_token_id]
        answers = [
            torch.tensor(self._tokenizer.encode(text, add_special_tokens=False) + (end if ended else []))
            for _, text, ended in answered
        ]
        with torch.inference_mode():
            words = model.get_input_embeddings()
            rows = torch.nn.utils.rnn.pad_sequence(
                [torch.cat([own, words(answer)]) for (own, _), answer in zip(prompts, answers, strict=True)], True
            )
            places = joined_positions(
                [longer(positions, len(answer)) for (_, positions), answer in zip(prompts, answers, strict=True)]
            )
            hidden = language_model(model)(inputs_embeds=rows, position_ids=places, use_cache=False).last_hidden_state
            found = []
            for states, (own, _), answer in zip(hidden, prompts, answers, strict=True):
                said = model.lm_head(states[len(own) - 1 : len(own) + len(answer) - 1]).log_softmax(-1)
                found.append(float(said.gather(1, answer[:, None]).sum()))
        return found


def _asked(request: Request) -> tuple[str, tuple[str, ...]]:
    return request.text, tuple(part.sha256 for part in request.media)
