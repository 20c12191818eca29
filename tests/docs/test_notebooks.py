"""The notebooks are executed as they stand: what they print now is what they store."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from docs_pages import ROOT, script

nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))


@pytest.fixture(scope="module")
def make_notebooks() -> ModuleType:
    return script("make_notebooks")


LONG = {"paper_table": pytest.mark.long}
"""Ten runs in one notebook; the other one stands for both in `make test`."""


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=LONG.get(path.stem, ()), id=path.stem) for path in NOTEBOOKS]
)
def test_the_cells_print_what_is_stored(
    path: Path, make_notebooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python docs/make_notebooks.py` executes them anew."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    stored = nbformat.read(path, as_version=4)
    now = make_notebooks.executed(path)
    assert make_notebooks.texts(stored) == make_notebooks.texts(now)
    assert [pictures(cell) for cell in stored.cells] == [pictures(cell) for cell in now.cells]


def pictures(cell: object) -> int:
    return sum("image/png" in output.get("data", {}) for output in getattr(cell, "outputs", ()))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_is_whole_small_and_of_no_machine(path: Path, make_notebooks: ModuleType) -> None:
    text = path.read_text("utf-8")
    assert len(text) < 150_000
    notebook = nbformat.reads(text, as_version=4)
    assert nbformat.writes(make_notebooks.stored(notebook)) + "\n" == text
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    without_pictures = re.sub(r'"image/png": "[^"]*"', "", text)
    for trace in (str(Path.home()), "/tmp/", "site-packages", " at 0x", sys.prefix):
        assert trace not in without_pictures
    assert not re.search(r"20[23]\d-\d\d-\d\d", without_pictures)


def test_another_number_makes_a_notebook_stale(make_notebooks: ModuleType) -> None:
    stored, changed = (nbformat.read(NOTEBOOKS[0], as_version=4) for _ in range(2))
    (output, *_) = [o for cell in changed.cells for o in cell.get("outputs", ()) if "text/html" in o.get("data", {})]
    output.data["text/html"] = output.data["text/html"].replace("22.06", "22.66", 1)
    assert make_notebooks.texts(stored) != make_notebooks.texts(changed)


def test_made_up_numbers_are_called_so_beside_the_published_ones() -> None:
    notebook = nbformat.read(ROOT / "docs" / "examples" / "paper_table.ipynb", as_version=4)
    assert "made up" in notebook.cells[0].source
    (table,) = (
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "published" in output.get("data", {}).get("text/html", "")
    )
    assert "measured (made up)" in table
    # The first cell of the paper's table as printed (configs/published/vibe.yaml).
    assert "46.77**" in table
