"""The first screen: what runs say, in at most 80 columns and 18 lines. All its wording stands in this file.

The outcomes were decided when the runs were scored (`equivox.core.outcomes`). This file chooses what to show of them:
the finding, the numbers of each group, the gap with its interval, and what to check before relying on it.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from equivox.annotate.rules import is_exact
from equivox.compare.runs import ComparedRun
from equivox.core.coverage import Coverage
from equivox.core.lazy import pa, pc
from equivox.core.outcomes import OUTCOMES, compute_smallest_relevant, order_deciding
from equivox.core.plain import split_by
from equivox.core.scores import LEVEL, Outcome, Score, distance_interval
from equivox.core.task import Task
from equivox.core.text import how_many
from equivox.core.variants import declared_name
from equivox.report.failures import find_unreadable_reply
from equivox.report.numbers import shortened
from equivox.run.plan import read_plan
from equivox.run.scoring import read_records

WIDTH = 80
MOST_TASKS, MOST_VALUES = 9, 3
LABELS: Mapping[Outcome, str] = {
    "difference": "DIFFERENCE FOUND", "no_result": "NO RESULT", "too_few_data": "TOO FEW DATA",
    "no_difference": "NO DIFFERENCE SEEN",
}  # fmt: skip
"""The outcomes as every output shows them."""
SHORT: Mapping[Outcome, str] = {
    "difference": "differs", "no_result": "no result", "too_few_data": "too few data",
    "no_difference": "no difference seen",
}  # fmt: skip
_OTHERS: Mapping[Outcome, str] = {
    "difference": "; {} with a difference",
    "no_result": "; {} without a result",
    "too_few_data": "; {} with too few data",
    "no_difference": "; {} with no difference seen",
}
_HEADLINES = {
    "value": "{most} {says} more often than {least}",
    "mean": "{value} is higher for {most} than for {least}",
    "refusal": "{most} {are} refused more often than {least}",
    "loss": "more answers about {most} are lost than about {least}",
    "preference": "{gap} of 100 choices lean one way, where 50 is even",
    "count": "{gap} {value}, where chance gives about {chance}",
}
_JUDGES = {
    "rules": "word lists read the answers; nobody checked them",
    "itself": "the judge is the tested model itself; nobody checked it",
    "model": "the judge is {judge}; nobody checked it",
}


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
    def rates(self) -> list[Rate]:
        """The numbers of each group, those of the main attribute first, then the most unequal."""
        score, main = self.score, self._main_attribute
        if score.role == "outcome" and (
            values := read_records(self.run.folder, score.task, "values", self.run.annotator)
        ):
            shown = [row for row in values if row["role"] == "outcome" and score.attribute in (None, row["attribute"])]
            groups = sorted({row["group"] for row in shown})
            counted = split_by(shown, lambda row: (row["attribute"], row["value"]))
            rates = [
                (attribute != main, self._label_rate(str(value), dict.fromkeys(groups, 0.0) | shares))
                for (attribute, value), rows in counted.items()
                if (shares := {row["group"]: row["percent"] for row in rows})
            ]
            return [rate for _, rate in sorted(rates, key=lambda entry: (entry[0], -round(entry[1].spread, 6)))]
        measure = self.run.measure(score)
        name = measure.title if measure is not None and measure.title else score.name
        if score.parts and name == "mean difference":
            name = score.parts[0]
        return [self._label_rate(name, score.by_group)] if score.by_group else []

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

    def say(self, group: str, value: str, verb: str = "get") -> str:
        """Return the phrase behind a group: that of the task for a value (`are invited`), or the value in quotes."""
        phrases = {} if self.declared is None else self.declared.says
        quoted = f'"{value}"'
        return phrases.get(value) or (f"{verb}{'' if self.is_plural(group) else 's'} {quoted}" if verb else quoted)

    def is_plural(self, group: str) -> bool:
        """Return whether a group has a label, which is a plural."""
        return group in self._labels.values()

    @property
    def kind(self) -> str:
        """How the screen shows it: `choice`, `open`, `mean`, `refusal`, `loss`, `preference` or `count`."""
        if self.score.role in ("refusal", "loss"):
            return self.score.role
        if self.score.target == 50:
            return "preference"
        if not self.score.unit.startswith("percent of the largest"):
            return "mean" if self.rates else "count"
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
        return abs(self.score.headline - (0.0 if self.kind == "count" else self.score.target))

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference; NaN without one."""
        return distance_interval(self.score.ci_low, self.score.ci_high, self.score.target)

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


