"""Lists the tests that `make check` leaves out: those that took longer than LONGEST when they were last timed, and the
files whose shared fixtures took longer than LONGEST_FIXTURE.

    pytest --durations=0 > durations.txt; python tests/slow_tests.py durations.txt

writes the list anew. `tests/conftest.py` marks what it names as slow; a test that it does not name is quick.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_name("slow_tests.txt")
LONGEST = 0.1
"""Seconds of one test, set-up included."""
LONGEST_FIXTURE = 1.0
"""Seconds of a set-up. It is shared: were only the test that paid for it left out, the next one would pay."""

PROMISES = (
    "tests/run/test_resume.py",
    "tests/run/test_store.py",
    "tests/run/test_damage.py",
    "tests/statistics/test_designs.py",
    "tests/statistics/test_groups.py",
    "tests/statistics/test_permutation.py",
    "tests/statistics/test_runs.py",
)
"""Files that `make check` runs whole, however long they take: no answer is lost, nothing stale is scored, and the
estimate, the interval and the test hold the same things equal."""


def without_parameters(node: str) -> str:
    return node.partition("[")[0]


def file_of(node: str) -> str:
    return node.partition("::")[0]


def slow(lines: Iterable[str]) -> list[str]:
    """Return the tests and files that took too long, of pytest's table of durations."""
    timed = [re.match(r"([0-9.]+)s (call|setup) +(\S+)", line) for line in lines]
    seconds = [(float(found[1]), found[2], without_parameters(found[3])) for found in timed if found]
    files = {file_of(node) for spent, stage, node in seconds if stage == "setup" and spent > LONGEST_FIXTURE}
    left_out = files | {node for spent, _, node in seconds if spent > LONGEST and file_of(node) not in files}
    return sorted(node for node in left_out if file_of(node) not in PROMISES)


if __name__ == "__main__":
    LIST.write_text("\n".join(slow(Path(sys.argv[1]).read_text().splitlines())) + "\n")
