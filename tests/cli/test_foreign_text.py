"""What a server or a corpus says reaches the terminal, CSV files and LaTeX as text, and does nothing there."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from commands import Cli
from hypothesis import given
from hypothesis import strategies as st

from equivox import FunctionEngine, ScoringOptions, measure
from equivox.cli.output import console
from equivox.core.progress import Event
from equivox.core.text import inert, visible
from equivox.engines import Request, Response
from equivox.report.progress_bars import progress_bars
from equivox.report.table import Table, print_tables

ESCAPES = ("\x1b[2J", "\x1b]0;title\x07", "\u202e", "\u2066", "\x9b31m", "\x7f", "\r", "\x00", "\u2028")
FORMULA = "=cmd|'/C calc'!A0"


@given(st.text())
def test_what_is_shown_has_no_control_characters(text: str) -> None:
    shown = visible(text)
    assert all(sign.isprintable() or sign in "\n\t\u200c\u200d\u200e\u200f\u061c" or sign.isspace() for sign in shown)
    assert not set(shown) & {"\r", "\x1b", "\x9b", "\u2028", "\u2029", "\x85", "\x0b", "\x0c"}
    assert visible(shown) == shown


@given(st.text())
def test_no_cell_is_a_formula(text: str) -> None:
    assert not inert(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert inert(text) in {text, f"'{text}"}


class Hostile(FunctionEngine):
    """Fails with escapes in its errors."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for number, request in enumerate(requests):
            if number % 6 == 5:
                error = f"told you {ESCAPES[number // 6 % len(ESCAPES)]} so"
                yield Response(key=request.key, text=None, error=error)
            else:
                words = ("nurse", "teacher", "doctor")[number % 3]
                yield Response(key=request.key, text=f"A {words} called Kim.", media_items=1)


def test_errors_of_a_server_are_shown_and_not_obeyed(tmp_path: Path, equivox: Cli) -> None:
    engine = Hostile(lambda request: "", name="hostile", revision="1")
    measure(
        engine,
        "vibe_gender:story",
        data="sample",
        limit=96,
        output=tmp_path / "run",
        options=ScoringOptions(n_resamples=99),
    )
    for command in (["status", tmp_path / "run"], ["score", tmp_path / "run", "--scoring", "n_resamples=99"]):
        _, out, err = equivox(*command)
        assert "told you" in out
        assert [sign for sign in ESCAPES if sign in (out + err)] == []
    assert "\\x1b[2J" in out and "\\u202e" in out


def test_a_group_named_like_a_formula_is_text_in_every_csv(
    clip_corpus: Callable[..., Path], tmp_path: Path, equivox: Cli
) -> None:
    task = clip_corpus(groups=(FORMULA.replace("/", "-").replace("'", ""), "male"))
    equivox("run", "simulated:random", task, "-o", tmp_path / "run", "--scoring", "n_resamples=99")
    equivox("compare", tmp_path / "run", "--tables", tmp_path / "csv", "--resamples", 99)
    files = [*tmp_path.glob("run/tables/**/*.csv"), *tmp_path.glob("csv/*.csv")]
    cells = []
    for file in files:
        with file.open(newline="", encoding="utf-8") as opened:
            cells += [cell for row in csv.reader(opened) for cell in row]
    assert any("=cmd" in cell for cell in cells)
    starts = [
        cell for cell in cells if cell.startswith(("=", "+", "@", "\t")) or (cell[:1] == "-" and not _number(cell))
    ]
    assert starts == []


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_no_part_of_a_name_becomes_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    told = console()
    told.print("endpoint:m: not known :smile:", markup=False)
    table = Table(caption=":m: one", columns=("model",), align="l", rows=[["a:m:b [red]c"]], remarks=[":m: two"])
    print_tables(told, [table])
    out = capsys.readouterr().out
    assert all(text in out for text in ("endpoint:m: not known :smile:", ":m: one", "a:m:b [red]c", ":m: two"))


def test_a_bar_shows_the_name_of_a_model_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers stand in square brackets, and `[/v1]` would close a tag that nobody opened."""
    monkeypatch.setattr(sys, "stderr", shown := io.StringIO())
    monkeypatch.setattr(shown, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with progress_bars(quiet=False, title="m,base_url=[a,b] [/v1] :m:") as progress:
        progress(Event("generate", 1, 2, waiting="[/gpu]"))
        progress(Event("generate", 2, 2, waiting="[/gpu]"))
    assert "m,base_url=[a,b] [/v1] :m: generate" in shown.getvalue() and "[/gpu]" in shown.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_a_terminal_without_our_signs_loses_no_minus(encoding: str) -> None:
    code = (
        "import sys; sys.stdout.reconfigure(encoding=sys.argv[1], errors='strict');"
        "from equivox import cli; from equivox.cli.output import console;"
        "cli.run(['tasks', 'show', 'vibe_gender:story']); console().print('−2.5 – 3 → α ≥ ï')"
    )
    done = subprocess.run([sys.executable, "-c", code, encoding], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "-2.5" in done.stdout.decode(encoding) and b"->" in done.stdout
