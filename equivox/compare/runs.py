"""Comparison of several runs, one per model: the tables and correlations of the papers, with evidence.

All numbers are read from the runs' stored files; nothing is scored again, but q is recomputed over all compared scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from equivox.annotate.rules import misread_by_rules
from equivox.compare.asking import asked_again, judges_itself, unlike_runs
from equivox.core.errors import UsageError
from equivox.core.files import file_hash, path_ends
from equivox.core.lazy import pc
from equivox.core.metric import Measure, Metric, Panel
from equivox.core.plain import split_by
from equivox.core.redact import redacted_text
from equivox.core.scores import DEFAULT_OPTIONS, NAN, Score, ScoringOptions
from equivox.core.task import Task
from equivox.core.variants import SHUFFLED
from equivox.dataset_builders.corpus import SAMPLING_RATE
from equivox.engines import model_label
from equivox.labels.result import Audit, CorrectedScore, list_audits
from equivox.run.declarations import read_tasks
from equivox.run.manifest import (
    MANIFEST_FILE,
    annotator_answered,
    answered_by,
    label_with_answering,
    public_manifest,
    read_manifest,
)
from equivox.run.opening import LeftOut, open_run
from equivox.run.plan import COLUMN, read_plan
from equivox.run.response_checks import ResponseCheck
from equivox.run.scoring import families, read_records, read_scores, scored_with
from equivox.statistics import adjust, correlations

HEARD_RATE = 16_000
"""Samples per second of the sound that models of speech take; recordings at higher rates are reduced to it."""

RATES = f"{COLUMN}{SAMPLING_RATE}"

CORRELATED = 4
"""The number of models that the interval of a correlation between tasks needs."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """When a run was made and from which data; a field that is not known is an empty text.

    `data` is `sample`, or the name of the folder or file that the corpora were in; `limit` is the number of samples
    that each task was cut to; `fingerprint` is the SHA-256 of the run's manifest, which states the hashes of its files.
    `revision` is that of the model: a commit, the hash of a local model, or what its engine states. `without_group`
    counts the samples that have no value of what is compared, by corpus, `alike` the units that were asked what another
    one was, by task, and `again` has, by group, the percent of requests that were answered after they had failed.
    """

    date: str = ""
    data: str = ""
    limit: int | None = None
    fingerprint: str = ""
    revision: str = ""
    without_group: Mapping[str, int] = field(default_factory=dict)
    alike: Mapping[str, int] = field(default_factory=dict)
    again: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparedRun:
    """One run in a comparison: its model's label, its folder and its scores.

    `read_by_rules` is the result of `misread_by_rules`; `tasks` is empty if the run's tasks can no longer be read.
    `answered_by` names the model that answered in place of the one that was asked, which the label then says, too;
    `annotator_answered` the names by which the annotator's server answered, if by others than it was asked for.
    `options` are those of the scores; `judges_itself` says that the annotator is the model. `response_checks` say what
    the stored responses show of dropped input and of reasoning in the answers.
    """

    model: str
    folder: Path
    annotator: str
    scores: Sequence[Score]
    metrics: Mapping[str, Metric] = field(default_factory=dict, repr=False)
    read_by_rules: bool = False
    tasks: Sequence[Task] = field(default=(), repr=False)
    origin: Origin = Origin()
    audits: Sequence[Audit] = ()
    answered_by: str = ""
    options: ScoringOptions = DEFAULT_OPTIONS
    judges_itself: bool = False
    annotator_answered: str = ""
    response_checks: Sequence[ResponseCheck] = ()

    def corrected(self, score: Score) -> CorrectedScore | None:
        """Return a score as people's labels correct it; None if no audit of it is kept with the run."""
        return next((found for audit in self.audits if (found := audit.of(score)) is not None), None)

    def alike(self, task: str) -> int:
        """Return how many units of a task, or of a family's, in any condition, were asked what another one was."""
        own = (one.name for one in self.tasks if task.partition("@")[0] in (one.name, one.family))
        return max((self.origin.alike.get(name, 0) for name in own), default=0)

    def measure(self, score: Score) -> Measure | None:
        """Return the measure of a score; None if the run's tasks cannot be read."""
        metric = self.metric_of(score)
        return None if metric is None else metric.by_name.get(score.metric)

    def metric_of(self, score: Score) -> Metric | None:
        """Return the metric of a score: its family's, or its task's where the family has questions of two kinds."""
        metric = self.metrics.get(score.family)
        if metric is not None and score.metric in metric.by_name:
            return metric
        return self.metric_of_tasks.get(score.task, metric)

    @cached_property
    def value_shares(self) -> list[ValueShares]:
        """The shares of every value of every attribute, the most common first if they have no order."""
        return _value_shares(self)

    @cached_property
    def wordings(self) -> Mapping[tuple[str, str], list[str]]:
        """The wordings that count as each open value, by its attribute and the value."""
        rows = read_records(self.folder, "", "open_values", self.annotator) or ()
        found = split_by(rows, lambda row: (row["attribute"], row["counts_as"]))
        return {of: [row["value"] for row in own] for of, own in found.items()}

    @cached_property
    def metric_of_tasks(self) -> dict[str, Metric]:
        """The metric of each task; empty if the run's tasks cannot be read."""
        return {task.name: task.metric for task in self.tasks}


