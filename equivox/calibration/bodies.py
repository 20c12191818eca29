"""Bodies of calibration models: tiny models of real architectures, which the student trains.

Text is read by a Qwen2; speech is heard by a Qwen2-Audio and images are seen by a Qwen2.5-VL whose language models are
the same. torch and transformers are imported when a body is made.
"""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.core.lazy import soundfile, torch
from equivox.core.media import audio_file
from equivox.core.requests import MediaPart, Request
from equivox.engines.messages import SAMPLING_RATE

WIDTH, LAYERS, HEADS, MELS = 64, 2, 2, 128
CONTEXT = 4096
VOCABULARY = 1024
END, PAD = "<|im_end|>", "<|endoftext|>"
MARKS: Mapping[str, str] = {"audio": "<|AUDIO|>", "image": "<|image_pad|>"}
"""The token that stands for a medium in a prompt; processors repeat it once for each token of the medium."""
_POSITIONS = 1500
"""Positions of the audio encoder that the architecture publishes: 30 s."""
_PIXELS = {"min_pixels": 56 * 56, "max_pixels": 224 * 224}
_PATCH = 14
# Names in transformers → names in published checkpoints, which vLLM expects.
_PUBLISHED = {
    "model.audio_tower.": "audio_tower.",
    "model.multi_modal_projector.": "multi_modal_projector.",
    "model.language_model.": "language_model.model.",
    "lm_head.": "language_model.lm_head.",
}


def decoded(part: MediaPart) -> Any:
    """Return a recording as mono samples at 16 kHz, or an image in RGB, decoded by soundfile, scipy and Pillow alone.

    Engines decode by `equivox.core.media`; a fault there must not reach the reference, too.
    """
    if part.kind == "image":
        from PIL import Image

        with Image.open(io.BytesIO(part.load())) as image:
            return image.convert("RGB")
    from scipy.signal import resample_poly

    with audio_file(part.load()) as descriptor:
        samples, rate = soundfile.read(descriptor, dtype="float32", always_2d=True, closefd=False)
    mono = samples.mean(axis=1)
    return mono if rate == SAMPLING_RATE else resample_poly(mono, SAMPLING_RATE, rate).astype("float32")


def message(request: Request) -> list[dict[str, Any]]:
    """Return `request` as a chat for a chat template: media first, then the text."""
    content: list[dict[str, Any]] = [{"type": part.kind} for part in request.media]
    return [{"role": "user", "content": [*content, {"type": "text", "text": request.text}]}]


def language_model(model: Any) -> Any:
    """Return the part of a model that gets embeddings and returns hidden states."""
    return getattr(model.model, "language_model", model.model)


def kind_of(requests: Sequence[Request]) -> str | None:
    """Return the kind of the media of some requests; None if they have none."""
    return next((part.kind for request in requests for part in request.media), None)


class _Body(ABC):
    """A tiny model with its tokenizer; `kind` is the kind of media that it takes, None for text alone."""

    kind: str | None = None
    marks: tuple[str, ...] = ()
    """Further special tokens."""
    medium = ""
    """The tokens that the chat template writes for a medium."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.tokenizer = _tokenizer(texts, self.marks, self.medium, self.kind)
        self.model = self._made()

    @abstractmethod
    def _made(self) -> Any:
        """Return the model with random weights."""

    @property
    def senses(self) -> list[Any]:
        """The modules that turn media into what the language model gets."""
        return []

    def take(self, parts: Sequence[MediaPart]) -> None:
        """Compute the features of media, which are then known by their hashes."""
        raise NotImplementedError

    def perceive(self, media: Sequence[str], noise: float = 0.0) -> list[Any]:
        """Return what the language model gets of each medium: a row per token. `noise` is added to the features."""
        raise NotImplementedError

    def positions(self, prompt: Sequence[int], media: Sequence[str]) -> Any:
        """Return the positions of a prompt's tokens, of shape (1, tokens) or (3, tokens)."""
        return torch.arange(len(prompt))[None]

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint that transformers and vLLM load."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


class _TextBody(_Body):
    """A Qwen2."""

    def _made(self) -> Any:
        from transformers import Qwen2Config, Qwen2ForCausalLM

        return Qwen2ForCausalLM(Qwen2Config(**_decoder(self.tokenizer)))


