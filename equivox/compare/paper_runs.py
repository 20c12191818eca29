"""Finished runs as the tables of a paper read them: each number with its evidence, or with the reason for none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from equivox.annotate import RULES, evaluation_of
from equivox.compare.runs import run_metrics
from equivox.configs.published import Source
from equivox.core.errors import EquivoxError, UsageError
from equivox.core.files import read_document, read_table
from equivox.core.metric import Metric
from equivox.core.notes import Note, NoteCode, note_about, remark
from equivox.core.scores import NAN, Score, family_of
from equivox.core.task import Task
from equivox.dataset_builders.corpus import SAMPLE
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import engine_of, model_label, model_names, named_model
from equivox.run.annotating import count_answered
from equivox.run.declarations import read_tasks
from equivox.run.design import published_items
from equivox.run.manifest import answered_by, label_with_answering, read_manifest
from equivox.run.plan import PLAN_FILE
from equivox.run.scoring import read_records, read_scores, scores_path
from equivox.run.store import evaluations_of
from equivox.tasks.registry import resolve_tasks


@dataclass(frozen=True)
class TableRun:
    """A finished run for the tables of a paper.

    Parameters
    ----------
    folder, model
        The folder of the run, and its model as a run file names it: a packaged name, `scheme:arguments`, a YAML file.
    setting
        The setting of the paper that the run is of, if the paper has several; empty: any.
    annotators
        By the name of an evaluator, the stored annotators whose scores are averaged: independent evaluations of one
        evaluator. For an evaluator that is not named here, the stored evaluations of that name are averaged.
    """

    folder: Path
    model: str
    setting: str = ""
    annotators: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A measured number with its evidence, in the table's unit; what is not known is NaN.

    `measured` is the number of the runs, averaged over `evaluations`, whose standard deviation (n − 1) is `spread`; NaN
    if `undefined` gives a reason. `estimate` is what this project estimates instead, such as a distance without what
    noise adds; NaN if `measured` is it. `low` and `high` are the interval of the estimate, or of `measured` without an
    estimate; averages over evaluations have none. `q` is the corrected p of the score within its run, `p` that by the
    paper's own test; several evaluations are taken for independent samples, as the papers do (Stouffer's method), so
    that it is too small. `lacks` says whether the run or its task is missing. `weak` is what to know of a number
    without a star: that the design cannot tell, or that answers of one group are missing.
    """

    measured: Any = NAN
    spread: float = NAN
    evaluations: int = 0
    estimate: float = NAN
    low: float = NAN
    high: float = NAN
    q: float = NAN
    p: float = NAN
    undefined: str | None = None
    lacks: Literal["", "run", "task"] = ""
    weak: tuple[Note, ...] = ()


def average(numbers: Mapping[str, Number]) -> Number:
    """Return the mean of several evaluations, by annotator; it is undefined if one of them is."""
    every = list(numbers.values())
    for annotator, number in numbers.items():
        if len(every) > 1 and number.undefined is not None:
            return Number(undefined=f"{annotator}: {number.undefined}")
    if len(every) == 1:
        return every[0]
    measured = [number.measured for number in every]
    return Number(
        measured=statistics.fmean(measured),
        spread=statistics.stdev(measured),
        evaluations=len(every),
        estimate=statistics.fmean(number.estimate for number in every),
        p=_pooled_p(every),
        weak=tuple(dict.fromkeys(line for number in every for line in number.weak)),
    )


def _pooled_p(numbers: Sequence[Number]) -> float:
    """Return the p of the mean of signed numbers as if each came from a sample of its own; NaN if one has no p.

    Four evaluations of one size with p = 0.5 on one side: z = 4 · 0.6745 / √4 = 1.349.

    >>> round(_pooled_p([Number(measured=0.1, p=0.5)] * 4), 3), _pooled_p([Number(measured=1, p=0)] * 2)
    (0.177, 0.0)
    >>> round(_pooled_p([Number(measured=0.1, p=0.5), Number(measured=-0.1, p=0.5)]), 3)
    1.0
    """
    from scipy.special import ndtr, ndtri

    # A p that is too small for a float would be an infinite z.
    z = [math.copysign(ndtri(max(number.p, 1e-300) / 2), number.measured) for number in numbers]
    return 2 * float(ndtr(-abs(math.fsum(z)) / math.sqrt(len(z))))


