"""How often a calibration's verdict on the score is right: `python -m validity.calibration_verdicts` prints a table.

    python -m validity.calibration_verdicts --tasks spoken_stereoset:gender --runs 40

Simulated models stand for the engine and for the model's own probabilities, in the design of a calibration. With equal
shifts a verdict should pass; with unequal ones it should fail. A row per bias of the engine, a column per bias of the
model: the share of pairs of runs that pass.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equivox.core.scores import Score

SHIFTS = (0, 10, 20, 40, 60)
MEASURED_SEED, OWN_SEED = 1000, 2000


def verdicts(name: str, shifts: Sequence[float], runs: int, own_runs: int, limit: int) -> str:
    """Return the Markdown table of one task."""
    from equivox.calibration.checking import estimate, times_drawn
    from equivox.calibration.recipe import as_share, calibration_task
    from equivox.calibration.verdicts import scored
    from equivox.dataset_builders.corpus import SAMPLE
    from equivox.run.pipeline import execute
    from equivox.run.spec import RunSpec
    from equivox.tasks.registry import resolve_tasks

    (task,) = resolve_tasks(name)

    def run(shift: float, seed: int, times: int = 1) -> list[Score]:
        asked = calibration_task(task, times)
        model = f"{as_share(shift)}&seed={seed}"
        with tempfile.TemporaryDirectory() as folder:
            return execute(
                RunSpec(model=model, tasks=[asked], data=SAMPLE, output=Path(folder), limit=limit, seed=seed)
            )

    found = {shift: [run(shift, MEASURED_SEED + seed) for seed in range(runs)] for shift in shifts}
    measured = {shift: [estimate(scores, task) for scores in alike] for shift, alike in found.items()}
    asked = next(score.coverage.requested for score in found[shifts[0]][0] if score.is_whole)
    times = times_drawn(asked)
    own = {shift: [estimate(run(shift, OWN_SEED + seed, times), task) for seed in range(own_runs)] for shift in shifts}
    columns = " | ".join(f"the model's is {shift:g}" for shift in shifts)
    lines = [
        f"`{name}`: {runs} runs of {asked} answers, {own_runs} of {asked * times} of the model's own",
        "",
        f"| the engine's bias | measured, mean (SD) | {columns} |",
        "|---|---|" + "---|" * len(shifts),
    ]
    for shift in shifts:
        values = [one.value for one in measured[shift]]
        passed = [
            fmean(bool(scored(one, told).passed) for one in measured[shift] for told in own[other]) for other in shifts
        ]
        cells = " | ".join(f"{100 * share:.0f} %" for share in passed)
        lines.append(f"| {shift:g} | {fmean(values):.1f} ({stdev(values):.1f}) | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", default="vibe_gender:candidate,spoken_stereoset:gender")
    parser.add_argument("--shifts", default=",".join(map(str, SHIFTS)))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--own-runs", type=int, default=10)
    parser.add_argument("--limit", type=int, default=96)
    asked = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    from equivox.calibration.recipe import parse_shifts

    for name in asked.tasks.split(","):
        print(verdicts(name, parse_shifts(asked.shifts), asked.runs, asked.own_runs, asked.limit), flush=True)


if __name__ == "__main__":
    main()
