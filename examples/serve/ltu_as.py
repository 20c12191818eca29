"""LTU-AS, loaded and asked by its authors' code. Not run with their weights: they need a GPU of 24 GB.

Clone https://github.com/YuanGongND/ltu (commit 2002aad), make the environment that its README describes for LTU-AS, let
`src/ltu_as/inference.sh` download the checkpoints, and name the folder: `export LTU_AS=ltu/src/ltu_as`. What is used of
it: its forks of `transformers` and `peft`, `utils.prompter.Prompter`, `whisper.model.Whisper` and `whisper_at`, as
`inference_gradio.py` does.

LTU-AS hears a clip through Whisper's encoder and reads a transcript of it; both are made here as its authors do. A
request without a clip has neither, which is the mode `asr_only` of `inference_batch.py` without a transcript. The
decoding is that of the task: the script's temperature, top_p, top_k and repetition penalty do not apply.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

SETTINGS = ("max_tokens", "temperature", "top_p", "top_k", "seed")
WEIGHTS = "../../pretrained_mdls"
SUBTITLES = re.compile(r"thank(?:s| you) for watching[.!]?", re.IGNORECASE)
"""What Whisper hears in silence; the authors take it out."""

model: Any = None
tokenizer: Any = None
prompter: Any = None
transcriber: Any = None
listener: Any = None


def load() -> None:
    """Load the language model with its adapter, the transcriber and the encoder."""
    global model, tokenizer, prompter, transcriber, listener
    folder = os.environ.get("LTU_AS", "")
    if not os.path.isfile(os.path.join(folder, "inference_gradio.py")):
        sys.exit(f"LTU_AS={folder!r} is not the folder src/ltu_as of a clone of https://github.com/YuanGongND/ltu")
    # The authors' code finds its templates and weights by paths relative to this folder.
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    import torch
    import whisper_at
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaForCausalLM, LlamaTokenizer
    from utils.prompter import Prompter
    from whisper.model import ModelDimensions, Whisper

    prompter = Prompter("alpaca_short")
    tokenizer = LlamaTokenizer.from_pretrained(f"{WEIGHTS}/vicuna_ltuas/")
    base = LlamaForCausalLM.from_pretrained(f"{WEIGHTS}/vicuna_ltuas/", device_map="auto", torch_dtype=torch.float16)
    for name, parameter in base.named_parameters():
        if "audio_encoder" in name and "ln" in name and parameter.dtype == torch.float16:
            parameter.data = parameter.data.float()
    adapter = LoraConfig(
        r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"], lora_dropout=0.05, bias="none", task_type="CAUSAL_LM"
    )
    model = get_peft_model(base, adapter)
    model.load_state_dict(torch.load(f"{WEIGHTS}/ltuas_long_noqa_a6.bin", map_location="cpu"), strict=False)
    model.config.pad_token_id = tokenizer.pad_token_id = 0
    model.config.bos_token_id, model.config.eos_token_id = 1, 2
    model.eval()
    transcriber = whisper_at.load_model("large-v2", device="cuda")
    checkpoint = torch.load(f"{WEIGHTS}/large-v1.pt", map_location="cuda")
    listener = Whisper(ModelDimensions(**checkpoint["dims"]))
    listener.load_state_dict(checkpoint["model_state_dict"], strict=False)
    listener.to("cuda")


def heard(path: str) -> tuple[Any, str]:
    """Return the features of a clip, as the language model takes them, and its transcript."""
    import numpy as np
    import torch
    from skimage.measure import block_reduce

    transcript = SUBTITLES.sub("", transcriber.transcribe(path)["text"].lstrip())
    _, layers = listener.transcribe_audio(path)
    layers = torch.permute(layers[0], (2, 0, 1)).detach().cpu().numpy()
    # The mean of 20 frames, in each layer of the encoder but the first.
    pooled = block_reduce(layers, (1, 20, 1), np.mean)[1:]
    return torch.FloatTensor(pooled).unsqueeze(0).half().to("cuda"), transcript


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text, about a clip if there is one."""
    import torch
    from transformers import GenerationConfig

    torch.manual_seed(sampling.get("seed", 0))
    temperature = sampling.get("temperature", 0.0)
    features, transcript = (None, None) if audio is None else heard(audio.path)
    prompt = tokenizer(prompter.generate_prompt(text, transcript), return_tensors="pt")["input_ids"].to("cuda")
    decoding = GenerationConfig(
        do_sample=temperature > 0,
        temperature=temperature or 1.0,
        top_p=sampling.get("top_p", 1.0),
        top_k=sampling.get("top_k", 0),
        max_new_tokens=sampling.get("max_tokens", 400),
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.no_grad():
        sequences = model.generate(input_ids=prompt, audio_input=features, generation_config=decoding)
    return str(tokenizer.decode(sequences[0][prompt.shape[1] :], skip_special_tokens=True)).strip()
