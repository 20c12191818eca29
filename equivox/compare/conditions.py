"""Is it the voice, does an instruction help? Each task of a run against the same task in another condition.

The other condition leaves out the recording or the image, or adds a system prompt; both ask about the same samples.

What an intervention changes in the answers: are fewer used, are more refused?

A model that declines shows no difference between groups. So each system prompt is compared with the plain condition by
these too, on the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from equivox.compare.pairs import (
    OVERALL,
    Asked,
    OpenedRun,
    PairedTest,
    aligned,
    averaged_scores,
    paired_generator,
    tasks_of,
    tested,
    with_q,
)
from equivox.core.columns import EncodedLabels, EncodedValues
from equivox.core.lazy import NDArray, np
from equivox.core.samples import Samples
from equivox.core.scores import Score
from equivox.core.task import Task
from equivox.core.variants import SHUFFLED, declared_name, is_intervention
from equivox.run.losses import states
from equivox.statistics import compare_means

USED, REFUSED = "answers used", "answers refused"
ANSWERS = (USED, REFUSED)
"""The measures of answers: the shares of the requests that are used and refused."""


def answer_tests(one: OpenedRun, n_resamples: int) -> Iterator[PairedTest]:
    """Yield the tests of a run's answers between the plain condition and each system prompt, task by task.

    Value a is that of the plain condition. What did not change at all has no p.
    """
    for name, asked in one.asked.items():
        plain = one.asked.get(declared_name(name))
        if not is_intervention(asked.task.condition) or plain is None:
            continue
        a, b = plain.task.condition, asked.task.condition
        tests = {
            metric: PairedTest(
                dimension=plain.task.dimension, condition=f"{a} against {b}", family=plain.task.family,
                task=plain.task.name, metric=metric, unit="percent of the requests", model_a=a, model_b=b,
            )
            for metric in ANSWERS
        }  # fmt: skip
        both = aligned(plain.samples, asked.samples, "conditions")
        for metric, test in tests.items():
            if isinstance(both, str):
                yield replace(test, undefined=both)
            else:
                yield _share(test, metric, plain, *both, n_resamples)


def _share(
    test: PairedTest, metric: str, plain: Asked, first: Samples, second: Samples, n_resamples: int
) -> PairedTest:
    """Return the test of the share of the requests whose answers are used or refused."""
    counted = [
        samples.has_status("refused") if metric == REFUSED else _used(plain.task, samples)
        for samples in (first, second)
    ]
    values = [100 * float(np.mean(own)) for own in counted]
    n_clusters = len(first.clusters.names)
    test = replace(test, value_a=values[0], value_b=values[1], n_samples=len(first), n_clusters=n_clusters)
    if np.array_equal(counted[0], counted[1]):
        return replace(test, difference=0.0)
    sides = EncodedLabels(np.repeat([0, 1], len(first)), ("plain", "system"))
    found = compare_means(
        100.0 * np.concatenate(counted), sides,
        clusters=EncodedLabels(np.tile(first.clusters.codes, 2), first.clusters.names),
        n_resamples=n_resamples,
        rng=paired_generator("answers", plain.task.name, test.condition, metric),
    )  # fmt: skip
    return replace(
        test, value_a=float(found.means[0]), value_b=float(found.means[1]), difference=found.difference, p=found.p,
        ci_low=found.low, ci_high=found.high, undefined=found.undefined,
    )  # fmt: skip


def _columns(samples: Samples) -> list[tuple[str, str]]:
    """Return the segment and the attribute of each column of values."""
    named = [name.removeprefix("values.").rpartition(".") for name in samples.columns if name.startswith("values.")]
    return [(segment, attribute) for segment, _, attribute in named]


def _valued(task: Task, samples: Samples) -> list[str]:
    """Return the attributes with a column of values that are outcomes."""
    roles = {attribute.name: attribute.role for attribute in task.attributes}
    named = dict.fromkeys(name for _, name in _columns(samples))
    return [name for name in named if roles.get(name, "outcome") == "outcome"]


def _pooled(samples: Samples, attribute: str) -> EncodedValues:
    """Return the values of an attribute in all segments of each answer."""
    segments = [segment for segment, name in _columns(samples) if name == attribute]
    parts = [samples.values(attribute, segment) for segment in segments]
    if len(parts) == 1:
        return parts[0]
    lists: list[list[str]] = [[] for _ in range(len(samples))]
    for part in parts:
        for own, values in zip(lists, part.lists(), strict=True):
            own += values
    return EncodedValues.of(lists)


def _used(task: Task, samples: Samples) -> NDArray[np.bool_]:
    """Return which answers were annotated and state a value of any outcome, where the task has any.

    A number out of its range is none.
    """
    parsed = samples.has_status("parsed")
    numbers = {one.name: states(samples, one) for one in task.attributes if one.number is not None}
    if names := _valued(task, samples):
        stated = [numbers[name] if name in numbers else _pooled(samples, name).has_value for name in names]
        parsed &= np.any(stated, axis=0)
    return parsed


ConditionTest = tuple[str, PairedTest]
"""A model, and the test of its score with the person's voice or face against its score without.

