"""Time of commands that need no model, and cost of imports: `python -m benchmarks.startup`.

`equivox --help` takes at most six times as long as `python -c pass` (4.9 with Python 3.11 and typer 0.29;
typer alone takes 4.1).

Run it in the environment whose adapters are asked about: an import that is not installed there is skipped, and said so.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "equivox --help": [sys.executable, "-m", "equivox", "--help"],
    "equivox tasks": [sys.executable, "-m", "equivox", "tasks"],
    "equivox tasks vibe_gender:story": [sys.executable, "-m", "equivox", "tasks", "vibe_gender:story"],
}

IMPORTS = {
    "import equivox": ("equivox", "import equivox"),
    "from equivox import measure": ("equivox", "from equivox import measure"),
    "from equivox.tasks import ALL_TASKS": ("equivox", "from equivox.tasks import ALL_TASKS"),
    "metrics of plain columns": ("equivox", "from equivox.metrics.ntvd.columns import METRIC"),
    "import evaluate": ("evaluate", "import evaluate"),
    "module of evaluate": ("evaluate", "import equivox.metrics.evaluate_module"),
    "import huggingface_hub": ("huggingface_hub", "import huggingface_hub; huggingface_hub.HfApi"),
    "uploads to the Hub": (
        "huggingface_hub",
        "import equivox.integrations.hub.remote; from huggingface_hub import HfApi",
    ),
    "import lighteval.pipeline": ("lighteval", "import lighteval.pipeline"),
    "TASKS_TABLE for lighteval": ("lighteval", "from equivox.tasks import TASKS_TABLE"),
}
"""The imports that are timed: the package that each needs, and the statement."""


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main(rounds: int = 9) -> None:
    """Run everything in turn, `rounds` times after a warm-up, and print medians and ratios to bare Python."""
    timed = dict(COMMANDS)
    skipped = []
    for name, (package, statement) in IMPORTS.items():
        if importlib.util.find_spec(package) is None:
            skipped.append(f"{name}: {package} is not installed here")
        else:
            timed[name] = [sys.executable, "-c", statement]
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for number in range(rounds + 1):
        for name, command in timed.items():
            elapsed = seconds(command)
            if number:
                taken[name].append(elapsed)
    bare = statistics.median(taken["python -c pass"])
    for name, values in taken.items():
        median = statistics.median(values)
        sys.stdout.write(f"{name:<40}{1000 * median:7.0f} ms   {median / bare:5.1f} x bare Python\n")
    for line in skipped:
        sys.stdout.write(f"skipped, {line}\n")


if __name__ == "__main__":
    main()
