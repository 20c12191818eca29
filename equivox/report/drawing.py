"""How figures look, and how they become bytes. Groups differ in hatching as well as in colour."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.backends import backend_agg, backend_pdf, backend_svg
from matplotlib.figure import Figure
from matplotlib.text import Text

from equivox.core.plugins import warned
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


class _ShownFigure(Figure):
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
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = _ShownFigure(figsize=(width, height), layout="constrained")
        figure.patch.set_alpha(0.0)
        every = list(figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).flat)
        for axes in every:
            axes.patch.set_alpha(0.0)
        if title:
            every[0].set_title(short(title), loc="left", fontsize=9, color=INK)
        yield figure, every


def rendered(figure: Figure, kind: Format, *, dpi: int = 300) -> bytes:
    """Return a figure as the bytes of a file; the same figure always gives the same bytes."""
    canvas = {
        "svg": backend_svg.FigureCanvasSVG,
        "png": backend_agg.FigureCanvasAgg,
        "pdf": backend_pdf.FigureCanvasPdf,
    }[kind](figure)
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # which is told below, once
        if kind != "svg":  # which has no shapes of signs: the reader's fonts serve
            figure.patch.set_alpha(1.0)
            if lacking := _set_fonts(figure):
                warned(
                    f"the figure has signs that no font here has ({shortened(lacking, 20)}); install one that has, "
                    "such as Noto Sans, or take svg, where the reader's fonts serve"
                )
        canvas.print_figure(buffer, format=kind, dpi=dpi, metadata=dated)
    return buffer.getvalue()


def _set_fonts(figure: Figure) -> str:
    """Let installed fonts draw what the usual one lacks, such as Chinese, and return the signs that none has."""
    texts = [one for one in figure.findobj(Text) if isinstance(one, Text)]
    signs = {sign for one in texts for sign in one.get_text() if sign.isprintable()}
    usual = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    lacking = {sign for sign in signs if not usual.get_char_index(ord(sign))}
    if not lacking:
        return ""
    known = font_manager.fontManager
    for path in {*font_manager.findSystemFonts()} - {str(font.fname) for font in known.ttflist}:
        with suppress(Exception):  # of fonts that were installed since matplotlib looked, those that it can read
            known.addfont(path)
    families = ["sans-serif"]
    for font in sorted(known.ttflist, key=lambda font: ("Sans" not in font.name, font.name, str(font.fname))):
        if not lacking:
            break
        if (font.style, font.weight) != ("normal", 400) or font.name.startswith("Last Resort"):
            continue
        if not Path(font.fname).is_file():  # matplotlib remembers fonts that are gone
            continue
        own = font_manager.get_font(font.fname)
        if had := {sign for sign in lacking if own.get_char_index(ord(sign))}:
            families.append(font.name)
            lacking -= had
    for one in texts:
        one.set_fontfamily(families)
    return "".join(sorted(lacking))
