"""What the vLLM engine costs beside bare vLLM: `python -m benchmarks.engine` in `.venv-engine` (make test-engine).

Five hundred prompts to a tiny random-weight Llama, in one process and in turns: through one bare `LLM.chat`, through
the engine, and through the engine with every response stored as a run stores it. Then speech, from clips on disk at
44.1 kHz: beside a bare `LLM.chat` that is given the files and decodes them itself, and beside one whose messages were
ready before the clock started. Then speech with and without grouping by clip, and memory at 500 and at 2,000 requests.

An overhead is the median over rounds of the ratio within a round; in brackets the ratio of the least of each. Rounds
are short and many, and the order of the variants turns round after each with the bare chat in the middle, so that a
machine that becomes slower or faster favours none. Tiny models on a CPU are the worst case: on a real one the model
itself takes nearly all the time. `python -m benchmarks.engine text` runs the first part alone, `larger` the
same with a Llama of 8 layers and 512 dimensions, `speech` the second part. `dialogues` has 2,000 dialogues of three
turns beside one bare `LLM.chat` of the same 6,000 requests, which knows all answers before it begins.
"""

from __future__ import annotations

import base64
import gc
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from equivox.core.media import sha256
from equivox.core.progress import STOP_AFTER, until_outage
from equivox.core.task import Sampling
from equivox.engines import Labels, MediaPart, Request, Response
from equivox.run.live import Speed
from equivox.run.store import Store, response_schema

ARGUMENTS = {
    "dtype": "bfloat16",
    "enforce_eager": True,
    "max_model_length": 2048,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 128,
}
PROMPTS, TOKENS, ROUNDS = 500, 16, 24
CLIPS, PER_CLIP = 24, 6
SECONDS = 5
DIALOGUES = 2_000
TALK = f"""\
name: talk
table: talk.csv
group: gender
swap: {{name: {{female: [Anna], male: [Jonas]}}}}
questions:
  - name: invite
    sampling: {{max_new_tokens: {TOKENS}, temperature: 1.0}}
    text: "{{text}} Should we invite {{name}}?"
    attributes: [{{name: decision, asks: the decision, options: [invite, reject]}}]
    turns: ["Are you sure about {{name}}?", "Decide again."]
"""
LARGER = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8}


class Cost(NamedTuple):
    """Seconds on the clock, and of the processor in this process."""

    wall: float
    work: float


def tiny(folder: str, name: str) -> str:
    return str(tiny_models().make(Path(folder), name))


def larger(folder: str) -> str:
    place = Path(folder) / "larger"
    tiny_models().llama(place, **LARGER)
    return str(place)


def tiny_models() -> Any:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "engines" / "real"))
    import tiny_models

    return tiny_models


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


def through_engine(engine: Any, requests: Sequence[Request]) -> tuple[float, int]:
    """Return seconds to the first response, and the tokens generated."""
    begin, first, tokens = time.perf_counter(), 0.0, 0
    for response in engine.generate(iter(requests)):
        first = first or time.perf_counter() - begin
        if response.error is not None:
            raise RuntimeError(response.error)
        tokens += response.completion_tokens or 0
    return first, tokens


def through_store(responses: Iterator[Response], keys: Iterable[str], store: Store) -> None:
    """Store the responses to some keys as `equivox.run.generating.generate` does; RuntimeError if one is missing.

    The rounds share `store`: as in a run, its journal becomes a shard every 4,096 responses.
    """
    unanswered = dict.fromkeys(keys)
    speed = Speed()
    for response in until_outage(responses, "benchmark", STOP_AFTER):
        if response.error is not None:
            raise RuntimeError(response.error)
        del unanswered[response.key]
        store.append({**vars(response), "error": response.error})
        speed.count(response.completion_tokens or 0)
    if unanswered:
        raise RuntimeError(f"{len(unanswered)} requests were not answered")


def through_bare_chat(engine: Any, conversations: Sequence[Any], requests: Sequence[Request]) -> None:
    from vllm import SamplingParams

    params = [
        SamplingParams(temperature=1.0, max_tokens=entry.sampling.max_new_tokens, seed=entry.seed) for entry in requests
    ]
    engine._llm.chat(conversations, params, use_tqdm=False)


def in_turns(engine: Any, variants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, list[Cost]]:
    """Return what each variant took in each round; no round finds answers or clips of the one before in a cache."""
    costs: dict[str, list[Cost]] = {name: [] for name in variants}
    for turn in range(rounds):
        for name in list(variants)[:: 1 if turn % 2 == 0 else -1]:
            engine._llm.reset_prefix_cache()
            engine._llm.llm_engine.reset_mm_cache()
            wall, work = time.perf_counter(), time.process_time()
            variants[name]()
            costs[name].append(Cost(time.perf_counter() - wall, time.process_time() - work))
    return costs


