"""Open values that say the same are counted as one: by lemma, and, when asked for, by meaning.

What was read stays stored; merging happens when scores are computed, so that it can be changed without reading again.
The most frequent wording of a set stands for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from equivox.core.scores import Merge, Row
from equivox.core.task import Task

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class MergedValue:
    """One wording of an open attribute: how often it was read, and the wording that it counts as."""

    attribute: str
    value: str
    counts_as: str
    n: int


def merge_values(
    rows: Mapping[str, Sequence[Row]], tasks: Sequence[Task], *, merge: Merge, encoder: str, threshold: float
) -> tuple[dict[str, list[Row]], list[MergedValue]]:
    """Return `rows` (by task) with the values of open attributes merged, and what was counted as what.

    Values are pooled over all tasks that read an attribute of one name, so that a value means the same in every arm.
    Closed choices stay as they are. With `embedding`, lemmas are merged first.
    """
    open_in = {task.name: {a.name for a in task.attributes if not a.options} for task in tasks}
    counts: dict[str, Counter[str]] = {}
    for name, members in rows.items():
        for row in members:
            for attribute in open_in[name] & row.values.keys():
                counts.setdefault(attribute, Counter()).update(row.values[attribute])
    counts_as = {
        attribute: merged(values, merge=merge, encoder=encoder, threshold=threshold)
        for attribute, values in sorted(counts.items())
    }
    changed = {
        name: [replace(row, values=_renamed(row.values, counts_as, open_in[name])) for row in members]
        for name, members in rows.items()
    }
    found = [
        MergedValue(attribute, value, counts_as[attribute][value], n)
        for attribute, values in sorted(counts.items())
        for value, n in sorted(values.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return changed, found


def rows_as_scored(rows: Sequence[Row], task: Task, records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return `rows` with the values of open attributes as they counted when the run was scored.

    `records` is the run's table `open_values`; a wording that it does not hold counts as itself.
    """
    open_in = {a.name for a in task.attributes if not a.options}
    counts_as: dict[str, dict[str, str]] = {name: {} for name in open_in}
    for record in records:
        if record["attribute"] in open_in:
            counts_as[record["attribute"]][record["value"]] = record["counts_as"]
    return [replace(row, values=_renamed(row.values, counts_as, open_in)) for row in rows]


def merged(values: Mapping[str, int], *, merge: Merge, encoder: str = "", threshold: float = 1.0) -> dict[str, str]:
    """Return the wording that each of `values` (wording → how often) counts as.

    >>> merged({"nurse": 5, "nurses": 2, "night nurse": 1}, merge="lemma")
    {'nurse': 'nurse', 'nurses': 'nurse', 'night nurse': 'night nurse'}
    """
    # The most frequent wording leads its set; between equals, the first in the alphabet.
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
    """Return `value` with each of its words in its dictionary form.

    >>> lemmas("software engineers"), lemmas("hiking"), lemmas("er-nurses")
    ('software engineer', 'hike', 'er-nurse')
    """
    from simplemma import lemmatize

    return _WORD.sub(lambda match: lemmatize(match.group(), lang="en").casefold(), value)


def _renamed(
    values: Mapping[str, tuple[str, ...]], counts_as: Mapping[str, Mapping[str, str]], open_: set[str]
) -> dict[str, tuple[str, ...]]:
    return {
        # Two wordings of one thing in one response are one value of it.
        name: tuple(dict.fromkeys(counts_as[name].get(value, value) for value in given)) if name in open_ else given
        for name, given in values.items()
    }
