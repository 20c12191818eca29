"""Tiny checkpoints of real architectures, with random weights: `python tests/engines/real/tiny_models.py FOLDER`.

Each is under a megabyte and takes the code paths of the real model in vLLM and in transformers: chat template,
tokenizer, audio and image processors. Their vocabulary is printable ASCII, so that whatever they say is text.
"""

from __future__ import annotations

import json
import shutil
import string
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

ALONE = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
"""The environment of an engine with a tiny model: no network, vLLM in this process, and one thread.

A tiny model's matrices are not worth sharing, and threads that wait for each other on two cores take thirty times as
long.
"""

SIZES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
"""The sizes of each model's parts."""

DECODER, QWEN, QWEN_3 = SIZES["decoder"], SIZES["qwen"], SIZES["qwen3"]
# As byte-level BPE writes them: a space is Ġ, a line break Ċ.
ALPHABET = [*string.ascii_letters, *string.digits, *string.punctuation, "Ġ", "Ċ"]


def tokenizer(extra: Sequence[str] = (), **options: Any) -> Any:
    """Return a tokenizer, and set the seed of the weights that are made next."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    torch.manual_seed(0)
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
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer()
    words.chat_template = chat_template()
    config = LlamaConfig(
        vocab_size=len(words),
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
        **(DECODER | changes),
    )
    LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
    words.save_pretrained(folder)


def llama_long(folder: Path) -> None:
    """A context that holds an annotator's prompt in bytes."""
    llama(folder, max_position_embeddings=8192)


def llama_deep(folder: Path) -> None:
    """Layers enough for one to be patched into another."""
    llama(folder, num_hidden_layers=6)


def qwen2audio(folder: Path) -> None:
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
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    text = Qwen2Config(vocab_size=len(words), **ends, **DECODER)
    config = Qwen2AudioConfig(
        audio_config=Qwen2AudioEncoderConfig(**QWEN["encoder"]).to_dict(),
        text_config=text.to_dict(),
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    Qwen2AudioForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=128)
    Qwen2AudioProcessor(extractor, words, chat_template=words.chat_template).save_pretrained(folder)
    older_names(folder)


def older_names(folder: Path, new: str = "language_model.model.model.", old: str = "language_model.model.") -> None:
    """Rename weights: published checkpoints use the older names, which vLLM expects."""
    from safetensors.torch import save_file

    weights = {key.replace(new, old): value for key, value in stored(folder).items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def marked(media: dict[str, str], begin: str, end: str, place: str) -> tuple[Any, dict[str, int]]:
    """Return a tokenizer with the marks of media, and their numbers by the names of a configuration.

    `media` has the mark of each kind, whose name ends in `place`; `begin` and `end` stand in the marks around them.
    """
    names = {f"{kind}_token": mark for kind, mark in media.items()}
    for way in ("vision", "audio"):
        names |= {f"{way}_bos_token": f"<|{way}_{begin}|>", f"{way}_eos_token": f"<|{way}_{end}|>"}
    words = tokenizer(sorted(names.values()), extra_special_tokens=names)
    around = {way: f"<|{way}_{begin}|>{{}}<|{way}_{end}|>" for way in ("vision", "audio")}
    words.chat_template = chat_template(around["audio"].format(media["audio"]), around["vision"].format(media["image"]))
    number = words.convert_tokens_to_ids
    numbers = {f"{kind}_token_{place}": number(mark) for kind, mark in media.items()}
    for way in ("vision", "audio"):
        numbers |= {f"{way}_start_token_id": number(f"<|{way}_{begin}|>")}
        numbers |= {f"{way}_end_token_id": number(f"<|{way}_{end}|>")}
    return words, numbers | {"user_token_id": number("<|im_start|>")}


def save_thinker(folder: Path, config: Any, words: Any, weights: dict[str, Any], processor: dict[str, Any]) -> None:
    """Save a thinker that hears and sees as if it were the whole model."""
    from safetensors.torch import save_file
    from transformers import WhisperFeatureExtractor

    named = {f"thinker.{name}": value for name, value in weights.items()}
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    words.save_pretrained(folder)
    processor = WhisperFeatureExtractor(feature_size=128).to_dict() | QWEN["images"] | processor
    processor["feature_extractor_type"] = "WhisperFeatureExtractor"
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), "utf-8")
    (folder / "chat_template.jinja").write_text(words.chat_template, "utf-8")


