"""`equivox metric`: a metric on a table that was made elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from equivox.cli.options import columns_named
from equivox.cli.output import EXIT_DONE, EXIT_INCOMPLETE, echo, show_tables
from equivox.core.errors import RequestError, nearest
from equivox.core.fields import parse_model_args
from equivox.core.plain import as_plain
from equivox.report.numbers import DASH

if TYPE_CHECKING:
    from equivox.core.columns import ColumnMetric


def metric(
    name: Annotated[
        str | None, typer.Argument(metavar="[METRIC]", help="Its name; without one, all are listed.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A table, such as answers.csv or answers.xlsx; without one, the columns are listed.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="Which column of the file is ours: groups=gender; repeatable."),
    ] = None,
    option: Annotated[
        str | None, typer.Option("--options", metavar="KEY=VALUE,…", help="Options, such as n_resamples=999,seed=1.")
    ] = None,
    separator: Annotated[str, typer.Option(help="What stands between several values in one cell.")] = "|",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs; NaN is null.")] = False,
) -> int:
    """Compute a metric from a table that was made elsewhere: CSV, TSV, JSON, JSON lines, parquet or Excel."""
    from equivox.metrics.files import measure_file

    known = known_metrics()
    if name is None:
        echo("\n".join(f"{one.name}: {one.description} ({one.citation})" for one in known.values()))
        return EXIT_DONE
    if name not in known:
        raise RequestError(f"unknown metric {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    if file is None:
        _describe(known[name])
        return EXIT_DONE
    options = {} if option is None else parse_model_args(option, what="metric")
    found = measure_file(known[name], file, columns_named(column or ()), separator=separator, options=options)
    if as_json:
        echo(json.dumps(as_plain(found), indent=1, ensure_ascii=False))
    else:
        _show(known[name], found)
    undefined = any(value is not None for key, value in found.items() if key.endswith("undefined"))
    return EXIT_INCOMPLETE if undefined else EXIT_DONE


def _describe(found: ColumnMetric[...]) -> None:
    """Print the columns and the options of a metric."""
    echo(f"{found.name}: {found.description} ({found.citation})\n\nColumns")
    for name, kind in found.kinds.items():
        echo(f"  {name}: {found.help.get(name, kind)}{'' if name in found.required else ' (may be left out)'}")
    echo("\nOptions")
    for name, default in found.options.items():
        echo(f"  {name}={default}" + (f": {found.help[name]}" if name in found.help else ""))


def known_metrics() -> dict[str, ColumnMetric[...]]:
    """Return every metric of columns by name, from the tasks that there are."""
    from equivox.metrics.files import column_metrics
    from equivox.tasks.registry import builtin_tasks

    return column_metrics(task.metric for task in builtin_tasks().values())


def _show(metric: ColumnMetric[...], found: Mapping[str, Any]) -> None:
    from equivox.report.table import Table

    reasons = {name: value for name, value in found.items() if name.endswith("undefined")}
    table = Table(
        caption=metric.name,
        columns=("number", "value"),
        align="lr",
        rows=[[name, _cell(value)] for name, value in found.items() if name not in reasons],
        remarks=[f"{DASH} {name}: {value}" for name, value in reasons.items() if value is not None],
    )
    show_tables([table])


def _cell(value: Any) -> str:
    if value is None or value != value:
        return DASH
    return f"{value:.6g}" if isinstance(value, float) else str(value)
