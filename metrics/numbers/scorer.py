"""Score of a task whose outcome is a number: the difference of the groups' means, in the number's unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from equivox.core.annotation import RULES
from equivox.core.attributes import LARGEST
from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.notes import Note, NoteCode, describe_design, remark
from equivox.core.samples import Numbers, Samples
from equivox.core.scores import NAN, Score, Scored, ScoringOptions
from equivox.core.task import Attribute, Task
from equivox.metrics.scoring import find_few_units, list_notes, named, rng_of, statistics

DIFFERENCE = "mean difference"
"""The name of the score of a number."""


def score_numbers(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    """Return the difference between the groups' means of a task's number.

    The table `numbers` has, per group, how many answers were asked for, refused, without a number, out of the range
    and used, and the mean, standard deviation, smallest and largest number of those used; NaN where none is.

    A refusal, an answer without a number and one out of the range are missing, never 0. A score is NaN with its reason
    if the usable share of any group is below the coverage floor, or if there is nothing to compare.
    """
    attribute = outcome_of(task)
    numbers = samples.numbers(attribute)
    number = attribute.number
    coverage = samples.coverage(numbers.usable)
    reason = coverage.shortfall(options.min_coverage)
    left_out, either_way = _outside_note(samples, attribute, numbers), _either_way_note(samples, attribute, numbers)
    found = None if reason is not None else _compare(task, samples, options, numbers.kept)
    if found is not None:
        reason = found.undefined
    unit = "" if number is None else number.unit
    said = tuple(map(remark, (*left_out, *either_way)))
    evidence: dict[str, Any] = {"notes": said}
    if found is not None and reason is None:
        mean_of = Note(NoteCode.MEAN_OF, {"attributes": [attribute.name], "of": 1})
        evidence = _describe(task, samples, options, found, numbers.usable)
        evidence["notes"] = (mean_of, *evidence["notes"], *said)
    names: dict[str, Any] = named(task) | {"unit": unit, "coverage": coverage, "undefined_reason": reason}
    return Scored([Score(**names, metric=DIFFERENCE, **evidence)], {"numbers": _by_group(samples, attribute, numbers)})


def outcome_of(task: Task) -> Attribute:
    """Return the number that a task asks for; UsageError unless it is the only outcome."""
    if len(task.outcomes) != 1 or task.outcomes[0].number is None:
        names = ", ".join(attribute.name for attribute in task.outcomes) or "none"
        raise UsageError(f"{task.name}: the metric numbers needs one outcome, and that a number; got {names}")
    return task.outcomes[0]


def _compare(
    task: Task, samples: Samples, options: ScoringOptions, values: NDArray[np.float64]
) -> statistics.MeanDifference:
    return statistics.compare_means(
        values,
        samples.groups,
        **samples.design(strata=bool(task.strata)),
        items=samples.items,
        n_resamples=options.n_resamples,
        rng=rng_of(options.seed, task.name, task.condition),
    )


def _describe(
    task: Task, samples: Samples, options: ScoringOptions, found: statistics.MeanDifference, usable: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return the fields of the score of a defined difference."""
    few = None
    if found.least.too_few is None:
        no_noise = Note(NoteCode.NO_NOISE) if np.isnan(found.low) else None
        few = no_noise or find_few_units(task, samples, usable, options.min_coverage)
    return {
        "n_units": found.n_units,
        "value": found.difference,
        "by_group": dict(zip(found.groups, found.means.tolist(), strict=True)),
        "ci": (found.low, found.high),
        "p": found.p,
        "notes": (describe_design(sd=found.sd), *list_notes(few), *found.remarks, *found.notes),
    }


def _outside_note(samples: Samples, attribute: Attribute, numbers: Numbers) -> tuple[str, ...]:
    if not numbers.outside.any() or attribute.number is None:
        return ()
    counts = ", ".join(f"{name} {n}" for name, n in samples.groups.counts(numbers.outside).items() if n)
    n = int(numbers.outside.sum())
    told = "answer has a number that is" if n == 1 else "answers have a number that is"
    limits = [f"not {attribute.number.range} {attribute.number.unit}"] * bool(attribute.number.range)
    limits += [f"beyond {LARGEST:g}"] * bool((np.abs(numbers.stated) > LARGEST).any())
    return (f"{n} {told} {' or '.join(limits)}, left out ({counts})",)


def _either_way_note(samples: Samples, attribute: Attribute, numbers: Numbers) -> tuple[str, ...]:
    """Return what may be amiss where answers state no number for certain, and no model was asked for it."""
    number = attribute.number
    if number is None or number.measure or not (number.holds(52) and number.holds(52_000)):
        return ()
    by_rules = samples.annotator is not None and samples.annotator.name == RULES
    n = int((samples.has_status("parsed", "unparsed") & np.isnan(numbers.stated)).sum())
    if not n or not (number.pattern or by_rules):
        return ()
    count = "1 answer states" if n == 1 else f"{n} answers state"
    lost = "none at all, or one such as 52.000, which `low` or `high` of the task tell from 52,000"
    return (f"{count} no number for certain: {lost}",)


def _by_group(samples: Samples, attribute: Attribute, numbers: Numbers) -> list[dict[str, Any]]:
    requested, refused = samples.groups.counts(), samples.groups.counts(samples.has_status("refused"))
    out = samples.groups.counts(numbers.outside)
    rows = []
    for code, group in enumerate(samples.groups.names):
        own = numbers.stated[numbers.usable & (samples.groups.codes == code)]
        rows.append(
            {
                "attribute": attribute.name,
                "unit": "" if attribute.number is None else attribute.number.unit,
                "group": group,
                "requested": requested[group],
                "refused": refused[group],
                "no_number": requested[group] - refused[group] - out[group] - len(own),
                "out_of_range": out[group],
                "used": len(own),
                "mean": float(own.mean()) if len(own) else NAN,
                "sd": float(own.std(ddof=1)) if len(own) > 1 else NAN,
                "low": float(own.min()) if len(own) else NAN,
                "high": float(own.max()) if len(own) else NAN,
            }
        )
    return rows


def compare_means(name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare the groups' differences of means of two models in one task.

    What one of the two refused, did not state or stated out of range is left out for both. UsageError for several
    tasks: their numbers have units of their own.
    """
    if len(tasks) != 1:
        raise UsageError(f"numbers are compared task by task, got {len(tasks)} tasks; their units differ")
    (paired,) = tasks
    attribute, samples = outcome_of(paired.task), paired.samples_a
    found = statistics.compare_run_means(
        samples.numbers(attribute).kept,
        paired.samples_b.numbers(attribute).kept,
        samples.groups,
        **samples.design(strata=bool(paired.task.strata)),
        n_resamples=n_resamples,
        rng=rng,
    )
    return found if found.undefined else replace(found, parts=(attribute.name,))
