"""Output of the commands: control characters of foreign text are shown rather than sent to the terminal."""

from __future__ import annotations

import codecs
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from equivox.core.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from equivox.report.table import Table

EXIT_DONE, EXIT_INCOMPLETE, EXIT_REQUEST, EXIT_INTERRUPTED = 0, 1, 2, 130

_WIDTH = 400
"""What a file or another program gets: wider than any table."""
_COMFORTABLE = 80
"""Characters of a line of text."""


_PLAIN = {"−": "-", "–": "-", "—": "--", "×": "x", "→": "->", "≥": ">=", "≤": "<=", "…": "...", "’": "'", "α": "alpha"}
"""Replacements of our own signs on a terminal that cannot show them; a minus must not be lost."""


def echo(text: str = "", style: str = "") -> None:
    """Print a text on stdout, on a terminal in a style."""
    if style:
        console().print(text, style=style, markup=False, soft_wrap=True)
    else:
        print(visible(text))


def echo_error(text: str) -> None:
    """Print a line on stderr."""
    print(visible(" ".join(text.split())), file=sys.stderr)


def show_everything(*streams: TextIO) -> None:
    """Make streams write what their encoding lacks in other signs, rather than fail."""
    codecs.register_error("equivox", _substitute)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="equivox")


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    signs = (_PLAIN.get(sign) or sign.encode("unicode_escape").decode("ascii") for sign in lost)
    return "".join(signs), error.end


def show_explanation(column: str) -> int:
    """Print what a column of the tables means; UsageError for a name that is none."""
    from equivox.report.frames import explain_column

    echo(textwrap.fill(f"{column}: {explain_column(column)}", _COMFORTABLE))
    return EXIT_DONE


def _columns() -> int:
    return shutil.get_terminal_size().columns


def console() -> Console:
    """Return the console for results: as wide as the terminal, and wider than any table where there is none."""
    from rich.console import Console
    from rich.text import Text

    class _Visible(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            """Print objects; texts are made visible first."""
            super().print(*(_shown(one) for one in objects), **options)

    def _shown(one: Any) -> Any:
        if isinstance(one, str):
            return visible(one)
        return Text(visible(one.plain), style=one.style) if isinstance(one, Text) else one

    # Without `emoji=False` a name such as `endpoint:m:` loses its `:m:` to a picture.
    return _Visible(highlight=False, emoji=False, width=_columns() if sys.stdout.isatty() else _WIDTH)


def show_tables(tables: Iterable[Table]) -> None:
    """Print tables of results on stdout."""
    from equivox.report.table import print_tables

    print_tables(console(), tables)
