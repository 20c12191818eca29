"""Keeps a library's noise off the terminal, and finds in it why something failed."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_TAIL = 1 << 16
_REASON = re.compile(r"\b([A-Z]\w*(?:Error|Exception)): (\S.*)")
_GENERIC = ("See root cause above", "See stack trace", "Engine core initialization failed", "EngineDeadError")


class Noise:
    """What a library and its child processes wrote to stderr; kept in a file without a name."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file

    def reason(self) -> str | None:
        """Return the last exception reported that says more than that something failed; None if there is none."""
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
        """Throw it away."""
        if self._file is not None:
            self._file.close()


@contextmanager
def quiet() -> Iterator[Noise]:
    """Send stderr, that of processes started meanwhile included, to the noise that is yielded.

    With EQUIVOX_DEBUG set nothing is hidden. The noise stays readable after the context is left.
    """
    if debugging():
        yield Noise(None)
        return
    file = tempfile.TemporaryFile()  # noqa: SIM115 - outlives this context, as do the processes that write to it
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
    """Whether the user wants to see everything."""
    return os.environ.get("EQUIVOX_DEBUG", "") not in ("", "0")


def one_line(error: BaseException | str, limit: int = 300) -> str:
    r"""Return an error's message on one line, shortened.

    >>> one_line("too\n  long", limit=6)
    'too l…'
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
