"""What the vLLM engine costs beside bare vLLM: `python -m benchmarks.engine` in `.venv-engine` (make test-engine).

Two thousand prompts to a tiny random-weight Llama, once through one bare `LLM.chat` and once through the engine, in
the same process in turn; then memory at 500 and at 2,000 requests; then speech with and without grouping by clip.
Tiny models on a CPU are the worst case for an overhead: on a real one the model itself takes nearly all the time.
"""

from __future__ import annotations

import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from equivox.core.media import sha256
from equivox.core.task import Sampling
from equivox.engines import Labels, MediaPart, Request

ARGUMENTS = {
    "dtype": "bfloat16",
    "enforce_eager": True,
    "max_model_length": 2048,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 128,
}
PROMPTS, TOKENS, ROUNDS = 2000, 16, 5
CLIPS, PER_CLIP = 24, 6


def tiny(folder: str, name: str) -> str:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "engines" / "real"))
    import tiny_models

    return str(tiny_models.make(Path(folder), name))


def request(number: int, text: str, *media: MediaPart, tokens: int = TOKENS) -> Request:
    return Request(
        key=f"{number}",
        task="benchmark",
        sample_id=f"item{number}",
        repeat=0,
        condition="text",
        media=media,
        text=text,
        sampling=Sampling(max_new_tokens=tokens, temperature=1.0),
        seed=number,
        labels=Labels(group="a", groups=("a", "b"), cluster="c", stratum="s"),
    )


def through_engine(engine: Any, requests: Sequence[Request]) -> tuple[float, float, int]:
    """Return seconds in all, seconds to the first response, and the tokens generated."""
    begin, first, tokens = time.perf_counter(), 0.0, 0
    for response in engine.generate(iter(requests)):
        first = first or time.perf_counter() - begin
        if response.error is not None:
            raise RuntimeError(response.error)
        tokens += response.completion_tokens or 0
    return time.perf_counter() - begin, first, tokens


def through_bare_chat(engine: Any, requests: Sequence[Request]) -> float:
    from vllm import SamplingParams

    begin = time.perf_counter()
    params = [SamplingParams(temperature=1.0, max_tokens=TOKENS, seed=entry.seed) for entry in requests]
    engine._llm.chat([[{"role": "user", "content": entry.text}] for entry in requests], params, use_tqdm=False)
    return time.perf_counter() - begin


def overhead(model: str) -> None:
    from equivox.engines.vllm import VLLMEngine

    requests = [request(n, f"Tell me story number {n}.") for n in range(PROMPTS)]
    with VLLMEngine.from_args({"model_name": model} | ARGUMENTS) as engine:
        through_engine(engine, requests[:200])
        bare: list[float] = []
        ours: list[tuple[float, float, int]] = []
        work: list[float] = []
        for _ in range(ROUNDS):
            begin = time.process_time()
            engine._llm.reset_prefix_cache()
            bare.append(through_bare_chat(engine, requests))
            between = time.process_time()
            engine._llm.reset_prefix_cache()
            ours.append(through_engine(engine, requests))
            work.append((time.process_time() - between) / (between - begin) - 1)
    seconds, first, tokens = min(ours)
    pairs = [mine[0] / its - 1 for mine, its in zip(ours, bare, strict=True)]
    say(f"one bare LLM.chat, {PROMPTS} prompts", f"{min(bare):8.2f} s")
    say(f"the engine, {PROMPTS} prompts", f"{seconds:8.2f} s")
    say("overhead, best of each", f"{100 * (seconds / min(bare) - 1):+8.1f} %")
    say(f"overhead, median of {ROUNDS} pairs", f"{100 * statistics.median(pairs):+8.1f} %")
    say("overhead in processor time, median (other load aside)", f"{100 * statistics.median(work):+8.1f} %")
    say("first response after", f"{first:8.2f} s")
    say("tokens generated per second", f"{tokens / seconds:8.0f}")


def memory(model: str, count: int) -> None:
    """Print this process's peak memory after `count` requests; vLLM's own memory is in it."""
    from equivox.engines.vllm import VLLMEngine

    with VLLMEngine.from_args({"model_name": model} | ARGUMENTS) as engine:
        for _ in engine.generate(request(n, f"Tell me story number {n}.") for n in range(count)):
            pass
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f}")


def grouping(model: str) -> None:
    from equivox.engines.vllm import VLLMEngine

    clips = [clip(number) for number in range(CLIPS)]
    grouped = [(c, t) for c in range(CLIPS) for t in range(PER_CLIP)]
    scattered = [(c, t) for t in range(PER_CLIP) for c in range(CLIPS)]
    arguments = ARGUMENTS | {"model_name": model, "max_num_seqs": 4, "mm_processor_cache_gb": 0.01}
    taken: dict[str, list[float]] = {"with grouping by clip": [], "without": []}
    with VLLMEngine.from_args(arguments) as engine:
        through_engine(engine, [request(0, "Who?", clips[0], tokens=2)])
        for _ in range(ROUNDS):
            for label, order in zip(taken, (grouped, scattered), strict=True):
                engine._llm.reset_prefix_cache()
                engine._llm.reset_mm_cache()
                requests = [request(n, f"Question {t}?", clips[c], tokens=2) for n, (c, t) in enumerate(order)]
                taken[label].append(through_engine(engine, requests)[0])
    for label, seconds in taken.items():
        say(f"{CLIPS} clips x {PER_CLIP} prompts, {label}", f"{min(seconds):8.2f} s")


def clip(number: int) -> MediaPart:
    import numpy as np
    import soundfile

    buffer = io.BytesIO()
    wave = np.random.default_rng(number).uniform(-0.3, 0.3, 10 * 16_000)
    soundfile.write(buffer, wave, 16_000, format="WAV")
    data = buffer.getvalue()
    return MediaPart(kind="audio", sha256=sha256(data), name=f"{number}.wav", load=lambda: data)


def say(what: str, value: str) -> None:
    sys.stdout.write(f"{what:<56}{value}\n")
    sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        llama, listener = tiny(folder, "llama"), tiny(folder, "qwen2audio")
        steps: list[Callable[[], None]] = [lambda: overhead(llama), lambda: grouping(listener)]
        for step in steps:
            step()
        for count in (500, 2000):
            command = [sys.executable, "-m", "benchmarks.engine", "memory", llama, str(count)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            say(f"peak memory, {count} requests", f"{float(done.stdout.splitlines()[-1]):8.0f} MiB")


if __name__ == "__main__":
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if sys.argv[1:2] == ["memory"]:
        memory(sys.argv[2], int(sys.argv[3]))
    else:
        main()
