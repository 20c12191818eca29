"""SALMONN, 7B or 13B, loaded and asked by its authors' code. Not run with their weights: they need a large GPU.

Clone the branch `salmonn` of https://github.com/bytedance/SALMONN (commit a58bba7), install its requirements, download
what its README names (Whisper, BEATs, Vicuna, the checkpoint) and write their paths into `configs/decode_config.yaml`.
Then name the folder and the configuration: `export SALMONN=SALMONN SALMONN_CONFIG=configs/decode_config.yaml`. What is
used of it: `config.Config`, `models.salmonn.SALMONN` and `utils.prepare_one_sample`, as `cli_inference.py` does.

A request without a clip is answered by the language model of SALMONN alone, with its adapter and the same template. The
decoding is that of the task: the configuration's beams do not apply. Of a clip the first 30 seconds are heard.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

SETTINGS = ("max_tokens", "temperature", "top_p", "top_k", "seed")
HEARD_S = 30.0

model: Any = None
template = ""
features: Any = None
prepare: Any = None


def load() -> None:
    """Load the model onto the GPU."""
    global model, template, features, prepare
    folder, named = os.environ.get("SALMONN", ""), os.environ.get("SALMONN_CONFIG", "")
    if not os.path.isfile(os.path.join(folder, "cli_inference.py")):
        sys.exit(f"SALMONN={folder!r} is not a clone of the branch salmonn of https://github.com/bytedance/SALMONN")
    # The authors' code finds its prompts by paths relative to this folder.
    os.chdir(folder)
    if not os.path.isfile(named):
        sys.exit(f"SALMONN_CONFIG={named!r} is no file; name a configuration such as configs/decode_config.yaml")
    sys.path.insert(0, os.getcwd())
    from config import Config
    from models.salmonn import SALMONN
    from transformers import WhisperFeatureExtractor
    from utils import prepare_one_sample

    settings = Config(argparse.Namespace(cfg_path=named, options=None)).config.model
    model = SALMONN.from_config(settings)
    model.to("cuda")
    model.eval()
    template, prepare = settings.prompt_template, prepare_one_sample
    features = WhisperFeatureExtractor.from_pretrained(settings.whisper_path)


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text, about a clip if there is one."""
    import torch

    torch.manual_seed(sampling.get("seed", 0))
    temperature = sampling.get("temperature", 0.0)
    # SALMONN's own `generate` passes no top_k, so that the library's value of 50 would hold.
    model.llama_model.generation_config.top_k = sampling.get("top_k", 0)
    decoding = {
        "do_sample": temperature > 0,
        "temperature": temperature or 1.0,
        "top_p": sampling.get("top_p", 1.0),
        "max_new_tokens": sampling.get("max_tokens", 200),
        "num_beams": 1,
    }
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16):
        if audio is None:
            prompt = model.llama_tokenizer(template.format(text), return_tensors="pt").to("cuda")
            sequences = model.llama_model.generate(**prompt, **decoding)
            said = model.llama_tokenizer.decode(sequences[0][prompt["input_ids"].shape[1] :])
        else:
            if audio.seconds > HEARD_S:
                raise ValueError(f"a clip of {audio.seconds:.1f} s; SALMONN hears the first {HEARD_S:g} s")
            asked = template.format(f"<Speech><SpeechHere></Speech> {text.strip()}")
            said = model.generate(prepare(audio.path, features), decoding, prompts=[asked])[0]
    return str(said).replace("<s>", "").replace("</s>", "").strip()