def write_screen(runs: Sequence[ComparedRun]) -> str:
    """Return the first screen of one run or several, as text without colours."""
    verdicts = [list_verdicts(run) for run in runs]
    n_tasks, n_answers = max(map(len, verdicts), default=0), sum(_count_answers(run) for run in runs)
    right = f"{how_many(n_tasks, 'task')}, {how_many(n_answers, 'answer')}"
    if len(runs) > 1:
        left, body = f"{len(runs)} models", _write_models(runs, verdicts)
    elif len(verdicts[0]) == 1:
        left, right, body = _write_one(verdicts[0][0])
    else:
        left, body = runs[0].model, _write_tasks(verdicts[0])
    left = shortened(f"equivox · {left}", WIDTH)
    head = [f"{left}{right:>{WIDTH - len(left)}}"] if len(left) + len(right) < WIDTH else [left, f"{right:>{WIDTH}}"]
    where = runs[0].folder if len(runs) == 1 else "RUN"
    return "\n".join(
        line.rstrip() for line in [*head, "", *body, "", f"  equivox view {where}      the answers side by side"]
    )


def write_lines(run: ComparedRun) -> str:
    """Return a line per task of a run: its name, its outcome and the sentence behind it."""
    found = [(verdict.score.task, LABELS[verdict.outcome], write_headline(verdict)) for verdict in list_verdicts(run)]
    wide, label = (max((len(row[place]) for row in found), default=0) for place in (0, 1))
    return "\n".join(f"{task:<{wide}}  {outcome:<{label}}  {headline}" for task, outcome, headline in found)


def write_headline(verdict: TaskVerdict) -> str:
    """Return the sentence behind the outcome of one task."""
    score, (_, high) = verdict.score, verdict.interval
    if verdict.outcome == "difference":
        return _write_finding(verdict)
    constant = ""
    if not score.defined:
        counts = verdict.coverage
        if verdict.outcome == "no_result" and 5 * (counts.answered - counts.parsed) > counts.requested:
            return f"the judge could not read {counts.answered - counts.parsed:,} of {counts.requested:,} answers"
        if verdict.outcome == "no_result":
            return shortened(str(score.undefined), 160)
        constant = f'every answer was "{verdict.rates[0].name}"; ' if verdict.rates else "every answer was the same; "
    if not math.isfinite(high):
        return f"{constant}this test can find a difference but never rule one out"
    bound = _write_amount(verdict, math.ceil(high) if high > 5 else high)
    if verdict.outcome == "no_difference":
        return f"{constant}any gap is most likely below {bound}"
    needed = score.clusters_needed
    cure = f"; about {_round_up(needed):,} {_name_units(verdict)} would settle it" if needed else ""
    return f"{constant}a gap of up to {bound} could hide{cure}"


def round_half_up(number: float) -> int:
    """Return a number rounded to the nearest whole one; half is rounded up.

    >>> round_half_up(2.5), round_half_up(3.49)
    (3, 3)
    """
    return math.floor(number + 0.5)


def _write_finding(verdict: TaskVerdict) -> str:
    moved = [rate for rate in verdict.rates[:MOST_VALUES] if rate.spread > 0]
    if verdict.kind == "open" and moved:
        wins: dict[str, str] = {}
        for rate in moved:
            wins.setdefault(rate.groups[0], rate.name)
        often = "more often" if len(moved[0].by_group) == 2 else "most often, in these answers"
        (first, value), *others = list(wins.items())[:2]
        also = [f"{group} {verdict.say(group, other, verb='')}" for group, other in others]
        return ", ".join([f"{first} {verdict.say(first, value)} {often}", *also])
    facts = {
        "gap": _write_number(verdict.gap),
        "chance": _write_number(verdict.score.target),
        "value": verdict.score.name,
    }
    if moved:
        most, value = moved[0].groups[0], moved[0].name
        facts |= {"value": value, "most": most, "least": moved[0].groups[-1], "says": verdict.say(most, value)}
        facts["are"] = "are" if verdict.is_plural(most) else "is"
    return _HEADLINES["value" if verdict.kind in ("choice", "open") else verdict.kind].format(**facts)


