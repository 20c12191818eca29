"""Hide the output of libraries from the terminal, and find the reason for a failure in it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_TAIL = 1 << 16
_REASON = re.compile(r"\b([A-Z]\w*(?:Error|Exception)): (\S.*)")
_one_at_a_time = threading.RLock()
"""A process has one stderr: a thread that hides it waits until another one shows it again."""
_GENERIC = ("See root cause above", "See stack trace", "Engine core initialization failed", "EngineDeadError")


class Noise:
    """The stderr of a library and its child processes, kept in a temporary file."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file

    def reason(self) -> str | None:
        """Return the last reported exception that gives a reason; None if there is none."""
        if self._file is None or self._file.closed:
            return None
        size = os.fstat(self._file.fileno()).st_size
        text = os.pread(self._file.fileno(), _TAIL, max(0, size - _TAIL)).decode("utf-8", "replace")
        for line in reversed(text.splitlines()):
            match = _REASON.search(line)
            if match and not any(words in line for words in _GENERIC):
                return f"{match[1]}: {match[2].strip()}"
        return None

    def close(self) -> None:
        """Delete the output."""
        if self._file is not None:
            self._file.close()


@contextmanager
def quiet() -> Iterator[Noise]:
    """Redirect stderr, including that of processes started meanwhile, to the yielded `Noise`.

    With EQUIVOX_DEBUG set nothing is hidden. Of several threads, one at a time hides stderr; the others wait. The
    output can still be read after the `with` block.
    """
    if debugging():
        yield Noise(None)
        return
    with _one_at_a_time:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it and the processes that write to it outlive this context
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield Noise(file)
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


def debugging() -> bool:
    """Return whether the user asked for all output (EQUIVOX_DEBUG)."""
    return os.environ.get("EQUIVOX_DEBUG", "") not in ("", "0")
