"""What a run says of each task, and the numbers that show it; `report/verdict.py` has the words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from equivox.compare.runs import ComparedRun
from equivox.core.coverage import Coverage
from equivox.core.lazy import pa, pc
from equivox.core.outcomes import OUTCOMES, compute_smallest_relevant, order_deciding
from equivox.core.plain import split_by
from equivox.core.scores import Outcome, Score
from equivox.core.task import Task
from equivox.core.variants import declared_name
from equivox.run.plan import read_plan
from equivox.run.scoring import read_records


@dataclass(frozen=True)
class Rate:
    """A line of the screen: what is counted, and the number of each group."""

    name: str
    by_group: Mapping[str, float]

    @property
    def groups(self) -> list[str]:
        """The groups, the one with the largest number first."""
        return sorted(self.by_group, key=lambda group: -self.by_group[group])

    @property
    def spread(self) -> float:
        """How far the groups are apart."""
        return max(self.by_group.values()) - min(self.by_group.values())


@dataclass(frozen=True, eq=False)
class TaskVerdict:
    """What a run says of one task; `scores` are those that decide, the heaviest first."""

    run: ComparedRun
    scores: Sequence[Score]

    @property
    def score(self) -> Score:
        """The score that decides."""
        return self.scores[0]

    @property
    def outcome(self) -> Outcome:
        """The outcome of the task."""
        return self.score.outcome or "no_result"

    @cached_property
    def declared(self) -> Task | None:
        """The task as declared, or the first of the family that is scored together; None if it cannot be read."""
        names = (self.score.task, self.score.family)
        return next((task for task in self.run.tasks if task.name == names[0] or task.family == names[1]), None)

    @property
    def coverage(self) -> Coverage:
        """The counts of the task's answers; those of a refusal count refusals as answers."""
        whole = (s for s in self.run.scores if s.task == self.score.task and s.is_whole and s.role == "outcome")
        return next(whole, self.score).coverage

    @property
    def title(self) -> str:
        """The name of the task and what it compares: `story by gender`."""
        family, _, task = self.score.task.partition(":")
        name = declared_name(task or family)
        if self.declared is not None and self.declared.name == declared_name(self.score.task):
            name = self.declared.title or name
        return f"{name} by {self.score.dimension}" if self.score.dimension not in name else name

    @cached_property
    def measures(self) -> list[TaskVerdict]:
        """The tested measures of a whole task, each as a verdict: the surest first."""
        whole = {s.metric: s for s in self.scores if s.role == "outcome" and s.attribute is None and s.by_group}
        return [TaskVerdict(self.run, [score]) for score in sorted(whole.values(), key=lambda s: (s.q, -s.distance))]

    @property
    def measure_title(self) -> str:
        """The name of the measure in words; the attribute of a single number."""
        measure = self.run.measure(self.score)
        if self.score.parts and self.score.metric == "mean difference":
            return self.score.parts[0]
        return measure.title if measure is not None and measure.title else self.score.metric

    @property
    def unit_name(self) -> str:
        """The name of the units in the plural: speakers, applications; `items` where they have none."""
        task = self.declared
        if task is not None and task.unit_name:
            return task.unit_name
        if task is None or task.cluster == "item":
            table = None if task is None else task.data.table
            return table.stem if table is not None and str(table.stem).endswith("s") else "items"
        return task.cluster if task.cluster.endswith("s") else f"{task.cluster}s"

    def count_units(self) -> tuple[int, int]:
        """Return the units and the groups that a task asked about."""
        plan = read_plan(self.run.folder)
        names = [task.name for task in self.run.tasks if self.score.task in (task.name, task.family)]
        rows = plan.filter(
            pc.is_in(plan["task"].cast("string"), value_set=pa.array(names or [self.score.task], pa.string()))
        )
        return len(rows["cluster"].unique()), len([g for g in rows["group"].unique().to_pylist() if g])

    @cached_property
    def rates(self) -> list[Rate]:
        """The numbers of each group, those of the main attribute first, then the most unequal."""
        score, main = self.score, self._main_attribute
        if score.role == "outcome" and (values := _read_values(self.run, score)):
            shown = [row for row in values if row["role"] == "outcome" and score.attribute in (None, row["attribute"])]
            groups = sorted({row["group"] for row in shown})
            counted = split_by(shown, lambda row: (row["attribute"], row["value"]))
            rates = [
                (attribute != main, self._label_rate(str(value), dict.fromkeys(groups, 0.0) | shares))
                for (attribute, value), rows in counted.items()
                if (shares := {row["group"]: row["percent"] for row in rows})
            ]
            return [rate for _, rate in sorted(rates, key=lambda entry: (entry[0], -round(entry[1].spread, 6)))]
        return [self._label_rate(self.measure_title, score.by_group)] if score.by_group else []

    @property
    def _main_attribute(self) -> str:
        """The attribute whose values are shown first; empty without one, and if only others differ."""
        main = "" if self.declared is None else self.declared.main_attribute
        if self.outcome != "difference":
            return main
        tested = (s for s in self.run.scores if s.task == self.score.task and s.attribute == main and not s.subset)
        return main if any(s.outcome == "difference" for s in tested) else ""

    def _label_rate(self, name: str, by_group: Mapping[str, float]) -> Rate:
        """Return a line whose groups have their labels; labels that two groups would share are left out."""
        labelled = {self._labels.get(group, group): number for group, number in by_group.items()}
        return Rate(name, labelled if len(labelled) == len(by_group) else by_group)

    @property
    def _labels(self) -> Mapping[str, str]:
        return {} if self.declared is None else self.declared.group_labels

    def is_plural(self, group: str) -> bool:
        """Return whether a group has a label, which is a plural."""
        return group in self._labels.values()

    @cached_property
    def kind(self) -> str:
        """How the screen shows it.

        `choice`, `open`, `mean`, `measures` (several of one task), `refusal`, `loss`, `preference` or `count`.
        """
        if self.score.role in ("refusal", "loss"):
            return self.score.role
        if len(self.measures) > 2:
            return "measures"
        if self.score.null_value == 50:
            return "preference"
        if not self.score.unit.startswith("percent of the largest"):
            return "mean" if self.score.by_group else "count"
        return "choice" if len(self.rates) <= 2 and all(len(r.by_group) == 2 for r in self.rates) else "open"

    @property
    def gap(self) -> float:
        """The size of the difference: of two rates their difference as shown, of many values the estimate."""
        if self.kind in ("choice", "refusal", "loss") and self.rates:
            shown = [round_half_up(share) for share in self.rates[0].by_group.values()]
            return float(max(shown) - min(shown))
        if not self.score.defined:  # a constant answer: nothing differs
            return 0.0
        if self.kind == "preference":
            return self.score.value
        return self.score.value if self.kind == "count" else abs(self.score.headline - self.score.null_value)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference; NaN without one."""
        return self.score.interval

    @property
    def size(self) -> float:
        """The gap in multiples of what one looks for, which unlike units share."""
        relevant = compute_smallest_relevant(self.score, self.run.options.look_for)
        size = self.score.distance / relevant if relevant > 0 else 0.0
        return 0.0 if math.isnan(size) else size


def list_verdicts(run: ComparedRun) -> list[TaskVerdict]:
    """Return what a run says of each task as declared, the heaviest outcome and the largest gap first."""
    by_task = split_by((s for s in run.scores if "@" not in s.task), lambda score: score.task)
    found = [TaskVerdict(run, deciding) for scores in by_task.values() if (deciding := order_deciding(scores))]
    return sorted(found, key=lambda verdict: (OUTCOMES.index(verdict.outcome), -verdict.size))


def count_answers(run: ComparedRun) -> int:
    """Return the requests of a run as declared, without those of other conditions."""
    counted = {score.task: score.coverage.requested for score in run.scores if score.is_whole and "@" not in score.task}
    return sum(counted.values())


def round_half_up(number: float) -> int:
    """Return a number rounded to the nearest whole one; half is rounded up.

    >>> round_half_up(2.5), round_half_up(3.49)
    (3, 3)
    """
    return math.floor(number + 0.5)


def _read_values(run: ComparedRun, score: Score) -> list[Mapping[str, Any]]:
    """Return the shares of values of a task, which the task or its family stores; [] without any."""
    stored = (read_records(run.folder, name, "values", run.annotator) for name in (score.task, score.family))
    rows = next((rows for rows in stored if rows), [])
    return [row for row in rows if row.get("task", score.task) == score.task]