def _write_one(verdict: TaskVerdict) -> tuple[str, str, list[str]]:
    """Return the title, what was asked, and the lines of the screen of one task."""
    headline, label = write_headline(verdict), LABELS[verdict.outcome]
    one_line = len(label) + len(headline) < WIDTH - 5
    head = [f"  {label}   {headline}"] if one_line else [f"  {label}", *_wrap(headline)]
    shown = [] if verdict.outcome == "no_result" else [*_write_numbers(verdict), *_write_gap(verdict), ""]
    checks = [line for mark, text in list_checks(verdict) for line in _indent(mark, text)]
    body = [*head, "", *(f"      {line}" if line else "" for line in shown), "  Before you rely on it"]
    n_units, n_groups = _count_units(verdict)
    n_answers = how_many(verdict.coverage.requested, "answer")
    asked = f"{n_units:,} {_name_units(verdict)}, {how_many(n_groups, 'group')}, {n_answers}"
    return f"{verdict.run.model} · {verdict.title}", asked, [*body, *(f"      {line}" for line in checks)]


def _write_numbers(verdict: TaskVerdict) -> list[str]:
    """Return a line per group, or per value where several values are shown."""
    rates = verdict.rates[: MOST_VALUES if verdict.kind == "open" else 1]
    if not rates:
        return []
    groups = sorted(rates[0].by_group)
    percent = verdict.kind != "mean"
    top = 100.0 if percent and len(rates) == 1 else max(max(rate.by_group.values()) for rate in rates)

    def show(number: float) -> str:
        return f"{round_half_up(number)} %" if percent else f"{_write_number(number)} {_unit(verdict)}".rstrip()

    if len(rates) == 1 and len(groups) <= MOST_TASKS:
        wide, cells = max(map(len, groups)), {group: show(rates[0].by_group[group]) for group in groups}
        most = max(map(len, cells.values()))
        return [f"{g:<{wide}}  {cells[g]:>{most}}  {_draw_bar(rates[0].by_group[g], top, 28)}" for g in groups]
    wide = max(len(shortened(rate.name, 24)) for rate in rates)
    if len(groups) == 2:
        lines = [f"{'':<{wide}}  {groups[0]:<18} {groups[1]}"]
        for rate in rates:
            cells_of = [f"{show(rate.by_group[g]):>5} {_draw_bar(rate.by_group[g], top, 11):<12}" for g in groups]
            lines.append(f"{shortened(rate.name, 24):<{wide}}  {' '.join(cells_of)}")
        return lines
    return [
        f"{shortened(rate.name, 24):<{wide}}  {rate.groups[0]} {show(rate.by_group[rate.groups[0]])}, others "
        f"{round_half_up(rate.by_group[rate.groups[-1]])} to {show(rate.by_group[rate.groups[1]])}"
        for rate in rates
    ]


def _write_gap(verdict: TaskVerdict) -> Iterator[str]:
    """Yield the gap with its interval and what chance says, and what the numbers of a distance mean."""
    low, high = verdict.interval
    known = math.isfinite(low) and math.isfinite(high)
    likely = f"likely {_write_number(low)} to {_write_number(high)}" if known else "no interval"
    first = f"gap      {_write_amount(verdict, verdict.gap)}, {likely}"
    if verdict.kind == "count":
        first = f"found    {_write_number(verdict.gap)}, chance gives {_write_number(verdict.score.target)}"
    if verdict.kind == "preference":
        away = f", which is {_write_number(low)} to {_write_number(high)} from even" if known else ""
        first = f"overall  {_write_number(verdict.gap)} of 100{away}"
    chance = _write_chance(verdict.score.q)
    yield from [f"{first}      {chance}"] if len(first) + len(chance) < WIDTH - 12 else [first, f"         {chance}"]
    if verdict.kind == "open":
        yield "         (0: all groups get the same answers, 100: they share none)"


