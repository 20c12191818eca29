"""How figures look, and how they become bytes. Groups differ in hatching as well as in colour."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from matplotlib.figure import Figure

from equivox.report.numbers import shortened

Format = Literal["svg", "png", "pdf"]

INK = "#1b1b1b"
"""The colour of text and axes."""
PAPER = "#ffffff"
"""The colour inside an open dot."""
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
"""Okabe and Ito's colours, which colour-blind people can distinguish."""
HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "oo", "++")

WIDTH = 7.2
"""Inches."""

LONGEST = 42
"""Signs of a label; `short` cuts longer ones."""

short = partial(shortened, longest=LONGEST)

_STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "equivox",
    "text.color": INK,
    # A response can contain a dollar sign; it must not start a formula.
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}

SCREEN_DPI = 100


class ShownFigure(Figure):
    """A figure that a notebook shows without `%matplotlib inline` and without pyplot."""

    def _repr_png_(self) -> bytes:
        return rendered(self, "png", dpi=SCREEN_DPI)


def look(number: int) -> dict[str, Any]:
    """Return how the bars of a series look: series differ in colour and in hatching."""
    colour, hatch = PALETTE[number % len(PALETTE)], HATCHES[number % len(HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": INK, "linewidth": 0.5}


@contextmanager
def drawing(
    height: float, width: float = WIDTH, title: str = "", shape: tuple[int, int] = (1, 1)
) -> Iterator[tuple[Figure, list[Any]]]:
    """Yield a transparent figure in the style of all figures, and its axes row by row."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = ShownFigure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0.0)
        every = list(figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).flat)
        for axes in every:
            axes.patch.set_alpha(0.0)
        if title:
            every[0].set_title(short(title), loc="left", fontsize=9, color=INK)
        yield figure, every


def rendered(figure: Figure, kind: Format, *, dpi: int = 300) -> bytes:
    """Return a figure as the bytes of a file; the same figure always gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends import backend_agg, backend_pdf, backend_svg

    canvas = {
        "svg": backend_svg.FigureCanvasSVG,
        "png": backend_agg.FigureCanvasAgg,
        "pdf": backend_pdf.FigureCanvasPdf,
    }[kind](figure)
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        if kind != "svg":
            figure.patch.set_alpha(1.0)
        canvas.print_figure(buffer, format=kind, dpi=dpi, metadata=dated)
    return buffer.getvalue()
