"""Scores and comparisons as data frames, and the tables that show them.

A frame holds numbers, a row for each score or test and a column for each field. `make_table` selects columns and
formats them, one formatter for each column; nothing else turns a number into text. The meaning of a column stands in
the docstring of the class that has the field, where `explain_column` reads it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Rank
from equivox.compare.runs import ComparedRun, TaskCorrelation
from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import pandas
from equivox.core.metric import CohortScore, PairedValues
from equivox.core.notes import Note
from equivox.core.scores import LEVEL, LargestShift, Score
from equivox.core.text import how_many
from equivox.report.notes import write_note
from equivox.report.numbers import DASH, UNEVEN, p_value, score_value, shortened, stars
from equivox.report.table import Content, Table

if TYPE_CHECKING:
    from pandas import DataFrame

EXPLAINED = (Score, Coverage, LargestShift, PairedTest, PairedValues, Rank, CohortScore, TaskCorrelation)
"""The classes whose docstrings explain the columns."""
REMARKS = ("undefined_reason", "undefined", "no_interval", "too_few", "uneven", "reason", "notes")
"""Columns of sentences: they follow a table, each sentence once."""
FIRST = ("outcome", "headline", "ci_low", "ci_high", "q", "by_group", "value", "p_published", "null_value")
"""The columns of a score that stand first."""
_COUNTS = re.compile("(n|labelled|requested|generated|answered|parsed|used|min_count|rank|low|high|unread|split)(_|$)")
STARS_NOTE = f"* q below {LEVEL:g}, ** q below 0.001; {UNEVEN} more answers of one group are missing"


def make_score_frame(runs: Iterable[ComparedRun]) -> DataFrame:
    """Return a row for each score of some runs, with every field of a score.

    `headline` is the number that tables show first: the estimate where there is one, else the value. Where people
    labelled answers, `corrected` and its interval are the score as they would annotate the answers.
    """
    rows = []
    for run in runs:
        for score in run.scores:
            labels = run.corrected(score)
            people = None if labels is None else (labels.corrected, *labels.ci)
            names = ("corrected", "corrected_low", "corrected_high")
            row = {"model": run.model, "run": run.folder.name, "headline": score.headline, **score.as_row()}
            row |= {"used": score.coverage.used, "undefined_reason": write_note(score.undefined_reason) or None}
            row["uneven"] = write_note(score.coverage.uneven) or None
            row["notes"] = " | ".join(filter(None, map(write_note, score.notes)))
            row |= {f"design_{name}": value for name, value in _list_design(score).items()}
            rows.append(row | dict(zip(names, people or (math.nan,) * 3, strict=True)))
    frame = pandas.DataFrame(rows)
    return frame[sorted(frame.columns, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))]


def _list_design(score: Score) -> dict[str, float]:
    """Return what the design of a score can show, and the share of rare values."""
    shares = {"rare_share": score.rare_share, "min_count": score.min_count}
    return {"null_mean": score.null_mean, "sd": score.sd, **shares}


def format_value(column: str, value: Any, unit: str = "") -> str:
    """Return the text of a value of a column; a dash for one that is not known.

    >>> format_value("q", 0.0004), format_value("n_units", 1400.0), format_value("value", 12.345, "percent")
    ('<0.001', '1,400', '12.35')
    >>> format_value("rare_share", 0.25), format_value("value", None), format_value("task", "family:task")
    ('25 %', '—', 'family:task')
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if re.match(r"(p|q)(_|$)", column):
        return p_value(value)
    if _COUNTS.match(column):
        return f"{value:,.0f}"
    if column in ("coverage", "rare_share"):
        return f"{100 * value:.0f} %"
    if not isinstance(value, int | float):
        return str(value)
    return score_value(value, unit)


