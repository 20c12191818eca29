"""`examples/serve`: the plug-ins of published models, with stand-ins for their authors' code of the same signatures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from test_serve import SERVE, ask, request

TORCH = """
import contextlib, pathlib
float16, float32 = "half", "float"
def manual_seed(seed): pathlib.Path("seeds").open("a").write(f"{seed} ")
def load(path, map_location): return {"dims": {"n": 1}, "model_state_dict": path, "from": path}
class Tensor(list):
    shape = property(lambda self: (len(self), len(self[0])))
    def to(self, device): return self
    def unsqueeze(self, place): return Tensor([self])
    def half(self): return self
    def detach(self): return self
    cpu = half
    def numpy(self):
        import numpy
        return numpy.asarray(list(self))
def FloatTensor(array): return Tensor(array.tolist())
def permute(values, order):
    import numpy
    return Tensor(numpy.transpose(numpy.asarray(values), order).tolist())
no_grad = contextlib.nullcontext
def autocast(device, dtype): return contextlib.nullcontext()
"""
LTU_AS = {
    "torch.py": TORCH,
    "whisper_at.py": """
import types
def load_model(size, device):
    return types.SimpleNamespace(transcribe=lambda path: {"text": f" I like tea. Thanks for watching! ({size})"})
""",
    "skimage/__init__.py": "",
    "skimage/measure.py": """
def block_reduce(array, block, reduce):
    n = array.shape[1] // block[1]
    return reduce(array[:, : n * block[1]].reshape(array.shape[0], n, block[1], -1), axis=2)
""",
    "transformers.py": """
from torch import Tensor
class GenerationConfig:
    def __init__(self, **given): self.given = given
class Config: pass
class LlamaTokenizer:
    words = ["<unk>", "<s>", "</s>"]
    @classmethod
    def from_pretrained(cls, folder): return cls()
    def __call__(self, text, return_tensors):
        self.words += [word for word in text.split() if word not in self.words]
        return {"input_ids": Tensor([[1, *map(self.words.index, text.split())]])}
    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return " ".join(self.words[i] for i in ids if i > 2)
class LlamaForCausalLM:
    @classmethod
    def from_pretrained(cls, folder, device_map, torch_dtype):
        made = cls()
        made.config = Config()
        return made
    def named_parameters(self): return []
    def eval(self): return self
    def load_state_dict(self, state, strict): assert state["from"].endswith("ltuas_long_noqa_a6.bin") and not strict
    def generate(self, input_ids, audio_input, generation_config):
        heard = "nothing" if audio_input is None else "x".join(map(str, (len(audio_input[0]), len(audio_input[0][0]))))
        asked = generation_config.given
        kind = "sampled" if asked["do_sample"] else "greedy"
        said = f"heard {heard} {kind} {asked['top_p']} {asked['top_k']} {asked['max_new_tokens']}"
        LlamaTokenizer.words += [word for word in said.split() if word not in LlamaTokenizer.words]
        return Tensor([[*input_ids[0], *map(LlamaTokenizer.words.index, said.split()), 2]])
""",
    "peft.py": """
class LoraConfig:
    def __init__(self, r, lora_alpha, target_modules, lora_dropout, bias, task_type): assert (r, lora_alpha) == (8, 16)
def get_peft_model(model, config): return model
""",
    "utils/__init__.py": "",
    "utils/prompter.py": """
import pathlib
class Prompter:
    def __init__(self, template): assert template == "alpaca_short"
    def generate_prompt(self, instruction, input=None):
        text = f"{instruction}|{input}"
        pathlib.Path("prompts").open("a").write(text + "\\n")
        return text
""",
    "whisper/__init__.py": "",
    "whisper/model.py": """
class ModelDimensions:
    def __init__(self, n): self.n = n
class Whisper:
    def __init__(self, dims): assert dims.n == 1
    def load_state_dict(self, state, strict): assert state.endswith("large-v1.pt")
    def to(self, device): return self
    def transcribe_audio(self, path):
        frames = open(path, "rb").read(4) == b"RIFF" and 1500
        return None, [[[[float(layer) for layer in range(4)] for _ in range(2)] for _ in range(frames)]]
""",
    "inference_gradio.py": "",
}
SALMONN = {
    "torch.py": TORCH,
    "config.py": """
import types
class Config:
    def __init__(self, args):
        assert args.options is None and open(args.cfg_path).read() == "config"
        model = types.SimpleNamespace(prompt_template="USER: {} ASSISTANT:", whisper_path="whisper")
        self.config = types.SimpleNamespace(model=model)
""",
    "decode.yaml": "config",
    "models/__init__.py": "",
    "models/salmonn.py": """
import types
from torch import Tensor
class Batch(dict):
    def to(self, device): return self
class Tokenizer:
    def __call__(self, text, return_tensors):
        self.text = text
        return Batch(input_ids=Tensor([[1, 5, 6]]))
    def decode(self, ids): return f"read {self.text} {ids}</s>"
