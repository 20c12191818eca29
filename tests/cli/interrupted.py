"""Runs the command line in a process that sends itself a signal at its n-th call of a Python function.

python interrupted.py AT SIGNAL FILE ARGUMENTS...   FILE receives the number of calls.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

from equivox import cli
from equivox.cli import interrupts


def main(at: int, number: int, file: str, arguments: list[str]) -> None:
    calls, listening = 0, False

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, listening
        if not listening:
            listening = event == "return" and frame.f_code is interrupts.listen.__code__
        elif event == "call":
            calls += 1
            if calls == at:
                os.kill(os.getpid(), number)

    # A process that was started in the background ignores interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(count)
    try:
        cli.main(arguments)
    finally:
        sys.setprofile(None)
        with open(file, "w") as written:
            written.write(str(calls))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
