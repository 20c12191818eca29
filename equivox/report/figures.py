"""Figures of scores that were computed elsewhere, drawn with matplotlib: for the report, and for print."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.compare.pairs import open_runs, paired_tests
from equivox.compare.ranking import Rank, is_ranked, rank_all
from equivox.compare.runs import ComparedRun, Comparison, ValueShares, open_comparison, task_correlations
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import np
from equivox.core.metric import Panel
from equivox.core.plain import split_by
from equivox.core.scores import Score
from equivox.report.drawing import INK, LONGEST, PALETTE, PAPER, drawing, look, short
from equivox.report.numbers import DASH, UNEVEN, UNTOLD, shortened
from equivox.run.scoring import read_records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MANY = 12
OF_ONE, OF_SEVERAL = ("forest", "heat", "shares"), ("ranks", "correlations")
"""The kinds of figures of one run, and of several together."""


def _broken(text: str, longest: int) -> str:
    r"""Break a name into two lines at a space or sign; longer names are cut.

    >>> _broken("simulated:random,speaker=0.5", 20), _broken("Qwen/Qwen2-Audio-7B-Instruct", 20)
    ('simulated:random,\nspeaker=0.5', 'Qwen/Qwen2-Audio-7B-\nInstruct')
    """
    plain = " ".join(text.split())
    if len(plain) <= longest:
        return plain
    ends = [place for place, sign in enumerate(plain[:longest], start=1) if sign in " -/:?&,_"]
    end = ends[-1] if ends else longest
    return f"{plain[:end].rstrip()}\n{shortened(plain[end:], longest)}"


def draw_forest(
    rows: Sequence[tuple[str, Score]], title: str = "", *, ends: tuple[float, float] | None = None
) -> Figure:
    """Draw scores of one metric: headline and interval; dots are filled if q is below 0.05.

    Where the headline is an estimate, a mark shows the number as published.

    A question mark stands beside the dot of a score that could not have been filled, whatever the answers, and a dagger
    where more answers of one group are missing.
    `rows` holds (label, score). An undefined score has a line with a dash. `ends` are those of the axis.
    """
    labels = [_broken(label, LONGEST) for label, _ in rows]
    high = 0.24 + 0.12 * any("\n" in label for label in labels)
    with drawing(0.9 + high * len(rows), title=title) as (figure, (axes,)):
        for place, (_, score) in enumerate(rows):
            _draw_score(axes, place, score)
        targets = {score.null_value for _, score in rows if math.isfinite(score.null_value)}
        if len(targets) == 1:
            axes.axvline(targets.pop(), color=INK, linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        if rows:
            estimated = "estimated " if any(math.isfinite(score.estimate) for _, score in rows) else ""
            axes.set_xlabel(f"{estimated}{rows[0][1].metric} ({short(rows[0][1].unit)})")
        if ends is not None:
            axes.set_xlim(*ends)
        return figure


def _draw_score(axes: Any, place: int, score: Score) -> None:
    """Draw the interval, the dot and the published number of one score in its line."""
    if not score.defined or not math.isfinite(score.value):
        axes.text(0.01, place, "—", transform=axes.get_yaxis_transform(), va="center")
        return
    if math.isfinite(score.ci[0]) and math.isfinite(score.ci[1]):
        axes.plot([score.ci[0], score.ci[1]], [place, place], color=PALETTE[0], linewidth=2, zorder=1)
    if math.isfinite(score.estimate):
        axes.plot([score.value] * 2, [place - 0.25, place + 0.25], color=PALETTE[5], linewidth=1.5, zorder=2)
    axes.plot(
        [score.headline], [place], marker="o", markersize=6, color=PALETTE[0], zorder=3,
        markerfacecolor=PALETTE[0] if score.found else PAPER,
    )  # fmt: skip
    if (
        sign
        := f"{UNTOLD if score.outcome == 'too_few_data' else ''}{UNEVEN if score.coverage.uneven is not None else ''}"
    ):
        axes.annotate(sign, (score.headline, place), xytext=(5, 6), textcoords="offset points", va="center")


def draw_shares(
    shares: Sequence[ValueShares], title: str = "", *, unit: str = "percent of the group's answers"
) -> Figure:
    """Draw the share of each value in each group as grouped bars."""
    groups = sorted({group for share in shares for group in share.by_group})
    with drawing(1.0 + (0.14 * len(groups) + 0.12) * max(1, len(shares)), title=title) as (figure, (axes,)):
        bars = [(short(group), [share.by_group.get(group, 0.0) for share in shares]) for group in groups]
        grouped_bars(axes, bars)
        axes.set_yticks(range(len(shares)), [short(share.value) for share in shares])
        axes.set_ylim(len(shares) - 0.5, -0.5)
        axes.set_xlabel(unit)
        figure.legend(loc="outside upper right", ncols=len(groups), frameon=False, fontsize=8)
        return figure


def grouped_bars(axes: Any, series: Sequence[tuple[str, Sequence[float]]]) -> None:
    """Draw the numbers of each series, given with its label, as bars side by side."""
    height = 0.8 / max(1, len(series))
    for number, (label, values) in enumerate(series):
        places = [place + (number - (len(series) - 1) / 2) * height for place in range(len(values))]
        axes.barh(places, values, height, label=label, **look(number))


def draw_histograms(distributions: Mapping[str, Sequence[float]], quantity: str) -> Figure:
    """Draw how numbers are distributed, a panel per name, over common bins; `quantity` names the common axis."""
    every = [number for own in distributions.values() for number in own]
    edges = np.histogram_bin_edges(every or [0.0, 1.0], bins=30)
    n = max(1, len(distributions))
    with drawing(0.6 + 1.5 * n, shape=(n, 1)) as (figure, panels):
        for axes, (name, own) in zip(panels, distributions.items(), strict=True):
            axes.hist(own, bins=edges, facecolor=PALETTE[0], edgecolor=INK, linewidth=0.5)
            axes.set_title(f"{short(name)} ({len(own):,})", loc="left", fontsize=9, color=INK)
            axes.set_ylabel("number")
        panels[-1].set_xlabel(quantity)
        return figure


def draw_triangles(panels: Mapping[str, Mapping[tuple[str, str], float]]) -> Figure:
    """Draw correlations as lower triangles, a panel per name; each cell shows its number, or a dash without one."""
    names = list(dict.fromkeys(name for pairs in panels.values() for pair in pairs for name in pair))
    n = len(names)
    with drawing(1.6 + 0.42 * n, 1.0 + len(panels) * (1.6 + 0.5 * n), shape=(1, len(panels))) as (figure, every):
        labels = [short(name.partition(":")[2] or name) for name in names]
        for axes, (title, pairs) in zip(every, panels.items(), strict=True):
            matrix = np.full((n, n), np.nan)
            np.fill_diagonal(matrix, 1.0)
            for (first, second), r in pairs.items():
                low, high = sorted((names.index(first), names.index(second)))
                matrix[high, low] = r
            image = axes.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
            for i, j in zip(*np.tril_indices(n), strict=True):
                told = f"{matrix[i, j]:.2f}" if np.isfinite(matrix[i, j]) else DASH
                # Text is dark on the pale middle of the scale and light on its dark ends.
                ink = "white" if abs(matrix[i, j]) > 0.7 else "black"
                axes.text(j, i, told, ha="center", va="center", color=ink, fontsize=7.5)
            axes.set_title(title, loc="left", fontsize=9, color=INK)
            axes.set_xticks(range(n), labels, rotation=40, ha="right")
            axes.set_yticks(range(n), labels)
        figure.colorbar(image, ax=every, shrink=0.8, label="Pearson's r over models")
        return figure


def draw_heat_map(rows: Sequence[Mapping[str, Any]], title: str = "", *, unit: str = "findings") -> Figure:
    """Draw findings per category and identity: each cell shows their number and the number that survive q.

    `rows` have the columns category, identity, count, surviving_q. A cell that is not known shows a dash, never 0.
    """
    categories = list(dict.fromkeys(str(row["category"]) for row in rows))
    identities = list(dict.fromkeys(str(row["identity"]) for row in rows))
    counts = np.full((len(categories), len(identities)), np.nan)
    told = {}
    for row in rows:
        place = categories.index(str(row["category"])), identities.index(str(row["identity"]))
        if row["count"] is not None:
            counts[place] = row["count"]
            told[place] = f"{row['count']} ({row['surviving_q']})"
    with drawing(1.4 + 0.3 * len(categories), 3.2 + 0.95 * len(identities), title) as (figure, (axes,)):
        top = max([1.0, *counts[np.isfinite(counts)].tolist()])
        image = axes.imshow(counts, cmap="cividis", vmin=0, vmax=top, aspect="auto")
        for i in range(len(categories)):
            for j in range(len(identities)):
                known = np.isfinite(counts[i, j])
                ink = INK if not known else "white" if counts[i, j] < 0.55 * top else "black"
                axes.text(j, i, told.get((i, j), "—"), ha="center", va="center", color=ink, fontsize=8)
        axes.set_xticks(range(len(identities)), [short(name) for name in identities])
        axes.set_yticks(range(len(categories)), [short(name) for name in categories])
        figure.colorbar(image, ax=axes, shrink=0.8, label=unit)
        return figure


def draw_ranks(ranks: Sequence[Rank]) -> Figure:
    """Draw the rank of every model with its rank interval, one panel per task and metric."""
    columns = list(dict.fromkeys((s.task, s.dimension, s.metric) for s in ranks))
    models = list(dict.fromkeys(s.model for s in ranks))
    across = min(3, len(columns))
    down = math.ceil(len(columns) / across)
    labels = [_broken(model, 26) for model in models]
    high = 0.36 if any("\n" in label for label in labels) else 0.24
    with drawing(0.2 + down * (0.4 + high * len(models)), shape=(down, across)) as (figure, every):
        for number, axes in enumerate(every):
            if number >= len(columns):
                axes.set_visible(False)
                continue
            task, _, metric = columns[number]
            for own in (s for s in ranks if (s.task, s.dimension, s.metric) == columns[number]):
                place = models.index(own.model)
                if not own.rank:
                    axes.text(0.02, place, "—", transform=axes.get_yaxis_transform(), va="center")
                    continue
                axes.plot([own.low, own.high], [place, place], color=PALETTE[0], linewidth=2.5, zorder=1)
                axes.plot([own.rank], [place], marker="o", markersize=6, color=PALETTE[0], zorder=2)
                if own.uneven:
                    axes.annotate(UNEVEN, (own.rank, place), xytext=(5, 6), textcoords="offset points", va="center")
            # A colon or space ends the part that all names have in common.
            axes.set_title(
                shortened(f"{re.split('[: ]+', task, maxsplit=1)[-1]}, {metric}", 20), loc="left", fontsize=8
            )
            axes.set_xlim(0.6, len(models) + 0.4)
            axes.set_xticks(range(1, len(models) + 1))
            axes.tick_params(labelbottom=number + across >= len(columns))
            axes.grid(axis="x", color=INK, alpha=0.15, linewidth=0.6)
            axes.set_yticks(range(len(models)), labels)
            axes.set_ylim(len(models) - 0.4, -0.6)
        figure.supxlabel("rank; 1 is nearest to no bias", fontsize=8, color=INK)
        return figure


def figures_of(folders: Sequence[Path], annotator: str | None = None) -> dict[str, Callable[[], Figure]]:
    """Return what draws each figure of the run in `folders`, or of several runs together, by name.

    One run has `forest:FAMILY` and, for its further measures, `forest:FAMILY:NAME`, `shares:TASK:ATTRIBUTE` and
    `heat:TASK`; several have `ranks:FAMILY` and `correlations:DIMENSION@CONDITION`. The annotations are those by
    `annotator`, None: the run's own.
    """
    comparison = open_comparison(folders, annotator=annotator)
    return _of_several(comparison) if len(comparison.runs) > 1 else _of_one(comparison.runs[0])


def _of_one(run: ComparedRun) -> dict[str, Callable[[], Figure]]:
    whole = [score for score in run.scores if score.is_whole]
    first = {score.family: score.metric for score in reversed(whole)}
    forests = {
        name: [(score.task.partition(":")[2] or score.task, score) for score in own]
        for name, own in split_by(
            whole, lambda s: s.family if s.metric == first[s.family] else f"{s.family}:{s.metric}"
        ).items()
    }
    units = {family: panel.unit for family, metric in run.metrics.items() if (panel := metric.panel("shares"))}
    shares = split_by(run.value_shares, lambda share: f"{share.task}:{share.attribute}")
    families = {score.task: score.family for score in run.scores}
    return {
        **{f"forest:{name}": partial(draw_forest, rows) for name, rows in forests.items()},
        **{
            f"heat:{name}": partial(draw_heat_map, rows, name, unit=panel.unit)
            for name, (panel, rows) in _read_heat_maps(run).items()
        },
        **{
            f"shares:{name}": partial(draw_shares, rows, name, unit=units[families[rows[0].task]])
            for name, rows in shares.items()
        },
    }


def _read_heat_maps(run: ComparedRun) -> dict[str, tuple[Panel, list[dict[str, Any]]]]:
    """Return the rows of every table of counts of a run with its panel, by task."""
    maps: dict[str, tuple[Panel, list[dict[str, Any]]]] = {}
    for family, metric in run.metrics.items():
        if (panel := metric.panel("heat")) is None:
            continue
        for row in read_records(run.folder, family, panel.table, run.annotator) or ():
            maps.setdefault(row["task"], (panel, []))[1].append(row)
    return maps


def _of_several(comparison: Comparison) -> dict[str, Callable[[], Figure]]:
    def ranks_of(family: str) -> Figure:
        ranked = rank_all(comparison, paired_tests(open_runs(comparison)))
        return draw_ranks([rank for rank in ranked if rank.family == family])

    correlations = split_by(task_correlations(comparison), lambda one: f"{one.dimension}@{one.condition}")
    families = dict.fromkeys(s.family for run in comparison.runs for s in run.scores if is_ranked(run, s))
    return {
        **{f"ranks:{each}": partial(ranks_of, each) for each in families},
        **{
            f"correlations:{each}": partial(draw_triangles, {"": {(one.first, one.second): one.r for one in pairs}})
            for each, pairs in correlations.items()
        },
    }


def figure_of(folders: Sequence[Path], name: str, annotator: str | None = None) -> Figure:
    """Return one figure of `figures_of`; UsageError, with names that there are, for another."""
    drawn = figures_of(folders, annotator)
    if name not in drawn:
        kind = name.partition(":")[0]
        if kind in OF_ONE and len(folders) > 1:
            raise UsageError(f"{name} is a figure of one run: name one")
        if kind in OF_SEVERAL and len(folders) == 1:
            raise UsageError(f"{name} is a figure of several runs: name the others too")
        same = [each for each in drawn if each.startswith(f"{kind}:")]
        known = f"there are {', '.join(same)}" if 0 < len(same) < _MANY else "`--figure list` names all"
        raise UsageError(f"unknown figure {name!r}{nearest(name, drawn)}; {known}")
    return drawn[name]()
