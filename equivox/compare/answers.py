"""What an intervention changes in the answers: are fewer used, are more refused, do they say less?

A model that declines, or tells everybody the same, shows no difference between groups. So each system prompt is
compared with the plain condition by these too, on the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equivox.compare.pairs import Asked, OpenedRun, PairedTest, aligned, paired_generator
from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.errors import RequestError
from equivox.core.samples import Samples
from equivox.core.task import Task
from equivox.core.variants import declared_name, is_intervention

if TYPE_CHECKING:
    from numpy.typing import NDArray

USED, REFUSED, VARIETY = "answers used", "answers refused", "variety of answers"
ANSWERS = (USED, REFUSED, VARIETY)
"""The measures of answers: the shares that are used and refused, and the entropy of the values within a group."""
UNITS = {USED: "percent of the requests", REFUSED: "percent of the requests", VARIETY: "bits"}


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
                task=plain.task.name, metric=metric, unit=UNITS[metric], model_a=a, model_b=b,
            )
            for metric in ANSWERS
        }  # fmt: skip
        both = aligned(plain.samples, asked.samples, "conditions")
        for metric, test in tests.items():
            if isinstance(both, str):
                yield replace(test, undefined=both)
            elif metric == VARIETY:
                yield _variety(test, plain, *both, n_resamples)
            else:
                yield _share(test, metric, plain, *both, n_resamples)


def _share(
    test: PairedTest, metric: str, plain: Asked, first: Samples, second: Samples, n_resamples: int
) -> PairedTest:
    """Return the test of the share of the requests whose answers are used or refused."""
    from equivox.statistics import mean_difference

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
    found = mean_difference(
        100.0 * np.concatenate(counted), sides, first="plain", second="system",
        clusters=EncodedLabels(np.tile(first.clusters.codes, 2), first.clusters.names), paired=True,
        n_resamples=n_resamples, rng=paired_generator("answers", plain.task.name, test.condition, metric),
    )  # fmt: skip
    return replace(
        test, value_a=found.mean_first, value_b=found.mean_second, difference=found.difference, p=found.p,
        ci_low=found.ci_low, ci_high=found.ci_high, undefined=found.undefined,
    )  # fmt: skip


def _variety(test: PairedTest, plain: Asked, first: Samples, second: Samples, n_resamples: int) -> PairedTest:
    """Return the test of the entropy of the values within a group, on the samples that both conditions answered."""
    from equivox.statistics import variety_difference

    names = [name for name in _valued(plain.task, first) if name in _valued(plain.task, second)]
    if not names:
        return replace(test, undefined="no request has a value in both conditions")
    try:
        found = variety_difference(
            [_pooled(first, name) for name in names], [_pooled(second, name) for name in names],
            first.groups, clusters=first.clusters, n_resamples=n_resamples,
            rng=paired_generator("answers", plain.task.name, test.condition, VARIETY),
        )  # fmt: skip
    except RequestError as error:
        return replace(test, undefined=str(error))
    return replace(
        test, value_a=found.first, value_b=found.second, difference=found.difference, p=found.p,
        p_least=found.p_least, ci_low=found.ci_low, ci_high=found.ci_high, n_samples=found.n,
        n_clusters=found.n_clusters, undefined=found.undefined,
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
    """Return which answers were annotated and state a value of any outcome, where the task has any."""
    parsed = samples.has_status("parsed")
    if names := _valued(task, samples):
        parsed &= np.any([_pooled(samples, name).has_value for name in names], axis=0)
    return parsed
