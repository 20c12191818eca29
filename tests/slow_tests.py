"""Lists the tests that `make check` leaves out: those that took longer than LONGEST when they were last timed.

    pytest --durations=0 > durations.txt; python tests/slow_tests.py durations.txt

writes the list anew. `tests/conftest.py` marks what it names as slow; a test that it does not name is quick.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_name("slow_tests.txt")
LONGEST = 0.7
"""Seconds, set-up included."""


def without_parameters(node: str) -> str:
    return node.partition("[")[0]


def slow(lines: Iterable[str]) -> list[str]:
    """Return the tests that took too long, of pytest's table of durations."""
    timed = (re.match(r"([0-9.]+)s (?:call|setup) +(\S+)", line) for line in lines)
    return sorted({without_parameters(found[2]) for found in timed if found and float(found[1]) > LONGEST})


if __name__ == "__main__":
    LIST.write_text("\n".join(slow(Path(sys.argv[1]).read_text().splitlines())) + "\n")
