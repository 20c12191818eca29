"""Tiny checkpoints of real architectures, with random weights: `python tests/engines/real/tiny_models.py FOLDER`.

Each is under a megabyte and takes the code paths of the real model in vLLM and in transformers: chat template,
tokenizer, audio and image processors. Their vocabulary is printable ASCII, so that whatever they say is text.
"""

from __future__ import annotations

import json
import string
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

DECODER = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}
ENCODER = {"num_mel_bins": 128, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "d_model": 64}
VISION = {
    "depth": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 2,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "window_size": 112,
    "out_hidden_size": 64,
    "fullatt_block_indexes": [1],
}
# As byte-level BPE writes them: a space is Ġ, a line break Ċ.
ALPHABET = [*string.ascii_letters, *string.digits, *string.punctuation, "Ġ", "Ċ"]


def tokenizer(extra: Sequence[str] = (), **options: Any) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *extra]
    trainer = trainers.BpeTrainer(vocab_size=256, special_tokens=special, initial_alphabet=ALPHABET)
    made.train_from_iterator(["hello world story about a nurse and an engineer"] * 10, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", bos_token=None, **options
    )


def chat_template(audio: str = "", image: str = "") -> str:
    return (
        "{% for m in messages %}<|im_start|>{{m.role}}\n{% if m.content is string %}{{m.content}}{% else %}"
        "{% for c in m.content %}{% if c.type=='text' %}{{c.text}}{% elif c.type=='audio' %}" + audio + ""
        "{% elif c.type=='image' %}" + image + "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def llama(folder: Path, **changes: Any) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer()
    words.chat_template = chat_template()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
        **(DECODER | changes),
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    words.save_pretrained(folder)


def llama_long(folder: Path) -> None:
    """A context that holds an annotator's prompt in bytes."""
    llama(folder, max_position_embeddings=8192)


def llama_deep(folder: Path) -> None:
    """Layers enough for one to be patched into another."""
    llama(folder, num_hidden_layers=6)


def qwen2audio(folder: Path) -> None:
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file
    from transformers import (
        Qwen2AudioConfig,
        Qwen2AudioEncoderConfig,
        Qwen2AudioForConditionalGeneration,
        Qwen2AudioProcessor,
        Qwen2Config,
        WhisperFeatureExtractor,
    )

    words = tokenizer(["<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"])
    words.chat_template = chat_template(audio="<|audio_bos|><|AUDIO|><|audio_eos|>")
    torch.manual_seed(0)
    text = Qwen2Config(
        vocab_size=len(words), eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id, **DECODER
    )
    config = Qwen2AudioConfig(
        audio_config=Qwen2AudioEncoderConfig(**ENCODER).to_dict(),
        text_config=text.to_dict(),
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    Qwen2AudioForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=128)
    Qwen2AudioProcessor(extractor, words, chat_template=words.chat_template).save_pretrained(folder)
    # Published checkpoints use the older names, which vLLM expects.
    with safe_open(folder / "model.safetensors", "pt") as file:
        weights = {
            key.replace("language_model.model.model.", "language_model.model."): file.get_tensor(key).contiguous()
            for key in file.keys()  # noqa: SIM118 - not a dictionary
        }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def qwen25omni(folder: Path) -> None:
    """Make the thinker alone: text, audio and image through one model."""
    import torch
    from safetensors.torch import save_file
    from transformers import (
        Qwen2_5OmniConfig,
        Qwen2_5OmniThinkerForConditionalGeneration,
        WhisperFeatureExtractor,
    )

    folder.mkdir(parents=True, exist_ok=True)
    names = {
        "image_token": "<|IMAGE|>",
        "audio_token": "<|AUDIO|>",
        "video_token": "<|VIDEO|>",
        "vision_bos_token": "<|vision_bos|>",
        "vision_eos_token": "<|vision_eos|>",
        "audio_bos_token": "<|audio_bos|>",
        "audio_eos_token": "<|audio_eos|>",
    }
    words = tokenizer(sorted(names.values()), extra_special_tokens=names)
    words.chat_template = chat_template("<|audio_bos|><|AUDIO|><|audio_eos|>", "<|vision_bos|><|IMAGE|><|vision_eos|>")
    number = words.convert_tokens_to_ids
    thinker = {
        "audio_config": ENCODER | {"n_window": 100, "output_dim": 64},
        "vision_config": VISION,
        "text_config": DECODER
        | {
            "vocab_size": len(words),
            "tie_word_embeddings": False,
            "eos_token_id": words.eos_token_id,
            "pad_token_id": words.pad_token_id,
            "bos_token_id": words.pad_token_id,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]},
        },
        "audio_token_index": number("<|AUDIO|>"),
        "image_token_index": number("<|IMAGE|>"),
        "video_token_index": number("<|VIDEO|>"),
        "audio_start_token_id": number("<|audio_bos|>"),
        "audio_end_token_id": number("<|audio_eos|>"),
        "vision_start_token_id": number("<|vision_bos|>"),
        "vision_end_token_id": number("<|vision_eos|>"),
        "user_token_id": number("<|im_start|>"),
        "pad_token_id": words.pad_token_id,
    }
    torch.manual_seed(0)
    config = Qwen2_5OmniConfig(thinker_config=thinker, enable_audio_output=False)
    config.architectures = ["Qwen2_5OmniModel"]
    model = Qwen2_5OmniThinkerForConditionalGeneration(config.thinker_config).to(torch.bfloat16)
    weights = {f"thinker.{name}": value.contiguous().clone() for name, value in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    words.save_pretrained(folder)
    processor = WhisperFeatureExtractor(feature_size=128).to_dict() | {
        "image_processor_type": "Qwen2VLImageProcessor",
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "Qwen2_5OmniProcessor",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "min_pixels": 3136,
        "max_pixels": 12845056,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), "utf-8")
    (folder / "chat_template.jinja").write_text(words.chat_template, "utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {
    "llama": llama,
    "llama_deep": llama_deep,
    "llama_long": llama_long,
    "qwen2audio": qwen2audio,
    "qwen25omni": qwen25omni,
}


def make(folder: Path, name: str) -> Path:
    """Make the model `name` below `folder`, unless it is there; returns its folder."""
    made = folder / name
    if not (made / "config.json").is_file():
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        MAKERS[name](made)
    return made


if __name__ == "__main__":
    for model in MAKERS:
        sys.stdout.write(f"{make(Path(sys.argv[1]), model)}\n")
