"""`equivox metric`: a metric on a table that was made elsewhere."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
import typer.core

from equivox.cli.output import echo

if TYPE_CHECKING:
    from equivox.core.columns import ColumnMetric

_KNOWN = {
    "min_count": "Set aside values seen less often; fewer than 10 by default below 1,000 rows.",
    "min_coverage": "Share of usable rows that a number needs in every group.",
    "n_resamples": "Permutations or draws.",
    "confidence": "Level of the intervals.",
    "seed": "Seed of permutations and intervals.",
    "merge": "Which phrases count as one: none, lemma, or embedding (lemma, then by meaning).",
    "encoder": "The sentence-transformers model for --merge embedding.",
    "merge_threshold": "The cosine from which --merge embedding counts phrases as one.",
}
"""Options that mean the same for every metric."""


class MetricGroup(typer.core.TyperGroup):
    """A command per metric of columns, made from the metric when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the metrics."""
        return list(known_metrics())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of one metric; RequestError for a metric that there is not."""
        from equivox.core.errors import RequestError, nearest

        known = known_metrics()
        if cmd_name not in known:
            raise RequestError(
                f"unknown metric {cmd_name!r}{nearest(cmd_name, known)}; known: {', '.join(known)} "
                "(`equivox metric NAME --help` shows the columns of one)"
            )
        return _command(known[cmd_name])


app = typer.Typer(
    name="metric",
    cls=MetricGroup,
    help="Compute a metric from a table that was made elsewhere: CSV, TSV, JSON, JSON lines or parquet.",
    no_args_is_help=True,
)


@app.callback()
def root() -> None:
    """Compute a metric from a table that was made elsewhere: CSV, TSV, JSON, JSON lines or parquet."""


def known_metrics() -> dict[str, ColumnMetric]:
    """Return every metric of columns by name, from the tasks that there are."""
    from equivox.metrics.files import column_metrics
    from equivox.tasks.registry import builtin_tasks

    return column_metrics({task.metric.name: task.metric for task in builtin_tasks().values()}.values())


def _command(metric: ColumnMetric) -> Any:
    """Return the command of a metric: an option per column, and one per option of the metric."""

    def command(**given: Any) -> int:
        return run(metric, given)

    parameters = _parameters(metric)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in parameters.items()
        ]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    single = typer.Typer(add_completion=False)
    single.command(metric.name, help=f"{metric.description} ({metric.citation})")(command)
    return typer.main.get_command(single)


def _parameters(metric: ColumnMetric) -> dict[str, tuple[Any, Any]]:
    """Return the parameters of a metric's command, each with its annotation and its default."""
    file = typer.Argument(metavar="FILE", help="A table that ends in .csv, .tsv, .json, .jsonl or .parquet.")
    found: dict[str, tuple[Any, Any]] = {"file": (Annotated[Path, file], inspect.Parameter.empty)}
    for name, kind in metric.kinds.items():
        needed = "needed" if name in metric.required else "may be left out"
        what = metric.help.get(name, kind)
        option = typer.Option(
            _flag(name), metavar="COLUMN", help=f"The column with {name}: {what} ({needed}).", show_default=name
        )
        found[name] = Annotated[str | None, option], None
    try:
        hints = get_type_hints(metric.measure)
    except NameError:  # a name that is imported for type checkers alone
        hints = {}
    for name, default in metric.options.items():
        option = typer.Option(_flag(name), help=_KNOWN.get(name) or metric.help.get(name, ""))
        found[name] = Annotated[_typed(hints.get(name, str if default is None else type(default))), option], default
    if "texts" in metric.kinds.values():
        separator = typer.Option("--separator", help="What stands between several values in one cell.")
        found["separator"] = Annotated[str, separator], "|"
    found["as_json"] = Annotated[bool, typer.Option("--json", help="As JSON, for programs; NaN is null.")], False
    return found


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _typed(hint: Any) -> Any:
    """Return the type of an option as typer takes it: what has a few choices is checked by the metric."""
    plain = {int, float, bool, str, int | None, float | None, str | None}
    return hint if hint in plain else str | None if type(None) in get_args(hint) else str


def run(metric: ColumnMetric, given: Mapping[str, Any]) -> int:
    """Print the numbers of `metric` on a file; 1 when one of them is undefined."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.metrics.files import measure_file

    names = {name: given[name] for name in metric.kinds if given[name] is not None}
    options = {name: given[name] for name in metric.options}
    if "separator" in given:
        options["separator"] = given["separator"]
    found = measure_file(metric, given["file"], names, **options)
    if given["as_json"]:
        whole = {name: None if _is_nan(value) else value for name, value in found.items()}
        echo(json.dumps(whole, indent=1, ensure_ascii=False))
    else:
        _show(metric, found)
    undefined = any(value is not None for name, value in found.items() if name.endswith("undefined"))
    return EXIT_INCOMPLETE if undefined else EXIT_DONE


def _show(metric: ColumnMetric, found: Mapping[str, Any]) -> None:
    from equivox.cli.show import console
    from equivox.report.numbers import DASH
    from equivox.report.table import Table, print_tables

    reasons = {name: value for name, value in found.items() if name.endswith("undefined")}
    table = Table(
        caption=metric.name,
        columns=("number", "value"),
        align="lr",
        rows=[[name, _cell(value)] for name, value in found.items() if name not in reasons],
        remarks=[f"{DASH} {name}: {value}" for name, value in reasons.items() if value is not None],
    )
    print_tables(console(), [table])


def _cell(value: Any) -> str:
    from equivox.report.numbers import DASH

    if value is None or _is_nan(value):
        return DASH
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