@dataclass(frozen=True)
class Comparison:
    """The compared runs; `caveats` say why some of their numbers may not be compared."""

    runs: Sequence[ComparedRun]
    caveats: Sequence[str]

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metric of every family of the runs."""
        return {family: metric for run in self.runs for family, metric in run.metrics.items()}

    def scores(self) -> Iterator[tuple[str, Score]]:
        """Yield every score with its model."""
        for run in self.runs:
            for score in run.scores:
                yield run.model, score


def open_comparison(
    folders: Sequence[Path], left_out: Sequence[LeftOut] = (), annotator: str | None = None
) -> Comparison:
    """Return the comparison of the runs in `folders`, with q over all of them.

    Models have the names that the user gave; runs of one model also show the ends of their paths. What is in `left_out`
    could not be used, which is the first caveat. The next name runs with files that changed since they were scored.
    The scores are those by `annotator`, or by each run's own without one.
    UsageError if a folder holds no scored run.
    """
    manifests = [read_manifest(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UsageError("`compare` was given a run twice; name each once")
    names = {
        folder: model_label(str(manifest["command"]["model"]))
        for folder, manifest in zip(folders, manifests, strict=True)
    }
    for model, own in split_by(folders, names.__getitem__).items():
        if len(own) > 1:
            names |= {folder: f"{model} ({end})" for folder, end in zip(own, path_ends(own), strict=True)}
    runs = [compared_run(names[folder], folder, read_scores(folder, annotator), annotator) for folder in folders]
    changed = [redacted_text(told) for folder in folders if (told := open_run(folder)) is not None]
    return Comparison(runs, [*caveats_of(left_out), *changed, *unlike_runs(runs, manifests)])


def caveats_of(left_out: Sequence[LeftOut]) -> list[str]:
    """Return a sentence for each run that could not be used; pages show it, so it names no place on this machine."""
    return [redacted_text(f"{Path(name).name} is left out: {reason}") for name, reason in left_out]


def compared_run(model: str, folder: Path, scores: Sequence[Score], annotator: str | None = None) -> ComparedRun:
    """Return the run in `folder` with these scores, under the name `model` and that of the model that answered.

    The scores are by `annotator`, None: the run's own.
    """
    manifest = read_manifest(folder)
    model = label_with_answering(model, manifest)
    annotator = annotator or str(manifest["command"]["annotator"])
    tasks = _known_tasks(folder)
    return ComparedRun(
        model, folder, annotator, scores, _metrics(tasks), misread_by_rules(model, annotator, tasks), tasks,
        _origin(folder, manifest), list_audits(folder, annotator), answered_by(manifest),
        scored_with(folder, annotator), judges_itself(folder, annotator), annotator_answered(manifest, annotator),
        [ResponseCheck(**row) for row in read_records(folder, "", "response_checks", annotator) or ()],
    )  # fmt: skip


def run_metrics(folder: Path) -> dict[str, Metric]:
    """Return the metric of each family of a run; empty if its tasks can no longer be read."""
    return _metrics(_known_tasks(folder))


def _known_tasks(folder: Path) -> list[Task]:
    try:
        return read_tasks(folder)
    except UsageError:
        return []


def _metrics(tasks: Sequence[Task]) -> dict[str, Metric]:
    return {family: _together([task.metric for task in members]) for family, members in families(tasks).items()}


def _together(metrics: Sequence[Metric]) -> Metric:
    """Return the metric of a family: the first, with what those of its other questions measure, show and explain."""
    first, *others = {metric.name: metric for metric in metrics}.values()
    for other in others:
        first = replace(
            first,
            measures=(*first.measures, *(own for own in other.measures if own.name not in first.by_name)),
            glossary=(*first.glossary, *other.glossary),
            panels=(*first.panels, *other.panels),
        )
    return first


def _origin(folder: Path, manifest: Mapping[str, Any]) -> Origin:
    return Origin(
        date=str(manifest.get("created", ""))[:10],
        data=str(public_manifest(manifest)["command"].get("data") or ""),
        limit=manifest["identity"].get("limit"),
        fingerprint=file_hash(folder / MANIFEST_FILE),
        revision=str(manifest["identity"]["model"].get("revision") or ""),
        without_group=manifest.get("samples_without_group", {}),
        alike=manifest.get("asked_alike", {}),
        again=asked_again(folder),
    )


@dataclass(frozen=True, kw_only=True)
class TaskCorrelation:
    """Pearson correlation of two tasks' scores over models.

    The unit is the model: `p` is from the t-test, the interval is Fisher's, `q` is over all pairs of tasks. With few
    models the interval is wide. `r_estimate` correlates the estimates, because noise adds alike to the values.
    """

    dimension: str
    condition: str
    metric: str
    first: str
    second: str
    n_models: int
    r: float
    r_estimate: float
    ci_low: float = NAN
    ci_high: float = NAN
    p: float = NAN
    q: float = NAN
    undefined: str | None = None


def task_correlations(comparison: Comparison) -> list[TaskCorrelation]:
    """Return the correlations between all pairs of tasks of each dimension and condition; empty with one model."""
    if len(comparison.runs) < 2:
        return []
    by_task: dict[tuple[str, str, str], dict[str, dict[str, Score]]] = {}
    for run in comparison.runs:
        for score in run.scores:
            measure = run.measure(score)
            if score.is_whole and score.defined and measure is not None and measure.overall:
                own = by_task.setdefault((score.dimension, score.condition, score.metric), {})
                own.setdefault(score.task, {})[run.model] = score
    found = []
    for key, tasks in by_task.items():
        pairs = [_correlation(key, *pair, tasks) for pair in combinations(tasks, 2)]
        q = adjust([pair.p for pair in pairs])
        found += [replace(pair, q=own) for pair, own in zip(pairs, q, strict=True)]
    return found


def _correlation(
    key: tuple[str, str, str], first: str, second: str, tasks: Mapping[str, Mapping[str, Score]]
) -> TaskCorrelation:
    models = [model for model in tasks[first] if model in tasks[second]]
    dimension, condition, metric = key
    empty = TaskCorrelation(
        dimension=dimension, condition=condition, metric=metric, first=first, second=second, n_models=len(models),
        r=NAN, r_estimate=NAN,
    )  # fmt: skip
    if not models:
        return replace(empty, undefined="no model has a score in both")
    columns = {name: [tasks[name][model] for model in models] for name in (first, second)}
    values = {name: [score.value for score in scores] for name, scores in columns.items()}
    (plain,) = correlations(values)
    (above,) = correlations({name: [score.unbiased for score in scores] for name, scores in columns.items()})
    result = replace(empty, r=plain.r, r_estimate=above.r, undefined=plain.undefined)
    if math.isnan(plain.r) or len(models) < CORRELATED:
        few = f"an interval needs {CORRELATED} models, there are {len(models)}"
        return replace(result, undefined=plain.undefined or few)
    from scipy.stats import pearsonr

    test = pearsonr(*values.values())
    interval = test.confidence_interval()
    return replace(result, ci_low=float(interval.low), ci_high=float(interval.high), p=float(test.pvalue))


@dataclass(frozen=True, kw_only=True)
class ValueShares:
    """The share of one value of an attribute in each group, in percent of the group's values."""

    model: str
    task: str
    attribute: str
    value: str
    by_group: Mapping[str, float]