class SALMONN:
    @classmethod
    def from_config(cls, settings):
        made = cls()
        made.llama_tokenizer = Tokenizer()
        made.llama_model = types.SimpleNamespace(
            generation_config=types.SimpleNamespace(top_k=50),
            generate=lambda input_ids, **decoding: [[*input_ids[0], 7, 2]],
        )
        return made
    def to(self, device): return self
    eval = lambda self: self
    def generate(self, samples, generate_cfg, prompts=None):
        top_k = self.llama_model.generation_config.top_k
        return [f"<s> heard {samples} {prompts[0]} {sorted(generate_cfg.items())} {top_k}</s>"]
""",
    "transformers.py": """
class WhisperFeatureExtractor:
    @classmethod
    def from_pretrained(cls, path): return path
""",
    "utils.py": """
def prepare_one_sample(wav_path, wav_processor, cuda_enabled=True):
    return open(wav_path, "rb").read(4).decode(), wav_processor
""",
    "cli_inference.py": "",
}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Serve a plug-in whose authors' code is the given files; returns the server's URL."""
    running = []

    def begin(plugin: str, files: Mapping[str, str], **environment: str) -> str:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        command = [sys.executable, str(SERVE / "serve.py"), str(SERVE / f"{plugin}.py"), "--name", "mine"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), **environment}
        server = subprocess.Popen(
            [*command, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
        )
        running.append(server)
        said = server.stderr.readline()
        if not said.startswith("mine at http"):
            pytest.fail(said + server.stderr.read())
        return said.split()[-1]

    yield begin
    for server in running:
        server.terminate()
        server.communicate()


def test_ltu_as_hears_a_clip_and_reads_its_transcript(serve: Callable[..., str], tmp_path: Path) -> None:
    url = serve("ltu_as", LTU_AS, LTU_AS=str(tmp_path))
    (heard,) = ask(url, request("Who?", seconds=1.0, temperature=1.0, top_p=0.9, top_k=100))
    (read,) = ask(url, request("Who?"))
    # Four layers of 1,500 frames are three of 75 without the first.
    assert (heard.text, heard.error) == ("heard 3x75 sampled 0.9 100 7", None)
    assert heard.media_items == 1
    assert read.text == "heard nothing greedy 1.0 0 7"
    asked = (tmp_path / "prompts").read_text().splitlines()
    assert [line for line in asked if "Hello" not in line] == ["Who?|I like tea.  (large-v2)", "Who?|None"]


def test_salmonn_answers_with_a_clip_and_without_one(serve: Callable[..., str], tmp_path: Path) -> None:
    url = serve("salmonn", SALMONN, SALMONN=str(tmp_path), SALMONN_CONFIG="decode.yaml")
    papers = {"temperature": 1.0, "top_p": 0.9, "top_k": 100}
    heard, long = (ask(url, request("Who?", seconds=seconds, **papers))[0] for seconds in (1.0, 31.0))
    (read,) = ask(url, request("Who?"))
    decoding = [("do_sample", True), ("max_new_tokens", 7), ("num_beams", 1), ("temperature", 1.0), ("top_p", 0.9)]
    prompt = "USER: <Speech><SpeechHere></Speech> Who? ASSISTANT:"
    assert heard.text == f"heard ('RIFF', 'whisper') {prompt} {decoding} 100"
    assert read.text == "read USER: Who? ASSISTANT: [7, 2]"
    assert long.error is not None and "SALMONN hears the first 30 s" in long.error


@pytest.mark.parametrize(("plugin", "hint"), [("ltu_as", "LTU_AS=''"), ("salmonn", "SALMONN=''")])
def test_a_folder_that_is_not_the_authors_is_one_line(plugin: str, hint: str) -> None:
    command = [sys.executable, str(SERVE / "serve.py"), str(SERVE / f"{plugin}.py"), "--name", "m", "--port", "9"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1 and hint in ended.stderr


def test_what_waits_is_answered_in_one_call(serve: Callable[..., str], tmp_path: Path) -> None:
    desta = """
import pathlib, time, types
class DeSTA25AudioModel:
    @classmethod
    def from_pretrained(cls, name): return cls()
    def to(self, device): return self
    def generate(self, messages, do_sample, temperature, top_p, max_new_tokens):
        pathlib.Path("sizes").open("a").write(f"{len(messages)} ")
        time.sleep(0.2)
        texts = [conversation[0]["content"] for conversation in messages]
        if "bad" in texts and len(texts) > 1: raise ValueError("a bad one")
        return types.SimpleNamespace(text=[text.upper() for text in texts])
"""
    url = serve("desta25_audio", {"torch.py": TORCH, "desta.py": desta})
    words = [f"w{n}" for n in range(20)] + ["bad"]
    found = ask(url, *(request(word, key=word) for word in words), max_concurrency=8)
    assert {response.key: response.text for response in found} == {word: word.upper() for word in words}
    sizes = [int(size) for size in (tmp_path / "sizes").read_text().split()]
    assert max(sizes) >= 4 and len(sizes) < 20
    sampled = ask(url, *(request(word, key=word, temperature=1.0) for word in words[:4]), max_concurrency=4)
    assert [response.error for response in sampled] == [None] * 4
    assert json.loads(f"[{','.join((tmp_path / 'sizes').read_text().split())}]")[-4:] == [1, 1, 1, 1]
