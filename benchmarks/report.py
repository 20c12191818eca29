"""Time and memory of a report and of a comparison of 109,210 responses each: `python -m benchmarks.report [LIMIT]`.

Two simulated models answer a corpus of tiny look-alike clips; what is timed is the report of one run alone, with
examples and without, and the tests between the two runs. Peak memory is the kernel's high-water mark of each process.
With LIMIT each task asks of so many samples.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPORT = """
import re, sys, time
from pathlib import Path
from equivox.report.page import build_report
start = time.perf_counter()
page = build_report([Path(sys.argv[1])], examples=int(sys.argv[2]), data=sys.argv[3])
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(f"{time.perf_counter() - start:.1f} s, {peak:.0f} MiB, {len(page) / 1e6:.1f} MB of HTML")
"""

LOOK_ALIKE = Path(__file__).parents[1] / "tests" / "sample" / "look_alike.py"

JUDGE = """
import re, sys, time
from pathlib import Path
from equivox.compare.runs import open_comparison
from equivox.compare.ranking import judge
start = time.perf_counter()
found = judge(open_comparison([Path(folder) for folder in sys.argv[1:]]))
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(f"{time.perf_counter() - start:.1f} s, {peak:.0f} MiB, {len(found.tests)} tests")
"""


def main(limit: int | None) -> None:
    """Make the runs, then time the report of one and the comparison of both."""
    from equivox.core.scores import ScoringOptions
    from equivox.dataset_builders import build, open_builder
    from equivox.run.pipeline import execute
    from equivox.run.spec import RunSpec
    from equivox.tasks.registry import resolve_tasks

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for corpus in ("crema_d", "l2_arctic"):
            subprocess.run([sys.executable, LOOK_ALIKE, corpus, str(folder / corpus)], check=True)
            build(open_builder(corpus, folder / corpus), folder / "data")
        for shift, name in (("0.1", "run"), ("0.2", "other")):
            start = time.perf_counter()
            execute(
                RunSpec(
                    model=f"simulated:planted,shift={shift}",
                    tasks=resolve_tasks("vibe_gender,vibe_accent"),
                    limit=limit,
                    data=str(folder / "data"),
                    output=folder / name,
                    options=ScoringOptions(n_resamples=999),
                )
            )
            sys.stdout.write(f"a run: {time.perf_counter() - start:.1f} s\n")
        for examples in (0, 3):
            command = [sys.executable, "-c", REPORT, str(folder / "run"), str(examples), str(folder / "data")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            sys.stdout.write(f"report, {examples} examples of each task and group: {done.stdout}")
        command = [sys.executable, "-c", JUDGE, str(folder / "run"), str(folder / "other")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        sys.stdout.write(f"tests between the two runs: {done.stdout}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(f"peak memory of the run itself: {peak} MiB\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
