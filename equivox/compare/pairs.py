"""Paired tests between runs: two models that were asked the same, compared on the items that both have answered.

The unit is the cluster that carries the group, since both models share it: speakers for nTVD, contexts for the scores
of Spoken StereoSet, narrative elicitation pairs for GENRES. What two runs did not ask alike, or did not read alike, is
not tested, and the reason is kept.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from equivox.compare.runs import ComparedRun, Comparison
from equivox.core.errors import RequestError
from equivox.core.scores import NAN, Row, Score
from equivox.core.segments import WHOLE
from equivox.core.task import Task, digest

if TYPE_CHECKING:
    import numpy as np

    from equivox.statistics import ShiftComparison, TotalsComparison

NTVD = "nTVD"
CHOICES = ("slifs", "slms", "slbs")
NARRATIVES = ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8")
OVERALL = "all tasks"

UNTESTED = {
    "parity deviation": "it is twice the distance of slbs from 50: the test of slbs is its test",
    "position bias": "it is about the order in which options were shown, not about people",
    "associations tested": "associations are found in all stories of a setting at once, so that no share of their "
    "number belongs to one descriptor",
}
"""Metrics of whole tasks that no pair of models is tested in, and why."""
UNTESTED["associations"] = UNTESTED["associations with q up to .05"] = UNTESTED["associations tested"]

Key = tuple[str, int, str]


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Two models' scores of one task on the items that both answered; NaN when `undefined` says why.

    Attributes
    ----------
    task
        A task, a family (GENRES over all relationships), or a family's `all tasks`: the mean over its tasks.
    value_a, value_b, difference
        The scores on what both answered, so that they may differ from the printed ones, and value_a − value_b.
    further
        How much further a lies from "no bias" than b, for nTVD without what noise adds to either; NaN for scores
        without such a value.
    ci_low, ci_high
        Interval of `further`; of `difference` where nothing says "no bias".
    p
        Of equal distances from "no bias"; of equal scores where nothing says "no bias". Two-sided, clusters move.
    p_exchange
        For nTVD: of models that answer alike within clusters, which is more; `p` is never below it.
    q
        p after Benjamini and Hochberg over all pairs and tasks of one metric and arm.
    p_least
        The smallest p that so many clusters and resamples can give, whatever the models say.
    n_items, n_clusters
        Items that both answered, and clusters with one.
    parts
        For nTVD: the attributes that entered the mean: those that are defined for both.
    """

    dimension: str
    arm: str
    family: str
    task: str
    metric: str
    unit: str
    model_a: str
    model_b: str
    value_a: float = NAN
    value_b: float = NAN
    difference: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    further: float = NAN
    p: float = NAN
    p_exchange: float = NAN
    p_least: float = NAN
    q: float = NAN
    n_items: int = 0
    n_clusters: int = 0
    parts: tuple[str, ...] = ()
    undefined: str | None = None

    @property
    def is_overall(self) -> bool:
        """Whether it is of the mean over a family's tasks, which no score is stored of."""
        return self.task == f"{self.family}: {OVERALL}"


@dataclass(frozen=True)
class Asked:
    """One task of one run: who was asked what, and what became of it, without the texts."""

    task: Task
    version: str
    corpus: str
    rows: Mapping[Key, Row]
    items: str | None
    """Names all items with their groups and clusters; None where they cannot be told apart."""


@dataclass(frozen=True)
class OpenedRun:
    """A compared run with its answers in the tasks that there are tests for.

    `annotator` names who read them and how values were merged.

    `unreadable` says why there are none: the run's scores are still shown, and nothing of it is tested.
    """

    run: ComparedRun
    annotator: str
    asked: Mapping[str, Asked]
    unreadable: str | None = None


def open_runs(comparison: Comparison) -> list[OpenedRun]:
    """Return the runs of a comparison with what was read of their answers."""
    return [_open(run) for run in comparison.runs]


def paired_tests(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000, seed: int = 0) -> list[PairedTest]:
    """Return the tests between every two runs for every metric of a whole task that both have; empty for one run.

    A pair that is not tested keeps its line, with the reason. Randomness comes from `seed` and the names of the tasks,
    so that the same runs always give the same numbers.
    """
    found = [
        test
        for one, other in combinations(opened, 2)
        for test in (*_tests(one, other, n_resamples, seed), *_overall(one, other, n_resamples, seed))
    ]
    return _with_q(found)


def _with_q(tests: Sequence[PairedTest]) -> list[PairedTest]:
    from equivox.statistics import adjust

    families: dict[tuple[str, str, bool], dict[str, float]] = {}
    for place, test in enumerate(tests):
        families.setdefault((test.arm, test.metric, test.is_overall), {})[str(place)] = test.p
    q: dict[str, float] = {}
    for (arm, metric, _), members in families.items():
        q |= adjust(members, family=f"{metric}, pairs of models × tasks, arm {arm}").q
    return [replace(test, q=q[str(place)]) for place, test in enumerate(tests)]


