"""Plain words for the stored scores of one model, task by task and of several tasks together.

A task whose score is undefined, or whose design cannot tell, is never counted as one without a difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from equivox.compare.runs import ComparedRun, ValueShares
from equivox.core.errors import RequestError
from equivox.core.plain import split_by
from equivox.core.scores import Mover, Score, Verdict, verdict
from equivox.core.task import Task
from equivox.core.text import how_many
from equivox.core.variants import is_intervention
from equivox.report.numbers import shortened
from equivox.run.scoring import read_records

MOST_TASKS, MOST_REASONS, MOST_VALUES, MOST_GROUPS = 6, 3, 3, 3
"""The most tasks that a sentence names, reasons that are given, values of a group, and groups with values."""
SMALLEST_GAP = 5.0
"""Values whose share differs by less, in percentage points, are not named as moved."""


@dataclass(frozen=True)
class TaskVerdict:
    """One task of one model: what is known of it, and the scores that say so.

    `name` is the task without its family; `scores` are those that decide, in the order of the metric's measures.
    """

    name: str
    family: str
    dimension: str
    verdict: Verdict
    scores: tuple[Score, ...]
    task: Task | None = None

    @property
    def found(self) -> list[Score]:
        """The scores that differ from no bias beyond chance."""
        return [score for score in self.scores if score.found]


def task_verdicts(run: ComparedRun) -> list[TaskVerdict]:
    """Return what is known of every task of a run.

    Controls, which ask without the voice or the face, are left out unless the run has nothing else. A score over all
    tasks of a family counts as a task of its own only where it is the only one of its family.
    """
    whole = [score for score in run.scores if score.is_whole]
    return _of_tasks(run, [score for score in whole if "@" not in score.task and _counts(run, score)] or whole)


def family_verdicts(run: ComparedRun, family: str) -> list[TaskVerdict]:
    """Return what is known of every task of one family, such as `vibe_gender` or the control `vibe_gender@silence`."""
    return _of_tasks(run, [score for score in run.scores if score.is_whole and score.family == family])


def _of_tasks(run: ComparedRun, scores: Sequence[Score]) -> list[TaskVerdict]:
    counted = [score for score in scores if _counts(run, score)]
    single = {score.family for score in counted if ":" in score.task}
    counted = [score for score in counted if ":" in score.task or score.family not in single]
    declared = {task.name: task for task in run.tasks}
    return [
        TaskVerdict(
            name=name.partition(":")[2] or name,
            family=own[0].family,
            dimension=own[0].dimension,
            verdict=verdict(own),
            scores=tuple(own),
            task=declared.get(name),
        )
        for name, own in split_by(counted, lambda score: score.task).items()
    ]


def _counts(run: ComparedRun, score: Score) -> bool:
    """Return whether a score is about a difference between people."""
    measure = run.measure(score)
    if score.role != "outcome" or (measure is not None and not measure.in_verdict):
        return False
    if math.isfinite(score.p):
        return True
    # Of a score without a test the metric says whether it could have had one.
    return not score.defined and (measure is None or measure.no_bias is not None or measure.null_mean)


LOST: Mapping[str, tuple[str, str]] = {
    "refusal": ("refusals", "refused"),
    "failure": ("failures", "left without an answer"),
    "unannotated": ("answers that could not be annotated", "answered in ways that could not be annotated"),
    "unstated": ("answers that lack a usable value", "given answers that lack a usable value"),
    "truncated": ("answers that the token limit cuts off", "given answers that the token limit cuts off"),
}
"""What is lost, and what happens to a group that loses it, by the attribute of the score that says so."""
LOST_ROLES = ("refusal", "loss")
"""The roles of the scores that say so."""


def unequal_losses(run: ComparedRun) -> list[Score]:
    """Return the scores of lost answers that differ between groups beyond chance.

    The ways to lose one are those of `LOST`. The largest comes first. Controls are left out unless the run has nothing
    else.
    """
    return [score for score in _losses(run) if score.found]


def untold_losses(run: ComparedRun) -> list[Score]:
    """Return the scores of lost answers with a gap between groups that the design cannot tell from chance."""
    return [score for score in _losses(run) if untold_gap(score)]


def untold_gap(score: Score) -> bool:
    """Return whether a score of lost answers has a wide gap between groups which the design cannot tell from chance."""
    most, why = score.mover, score.undefined or score.untold
    return most is not None and most.high_share - most.low_share >= SMALLEST_GAP and why is not None


def _losses(run: ComparedRun) -> list[Score]:
    """Return the scores of lost answers, the largest first; controls only if the run has nothing else.

    Other words, later turns and the like are no controls.
    """
    losses = [score for score in run.scores if score.role in LOST_ROLES and not score.subset]
    asked = [score for score in losses if "@" not in score.task or is_intervention(score.condition)] or losses
    return sorted(asked, key=lambda score: -score.value if score.defined else 0.0)


def about_losses(run: ComparedRun, family: str | None = None) -> list[str]:
    """Return, for each way to lose an answer that differs between groups, who loses more of them; [] if none does.

    With `family`, only its tasks are told of.
    """
    found = []
    unequal = [score for score in unequal_losses(run) if family is None or score.family == family]
    for attribute, own in split_by(unequal, lambda score: str(score.attribute)).items():
        most, tasks = own[0].mover, list(dict.fromkeys(score.task for score in own))
        if most is None:
            continue
        name = tasks[0].partition(":")[2] or tasks[0]
        where = name if len(tasks) == 1 else f"{name}; unequal in {how_many(len(tasks), 'task')}"
        found.append(
            f"group {shortened(most.high_group)} is {LOST[attribute][1]} more often, {lost_shares(most)} ({where})"
        )
    return found


def lost_shares(most: Mover) -> str:
    """Return the shares of lost answers in the group with the most and in the one with the fewest, in percent."""
    high, low = (short_value(share, "percent") if share else "0" for share in (most.high_share, most.low_share))
    return f"{shortened(most.high_group)} {high} % against {shortened(most.low_group)} {low} %"


def listed(names: Sequence[str], most: int = MOST_TASKS) -> str:
    """Return names as a list in words; of many, the first and the number of the others.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], most=2)
    ('a', 'a, b and c', 'a, b and 2 others')
    """
    shown = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} others"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def in_unit(value: float, unit: str) -> str:
    """Return a number with its unit, as short as a sentence needs it.

    >>> in_unit(65.27, "percent of all answers"), in_unit(0.3666, "sentences per narrative"), in_unit(13.21, "count")
    ('65 % of all answers', '0.367 sentences per narrative', '13.2')
    """
    if unit.split(" ")[0] == "percent":
        return f"{short_value(value, unit)} %{unit.removeprefix('percent')}"
    return f"{short_value(value, unit)} {unit}".removesuffix(" count")


def short_value(value: float, unit: str) -> str:
    """Return a number for a sentence: percent without decimals from 10 up, other units with three digits or more.

    >>> [short_value(number, "percent") for number in (99.96, -25.83, 9.94, -0.04)], short_value(153.08, "count")
    (['100', '-26', '9.9', '0.0'], '153')
    >>> short_value(29777.02, "EUR"), short_value(0.3666, "points")
    ('29,777', '0.367')
    """
    if unit.startswith("percent"):
        return f"{value:.0f}" if abs(value) >= 9.95 else f"{round(value, 1) + 0.0:.1f}"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value + 0.0:.3g}"


def short_interval(low: float, high: float, unit: str) -> str:
    """Return an interval for a sentence; empty if an end is not known."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{short_value(low, unit)} to {short_value(high, unit)}"


