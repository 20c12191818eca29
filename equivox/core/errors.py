"""The errors that equivox raises on purpose.

The user can fix a `UsageError` (exit code 2): its message says what is wrong, what was received and what to do.
A `RunError` stops a run (exit code 1); everything finished before it is on disk.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from pathlib import Path


class EquivoxError(Exception):
    """Base class of all errors raised on purpose; `exit_code` is what the command line exits with."""

    exit_code = 1


class UsageError(EquivoxError, ValueError):
    """A command or a call that cannot be done; its message says what is wrong, what was given and what to do."""

    exit_code = 2


def __getattr__(name: str) -> type[UsageError]:
    """Return the class under its name of earlier versions; it goes with the next release."""
    if name != "RequestError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("RequestError is called UsageError", DeprecationWarning, stacklevel=2)
    return UsageError


class RunError(EquivoxError, RuntimeError):
    """A run stopped half-way; everything finished before is stored."""

    exit_code = 1


class StorageError(RunError):
    """The disk refused a write (full, read-only, over quota); what was stored before is whole."""


class DamageError(UsageError):
    """A file of a run is not what was written: cut short, changed or foreign; `why` says so of the file `path`."""

    def __init__(self, message: str, path: Path, why: str) -> None:
        super().__init__(message)
        self.path, self.why = path, why


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `"; did you mean a, b or c"` for the known words nearest to `word`, or `""` when none is near.

    >>> nearest("vibe_gendr:story", ["vibe_gender:story", "vibe_accent:story", "genres:cs"])
    '; did you mean vibe_gender:story or vibe_accent:story'
    >>> nearest("qqq", ["vibe_gender:story"])
    ''
    """
    matches = difflib.get_close_matches(word, list(known), n=3, cutoff=0.5)
    if not matches:
        return ""
    joined = matches[0] if len(matches) == 1 else f"{', '.join(matches[:-1])} or {matches[-1]}"
    return f"; did you mean {joined}"


def one_line(error: BaseException | str, limit: int = 300) -> str:
    r"""Return an error's message on one line, shortened.

    >>> one_line("too\n  long", limit=6)
    'too l…'
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
