"""Draw the three figures of validity.md from `validity/tables.md`: `python docs/make_figures.py`."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
TABLES = (DOCS.parent / "validity" / "tables.md").read_text("utf-8")
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def read_table(heading: str, column: str) -> list[dict[str, str]]:
    """Return the rows of the first table below a heading that has a column."""
    for block in re.split(r"\n\n+", TABLES[TABLES.index(heading) :]):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        if block.startswith("|") and column in lines[0]:
            return [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]
    raise ValueError(f"no table with the column {column} below {heading}")


def read_number(text: str) -> float:
    """Return the number that a cell begins with."""
    return float(text.split()[0])


def draw_alarms(axes: Axes) -> None:
    """Draw how often two tests raise a false alarm."""
    rows = read_table("## Tests", "p_response ≤ .05")[::-1]
    for column, colour, label in (
        ("p_response ≤ .05", ORANGE, "published test: exchanges answers"),
        ("p_cluster ≤ .05", BLUE, "equivox: exchanges speakers"),
    ):
        axes.plot([read_number(row[column]) for row in rows], range(len(rows)), "o", color=colour, label=label)
    axes.set_yticks(range(len(rows)), [row["design"] for row in rows])
    axes.axvline(5, color=GREY, linewidth=1)
    axes.set_xlabel("samples without a gap in which the test raises an alarm (%); the line is at 5 %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, 1.18), ncols=2, frameon=False)


def draw_bias(axes: Axes) -> None:
    """Draw by how much the published value and the estimate miss the truth."""
    rows = read_table("### Means of four dependent attributes", "true nTVD")
    rows += read_table("### Single attributes", "true nTVD")
    truth = [read_number(row["true nTVD"]) for row in rows]
    for column, colour, label, step in (
        ("nTVD", ORANGE, "published value", 0.6),
        ("estimate", BLUE, "estimate", -0.6),
    ):
        errors = [read_number(row[column]) - true for row, true in zip(rows, truth, strict=True)]
        axes.plot([true + step for true in truth], errors, "o", color=colour, alpha=0.5, label=label)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.set_xlabel("true gap")
    axes.set_ylabel("mean error, in points")
    axes.legend(frameon=False)


def draw_coverage(axes: Axes) -> None:
    """Draw how often the interval and bootstrap intervals hold the truth."""
    rows = read_table("### Why not a bootstrap interval", "percentile")[::-1]
    columns = list(rows[0])
    for column, colour, label in (
        (columns[1], ORANGE, "bootstrap, percentile"),
        (columns[4], GREY, "bootstrap, BCa"),
        (columns[-1], BLUE, "equivox"),
    ):
        axes.plot([read_number(row[column]) for row in rows], range(len(rows)), "o", color=colour, label=label)
    axes.set_yticks(range(len(rows)), [row["design"] for row in rows])
    axes.axvline(95, color=GREY, linewidth=1)
    axes.set_xlabel("samples in which the 95 % interval holds the truth (%); the line is at 95 %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, 1.18), ncols=3, frameon=False)


def main() -> None:
    """Write the figures."""
    mpl.rcParams |= {"svg.hashsalt": "equivox", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    for name, draw in (("alarms", draw_alarms), ("bias", draw_bias), ("coverage", draw_coverage)):
        figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
        draw(axes)
        figure.savefig(DOCS / f"validity_{name}.svg", metadata={"Date": None}, facecolor="white")
        plt.close(figure)


if __name__ == "__main__":
    main()
