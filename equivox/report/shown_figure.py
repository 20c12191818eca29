"""A matplotlib figure that a notebook shows as a picture."""

from __future__ import annotations

from matplotlib.figure import Figure

SCREEN_DPI = 100


class ShownFigure(Figure):
    """A figure that a notebook shows without `%matplotlib inline` and without pyplot."""

    def _repr_png_(self) -> bytes:
        from equivox.report.figures import rendered

        return rendered(self, "png", dpi=SCREEN_DPI)