def list_checks(verdict: TaskVerdict) -> Iterator[tuple[str, str]]:
    """Yield what to know before relying on a verdict, each with its mark: ok, check or note."""
    run, score, counts = verdict.run, verdict.score, verdict.coverage
    lost = {
        "failed": counts.requested - counts.generated, "refused or empty": counts.generated - counts.answered,
        "unreadable": counts.answered - counts.parsed, "without a value": counts.parsed - counts.used,
    }  # fmt: skip
    if counts.used == counts.requested:
        yield "ok", f"all {how_many(counts.requested, 'answer')} could be read, none was refused"
    else:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in lost.items() if n > 0)
        yield "check", f"{counts.requested - counts.used:,} of {counts.requested:,} answers do not count: {reasons}"
    if verdict.outcome == "no_result" and (reply := find_unreadable_reply(run.folder, run.annotator)) is not None:
        yield "why", f'it wrote "{reply}", not the form'
        yield "do", "repair the judge, then repeat the command with --redo-judge"
    for other in verdict.scores[1:]:
        if other.outcome == "difference" and other.role in ("refusal", "loss"):
            yield "check", f"also: {_write_finding(TaskVerdict(run, [other]))}"
        elif other.outcome == "no_result" and score.role != "outcome":
            yield "check", "too many answers are missing to compare the rest"
            break
    if run.origin.data == "sample":
        yield "check", "made-up sample data, not the published corpus"
    if not is_exact(run.model, run.annotator) and not run.audits:
        kind = "rules" if run.read_by_rules else "itself" if run.judges_itself else "model"
        yield "check", _JUDGES[kind].format(judge=run.annotator)
    if verdict.outcome == "difference" and score.detectable is not None:
        hidden = score.detectable.at(LEVEL)
        if hidden > compute_smallest_relevant(score, run.options.look_for):
            units, amount = _name_units(verdict), _write_amount(verdict, hidden)
            yield "note", f"gaps below about {amount} can hide among {score.n_clusters:,} {units}"


def _write_tasks(verdicts: Sequence[TaskVerdict]) -> list[str]:
    """Return the lines about several tasks of one model, or about none that was tested."""
    if not verdicts:
        return [f"  {LABELS['no_result']}   no task of this run was tested; the tables describe it"]
    counts = {outcome: sum(v.outcome == outcome for v in verdicts) for outcome in OUTCOMES}
    outcome, *others = (outcome for outcome in OUTCOMES if counts[outcome])
    also = "".join(_OTHERS[other].format(counts[other]) for other in others)
    lines = [f"  {LABELS[outcome]}   in {counts[outcome]} of {how_many(len(verdicts), 'task')}{also}", ""]
    says = "who gets more of what" if outcome == "difference" else ""
    lines.append(f"      {'':<22}{'gap':<13}{'likely':<17}{says}")
    n_shown = len(verdicts) if len(verdicts) <= MOST_TASKS + 1 else MOST_TASKS
    for verdict in verdicts[:n_shown]:
        low, high = verdict.interval
        likely = f"{_write_number(low)} to {_write_number(high)}" if math.isfinite(high) else "–"
        gap = "–" if verdict.outcome == "no_result" else _write_amount(verdict, verdict.gap)
        rate = next(iter(verdict.rates), None)
        says = SHORT[verdict.outcome]
        if verdict.outcome == "difference" and rate is not None:
            says = f"{rate.groups[0]}: {rate.name}"
        lines.append(f"      {shortened(verdict.title, 21):<22}{gap:<13}{likely:<17}{shortened(says, 22)}")
    return [*lines, *[f"      and {len(verdicts) - n_shown} more tasks"] * (n_shown < len(verdicts))]


