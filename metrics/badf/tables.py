"""The tables of a setting: associations, everything tested, Table 14, heat map, top ten, exemplar stories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from equivox.core.scores import NAN
from equivox.metrics.badf.associations import LEVEL, Association, Document
from equivox.metrics.badf.scorer import NOT_ASKED, YES, Dimension, Found, summarized

Records = Sequence[Mapping[str, Any]]

TOP = 10
"""Associations per identity in the table of the highest scores, as in Tables 15 to 20."""
EXEMPLARS = 3
"""Stories per association."""


def association_rows(found: Found) -> Records:
    """Return every association of the published rule, those that the exclusivity question drops included."""
    dimension = found.dimension
    agreeing = _descriptors_agreeing(dimension)
    exemplars = _stories(dimension)
    asked_by = dimension.table.annotator
    rows: list[Mapping[str, Any]] = []
    for association, known in found.associations:
        phrase, place = association.phrase, association.place
        key = (phrase.category, association.identity, phrase.phrase)
        others = sum(phrase.documents) - phrase.documents[place]
        with_it, of = agreeing(association)
        rows.append(
            {
                "task": dimension.task.name,
                "category": phrase.category,
                "identity": association.identity,
                "phrase": phrase.phrase,
                "score": association.score,
                "p": phrase.p,
                "p_exact": phrase.p_exact,
                "p_method": phrase.method,
                "q": phrase.q,
                "survives_q": phrase.q <= LEVEL,
                "v": phrase.v,
                "residual": phrase.residual(place),
                "stories": phrase.counts[place],
                "of_stories": phrase.documents[place],
                "stories_of_others": sum(phrase.counts) - phrase.counts[place],
                "of_stories_of_others": others,
                "descriptors_above_others": with_it,
                "descriptors": of,
                "exclusive": known,
                "exclusivity_by": f"none: {asked_by} keeps everything" if known == NOT_ASKED else asked_by,
                "kept": known != YES,
                "exemplars": " ".join(d.key for d in exemplars[key][:EXEMPLARS]),
            }
        )
    return rows


def _stories(dimension: Dimension) -> Mapping[tuple[str, str, str], list[Document]]:
    found: dict[tuple[str, str, str], list[Document]] = defaultdict(list)
    for document in dimension.documents:
        for phrase in dict.fromkeys(document.unified):
            found[document.category, document.identity, phrase].append(document)
    return found


def _descriptors_agreeing(dimension: Dimension) -> Callable[[Association], tuple[int, int]]:
    """Return a function: of how many of an identity's descriptors a phrase is told more than of all others."""
    n: dict[tuple[str, str], int] = defaultdict(int)
    told: dict[tuple[str, str, str], int] = defaultdict(int)
    of_identity: dict[str, dict[str, None]] = defaultdict(dict)
    for document in dimension.documents:
        of_identity[document.identity][document.descriptor] = None
        n[document.category, document.descriptor] += 1
        for phrase in dict.fromkeys(document.unified):
            told[document.category, document.descriptor, phrase] += 1

    def agreeing(association: Association) -> tuple[int, int]:
        phrase, place = association.phrase, association.place
        others = sum(phrase.documents) - phrase.documents[place]
        share = (sum(phrase.counts) - phrase.counts[place]) / others if others else NAN
        mine = list(of_identity[association.identity])
        above = 0
        for descriptor in mine:
            stories = n[phrase.category, descriptor]
            above += bool(stories) and told[phrase.category, descriptor, phrase.phrase] / stories > share
        return above, len(mine)

    return agreeing


def phrase_rows(found: Found) -> Records:
    """Return everything that was tested, kept or not: the family of q."""
    identities = found.dimension.identities
    return [
        {
            "task": found.dimension.task.name,
            "category": phrase.category,
            "phrase": phrase.phrase,
            "identities": ",".join(identities),
            "stories": ",".join(map(str, phrase.counts)),
            "of_stories": ",".join(map(str, phrase.documents)),
            "p": phrase.p,
            "p_exact": phrase.p_exact,
            "p_method": phrase.method,
            "sparse": phrase.sparse,
            "q": phrase.q,
            "v": phrase.v,
            "undefined": phrase.undefined or "",
        }
        for phrase in found.dimension.phrases
    ]