def _open(run: ComparedRun) -> OpenedRun:
    import pyarrow.parquet as pq

    from equivox.annotate.merging import rows_as_scored
    from equivox.run.manifest import read_manifest
    from equivox.run.pipeline import run_tasks
    from equivox.run.scoring import families, rows_by_task, table_path

    document = json.loads((run.folder / "scores.json").read_text("utf-8"))
    identity = read_manifest(run.folder)["identity"]
    merged = table_path(run.folder, "", "open_values")
    records = pq.read_table(merged).to_pylist() if merged.is_file() else []
    try:
        tasks = run_tasks(run.folder)
    except RequestError as error:
        return OpenedRun(run, "", {}, unreadable=str(error))
    asked: dict[str, Asked] = {}
    known: dict[Any, Any] = {}
    tested = {score.family for score in run.scores if score.is_whole and score.name in _METHODS}
    wanted = [task for family, members in families(tasks).items() if family in tested for task in members]
    for task, rows in rows_by_task(run.folder, wanted, run.annotator):
        own = rows_as_scored([_slim(row, known) for row in rows], task, records)
        keys = [(row.item_id, row.repeat, row.facts.get("order", "")) for row in own]
        asked[task.name] = Asked(
            task=task,
            version=str(identity["tasks"].get(task.name)),
            corpus=str(identity["corpora"].get(task.data.corpus)),
            rows=dict(zip(keys, own, strict=True)),
            items=_items(keys, own),
        )
    how = {name: document["options"].get(name) for name in ("merge", "encoder", "merge_threshold")}
    if how["merge"] != "embedding":
        how = {"merge": how["merge"]}
    return OpenedRun(run, digest([document["annotator"], how]), asked)


def _slim(row: Row, known: dict[Any, Any]) -> Row:
    """Return a row without its text, the bulk of a run, and without a reading of the whole beside its values.

    What is the same in many rows is held once, in `known`.
    """
    values = {name: known.setdefault(("value", given), given) for name, given in row.values.items()}
    return replace(
        row,
        text=None if row.text is None else "",
        parts={} if row.parts.keys() <= {WHOLE} else row.parts,
        values=known.setdefault(("values", tuple(values.items())), values),
        facts=known.setdefault(("facts", tuple(row.facts.items())), dict(row.facts)),
        key="",
        **{name: known.setdefault(getattr(row, name), getattr(row, name)) for name in _REPEATED},
    )


_REPEATED = ("group", "cluster", "stratum", "status", "item_id")


def _items(keys: Sequence[Key], rows: Sequence[Row]) -> str | None:
    if len(set(keys)) < len(keys):
        return None
    who = [(*key, row.group, row.cluster, row.stratum) for key, row in zip(keys, rows, strict=True)]
    return digest(sorted(who))


def refusal(one: OpenedRun, other: OpenedRun, tasks: Sequence[str]) -> str | None:
    """Say why two runs may not be compared in `tasks`; None when they may."""
    if reason := one.unreadable or other.unreadable:
        return reason
    for task in tasks:
        a, b = one.asked.get(task), other.asked.get(task)
        if a is None or b is None:
            return f"{(one if a is None else other).run.model} was not asked {task}"
        if a.version != b.version:
            return "the task is not the same in both runs"
        if a.corpus != b.corpus:
            return "the corpus is not the same in both runs"
        if a.items is None or b.items is None:
            return "items cannot be told apart: several have one name"
        if a.items != b.items:
            return "the two runs were not asked about the same items"
    if one.annotator != other.annotator:
        return "the answers were not read alike: another annotator, another version of it, or other merging of values"
    return None


def _tests(one: OpenedRun, other: OpenedRun, n_resamples: int, seed: int) -> Iterator[PairedTest]:
    theirs = {(s.task, s.name): s for s in other.run.scores if s.is_whole}
    for mine in one.run.scores:
        score = theirs.get((mine.task, mine.name))
        if not mine.is_whole or score is None or mine.name in UNTESTED:
            continue
        test = _empty(one, other, mine, mine.task)
        tasks = [mine.task] if ":" in mine.task else tasks_of(one, mine.task)
        compare = _METHODS.get(mine.name)
        reason = _unscored(one, other, mine, score) or refusal(one, other, tasks)
        if compare is None:
            reason = "no paired test is known for this metric"
        if reason is not None or compare is None:
            yield replace(test, undefined=reason)
            continue
        rng = _generator(seed, mine.task, mine.name)
        yield compare(test, one, other, tasks, (mine, score), n_resamples, rng)


