"""Whether a new run is worse than a baseline by more than a margin: a check for nightly builds.

The paired interval decides, see `equivox.compare.pairs`. If all of it lies below the margin, the new run passes; if
all of it lies above, the new run is worse; otherwise this design cannot decide. Runs that cannot be compared, tasks
that are missing and answers that failed never pass, and a run is worse whose groups differ more than the baseline's in
how often their answers are lost (`equivox.compare.loss_changes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from equivox.compare.asking import unlike_settings
from equivox.compare.loss_changes import SMALLEST_GROWTH, LossChange, loss_changes
from equivox.compare.pairs import OVERALL, PairedTest, Subject, open_runs, paired_tests
from equivox.compare.runs import ComparedRun, Comparison, open_comparison
from equivox.core.coverage import MOST_RARE
from equivox.core.errors import RequestError, nearest
from equivox.core.metric import Measure
from equivox.core.redact import redacted_text
from equivox.core.scores import NAN, Score, distance_interval, left_out_of, unusual_options
from equivox.core.variants import is_control
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest, stated_hashes

Outcome = Literal["pass", "worse", "inconclusive", "not comparable"]

SEVERITY: tuple[Outcome, ...] = ("pass", "inconclusive", "not comparable", "worse")
"""The outcomes in the order in which one of them decides for all."""
EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "not comparable": 1, "worse": 3, "inconclusive": 4}
MIN_COVERAGE = 0.95


@dataclass(frozen=True, kw_only=True)
class Check(Subject):
    """One number of the new run, held against a limit.

    Attributes
    ----------
    against
        The baseline's model; empty for a check of the new run alone (`limit` is the largest value then).
    value, baseline
        The distance of each run from "no bias", for a pair on the samples that both answered; NaN without a baseline.
    difference
        How much further the new run lies from "no bias" than the baseline, or the new run's distance from it.
    low, high
        The interval of `difference`.
    limit
        The margin, or the largest value.
    decides_from
        The smallest limit that a run like this one could pass if the difference were 0: half the interval's width. NaN
        for a check of the new run alone.
    outcome, reason
        The result, and its reason where no interval gives it.
    """

    against: str
    limit: float
    outcome: Outcome
    value: float = NAN
    baseline: float = NAN
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    decides_from: float = NAN
    reason: str = ""

    @property
    def name(self) -> str:
        """The task, metric and kind of check in one line."""
        return f"{self.task} {self.metric} {f'against {self.against}' if self.against else 'alone'}"

    @property
    def would_do(self) -> str:
        """What would decide an open check if the difference stayed as it is; empty if no number of clusters would.

        An interval narrows with the root of the number of clusters:

        >>> Check(task="f:t", condition="text", dimension="g", family="f", metric="M", unit="percent", against="",
        ...       limit=10.0, outcome="inconclusive", difference=4.0, low=0.0, high=16.0).would_do
        '4 times as many clusters would do'
        """
        if self.outcome != "inconclusive" or self.reason or math.isnan(self.low) or self.difference == self.limit:
            return ""
        end = self.high if self.difference < self.limit else self.low
        times = math.ceil(10 * ((end - self.difference) / (self.limit - self.difference)) ** 2) / 10
        return f"{times:g} times as many clusters would do"


@dataclass(frozen=True)
class Gate:
    """The checks of a new run, and the outcome of all: the worst of them.

    `unchecked` names the numbers of the run, by task and metric, that no check is about. `caveats` say why runs may not
    be compared, and with which options scores were made that then mean something else than declared.
    """

    model: str
    checks: Sequence[Check]
    unchecked: Sequence[str] = ()
    caveats: Sequence[str] = ()

    @property
    def outcome(self) -> Outcome:
        """The outcome that decides: worse, else not comparable, else inconclusive, else pass."""
        return max((check.outcome for check in self.checks), key=SEVERITY.index, default="not comparable")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits by the name of a task or a metric; a task's comes first, and that of "" holds for all others.

    `margin` is how much worse than the baseline a run may be, `most` the largest distance from "no bias".
    """

    margin: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: Literal["margin", "most"], metric: str, task: str) -> float | None:
        """Return the limit of a metric in a task; None if there is none."""
        limits = getattr(self, kind)
        found: float | None = limits.get(task, limits.get(metric, limits.get("")))
        return found


