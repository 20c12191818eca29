"""Ctrl-C and SIGTERM end a command at any moment with one line, which says truly whether something is stored."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = ["run", "simulated:planted,shift=0.5", "vibe_gender:advisory", "--data", "sample", "--limit", "24"]
RUN += ["--scoring", "n_resamples=99", "--quiet"]
STORED = "equivox: interrupted; finished responses are stored: repeat the command to resume\n"
NOTHING = "equivox: interrupted; nothing new was stored\n"
FIRST = 20_000
"""Calls of Python functions in the first tenth of a second, in which modules are imported and the command is built."""


def interrupted(at: int, number: int, file: Path, arguments: list[str]) -> tuple[int, str]:
    """Return the exit code and stderr of a command that gets a signal at its `at`-th call; `file` gets its calls."""
    program = [sys.executable, str(Path(__file__).with_name("interrupted.py")), str(at), str(int(number)), str(file)]
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stderr


def check_interrupted(tmp_path: Path, at: int, number: int) -> None:
    """Interrupt a run at a call; it says truly whether something is stored."""
    folder = tmp_path / f"run{at}"
    code, told = interrupted(at, number, tmp_path / "calls", [*RUN, "--output", str(folder)])
    assert (code, told) == (128 + number, STORED if (folder / "manifest.json").exists() else NOTHING), at
    assert [path.name for path in folder.rglob(".writing-*")] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_ends_while_it_is_still_being_built(tmp_path: Path, number: int) -> None:
    check_interrupted(tmp_path, FIRST // 2, number)


@pytest.mark.long
def test_a_run_ends_wherever_it_is_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "calls"
    for folder in ("first", "whole"):  # the first run makes more calls: it compiles modules and fills caches
        assert interrupted(0, 0, file, [*RUN, "--output", str(tmp_path / folder)]) == (0, "")
    calls = int(file.read_text())
    rng = random.Random(7)
    moments = [rng.randrange(1, FIRST) for _ in range(14)] + [rng.randrange(FIRST, calls) for _ in range(26)]
    for moment in moments:
        check_interrupted(tmp_path, moment, rng.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM]))


INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"
SWALLOWED = f"""
class Swallowing:
    def __del__(self):
        {INTERRUPT}

def command(arguments):
    Swallowing()
    time.sleep(60)
"""
CLOSES_WITHOUT_END = f"""
def command(arguments):
    try:
        {INTERRUPT}
    finally:
        {INTERRUPT}
        time.sleep(60)
"""
IGNORED = f"""
signal.signal(signal.SIGINT, signal.SIG_IGN)
def command(arguments):
    {INTERRUPT}
    return 0
"""


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [(SWALLOWED, 130, NOTHING), (CLOSES_WITHOUT_END, 130, NOTHING), (IGNORED, 0, "")],
    ids=[
        "an interrupt that a destructor swallows comes again",
        "the second interrupt ends a command that closes without end",
        "a signal that is ignored stays ignored",
    ],
)
def test_an_interrupt_ends_a_command_that_does_not_ignore_it(command: str, code: int, told: str) -> None:
    listens = "import os, signal, sys, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = f"{listens}{command}\nfrom equivox import cli\ncli._run = command\ncli.main([])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (code, told)
