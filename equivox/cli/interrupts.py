"""How a command ends when it is interrupted: one line on stderr, and the exit code that shells use.

The first Ctrl-C or SIGTERM raises KeyboardInterrupt, so that all that is open is closed and what was finished is
stored. The second one, or one while no command runs that could close anything, ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_AGAIN_S = 0.05
"""Seconds after which an interrupt that was swallowed comes again."""


class _State:
    running = False
    """Whether a command runs: it then ends by KeyboardInterrupt."""
    heard: int | None = None
    """The signal that ends it."""
    told = False
    """Whether the user has been told."""


def listen() -> None:
    """Let SIGINT and SIGTERM end this process; a signal that it was started to ignore stays ignored."""
    sys.unraisablehook = _unraisable
    signal.signal(signal.SIGALRM, _hear)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)


def begin() -> None:
    """Note that a command runs, and that it has stored nothing yet."""
    _written().clear()
    _State.heard, _State.told = None, False
    _State.running = True


def end() -> None:
    """Note that the command has ended: nothing catches a KeyboardInterrupt any more."""
    _State.running = False


def tell() -> int:
    """Say in one line that the command was interrupted and whether something is stored; return the exit code."""
    end()
    if not _State.told:
        _State.told = True
        print(_line(), file=sys.stderr, flush=True)
    return 128 + (_State.heard or signal.SIGINT)


def _line() -> str:
    stored = "nothing new was stored"
    if any(path.exists() for path in _written()):
        stored = "finished responses are stored: repeat the command to resume"
    return f"equivox: interrupted; {stored}"


def _written() -> set[Path]:
    """Return the files that this process stored or began to; before their module is imported there are none."""
    found: set[Path] = getattr(sys.modules.get("equivox.core.files"), "WRITTEN", set())
    return found


def _hear(number: int, _: FrameType | None) -> None:
    first = _State.heard is None
    _State.heard = _State.heard or number
    if _State.running and (first or number == signal.SIGALRM):
        raise KeyboardInterrupt
    if not _State.told:
        with suppress(OSError):
            os.write(2, f"{_line()}\n".encode())  # Python's stderr may be in use below this handler
    os._exit(128 + _State.heard)


def _unraisable(unraisable: Any) -> None:
    """Let an interrupt come again that was swallowed, because it arrived in a destructor or in a callback of C."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(unraisable)