def read_limits(given: Sequence[str], option: str) -> dict[str, float]:
    """Return limits by the name of a task or a metric, "" for all others, from texts such as `5` and `NAME=5`.

    RequestError for what is no number, and for a name that is given twice; `option` is what they were given as.
    """
    found: dict[str, float] = {}
    for text in given:
        # The names of tasks can hold a sign of equality themselves (turn=2).
        name, equals, value = text.rpartition("=")
        try:
            # Without its name, as in "$METRIC=5" where nobody set METRIC, a limit would hold for everything.
            limit = float(text if equals and not name else value)
        except ValueError:
            raise RequestError(f"`{option}` is a number, or NAME=number, got {text!r}") from None
        if name in found:
            raise RequestError(f"`{option}` is given twice{f' for {name}' if name else ''}; give it once")
        found[name] = limit
    return found


def gate(
    new: Path,
    baseline: Path | None,
    limits: Limits,
    *,
    overall: bool = False,
    min_coverage: float = MIN_COVERAGE,
) -> Gate:
    """Return the checks of the run in `new` against the one in `baseline`, and against absolute limits.

    Every number of a whole task is checked for which the metric has a value that means "no bias"; against the baseline,
    with `overall`, only the mean over a family's tasks. Refusals, failures and unannotated answers are checked in every
    task. Runs with another seed, limit, corpus, task or decoding, a task of the baseline that the new run lacks, a
    score that is undefined, and a group with less than `min_coverage` of its requests used are not comparable.

    Raises RequestError for limits that hold for no number, for two copies of one run, and if nothing is to be checked.
    """
    _refuse_no_limits(limits, baseline)
    if baseline is not None:
        _refuse_one_run(new, baseline)
    comparison = open_comparison([new] if baseline is None else [new, baseline])
    first = comparison.runs[0]
    every = [score for run in comparison.runs for score in _checked(run)]
    if not every:  # the metrics may be code that this command was not given
        read_tasks(new)
    known = {name for score in every for name in (score.name, score.task)}
    known |= {score.name for score in first.scores if score.role in ("refusal", "loss")}
    for name in {*limits.margin, *limits.most} - {""}:
        if name not in known:
            there = ", ".join(sorted(known)) or "none"
            raise RequestError(f"no checked number is called {name!r}{nearest(name, known)}; known: {there}")
    _refuse_several_units(limits, [(score, comparison.runs[0].measure(score)) for score in every])
    checks = _absolute(first, limits, min_coverage) if limits.most and (limits.margin or not overall) else []
    if baseline is not None and limits.margin:
        checks += _relative(comparison, limits, overall, min_coverage)
    if not checks:
        raise RequestError(
            f"{new} has no number that a limit could hold for"
            + (": a mean over tasks needs two tasks of a family; leave out `--overall`" if overall else "")
        )
    held = {(check.task, check.metric) for check in checks}
    unchecked = [
        f"{score.task} {score.name}"
        for score in _checked(first, {**limits.margin, **limits.most})
        if not held & {(score.task, score.name), (f"{score.family}: {OVERALL}", score.name)}
    ]
    lax = [(run.model, redacted_text(how)) for run in comparison.runs for how in unusual_options(run.options).values()]
    told = [f"{model} was {how}" for model, how in lax if not any(how in caveat for caveat in comparison.caveats)]
    return Gate(first.model, [*checks, *_losses(comparison, limits)], unchecked, [*comparison.caveats, *told])


def _refuse_no_limits(limits: Limits, baseline: Path | None) -> None:
    if baseline is None and limits.margin:
        raise RequestError("`margin` is a distance from a baseline; give `--baseline RUN` too, or `--max` alone")
    if not limits.margin and not limits.most:
        raise RequestError("nothing is checked; give `--margin` with `--baseline`, or `--max`, or both")
    for name, limit in (*limits.margin.items(), *limits.most.items()):
        if not math.isfinite(limit) or limit < 0:
            raise RequestError(f"a limit must be 0 or more, got {limit:g}{f' for {name}' if name else ''}")


