"""Cohorts of total bias scores: the published one, or the models of the compared runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from equivox.core.errors import RequestError, nearest

if TYPE_CHECKING:
    from equivox.statistics import TotalBias

METRICS = ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8")
"""The metrics in a total bias score."""

READ_BY_STAND_INS = "annotated by stand-ins"
"""The beginning of the note on scores that stand-ins for the published tools annotated."""

NO_COHORT = (
    "no total bias score: it only exists relative to a cohort; "
    "`equivox compare RUN RUN …` compares runs, `--with published-…` adds the published models"
)

Cohort = Mapping[str, Mapping[str, float]]
"""Model → metric → signed value."""


PUBLISHED = ("genres", "table_2")
"""The published table that holds the cohorts: one per evaluator, which is a block of the table."""


@cache
def _document() -> dict[str, Any]:
    from equivox.configs.published import published_paper

    paper, name = PUBLISHED
    (table,) = (table for table in published_paper(paper).tables if table.name == name)
    return {
        block.select.cohort: {
            "evaluator": block.label,
            "models": {
                model: dict(zip(table.columns, numbers, strict=True)) for model, numbers in block.published.items()
            },
        }
        for block in table.blocks
    }


def cohort_names() -> list[str]:
    """Return the names of the published cohorts; there is one per evaluator."""
    return list(_document())


def published_cohort(name: str) -> dict[str, dict[str, float]]:
    """Return the signed metrics of a published cohort; RequestError for another name.

    >>> published_cohort("published-glm-4-9b")["Gemini"]["M3"]
    0.968
    """
    return {model: {m: float(row[m]) for m in METRICS} for model, row in _entry(name)["models"].items()}


def published_total_bias(name: str) -> dict[str, float]:
    """Return the printed total bias scores of a published cohort."""
    return {model: float(row["TBS"]) for model, row in _entry(name)["models"].items()}


def _entry(name: str) -> dict[str, Any]:
    known = _document()
    if name not in known:
        raise RequestError(f"unknown cohort {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return dict(known[name])


def total_bias(models: Cohort, *, published: str | None = None, fixed: bool = False) -> TotalBias:
    """Return the total bias score of every member of a cohort: `models`, and a published cohort if one is named.

    With `fixed`, the published models alone are the cohort: their printed scores stay as they are, and a model's score
    does not depend on which others are scored. NaN with the reason if the cohort has fewer than two models, a model
    lacks a metric, or all have the same value.
    """
    from equivox.statistics import total_bias_score

    beside = published_cohort(published) if published else {}
    if twice := sorted(set(models) & set(beside)):
        raise RequestError(f"the model {twice[0]!r} is in {published} already; give the run another name")
    everyone = {**beside, **models}
    if fixed:
        if published is None:
            raise RequestError("`fixed` needs a published cohort; name it with `--with published-…`")
        return total_bias_score(everyone, cohort=beside, cohort_name=f"{published}, fixed")
    own = f"{len(models)} run{'' if len(models) == 1 else 's'}"
    return total_bias_score(everyone, cohort=everyone, cohort_name=f"{published} and {own}" if published else own)
