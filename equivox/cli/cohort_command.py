"""`equivox cohort`: total scores, which are defined only relative to a cohort."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from equivox.cli.options import runs_argument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equivox.core.metric import Metric


def cohort(
    runs: Annotated[list[Path], runs_argument("Folders of runs, one model each.")],
    published: Annotated[
        str | None, typer.Option("--with", help="Also a published cohort, such as published-llama-3.1-8b.")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="The published models alone are the cohort; their scores stay as printed.")
    ] = False,
    annotator: Annotated[str | None, typer.Option(help="Whose scores count; the run's annotator by default.")] = None,
    family: Annotated[str | None, typer.Option(help="The family, if a run has several.")] = None,
) -> int:
    """Print the total score of every run, relative to all of them and to published models."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.show import console
    from equivox.core.errors import RequestError
    from equivox.report.numbers import DASH, score_value
    from equivox.report.table import Table, print_tables

    found_of: dict[str, Mapping[str, float]] = {}
    made_up: list[str] = []
    metrics: dict[str, Metric] = {}
    for folder in runs:
        metric, name, values, by_stand_ins = _model(folder, annotator, family)
        if name in found_of:
            raise RequestError(f"two runs are of {name}; a cohort holds each model once")
        metrics[metric.name], found_of[name] = metric, values
        made_up += [name] * by_stand_ins
    if len(metrics) > 1 or metric.cohort is None:
        raise RequestError(f"the runs are scored by {', '.join(metrics)}; a cohort has one metric")
    found = metric.cohort.totals(found_of, published, fixed=fixed)
    names = [measure.name for measure in metric.measures]
    reasons = {name: reason for name, reason in found.undefined.items() if name in found_of}
    remarks = [f"{DASH} no score for {name}: {reason}" for name, reason in reasons.items()]
    if made_up:
        remarks.append(f"{DASH} {metric.cohort.stand_ins}, comparable with nothing else: {', '.join(made_up)}")
    table = Table(
        caption=f"{metric.cohort.title}; cohort: {found.cohort}",
        columns=("model", *names, "total"),
        align="lr" + "r" * len(names),
        rows=[
            [model, *(score_value(own.get(name, math.nan), "") for name in names), score_value(found.total[model], "")]
            for model, own in found.values.items()
        ],
        remarks=remarks,
        notes=[metric.cohort.legend],
    )
    print_tables(console(), [table])
    return EXIT_INCOMPLETE if reasons else EXIT_DONE


def _model(folder: Path, annotator: str | None, wanted: str | None) -> tuple[Metric, str, Mapping[str, float], bool]:
    """Return a run's metric, its model, its signed numbers over all tasks, and whether stand-ins were used.

    The numbers of several evaluations by the annotator are averaged.
    """
    from equivox.annotate import evaluation_of
    from equivox.compare.runs import run_metrics
    from equivox.core.errors import RequestError
    from equivox.run.annotating import evaluations_of
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    metrics = {name: metric for name, metric in run_metrics(folder).items() if metric.cohort is not None}
    model, own_annotator = (str(read_manifest(folder)["command"][name]) for name in ("model", "annotator"))
    named = annotator or evaluation_of(own_annotator)[0]
    evaluations = [
        [score for score in read_scores(folder, name) if score.is_whole and score.task in metrics]
        for name in evaluations_of(folder, named)
    ]
    families = list(dict.fromkeys(score.task for score in evaluations[0]))
    chosen = [name for name in families if wanted in {None, name}]
    if len(chosen) != 1:
        known = f"it has {', '.join(families)}: name one with `--family`" if families else "run all of its tasks"
        raise RequestError(f"{folder} has not one family with scores over all its tasks that a cohort takes; {known}")
    metric = metrics[chosen[0]]
    values: dict[str, list[float]] = {}
    stand_ins = False
    for own in evaluations:
        for score in own:
            if score.task == chosen[0] and score.name in metric.by_name:
                values.setdefault(score.name, []).append(score.value)
                stand_ins |= metric.cohort is not None and any(
                    n.startswith(metric.cohort.stand_ins) for n in score.notes
                )
    return metric, model, {name: math.fsum(given) / len(given) for name, given in values.items()}, stand_ins
