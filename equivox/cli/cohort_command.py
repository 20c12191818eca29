"""`equivox cohort`: total scores, which are defined only relative to a cohort."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.core.metric import Metric


@dataclass(frozen=True)
class Wish:
    """The user's wishes: a published cohort, alone if `fixed`; the annotator whose scores are used; and the family."""

    published: str | None = None
    fixed: bool = False
    annotator: str | None = None
    family: str | None = None


def cohort(folders: Sequence[Path], wish: Wish) -> int:
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
        metric, name, values, by_stand_ins = _model(folder, wish)
        if name in runs:
            raise RequestError(f"two runs are of {name}; a cohort holds each model once")
        metrics[metric.name], runs[name] = metric, values
        made_up += [name] * by_stand_ins
    if len(metrics) > 1 or metric.cohort_totals is None:
        raise RequestError(f"the runs are scored by {', '.join(metrics)}; a cohort has one metric")
    found = metric.cohort_totals(runs, wish.published, fixed=wish.fixed)
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


def _model(folder: Path, wish: Wish) -> tuple[Metric, str, Mapping[str, float], bool]:
    """Return a run's metric, its model, its signed numbers over all tasks, and whether stand-ins were used.

    The numbers of several evaluations by the annotator are averaged.
    """
    from equivox.annotate import evaluation_of
    from equivox.compare.runs import run_metrics
    from equivox.core.errors import RequestError
    from equivox.run.annotating import evaluations_of
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    metrics = {name: metric for name, metric in run_metrics(folder).items() if metric.cohort_totals is not None}
    model, own_annotator = (str(read_manifest(folder)["command"][name]) for name in ("model", "annotator"))
    named = wish.annotator or evaluation_of(own_annotator)[0]
    evaluations = [
        [score for score in read_scores(folder, name) if score.is_whole and score.task in metrics]
        for name in evaluations_of(folder, named)
    ]
    families = list(dict.fromkeys(score.task for score in evaluations[0]))
    chosen = [name for name in families if wish.family in {None, name}]
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
                stand_ins |= bool(metric.stand_ins) and any(n.startswith(metric.stand_ins) for n in score.notes)
    return metric, model, {name: math.fsum(given) / len(given) for name, given in values.items()}, stand_ins