def _value_shares(run: ComparedRun) -> list[ValueShares]:
    found = []
    for task, panel in _tables_of_shares(run).items():
        if (rows := read_records(run.folder, task, panel.table, run.annotator)) is None:
            if not any(score.defined for score in run.scores if score.task == task):
                continue  # nothing of the task was known, so that there is no table
            raise UsageError(f"{run.folder} has no {panel.table}.parquet; make it with `equivox score {run.folder}`")
        shares: dict[tuple[str, str], dict[str, float]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for row in rows:
            shares.setdefault((row["attribute"], row["value"]), {})[row["group"]] = row["percent"]
            counts[row["attribute"], row["value"]] += row["n"]
        found += [
            ValueShares(model=run.model, task=task, attribute=attribute, value=value, by_group=by_group)
            for (attribute, value), by_group in (
                shares.items() if panel.in_order else sorted(shares.items(), key=lambda entry: -counts[entry[0]])
            )
        ]
    return found


def _tables_of_shares(run: ComparedRun) -> dict[str, Panel]:
    """Return the panel of shares for every task whose metric stores a table of them."""
    found: dict[str, Panel] = {}
    for score in run.scores:
        # Where the run's tasks cannot be read, that of the family.
        metric = run.metric_of_tasks.get(score.task) or run.metrics.get(score.family)
        if ":" in score.task and metric is not None and (panel := metric.panel("shares")) is not None:
            found[score.task] = panel
    return found


def recorded_apart(run: ComparedRun) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield a low sampling rate and the percent of each group's recordings that have it, for each task.

    It is the rate in which the groups differ most; a task without recordings below `HEARD_RATE`, or that holds
    `sampling_rate` equal, yields nothing. What a recording lacks above half its rate tells nothing of the person.
    """
    heard = [task for task in run.tasks if any(medium.kind == "audio" for medium in task.media)]
    plan = read_plan(run.folder) if heard else None
    if plan is None or RATES not in plan.column_names:
        return
    plan = plan.filter(pc.greater(pc.list_value_length(plan["media_sha256"]), 0))
    for task in heard:
        own = plan.filter(pc.equal(plan["task"], task.name))
        if task.condition == SHUFFLED or SAMPLING_RATE in (*task.strata, *task.blocks) or not len(own):
            continue
        counts = Counter(zip(own["group"].to_pylist(), own[RATES].to_pylist(), strict=True))
        sizes = sorted(Counter(own["group"].to_pylist()).items())
        low = sorted({int(rate) for _, rate in counts if rate and int(rate) < HEARD_RATE})
        shares = [(rate, {group: 100 * counts[group, str(rate)] / n for group, n in sizes}) for rate in low]
        if shares:
            yield max(shares, key=lambda one: max(one[1].values()) - min(one[1].values()))


def comparison_records(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """Return the comparison as tables of plain values, by file name: scores, correlations, values."""
    scores = [{"model": model, **score.as_row()} for model, score in comparison.scores()]
    values = [
        {
            **{name: getattr(share, name) for name in ("model", "task", "attribute", "value")},
            "group": group,
            "percent": p,
        }
        for run in comparison.runs
        for share in run.value_shares
        for group, p in share.by_group.items()
    ]
    return {"scores": scores, "correlations": [vars(c) for c in task_correlations(comparison)], "values": values}
