"""Time and peak memory from the plan to the scores, as runs grow: `python -m benchmarks.scale [20000 100000 1000000]`.

Each row is a run of a simulated model in a process of its own, then its scoring alone in another one. VIBE's ten tasks
are asked about as many made-up clips as the size needs; BADF's gender and race of `badf_two` are repeated. Processes
have the environment of the command line, and look for cycles of objects as often. Nothing is asserted: the numbers show
the growth. Peak memory is the kernel's high-water mark of the process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equivox.cli import CYCLES_AFTER, ENVIRONMENT
from equivox.core.progress import Event
from equivox.core.scores import ScoringOptions
from equivox.core.task import Task
from equivox.dataset_builders.corpus import Corpus, Sample
from equivox.run.pipeline import execute, rescore
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

SIZES = (20_000, 100_000, 1_000_000)
BENCHMARKS = ("vibe", "badf")
OPTIONS = ScoringOptions(n_resamples=999)


def no_media() -> bytes:
    """Return nothing: simulated models do not listen."""
    return b""


def clips(name: str, n: int, speakers: dict[str, str], group: str) -> Corpus:
    """Return `n` made-up clips of `speakers` (name → group), who all say the same sentences."""
    names = list(speakers)
    samples = []
    for number in range(n):
        speaker, sentence = names[number % len(names)], f"s{number // len(names)}"
        columns = {
            "speaker": speaker,
            "gender": ("female", "male")[number % len(names) % 2],
            group: speakers[speaker],
            "sentence": sentence,
            "emotion": "NEU",
            "text": "Words.",
        }
        samples.append(
            Sample(
                sample_id=f"{speaker}_{sentence}", columns=columns, sha256=f"{number:064x}",
                file_name=f"{number}.wav", problem=None, duration_s=1.0, load=no_media,
            )
        )  # fmt: skip
    return Corpus(name=name, fingerprint=str(n), samples=tuple(samples))


def asked(benchmark: str, size: int) -> tuple[list[Task], dict[str, Corpus]]:
    """Return tasks and corpora that make about `size` requests."""
    if benchmark == "vibe":
        actors = {f"a{n}": ("female", "male")[n % 2] for n in range(91)}
        accents = {f"l{n}": f"accent {n % 6}" for n in range(24)}
        corpora = {
            "crema_d": clips("crema_d", size // 10, actors, "gender"),
            "l2_arctic": clips("l2_arctic", size // 10, accents, "accent"),
        }
        return resolve_tasks("vibe_gender,vibe_accent"), corpora
    factor = max(1, round(20 * size / 19_140))
    tasks = [
        replace(task, sampling=replace(task.sampling, repeats=task.sampling.repeats * factor // 20))
        for task in resolve_tasks("badf_two:gender,badf_two:race")
    ]
    return tasks, {}


def run(benchmark: str, size: int, folder: Path) -> dict[str, Any]:
    """Make a run and return its seconds by stage."""
    stages: dict[str, float] = {}
    start = time.perf_counter()

    def progress(event: Event) -> None:
        stages.setdefault(event.stage, time.perf_counter() - start)

    tasks, corpora = asked(benchmark, size)
    spec = RunSpec(model="simulated:planted,shift=0.2", tasks=tasks, output=folder, options=OPTIONS)
    execute(spec, corpora=corpora, progress=progress)
    ends = [*list(stages.values())[1:], time.perf_counter() - start]
    seconds = {"plan": next(iter(stages.values()))}
    seconds |= {name: end - stages[name] for name, end in zip(stages, ends, strict=True)}
    return {"seconds": seconds, "total": time.perf_counter() - start}


def score(folder: Path) -> dict[str, Any]:
    """Score a run again and return the seconds."""
    start = time.perf_counter()
    rescore(folder, options=OPTIONS)
    return {"total": time.perf_counter() - start}


def peak() -> float:
    """Return the peak memory of this process in MiB; NaN where the kernel does not say."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.is_file() else None
    return int(found[1]) / 1024 if found else float("nan")


def measured(*arguments: object) -> dict[str, Any]:
    """Return what this module measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--worker", *map(str, arguments)]
    done = subprocess.run(command, env=ENVIRONMENT | os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(sizes: Sequence[int], benchmarks: Sequence[str]) -> None:
    """Print a line for each benchmark and size."""
    header = f"{'':5} {'responses':>10}  {'plan → scores':>20}  {'score alone':>20}  seconds by stage"
    sys.stdout.write(header + "\n")
    for benchmark in benchmarks:
        for size in sizes:
            with tempfile.TemporaryDirectory() as scratch:
                whole = measured(benchmark, size, Path(scratch) / "run")
                again = measured("score", 0, Path(scratch) / "run")
            stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in whole["seconds"].items())
            sys.stdout.write(
                f"{benchmark:5} {whole['n']:>10,}  {whole['total']:>9.1f} s {whole['peak']:>5.0f} MiB"
                f"  {again['total']:>9.1f} s {again['peak']:>5.0f} MiB  {stages}\n"
            )
            sys.stdout.flush()


def worker(what: str, size: int, folder: Path) -> None:
    """Measure one thing and print it as JSON."""
    import pyarrow.parquet as pq

    found = score(folder) if what == "score" else run(what, size, folder)
    found["n"] = pq.read_metadata(folder / "plan.parquet").num_rows
    sys.stdout.write(json.dumps(found | {"peak": peak()}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--only", choices=BENCHMARKS)
    parser.add_argument("--worker", nargs=3, metavar=("WHAT", "SIZE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        gc.set_threshold(CYCLES_AFTER)
        worker(given.worker[0], int(given.worker[1]), Path(given.worker[2]))
    else:
        main(given.sizes, (given.only,) if given.only else BENCHMARKS)
