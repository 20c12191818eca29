"""BADF of plain columns: the phrases associated with an identity, and the number of them by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equivox.core.lazy import np
from equivox.core.scores import DEFAULT_ENCODER, DEFAULT_MERGE_THRESHOLD, NAN, Merge, scoring_options
from equivox.metrics.badf.associations import LEVEL, Counts, Phrase, associations, count, phrase_tests, summarized
from equivox.metrics.badf.chance import null_counts
from equivox.metrics.badf.documents import Documents, unify_phrases
from equivox.metrics.column_metric import Column, ColumnMetric, groups_of, row_coverage, whole_or_none


def measure(
    *,
    identities: Column,
    phrases: Column,
    names: Column = (),
    categories: Column = (),
    stories: Column = (),
    merge: Merge = "none",
    encoder: str = DEFAULT_ENCODER,
    merge_threshold: float = DEFAULT_MERGE_THRESHOLD,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    n_story_permutations: int = 9_999,
    n_name_permutations: int = 999,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the number of associations with its null mean; NaN with the reason in `undefined`.

    A row is one character of one story: its identity and the phrases that describe it (none: the story says nothing,
    and is not used; missing: it could not be parsed). `names` carry the identity and are permuted for `p_names`, which
    speaks of the identity, with names that were not seen. With few names it supposes that names differ normally, and
    `p_names_least`, the smallest p that permutations can give, is NaN where that is so. `p_stories` permutes over
    stories and speaks of these names alone. `categories` are the kinds of places, counted separately; `stories`
    identifies the rows of one story, within which identities are permuted. Rows of one story, identity, name and
    category are one document, so that a table can also have a row per phrase; a document is missing if any of its rows
    is.
    """
    scoring_options(merge=merge, merge_threshold=merge_threshold)
    who = groups_of("identities", identities)
    called = whole_or_none("names", names)
    places = whole_or_none("categories", categories) or [""] * len(who)
    keys = whole_or_none("stories", stories) or [str(row) for row in range(len(who))]
    told = _documents(list(zip(keys, places, who, called or who, strict=True)), phrases)
    # A document without a phrase is one of those that chance exchanges, and no evidence that nothing is associated.
    coverage = row_coverage([bool(words) for words in told.values()], [identity for _, _, identity, _ in told])
    documents = unify_phrases(
        Documents.of([(*place, "", words) for place, words in told.items() if words is not None]),
        merge=merge,
        encoder=encoder,
        threshold=merge_threshold,
    )
    groups = sorted(set(who))
    counts = [count(documents, place, groups) for place in dict.fromkeys(places)]
    tested = phrase_tests(*counts, n_resamples=n_resamples, seed=seed)
    reason = coverage.shortfall(min_coverage) or why_undefined(groups, counts, tested)
    result: dict[str, Any] = dict.fromkeys((*_NUMBERS, *(f"associations_{identity}" for identity in groups)), NAN)
    if reason is None:
        drawn = n_name_permutations if called else 0
        null = null_counts(documents, groups, n_stories=n_story_permutations, n_descriptors=drawn, seed=seed)
        result |= kept_numbers(tested, groups)
        result |= {
            "expected_by_chance": null.expected,
            "p_stories": null.p_stories,
            "p_names": null.p_names,
            "p_names_least": null.p_names_least if called else NAN,
        }
    return {
        **result,
        "n_rows": len(who),
        "n_documents": len(told),
        "n_phrases": len(tested),
        "coverage": coverage.share,
        "undefined": None if reason is None else str(reason),
    }


_NUMBERS = (
    *("associations", "expected_by_chance", "p_stories", "p_names", "p_names_least"),
    *("with_q", "mean_score", "mean_p"),
)
"""The numbers of a result that are NaN where `undefined` gives a reason."""

_Place = tuple[str, str, str, str]
"""A document's story, category, identity and name."""


def _documents(places: Sequence[_Place], phrases: Sequence[Sequence[str] | None]) -> dict[_Place, list[str] | None]:
    """Return what each document says, by its place; None where a row of it is missing."""
    found: dict[_Place, list[str] | None] = {}
    for place, words in zip(places, phrases, strict=True):
        before = found.setdefault(place, [])
        found[place] = None if before is None or words is None else [*before, *words]
    return found


def kept_numbers(tested: Sequence[Phrase], groups: Sequence[str]) -> dict[str, float]:
    """Return the numbers of the associations among `tested` phrases: how many, of each group too, and their means.

    `with_q` is the number of those whose q is at most .05. The means are NaN if there are no associations.
    """
    kept = associations(tested, groups)
    n, mean_score, mean_p = summarized(kept)
    return {
        "associations": n,
        "with_q": sum(found.phrase.q <= LEVEL for found in kept),
        "mean_score": mean_score,
        "mean_p": mean_p,
        **{f"associations_{group}": sum(found.identity == group for found in kept) for group in groups},
    }


def why_undefined(groups: Sequence[str], counts: Sequence[Counts], tested: Sequence[Phrase]) -> str | None:
    """Return why associations of these counts would say nothing; None where they say something."""
    if len(groups) < 2:
        return f"only {groups[0]} is told of: two identities are compared"
    if all(phrase.undefined is not None for phrase in tested):
        return "no phrase can be tested: there are none, or each is told of everybody"
    if not any(_could_associate(found) for found in counts):
        return "too few stories: not even a phrase told of one identity in all and of no other could be associated"
    return None


def _could_associate(counts: Counts) -> bool:
    """Return whether the largest possible difference reaches the level; only then do 0 associations mean anything."""
    from equivox.metrics.badf.contingency import association_test

    rng = np.random.default_rng(0)
    n = counts.documents
    return all(n) and any(
        association_test([[k * (i == j), k * (i != j)] for j, k in enumerate(n)], n_resamples=1, rng=rng).p <= LEVEL
        for i in range(len(n))
    )


METRIC = ColumnMetric(
    name="concept_associations",
    measure=measure,
    required={"identities": "text", "phrases": "texts"},
    optional={"names": "text", "categories": "text", "stories": "text"},
    description=(
        "BADF: phrases that stories tell more often of one identity than of another, tested per category of places, "
        "with the number that chance gives and q over everything tested."
    ),
    citation="arXiv:2508.01412",
)
