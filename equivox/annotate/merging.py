"""Merging of open values that mean the same: by lemma and, as an option, by meaning.

The stored annotations do not change; values are merged when scores are computed, so that another merging needs no new
annotation. The most frequent wording of a set represents it.

By meaning: embeddings and greedy leader clustering. The first phrase is a leader; each later one joins the earliest
leader whose cosine with it reaches the threshold, or becomes a leader if there is none. A phrase is compared only with
leaders, never with other members.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from equivox.core.errors import UsageError
from equivox.core.lazy import NDArray, np
from equivox.core.samples import Samples
from equivox.core.scores import ScoringOptions
from equivox.core.task import Task

if TYPE_CHECKING:
    import numpy.typing as npt
    from sentence_transformers import SentenceTransformer

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
    counts_as = {attribute: merged(values, options) for attribute, values in sorted(counts.items())}
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


def merged(values: Mapping[str, int], options: ScoringOptions) -> dict[str, str]:
    """Return the wording that each of `values` (wording → count) counts as.

    >>> merged({"nurse": 5, "nurses": 2, "night nurse": 1}, ScoringOptions(merge="lemma"))
    {'nurse': 'nurse', 'nurses': 'nurse', 'night nurse': 'night nurse'}
    """
    # The most frequent wording represents its set; of equally frequent ones, the first in the alphabet.
    wordings = sorted(values, key=lambda value: (-values[value], value))
    if options.merge == "none":
        return {value: value for value in values}
    leader: dict[str, str] = {}
    by_lemma = {value: leader.setdefault(lemmas(value), value) for value in wordings}
    if options.merge == "lemma":
        return {value: by_lemma[value] for value in values}
    weight: Counter[str] = Counter()
    for value, n in values.items():
        weight[by_lemma[value]] += n
    leading = sorted(weight, key=lambda value: (-weight[value], value))
    by_meaning = dict(zip(leading, unify(leading, options.encoder, options.merge_threshold), strict=True))
    return {value: by_meaning[by_lemma[value]] for value in values}


@cache
def lemmas(value: str) -> str:
    """Return `value` with each word in its dictionary form.

    >>> lemmas("software engineers"), lemmas("hiking"), lemmas("er-nurses")
    ('software engineer', 'hike', 'er-nurse')
    """
    from simplemma import lemmatize

    return _WORD.sub(lambda match: lemmatize(match.group(), lang="en").casefold(), value)


def unify(phrases: Sequence[str], encoder: str, threshold: float) -> list[str]:
    """Return, for each phrase, the leader of its cluster; a leader is its own.

    `phrases` are distinct and in the order in which they can become leaders; `encoder` is a sentence-transformers model
    by name or folder. Raises UsageError if the library or the model is missing.
    """
    vectors = load_encoder(encoder).encode(list(phrases), batch_size=64, show_progress_bar=False)
    return [phrases[leader] for leader in leader_clusters(vectors, threshold)]


@cache
def load_encoder(encoder: str) -> SentenceTransformer:
    """Return the sentence-transformers model `encoder`, on the CPU, so that vectors are equal on every machine."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UsageError(
            "merging by meaning needs the package sentence-transformers, which is not installed; "
            'install it in a checkout of equivox: pip install -c constraints.txt ".[embeddings]"'
        ) from None
    try:
        return SentenceTransformer(encoder, device="cpu")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"`encoder` {encoder!r} cannot be loaded ({str(error).splitlines()[0]}); "
            "give a sentence-transformers model by name, or the folder of one"
        ) from error


def leader_clusters(vectors: npt.ArrayLike, threshold: float) -> NDArray[np.int64]:
    """Return the index of the leader of each vector, shape (n,); a leader has its own index.

    `vectors` has shape (n, dimensions), in the order in which they can become leaders; they are scaled to unit length
    here. Raises ValueError for a threshold outside (0, 1], for a vector without length, and for one with a NaN.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"`threshold` is a cosine in (0, 1], got {threshold}")
    # Double precision, so that a cosine at the threshold falls on the same side on every machine.
    units = np.array(vectors, dtype=np.float64, ndmin=2)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0):
        raise ValueError("every vector needs a finite length above 0")
    units /= lengths
    leaders = np.empty_like(units)
    indices: list[int] = []
    leader_of = np.empty(len(units), dtype=np.int64)
    for place, unit in enumerate(units):
        near = leaders[: len(indices)] @ unit >= threshold
        if not near.any():
            leaders[len(indices)] = unit
            indices.append(place)
        leader_of[place] = indices[near.argmax()] if near.any() else place
    return leader_of
