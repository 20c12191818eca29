"""Figures as files: their formats, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from equivox.cli.show import console
from equivox.core.errors import RequestError
from equivox.core.files import write_whole
from equivox.report.figures import Format, rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_format(path: Path, option: str) -> Format:
    """Return the format that the file's name asks for; RequestError for another than svg, png or pdf."""
    kind = path.suffix.removeprefix(".")
    if kind not in get_args(Format):
        raise RequestError(f"`{option}` must end in .svg, .png or .pdf, got {path.name}")
    return kind  # type: ignore[return-value]


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure in the format of its file's name, whole or not at all, and say where it is."""
    drawn = rendered(figure, figure_format(path, "output"))
    write_whole(path, lambda temporary: temporary.write_bytes(drawn))
    console().print(f"Figure: {path.resolve()}", markup=False)
