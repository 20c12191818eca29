"""Merging of open values that mean the same: by lemma and, as an option, by meaning.

The stored annotations do not change; values are merged when scores are computed, so that another merging needs no new
annotation. The most frequent wording of a set represents it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from equivox.core.lazy import np
from equivox.core.samples import Samples
from equivox.core.scores import Merge, ScoringOptions
from equivox.core.task import Task

_WORD = re.compile(r"\w+")


def merge_samples(
    samples: Mapping[str, Samples], tasks: Sequence[Task], options: ScoringOptions
) -> tuple[dict[str, Samples], list[dict[str, Any]]]:
    """Return `samples` (by task) with the values of open attributes merged, and a row for each wording of a value.

    A row has the attribute, the wording (`value`), the wording that it counts as, and its number of annotations.

    Values are pooled over all tasks with an attribute of the same name, so that a value means the same in every
    condition. Closed choices do not change. With `embedding`, lemmas are merged first.
    """
    counts: dict[str, Counter[str]] = {}
    for task in tasks:
        for attribute in open_attributes(task):
            values = samples[task.name].values(attribute)
            found = np.bincount(values.codes, minlength=len(values.names)).tolist()
            counts.setdefault(attribute, Counter()).update(dict(zip(values.names, found, strict=True)))
    counts_as = {
        attribute: merged(values, merge=options.merge, encoder=options.encoder, threshold=options.merge_threshold)
        for attribute, values in sorted(counts.items())
    }
    rows = [
        {"attribute": attribute, "value": value, "counts_as": counts_as[attribute][value], "n": n}
        for attribute, values in sorted(counts.items())
        for value, n in sorted(values.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return {task.name: _with(samples[task.name], task, counts_as) for task in tasks}, rows


def open_attributes(task: Task) -> list[str]:
    """Return the names of the attributes of `task` that have no options and are no numbers."""
    return [one.name for one in task.attributes if not one.options and one.number is None]


def as_scored(samples: Samples, task: Task, records: Sequence[Mapping[str, Any]]) -> Samples:
    """Return `samples` with the values of open attributes merged as when the run was scored.

    `records` is the run's table `open_values`; a wording that is not in it counts as itself.
    """
    counts_as: dict[str, dict[str, str]] = {}
    for record in records:
        counts_as.setdefault(record["attribute"], {})[record["value"]] = record["counts_as"]
    return _with(samples, task, counts_as)


def _with(samples: Samples, task: Task, counts_as: Mapping[str, Mapping[str, str]]) -> Samples:
    kept = {name: counts_as[name] for name in open_attributes(task) if name in counts_as}
    return replace(samples, counts_as=kept)


def merged(values: Mapping[str, int], *, merge: Merge, encoder: str = "", threshold: float = 1.0) -> dict[str, str]:
    """Return the wording that each of `values` (wording → count) counts as.

    >>> merged({"nurse": 5, "nurses": 2, "night nurse": 1}, merge="lemma")
    {'nurse': 'nurse', 'nurses': 'nurse', 'night nurse': 'night nurse'}
    """
    # The most frequent wording represents its set; of equally frequent ones, the first in the alphabet.
    wordings = sorted(values, key=lambda value: (-values[value], value))
    if merge == "none":
        return {value: value for value in values}
    leader: dict[str, str] = {}
    by_lemma = {value: leader.setdefault(lemmas(value), value) for value in wordings}
    if merge == "lemma":
        return {value: by_lemma[value] for value in values}
    from equivox.annotate.embedding import unify

    weight: Counter[str] = Counter()
    for value, n in values.items():
        weight[by_lemma[value]] += n
    leading = sorted(weight, key=lambda value: (-weight[value], value))
    by_meaning = dict(zip(leading, unify(leading, encoder, threshold), strict=True))
    return {value: by_meaning[by_lemma[value]] for value in values}


@cache
def lemmas(value: str) -> str:
    """Return `value` with each word in its dictionary form.

    >>> lemmas("software engineers"), lemmas("hiking"), lemmas("er-nurses")
    ('software engineer', 'hike', 'er-nurse')
    """
    from simplemma import lemmatize

    return _WORD.sub(lambda match: lemmatize(match.group(), lang="en").casefold(), value)