class _SpeechBody(_Body):
    """A Qwen2-Audio."""

    kind = "audio"
    marks = (MARKS["audio"], "<|audio_bos|>", "<|audio_eos|>")
    medium = "<|audio_bos|><|AUDIO|><|audio_eos|>"

    def _made(self) -> Any:
        from transformers import (
            Qwen2AudioConfig,
            Qwen2AudioEncoderConfig,
            Qwen2AudioForConditionalGeneration,
            Qwen2Config,
            WhisperFeatureExtractor,
        )

        self._extractor = WhisperFeatureExtractor(feature_size=MELS)
        self._clips: dict[str, tuple[Any, int]] = {}  # features, mel frames
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
                text_config=Qwen2Config(**_decoder(self.tokenizer)).to_dict(),
                audio_token_index=self.tokenizer.convert_tokens_to_ids(MARKS["audio"]),
            )
        )

    @property
    def senses(self) -> list[Any]:
        """The encoder and the projector."""
        return [self.model.model.audio_tower, self.model.model.multi_modal_projector]

    def take(self, parts: Sequence[MediaPart]) -> None:
        """Compute the features of recordings, no longer than the longest one needs."""
        samples = {part.sha256: decoded(part) for part in parts}
        longest = max(map(len, samples.values()))
        for sha256, own in samples.items():
            made = self._extractor(
                own,
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
        tower = self.model.model.audio_tower
        half = tower.config.d_model // 2
        rates = torch.exp(-math.log(10_000) / (half - 1) * torch.arange(half))
        angle = torch.arange(length)[:, None] * rates[None]
        tower.config.max_source_positions = tower.max_source_positions = length
        tower.embed_positions = torch.nn.Embedding.from_pretrained(
            torch.cat([angle.sin(), angle.cos()], 1), freeze=True
        )

    def perceive(self, media: Sequence[str], noise: float = 0.0) -> list[Any]:
        """Return what the language model gets of each recording."""
        features = torch.stack([self._clips[clip][0][:, : 2 * self._positions] for clip in media])
        lengths = torch.tensor([(self._clips[clip][1] - 1) // 2 + 1 for clip in media])
        beyond = torch.arange(self._positions)[None] >= lengths[:, None]
        mask = torch.zeros(beyond.shape).masked_fill(beyond, float("-inf"))[:, None, None]
        mask = mask.expand(-1, 1, self._positions, -1)
        inner = self.model.model
        if noise:
            features = features + noise * torch.randn_like(features)
        made = inner.multi_modal_projector(inner.audio_tower(features, attention_mask=mask).last_hidden_state)
        return [row[: (int(length) - 2) // 2 + 1] for row, length in zip(made, lengths, strict=True)]

    def save(self, folder: Path) -> None:
        """Write the model with the names of published checkpoints and with all positions of its encoder."""
        from safetensors.torch import save_file
        from transformers import Qwen2AudioProcessor

        self._set_positions(_POSITIONS)
        self.model.save_pretrained(folder)
        template = self.tokenizer.chat_template
        Qwen2AudioProcessor(self._extractor, self.tokenizer, chat_template=template).save_pretrained(folder)
        weights = {_published(name): value.contiguous() for name, value in self.model.state_dict().items()}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        self._set_positions(self._positions)


class _ImageBody(_Body):
    """A Qwen2.5-VL."""

    kind = "image"
    marks = (MARKS["image"], "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
    medium = "<|vision_start|><|image_pad|><|vision_end|>"

    def _made(self) -> Any:
        from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessor

        number = self.tokenizer.convert_tokens_to_ids
        self._processor = Qwen2VLImageProcessor(patch_size=_PATCH, temporal_patch_size=2, merge_size=2, **_PIXELS)
        self._images: dict[str, tuple[Any, Any]] = {}  # pixels of all patches, grid
        # A quarter of a head's angles for time, the others in halves for height and width, as published.
        angles = WIDTH // HEADS // 2
        sections = [angles // 4, (angles - angles // 4) // 2, (angles - angles // 4) // 2]
        rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
        return Qwen2_5_VLForConditionalGeneration(
            Qwen2_5_VLConfig(
                vision_config={
                    "depth": LAYERS,
                    "hidden_size": WIDTH,
                    "intermediate_size": 2 * WIDTH,
                    "num_heads": HEADS,
                    "patch_size": _PATCH,
                    "spatial_merge_size": 2,
                    "temporal_patch_size": 2,
                    "window_size": 8 * _PATCH,
                    "out_hidden_size": WIDTH,
                    "fullatt_block_indexes": [LAYERS - 1],
                },
                text_config=_decoder(self.tokenizer) | {"rope_parameters": rope},
                image_token_id=number(MARKS["image"]),
                video_token_id=number("<|video_pad|>"),
                vision_start_token_id=number("<|vision_start|>"),
                vision_end_token_id=number("<|vision_end|>"),
            )
        )

    @property
    def senses(self) -> list[Any]:
        """The encoder, with its merger."""
        return [self.model.model.visual]

    def take(self, parts: Sequence[MediaPart]) -> None:
        """Compute the patches of images."""
        for part in parts:
            made = self._processor(images=[decoded(part)], return_tensors="pt")
            self._images[part.sha256] = (made["pixel_values"], made["image_grid_thw"][0])

    def perceive(self, media: Sequence[str], noise: float = 0.0) -> list[Any]:
        """Return what the language model gets of each image."""
        pixels = torch.cat([self._images[image][0] for image in media])
        grids = torch.stack([self._images[image][1] for image in media])
        if noise:
            pixels = pixels + noise * torch.randn_like(pixels)
        return list(self.model.model.get_image_features(pixels, grids, return_dict=True).pooler_output)

    def positions(self, prompt: Sequence[int], media: Sequence[str]) -> Any:
        """Return the positions in time, height and width, as the architecture counts them."""
        if not media:
            return super().positions(prompt, media)
        ids = torch.tensor([list(prompt)])
        grids = torch.stack([self._images[image][1] for image in media])
        marked = (ids == self.tokenizer.convert_tokens_to_ids(MARKS["image"])).int()
        found, _ = self.model.model.get_rope_index(ids, mm_token_type_ids=marked, image_grid_thw=grids)
        return found[:, 0]

    def save(self, folder: Path) -> None:
        """Write the model with its image processor."""
        super().save(folder)
        self._processor.save_pretrained(folder)


BODIES: Mapping[str | None, type[_Body]] = {body.kind: body for body in (_TextBody, _SpeechBody, _ImageBody)}


def joined_positions(rows: Sequence[Any], *, left: bool = False) -> Any:
    """Return positions of several rows as one tensor: (rows, tokens), or (3, rows, tokens) where a row has three.

    Rows are padded by zeros on the right, or on the `left`.
    """
    longest = max(row.shape[1] for row in rows)
    three = max(len(row) for row in rows)
    padded = []
    for row in rows:
        room = longest - row.shape[1]
        padded.append(torch.nn.functional.pad(row.expand(three, -1), (room, 0) if left else (0, room)))
    joined = torch.stack(padded, dim=1)
    return joined if three > 1 else joined[0]


def _published(name: str) -> str:
    prefix = next(prefix for prefix in _PUBLISHED if name.startswith(prefix))
    return _PUBLISHED[prefix] + name.removeprefix(prefix)


def _chat_template(medium: str, kind: str | None) -> str:
    shown = f"{{% elif c.type in ('{kind}', 'input_{kind}', '{kind}_url') %}}{medium}" if kind else ""
    return (
        "{% for m in messages %}<|im_start|>{{m.role}}\n{% if m.content is string %}{{m.content}}{% else %}"
        "{% for c in m.content %}{% if c.type=='text' %}{{c.text}}" + shown + "{% endif %}{% endfor %}{% endif %}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def _tokenizer(texts: Sequence[str], marks: Sequence[str], medium: str, kind: str | None) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, "<|im_start|>", END, *marks],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    words = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=PAD, bos_token=None)
    words.chat_template = _chat_template(medium, kind)
    return words


def _decoder(tokenizer: Any) -> dict[str, Any]:
    """Return the configuration of the language model."""
    return {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "vocab_size": len(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
        "tie_word_embeddings": False,
    }
