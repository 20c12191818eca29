"""Do answers move with the voice? The trend of a run's answers over the doses of a changed voice, within speakers.

Words have no order, so each answer is placed by its side: of those who get its values in the declared condition, other
speakers than its own, the percentage that is of one group (`equivox.statistics.group_side`). A number is its own place.
A model that hears who speaks, and not how high, has no trend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from equivox.compare.pairs import OVERALL, Asked, OpenedRun, paired_generator
from equivox.core.encoded import EncodedLabels
from equivox.core.lazy import NDArray, np
from equivox.core.scores import NAN
from equivox.core.task import Attribute
from equivox.core.variants import declared_name, dose_of
from equivox.statistics import DoseSlope, adjust, dose_slope, group_side

POINTS, REFUSED = "points", "answers refused"
"""The unit of sides and of refusals, percentage points; and the name of the trend of refusals."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """How far the answers of one task move per semitone, within speakers; NaN if `undefined` gives a reason.

    Attributes
    ----------
    task, change
        The task as declared, or a family's `all tasks`, and what was changed: `pitch` or `voice`.
    attribute
        The attribute; empty: all attributes of words together; `answers refused`: the share that declines.
    towards
        The group towards whose side answers move where the slope is positive; empty for numbers and refusals.
    slope, ci_low, ci_high, unit
        The mean slope of the speakers and its 95 % interval, per semitone upwards, in percentage points of the values
        or in the number's unit. Zero: answers do not move.
    p, p_least, q
        Two-sided p, the slopes of whole speakers flipped; the smallest p that so many speakers can give; and q after
        Benjamini and Yekutieli over all trends of whole tasks, or of attributes, that are shown together.
    gap
        How far apart the declared condition has the group and the others on the same scale.
    means
        The mean over speakers at each dose, by its semitones, of recordings with an answer at every dose.
    n_requested, n_used, n_clusters, n_left_out
        Requests at all doses, those whose answers are used, speakers, and speakers without answers at two doses.
    is_whole
        False for one of several attributes of a task: it is shown below the task's own trend.
    """

    model: str
    dimension: str
    family: str
    task: str
    change: str
    attribute: str
    towards: str = ""
    unit: str = POINTS
    slope: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    p: float = NAN
    p_least: float = NAN
    q: float = NAN
    gap: float = NAN
    means: Mapping[float, float] = field(default_factory=dict)
    n_requested: int = 0
    n_used: int = 0
    n_clusters: int = 0
    n_left_out: int = 0
    is_whole: bool = True
    undefined: str | None = None


def dose_trends(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000) -> list[Trend]:
    """Return the trends of every task that a run asked at doses of a changed voice; empty if it asked none.

    A trend that cannot be computed is returned with the reason. What failed, was refused or was not annotated is
    missing, and counted. With more than two groups, each is set against the others.
    """
    found = [trend for one in opened for trend in _of_run(one, n_resamples)]
    q: dict[int, float] = {}
    for whole in (True, False):
        places = [place for place, trend in enumerate(found) if trend.is_whole == whole]
        q |= zip(places, adjust([found[place].p for place in places], method="by"), strict=True)
    return [replace(trend, q=q[place]) for place, trend in enumerate(found)]


def trend_records(trends: Sequence[Trend]) -> list[dict[str, Any]]:
    """Return trends as rows of plain values, with the mean at each dose in a column of its own."""
    doses = sorted({dose for trend in trends for dose in trend.means})
    return [
        {name: value for name, value in vars(trend).items() if name != "means"}
        | {f"mean at {dose:g}": trend.means.get(dose, NAN) for dose in doses}
        for trend in trends
    ]


def _of_run(one: OpenedRun, n_resamples: int) -> Iterator[Trend]:
    arms: dict[tuple[str, str], dict[float, Asked]] = {}
    for name, asked in one.asked.items():
        if dose := dose_of(asked.task.condition):
            arms.setdefault((declared_name(name), dose[0]), {})[dose[1]] = asked
    together: dict[tuple[str, str, str, str], list[_Sided]] = {}
    for (name, change), by_dose in arms.items():
        own = _Arms(one, name, change, dict(sorted(by_dose.items())), n_resamples)
        yield from _of_task(own)
        for sided in own.sided:
            first = sided.trend
            together.setdefault((first.family, first.dimension, change, first.towards), []).append(sided)
    for tasks in together.values():
        if len(tasks) > 1:
            yield _overall(tasks)


@dataclass(frozen=True)
class _Arms:
    """The answers of one task at several doses, beside those of the declared condition if it was asked."""

    one: OpenedRun
    name: str
    change: str
    by_dose: Mapping[float, Asked]
    n_resamples: int

    @property
    def plain(self) -> Asked | None:
        return self.one.asked.get(self.name)

    @property
    def outcomes(self) -> list[Attribute]:
        return next(iter(self.by_dose.values())).task.outcomes

    @cached_property
    def sided(self) -> list[_Sided]:
        """The sides of the answers, for one of two groups or for each of more; empty if they have no side."""
        return list(_sided(self))

    def empty(self, attribute: str, **given: Any) -> Trend:
        """Return a trend without numbers."""
        task = next(iter(self.by_dose.values())).task
        return Trend(
            model=self.one.run.model, dimension=task.dimension, family=self.name.partition(":")[0], task=self.name,
            change=self.change, attribute=attribute, n_requested=sum(len(arm.samples) for arm in self.by_dose.values()),
            **given,
        )  # fmt: skip

    def labels(self, column: str) -> EncodedLabels:
        """Return a column of texts of all answers, dose after dose."""
        return EncodedLabels.concatenated([arm.samples.label(column) for arm in self.by_dose.values()])

    def shortfall(self, used: NDArray[np.bool_]) -> str | None:
        """Return why the answers at a dose are too few, or None."""
        start = 0
        for dose, arm in self.by_dose.items():
            own = used[start : start + len(arm.samples)]
            start += len(own)
            if reason := arm.samples.coverage(own).shortfall(self.one.min_coverage):
                return f"{self.change}={dose:g}: {reason}"
        return None

    @cached_property
    def doses(self) -> NDArray[np.float64]:
        """The dose of each answer, dose after dose."""
        return np.concatenate([np.full(len(arm.samples), dose) for dose, arm in self.by_dose.items()])

    def tested(self, trend: Trend, columns: Sequence[NDArray[np.float64]], *, floor: bool = True) -> Trend:
        """Return `trend` with the slope of some columns together: a number of each answer, NaN where there is none."""
        used = np.any([~np.isnan(column) for column in columns], axis=0)
        trend = replace(trend, n_used=int(used.sum()))
        if reason := self.shortfall(used) if floor else None:
            return replace(trend, undefined=reason)
        return _slope(trend, [(self, column) for column in columns])


def _slope(trend: Trend, columns: Sequence[tuple[_Arms, NDArray[np.float64]]]) -> Trend:
    """Return `trend` with the slope of columns of some tasks together; a sample is compared in one column alone."""
    items = [arms.labels("sample_id") for arms, _ in columns]
    starts = np.cumsum([0, *(len(own.names) for own in items)])
    found: DoseSlope = dose_slope(
        np.concatenate([values for _, values in columns]),
        np.concatenate([arms.doses for arms, _ in columns]),
        clusters=EncodedLabels.concatenated([arms.labels("cluster") for arms, _ in columns]),
        items=np.concatenate([own.codes + start for own, start in zip(items, starts, strict=False)]),
        n_resamples=columns[0][0].n_resamples,
        rng=paired_generator("doses", trend.task, trend.change, trend.attribute, trend.towards),
    )
    return replace(
        trend, slope=found.slope, ci_low=found.ci_low, ci_high=found.ci_high, p=found.p, p_least=found.p_least,
        means=found.means, n_clusters=found.n_clusters, n_left_out=found.n_left_out, undefined=found.undefined,
    )  # fmt: skip


def _of_task(arms: _Arms) -> Iterator[Trend]:
    if len(arms.by_dose) < 2:
        (dose,) = arms.by_dose
        yield arms.empty("", undefined=f"{arms.change}={dose:g} is the only dose; `--conditions audio,pitch` asks five")
        return
    numbers = [attribute for attribute in arms.outcomes if attribute.number is not None]
    for attribute in numbers:
        yield _of_number(arms, attribute)
    if len(numbers) < len(arms.outcomes):
        yield from _of_words(arms)
    statuses = [arm.samples for arm in arms.by_dose.values()]
    refused = np.concatenate([samples.has_status("refused") for samples in statuses])
    if refused.any():
        answered = np.concatenate([samples.has_status("parsed", "unparsed", "refused") for samples in statuses])
        yield arms.tested(arms.empty(REFUSED), [np.where(answered, 100.0 * refused, np.nan)], floor=False)


def _of_number(arms: _Arms, attribute: Attribute) -> Trend:
    """Return the trend of a number, in its unit."""
    unit = attribute.number.unit if attribute.number is not None else ""
    trend = arms.tested(
        arms.empty(attribute.name, unit=unit),
        [np.concatenate([arm.samples.numbers(attribute).kept for arm in arms.by_dose.values()])],
    )
    groups = arms.labels("group").names
    if arms.plain is None or len(groups) != 2:
        return trend
    return replace(trend, gap=_gap(arms.plain, [arms.plain.samples.numbers(attribute).kept], groups[0]))


def _of_words(arms: _Arms) -> Iterator[Trend]:
    """Yield the trends of the sides of answers: of all attributes together, and of each where there are several."""
    task = next(iter(arms.by_dose.values())).task
    plain = arms.plain
    if not _has_sides(next(iter(arms.by_dose.values()))):
        why = f"the metric {task.metric.name} compares no shares of values between groups, so answers have no side"
        yield arms.empty("", undefined=why)
        return
    if plain is None:
        why = f"{arms.name} was not asked as declared, which tells what each group is answered; add `audio`"
        yield arms.empty("", undefined=why)
        return
    for sided in arms.sided:
        several = len(sided.columns) > 1
        if several:
            yield sided.trend
        for name, column in sided.columns.items():
            gap = _gap(plain, [sided.plain[name]], sided.trend.towards)
            empty = arms.empty(name, towards=sided.trend.towards, gap=gap, is_whole=not several)
            yield _unless_constant(arms.tested(empty, [column]), [name] if name in sided.constant else [], 1)


@dataclass(frozen=True)
class _Sided:
    """The sides of one task's answers: its trend, a column of each attribute, and the sides as declared.

    `constant` names the attributes whose values are the same in every answer.
    """

    arms: _Arms
    trend: Trend
    columns: Mapping[str, NDArray[np.float64]]
    plain: Mapping[str, NDArray[np.float64]]
    constant: Sequence[str]


def _sided(arms: _Arms) -> Iterator[_Sided]:
    plain, words = arms.plain, [attribute for attribute in arms.outcomes if attribute.number is None]
    if len(arms.by_dose) < 2 or not words or plain is None or not _has_sides(plain):
        return
    constant = [attribute.name for attribute in words if _is_constant(arms, attribute)]
    groups = plain.samples.groups.names
    for group in groups[: 1 if len(groups) == 2 else len(groups)]:
        columns = {
            attribute.name: np.concatenate([_sides(arm, plain, attribute, group) for arm in arms.by_dose.values()])
            for attribute in words
        }
        own = {attribute.name: _sides(plain, plain, attribute, group) for attribute in words}
        empty = arms.empty("", towards=group, gap=_gap(plain, list(own.values()), group))
        trend = _unless_constant(arms.tested(empty, list(columns.values())), constant, len(words))
        yield _Sided(arms, trend, columns, own, constant)


def _is_constant(arms: _Arms, attribute: Attribute) -> bool:
    """Return whether every answer at every dose has the same values."""
    lists = (arm.samples.parsed_values(attribute.name).lists() for arm in arms.by_dose.values())
    return len({tuple(sorted(own)) for lists_of_arm in lists for own in lists_of_arm if own}) == 1


def _unless_constant(trend: Trend, constant: Sequence[str], n_attributes: int) -> Trend:
    """Return `trend`, without numbers if all of its attributes are constant."""
    if trend.undefined is not None or len(constant) < n_attributes:
        return trend
    return replace(
        trend, slope=NAN, p=NAN, ci_low=NAN, ci_high=NAN, means={},
        undefined="every answer is the same: a constant answer shows no trend and no fairness",
    )  # fmt: skip


def _has_sides(asked: Asked) -> bool:
    """Return whether a task's metric compares shares of values between groups, so that a value has a side."""
    return asked.task.metric.panel("shares") is not None and bool(asked.task.group)


