"""Draw the three figures of validity.md from the files of `validity/`: `python docs/make_figures.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
Worlds = Mapping[str, Mapping[str, Any]]


def read_worlds(name: str) -> Worlds:
    """Return the summaries of the worlds of a file by their names."""
    rows = json.loads((DOCS.parent / "validity" / name).read_text("utf-8"))
    return {row["name"]: row for row in rows if row["undefined"] < row["samples"]}


def draw_dots(axes: Axes, worlds: Worlds, field: str, label: str, line: float) -> None:
    """Draw a number of each world, from the smallest to the largest."""
    numbers = sorted(float(row[field]) for row in worlds.values())
    axes.plot(numbers, range(len(numbers)), "o", color=BLUE, markersize=4)
    axes.axvline(line, color=GREY, linewidth=1)
    axes.set_yticks([])
    axes.set_xlabel(label)
    axes.set_ylabel(f"{len(numbers)} simulated populations")


def draw_alarms(axes: Axes, now: Worlds, _: Worlds) -> None:
    """Draw how often the test raises a false alarm."""
    fair = {name: row for name, row in now.items() if row["null"] and row["kind"] == "groups"}
    draw_dots(axes, fair, "found", "samples without a gap in which the test raises an alarm (%); the line is at 5 %", 5)


def draw_power(axes: Axes, now: Worlds, earlier: Worlds) -> None:
    """Draw how often gaps are detected, beside an earlier engine."""
    biased = [name for name, row in now.items() if name in earlier and not row["null"] and row["kind"] == "groups"]
    axes.plot([earlier[name]["found"] for name in biased], [now[name]["found"] for name in biased], "o", color=BLUE)
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1)
    axes.set_xlabel("detected by the test of version 0.3 (%)")
    axes.set_ylabel("detected now (%)")


def draw_coverage(axes: Axes, now: Worlds, _: Worlds) -> None:
    """Draw how often the interval holds the truth."""
    draw_dots(axes, now, "coverage", "samples in which the 95 % interval holds the truth (%); the line is at 95 %", 95)


def main() -> None:
    """Write the figures."""
    mpl.rcParams |= {"svg.hashsalt": "equivox", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    now, earlier = read_worlds("worlds.json"), read_worlds("baseline.json")
    for name, draw in (("alarms", draw_alarms), ("power", draw_power), ("coverage", draw_coverage)):
        figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
        draw(axes, now, earlier)
        figure.savefig(DOCS / f"validity_{name}.svg", metadata={"Date": None}, facecolor="white")
        plt.close(figure)


if __name__ == "__main__":
    main()
