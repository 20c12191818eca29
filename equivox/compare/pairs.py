"""Paired tests between runs: two models with the same requests, compared on the samples that both answered.

The unit is the cluster that carries the group, since both models share it. The metric computes the test
(`Measure.compare`). Runs with different requests or different annotation are not tested, and the reason is kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, Self

from equivox.annotate.merging import as_scored
from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.coverage import MOST_RARE
from equivox.core.errors import UsageError
from equivox.core.fields import typed
from equivox.core.files import read_document
from equivox.core.hashing import digest, seed_of
from equivox.core.lazy import np, on_one_core
from equivox.core.metric import Measure, PairedTask, PairedValues
from equivox.core.notes import Note, note_about, remark
from equivox.core.plugins import told_in_one_line
from equivox.core.samples import Samples, rows_of
from equivox.core.scores import DEFAULT_OPTIONS, NAN, Score
from equivox.core.task import Task
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.scoring import families, open_samples, read_records, scores_path
from equivox.statistics import adjust

OVERALL = "all tasks"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a number is about: a measure of a task in one condition.

    `task` is a task, a family (scores over all its tasks), or a family's `all tasks`: the mean over its tasks.
    """

    dimension: str
    condition: str
    family: str
    task: str
    metric: str
    unit: str

    @classmethod
    def of(cls, about: Score | Subject, **given: Any) -> Self:
        """Return one about the same as a score, or another subject; `given` are its other fields, and what differs."""
        same = {name: getattr(about, name) for name in ("dimension", "condition", "family", "task", "unit")}
        metric = about.metric
        return cls(**({"metric": metric} | same | given))


@dataclass(frozen=True, kw_only=True)
class PairedTest(PairedValues, Subject):
    """Test between two models' scores of one task on the samples that both answered; NaN if `undefined` gives a reason.

    The scores of `PairedValues` are on these samples, so that they can differ from the printed ones. To test them,
    whole clusters are exchanged. `q` is p after Benjamini and Yekutieli over all pairs, tasks, measures and conditions
    that are shown together.
    """

    model_a: str
    model_b: str
    q: float = NAN


@dataclass(frozen=True)
class Asked:
    """One task of one run: its declaration with its fingerprint, its corpus, and its samples."""

    task: Task
    fingerprint: str
    corpus: str
    samples: Samples


@dataclass(frozen=True)
class OpenedRun:
    """A compared run with the samples of its tasks.

    `annotator` is a hash of the annotator and of the merging of values. `unreadable` says why there are no samples: the
    run's scores are still shown, but not tested. `min_coverage` is the floor below which a score is undefined.
    """

    run: ComparedRun
    annotator: str
    asked: Mapping[str, Asked]
    unreadable: str | None = None
    min_coverage: float = DEFAULT_OPTIONS.min_coverage


def open_runs(comparison: Comparison) -> list[OpenedRun]:
    """Return the runs of a comparison with their samples; columns are read when a test needs them."""
    return [open_one(run) for run in comparison.runs]


@on_one_core()
def paired_tests(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000) -> list[PairedTest]:
    """Return the tests of every two runs for every number of a whole task that both have; empty for one run.

    A pair that is not tested is returned with the reason. Random numbers depend on the names of the tasks alone, so
    that the same runs always give the same numbers.
    """
    # Each test draws from a generator of its own, and numpy draws and multiplies outside of Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        under_way = [
            pool.map(_computed, [*_tests(one, other, n_resamples), *_overall(one, other, n_resamples)])
            for one, other in combinations(opened, 2)
        ]
        tests = [test for pair in under_way for test in pair]
    aligned.cache_clear()
    rows_of.cache_clear()
    return with_q(tests)


def _computed(test: PairedTest | NotYet) -> PairedTest:
    return test if isinstance(test, PairedTest) else test()