def _overall(tasks: Sequence[_Sided]) -> Trend:
    """Return the trend of all tasks of a family together; undefined if that of any task is."""
    first = tasks[0].trend
    trend = replace(
        first, task=f"{first.family}: {OVERALL}", gap=float(np.mean([one.trend.gap for one in tasks])),
        n_requested=sum(one.trend.n_requested for one in tasks), n_used=sum(one.trend.n_used for one in tasks),
    )  # fmt: skip
    if reason := next((f"{one.trend.task}: {one.trend.undefined}" for one in tasks if one.trend.undefined), None):
        return Trend(
            model=first.model, dimension=first.dimension, family=first.family, task=trend.task, change=first.change,
            attribute="", towards=first.towards, undefined=reason,
        )  # fmt: skip
    return _slope(trend, [(one.arms, column) for one in tasks for column in one.columns.values()])


def _sides(asked: Asked, plain: Asked, attribute: Attribute, group: str) -> NDArray[np.float64]:
    here, known = asked.samples, plain.samples
    return group_side(
        here.parsed_values(attribute.name), here.clusters, known=known.parsed_values(attribute.name),
        known_groups=known.groups, known_clusters=known.clusters, group=group,
    )  # fmt: skip


def _gap(plain: Asked, columns: Sequence[NDArray[np.float64]], group: str) -> float:
    """Return the mean of a group's clusters minus that of the others', over some columns; NaN if either has none."""
    groups, clusters = plain.samples.groups, plain.samples.clusters
    of_group = groups.codes == groups.names.index(group)
    means = []
    for members in (of_group, ~of_group):
        found = [
            float(np.mean(own[~np.isnan(own)]))
            for cluster in np.unique(clusters.codes[members])
            for column in columns
            if not np.isnan(own := column[members & (clusters.codes == cluster)]).all()
        ]
        means.append(float(np.mean(found)) if found else NAN)
    return means[0] - means[1]
