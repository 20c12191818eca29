"""Time and memory of a report of 100,000 responses: `python -m benchmarks.report`.

A reference model answers a corpus of tiny look-alike clips; what is timed is the report alone, with examples and
without. Peak memory is the kernel's high-water mark of the report's own process.
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


def main() -> None:
    """Make the run, then time its report."""
    from equivox.dataset_builders import build, open_builder
    from equivox.dataset_builders.look_alike import make_crema_d, make_l2_arctic
    from equivox.run import RunSpec, execute
    from equivox.scores import ScoringOptions

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for corpus, make in (("crema_d", make_crema_d), ("l2_arctic", make_l2_arctic)):
            make(folder / corpus)
            build(open_builder(corpus, folder / corpus), folder / "data")
        start = time.perf_counter()
        execute(
            RunSpec(
                model="reference:planted?shift=0.1",
                tasks="vibe_gender,vibe_accent",
                data=str(folder / "data"),
                output=folder / "run",
                options=ScoringOptions(n_resamples=999),
            )
        )
        sys.stdout.write(f"the run, 109,210 responses: {time.perf_counter() - start:.1f} s\n")
        for examples in (0, 3):
            command = [sys.executable, "-c", REPORT, str(folder / "run"), str(examples), str(folder / "data")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            sys.stdout.write(f"report, {examples} examples of each task and group: {done.stdout}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(f"peak memory of the run itself: {peak} MiB\n")


if __name__ == "__main__":
    main()
