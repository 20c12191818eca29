"""The command line for tests: what a command answers, a command that succeeds, and one that is refused in one line."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from equivox import cli


class Cli:
    """Runs commands in this process; a call returns exit code, stdout and stderr."""

    def __init__(self, capture: pytest.CaptureFixture[str], *usual: object) -> None:
        self._capture, self._usual = capture, usual

    def given(self, *usual: object) -> Cli:
        """Return the command line with arguments that stand before those of each call."""
        return Cli(self._capture, *self._usual, *usual)

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(argument) for argument in (*self._usual, *arguments)])
        captured = self._capture.readouterr()
        return code, captured.out, captured.err

    def done(self, *arguments: object) -> str:
        """Return the stdout of a command that succeeds."""
        code, out, err = self(*arguments)
        assert code == 0, f"{arguments}: {err}"
        return out

    def refused(self, *arguments: object) -> str:
        """Return the one line on stderr by which a wrong request is refused; it prints and makes nothing else."""
        words = [*self._usual, *arguments]
        output = next((str(words[n + 1]) for n, word in enumerate(words) if word in ("--output", "-o")), os.curdir)
        was_there = os.path.exists(output)
        code, out, err = self(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert was_there or not os.path.exists(output), output
        return err


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by their columns."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: Sequence[Mapping[str, object]], delimiter: str = ",") -> Path:
    """Write rows as a CSV file whose columns are those of the first row, and return its path."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path