def say_overheads(costs: Mapping[str, Sequence[Cost]], bare: str) -> None:
    """Print each variant's median, and by what share it lies above `bare` in wall and in processor time."""
    for name, taken in costs.items():
        over = (
            "" if name == bare else f"   wall {_over(taken, costs[bare], 0)}   processor {_over(taken, costs[bare], 1)}"
        )
        say(name, f"{statistics.median(cost.wall for cost in taken):8.2f} s{over}")


def _over(mine: Sequence[Cost], bare: Sequence[Cost], kind: int) -> str:
    median = statistics.median(own[kind] / its[kind] for own, its in zip(mine, bare, strict=True))
    least = min(own[kind] for own in mine) / min(its[kind] for its in bare)
    return f"{100 * (median - 1):+5.1f} % (least {100 * (least - 1):+5.1f} %)"


def text_overhead(model: str) -> None:
    from equivox.engines.vllm import VLLMEngine

    requests = [request(n, f"Tell me story number {n}.") for n in range(PROMPTS)]
    conversations = [[{"role": "user", "content": entry.text}] for entry in requests]
    keys = [entry.key for entry in requests]
    with (
        VLLMEngine.from_args({"model_name": model} | ARGUMENTS) as engine,
        tempfile.TemporaryDirectory() as scratch,
        Store(Path(scratch), response_schema()) as store,
    ):
        through_engine(engine, requests[:300])
        bare = f"one bare LLM.chat, {PROMPTS} prompts"
        costs = in_turns(
            engine,
            {
                "the engine": lambda: through_engine(engine, requests),
                bare: lambda: through_bare_chat(engine, conversations, requests),
                "the engine, every response stored": lambda: through_store(
                    engine.generate(iter(requests)), keys, store
                ),
            },
        )
        say_overheads(costs, bare)
        engine._llm.reset_prefix_cache()
        begin = time.perf_counter()
        first, tokens = through_engine(engine, requests)
        say("first response after", f"{first:8.2f} s")
        say("tokens generated per second", f"{tokens / (time.perf_counter() - begin):8.0f}")


def speech_overhead(model: str) -> None:
    from equivox.engines.messages import chat_messages
    from equivox.engines.vllm import VLLMEngine

    with (
        VLLMEngine.from_args({"model_name": model} | ARGUMENTS) as engine,
        tempfile.TemporaryDirectory() as scratch,
        Store(Path(scratch) / "responses", response_schema()) as store,
    ):
        clips = [clip_on_disk(Path(scratch), number) for number in range(CLIPS)]
        requests = [
            request(c * PER_CLIP + t, f"Question {t}?", clips[c]) for c in range(CLIPS) for t in range(PER_CLIP)
        ]
        ready, keys = [chat_messages(entry) for entry in requests], [entry.key for entry in requests]
        through_engine(engine, requests[: 2 * PER_CLIP])
        bare, prepared = (f"one bare LLM.chat, {len(requests)} prompts, {kind}" for kind in ("files", "ready messages"))
        costs = in_turns(
            engine,
            {
                bare: lambda: through_bare_chat(engine, [files_as_messages(e) for e in requests], requests),
                "the engine, speech": lambda: through_engine(engine, requests),
                prepared: lambda: through_bare_chat(engine, ready, requests),
                "the engine, speech, every response stored": lambda: through_store(
                    engine.generate(iter(requests)), keys, store
                ),
            },
            rounds=ROUNDS // 2,
        )
        for reference in (bare, prepared):
            say(f"beside {reference}:", "")
            say_overheads(costs, reference)