def clusters_of(told: Sequence[TaskVerdict]) -> str:
    """Return how many clusters were asked about, with the task's word for them; empty if that is not known.

    >>> score = Score(task="f:t", condition="", dimension="d", attribute=None, role="outcome", name="n", unit="",
    ...               zero_means="", n_clusters=20, coverage=None)
    >>> clusters_of([TaskVerdict("t", "f", "d", "not shown", (score,))])
    '20 clusters'
    """
    words: dict[str, set[int]] = {}
    for one in told:
        if counts := [score.n_clusters for score in one.scores if score.n_clusters]:
            words.setdefault(_many(one.task), set()).update(counts)
    return listed(
        [f"{min(own)} {word}" if len(own) == 1 else f"{min(own)} to {max(own)} {word}" for word, own in words.items()]
    )


def _many(task: Task | None) -> str:
    """Return the plural of a task's clusters: the column's name if it reads as a word, such as speakers."""
    column = task.cluster if task is not None else ""
    if len(column) > 3 and column.isalpha() and not column.endswith("s"):
        return f"{column.lower()}s"
    return f"clusters ({column})" if column else "clusters"


def groups_of(told: Sequence[TaskVerdict]) -> str:
    """Return who was compared, such as "female and male speakers", or how many groups; empty if it is not known."""
    groups = sorted({group for one in told for score in one.scores for group in score.coverage.requested_by_group})
    nouns = {_many(one.task) for one in told}
    noun = f" {next(iter(nouns))}" if len(nouns) == 1 and not next(iter(nouns)).startswith("clusters") else ""
    if len(groups) < 2:
        return ""
    if len(groups) > MOST_GROUPS:
        return f"{len(groups)} groups{f' of{noun}' if noun else ''} ({told[0].dimension})"
    return f"{listed([shortened(group) for group in groups])}{noun}"


