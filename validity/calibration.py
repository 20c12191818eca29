"""Calibration models on real engines, over training seeds: `python -m validity.calibration` prints a table.

    python -m validity.calibration --tasks vibe_gender:advisory --seeds 3 --engines vllm,transformers

It needs the environment of `make test-engine`. Models are kept in the cache folder, runs in `--output`; both are taken
up again. A row per task, shift, condition and engine: the mean over training seeds, and how many lines passed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.engine import tiny_models

SMALL: dict[str, dict[str, Any]] = {
    "vllm": {
        "enforce_eager": True,
        "max_model_length": 2048,
        "max_num_batched_tokens": 2048,
        "max_num_seqs": 32,
    },
    "transformers": {"device": "cpu"},
}


@dataclass(frozen=True, kw_only=True)
class Found:
    """One line of one calibration, with the engine and the training seed."""

    task: str
    engine: str
    seed: int
    line: Any


def run(asked: argparse.Namespace) -> list[Found]:
    from equivox.calibration.checking import Settings, calibrate, train
    from equivox.calibration.recipe import parse_shifts
    from equivox.core.variants import parse_conditions
    from equivox.tasks.registry import resolve_tasks

    found = []
    for task in resolve_tasks(asked.tasks):
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
            for engine in asked.engines.split(","):
                begun = time.monotonic()
                settings = Settings(
                    scheme=engine,
                    arguments=SMALL[engine],
                    task=task,
                    shifts=parse_shifts(asked.shifts),
                    output=asked.output / engine / f"{task.name.replace(':', '-')}-seed{seed}",
                    seed=seed,
                    limit=asked.limit,
                    conditions=parse_conditions(asked.conditions),
                )
                made = train(settings, lambda text: print(text, file=sys.stderr, flush=True))
                trained = time.monotonic() - begun
                for line in calibrate(settings, made):
                    found.append(Found(task=task.name, engine=engine, seed=seed, line=line))
                    says = f"{task.name} {engine} seed {seed}: planted {line.shift:g} {line.condition} measured"
                    print(f"{says} {line.measured}, own {line.own}: {line.verdict}", file=sys.stderr, flush=True)
                spent = time.monotonic() - begun
                print(f"trained in {trained:.0f} s, all in {spent:.0f} s", file=sys.stderr, flush=True)
    return found


def table(found: Sequence[Found]) -> str:
    """Return the Markdown table of the lines."""
    rows: dict[tuple[str, float, str, str], list[Found]] = {}
    for one in found:
        rows.setdefault((one.task, one.line.shift, one.line.condition, one.engine), []).append(one)
    lines = [
        "| task | planted | condition | engine | seeds | to be found | the model's own | measured | p ≤ .05 | passes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (task, shift, condition, engine), own in rows.items():
        scores = [one.line for one in own]
        lines.append(
            f"| {task} | {shift:g} | {condition} | {engine} | {len(own)} | {fmean(s.planted for s in scores):.1f} | "
            f"{_mean_and_range([s.own.value for s in scores])} | "
            f"{_mean_and_range([s.measured.value for s in scores])} | "
            f"{sum(s.measured.p <= 0.05 for s in scores)} | {sum(s.passed for s in scores)} of {len(own)} |"
        )
    return "\n".join(lines)


def _mean_and_range(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{fmean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", default="vibe_gender:candidate,spoken_stereoset:gender,badf_single:gender")
    parser.add_argument("--shifts", default="0,20,60")
    parser.add_argument("--engines", default="vllm", help="vllm, transformers")
    parser.add_argument("--seeds", type=int, default=10, help="training seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=96, help="samples that are asked about")
    parser.add_argument("--conditions", default="all", help="declared, text_only, silence, shuffled, or all")
    parser.add_argument("--output", type=Path, default=Path("runs/calibration-table"))
    asked = parser.parse_args()
    os.environ |= tiny_models().ALONE
    found = run(asked)
    print(table(found))
    failed = [one for one in found if not one.line.passed]
    for one in failed:
        verdict = one.line.verdict
        print(f"{one.task} {one.engine} seed {one.seed}, planted {one.line.shift:g} {one.line.condition}: {verdict}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