def with_q(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """Return the tests with q after Benjamini and Yekutieli over all of them."""
    # Pairs that share a model depend on each other in both directions, so Benjamini and Hochberg have no proof.
    q = adjust([test.p for test in tests], method="by")
    return [replace(test, q=own) for test, own in zip(tests, q, strict=True)]


def open_one(run: ComparedRun) -> OpenedRun:
    """Return one compared run with its samples."""
    document = read_document(scores_path(run.folder, run.annotator))
    identity = read_manifest(run.folder)["identity"]
    records = read_records(run.folder, "", "open_values", run.annotator) or []
    try:
        tasks = read_tasks(run.folder)
        samples = open_samples(run.folder, tasks, run.annotator)
    except UsageError as error:
        return OpenedRun(run, "", {}, unreadable=str(error))
    asked = {
        task.name: Asked(
            task=task,
            fingerprint=str(identity["tasks"].get(task.name)),
            corpus=str(identity["corpora"].get(task.data.corpus)),
            samples=as_scored(samples[task.name], task, records),
        )
        for task in tasks
    }
    how = {name: document["options"].get(name) for name in ("merge", "encoder", "merge_threshold")}
    if how["merge"] != "embedding":
        how = {"merge": how["merge"]}
    floor = document["options"].get("min_coverage", DEFAULT_OPTIONS.min_coverage)
    judge = digest([document["annotator"], run.annotator_answered, how])
    return OpenedRun(run, judge, asked, min_coverage=float(floor))


def refusal(one: OpenedRun, other: OpenedRun, tasks: Sequence[str]) -> str | None:
    """Return why two runs may not be compared in `tasks`; None if they may."""
    if reason := one.unreadable or other.unreadable:
        return reason
    for task in tasks:
        a, b = one.asked.get(task), other.asked.get(task)
        if a is None or b is None:
            return f"{(one if a is None else other).run.model} did not run {task}"
        if a.fingerprint != b.fingerprint:
            return "the task is not the same in both runs"
        if a.corpus != b.corpus:
            return "the corpus is not the same in both runs"
    if one.annotator != other.annotator:
        return (
            "the answers were not annotated alike: another annotator, another version of it, or other merging of values"
        )
    return None


_NAMED = ("sample_id", "repeat", "metadata.order", "metadata.character")
_ALIKE = ("group", "cluster", "stratum")


@lru_cache(maxsize=8)
def aligned(one: Samples, other: Samples, what: str = "runs") -> tuple[Samples, Samples] | str:
    """Return the samples of two runs, or of two of `what`, in one order, or the reason why there is none.

    The last few are kept: a task's measures are tested one after the other.
    """
    columns = [name for name in _NAMED if name in one.columns and name in other.columns]
    a, b = one.read([*columns, *_ALIKE]), other.read([*columns, *_ALIKE])
    # Runs of one command have equal columns: then no texts are made of them.
    if a.equals(b) and a.group_by(columns).aggregate([]).num_rows == a.num_rows:
        return one, other
    names = [_texts(a, columns), _texts(b, columns)]
    if any(len(set(own)) < len(own) for own in names):
        return "samples cannot be told apart: several have one name"
    keys = [_texts(a, (*columns, *_ALIKE)), _texts(b, (*columns, *_ALIKE))]
    if keys[0] == keys[1]:
        return one, other
    if sorted(keys[0]) != sorted(keys[1]):
        return f"the two {what} do not have the same samples"
    place = {key: number for number, key in enumerate(keys[1])}
    return one, other.take([place[key] for key in keys[0]])


def _texts(table: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


NotYet = Callable[[], PairedTest]
"""A test that is computed when it is called."""


def _tests(one: OpenedRun, other: OpenedRun, n_resamples: int) -> Iterator[PairedTest | NotYet]:
    """Yield the test of every score of a whole task that both runs have, or why there is none."""
    theirs = {(s.task, s.metric): s for s in other.run.scores if s.is_whole}
    for mine in one.run.scores:
        score = theirs.get((mine.task, mine.metric))
        measure = one.run.measure(mine) or other.run.measure(mine)
        if not mine.is_whole or score is None or (measure is not None and measure.compare is None):
            continue
        test = PairedTest.of(mine, model_a=one.run.model, model_b=other.run.model)
        members = [(task, task, mine, score) for task in tasks_of(one, mine.task)]
        if measure is None or not members:
            unknown = one.unreadable or other.unreadable or "no paired test is known for this metric"
            yield replace(test, undefined=unknown)
        else:
            yield partial(tested, test, measure, (one, other), members, n_resamples, [mine.task])


Member = tuple[str, str, Score, Score]
"""A task by its names on two sides, with its score on each."""


def tested(
    test: PairedTest,
    measure: Measure,
    sides: tuple[OpenedRun, OpenedRun],
    members: Sequence[Member],
    n_resamples: int,
    named: Sequence[object],
) -> PairedTest:
    """Return `test` with the numbers of the measure's paired test of tasks, each asked on two sides.

    The sides are two runs, or one run twice, of which two conditions are compared. Without numbers, `undefined` has the
    reason why they cannot be paired. The random numbers depend on `named` and on the measure.
    """
    one, other = sides
    conditions = one is other
    reason: Note | str | None = one.unreadable if conditions else None
    for a, b, mine, theirs in members:
        names = (a, b) if conditions else (one.run.model, other.run.model)
        reason = reason or _unscored(zip(names, (mine, theirs), strict=True)) or _rare_in_one(names, mine, theirs)
    if not conditions:
        reason = reason or refusal(one, other, [name for name, *_ in members])
    if reason is not None:
        return replace(test, undefined=reason)
    tasks = []
    for a, b, mine, theirs in members:
        both = aligned(one.asked[a].samples, other.asked[b].samples, "conditions" if conditions else "runs")
        if isinstance(both, str):
            return replace(test, undefined=both)
        tasks.append(PairedTask(one.asked[a].task, *both, mine, theirs))
    if measure.compare is None:
        return replace(test, undefined=measure.not_compared)
    rng = paired_generator(*(["conditions"] if conditions else []), 0, *named, measure.name)
    what = f"the paired test of {measure.name}"
    with told_in_one_line(what):
        found = measure.compare(measure.name, tasks, n_resamples, rng)
    return replace(test, **_checked(found, what))


def _find_impossible(test: PairedValues) -> str | None:
    """Return which number of a test cannot be true, in words; None if all can."""
    for name in ("p", "p_exchange", "p_least"):
        if not (math.isnan(p := getattr(test, name)) or 0 <= p <= 1):
            return f"has `{name}` {p}: use a probability, or NaN when undefined"
    if test.ci_low > test.ci_high and not math.isclose(test.ci_low, test.ci_high):  # equal ends may differ by rounding
        return f"has an interval from `ci_low` {test.ci_low} to `ci_high` {test.ci_high}: the lower end comes first"
    return f"has {test.n_clusters} clusters" if test.n_clusters < 0 else None


def _checked(found: object, what: str) -> dict[str, Any]:
    """Return the fields of a paired test, which may be somebody's; UsageError if it is none, or cannot be true."""
    if not isinstance(found, PairedValues):
        raise UsageError(f"{what} returned {type(found).__name__}; return `PairedValues`")
    given = {name: value.item() if isinstance(value, np.generic) else value for name, value in vars(found).items()}
    try:
        own = typed(PairedValues, given)
    except UsageError as error:
        raise UsageError(f"{what} gave a wrong field: {error}") from error
    if own.undefined is None and not math.isfinite(own.difference):
        raise UsageError(f"{what} gave no number and no reason; return `PairedValues` with one of them")
    if (told := _find_impossible(own)) is not None:
        raise UsageError(f"{what} {told}")
    return given


def tasks_of(opened: OpenedRun, name: str) -> list[str]:
    """Return the names of a run's tasks of one family and condition; of a task, its own."""
    if ":" in name:
        return [name]
    return [task.name for task in families([asked.task for asked in opened.asked.values()]).get(name, ())]


def paired_generator(*parts: Any) -> np.random.Generator:
    """Return a generator that depends on `parts` alone."""
    return np.random.default_rng(seed_of("paired", *parts))


def _unscored(named: Iterable[tuple[str, Score]]) -> Note | None:
    """Return which of these has no score, and why; None if all have one."""
    without = ((name, score.undefined_reason) for name, score in named if not score.defined)
    return next((note_about(f"{name} has no score", reason or remark("")) for name, reason in without), None)


def _rare_in_one(names: tuple[str, str], mine: Score, theirs: Score) -> str | None:
    """Return that many more values of one side are left out as rare, so that it seems nearer to no bias; else None."""
    shares = mine.rare_share, theirs.rare_share
    if not abs(shares[0] - shares[1]) > MOST_RARE:
        return None
    told = [f"{100 * share:.0f} % of the values of {name}" for name, share in zip(names, shares, strict=True)]
    return f"{' and '.join(told)} are rare and left out: what is left is not alike"


def _overall(one: OpenedRun, other: OpenedRun, n_resamples: int) -> Iterator[PairedTest | NotYet]:
    """Yield the tests of the mean over all tasks of a family and dimension, for the measures that have one."""
    every = averaged_scores(other.run)
    for (family, dimension, name), scores in averaged_scores(one.run).items():
        theirs = every.get((family, dimension, name), {})
        if len(scores) < 2 or len(theirs) < 2:
            continue
        first = next(iter(scores.values()))
        measure = one.run.measure(first)
        test = PairedTest.of(first, task=f"{family}: {OVERALL}", model_a=one.run.model, model_b=other.run.model)
        if set(scores) != set(theirs):
            yield replace(test, undefined="the two runs do not have the same tasks")
        elif measure is not None:
            members = [(task, task, score, theirs[task]) for task, score in scores.items()]
            yield partial(tested, test, measure, (one, other), members, n_resamples, [family, dimension])


def averaged_scores(run: ComparedRun) -> dict[tuple[str, str, str], dict[str, Score]]:
    """Return the scores whose mean over a family is compared: by family, dimension and name, then by task."""
    found: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in run.scores:
        measure = run.measure(score)
        if measure is not None and measure.overall and score.is_whole and score.role == "outcome":
            found.setdefault((score.family, score.dimension, score.metric), {})[score.task] = score
    return found


def untested_measures(comparison: Comparison) -> dict[str, str]:
    """Return the numbers of whole tasks without a paired test, by name, with the reason."""
    found: dict[str, str] = {}
    for run in comparison.runs:
        for score in run.scores:
            measure = run.measure(score) if score.is_whole else None
            if measure is not None and measure.compare is None:
                found[score.metric] = measure.not_compared
    return found