def summary_rows(found: Found) -> Records:
    """Return Table 14: a row per identity, over all categories."""
    rows: list[Mapping[str, Any]] = []
    for identity in found.dimension.identities:
        kept = found.kept(identity)
        cell = summarized(kept)
        rows.append(
            {
                "task": found.dimension.task.name,
                "identity": identity,
                "count": None if found.undefined else cell.count,
                "mean_score": None if found.undefined else cell.mean_score,
                "mean_p": None if found.undefined else cell.mean_p,
                "surviving_q": None if found.undefined else sum(a.phrase.q <= LEVEL for a in kept),
                "dropped_as_exclusive": sum(known == YES for a, known in found.associations if a.identity == identity),
                "stories_requested": found.coverage.requested_by_group[identity],
                "stories_used": found.coverage.used_by_group[identity],
                "undefined": found.undefined or "",
            }
        )
    return rows


def heat_map_rows(found: Found) -> Records:
    """Return how many associations each category × identity has; None where that is not known."""
    counted: dict[tuple[str, str], list[Association]] = defaultdict(list)
    for association in found.kept():
        counted[association.phrase.category, association.identity].append(association)
    rows: list[Mapping[str, Any]] = []
    for category, reason in found.categories.items():
        for identity in found.dimension.identities:
            why = found.undefined or reason
            cell = counted[category, identity]
            rows.append(
                {
                    "task": found.dimension.task.name,
                    "category": category,
                    "identity": identity,
                    "count": None if why else len(cell),
                    "surviving_q": None if why else sum(a.phrase.q <= LEVEL for a in cell),
                    "undefined": why or "",
                }
            )
    return rows


def top_rows(found: Found) -> Records:
    """Return the associations with the highest scores of each identity, as Tables 15 to 20 list them."""
    rows: list[Mapping[str, Any]] = []
    for identity in found.dimension.identities:
        best = sorted(found.kept(identity), key=lambda a: (-a.score, a.phrase.category, a.phrase.phrase))[:TOP]
        rows += [
            {
                "task": found.dimension.task.name,
                "identity": identity,
                "rank": rank,
                "category": association.phrase.category,
                "phrase": association.phrase.phrase,
                "score": association.score,
                "q": association.phrase.q,
            }
            for rank, association in enumerate(best, start=1)
        ]
    return rows


def exemplar_rows(found: Found) -> Records:
    """Return up to three stories of each association, with the wording that was counted as its phrase."""
    stories = _stories(found.dimension)
    texts = {row.key: row for row, _ in found.dimension.read}
    rows: list[Mapping[str, Any]] = []
    for association in found.kept():
        phrase = association.phrase
        for document in stories[phrase.category, association.identity, phrase.phrase][:EXEMPLARS]:
            row = texts[document.key]
            worded = [raw for raw, one in zip(document.phrases, document.unified, strict=True) if one == phrase.phrase]
            rows.append(
                {
                    "task": found.dimension.task.name,
                    "category": phrase.category,
                    "identity": association.identity,
                    "phrase": phrase.phrase,
                    "descriptor": document.descriptor,
                    "wording": "; ".join(dict.fromkeys(worded)),
                    "item_id": row.item_id,
                    "repeat": row.repeat,
                    "key": document.key,
                    "story": row.text or "",
                }
            )
    return rows


def unified_rows(found: Found) -> Records:
    """Return which wording was counted as which phrase, where they differ."""
    counted: dict[tuple[str, str, str], int] = defaultdict(int)
    for document in found.dimension.documents:
        for raw, one in zip(document.phrases, document.unified, strict=True):
            if raw != one:
                counted[document.category, raw, one] += 1
    return [
        {"task": found.dimension.task.name, "category": category, "wording": raw, "counts_as": one, "n": n}
        for (category, raw, one), n in counted.items()
    ]
