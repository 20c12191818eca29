"""Runs the command line in a process that kills itself at a given moment of its writing."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from equivox import cli
from equivox.run.store import Store

CALLS = ("replace", "fsync", "write", "unlink")
"""The calls of `os` at which what is on disk changes."""


def run_killed(arguments: Sequence[str], kill_at: int, when: str, counted: Any = None) -> None:
    """Run a command with shards of 16 records; kill -9 this process just before or after its n-th change on disk.

    `counted`, a shared value, receives the number of changes.
    """
    (Store.__init__.__kwdefaults__ or {})["shard_rows"] = 16
    calls = 0
    silent = os.open(os.devnull, os.O_WRONLY)

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == kill_at and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if calls == kill_at and when == "torn" and original is write:
                original(given[0], bytes(given[1])[: len(given[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*given, **named)
            if calls == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    write = os.write
    os.dup2(silent, 1)
    for name in CALLS:
        setattr(os, name, dying(getattr(os, name)))
    code = cli.run(list(arguments))
    if counted is not None:
        counted.value = calls
    sys.exit(code)
