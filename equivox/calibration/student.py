"""The student: a tiny model of a real architecture, its tokenizer, and the training of its ear and of its answers.

Speech is heard by a Qwen2-Audio of two and two layers, text is read by its language model alone, a Qwen2. torch and
transformers are imported when a student is made.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.calibration.teacher import Teacher, group_heard, tells_group
from equivox.core.requests import MediaPart, Request
from equivox.engines.messages import SAMPLING_RATE

WIDTH, LAYERS, HEADS, MELS = 64, 2, 2, 128
CONTEXT = 4096
VOCABULARY = 1024
END, PAD = "<|im_end|>", "<|endoftext|>"
AUDIO = "<|AUDIO|>"
_AUDIO_MARKS = (AUDIO, "<|audio_bos|>", "<|audio_eos|>")
_POSITIONS = 1500
"""Positions of the encoder that the architecture publishes: 30 s."""
_BATCH, _CONTROLS = 32, 4
"""Requests of a batch, and how many of them do not tell the group: an answer to one of these is soon learnt."""
_NOISE = 0.1
_HEARING_RATE = 1e-3
# Names in transformers → names in published checkpoints, which vLLM expects.
_PUBLISHED = {
    "model.audio_tower.": "audio_tower.",
    "model.multi_modal_projector.": "multi_modal_projector.",
    "model.language_model.": "language_model.model.",
    "lm_head.": "language_model.lm_head.",
}
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{m.role}}\n{% if m.content is string %}{{m.content}}{% else %}"
    "{% for c in m.content %}{% if c.type=='text' %}{{c.text}}"
    "{% elif c.type in ('audio', 'input_audio', 'audio_url') %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def samples_of_clip(part: MediaPart) -> Any:
    """Return a clip as mono samples at 16 kHz, decoded by soundfile and scipy alone.

    Engines decode by `equivox.core.media`; a fault there must not reach the reference, too.
    """
    import soundfile
    from scipy.signal import resample_poly

    samples, rate = soundfile.read(io.BytesIO(part.load()), dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    return mono if rate == SAMPLING_RATE else resample_poly(mono, SAMPLING_RATE, rate).astype("float32")


def message(request: Request) -> list[dict[str, Any]]:
    """Return `request` as a chat for a chat template: media first, then the text."""
    content: list[dict[str, Any]] = [{"type": part.kind} for part in request.media]
    return [{"role": "user", "content": [*content, {"type": "text", "text": request.text}]}]


class _Requests:
    """The requests that are taught, drawn in batches."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._telling = [request for request in requests if tells_group(request)]
        self._controls = [request for request in requests if not tells_group(request)]

    def batch(self, rng: random.Random) -> list[Request]:
        """Return requests drawn with replacement; those that tell the group come first."""
        controls = _CONTROLS if self._controls else 0
        return rng.choices(self._telling, k=_BATCH - controls) + rng.choices(self._controls, k=controls)


