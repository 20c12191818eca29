"""What a Phi-4-multimodal checkpoint brings as its own code, written anew for a tiny one: same names, same shapes.

vLLM computes the number of tokens itself and takes from here only the features: 80 mel bins per 10 ms of speech, and
crops of 448 pixels with their masks. The features are no real mel filters; any that depend on the sound will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import BatchFeature, Phi3Config, ProcessorMixin, SequenceFeatureExtractor
from transformers.image_processing_utils import BaseImageProcessor

WINDOW, HOP, BINS, CROP, MASK = 400, 160, 80, 448, 32


class Phi4MMConfig(Phi3Config):
    model_type = "phi4mm"

    def __init__(self, embd_layer: Any = None, audio_processor: Any = None, img_processor: Any = None, **others: Any):
        super().__init__(**others)
        self.embd_layer, self.audio_processor, self.img_processor = embd_layer, audio_processor, img_processor


class Phi4MMImageProcessor(BaseImageProcessor):
    model_input_names = ("input_image_embeds", "image_sizes", "image_attention_mask")

    def __init__(self, dynamic_hd: int = 1, **others: Any) -> None:
        super().__init__(**others)
        self.dynamic_hd = dynamic_hd

    def find_closest_aspect_ratio(self, *_: Any) -> tuple[int, int]:
        return (1, 1)

    def preprocess(self, images: Any, **_: Any) -> BatchFeature:
        """Return one crop and the same as the whole image, for each image; only squares are needed here."""
        pixels = [np.asarray(Image.Image.resize(image.convert("RGB"), (CROP, CROP)), np.float32) for image in images]
        crops = [torch.from_numpy(each / 127.5 - 1).permute(2, 0, 1) for each in pixels]
        data = {
            "input_image_embeds": torch.stack([torch.stack([crop, crop]) for crop in crops]),
            "image_sizes": torch.tensor([[CROP, CROP]] * len(crops)),
            "image_attention_mask": torch.ones(len(crops), 2, MASK, MASK),
        }
        return BatchFeature(data=data)


class Phi4MMAudioFeatureExtractor(SequenceFeatureExtractor):
    model_input_names = ("input_audio_embeds", "audio_embed_sizes")

    def __init__(self, **others: Any) -> None:
        others = {"feature_size": BINS, "sampling_rate": 16_000, "padding_value": 0.0} | others
        super().__init__(**others)

    def __call__(self, audios: Any, **_: Any) -> BatchFeature:
        rows = [torch.from_numpy(self._features(np.asarray(samples))) for samples, _ in audios]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return BatchFeature(data={"input_audio_embeds": padded})

    def _features(self, samples: Any) -> Any:
        starts = range(0, len(samples) - WINDOW + 1, HOP)
        frames = np.stack([samples[start : start + WINDOW] for start in starts])
        power = np.abs(np.fft.rfft(frames, n=512, axis=1))[:, : 3 * BINS].reshape(len(frames), BINS, 3).sum(axis=2)
        return np.log1p(power).astype(np.float32)


class Phi4MMProcessor(ProcessorMixin):
    attributes = ("image_processor", "audio_processor", "tokenizer")
    image_processor_class = "AutoImageProcessor"
    audio_processor_class = "AutoFeatureExtractor"
    tokenizer_class = "AutoTokenizer"

    def __init__(self, image_processor: Any, audio_processor: Any, tokenizer: Any, **_: Any) -> None:
        self.image_processor, self.audio_processor, self.tokenizer = image_processor, audio_processor, tokenizer
        self.chat_template = tokenizer.chat_template

    def __call__(self, text: Any = None, images: Any = None, audios: Any = None, **_: Any) -> BatchFeature:
        words = self.tokenizer([text] if isinstance(text, str) else text, return_tensors="pt")
        data = {"input_ids": words["input_ids"], "image_sizes": torch.zeros(0, 2)}
        if images:
            data |= self.image_processor.preprocess(images)
        if audios:
            data |= self.audio_processor(audios)
        return BatchFeature(data=data)
