"""Tiny models of real architectures that learn how often each group gets an answer: their bias is known."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import tiny_models

from equivox.core.requests import EngineIdentity, Request
from equivox.engines.checkpoint import open_checkpoint
from equivox.engines.transformers_loading import Loaded, load
from equivox.run.pipeline import open_corpora
from equivox.run.plan import make_plan
from equivox.tasks.registry import resolve_tasks

ANSWERS = (" nurse", " engineer")
"""The answers that a model learns; each is a single token of the tiny models."""
BODIES = {"text": "llama", "audio": "qwen2audio", "image": "qwen25vl"}
"""The tiny model that takes each kind of request."""
TOWERS = ("audio_tower", "visual")
"""The modules that turn a medium into embeddings; their weights stay random, so each runs once."""
UNITS = 12
"""Speakers or pictures of each group; a text has as many rows, each for both groups."""
STEPS, LEARNING_RATE, RATE = 100, 3e-3, 16_000

TASK = """
name: known_{kind}
table: rows.csv
group: gender
{design}
questions:
  - name: job
    text: "{text}"
    attributes:
      - {{name: job, asks: the job, options: [nurse, engineer]}}
    sampling: {{temperature: 1.0, repeats: 8, max_new_tokens: 8}}
card: Made for a test.
"""


def write_task(folder: Path, kind: str) -> Path:
    """Write a task of one kind with its table and its media; returns its file."""
    folder.mkdir(parents=True)
    if kind == "text":
        rows = ["story", *(f"Story {number}" for number in range(UNITS))]
        design = "swap:\n  name: {female: [Anna, Maria, Olga], male: [Jonas, Peter, Emil]}"
        text = "{story} about {name}"
    else:
        rows, design, text = ["path,speaker,gender"], f"cluster: speaker\nmedia: {kind}", "Who is it?"
        draw = np.random.default_rng(0)
        for number in range(2 * UNITS):
            gender = ("female", "male")[number % 2]
            rows.append(f"{write_medium(folder, number, kind, gender, draw)},s{number},{gender}")
    (folder / "rows.csv").write_text("\n".join(rows) + "\n", "utf-8")
    file = folder / "task.yaml"
    file.write_text(TASK.format(kind=kind, design=design, text=text), "utf-8")
    return file


def write_medium(folder: Path, number: int, kind: str, gender: str, draw: np.random.Generator) -> str:
    """Write a second of a tone, high or low, or a picture, bright or dark, with noise; returns its name."""
    if kind == "audio":
        pitch = draw.uniform(900, 1200) if gender == "female" else draw.uniform(150, 250)
        wave = 0.3 * np.sin(np.arange(RATE) * pitch * 2 * np.pi / RATE) + draw.normal(0, 0.01, RATE)
        soundfile.write(folder / f"{number}.wav", wave, RATE)
        return f"{number}.wav"
    from PIL import Image

    pixels = draw.integers(0, 106, (56, 56, 3)) + (150 if gender == "female" else 0)
    Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    return f"{number}.png"


def teach(folder: Path, task_file: Path, kind: str, shares: Mapping[str, float]) -> tuple[str, float]:
    """Make a model in `folder` that says the first answer to each group at its share, of 1.

    Returns the folder, and by how many percentage points the model's own probabilities differ between the groups.
    """
    import torch

    shutil.copytree(tiny_models.make(folder.parent / "random", BODIES[kind]), folder)
    loaded = load(open_checkpoint(str(folder)), {"dtype": "float32", "device": "cpu"})
    model, requests = loaded.model, list_requests(task_file)
    said = loaded.tokenizer.convert_tokens_to_ids([f"Ġ{answer.strip()}" for answer in ANSWERS])
    # Each prompt goes on with an answer, so that a model learns to end.
    inputs = prepare(loaded, requests, task_file.parent)
    wanted = torch.tensor([[shares[request.labels.group], 1 - shares[request.labels.group]] for request in requests])
    run_towers_once(model)
    torch.manual_seed(0)
    parameters = [weights for name, weights in model.named_parameters() if not any(tower in name for tower in TOWERS)]
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=STEPS, pct_start=0.1)
    for _ in range(STEPS):
        answer, end = model(**inputs, use_cache=False).logits[:, -2:].log_softmax(-1).unbind(1)
        loss = -(wanted * answer[:, said]).sum(1).mean() - end[:, loaded.tokenizer.eos_token_id].mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        first = model(**inputs, use_cache=False).logits[:, -2].softmax(-1)[:, said[0]]
    model.save_pretrained(folder)
    if kind == "audio":
        tiny_models.older_names(folder)
    female = torch.tensor([request.labels.group == "female" for request in requests])
    return str(folder), 100 * float(first[female].mean() - first[~female].mean())


def list_requests(task_file: Path) -> list[Request]:
    """Return each request of a task once, whatever its repeats."""
    tasks = resolve_tasks(str(task_file))
    plan = make_plan(tasks, open_corpora(tasks, None, {}), EngineIdentity(engine="none", model="none", revision=""))
    return [request for request in plan.requests() if request.repeat == 0]


def prepare(loaded: Loaded, requests: Sequence[Request], folder: Path) -> Any:
    """Return the inputs that transformers makes of all requests, each followed by an answer."""
    texts, media = [], []
    for number, request in enumerate(requests):
        content = [*({"type": part.kind} for part in request.media), {"type": "text", "text": request.text}]
        chat = [{"role": "user", "content": content}]
        prompt = loaded.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        texts.append(prompt + ANSWERS[number // 2 % 2])
        media += [folder / Path(part.name).name for part in request.media]
    options: dict[str, Any] = {"return_tensors": "pt", "padding": True, "add_special_tokens": False}
    if not media:
        return loaded.tokenizer(texts, **options)
    if media[0].suffix == ".png":
        from PIL import Image

        return loaded.processor(text=texts, images=[Image.open(path).convert("RGB") for path in media], **options)
    waves = [soundfile.read(path, dtype="float32")[0] for path in media]
    return loaded.processor(text=texts, audio=waves, sampling_rate=RATE, **options)


def run_towers_once(model: Any) -> None:
    """Let the tower of a model return its first output again: every step has the same media."""
    import torch

    for name, module in model.named_modules():
        if name.rpartition(".")[2] in TOWERS:
            first: list[Any] = []

            def forward(*inputs: Any, first: list[Any] = first, run: Any = module.forward, **named: Any) -> Any:
                if not first:
                    with torch.no_grad():
                        first.append(run(*inputs, **named))
                return copy.copy(first[0])

            module.forward = forward