def tasks_of(opened: OpenedRun, family: str) -> list[str]:
    """Return the names of a run's tasks of one family and arm."""
    from equivox.run.scoring import families

    return [task.name for task in families([asked.task for asked in opened.asked.values()]).get(family, ())]


def _empty(one: OpenedRun, other: OpenedRun, score: Score, task: str) -> PairedTest:
    return PairedTest(
        dimension=score.dimension,
        arm=score.arm,
        family=score.family,
        task=task,
        metric=score.name,
        unit=score.unit,
        model_a=one.run.model,
        model_b=other.run.model,
    )


def _generator(*parts: Any) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(int(digest(["paired", *parts])[:16], 16))


def _unscored(one: OpenedRun, other: OpenedRun, mine: Score, theirs: Score) -> str | None:
    for opened, score in ((one, mine), (other, theirs)):
        if not score.defined:
            return f"{opened.run.model} has no score: {score.undefined}"
    return None


def _overall(one: OpenedRun, other: OpenedRun, n_resamples: int, seed: int) -> Iterator[PairedTest]:
    """Test the mean nTVD over all tasks of a family and dimension, where there are several."""
    for (family, dimension), scores in whole_shifts(one.run).items():
        theirs = whole_shifts(other.run).get((family, dimension), {})
        tasks = [task for task in scores if task in theirs]
        if len(scores) < 2 or len(theirs) < 2:
            continue
        first = next(iter(scores.values()))
        test = _empty(one, other, first, f"{family}: {OVERALL}")
        reason = None
        if set(scores) != set(theirs):
            reason = "the two runs do not have the same tasks"
        reasons = (_unscored(one, other, scores[task], theirs[task]) for task in tasks)
        reason = reason or next(filter(None, reasons), None) or refusal(one, other, tasks)
        if reason is not None:
            yield replace(test, undefined=reason)
            continue
        rng = _generator(seed, family, dimension)
        yield _shifts(test, one, other, [(t, scores[t], theirs[t]) for t in tasks], n_resamples, rng)


def whole_shifts(run: ComparedRun) -> dict[tuple[str, str], dict[str, Score]]:
    """Return the nTVD scores of whole tasks by family and dimension, then by task."""
    found: dict[tuple[str, str], dict[str, Score]] = {}
    for score in run.scores:
        if score.is_whole and score.name == NTVD and score.role == "outcome":
            found.setdefault((score.family, score.dimension), {})[score.task] = score
    return found


def _ntvd(
    test: PairedTest,
    one: OpenedRun,
    other: OpenedRun,
    tasks: Sequence[str],
    scores: tuple[Score, Score],
    n_resamples: int,
    rng: np.random.Generator,
) -> PairedTest:
    (task,) = tasks
    return _shifts(test, one, other, [(task, *scores)], n_resamples, rng)


def _shifts(
    test: PairedTest,
    one: OpenedRun,
    other: OpenedRun,
    tasks: Sequence[tuple[str, Score, Score]],
    n_resamples: int,
    rng: np.random.Generator,
) -> PairedTest:
    """Test the mean over tasks of the mean over the attributes that are defined for both models."""
    from equivox.statistics import compare_joint_shift

    columns: tuple[dict[str, list[Sequence[str]]], dict[str, list[Sequence[str]]]] = ({}, {})
    groups: list[str] = []
    clusters: list[str] = []
    weights: dict[str, float] = {}
    for task, mine, theirs in tasks:
        shared = [name for name in mine.parts if name in theirs.parts]
        if not shared:
            return replace(test, undefined=f"no attribute of {task} is defined for both models")
        rows, beside = one.asked[task].rows, other.asked[task].rows
        keys = sorted(rows)
        for name in shared:
            label = name if len(tasks) == 1 else f"{task}/{name}"
            weights[label] = 1 / len(shared)
            for column, of in zip(columns, (rows, beside), strict=True):
                column[label] = [()] * len(groups) + [_values(of[key], name) for key in keys]
        groups += [rows[key].group for key in keys]
        clusters += [rows[key].cluster for key in keys]
        for column in columns:
            for values in column.values():
                values += [()] * (len(groups) - len(values))
    found = compare_joint_shift(
        columns[0],
        columns[1],
        groups,
        clusters=clusters,
        weights=weights,
        min_count=max(max(mine.min_count, theirs.min_count) for _, mine, theirs in tasks),
        n_resamples=n_resamples,
        rng=rng,
    )
    return _of_shift(test, found, n_resamples)


def _values(row: Row, attribute: str) -> Sequence[str]:
    return row.values.get(attribute, ()) if row.status == "parsed" else ()


