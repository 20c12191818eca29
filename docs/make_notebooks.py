"""Execute the notebooks of `docs/examples` and store their outputs: `python docs/make_notebooks.py`.

Only the cells are written by hand. A notebook runs in an empty folder. Neither times nor paths are stored, so the same
cells give the same file; a test executes the cells anew and compares what they print.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = tuple(sorted((ROOT / "docs" / "examples").glob("*.ipynb")))

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WITHOUT = {"text/plain": ("image/png", "text/html")}
"""Forms of an output that are left out where it has one of the better forms beside them."""


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs that its cells give now; `nbclient.CellExecutionError` if one fails."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        own = {"IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder, "PYTHONHASHSEED": "0"}
        run = Path(folder) / "run"
        run.mkdir()
        where = {"metadata": {"path": str(run)}}
        client = NotebookClient(notebook, kernel_name="python3", timeout=300, record_timing=False, resources=where)
        client.create_kernel_manager()
        assert client.km is not None
        client.km.transport = "ipc"
        client.km.ip = str(Path(folder) / "kernel")
        client.execute(env={**os.environ, **own})
    return stored(notebook)


def stored(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook in the form of the files: numbered cells, no metadata of a machine, one form of each output."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.NotebookNode()
        for output in cell.get("outputs", ()):
            if "data" not in output:
                continue
            output.metadata = nbformat.NotebookNode()
            for form, better in WITHOUT.items():
                if any(other in output.data for other in better):
                    output.data.pop(form, None)
    nbformat.validate(notebook)
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[list[Any]]:
    """Return what the cells print and show, without pictures, whose bytes follow the version of matplotlib."""
    return [
        [
            output.get("text") or {form: text for form, text in output.get("data", {}).items() if form != "image/png"}
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)