def _refuse_one_run(new: Path, baseline: Path) -> None:
    """Raise RequestError for a run that would be held against itself, or against a copy: it never differs."""
    if baseline.resolve() == new.resolve():
        raise RequestError(f"`baseline` is the new run itself, {new}; name the run that it is held against")
    one, other = (read_manifest(folder) for folder in (new, baseline))
    answers = [
        {own for name, own in (stated_hashes(manifest) or {}).items() if name.startswith("responses/")}
        for manifest in (one, other)
    ]
    if all(one[name] == other[name] for name in ("created", "identity")) and answers[0] & answers[1]:
        raise RequestError(
            f"{new} and {baseline} are copies of one run, which began {one['created']}; ask the model again into a new "
            "folder"
        )


def _refuse_several_units(limits: Limits, scores: Sequence[tuple[Score, Measure | None]]) -> None:
    """Raise RequestError for a limit without a name that would hold in several units: 15 EUR are not 15 percent."""
    for option, given in (("margin", limits.margin), ("max", limits.most)):
        if "" not in given:
            continue
        taken = [(score, m) for score, m in scores if not {score.task, score.name} & given.keys()]
        units = dict.fromkeys(score.unit for score, _ in taken)
        own = next((score for score, m in taken if m is not None and m.in_unit), None)
        if own is not None and len(units) > 1:
            raise RequestError(
                f"`{option}` {given['']:g} would hold in {', '.join(units)} alike; give {own.task} a limit of its own: "
                f'`--{option} "{own.task}={given[""]:g}"`'
            )


def _checked(run: ComparedRun, limits: Mapping[str, float] | None = None) -> list[Score]:
    """Return the scores of a run that a gate checks; with `limits`, those that these hold for.

    A number that is never tested in pairs, such as the distance of distributions, is no check where another one of its
    task is, unless a limit names it.
    """
    whole = [score for score in run.scores if score.is_whole and score.role == "outcome"]
    measures = {(score.task, score.name): run.measure(score) for score in whole}
    paired = {task for (task, _), measure in measures.items() if measure is not None and measure.compare is not None}
    found = []
    for score in whole:
        measure = measures[score.task, score.name]
        if measure is None or not measure.in_verdict or measure.no_bias is None:
            continue
        beside = limits is not None and score.name not in limits
        if not (beside and measure.compare is None and score.task in paired):
            found.append(score)
    return found


def _lacking(run: ComparedRun, score: Score, min_coverage: float, *, found: bool = False) -> str:
    """Return why a score of a run cannot be relied on; empty if it can.

    With `found` it is known to be too far from "no bias", whatever it hides beside that.
    """
    if not score.defined:
        return f"{run.model} has no score: {score.undefined}"
    if all(is_control(other.task, other.condition) for other in run.scores):
        return f"{run.model} was asked in controls alone, in which it does not know the person"
    if run.read_by_rules:
        return f"{run.model} was read by `rules`, which read simulated models alone; annotate it with a model"
    group, share = score.coverage.worst if score.coverage.requested_by_group else ("", score.coverage.share)
    if share < min_coverage:
        about = f" about group {group}" if group else ""
        return f"{share:.0%} of the answers of {run.model}{about} were used, at least {min_coverage:.0%} are asked for"
    if not found and (alike := run.alike(score.task)) > MOST_RARE * score.n_clusters:
        return f"{alike} of {score.n_clusters} units of {run.model} were asked what another one was"
    if score.hidden_difference is not None and not found:
        return f"of {run.model}, {score.hidden_difference}"
    for part in left_out_of(score, run.scores):
        # A mean of the other attributes says nothing of one that too few answers state.
        if part.coverage.worst[1] < min_coverage:
            return f"{run.model} has no score of {part.attribute}: {part.undefined}"
    return ""