class OpenedRun:
    """A run of a paper, opened; `undefined` says why it cannot be read, None if it can.

    `families` names, by family of the paper, the one that stands for it in runs without the paper's tools.
    """

    def __init__(self, run: TableRun, families: Mapping[str, str]) -> None:
        self.run, self.folder, self.families = run, run.folder, families
        self.label, self.undefined = model_label(run.model), None
        self.manifest: Mapping[str, Any] = {}
        try:
            self.manifest = read_manifest(run.folder)
            self.label = label_with_answering(self.label, self.manifest)
        except UsageError as error:
            # The folder's name, not its place: tables are published.
            self.undefined = str(error).replace(str(run.folder), run.folder.name)
        names = self.manifest["identity"]["tasks"] if self.manifest else ()
        self.tasks = frozenset({*names, *map(family_of, names)})
        self.by_rules = set(run.annotators) == {RULES}
        """Whether the run is a miniature, in which `rules` stand for every annotator."""
        # Many cells need the same scores and tables; each is read once.
        self.scores = cache(partial(read_scores, run.folder))
        self.records = cache(partial(read_records, run.folder))
        self.metrics = cache(partial(run_metrics, run.folder))
        self.answered = cache(self._count_scored)

    def is_of(self, model: str) -> bool:
        """Return whether the run is of a model, given by its packaged name, the label of the run, or what it loads.

        A run whose server let another model answer is of that one alone, which the label says.
        """
        if self.manifest and answered_by(self.manifest):
            return model == self.label
        return model in {self.run.model, self.label} or _loaded(self.run.model) == _loaded(model) != ""

    def has(self, source: Source) -> bool:
        """Return whether the run is one for a cell: of its model and setting, with its task or one of its family.

        A run that names no setting fits every one, as does every run where the cell names none.
        """
        of_setting = not source.setting or self.run.setting in {source.setting, ""}
        return of_setting and self.is_of(source.model) and self.task_of(source.task_name) in self.tasks

    def task_of(self, task: str) -> str:
        """Return the name under which the run has a task of the paper: its own, or that of what stands for it."""
        family = family_of(task)
        stands = self.families.get(family, family) + task.removeprefix(family)
        return stands if self.by_rules and task not in self.tasks and stands in self.tasks else task

    def metric(self, task: str) -> Metric | None:
        """Return the metric of a task or a family; None if the run has none or its tasks cannot be read."""
        return self.metrics().get(family_of(self.task_of(task)))

    def annotators(self, evaluator: str) -> list[str]:
        """Return the stored annotators that are averaged for an evaluator; without a name, for the run's own one."""
        name = RULES if self.by_rules else evaluator or evaluation_of(str(self.manifest["command"]["annotator"]))[0]
        return list(self.run.annotators.get(name, ())) or evaluations_of(self.folder, name)

    def _count_scored(self, annotator: str) -> int | None:
        """Count the responses that an annotator's scores are of; None without scores."""
        path = scores_path(self.folder, annotator)
        return read_document(path)["answered"] if path.is_file() else None

    def number(self, source: Source, annotator: str) -> Number:
        """Return the number of a cell as one annotator's annotations give it."""
        if self.answered(annotator) is None:
            return Number(undefined=f"no scores by {annotator}: `equivox annotate`, then `equivox score`")
        task = self.task_of(source.task_name)
        number = (
            self._entry(source, task, annotator) if source.table else read_score(source, task, self.scores(annotator))
        )
        if number.undefined is None and not math.isfinite(number.measured):
            return Number(undefined="the stored number is not a number")
        return number

    def _entry(self, source: Source, task: str, annotator: str) -> Number:
        """Return an entry of a stored table of a task."""
        records = self.records(task, source.table, annotator)
        if records is None:
            return Number(undefined=f"the run has no table {source.table} of {task}")
        what = f"the table {source.table} of {task} has"
        rows = [row for row in records if source.where.items() <= row.items()]
        if not rows or (len(rows) > 1 and not source.add_up):
            wanted = ", ".join(f"{name}={value}" for name, value in source.where.items())
            return Number(undefined=f"{what} {len(rows) or 'no'} row{'s' * (len(rows) > 1)} with {wanted}")
        if reason := next((row["undefined"] for row in rows if row.get("undefined")), None):
            return Number(undefined=str(reason))
        values = [float(row[source.column]) for row in rows if row.get(source.column) is not None]
        if len(values) < len(rows):
            return Number(undefined=f"{what} no {source.column}")
        return Number(measured=math.fsum(values), evaluations=1)

    def findings(self, source: Source, table: str, annotator: str) -> Number:
        """Return the entries of a family's table of findings for the source's task, by rank, as a number is."""
        task = self.task_of(source.task_name)
        records = self.records(family_of(task), table, annotator)
        if records is None:
            return Number(undefined=f"the run has no table {table} of {source.family}")
        rows = [row for row in records if {**source.where, "task": task}.items() <= row.items()]
        rows.sort(key=lambda row: int(row["rank"]))
        return Number(
            measured=[f"{row['category']} ↔ {row['phrase']} ({row['identity']})" for row in rows], evaluations=1
        )

    def doubts(self, task: str, annotators: Sequence[str]) -> list[str]:
        """Return whether responses came after the scores, and whether stand-ins annotated them."""
        answered = count_answered(self.folder)
        early = [n for name in annotators if (n := self.answered(name)) not in (None, answered)]
        lines = [f"scored with {n:,} of now {answered:,} responses: `equivox score`" for n in early[:1]]
        metric = self.metric(task)
        if metric is not None and metric.cohort is not None:
            scores = [score for name in annotators if self.answered(name) is not None for score in self.scores(name)]
            notes = [note for score in scores if score.task == self.task_of(task) for note in score.notes]
            if any(note.code == NoteCode.STAND_INS for note in notes):
                lines.append(f"{metric.cohort.stand_ins}, comparable with nothing else")
        return lines

    def departures(self, tasks: Collection[str]) -> list[str]:
        """Return how the samples of the run differ from the paper's, for the run's tasks among `tasks`."""
        names = {self.task_of(task) for task in tasks}
        limit = self.manifest["identity"]["limit"]
        lines = [] if limit is None else [f"{limit} samples a task (`--limit {limit}`)"]
        try:
            every = read_tasks(self.folder)
        except UsageError:
            return [*lines, "its tasks cannot be read, so that its corpus is not known"]
        for family in sorted(name for name in names & self.tasks if ":" not in name):
            name, at, condition = family.partition("@")
            with suppress(UsageError):
                known = {f"{task.name}{at}{condition}" for task in resolve_tasks(name)}
                if left_out := known - self.tasks:
                    lines.append(f"{len(known) - len(left_out)} of the {len(known)} tasks of {family}")
        plan = read_table(self.folder / PLAN_FILE, ["task", "sample_id"]).to_pandas()
        counts = plan.groupby("task", observed=True)["sample_id"].nunique().to_dict()
        sizes = [(task, counts.get(task.name, 0)) for task in every if {task.name, family_of(task.name)} & names]
        if self.manifest["command"].get("data") == SAMPLE:
            ends = dict.fromkeys(f"{end(n for _, n in sizes):,}" for end in (min, max))
            return [*lines, f"the embedded sample ({' to '.join(ends)} samples a task), not the published corpus"]
        for task, n in sizes:
            fingerprint = self.manifest["identity"]["corpora"].get(task.data.corpus)
            if limit is None and (why := compare_corpus(task, n, fingerprint)):
                lines.append(f"{task.name}: {why}")
        return lines