def _write_models(runs: Sequence[ComparedRun], verdicts: Sequence[Sequence[TaskVerdict]]) -> list[str]:
    """Return the lines about several models: how many tasks have which outcome, and the largest difference."""
    columns: dict[Outcome, str] = {"difference": "differs", "no_difference": "no difference", "too_few_data": "too few"}
    if any(verdict.outcome == "no_result" for each in verdicts for verdict in each):
        columns["no_result"] = "no result"
    differing = sum(any(v.outcome == "difference" for v in each) for each in verdicts)
    head = (
        f"  {LABELS['difference']}   in {differing} of {len(runs)} models"
        if differing
        else "  No model shows a difference"
    )
    wide = min(28, max(len(run.model) for run in runs))
    lines = [head, "", f"  {'tasks by outcome':<{wide}}  {'  '.join(columns.values())}   largest gap"]
    for run, each in zip(runs, verdicts, strict=True):
        counts = "  ".join(
            f"{sum(v.outcome == outcome for v in each):>{len(name)}}" for outcome, name in columns.items()
        )
        largest = max((v for v in each if v.outcome == "difference"), key=lambda v: v.size, default=None)
        told = "–" if largest is None else f"{_write_amount(largest, largest.gap)}, {largest.title}"
        line = f"  {shortened(run.model, wide):<{wide}}  {counts}   "
        lines.append(f"{line}{shortened(told, WIDTH - len(line))}")
    return lines


def _write_number(number: float) -> str:
    """Return a number with as many digits as a reader needs: three of a large one, two decimals below 10; NaN: –."""
    if not math.isfinite(number):
        return "–"
    if abs(number) >= 1000:
        return f"{round(number, 3 - len(str(int(abs(number))))):,.0f}"
    return str(round_half_up(number)) if abs(number) >= 10 or number == int(number) else f"{number:.2f}"


def _write_amount(verdict: TaskVerdict, amount: float) -> str:
    """Return an amount in its unit: `31 points`, `23 of 100`, `26,000 EUR`."""
    if verdict.kind in ("choice", "refusal", "loss", "open"):
        return f"{round_half_up(amount)} {'of 100' if verdict.kind == 'open' else 'points'}"
    return f"{_write_number(amount)} {_unit(verdict)}".rstrip()


def _unit(verdict: TaskVerdict) -> str:
    """Return the unit of a score as printed behind a number; empty for a long one, which stands under --details."""
    unit = verdict.score.unit
    return "points" if unit.startswith("percent") else unit if len(unit) <= 12 else ""


def _write_chance(q: float) -> str:
    if math.isnan(q):
        return ""
    if q >= LEVEL:
        return "chance alone can explain it"
    return f"by chance: {'less than 1 in 1,000' if q < 0.001 else f'{math.ceil(1000 * q)} in 1,000'}"


def _draw_bar(number: float, top: float, width: int) -> str:
    return "█" * max(round(width * number / top), number > 0) if top > 0 else ""


def _wrap(text: str) -> list[str]:
    return [f"  {line}" for line in textwrap.wrap(text, WIDTH - 4)[:3]]


def _indent(mark: str, text: str) -> list[str]:
    return [f"{mark if n == 0 else '':<6} {line}" for n, line in enumerate(textwrap.wrap(text, WIDTH - 13))]


def _round_up(number: int) -> int:
    """Return a number with two digits, rounded up."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step


def _name_units(verdict: TaskVerdict) -> str:
    """Return what the data call the units: speakers, applications; `items` where they have no name."""
    task = verdict.declared
    if task is not None and task.unit_name:
        return task.unit_name
    if task is None or task.cluster == "item":
        table = None if task is None else task.data.table
        return table.stem if table is not None and str(table.stem).endswith("s") else "items"
    return task.cluster if task.cluster.endswith("s") else f"{task.cluster}s"


def _count_units(verdict: TaskVerdict) -> tuple[int, int]:
    """Return the units and the groups that a task asked about."""
    plan = read_plan(verdict.run.folder)
    names = [task.name for task in verdict.run.tasks if verdict.score.task in (task.name, task.family)]
    rows = plan.filter(
        pc.is_in(plan["task"].cast("string"), value_set=pa.array(names or [verdict.score.task], pa.string()))
    )
    # Some metrics test other units than those of the plan: contexts within speakers, names within pairs.
    n_units = max(len(rows["cluster"].unique()), verdict.score.n_clusters)
    return n_units, len([g for g in rows["group"].unique().to_pylist() if g])


def _count_answers(run: ComparedRun) -> int:
    """Return the requests of a run as declared, without those of other conditions."""
    counted = {score.task: score.coverage.requested for score in run.scores if score.is_whole and "@" not in score.task}
    return sum(counted.values())