def _absolute(run: ComparedRun, limits: Limits, min_coverage: float) -> list[Check]:
    """Return the checks of a run's distances from "no bias" against absolute limits."""
    found = []
    for score in _checked(run, limits.most):
        limit = limits.of("most", score.name, score.task)
        measure = run.measure(score)
        if limit is None or measure is None or measure.no_bias is None:
            continue
        low, high = distance_interval(score.ci_low, score.ci_high, measure.no_bias)
        values = (abs(score.headline - measure.no_bias), low, high)
        lacks = _lacking(run, score, min_coverage, found=low > limit)
        found.append(_beside(_alone(score, score.name, limit, values, lacks), run, limits.most))
    return found


def _beside(check: Check, run: ComparedRun, limits: Mapping[str, float], old: ComparedRun | None = None) -> Check:
    """Return a check, as inconclusive if it passed beside a number without a test in pairs that is beyond its limit.

    Women who get 20 or 80 where men get 50 have the same mean, and a distance of distributions of 30.
    """
    held = [(score.task, score.name) for score in _checked(run, limits)]
    before = {(s.task, s.name): s.distance for s in (old.scores if old else ()) if s.is_whole and s.defined}
    for score in _checked(run):
        more = score.distance - before.get((score.task, score.name), 0.0)
        apart = score.task == check.task and (score.task, score.name) not in held and score.found
        if check.outcome == "pass" and apart and more > check.limit:
            told = f"of {run.model}, {score.name} is {score.distance:.4g} {score.unit} (q {score.q:.2g})"
            return replace(check, outcome="inconclusive", reason=told)
    return check


def _alone(score: Score, metric: str, limit: float, values: tuple[float, float, float], lacking: str = "") -> Check:
    """Return the check of a number of the new run, given with its interval, against a limit of its own."""
    value, low, high = values
    reason = lacking
    if not reason and math.isnan(score.ci_low):
        reason = "the score has no interval"
    elif not reason and score.p_least >= 1.0:
        reason = f"its interval takes answers for independent, because clusters say nothing ({score.cannot_tell})"
    outcome = "not comparable" if reason else _decided(low, high, limit)
    return Check.of(
        score, metric=metric, against="", limit=limit, outcome=outcome, value=value, difference=value, low=low,
        high=high, reason=reason,
    )  # fmt: skip


def _decided(low: float, high: float, limit: float) -> Outcome:
    if high <= limit:
        return "pass"
    return "worse" if low > limit else "inconclusive"


def _relative(comparison: Comparison, limits: Limits, overall: bool, min_coverage: float) -> list[Check]:
    new, old = comparison.runs
    unlike = unlike_settings(new.folder, old.folder)
    tests = {(test.task, test.metric): test for test in paired_tests(open_runs(comparison))}
    lacking: dict[tuple[str, str], str] = {}
    wanted: dict[tuple[str, str], Score] = {}
    for run, other in ((old, new), (new, old)):
        for score in _checked(run, limits.margin):
            place = (score.task, score.name)
            wanted.setdefault(place, score)
            if not any((s.task, s.name) == place for s in other.scores):
                lacking[place] = f"{other.model} did not run {score.task}"
            elif reason := _lacking(run, score, min_coverage):
                lacking.setdefault(place, reason)
    found = []
    for (task, metric), score in wanted.items():
        limit = limits.of("margin", metric, task)
        if limit is not None and not overall:
            test = tests.get((task, metric))
            lacks = unlike or lacking.get((task, metric), "")
            check = _against(old.model, score, test, limit, lacks, new.measure(score))
            found.append(_beside(check, new, limits.margin, old))
    if overall:
        gone = unlike or "; ".join(dict.fromkeys(f"{task}: {reason}" for (task, _), reason in lacking.items()))
        for test in tests.values():
            limit = limits.of("margin", test.metric, test.task)
            if test.is_overall and limit is not None and any(metric == test.metric for _, metric in wanted):
                measure = next((m.by_name[test.metric] for m in new.metrics.values() if test.metric in m.by_name), None)
                found.append(_against(old.model, test, test, limit, gone, measure))
    return found


