"""`equivox cohort`: total scores, which are defined only relative to a cohort."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from equivox.core.metric import Metric


def cohort(folders: Sequence[Path], published: str | None, family: str | None) -> int:
    """Print the total score of every member of the cohort; return 1 if a run has none."""
    from equivox.cli import EXIT_DONE, EXIT_INCOMPLETE
    from equivox.cli.show import console
    from equivox.core.errors import RequestError
    from equivox.report.numbers import DASH, score_value
    from equivox.report.table import Table, print_tables

    runs: dict[str, Mapping[str, float]] = {}
    made_up: list[str] = []
    metrics: dict[str, Metric] = {}
    for folder in folders:
        metric, name, values, by_stand_ins = _model(folder, family)
        if name in runs:
            raise RequestError(f"two runs are of {name}; a cohort holds each model once")
        metrics[metric.name], runs[name] = metric, values
        made_up += [name] * by_stand_ins
    if len(metrics) > 1 or metric.cohort_totals is None:
        raise RequestError(f"the runs are scored by {', '.join(metrics)}; a cohort has one metric")
    found = metric.cohort_totals(runs, published)
    names = [measure.name for measure in metric.measures]
    reasons = {name: reason for name, reason in found.undefined.items() if name in runs}
    remarks = [f"{DASH} no score for {name}: {reason}" for name, reason in reasons.items()]
    if made_up:
        remarks.append(f"{DASH} {metric.stand_ins}, comparable with nothing else: {', '.join(made_up)}")
    table = Table(
        caption=f"{metric.cohort_title}; cohort: {found.cohort}",
        columns=("model", *names, "total"),
        align="lr" + "r" * len(names),
        rows=[
            [model, *(score_value(own.get(name, math.nan), "") for name in names), score_value(found.total[model], "")]
            for model, own in found.values.items()
        ],
        remarks=remarks,
        notes=[metric.cohort_legend],
    )
    print_tables(console(), [table])
    return EXIT_INCOMPLETE if reasons else EXIT_DONE


def _model(folder: Path, family: str | None) -> tuple[Metric, str, Mapping[str, float], bool]:
    """Return a run's metric, its model, its signed numbers over all tasks, and whether stand-ins were used."""
    from equivox.compare.runs import run_metrics
    from equivox.core.errors import RequestError
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    metrics = {name: metric for name, metric in run_metrics(folder).items() if metric.cohort_totals is not None}
    scores = [score for score in read_scores(folder) if score.is_whole and score.task in metrics]
    families = list(dict.fromkeys(score.task for score in scores))
    chosen = [name for name in families if family in {None, name}]
    if len(chosen) != 1:
        known = f"it has {', '.join(families)}: name one with `--family`" if families else "run all of its tasks"
        raise RequestError(f"{folder} has not one family with scores over all its tasks that a cohort takes; {known}")
    metric = metrics[chosen[0]]
    own = [score for score in scores if score.task == chosen[0] and score.name in metric.by_name]
    stand_ins = bool(metric.stand_ins) and any(n.startswith(metric.stand_ins) for s in own for n in s.notes)
    model = str(read_manifest(folder)["command"]["model"])
    return metric, model, {score.name: score.value for score in own}, stand_ins
