"""Compute metrics of columns from files, for `equivox metric NAME FILE`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.core.columns import ColumnMetric, Kind
from equivox.core.errors import EquivoxError, RequestError, nearest
from equivox.core.metric import Metric
from equivox.core.plugins import told_in_one_line, warned
from equivox.dataset_builders.clip_folder import MISSING
from equivox.dataset_builders.parts import names_of, renamed
from equivox.dataset_builders.plain_tables import read_columns
from equivox.metrics.numbers import METRIC as NUMBERS

SEPARATOR = "|"
"""The separator of several words in one cell."""


def column_metrics(metrics: Iterable[Metric]) -> dict[str, ColumnMetric[...]]:
    """Return the metrics of columns of `metrics` and of `numbers`, by name.

    Of two with one name the first counts; what those of a package lack or repeat is a warning, and takes nothing down.
    """
    by_name: dict[str, Metric] = {}
    for metric in (*metrics, NUMBERS):
        by_name.setdefault(metric.name, metric)
    found: dict[str, ColumnMetric[...]] = {}
    for name, metric in by_name.items():
        if metric.columns is None:
            continue
        try:
            with told_in_one_line(f"`columns` of the metric {name}"):
                own = {one.name: one for one in metric.columns()}
        except EquivoxError as error:
            warned(str(error))
            continue
        if taken := sorted(own.keys() & found.keys()):
            warned(f"the metric {name} has columns called {taken[0]}, as another metric has; that one's are used")
        found |= {columns: one for columns, one in own.items() if columns not in found}
    return found


def measure_file(
    metric: ColumnMetric[...],
    path: str | Path,
    names: Mapping[str, str] | None = None,
    *,
    separator: str = SEPARATOR,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the numbers of a metric from the columns of a file that `read_columns` reads.

    `names` maps columns of the metric to the file's. A column that is not in it has the metric's name in the file;
    columns that the metric does not know are ignored. Several words in a cell are joined by `separator`. Raises
    RequestError for a file, a column or an option that does not fit, and for a text in CSV or Excel that may be a
    missing entry.
    """
    path, names = Path(path), dict(names or {})
    columns = renamed(read_columns(path), names, where=path.name, option="--column {}=…")
    if absent := [name for name in metric.required if name not in columns]:
        raise RequestError(
            f"{path.name} has no column `{absent[0]}`, which {metric.name} needs; say which column holds it: "
            f"`--column {absent[0]}=COLUMN`; it has {names_of(columns)}"
        )
    known = {
        name: [_words(cell, separator if metric.kinds[name] == "texts" else "") for cell in column]
        for name, column in columns.items()
        if name in metric.kinds
    }
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx"):
        known = {name: _stated(name, column, metric.kinds[name]) for name, column in known.items()}
    options = dict(options or {})
    if unknown := [name for name in options if name not in metric.options]:
        raise RequestError(
            f"{metric.name} has no option {unknown[0]!r}{nearest(unknown[0], metric.options)}; "
            f"it has {', '.join(metric.options)}"
        )
    with told_in_one_line(f"the metric {metric.name}"):
        return metric(**known, **options)


def _stated(name: str, column: Sequence[Any], kind: Kind) -> list[Any]:
    """Return the cells of a CSV or of Excel, None where no number is stated; RequestError for other words that say so.

    As words such cells would count as answers, so that a model which failed for every group alike would look fair.
    """
    missing = [not MISSING.isdisjoint(cell if isinstance(cell, list) else [cell]) for cell in column]
    if kind != "number" and any(missing):
        raise RequestError(
            f"`{name}` holds {column[missing.index(True)]!r} in {sum(missing):,} of {len(column):,} rows, as missing "
            "entries are written; leave these cells empty or, if it is a word, give the table as JSON lines"
        )
    return [None if lacks else cell for cell, lacks in zip(column, missing, strict=True)]


def _words(cell: Any, separator: str) -> Any:
    """Return a text without space around it, as its words where it may hold several; anything else as it is."""
    if not isinstance(cell, str):
        return cell
    if not separator or separator not in cell:
        return cell.strip()
    return [word.strip() for word in cell.split(separator) if word.strip()]
