"""Finished runs as the tables of a paper read them: each number with its evidence, or with the reason for none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from equivox.annotate import RULES, evaluation_of
from equivox.compare.runs import run_metrics
from equivox.configs.published import Source
from equivox.core.errors import EquivoxError, RequestError
from equivox.core.files import read_document, read_table
from equivox.core.metric import Metric
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
    folder
        The folder of the run.
    model
        The model as a run file names it: a packaged name, `scheme:arguments`, or a YAML file.
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
    """A measured number with its evidence, in the table's unit.

    Attributes
    ----------
    measured
        The number of the runs, averaged over `evaluations`; NaN if `undefined` gives a reason.
    spread
        The standard deviation over evaluations (n − 1); NaN for fewer than two.
    estimate
        What this project estimates instead, such as a distance without what noise adds; NaN if `measured` is it.
    low, high
        The interval of the estimate, or of `measured` if there is no estimate; NaN if there is none, and for averages
        over evaluations.
    q
        The corrected p of the score within its run; NaN where there is no test.
    p
        The p by the paper's own test; NaN where it has none. That of several evaluations takes them for independent
        samples, as the papers do (Stouffer's method), so that it is too small.
    weak
        What to know of a number without a star: that the design cannot tell, or that answers of one group are missing.
    """

    measured: float = NAN
    spread: float = NAN
    evaluations: int = 0
    estimate: float = NAN
    low: float = NAN
    high: float = NAN
    q: float = NAN
    p: float = NAN
    undefined: str | None = None
    weak: tuple[str, ...] = ()


def average(numbers: Sequence[Number], annotators: Sequence[str]) -> Number:
    """Return the mean of the numbers of several evaluations with their standard deviation (n − 1).

    One number stays as it is. A mean has no interval and no q. It is undefined if one of the numbers is: a mean over
    the evaluations that worked would be another number.
    """
    for number, annotator in zip(numbers, annotators, strict=True):
        if number.undefined is not None:
            where = f"{annotator}: " if len(numbers) > 1 else ""
            return Number(undefined=f"{where}{number.undefined}")
    if len(numbers) == 1:
        return numbers[0]
    return Number(
        measured=statistics.fmean(number.measured for number in numbers),
        spread=statistics.stdev(number.measured for number in numbers),
        evaluations=len(numbers),
        # A missing estimate makes the mean NaN.
        estimate=statistics.fmean(number.estimate for number in numbers),
        p=_pooled_p(numbers),
        weak=tuple(dict.fromkeys(line for number in numbers for line in number.weak)),
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
    p = 2 * float(ndtr(-abs(math.fsum(z)) / math.sqrt(len(z))))
    return 0.0 if p < 1e-300 else p


@dataclass(frozen=True)
class StoredRun:
    """A run, opened. `undefined` says why it cannot be read; None if it can.

    `families` names, by family of the paper, the one that stands for it in runs without the paper's tools.
    """

    run: TableRun
    manifest: Mapping[str, Any]
    undefined: str | None = None
    families: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: TableRun, families: Mapping[str, str]) -> StoredRun:
        """Return a run with its manifest, or with the reason why it has none."""
        try:
            return cls(run, read_manifest(run.folder), families=families)
        except RequestError as error:
            # The folder's name, not its place: tables are published.
            return cls(run, {}, str(error).replace(str(run.folder), run.folder.name))

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.run.folder

    @property
    def label(self) -> str:
        """The name of the model in tables, with that of the one that answered in its place."""
        label = model_label(self.run.model)
        return label_with_answering(label, self.manifest) if self.manifest else label

    def is_of(self, model: str) -> bool:
        """Return whether the run is of a model, given by its packaged name, the label of the run, or what it loads.

        A run whose server let another model answer is of that one alone, which the label says.
        """
        if self.manifest and answered_by(self.manifest):
            return model == self.label
        return model in {self.run.model, self.label} or _loaded(self.run.model) == _loaded(model) != ""

    def asked(self, source: Source) -> bool:
        """Return whether the run is one for a cell: of its model and setting, with its task or one of its family.

        A run that names no setting fits every one, as does every run where the cell names none.
        """
        of_setting = not source.setting or self.run.setting in {source.setting, ""}
        return of_setting and self.is_of(source.model) and self.named(source.task_name) in self._asked

    def named(self, task: str) -> str:
        """Return the name under which the run has a task of the paper: its own, or that of what stands for it."""
        family = family_of(task)
        stands = self.families.get(family, family) + task.removeprefix(family)
        return stands if self._by_rules and task not in self._asked and stands in self._asked else task

    @property
    def _by_rules(self) -> bool:
        """Whether only `rules` are named as annotators of the run: a miniature, in which they stand for every one."""
        return set(self.run.annotators) == {RULES}

    @cached_property
    def _asked(self) -> frozenset[str]:
        names = self.manifest["identity"]["tasks"] if self.manifest else ()
        return frozenset({*names, *map(family_of, names)})

    @cached_property
    def _metrics(self) -> Mapping[str, Metric]:
        return run_metrics(self.folder)

    def metric(self, task: str) -> Metric | None:
        """Return the metric of a task or a family; None if the run has none or its tasks cannot be read."""
        return self._metrics.get(family_of(self.named(task)))

    def stand_ins(self, task: str, annotators: Sequence[str]) -> list[str]:
        """Return a line if stand-ins for the published tools annotated the responses, else nothing."""
        metric = self.metric(task)
        if metric is None or metric.cohort is None:
            return []
        begins = metric.cohort.stand_ins
        notes = [
            note for name in annotators for s in self._scores(name) if s.task == self.named(task) for note in s.notes
        ]
        return [f"{begins}, comparable with nothing else"] * any(note.startswith(begins) for note in notes)

    def annotators(self, evaluator: str) -> list[str]:
        """Return the stored annotators that are averaged for an evaluator; without a name, for the run's own one.

        Where only `rules` are named as annotators of the run, they stand for every evaluator.
        """
        own = evaluation_of(str(self.manifest["command"]["annotator"]))[0]
        name = RULES if self._by_rules else evaluator or own
        return list(self.run.annotators.get(name, ())) or evaluations_of(self.folder, name)

    def number(self, source: Source, annotator: str) -> Number:
        """Return the number of a cell as one annotator's annotations give it."""
        if self._scored_responses(annotator) is None:
            return Number(undefined=f"no scores by {annotator}: `equivox annotate`, then `equivox score`")
        task = self.named(source.task_name)
        found = self._entry(source, task, annotator) if source.table else _score(source, task, self._scores(annotator))
        if found.undefined is None and not math.isfinite(found.measured):
            return Number(undefined="the stored number is not a number")
        return found

    # Many cells ask for the same scores and tables; each is read once.

    @cached_property
    def _scores(self) -> Callable[[str], list[Score]]:
        return cache(partial(read_scores, self.folder))

    @cached_property
    def _records(self) -> Callable[[str, str, str], list[dict[str, Any]] | None]:
        return cache(partial(read_records, self.folder))

    @cached_property
    def _scored_responses(self) -> Callable[[str], int | None]:
        """How many responses there were when an annotator's scores were computed; None without scores."""

        def answered(annotator: str) -> int | None:
            path = scores_path(self.folder, annotator)
            return read_document(path)["answered"] if path.is_file() else None

        return cache(answered)

    def _entry(self, source: Source, task: str, annotator: str) -> Number:
        """Return an entry of a stored table of a task."""
        what = f"the table {source.table} of {task}"
        records = self._records(task, source.table, annotator)
        if records is None:
            return Number(undefined=f"the run has no {what.removeprefix('the ')}")
        rows = [row for row in records if all(row.get(name) == value for name, value in source.where.items())]
        if not rows or (len(rows) > 1 and not source.add_up):
            asked = ", ".join(f"{name}={value}" for name, value in source.where.items())
            return Number(undefined=f"{what} has {len(rows) or 'no'} row{'s' * (len(rows) > 1)} with {asked}")
        if reason := next((row["undefined"] for row in rows if row.get("undefined")), None):
            return Number(undefined=str(reason))
        values = [float(row[source.column]) for row in rows if row.get(source.column) is not None]
        if len(values) < len(rows):
            return Number(undefined=f"{what} has no {source.column}")
        return Number(measured=math.fsum(values), evaluations=1)

    def findings(self, source: Source, table: str, annotator: str) -> list[Mapping[str, Any]] | None:
        """Return the rows of a family's table for the source's task, by rank; None where the run has no such table."""
        task = self.named(source.task_name)
        records = self._records(family_of(task), table, annotator)
        if records is None:
            return None
        wanted = {"task": task, **source.where}
        rows = [row for row in records if all(row.get(name) == value for name, value in wanted.items())]
        return sorted(rows, key=lambda row: int(row["rank"]))

    def departures(self, tasks: Collection[str]) -> list[str]:
        """Return in what the samples of the run are not those of the paper, for the run's tasks among `tasks`."""
        found = []
        tasks = {self.named(task) for task in tasks}
        if (limit := self.manifest["identity"]["limit"]) is not None:
            found.append(f"{limit} samples a task (`--limit {limit}`)")
        try:
            own = [task for task in read_tasks(self.folder) if {task.name, family_of(task.name)} & set(tasks)]
        except RequestError:
            return [*found, "its tasks cannot be read, so that its corpus is not known"]
        found += self._parts(tasks)
        if self.manifest["command"].get("data") == SAMPLE:
            return [*found, f"the embedded sample ({self._counted(own)}), not the published corpus"]
        for task in own:
            if limit is None and (why := self._unlike(task)):
                found.append(f"{task.name}: {why}")
        return found

    def stale(self, annotators: Sequence[str]) -> list[str]:
        """Return a line if responses came after the scores were computed."""
        stored = [n for name in annotators if (n := self._scored_responses(name)) is not None]
        early = [n for n in stored if n != self._answered]
        return [f"scored with {early[0]:,} of now {self._answered:,} responses: `equivox score`"] if early else []

    @cached_property
    def _answered(self) -> int:
        return count_answered(self.folder)

    def _parts(self, tasks: Collection[str]) -> list[str]:
        """Return the families among `tasks` of which the run asked a part alone."""
        found = []
        for family in sorted(name for name in set(tasks) & self._asked if ":" not in name):
            name, at, condition = family.partition("@")
            try:
                known = {f"{task.name}{at}{condition}" for task in resolve_tasks(name)}
            except RequestError:
                continue
            if left_out := known - self._asked:
                found.append(f"{len(known) - len(left_out)} of the {len(known)} tasks of {family}")
        return found

    def _counted(self, tasks: Sequence[Task]) -> str:
        counts = sorted({self._samples.get(task.name, 0) for task in tasks})
        return f"{' to '.join(f'{n:,}' for n in dict.fromkeys((counts[0], counts[-1])))} samples a task"

    @cached_property
    def _samples(self) -> dict[str, int]:
        """The number of distinct samples of each task."""
        plan = read_table(self.folder / PLAN_FILE, ["task", "sample_id"])
        counted = plan.group_by("task").aggregate([("sample_id", "count_distinct")])
        return dict(zip(counted["task"].to_pylist(), counted["sample_id_count_distinct"].to_pylist(), strict=True))

    def _unlike(self, task: Task) -> str | None:
        """Return in what the samples of a task are not the published ones; None if nothing speaks against it."""
        there = self._samples.get(task.name, 0)
        if task.data.table is not None:
            return f"{there:,} samples of a corpus of one's own"
        if (published := published_items(task)) is not None:
            return None if there == published else f"{there:,} samples, the published corpus has {published:,}"
        try:
            expected = open_corpus(task.data, None).fingerprint
        except EquivoxError:
            return f"{there:,} samples; how many the published corpus has is not known"
        same = self.manifest["identity"]["corpora"].get(task.data.corpus) == expected
        return None if same else f"{there:,} samples, not of the published corpus"


@cache
def _loaded(model: str) -> str:
    """Return the name of what a model loads; empty for simulated models and where it cannot be told."""
    if ":" not in model and model not in model_names() and not model.endswith((".yaml", ".yml")):
        return ""
    try:
        _, arguments = engine_of(model)
    except RequestError:
        return ""
    return "" if isinstance(arguments, str) else named_model(arguments)


def _score(source: Source, task: str, scores: Sequence[Score]) -> Number:
    """Return the score of a whole task or family with its evidence."""
    own = {s.subset: s for s in scores if (s.task, s.name, s.attribute) == (task, source.score, None)}
    score = own.get(source.subset)
    if score is None:
        arithmetic = f" ({source.subset})" if source.subset else ""
        return Number(undefined=f"the run has no {source.score} of {task}{arithmetic}")
    if score.undefined is not None:
        return Number(undefined=score.undefined)
    # A number by the paper's arithmetic has no test of its own: that of the score beside it speaks for both.
    whole = own.get("", score)
    if not whole.defined:
        return Number(measured=score.value, evaluations=1, p=score.p_paper)
    told = whole is not score or not math.isnan(whole.estimate)
    untold = whole.untold_in_any_unit
    weak = (None if untold is None else f"this design cannot tell: {untold}", whole.coverage.uneven)
    return Number(
        measured=score.value,
        evaluations=1,
        estimate=whole.headline if told else NAN,
        low=whole.ci_low,
        high=whole.ci_high,
        q=whole.q,
        p=score.p_paper,
        weak=tuple(filter(None, weak)),
    )
