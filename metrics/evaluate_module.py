"""Base of the modules of `evaluate` in `metrics/`."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate
from datasets import Features, Value
from datasets import Sequence as ListOf

from equivox.core.errors import UsageError
from equivox.metrics.column_metric import ColumnMetric

# `evaluate` refuses None among words: an entry is stored as a list of one, a missing entry as an empty list.
_TYPES = {
    "text": ListOf(Value("string")),
    "number": ListOf(Value("float64")),
    "texts": ListOf(ListOf(Value("string"))),
}


def module_of(metric: ColumnMetric[...]) -> type[ColumnModule]:
    """Return the class that `evaluate` looks for in the file of a module."""
    return type(metric.name, (ColumnModule,), {"METRIC": metric, "__doc__": metric.description})


class ColumnModule(evaluate.Measurement):  # type: ignore[misc]
    """A metric of columns as a module of `evaluate`."""

    METRIC: ClassVar[ColumnMetric[...]]

    def _info(self) -> evaluate.MeasurementInfo:
        told = (
            f"{name}: {kind}{'' if name in self.METRIC.required else '?'}" for name, kind in self.METRIC.kinds.items()
        )
        return evaluate.MeasurementInfo(
            description=self.METRIC.description,
            citation=self.METRIC.citation,
            inputs_description="One entry per row, ? may be left out. " + "; ".join(told),
            features=Features({name: _TYPES[kind] for name, kind in self.METRIC.kinds.items()}),
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **columns: Any) -> None:
        """Add rows, a list per column; an optional column that is None is missing for these rows."""
        checked = self.METRIC.check({"predictions": predictions, "references": references, **columns})
        if next(iter(checked.values())):
            kept = {name: [[] if entry is None else [entry] for entry in column] for name, column in checked.items()}
            super().add_batch(**kept)

    def add(self, *, prediction: Any = None, reference: Any = None, **row: Any) -> None:
        """Add one row."""
        # `evaluate` hands on these two as None, which says nothing; None in a column is a row without that entry.
        given = {"predictions": prediction, "references": reference}
        row |= {name: value for name, value in given.items() if value is not None}
        self.add_batch(**{name: [value] for name, value in row.items()})

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Compute the metric from the rows added before and the columns given here; other keywords are options."""
        columns = {name: kwargs.pop(name) for name in self.METRIC.kinds if name in kwargs}
        columns |= {"predictions": predictions, "references": references}
        if any(column is not None for column in columns.values()):
            self.add_batch(**columns)
        if self.writer is None:
            raise UsageError(f"{self.METRIC.name} was given no rows: give {', '.join(self.METRIC.required)}")
        result: dict[str, Any] | None = super().compute(**kwargs)
        return result

    def _compute(self, **kwargs: Any) -> dict[str, Any]:
        return self.METRIC(
            **{
                name: [entry[0] if entry else None for entry in value] if name in self.METRIC.kinds else value
                for name, value in kwargs.items()
            }
        )
