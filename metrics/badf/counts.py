"""BADF of counts: how many stories of each identity have each phrase, for tables whose stories are not at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.scores import NAN
from equivox.metrics.badf.associations import Counts, phrase_tests
from equivox.metrics.badf.chance import kept_by_chance
from equivox.metrics.badf.columns import kept_numbers, why_undefined
from equivox.metrics.column_metric import Column, ColumnMetric, groups_of, row_coverage, whole, whole_or_none

_Table = dict[str, dict[str, dict[str, int | None]]]
"""Category → phrase → identity → how many documents have the phrase; None where that is missing."""


def measure(
    *,
    identities: Column,
    phrases: Column,
    counts: Column,
    documents: Column,
    tokens: Column = (),
    categories: Column = (),
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return how many associations the counts hold beside what chance gives; NaN with the reason in `undefined`.

    A row is one phrase of one identity in one category of places: `counts` says how many of the identity's documents
    have the phrase, `documents` how many there are, `tokens` how many phrases they have, repeats included. A phrase
    needs a row for every identity of its category, with 0 where no document has it; a missing count is no 0: the phrase
    is not tested. Without `tokens` the mean score is NaN, and the rest is the same.

    `expected_by_chance`, p and q take the documents of a category as exchangeable. Counts do not tell which documents
    are of one story, so there is no p over stories and none over names. If stories have two characters, q is too small
    for phrases that are told of one of them at a time: use `concept_associations`, which permutes within stories.
    """
    who, said = groups_of("identities", identities), whole("phrases", phrases)
    places = whole_or_none("categories", categories) or [""] * len(who)
    sizes = _sizes("documents", places, who, documents)
    if sizes is None:
        raise UsageError("`documents` is missing in every row: give how many documents each identity has")
    lengths = _sizes("tokens", places, who, tokens)
    table = _table(places, said, who, counts, sizes)
    groups = sorted(set(who))
    coverage = row_coverage([count is not None for count in counts], who)
    found = [_counts(place, table[place], groups, sizes, lengths) for place in table]
    tested = phrase_tests(*found, n_resamples=n_resamples, seed=seed)
    reason = coverage.shortfall(min_coverage) or why_undefined(groups, found, tested)
    numbers = ("associations", "expected_by_chance", "with_q", "mean_score", "mean_p")
    result: dict[str, Any] = dict.fromkeys((*numbers, *(f"associations_{identity}" for identity in groups)), NAN)
    if reason is None:
        chances = {(sum(phrase.counts), phrase.documents) for phrase in tested}
        by_chance = {(n, of): kept_by_chance(n, of, n_resamples=n_resamples, seed=seed) for n, of in sorted(chances)}
        result |= kept_numbers(tested, groups)
        result["expected_by_chance"] = math.fsum(by_chance[sum(phrase.counts), phrase.documents] for phrase in tested)
        if lengths is None:
            result["mean_score"] = NAN
    return {
        **result,
        "n_rows": len(who),
        "n_phrases": len(tested),
        "coverage": coverage.share,
        "undefined": None if reason is None else str(reason),
    }


def _sizes(
    name: str, places: Sequence[str], who: Sequence[str], given: Sequence[float | None]
) -> Mapping[tuple[str, str], int] | None:
    """Return how much each identity has in each category; None where the column was left out."""
    if all(entry is None for entry in given):
        return None
    found: dict[tuple[str, str], int] = {}
    for place, identity, entry in zip(places, who, given, strict=True):
        size = _whole_number(name, entry, identity, place)
        if size is None:
            raise UsageError(f"`{name}` is missing for {_named(identity, place)}: give it in every row")
        if found.setdefault((place, identity), size) != size:
            raise UsageError(
                f"`{name}` is {found[place, identity]} and {size} for {_named(identity, place)}: it is one number for "
                "all phrases of an identity in a category"
            )
    return found


def _table(
    places: Sequence[str],
    said: Sequence[str],
    who: Sequence[str],
    counts: Sequence[float | None],
    sizes: Mapping[tuple[str, str], int],
) -> _Table:
    """Return the counts by category, phrase and identity; UsageError for rows that are double, absent or too many."""
    table: _Table = {}
    for place, phrase, identity, entry in zip(places, said, who, counts, strict=True):
        own = table.setdefault(place, {}).setdefault(phrase, {})
        if identity in own:
            raise UsageError(f"{phrase!r} has two rows for {_named(identity, place)}: give one row with the count")
        own[identity] = count = _whole_number("counts", entry, identity, place)
        if count is not None and count > sizes[place, identity]:
            raise UsageError(
                f"`counts` is {count} for {phrase!r} and {_named(identity, place)}, which has {sizes[place, identity]} "
                "documents: count the documents that have the phrase, each once"
            )
    for place, phrases in table.items():
        there = {identity for own in phrases.values() for identity in own}
        for phrase, own in phrases.items():
            if absent := sorted(there - set(own)):
                raise UsageError(
                    f"{phrase!r} has no row for {_named(absent[0], place)}: give one, with the count 0 if no document "
                    "has the phrase"
                )
    return table


def _counts(
    place: str,
    phrases: Mapping[str, Mapping[str, int | None]],
    groups: Sequence[str],
    sizes: Mapping[tuple[str, str], int],
    lengths: Mapping[tuple[str, str], int] | None,
) -> Counts:
    told: dict[str, tuple[int, ...]] = {}
    for phrase, own in phrases.items():
        cells = [own.get(identity, 0) for identity in groups]
        known = tuple(cell for cell in cells if cell is not None)
        if len(known) == len(cells):
            told[phrase] = known
    documents = tuple(sizes.get((place, identity), 0) for identity in groups)
    return Counts(
        category=place,
        identities=tuple(groups),
        documents=documents,
        # Only the sign of a score is used where the tokens are not known.
        tokens=documents if lengths is None else tuple(lengths.get((place, identity), 0) for identity in groups),
        with_phrase=told,
    )


def _whole_number(name: str, entry: float | None, identity: str, place: str) -> int | None:
    if entry is None:
        return None
    if entry < 0 or entry != int(entry):
        raise UsageError(f"`{name}` is {entry:g} for {_named(identity, place)}: give a whole number from 0 up")
    return int(entry)


def _named(identity: str, place: str) -> str:
    return f"{identity} in {place}" if place else identity


METRIC = ColumnMetric(
    name="concept_counts",
    measure=measure,
    required={"identities": "text", "phrases": "text", "counts": "number", "documents": "number"},
    optional={"tokens": "number", "categories": "text"},
    description=(
        "BADF from counts: phrases that more of one identity's documents have than of another's, tested per category "
        "of places, with the number that chance gives and q over everything tested."
    ),
    citation="arXiv:2508.01412",
)