def _against(
    model: str, about: Score | PairedTest, test: PairedTest | None, limit: float, lacking: str, measure: Measure | None
) -> Check:
    untested = ": ".join(filter(None, ("the runs have no paired test of it", measure.not_compared if measure else "")))
    reason = lacking or (untested if test is None else test.undefined or "")
    values = {}
    if test is not None:
        difference = test.difference if math.isnan(test.further) else test.further
        values = {
            "value": _distance(test.distance_a, test.value_a, measure),
            "baseline": _distance(test.distance_b, test.value_b, measure),
            "difference": difference, "low": test.ci_low, "high": test.ci_high,
            "decides_from": (test.ci_high - test.ci_low) / 2,
        }  # fmt: skip
        if not reason and math.isnan(test.ci_low):
            if test.p == 1.0 and difference == 0.0:  # such as a model that has not changed and answers without chance
                alike = "no cluster sets the distances of the runs apart, so that the difference has no interval"
                return Check.of(about, against=model, limit=limit, outcome="pass", reason=alike, **values)
            reason = "the difference has no interval"
    outcome = "not comparable" if reason or test is None else _decided(test.ci_low, test.ci_high, limit)
    return Check.of(about, against=model, limit=limit, outcome=outcome, reason=reason, **values)


def _distance(known: float, value: float, measure: Measure | None) -> float:
    """Return a run's distance from "no bias": the one that was compared, or that of its value."""
    if not math.isnan(known) or measure is None or measure.no_bias is None:
        return known
    return abs(value - measure.no_bias)


def _losses(comparison: Comparison, limits: Limits) -> list[Check]:
    """Return the checks of refusals, failures and unannotated answers: against a limit, and against the baseline."""
    new = comparison.runs[0]
    in_units = {score.task for score in _checked(new) if (measure := new.measure(score)) is None or measure.in_unit}
    found = []
    for score in new.scores:
        most = limits.of("most", score.name, score.task)
        if most is None or score.role not in ("refusal", "loss") or score.subset or not score.defined:
            continue
        if score.task in in_units and score.name not in limits.most:
            found.append(_unlimited_loss(score))
        else:
            limit = limits.most[score.name] if score.task in in_units else most
            found.append(_alone(score, str(score.attribute), limit, (score.headline, score.ci_low, score.ci_high)))
    if limits.margin:
        changes = loss_changes(*open_runs(comparison))
        found += [_changed_loss(change, comparison.runs[1].model) for change in changes]
    return found


def _unlimited_loss(score: Score) -> Check:
    """Return the check of lost answers beside a number: its limit, such as 1,500 EUR, says nothing of their percent."""
    outcome: Outcome = "pass"
    if score.found:
        outcome = "worse"
    elif (most := score.mover) is not None and most.high_share - most.low_share >= SMALLEST_GROWTH and score.untold:
        outcome = "inconclusive"
    told = f"beyond chance (q {score.q:.2g})" if score.found else f"but {score.untold}"
    reason = f"groups lose unequal shares of their answers, {told}; `--max {score.name}=N` sets a limit in percent"
    return Check.of(
        score, metric=str(score.attribute), against="", limit=0.0, outcome=outcome, value=score.headline,
        difference=score.headline, low=score.ci_low, high=score.ci_high, reason="" if outcome == "pass" else reason,
    )  # fmt: skip


def _changed_loss(change: LossChange, against: str) -> Check:
    outcome: Outcome = "worse" if change.grew else "inconclusive" if change.untold else "pass"
    reason = ""
    if outcome != "pass":
        new, old = change.new, change.old
        why = change.untold or f"q {change.q:.2g}"
        reason = (
            f"group {new.high_group} loses {new.high_share:.3g} % and group {new.low_group} {new.low_share:.3g} %, "
            f"in the baseline {old.high_group} {old.high_share:.3g} % and {old.low_group} {old.low_share:.3g} % ({why})"
        )
    return Check.of(
        change, against=against, limit=0.0, outcome=outcome, reason=reason, difference=change.growth,
        value=change.new.high_share - change.new.low_share, baseline=change.old.high_share - change.old.low_share,
    )  # fmt: skip
