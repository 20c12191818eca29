"""Tables of a setting: associations, all tested phrases, Table 14, heat map, top ten, exemplar stories.

From those of two settings or two models follows their overlap: the shared associations and their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.annotate.merging import lemmas
from equivox.core.files import read_table
from equivox.core.lazy import np
from equivox.core.metric import Overlap
from equivox.core.plain import split_by
from equivox.core.scores import NAN
from equivox.metrics.badf.associations import LEVEL, Association, summarized
from equivox.metrics.badf.dimensions import NOT_ASKED, YES, Dimension, Found
from equivox.metrics.badf.documents import Documents

Records = Sequence[Mapping[str, Any]]

TOP = 10
"""Number of associations in a table of the highest scores, as in Tables 15 to 20."""
EXEMPLARS = 3
"""Number of stories per association."""


def association_rows(found: Found) -> Records:
    """Return every association by the published rule, including those that the exclusivity question drops."""
    dimension = found.dimension
    agreeing = _descriptors_agreeing(dimension)
    annotator = dimension.samples.annotator
    asked_by = annotator.name if annotator else ""
    rows: list[Mapping[str, Any]] = []
    for association, known in found.associations:
        phrase, place = association.phrase, association.place
        others = sum(phrase.documents) - phrase.documents[place]
        with_it, of = agreeing(association)
        rows.append(
            {
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
                "exemplars": " ".join(_exemplars(dimension, association)[1]),
            }
        )
    return rows


def _exemplars(dimension: Dimension, association: Association) -> tuple[list[int], list[str]]:
    """Return the first documents of an association in its category, and the keys of their stories."""
    own = dimension.by_category[association.phrase.category]
    documents = own.with_phrase(association.phrase.phrase)
    mine = documents[own.identity.codes[documents] == own.identity.names.index(association.identity)][:EXEMPLARS]
    return mine.tolist(), [str(own.keys[own.story[document]]) for document in mine]


def _descriptors_agreeing(dimension: Dimension) -> Callable[[Association], tuple[int, int]]:
    """Return a function that counts an identity's descriptors with a larger share of a phrase than other identities."""
    every = dimension.documents
    pairs = np.unique(np.stack([every.identity.codes, every.descriptor.codes]), axis=1)
    n_descriptors = len(every.descriptor.names)
    n_stories = {
        category: np.bincount(own.descriptor.codes, minlength=n_descriptors)
        for category, own in dimension.by_category.items()
    }

    def agreeing(association: Association) -> tuple[int, int]:
        phrase, place = association.phrase, association.place
        others = sum(phrase.documents) - phrase.documents[place]
        share = (sum(phrase.counts) - phrase.counts[place]) / others if others else NAN
        mine = pairs[1, pairs[0] == every.identity.names.index(association.identity)]
        own, stories = dimension.by_category[phrase.category], n_stories[phrase.category][mine]
        told = np.bincount(own.descriptor.codes[own.with_phrase(phrase.phrase)], minlength=n_descriptors)[mine]
        above = (stories > 0) & (told / np.maximum(stories, 1) > share)
        return int(above.sum()), len(mine)

    return agreeing