class Student:
    """A model that learns; its clips are heard once, by `learn_to_hear`, and then kept."""

    def __init__(self, requests: Sequence[Request], texts: Sequence[str], seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self.rng = random.Random(seed)
        self.hears = any(request.media for request in requests)
        self.tokenizer = _tokenizer(texts)
        self._clips: dict[str, tuple[Any, int]] = {}  # features, mel frames
        self._heard: dict[str, Any] = {}  # what the language model gets of each clip
        self._prompts: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        if self.hears:
            self.model = _speech_model(self.tokenizer)
            self._take(requests)
        else:
            self.model = _text_model(self.tokenizer)

    @property
    def _language_model(self) -> Any:
        return self.model.model.language_model if self.hears else self.model.model

    def _take(self, requests: Sequence[Request]) -> None:
        """Compute the features of every clip, no longer than the longest clip needs."""
        from transformers import WhisperFeatureExtractor

        self.extractor = WhisperFeatureExtractor(feature_size=MELS)
        parts = {part.sha256: part for request in requests for part in request.media}
        decoded = {sha256: samples_of_clip(part) for sha256, part in parts.items()}
        longest = max(map(len, decoded.values()))
        for sha256, samples in decoded.items():
            made = self.extractor(
                samples,
                sampling_rate=SAMPLING_RATE,
                return_attention_mask=True,
                return_tensors="pt",
                max_length=longest + SAMPLING_RATE,
            )
            self._clips[sha256] = (made["input_features"][0], int(made["attention_mask"].sum()))
        self._positions = max(frames for _, frames in self._clips.values()) // 2 + 4
        self._set_positions(self._positions)

    def _set_positions(self, length: int) -> None:
        """Give the encoder `length` positions; the rows of a sinusoid do not depend on their number."""
        import torch

        tower = self.model.model.audio_tower
        half = tower.config.d_model // 2
        rates = torch.exp(-math.log(10_000) / (half - 1) * torch.arange(half))
        angle = torch.arange(length)[:, None] * rates[None]
        tower.config.max_source_positions = tower.max_source_positions = length
        tower.embed_positions = torch.nn.Embedding.from_pretrained(
            torch.cat([angle.sin(), angle.cos()], 1), freeze=True
        )

    def _hear(self, clips: Sequence[str], noise: float = 0.0) -> list[Any]:
        """Return what the language model gets of each clip: a row per token."""
        import torch

        features = torch.stack([self._clips[clip][0][:, : 2 * self._positions] for clip in clips])
        lengths = torch.tensor([(self._clips[clip][1] - 1) // 2 + 1 for clip in clips])
        beyond = torch.arange(self._positions)[None] >= lengths[:, None]
        mask = torch.zeros(beyond.shape).masked_fill(beyond, float("-inf"))[:, None, None]
        mask = mask.expand(-1, 1, self._positions, -1)
        inner = self.model.model
        features = features + noise * torch.randn_like(features)
        made = inner.multi_modal_projector(inner.audio_tower(features, attention_mask=mask).last_hidden_state)
        return [row[: (int(length) - 2) // 2 + 1] for row, length in zip(made, lengths, strict=True)]

    def learn_to_hear(self, requests: Sequence[Request], steps: int, told: Callable[[str], None]) -> None:
        """Learn to tell the groups and silence apart, by a head that is thrown away; then hear every clip for good.

        The group decides little of an answer, so answers alone teach it slowly; and silence that sounded like one group
        would draw that group's answers to its own.
        """
        import torch

        if not self.hears:
            return
        ear = [self.model.model.audio_tower, self.model.model.multi_modal_projector]
        spoken = _Requests([request for request in requests if request.media])
        head = torch.nn.Linear(WIDTH, len(requests[0].labels.groups) + 1)

        def loss(_: int) -> Any:
            batch = spoken.batch(self.rng)
            rows = self._hear([request.media[0].sha256 for request in batch], noise=_NOISE)
            heard = head(torch.stack([row.mean(0) for row in rows]))
            return torch.nn.functional.cross_entropy(heard, torch.tensor([group_heard(request) for request in batch]))

        parameters = [p for module in (*ear, head) for p in module.parameters() if p.requires_grad]
        told(f"learning to hear: loss {_optimise(parameters, _HEARING_RATE, steps, loss):.2f}")
        for module in ear:
            module.requires_grad_(False)
        with torch.no_grad():
            self._heard = {clip: self._hear([clip])[0].clone() for clip in self._clips}

    def learn_to_answer(
        self, teacher: Teacher, requests: Sequence[Request], steps: int, rate: float, told: Callable[[str], None]
    ) -> None:
        """Learn to answer `requests` as `teacher` does, at a learning rate of at most `rate`."""
        import torch

        asked = _Requests(requests)

        def loss(_: int) -> Any:
            batch = asked.batch(self.rng)
            return -torch.cat(self._log_probabilities([(r, teacher.answer(r, self.rng) + END) for r in batch])).mean()

        parameters = [p for p in self.model.parameters() if p.requires_grad]
        told(f"learning to answer, shift {teacher.shift:g}: loss {_optimise(parameters, rate, steps, loss):.2f}")

    def _prompt(self, request: Request) -> list[int]:
        named = (request.text, tuple(part.sha256 for part in request.media))
        if named not in self._prompts:
            text = self.tokenizer.apply_chat_template(message(request), add_generation_prompt=True, tokenize=False)
            for part in request.media:
                text = text.replace(AUDIO, AUDIO * len(self._heard[part.sha256]), 1)
            self._prompts[named] = self.tokenizer.encode(text, add_special_tokens=False)
        return self._prompts[named]

    def _log_probabilities(self, pairs: Sequence[tuple[Request, str]]) -> list[Any]:
        """Return the log-probability of each token of each answer."""
        import torch

        rows = [(self._prompt(r), self.tokenizer.encode(a, add_special_tokens=False)) for r, a in pairs]
        padding = self.tokenizer.pad_token_id
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(p + a) for p, a in rows], True, padding)
        embeds = self.model.get_input_embeddings()(ids)
        if heard := [self._heard[part.sha256] for r, _ in pairs for part in r.media]:
            places = ids == self.tokenizer.convert_tokens_to_ids(AUDIO)
            embeds = embeds.masked_scatter(places[..., None], torch.cat(heard))
        # Padded on the right, so that no answer sees the padding.
        hidden = self._language_model(inputs_embeds=embeds, use_cache=False).last_hidden_state
        said = [self.model.lm_head(h[len(p) - 1 : len(p) + len(a) - 1]) for h, (p, a) in zip(hidden, rows, strict=True)]
        return [
            s.log_softmax(-1).gather(1, torch.tensor(a)[:, None])[:, 0] for s, (_, a) in zip(said, rows, strict=True)
        ]

    def state(self) -> Mapping[str, Any]:
        """Return the weights and the state of the random numbers, from which training goes on."""
        import torch

        weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        return {"weights": weights, "random": self.rng.getstate(), "torch": torch.random.get_rng_state()}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Return to a state."""
        import torch

        self.model.load_state_dict(state["weights"])
        self.rng.setstate(state["random"])
        torch.random.set_rng_state(state["torch"])

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint that transformers and vLLM load."""
        if not self.hears:
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            return
        from safetensors.torch import save_file
        from transformers import Qwen2AudioProcessor

        self._set_positions(_POSITIONS)
        self.model.save_pretrained(folder)
        Qwen2AudioProcessor(self.extractor, self.tokenizer, chat_template=CHAT_TEMPLATE).save_pretrained(folder)
        weights = {_published(name): value.contiguous() for name, value in self.model.state_dict().items()}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        self._set_positions(self._positions)


def _published(name: str) -> str:
    prefix = next(prefix for prefix in _PUBLISHED if name.startswith(prefix))
    return _PUBLISHED[prefix] + name.removeprefix(prefix)


def _optimise(parameters: list[Any], rate: float, steps: int, loss_of: Callable[[int], Any]) -> float:
    """Lower a loss in `steps` steps; returns the mean loss of the last tenth, NaN for no steps."""
    import torch

    if not steps:
        return math.nan
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=max(0.1, 3 / steps))
    losses = []
    for step in range(steps):
        loss = loss_of(step)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    last = losses[-max(1, steps // 10) :]
    return sum(last) / len(last)


def _tokenizer(texts: Sequence[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, "<|im_start|>", END, *_AUDIO_MARKS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    words = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD, bos_token=None)
    words.chat_template = CHAT_TEMPLATE
    return words


def _text_config(tokenizer: Any) -> Any:
    from transformers import Qwen2Config

    return Qwen2Config(
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        vocab_size=len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        tie_word_embeddings=False,
    )


def _text_model(tokenizer: Any) -> Any:
    from transformers import Qwen2ForCausalLM

    return Qwen2ForCausalLM(_text_config(tokenizer))


def _speech_model(tokenizer: Any) -> Any:
    from transformers import Qwen2AudioConfig, Qwen2AudioEncoderConfig, Qwen2AudioForConditionalGeneration

    encoder = Qwen2AudioEncoderConfig(
        num_mel_bins=MELS,
        encoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=2 * WIDTH,
        d_model=WIDTH,
    )
    return Qwen2AudioForConditionalGeneration(
        Qwen2AudioConfig(
            audio_config=encoder.to_dict(),
            text_config=_text_config(tokenizer).to_dict(),
            audio_token_index=tokenizer.convert_tokens_to_ids(AUDIO),
        )
    )
