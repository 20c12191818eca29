"""The page of a metric on the Hub: it computes the metric of a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equivox.core.columns import ColumnMetric
from equivox.core.errors import RequestError
from equivox.dataset_builders.plain_tables import read_columns
from equivox.metrics.files import with_words


def measure_csv(metric: ColumnMetric, path: str | Path) -> dict[str, Any]:
    """Compute `metric` from a CSV with its columns; an empty cell is a missing entry.

    RequestError if the file is not a CSV or its columns do not fit.
    """
    return metric(**with_words(metric, read_columns(path)))


def page(metric: ColumnMetric) -> Any:
    """Return the page as a gradio interface, which `launch()` serves."""
    import gradio

    def answer(path: str | None) -> dict[str, Any]:
        if path is None:
            raise gradio.Error("Choose a CSV first.")
        try:
            return {
                name: None if value != value else value  # JSON has no NaN
                for name, value in measure_csv(metric, path).items()
            }
        except RequestError as error:
            raise gradio.Error(str(error)) from None

    needed = ", ".join(metric.required)
    optional = f" It may also have {', '.join(metric.optional)}." if metric.optional else ""
    several = " Several words in a cell are separated by |." if "texts" in metric.kinds.values() else ""
    return gradio.Interface(
        fn=answer,
        inputs=gradio.File(label="CSV", file_types=[".csv"], type="filepath"),
        outputs=gradio.JSON(label="Result"),
        title=metric.name,
        description=f"{metric.description} The table needs the columns {needed}.{optional}{several}",
        flagging_mode="never",
    )