def phrase_rows(found: Found) -> Records:
    """Return all tested phrases, kept or not: the family of q."""
    identities = found.dimension.identities
    return [
        {
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


def value_rows(found: Found) -> Records:
    """Return the share of stories with each phrase that survives correction, by identity, in percent."""
    return [
        {
            "attribute": one.phrase.category, "role": "outcome", "value": one.phrase.phrase, "group": identity,
            "n": n, "percent": 100 * n / of if of else NAN,
        }
        for one in found.kept()
        if one.phrase.q <= LEVEL
        for identity, n, of in zip(found.dimension.identities, one.phrase.counts, one.phrase.documents, strict=True)
    ]  # fmt: skip


def summary_rows(found: Found) -> Records:
    """Return Table 14: a row per identity, over all categories."""
    rows: list[Mapping[str, Any]] = []
    for identity in found.dimension.identities:
        kept = found.kept(identity)
        n, mean_score, mean_p = summarized(kept)
        rows.append(
            {
                "identity": identity,
                "count": None if found.undefined else n,
                "mean_score": None if found.undefined else mean_score,
                "mean_p": None if found.undefined else mean_p,
                "surviving_q": None if found.undefined else sum(a.phrase.q <= LEVEL for a in kept),
                "dropped_as_exclusive": sum(known == YES for a, known in found.associations if a.identity == identity),
                "stories_requested": found.coverage.requested_by_group[identity],
                "stories_used": found.coverage.used_by_group[identity],
                "undefined": str(found.undefined or ""),
            }
        )
    return rows


def heat_map_rows(found: Found) -> Records:
    """Return the number of associations of each category × identity; None if it is not known."""
    counted = split_by(found.kept(), lambda one: (one.phrase.category, one.identity))
    rows: list[Mapping[str, Any]] = []
    for category, reason in found.categories.items():
        for identity in found.dimension.identities:
            why = found.undefined or reason
            cell = counted.get((category, identity), ())
            rows.append(
                {
                    "category": category,
                    "identity": identity,
                    "count": None if why else len(cell),
                    "surviving_q": None if why else sum(a.phrase.q <= LEVEL for a in cell),
                    "undefined": str(why or ""),
                }
            )
    return rows


def top_rows(found: Found, identity: str | None = None) -> Records:
    """Return the associations with the highest scores: of an identity (Tables 18 to 20), else of all (15 to 17)."""
    best = sorted(found.kept(identity), key=lambda a: (-a.score, a.phrase.category, a.phrase.phrase))[:TOP]
    return [
        {
            "identity": association.identity,
            "rank": rank,
            "category": association.phrase.category,
            "phrase": association.phrase.phrase,
            "score": association.score,
            "q": association.phrase.q,
        }
        for rank, association in enumerate(best, start=1)
    ]


def exemplar_rows(found: Found) -> Records:
    """Return the keys of up to three stories of each association, with the wording that counted as its phrase."""
    dimension = found.dimension
    rows: list[Mapping[str, Any]] = []
    for association in found.kept():
        own = dimension.by_category[association.phrase.category]
        for document, key in zip(*_exemplars(dimension, association), strict=True):
            sample_id, repeat = dimension.asked_as[key]
            rows.append(
                {
                    "category": association.phrase.category,
                    "identity": association.identity,
                    "phrase": association.phrase.phrase,
                    "descriptor": str(own.descriptor.names[own.descriptor.codes[document]]),
                    "wording": "; ".join(_wordings(own, document, association)),
                    "sample_id": sample_id,
                    "repeat": repeat,
                    "key": key,
                }
            )
    return rows


def _wordings(documents: Documents, document: int, association: Association) -> list[str]:
    """Return the distinct wordings of a document that counted as an association's phrase."""
    raw, unified = documents.phrases, documents.unified
    low, high = raw.rows.searchsorted([document, document + 1])
    pairs = zip(raw.codes[low:high].tolist(), unified.codes[low:high].tolist(), strict=True)
    phrase = association.phrase.phrase
    return list(dict.fromkeys(raw.names[one] for one, other in pairs if unified.names[other] == phrase))


def unified_rows(found: Found) -> Records:
    """Return every wording with the phrase that it counted as, its own or another."""
    rows: list[Mapping[str, Any]] = []
    for category, own in found.dimension.by_category.items():
        raw, unified = own.phrases, own.unified
        pairs, n = np.unique(np.stack([raw.codes, unified.codes]), axis=1, return_counts=True)
        for (one, other), count in zip(pairs.T.tolist(), n.tolist(), strict=True):
            wording, counts_as = raw.names[one], unified.names[other]
            rows.append({"category": category, "wording": wording, "counts_as": counts_as, "n": count})
    return rows


def chance_rows(found: Found) -> Records:
    """Return the number of associations beside that by chance, and its p over stories and over names."""
    null = found.null
    if null is None:
        return []
    p = {"p_stories": null.p_stories, "p_names": null.p_names}
    return [{"associations": null.observed, "by_chance": null.expected, **p}]


TABLES: Mapping[str, Callable[[Found], Records]] = {
    "associations": association_rows,
    "phrases": phrase_rows,
    "values": value_rows,
    "summary": summary_rows,
    "heat_map": heat_map_rows,
    "top": lambda found: [row for identity in found.dimension.identities for row in top_rows(found, identity)],
    "top_of_all": top_rows,
    "exemplars": exemplar_rows,
    "unified": unified_rows,
    "chance": chance_rows,
}
"""The tables of a setting by name, each of one dimension; the name of its task comes before every row."""


Key = tuple[str, str, str, str]
"""Dimension, category, identity, and dictionary forms of an association."""


def overlap(
    dimension: str, one: str, scores_one: Mapping[Key, float], other: str, scores_other: Mapping[Key, float]
) -> Overlap:
    """Compare the scores of two sets of associations.

    Phrases with the same dictionary forms count as equal. Each setting chose its own wording for a group of phrases, so
    the overlap is a lower bound.

    >>> a = {("g", "sports", "f", "calm"): 0.3, ("g", "sports", "m", "witty"): 0.1}
    >>> found = overlap("g", "a", a, "b", {("g", "sports", "f", "calm"): 0.2})
    >>> found.n_shared, found.jaccard
    (1, 0.5)
    """
    from scipy import stats

    shared = sorted(scores_one.keys() & scores_other.keys())
    either = len(scores_one.keys() | scores_other.keys())
    tau = NAN
    if len(shared) > 2:
        tau = float(stats.kendalltau([scores_one[k] for k in shared], [scores_other[k] for k in shared]).statistic)
    return Overlap(
        findings="associations",
        dimension=dimension,
        one=one,
        other=other,
        n_one=len(scores_one),
        n_other=len(scores_other),
        n_shared=len(shared),
        jaccard=len(shared) / either if either else NAN,
        rank_correlation=tau,
    )


def association_sets(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[Key, float]]:
    """Return, per dimension, the kept associations of a table with their scores."""
    found: dict[str, dict[Key, float]] = {}
    for record in records:
        dimension = _dimension(record["task"])
        if record["kept"]:
            key = (dimension, record["category"], record["identity"], lemmas(record["phrase"]))
            own = found.setdefault(dimension, {})
            own[key] = max(record["score"], own.get(key, -math.inf))
    return found


def _dimension(task: str) -> str:
    """Return the dimension of a task, in whichever condition it was asked."""
    return task.partition(":")[2].partition("@")[0]


def overlaps_of_runs(runs: Sequence[tuple[str, Path]]) -> list[Overlap]:
    """Compare every two settings and models of some runs (their labels and folders), dimension by dimension.

    Settings without a score, because their coverage was too small, are left out.
    """
    sets: list[tuple[str, dict[str, dict[Key, float]]]] = []
    for label, folder in runs:
        for summary in sorted(folder.glob("tables/badf_*/summary.parquet")):
            scored = {_dimension(r["task"]) for r in read_table(summary).to_pylist() if not r["undefined"]}
            table = summary.parent / "associations.parquet"
            found = association_sets(read_table(table).to_pylist()) if table.exists() else {}
            sets.append((f"{label} {summary.parent.name}", {name: found.get(name, {}) for name in sorted(scored)}))
    return [
        overlap(dimension, one, own, other, others[dimension])
        for place, (one, owns) in enumerate(sets)
        for other, others in sets[place + 1 :]
        for dimension, own in owns.items()
        if dimension in others
    ]
