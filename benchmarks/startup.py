"""How long commands that need no model take: `python -m benchmarks.startup`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "equivox --help": [sys.executable, "-m", "equivox", "--help"],
    "equivox tasks list": [sys.executable, "-m", "equivox", "tasks", "list"],
    "equivox tasks show vibe_gender:story": [sys.executable, "-m", "equivox", "tasks", "show", "vibe_gender:story"],
}


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main(rounds: int = 9) -> None:
    """Run every command in turn, `rounds` times after a warm-up, and print medians and ratios to bare Python."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            elapsed = seconds(command)
            if number:
                taken[name].append(elapsed)
    bare = statistics.median(taken["python -c pass"])
    for name, values in taken.items():
        median = statistics.median(values)
        sys.stdout.write(f"{name:<40}{1000 * median:7.0f} ms   {median / bare:5.1f} x bare Python\n")


if __name__ == "__main__":
    main()