The two sides of the paired test, `model_a` and `model_b`, are the declared condition and the other one; its q is over
all such tests that are shown together. A positive `further` means that bias is larger with the person."""


def condition_tests(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000) -> list[ConditionTest]:
    """Return the tests between the declared condition and every other one that a run has, but for shuffled groups.

    For a system prompt, the answers are tested as well; their q is over such tests alone.

    A pair that is not tested is returned with the reason. Empty if no run has a task in two conditions. The unit is
    the cluster: both conditions ask about the same samples, and whole clusters are exchanged.
    """
    found = [
        (one.run.model, test) for one in opened for test in (*_tests(one, n_resamples), *_overall(one, n_resamples))
    ]
    answers = [(one.run.model, test) for one in opened for test in answer_tests(one, n_resamples)]
    return [
        (model, test)
        for own in (found, answers)
        for (model, _), test in zip(own, with_q([test for _, test in own]), strict=True)
    ]


def _tests(one: OpenedRun, n_resamples: int) -> Iterator[PairedTest]:
    whole = {(score.task, score.metric): score for score in one.run.scores if score.is_whole}
    for (task, name), other in whole.items():
        declared, at, condition = task.partition("@")
        mine, measure = whole.get((declared, name)), one.run.measure(other)
        if not at or condition == SHUFFLED or mine is None or measure is None or measure.compare is None:
            continue
        members = [(declared_name(member), member, mine, other) for member in tasks_of(one, task)]
        yield tested(_between(mine, other, declared), measure, (one, one), members, n_resamples, [task])


def _overall(one: OpenedRun, n_resamples: int) -> Iterator[PairedTest]:
    """Yield the tests of the mean over all tasks of a family, for the measures that have one."""
    every = averaged_scores(one.run)
    for (family, dimension, name), others in every.items():
        declared, at, condition = family.partition("@")
        mine = every.get((declared, dimension, name), {})
        pairs = [
            (without, task, mine[without], score)
            for task, score in others.items()
            if (without := declared_name(task)) in mine
        ]
        if not at or condition == SHUFFLED or len(pairs) < 2:
            continue
        _, _, first, other = pairs[0]
        measure = one.run.measure(first)
        test = _between(first, other, f"{declared}: {OVERALL}")
        if len(pairs) < max(len(mine), len(others)):
            yield replace(test, undefined="the two conditions do not have the same tasks")
        elif measure is not None:
            yield tested(test, measure, (one, one), pairs, n_resamples, [family, dimension])


def _between(mine: Score, other: Score, task: str) -> PairedTest:
    """Return a test without numbers between the conditions of two scores, under the name of the declared family."""
    a, b = mine.condition, other.condition
    family = mine.family.partition("@")[0]
    return PairedTest.of(mine, task=task, condition=f"{a} against {b}", family=family, model_a=a, model_b=b)