def compare_corpus(task: Task, n_samples: int, fingerprint: str | None) -> str | None:
    """Return how the samples of a task differ from the published ones; None if nothing speaks against them."""
    if task.data.table is not None:
        return f"{n_samples:,} samples of a corpus of one's own"
    if (published := published_items(task)) is not None:
        return None if n_samples == published else f"{n_samples:,} samples, the published corpus has {published:,}"
    try:
        expected = open_corpus(task.data, None).fingerprint
    except EquivoxError:
        return f"{n_samples:,} samples; how many the published corpus has is not known"
    return None if fingerprint == expected else f"{n_samples:,} samples, not of the published corpus"


@cache
def _loaded(model: str) -> str:
    """Return the name of what a model loads; empty for simulated models and where it is not known."""
    if ":" not in model and model not in model_names() and not model.endswith((".yaml", ".yml")):
        return ""
    try:
        _, arguments = engine_of(model)
    except UsageError:
        return ""
    return "" if isinstance(arguments, str) else named_model(arguments)


def read_score(source: Source, task: str, scores: Sequence[Score]) -> Number:
    """Return the score of a whole task or family with its evidence."""
    named = {s.subset: s for s in scores if (s.task, s.metric, s.attribute) == (task, source.score, None)}
    score = named.get(source.subset)
    if score is None:
        arithmetic = f" ({source.subset})" if source.subset else ""
        return Number(undefined=f"the run has no {source.score} of {task}{arithmetic}")
    if score.undefined_reason is not None:
        return Number(undefined=str(score.undefined_reason))
    # A number by the paper's arithmetic has no test: that of the score beside it speaks for both.
    whole = named.get("", score)
    if not whole.defined:
        return Number(measured=score.value, evaluations=1, p=score.p_published)
    hidden = whole.hidden_by or (remark("a difference could hide") if whole.outcome == "too_few_data" else None)
    few = None if hidden is None or whole.found else note_about("too few data", hidden)
    return Number(
        measured=score.value,
        evaluations=1,
        estimate=NAN if whole is score and math.isnan(whole.estimate) else whole.headline,
        low=whole.ci[0],
        high=whole.ci[1],
        q=whole.q,
        p=score.p_published,
        weak=tuple(why for why in (few, whole.coverage.uneven) if why is not None),
    )
