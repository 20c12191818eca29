"""Errors that another program's command line shows in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from equivox.core.errors import EquivoxError


class Stop(EquivoxError, SystemExit):
    """An error that ends another program's command with one line on stderr and exit code 1.

    In Python it is an `EquivoxError` like any other. Without it, the other program would print a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"equivox: {' '.join(message.split())}"


@contextmanager
def one_line() -> Iterator[None]:
    """Turn any equivox error into one that another program's command line shows as one line."""
    try:
        yield
    except Stop:
        raise
    except EquivoxError as error:
        raise Stop(str(error)) from error