def qwen25omni(folder: Path) -> None:
    """Make the thinker alone: text, audio and image through one model."""
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniThinkerForConditionalGeneration

    folder.mkdir(parents=True, exist_ok=True)
    media = {kind: f"<|{kind.upper()}|>" for kind in ("image", "audio", "video")}
    words, numbers = marked(media, "bos", "eos", "index")
    thinker = numbers | {
        "audio_config": QWEN["encoder"] | {"n_window": 100, "output_dim": 64},
        "vision_config": QWEN["vision"],
        "text_config": decoder(words, tie_word_embeddings=False, rope_parameters=QWEN["rope"]),
        "pad_token_id": words.pad_token_id,
    }
    config = Qwen2_5OmniConfig(thinker_config=thinker, enable_audio_output=False)
    config.architectures = ["Qwen2_5OmniModel"]
    model = Qwen2_5OmniThinkerForConditionalGeneration(config.thinker_config).bfloat16()
    weights = {name: value.contiguous().clone() for name, value in model.state_dict().items()}
    save_thinker(folder, config, words, weights, {"processor_class": "Qwen2_5OmniProcessor"})


def phi4mm(folder: Path) -> None:
    """Make a Phi-4-multimodal whose two adapters have weights; give `load_format=dummy` for the rest.

    vLLM builds its whole image encoder, 0.4 billion weights, whatever the configuration says; so none are stored.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    special, config, processor = (SIZES["phi4mm"][part] for part in ("special", "model", "processor"))
    letters = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: number for number, letter in enumerate(sorted(letters))}
    vocabulary |= {special.get(number, f"w{number}"): number for number in range(len(letters), config["vocab_size"])}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in special.values()])
    end = special[199999]
    words = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=end, bos_token=end, pad_token=end)
    # The published template takes text alone: vLLM writes <|audio_1|> and <|image_1|> into it.
    words.chat_template = (
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    words.save_pretrained(folder)
    hidden, inner = DECODER["hidden_size"], DECODER["intermediate_size"]
    (folder / "config.json").write_text(json.dumps(DECODER | config), "utf-8")
    shutil.copy(Path(__file__).parent / "remote_code" / "phi4mm.py", folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), "utf-8")
    code = {"AutoProcessor": processor["auto_map"]["AutoProcessor"]}
    text = json.dumps({"auto_map": code, "processor_class": processor["processor_class"]})
    (folder / "processor_config.json").write_text(text, "utf-8")
    places = {
        "self_attn.qkv_proj": (hidden, 3 * hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_up_proj": (hidden, 2 * inner),
        "mlp.down_proj": (inner, hidden),
    }
    adapter(folder / "speech-lora", 320, places)
    adapter(folder / "vision-lora", 256, places)


def decoder(words: Any, **changes: Any) -> dict[str, Any]:
    """Return the text part of a configuration for a tokenizer."""
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id, "bos_token_id": words.pad_token_id}
    return DECODER | {"vocab_size": len(words)} | ends | changes


def seeing(folder: Path, config_of: Any, model_of: Any, vision: dict[str, Any], **text: Any) -> None:
    """Save a Qwen model that sees, with its tokenizer; `text` changes its decoder."""
    names = {
        "image_token": "<|image_pad|>",
        "video_token": "<|video_pad|>",
        "vision_bos_token": "<|vision_start|>",
        "vision_eos_token": "<|vision_end|>",
    }
    words = tokenizer(sorted(names.values()), extra_special_tokens=names)
    words.chat_template = chat_template(image="<|vision_start|><|image_pad|><|vision_end|>")
    number = words.convert_tokens_to_ids
    config = config_of(
        vision_config=vision,
        text_config=decoder(words, **text),
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
    model_of(config).bfloat16().save_pretrained(folder)
    words.save_pretrained(folder)


def qwen25vl(folder: Path) -> None:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text = {"rope_parameters": QWEN["rope"]}
    seeing(folder, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, QWEN["vision"], **text)
    processor = QWEN["images"] | {"processor_class": "Qwen2_5_VLProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor), "utf-8")


def audioflamingo3(folder: Path) -> None:
    from transformers import (
        AudioFlamingo3Config,
        AudioFlamingo3ForConditionalGeneration,
        AudioFlamingo3Processor,
        WhisperFeatureExtractor,
    )

    words = tokenizer(["<sound>", "<|sound_bos|>", "<|sound_eos|>"])
    words.chat_template = chat_template(audio="<sound>")
    config = AudioFlamingo3Config(
        audio_config=SIZES["audioflamingo3"]["audio"],
        text_config=decoder(words, model_type="qwen2"),
        audio_token_id=words.convert_tokens_to_ids("<sound>"),
    )
    AudioFlamingo3ForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=128)
    AudioFlamingo3Processor(extractor, words, chat_template=words.chat_template).save_pretrained(folder)
    older_names(folder)


def gemma3(folder: Path) -> None:
    from tokenizers import AddedToken
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3ImageProcessor, Gemma3Processor

    names = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    words = tokenizer(sorted(names.values()), extra_special_tokens=names)
    # vLLM joins the line breaks around an image into one token.
    words.add_tokens([AddedToken("\n" * breaks, normalized=False) for breaks in (4, 3, 2, 1)])
    words.chat_template = chat_template(image=names["boi_token"])
    config = Gemma3Config(
        text_config=decoder(words, **SIZES["gemma3"]["text"]),
        vision_config=SIZES["gemma3"]["vision"],
        mm_tokens_per_image=4,
        **{f"{name}_index": words.convert_tokens_to_ids(token) for name, token in names.items()},
    )
    Gemma3ForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    older_names(folder, "vision_tower.", "vision_tower.vision_model.")
    images = Gemma3ImageProcessor(size={"height": 56, "width": 56})
    processor = Gemma3Processor(images, words, chat_template=words.chat_template, image_seq_length=4)
    processor.save_pretrained(folder)


def gemma3n(folder: Path) -> None:
    """Make a Gemma-3n; its numbers of image and audio tokens follow those of text, as in the published vocabulary."""
    from tokenizers import AddedToken
    from transformers import (
        Gemma3nAudioFeatureExtractor,
        Gemma3nConfig,
        Gemma3nForConditionalGeneration,
        Gemma3nProcessor,
        PreTrainedTokenizerFast,
        SiglipImageProcessor,
    )

    names = {
        "image_token": "<image_soft_token>",
        "audio_token": "<audio_soft_token>",
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "boa_token": "<start_of_audio>",
        "eoa_token": "<end_of_audio>",
    }
    made = tokenizer(["<start_of_image>", "<start_of_audio>"])
    # vLLM joins the line breaks around an image into one token.
    made.add_tokens([AddedToken("\n" * breaks, normalized=False) for breaks in (4, 3, 2, 1)])
    text, block = 320, 128
    made.add_tokens([f"<unused{number}>" for number in range(text - len(made))])
    for kind in ("image", "audio"):
        made.add_tokens([f"<end_of_{kind}>", f"<{kind}_soft_token>"], special_tokens=True)
        made.add_tokens([f"<{kind}{number}>" for number in range(block - 2)])
    words = PreTrainedTokenizerFast(
        tokenizer_object=made.backend_tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        bos_token=None,
        extra_special_tokens=names,
    )
    words.chat_template = chat_template(audio=names["audio_token"], image=names["image_token"])
    parts, of_text = SIZES["gemma3n"], {"vocab_size": text + 2 * block, "vocab_size_per_layer_input": text}
    config = Gemma3nConfig(
        text_config=decoder(words, **of_text, **parts["text"]),
        audio_config=parts["audio"] | {"vocab_offset": text + block},
        vision_config=parts["vision"] | {"vocab_offset": text},
        **{f"{name}_id": words.convert_tokens_to_ids(token) for name, token in names.items()},
    )
    Gemma3nForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    Gemma3nProcessor(
        Gemma3nAudioFeatureExtractor(),
        SiglipImageProcessor(size={"height": 768, "width": 768}, do_normalize=False),
        words,
        chat_template=words.chat_template,
    ).save_pretrained(folder)


def mllama(folder: Path) -> None:
    from transformers import MllamaConfig, MllamaForConditionalGeneration, MllamaImageProcessor, MllamaProcessor

    words = tokenizer(["<|begin_of_text|>", "<|python_tag|>", "<|image|>"])
    words.bos_token = "<|begin_of_text|>"
    words.chat_template = chat_template(image="<|image|>")
    config = MllamaConfig(
        vision_config=SIZES["mllama"]["vision"],
        # The image's token has no weights of its own: it is the last of the vocabulary.
        text_config=decoder(
            words, vocab_size=len(words) - 1, bos_token_id=words.bos_token_id, **SIZES["mllama"]["text"]
        ),
        image_token_index=words.convert_tokens_to_ids("<|image|>"),
    )
    MllamaForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    images = MllamaImageProcessor(size={"height": 56, "width": 56}, max_image_tiles=4)
    MllamaProcessor(images, words, chat_template=words.chat_template).save_pretrained(folder)


def janus(folder: Path) -> None:
    from transformers import JanusConfig, JanusForConditionalGeneration, JanusImageProcessor, JanusProcessor

    names = {"image_token": "<image_placeholder>", "boi_token": "<begin_of_image>", "eoi_token": "<end_of_image>"}
    words = tokenizer(sorted(names.values()), extra_special_tokens=names)
    words.chat_template = chat_template(image="<image_placeholder>")
    config = JanusConfig(
        vision_config=SIZES["janus"]["vision"],
        vq_config=SIZES["janus"]["vq"],
        text_config=decoder(words, model_type="llama"),
        image_token_id=words.convert_tokens_to_ids("<image_placeholder>"),
    )
    JanusForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    images = JanusImageProcessor(size={"height": 32, "width": 32}, min_size=14)
    JanusProcessor(images, words, chat_template=words.chat_template, num_image_tokens=4).save_pretrained(folder)


def qwen3(folder: Path) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    words = tokenizer()
    # The published template answers without thinking when it is told so.
    words.chat_template = chat_template() + "{% if enable_thinking is false %}<think></think>{% endif %}"
    Qwen3ForCausalLM(Qwen3Config(**decoder(words, head_dim=32))).bfloat16().save_pretrained(folder)
    words.save_pretrained(folder)


def qwen3vl(folder: Path) -> None:
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    text = {"head_dim": 32, "rope_parameters": QWEN_3["rope"]}
    seeing(folder, Qwen3VLConfig, Qwen3VLForConditionalGeneration, QWEN_3["vision"], **text)
    processor = {name: value for name, value in QWEN["images"].items() if not name.endswith("_pixels")}
    processor |= {"patch_size": 16, "size": {"shortest_edge": 4096, "longest_edge": 65536}}
    images = processor | {"processor_class": "Qwen3VLProcessor", "image_processor_type": "Qwen2VLImageProcessorFast"}
    (folder / "preprocessor_config.json").write_text(json.dumps(images), "utf-8")
    videos = processor | {"video_processor_type": "Qwen3VLVideoProcessor"}
    (folder / "video_preprocessor_config.json").write_text(json.dumps(videos), "utf-8")


def qwen3omni(folder: Path) -> None:
    """Make the thinker alone, with experts: text, audio and image through one model."""
    from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeThinkerForConditionalGeneration

    media = {kind: f"<|{kind}_pad|>" for kind in ("image", "audio", "video")}
    words, numbers = marked(media, "start", "end", "id")
    text = {"head_dim": 32, "decoder_sparse_step": 1, "tie_word_embeddings": False, "rope_parameters": QWEN_3["rope"]}
    thinker = numbers | {
        "audio_config": QWEN["encoder"] | QWEN_3["listening"],
        "vision_config": QWEN_3["vision"],
        "text_config": decoder(words, **text, **QWEN_3["experts"]),
    }
    config = Qwen3OmniMoeConfig(thinker_config=thinker, enable_audio_output=False)
    config.architectures = ["Qwen3OmniMoeForConditionalGeneration"]
    # `save_pretrained` writes each expert's weights apart, as published.
    Qwen3OmniMoeThinkerForConditionalGeneration(config.thinker_config).bfloat16().save_pretrained(folder)
    processor = {"processor_class": "Qwen3OmniMoeProcessor", "patch_size": 16}
    save_thinker(folder, config, words, stored(folder), processor)


def granitespeech(folder: Path) -> None:
    """Make a Granite-speech with its adapter beside its weights, as published."""
    from transformers import (
        GraniteSpeechConfig,
        GraniteSpeechFeatureExtractor,
        GraniteSpeechForConditionalGeneration,
        GraniteSpeechProcessor,
    )

    words = tokenizer(["<|audio|>"])
    words.chat_template = chat_template(audio="<|audio|>")
    config = GraniteSpeechConfig(
        text_config=decoder(words, model_type="granite"),
        encoder_config=SIZES["granitespeech"]["encoder"],
        projector_config=SIZES["granitespeech"]["projector"],
        audio_token_index=words.convert_tokens_to_ids("<|audio|>"),
        has_lora_adapter=True,
        window_size=15,
        downsample_rate=5,
    )
    GraniteSpeechForConditionalGeneration(config).bfloat16().save_pretrained(folder)
    GraniteSpeechProcessor(GraniteSpeechFeatureExtractor(), words, chat_template=words.chat_template).save_pretrained(
        folder
    )
    older_names(folder)
    # An index keeps vLLM from taking the adapter's file for weights of the model.
    index = {"metadata": {}, "weight_map": dict.fromkeys(stored(folder), "model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    hidden = DECODER["hidden_size"]
    adapter(
        folder, 64, {f"self_attn.{name}": (hidden, hidden) for name in ("q_proj", "v_proj")}, "language_model.model"
    )


def adapter(folder: Path, rank: int, places: dict[str, tuple[int, int]], within: str = "model") -> None:
    """Write a LoRA adapter with random weights for `places` (name of the matrix → its sizes) of every layer.

    `within` is vLLM's name for the text part: vLLM ignores weights of other names.
    """
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(rank)
    weights = {}
    for layer in range(DECODER["num_hidden_layers"]):
        for place, (before, after) in places.items():
            stem = f"base_model.model.{within}.layers.{layer}.{place}"
            weights[f"{stem}.lora_A.weight"] = (torch.randn(rank, before) * 0.1).bfloat16()
            weights[f"{stem}.lora_B.weight"] = (torch.randn(after, rank) * 0.1).bfloat16()
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": 2 * rank, "bias": "none"}
    config |= {"target_modules": [place.rpartition(".")[2] for place in places], "modules_to_save": []}
    (folder / "adapter_config.json").write_text(json.dumps(config), "utf-8")


def stored(folder: Path) -> dict[str, Any]:
    """Return the weights of a checkpoint in one file."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        return {key: file.get_tensor(key).contiguous() for key in file.keys()}  # noqa: SIM118 - not a dictionary


MAKERS: dict[str, Callable[[Path], None]] = {
    maker.__name__: maker
    for maker in (
        audioflamingo3, gemma3, gemma3n, granitespeech, janus, llama, llama_deep, llama_long, mllama,
        phi4mm, qwen2audio, qwen25omni, qwen25vl, qwen3, qwen3omni, qwen3vl,
    )
}  # fmt: skip


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
