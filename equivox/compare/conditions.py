"""Is it the voice, does an instruction help? Each task of a run against the same task in another condition.

The other condition leaves out the recording or the image, adds a system prompt, or changes the voice; both ask about
the same samples. A changed voice is compared with one that was only made again, which has no other difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from equivox.compare.answers import answer_tests
from equivox.compare.pairs import (
    OVERALL,
    OpenedRun,
    PairedTest,
    averaged_scores,
    empty_test,
    paired_generator,
    paired_result,
    tasks_of,
    unscored,
    with_q,
)
from equivox.core.metric import Measure
from equivox.core.scores import Score
from equivox.core.variants import SHUFFLED, dose_of

ConditionTest = tuple[str, PairedTest]
"""A model, and the test of its score with the person's voice or face against its score without.

The two sides of the paired test, `model_a` and `model_b`, are the declared condition and the other one; its q is over
all such tests that are shown together. A positive `further` means that bias is larger with the person."""


def condition_tests(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000) -> list[ConditionTest]:
    """Return the tests between the declared condition and every other one that a run has, but for shuffled groups.

    Of a system prompt, the answers are tested as well (`equivox.compare.answers`); their q is over such tests alone.
    So is that of the doses of a voice, which are many. A dose is compared with the dose 0 where the run has it, and the
    dose 0 with the declared condition.

    A pair that is not tested is returned with the reason. Empty if no run has a task in two conditions. The unit is
    the cluster: both conditions ask about the same samples, and whole clusters are exchanged.
    """
    found = [
        (one.run.model, test) for one in opened for test in (*_tests(one, n_resamples), *_overall(one, n_resamples))
    ]
    answers = [(one.run.model, test) for one in opened for test in answer_tests(one, n_resamples)]
    doses = [entry for entry in found if dose_of(entry[1].model_b)]
    others = [entry for entry in found if not dose_of(entry[1].model_b)]
    return [
        (model, test)
        for own in (others, doses, answers)
        for (model, _), test in zip(own, with_q([test for _, test in own]), strict=True)
    ]


def _reference(name: str, known: Collection[str]) -> str:
    """Return the task or family that another condition of it is compared with: as declared, or with the dose 0."""
    declared, _, condition = name.partition("@")
    kind, semitones = dose_of(condition) or ("", 0.0)
    made_again = f"{declared}@{kind}=0"
    return made_again if semitones and made_again in known else declared


def _tests(one: OpenedRun, n_resamples: int) -> Iterator[PairedTest]:
    whole = {(score.task, score.name): score for score in one.run.scores if score.is_whole}
    known = {task for task, _ in whole}
    for (task, name), other in whole.items():
        declared, at, condition = task.partition("@")
        reference = _reference(task, known)
        mine, measure = whole.get((reference, name)), one.run.measure(other)
        if not at or condition == SHUFFLED or mine is None or measure is None or measure.compare is None:
            continue
        tasks = [(reference, task)]
        if ":" not in declared:
            tasks = [(_reference(member, one.asked), member) for member in tasks_of(one, task)]
        pairs = [(a, b, mine, other) for a, b in tasks]
        yield _tested(one, measure, _between(mine, other, declared), pairs, n_resamples, [0, task])


def _overall(one: OpenedRun, n_resamples: int) -> Iterator[PairedTest]:
    """Yield the tests of the mean over all tasks of a family, for the measures that have one."""
    every = averaged_scores(one.run)
    families = {family for family, *_ in every}
    for (family, dimension, name), others in every.items():
        declared, at, condition = family.partition("@")
        mine = every.get((_reference(family, families), dimension, name), {})
        pairs = [
            (without, task, mine[without], score)
            for task, score in others.items()
            if (without := _reference(task, mine)) in mine
        ]
        if not at or condition == SHUFFLED or len(pairs) < 2:
            continue
        _, _, first, other = pairs[0]
        measure = one.run.measure(first)
        test = _between(first, other, f"{declared}: {OVERALL}")
        if len(pairs) < max(len(mine), len(others)):
            yield replace(test, undefined="the two conditions do not have the same tasks")
        elif measure is not None:
            yield _tested(one, measure, test, pairs, n_resamples, [0, family, dimension])


def _between(mine: Score, other: Score, task: str) -> PairedTest:
    """Return a test without numbers between the conditions of two scores, under the name of the declared family."""
    a, b = mine.condition, other.condition
    family = mine.family.partition("@")[0]
    return replace(empty_test(mine, task, a, b), condition=f"{a} against {b}", family=family)


def _tested(
    one: OpenedRun,
    measure: Measure,
    test: PairedTest,
    pairs: Sequence[tuple[str, str, Score, Score]],
    n_resamples: int,
    named: Sequence[Any],
) -> PairedTest:
    if one.unreadable:
        return replace(test, undefined=one.unreadable)
    if reason := unscored([named_score for a, b, mine, other in pairs for named_score in ((a, mine), (b, other))]):
        return replace(test, undefined=reason)
    asked = [(one.asked[a], one.asked[b], mine, other) for a, b, mine, other in pairs]
    rng = paired_generator("conditions", *named, measure.name)
    return paired_result(test, measure, asked, n_resamples, rng, what="conditions")