def make_table(
    frame: DataFrame, caption: str = "", *, by: Sequence[str] = (), columns: Sequence[str] = (), note: str = ""
) -> Table:
    """Return a selection of a frame as a table; `by` are the columns that name its rows, the others follow.

    Without `columns` all are shown. A column without a value is left out. One with a single value in all rows stands
    below the table. The ends of an interval, such as `ci_low` and `ci_high`, share a column.
    """
    names = [name for name in by if name in frame]
    others = [name for name in columns or frame.columns if name in frame and name not in (*names, *REMARKS)]
    cells = {name: _format_column(frame, name) for name in [*names, *others]}
    shown: dict[str, list[str]] = {name: cells[name] for name in names}
    same = []
    for name in others:
        texts, heading, stem = cells[name], name, re.sub("(low|high)$", "", name)
        if name == f"{stem}high" and f"{stem}low" in cells:
            continue
        if name == f"{stem}low" and f"{stem}high" in cells:
            pairs = zip(texts, cells[f"{stem}high"], strict=True)
            texts = [DASH if DASH in ends else " to ".join(ends) for ends in pairs]
            heading = f"{'' if stem == 'ci_' else stem}interval"
        if set(texts) <= {DASH, ""}:
            continue
        if len(frame) > 1 and len(set(texts)) == 1 and not columns:
            same.append(f"{heading.replace('_', ' ')} {shortened(texts[0], 60)}")
        else:
            shown[heading] = texts
    names = [name for name in names if not set(shown[name]) <= {DASH, ""}]
    kept = {name: texts for name, texts in shown.items() if name in names or name not in by}
    return Table(
        caption=caption,
        columns=[name.replace("_", " ") for name in kept],
        align="".join("l" if name in names or _is_text(frame, name) else "r" for name in kept),
        rows=[list(row) for row in zip(*kept.values(), strict=True)],
        grouped=max(0, len(names) - 1),
        remarks=_list_remarks(frame, names),
        notes=[*([note] if note else []), *([f"The same in all rows: {'; '.join(same)}."] if same else [])],
    )


def make_grid(frame: DataFrame, caption: str, *, value: str = "headline", note: str = STARS_NOTE) -> Table:
    """Return models by tasks: a number of each, with stars for its q and a dagger for unequal losses."""
    texts = [
        format_value(value, number, unit)
        + stars(math.nan if q is None else q)
        + (UNEVEN if isinstance(uneven, str) else "")
        for number, unit, q, uneven in zip(frame[value], frame["unit"], frame["q"], frame["uneven"], strict=True)
    ]
    return arrange_grid(frame, texts, caption, note)


def arrange_grid(frame: DataFrame, cells: Sequence[Content], caption: str, note: str = "") -> Table:
    """Return models by tasks; `cells` are what stands for each row of the frame."""
    short = [task.partition(":")[2] or task for task in frame["task"]]
    wide = pandas.DataFrame({"model": frame["model"], "task": short, "cell": cells})
    wide = wide.drop_duplicates(["model", "task"]).pivot(index="model", columns="task", values="cell")
    wide = wide.reindex(index=list(dict.fromkeys(frame["model"])), columns=list(dict.fromkeys(short))).fillna(DASH)
    return Table(
        caption=caption,
        columns=["model", *wide.columns],
        align="l" + "r" * len(wide.columns),
        rows=[[model, *row] for model, row in zip(wide.index, wide.to_numpy().tolist(), strict=True)],
        remarks=_list_remarks(frame, ["model", "task"]),
        notes=[note] if note else [],
    )


def explain_column(name: str) -> str:
    """Return what a column means, as the docstring of its class has it; UsageError for an unknown one."""
    known = explain_columns()
    key = re.sub("^design_", "", name.strip().replace(" ", "_"))
    if key not in known:
        raise UsageError(f"`explain` names a column of the tables, got {name!r}{nearest(key, known)}")
    return known[key]


def explain_columns() -> dict[str, str]:
    """Return the meaning of every column that the docstrings explain, by its name."""
    found: dict[str, str] = {
        "model": "The model that was asked.", "interval": "The 95 % interval, see ci_low and ci_high.",
        "q": "p after correction for all tests of the run (Holm), or of the comparison (Benjamini and Yekutieli).",
        "headline": "The number that tables show first: the estimate where there is one, else the value.",
    }  # fmt: skip
    for each in EXPLAINED:
        for names, text in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", inspect.getdoc(each) or "", re.MULTILINE):
            for name in names.split(", "):
                found.setdefault(name, " ".join(text.split()))
    return found


def _format_column(frame: DataFrame, name: str) -> list[str]:
    units = frame["unit"] if "unit" in frame else [""] * len(frame)
    return [format_value(name, value, unit) for value, unit in zip(frame[name], units, strict=True)]


def _is_text(frame: DataFrame, name: str) -> bool:
    return name in frame and all(value is None or isinstance(value, str) for value in frame[name])


def _list_remarks(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """Return each sentence of the remark columns once, with the number of its rows, or the row's name."""
    lines = []
    for column in (name for name in REMARKS if name in frame):
        values = [write_note(value) if isinstance(value, Note | str) else "" for value in frame[column]]
        known = [(row, value) for row, value in enumerate(values) if value]
        for text in dict.fromkeys(value for _, value in known):
            rows = [row for row, value in known if value == text]
            one = ", ".join(str(frame[name].iloc[rows[0]]) for name in names if frame[name].iloc[rows[0]])
            where = one if len(rows) == 1 else f"{len(rows)} of {how_many(len(frame), 'row')}"
            lines.append(f"{f'{DASH} ' if column in ('undefined', 'undefined_reason') else ''}{where}: {text}")
    return lines
