"""Qwen-Audio-Chat, loaded as its model card does. Not run with equivox: its weights need a GPU of 20 GB.

Install what the card asks for: transformers 4.31, torch, accelerate, tiktoken, einops, transformers_stream_generator.
"""

from __future__ import annotations

from typing import Any

MODEL = "Qwen/Qwen-Audio-Chat"
SETTINGS = ("max_tokens", "temperature", "top_p", "top_k", "seed")

tokenizer: Any = None
model: Any = None


def load() -> None:
    """Load the model onto the GPU."""
    global tokenizer, model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL, trust_remote_code=True)
    model = AutoModelForCausalLM.from_pretrained(MODEL, device_map="cuda", trust_remote_code=True).eval()


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text, about a clip if there is one."""
    import torch

    torch.manual_seed(sampling.get("seed", 0))
    temperature = sampling.get("temperature", 0.0)
    config = model.generation_config
    config.max_new_tokens = sampling.get("max_tokens", 512)
    config.do_sample = temperature > 0
    config.temperature = temperature or 1.0
    config.top_p = sampling.get("top_p", 1.0)
    config.top_k = sampling.get("top_k", 0)
    parts = ([] if audio is None else [{"audio": audio.path}]) + [{"text": text}]
    said, _ = model.chat(tokenizer, query=tokenizer.from_list_format(parts), history=None)
    return str(said)