def about_findings(run: ComparedRun, told: Sequence[TaskVerdict]) -> list[str]:
    """Return sentences about the largest finding: how large it is, and for whom what is said more often."""
    found = [(one, score) for one in told for score in one.found]
    if not found:
        return []
    if len({score.name for _, score in found}) > 1:
        return _amounts(run, found) or [_measures(run, found, several=len(told) > 1)]
    known = [entry for entry in found if math.isfinite(entry[1].distance)]
    one, most = max(known or found, key=lambda entry: entry[1].distance if known else entry[1].headline)
    what = f"{'It is' if len(found) == 1 else 'Largest:'} {one.name}, by" if len(told) > 1 else "By"
    size = f"{what} {_named(run, most)} {_size(run, most)}"
    return [f"{size}{_favour(_side(run, most))}.", *words_moved(run, most)]


def _amounts(run: ComparedRun, found: Sequence[tuple[TaskVerdict, Score]]) -> list[str]:
    """Return how large a difference of numbers is and whose are larger; empty unless it is about one task's number."""
    measures = [run.measure(score) for _, score in found]
    if len({score.task for _, score in found}) > 1 or not all(one is not None and one.in_unit for one in measures):
        return []
    (_, first), *others = found
    also = f", and by {listed([_named(run, score) for _, score in others])}" if others else ""
    means = [f"{first.notes[0][:1].upper()}{first.notes[0][1:]}."] if first.notes else []
    return [f"By {_named(run, first)} {_size(run, first)}{also}.", *means]


def _measures(run: ComparedRun, found: Sequence[tuple[TaskVerdict, Score]], *, several: bool) -> str:
    """Return which of several measures differ, by the side that they favour."""
    sides = split_by(found, lambda entry: _side(run, entry[1]))
    parts = []
    for side, own in sides.items():
        names = [f"{_named(run, score)}{f' in {one.name}' if several else ''}" for one, score in own]
        parts.append(f"{listed(names, most=8)}{_favour(side)}")
    return f"Found in {'; '.join(parts)}."


def _named(run: ComparedRun, score: Score) -> str:
    measure = run.measure(score)
    return f"{score.name} ({measure.title})" if measure is not None and measure.title else score.name