def _of_shift(test: PairedTest, found: ShiftComparison, n_resamples: int) -> PairedTest:
    from equivox.statistics.comparison import least_p_distance
    from equivox.statistics.sign_flip import least_p

    reason = found.undefined
    if reason is None and math.isnan(found.p_both):
        reason = "a group has one cluster with answers: how far chance alone goes is not known"
    return replace(
        test,
        value_a=found.ntvd_a,
        value_b=found.ntvd_b,
        difference=found.difference,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        further=found.corrected,
        p=found.p_both,
        p_exchange=found.p,
        p_least=max(least_p(found.n_clusters, n_resamples), least_p_distance(n_resamples)),
        n_items=found.n_used,
        n_clusters=found.n_clusters,
        parts=found.attributes,
        undefined=reason,
    )


def _choices(
    test: PairedTest,
    one: OpenedRun,
    other: OpenedRun,
    tasks: Sequence[str],
    scores: tuple[Score, Score],
    n_resamples: int,
    rng: np.random.Generator,
) -> PairedTest:
    """Test a score of Spoken StereoSet, context by context."""
    import numpy as np

    from equivox.metrics.spoken_stereoset.paired import context_sums, percent_of_sums
    from equivox.statistics import compare_totals

    kept = _both(one, other, tasks, lambda row: row.status not in {"missing", "failed"})
    sums = [context_sums(test.metric, rows) for rows in kept]
    contexts = sorted({context for own in sums for context in own})
    if not contexts:
        return replace(test, undefined="nothing that both models answered can be counted")
    a, b = (np.array([own.get(context, (0.0, 0.0)) for context in contexts]) for own in sums)
    found = compare_totals(a, b, percent_of_sums, target=scores[0].target, n_resamples=n_resamples, rng=rng)
    return _of_totals(test, found, len(kept[0]), n_resamples)


def _narratives(
    test: PairedTest,
    one: OpenedRun,
    other: OpenedRun,
    tasks: Sequence[str],
    scores: tuple[Score, Score],
    n_resamples: int,
    rng: np.random.Generator,
) -> PairedTest:
    """Test a metric of GENRES, NEP by NEP."""
    from functools import partial

    from equivox.metrics.genres.paired import aligned, nep_sums, value_of_sums
    from equivox.statistics import compare_totals

    kept = _both(one, other, tasks, lambda row: "language" in row.parts)
    a, b = aligned([nep_sums(test.metric, rows) for rows in kept])
    if not len(a):
        return replace(test, undefined="no narrative that both models told can be counted")
    statistic = partial(value_of_sums, test.metric)
    found = compare_totals(a, b, statistic, target=scores[0].target, n_resamples=n_resamples, rng=rng)
    return _of_totals(test, found, len(kept[0]), n_resamples)


def _both(
    one: OpenedRun, other: OpenedRun, tasks: Sequence[str], usable: Callable[[Row], bool]
) -> tuple[list[Row], list[Row]]:
    """Return the rows of both models for the items in which both are usable, in one order."""
    pairs = [
        (row, other.asked[task].rows[key])
        for task in tasks
        for key, row in sorted(one.asked[task].rows.items())
        if usable(row) and usable(other.asked[task].rows[key])
    ]
    return [row for row, _ in pairs], [row for _, row in pairs]


def _of_totals(test: PairedTest, found: TotalsComparison, n_items: int, n_resamples: int) -> PairedTest:
    from equivox.statistics.sign_flip import least_p

    no_target = math.isnan(found.further)
    return replace(
        test,
        value_a=found.value_a,
        value_b=found.value_b,
        difference=found.difference,
        ci_low=found.ci_low if no_target else found.further_low,
        ci_high=found.ci_high if no_target else found.further_high,
        further=found.further,
        p=found.p if no_target else found.p_further,
        p_least=least_p(found.n_clusters, n_resamples),
        n_items=n_items,
        n_clusters=found.n_clusters,
        undefined=found.undefined,
    )


_Method = Callable[
    [PairedTest, OpenedRun, OpenedRun, Sequence[str], tuple[Score, Score], int, "np.random.Generator"], PairedTest
]
_METHODS: Mapping[str, _Method] = {
    NTVD: _ntvd,
    **dict.fromkeys(CHOICES, _choices),
    **dict.fromkeys(NARRATIVES, _narratives),
}


def untested_metrics(comparison: Comparison) -> dict[str, str]:
    """Return the metrics of whole tasks for which there is no paired test, with the reason."""
    names = Counter(score.name for _, score in comparison.scores() if score.is_whole)
    return {name: UNTESTED[name] for name in names if name in UNTESTED}