def dialogue_overhead(model: str, folder: Path) -> None:
    import pyarrow as pa

    from equivox.cli import CYCLES_AFTER
    from equivox.engines.messages import chat_of
    from equivox.engines.vllm import VLLMEngine
    from equivox.run.generating import dialogues
    from equivox.run.pipeline import open_corpora
    from equivox.run.plan import make_plan
    from equivox.run.spec import RunSpec
    from equivox.tasks.files import load_task_file

    texts = [f'"{{name}} has worked for us as number {row}."' for row in range(DIALOGUES // 2)]
    (folder / "talk.csv").write_text("\n".join(["text", *texts]))
    (folder / "talk.yaml").write_text(TALK)
    tasks = RunSpec.typed("vllm", load_task_file(folder / "talk.yaml"), folder / "run").varied
    with closing(VLLMEngine.from_args({"model_name": model} | ARGUMENTS)) as engine:
        plan = make_plan(tasks, open_corpora(tasks, None, {}), engine.identity)
        rows = plan.pending(pa.array([], pa.string()))
        asked: dict[str, Request] = {}

        def noted(requests: Iterable[Request]) -> Iterator[Request]:
            for entry in requests:
                asked[entry.key] = entry
                yield entry

        def talk() -> None:
            gc.set_threshold(CYCLES_AFTER)  # as the command line does
            with tempfile.TemporaryDirectory() as scratch, Store(Path(scratch), response_schema()) as store:
                answers = dialogues(plan, rows, store, lambda requests: engine.generate(noted(requests)))
                through_store(answers, plan.table["key"].take(rows).to_pylist(), store)
            gc.set_threshold(usual)

        usual = gc.get_threshold()[0]
        talk()
        ordered = [asked[key] for key in plan.table["key"].take(rows).to_pylist()]
        chats = [chat_of(entry, [], None) for entry in ordered]
        bare = f"one bare LLM.chat, {len(ordered)} prompts"
        costs = in_turns(
            engine,
            {bare: lambda: through_bare_chat(engine, chats, ordered), "dialogues, every response stored": talk},
            rounds=ROUNDS // 2,
        )
        say_overheads(costs, bare)


def files_as_messages(entry: Request) -> list[dict[str, Any]]:
    """Return the request as a user of bare vLLM would write it: the bytes of the files, which vLLM decodes."""
    content: list[dict[str, Any]] = [
        {"type": "input_audio", "input_audio": {"data": base64.b64encode(part.load()).decode(), "format": "wav"}}
        for part in entry.media
    ]
    return [{"role": "user", "content": [*content, {"type": "text", "text": entry.text}]}]


def memory(model: str, count: int) -> None:
    """Print this process's peak memory after `count` requests; vLLM's own memory is in it."""
    from equivox.engines.vllm import VLLMEngine

    with closing(VLLMEngine.from_args({"model_name": model} | ARGUMENTS)) as engine:
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
    with closing(VLLMEngine.from_args(arguments)) as engine:
        through_engine(engine, [request(0, "Who?", clips[0], tokens=2)])
        for _ in range(5):
            for label, order in zip(taken, (grouped, scattered), strict=True):
                engine._llm.reset_prefix_cache()
                engine._llm.reset_mm_cache()
                requests = [request(n, f"Question {t}?", clips[c], tokens=2) for n, (c, t) in enumerate(order)]
                begin = time.perf_counter()
                through_engine(engine, requests)
                taken[label].append(time.perf_counter() - begin)
    for label, seconds in taken.items():
        say(f"{CLIPS} clips x {PER_CLIP} prompts, {label}", f"{min(seconds):8.2f} s")


def clip(number: int, rate: int = 16_000, seconds: int = 10) -> MediaPart:
    import numpy as np
    import soundfile

    buffer = io.BytesIO()
    wave = np.random.default_rng(number).uniform(-0.3, 0.3, seconds * rate)
    soundfile.write(buffer, wave, rate, format="WAV")
    data = buffer.getvalue()
    return MediaPart(kind="audio", sha256=sha256(data), name=f"{number}.wav", load=lambda: data)


def clip_on_disk(folder: Path, number: int) -> MediaPart:
    made = clip(number, rate=44_100, seconds=SECONDS)
    path = folder / made.name
    path.write_bytes(made.load())
    return MediaPart(kind="audio", sha256=made.sha256, name=made.name, load=path.read_bytes)


def say(what: str, value: str) -> None:
    sys.stdout.write(f"{what:<58}{value}\n")
    sys.stdout.flush()


def main(parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        steps: dict[str, Callable[[], None]] = {
            "text": lambda: text_overhead(tiny(folder, "llama")),
            "larger": lambda: text_overhead(larger(folder)),
            "speech": lambda: speech_overhead(tiny(folder, "qwen2audio")),
            "dialogues": lambda: dialogue_overhead(tiny(folder, "llama"), Path(folder)),
            "grouping": lambda: grouping(tiny(folder, "qwen2audio")),
            "peak": lambda: peaks(tiny(folder, "llama")),
        }
        for part in parts or ("text", "speech", "dialogues", "grouping", "peak"):
            steps[part]()


def peaks(model: str) -> None:
    for count in (500, 2000):
        command = [sys.executable, "-m", "benchmarks.engine", "memory", model, str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        say(f"peak memory, {count} requests", f"{float(done.stdout.splitlines()[-1]):8.0f} MiB")


if __name__ == "__main__":
    for name, value in tiny_models().ALONE.items():
        os.environ.setdefault(name, value)
    if sys.argv[1:2] == ["memory"]:
        memory(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1:])