def _size(run: ComparedRun, score: Score) -> str:
    """Return how large a difference is with its interval; the interval comes first where noise is larger."""
    if score.null_mean > score.headline and math.isfinite(score.estimate) and math.isfinite(score.ci_high):
        noise = f"noise, which is taken out, would give {short_value(score.null_mean, score.unit)}"
        between = f"between {short_value(score.ci_low, score.unit)} and {in_unit(score.ci_high, score.unit)}"
        return f"{between} (95 % interval; the estimate is {short_value(score.headline, score.unit)}; {noise})"
    return f"{in_unit(score.headline, score.unit)}{_evidence(run, score)}"


def _evidence(run: ComparedRun, score: Score) -> str:
    parts = []
    if within := short_interval(score.ci_low, score.ci_high, score.unit):
        parts.append(f"95 % interval {within}")
    if math.isfinite(score.null_mean):
        measure = run.measure(score)
        out = measure is not None and measure.null_mean and math.isfinite(score.estimate)
        noise = "noise, which is taken out," if out else "noise alone"
        parts.append(f"{noise} would give {short_value(score.null_mean, score.unit)}")
    elif score.target:
        parts.append(f"no bias is {short_value(score.target, score.unit)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _side(run: ComparedRun, score: Score) -> str:
    """Return whom a signed score favours; empty if its metric does not say so."""
    metric = run.metrics.get(score.family)
    panel = metric.panel("metrics") if metric is not None else None
    if panel is None or not score.value or score.value == score.target:
        return ""
    return panel.sides[0] if score.value > score.target else panel.sides[1]


def _favour(side: str) -> str:
    return f", in favour of {side}" if side else ""


def words_moved(run: ComparedRun, score: Score) -> list[str]:
    """Return a sentence about the values that each group gets more often, in the attribute that differs most.

    Empty where the metric stores no shares and no list of findings.
    """
    parts = [
        part
        for part in run.scores
        if (part.task, part.name) == (score.task, score.name) and part.attribute and not part.subset and part.defined
        and part.role == "outcome" and part.mover is not None
    ]  # fmt: skip
    if not parts:
        return _strongest(run, score)
    most = max(parts, key=lambda part: (part.found, part.headline))
    try:
        shares = [one for one in run.value_shares if (one.task, one.attribute) == (most.task, most.attribute)]
    except RequestError:
        shares = []
    said = moved(shares)
    if not said and most.mover is not None:
        said = {most.mover.high_group: [most.mover.value]}
    if not said:
        return []
    told = "; ".join(
        f"{shortened(group)} {'more often ' if not place else ''}{', '.join(shortened(value) for value in values)}"
        for place, (group, values) in enumerate(said.items())
    )
    return [f"In {str(most.attribute).replace('_', ' ')}, {told}."]


def moved(shares: Sequence[ValueShares]) -> dict[str, list[str]]:
    """Return the values that each group gets more often than the mean of the other groups, the largest gap first.

    Of groups and values only those with the largest gaps; none below `SMALLEST_GAP`, or below a quarter of the largest.
    """
    gaps: list[tuple[float, str, str]] = []
    for one in shares:
        if len(one.by_group) < 2:
            continue
        group = max(one.by_group, key=lambda name: (one.by_group[name], name))
        others = [share for name, share in one.by_group.items() if name != group]
        gaps.append((one.by_group[group] - math.fsum(others) / len(others), group, one.value))
    gaps.sort(key=lambda entry: (-entry[0], entry[1:]))
    least = max(SMALLEST_GAP, gaps[0][0] / 4) if gaps else math.inf
    found: dict[str, list[str]] = {}
    for gap, group, value in gaps:
        if gap < least or (group not in found and len(found) == MOST_GROUPS):
            continue
        if len(found.setdefault(group, [])) < MOST_VALUES:
            found[group].append(value)
    return found


def _strongest(run: ComparedRun, score: Score) -> list[str]:
    """Return the strongest findings of a metric that lists them."""
    metric = run.metrics.get(score.family)
    panel = metric.panel("heat") if metric is not None else None
    if panel is None or not panel.top:
        return []
    rows = [
        row
        for row in read_records(run.folder, score.family, panel.top, run.annotator) or ()
        if row["task"] == score.task
    ]
    texts = [name for name in panel.top_columns if rows and isinstance(rows[0][name], str)]
    shown = [" · ".join(shortened(str(row[name])) for name in texts) for row in rows[:MOST_VALUES]]
    return [f"The strongest {panel.unit}: {'; '.join(shown)}."] if shown and texts else []


def about_no_finding(run: ComparedRun, told: Sequence[TaskVerdict]) -> list[str]:
    """Return sentences about tasks without a finding: no difference shown, cannot tell, or not known, each with why."""
    by_verdict: Mapping[Verdict, list[TaskVerdict]] = split_by(told, lambda one: one.verdict)
    return [
        *(_missed(run, by_verdict["not shown"]) if "not shown" in by_verdict else ()),
        *_reasons(told, "this design cannot tell", _why(told, lambda score: score.untold, without=("found",))),
        *_reasons(told, "undefined", _why(told, lambda score: score.undefined, without=())),
    ]


def _missed(run: ComparedRun, told: Sequence[TaskVerdict]) -> list[str]:
    """Return what the tasks without a shown difference do not rule out."""
    start = f"No difference shown: {listed([one.name for one in told])}"
    names = {score.name for one in told for score in one.scores}
    if len(names) > 1:
        return [f"{start}; the interval of each measure says what is not ruled out."]
    ends = [_furthest_end(score) for one in told for score in one.scores]
    first = told[0].scores[0]
    asked = f" with {clusters}" if (clusters := clusters_of(told)) else ""
    known = [end for end in ends if math.isfinite(end)]
    if len(known) < len(ends):
        return [f"{start}; without an interval it is not known how large a difference could be missed{asked}."]
    return [f"{start};{asked} {in_unit(max(known), first.unit)} is not ruled out (end of the 95 % interval)."]


def _furthest_end(score: Score) -> float:
    """Return the distance from no bias that the interval does not rule out; NaN without an interval."""
    if math.isfinite(score.estimate):
        return score.ci_high
    ends = (score.ci_low - score.target, score.ci_high - score.target)
    return max(map(abs, ends)) if all(map(math.isfinite, ends)) else math.nan


def _why(
    told: Sequence[TaskVerdict], reason_of: Callable[[Score], str | None], *, without: Sequence[Verdict]
) -> dict[str, list[tuple[str, str]]]:
    """Return, by reason without its numbers, the tasks that it holds for, each with the reason as it is."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in told:
        if one.verdict in without:
            continue
        by_reason = split_by((s for s in one.scores if reason_of(s)), lambda score: str(reason_of(score)))
        for reason, own in by_reason.items():
            some = f" ({', '.join(score.name for score in own)})" if len(own) < len(one.scores) else ""
            alike = re.sub(r"\d[\d.,]*", "0", reason)
            found.setdefault(alike, []).append((f"{one.name}{some}", reason))
    return found


def _reasons(told: Sequence[TaskVerdict], what: str, found: Mapping[str, list[tuple[str, str]]]) -> list[str]:
    """Return a sentence for each reason; of a single task the reason alone."""
    sentences = []
    for own in list(found.values())[:MOST_REASONS]:
        names = list(dict.fromkeys(name for name, _ in own))
        alike = f" ({own[0][0]}; the others alike)" if len({reason for _, reason in own}) > 1 else ""
        reason = " ".join(own[0][1].split()).rstrip(".")
        named = len(told) > 1 or names != [told[0].name]
        start = f"{listed(names)}: {what}: {reason}" if named else f"{reason[:1].upper()}{reason[1:]}"
        sentences.append(f"{start}{alike}.")
    if len(found) > MOST_REASONS:
        sentences.append(f"{len(found) - MOST_REASONS} other reasons stand with the scores ({what}).")
    return sentences
