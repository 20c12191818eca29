"""Associations: the phrases that stories tell more often of one identity, by kind of place.

A document holds the phrases of one story about one character. Within a category of places, a phrase's documents are
counted per identity, tested and scored; all results are pure functions of the documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equivox.core.columns import cross_count
from equivox.core.lazy import NDArray, np
from equivox.core.scores import NAN
from equivox.metrics.badf.documents import Documents
from equivox.metrics.scoring import statistics

if TYPE_CHECKING:
    from equivox.metrics.badf.contingency import TableTest

LEVEL = 0.05
"""The level of the published p and of q."""

Stories = tuple[tuple[int, ...], tuple[int, ...], int]
"""Stories that are alike: characters of each identity with a phrase, all characters of each, and how many stories."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of one category of places: documents and phrase tokens of each identity, and each phrase's documents.

    `with_phrase[phrase][i]` counts the documents of identity i with the phrase; `tokens[i]` counts all phrases of
    identity i, including repeats. `within[phrase]` holds the stories that can show a difference, alike ones together;
    it is None if every document is a story of its own, or if the stories are not known.
    """

    category: str
    identities: tuple[str, ...]
    documents: tuple[int, ...]
    tokens: tuple[int, ...]
    with_phrase: Mapping[str, tuple[int, ...]]
    within: Mapping[str, tuple[Stories, ...]] | None = None


@dataclass(frozen=True, kw_only=True)
class Phrase:
    """One tested phrase of one category.

    Attributes
    ----------
    scores
        BADF's score per identity; zero means that the other identity (the one with the least) has it as often.
    p
        The published p: χ² over stories, not corrected for the number of phrases. NaN if `undefined` gives a reason.
    p_exact
        The p that q is computed from; `method` names it. If stories have several characters, identities are permuted
        within each story. Otherwise it is Fisher's, or another exact or permutation p, if counts are small (`sparse`),
        else `p`.
    q
        `p_exact` after Benjamini-Hochberg over everything tested; NaN before.
    v
        Bias-corrected Cramér's V, 0 to 1.
    """

    category: str
    phrase: str
    counts: tuple[int, ...]
    documents: tuple[int, ...]
    scores: tuple[float, ...]
    p: float
    p_exact: float
    method: str
    sparse: bool
    v: float
    undefined: str | None
    q: float = NAN

    def residual(self, place: int) -> float:
        """Return the adjusted standardized residual of an identity against all others together.

        Zero means as often as the rest, above 2 clearly more; NaN if a phrase is told of everybody or nobody.
        """
        n, total = sum(self.documents), sum(self.counts)
        expected = self.documents[place] * total / n if n else 0.0
        spread = expected * (1 - self.documents[place] / n) * (1 - total / n) if n else 0.0
        return (self.counts[place] - expected) / math.sqrt(spread) if spread > 0 else NAN


@dataclass(frozen=True, kw_only=True)
class Association:
    """A phrase that is told more often of an identity, by the published rule: score above 0 and p up to .05."""

    identity: str
    place: int
    phrase: Phrase

    @property
    def score(self) -> float:
        """BADF's score."""
        return self.phrase.scores[self.place]


def count(documents: Documents, category: str, identities: Sequence[str]) -> Counts:
    """Count the documents of one category; an identity without documents has zero."""
    own = documents.in_category(category)
    k, identity = len(identities), own.identity_codes(identities)
    rows, codes, names = own.told
    table = cross_count(codes, identity[rows], (len(names), k))
    return Counts(
        category=category,
        identities=tuple(identities),
        documents=tuple(np.bincount(identity, minlength=k).tolist()),
        tokens=tuple(np.bincount(identity[own.unified.rows], minlength=k).tolist()),
        with_phrase={name: tuple(found) for name, found in zip(names, table.tolist(), strict=True)},
        within=_within(own, identity, k),
    )


def _within(own: Documents, identity: NDArray[np.int64], k: int) -> dict[str, tuple[Stories, ...]] | None:
    """Return, for each phrase, the stories with some but not all of their characters; None without such stories.

    Characters that are alone in their story are one stratum of the category.
    """
    stratum = story_strata(own.story)
    if stratum is None:
        return None
    rows, codes, names = own.told
    n_strata = int(stratum.max()) + 1
    members = cross_count(stratum, identity, (n_strata, k))
    pairs, place = np.unique(codes * n_strata + stratum[rows], return_inverse=True)
    have = cross_count(place, identity[rows], (len(pairs), k))
    of = members[pairs % n_strata]
    some = have.sum(axis=1) < of.sum(axis=1)
    alike, times = np.unique(
        np.column_stack([pairs[some] // n_strata, have[some], of[some]]), axis=0, return_counts=True
    )
    found: dict[str, list[Stories]] = {name: [] for name in names}
    for (code, *counts), n in zip(alike.tolist(), times.tolist(), strict=True):
        found[names[code]].append((tuple(counts[:k]), tuple(counts[k:]), n))
    return {name: tuple(stories) for name, stories in found.items()}


def story_strata(story: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the stratum of each document, within which identities are permuted; None if all stories have one document.

    A story with several characters is a stratum; all characters that are alone in their story are one more.
    """
    _, code, n = np.unique(story, return_inverse=True, return_counts=True)
    if not (n > 1).any():
        return None
    return np.unique(np.where(n[code] > 1, code + 1, 0), return_inverse=True)[1].astype(np.int64)


def phrase_tests(*categories: Counts, n_resamples: int = 10_000, seed: int = 0) -> list[Phrase]:
    """Return the test of every phrase of `categories`, with q over all; the same seed gives the same permutation p.

    A phrase in every document, or in a category in which an identity has no stories, has no test: its p is NaN with the
    reason, and it is in no family of tests. A single identity has no tests. If stories have several characters, a
    phrase that is told of all or of none of the characters of every story has the p_exact 1.
    """
    tested = [phrase for counts in categories for phrase in _tests_of(counts, n_resamples, seed)]
    q = statistics.adjust([phrase.p_exact for phrase in tested])
    return [replace(phrase, q=own) for phrase, own in zip(tested, q, strict=True)]


def _tests_of(counts: Counts, n_resamples: int, seed: int) -> Iterator[Phrase]:
    """Yield the test of every phrase of a category, without q."""
    from equivox.metrics.badf.contingency import association_scores

    if len(counts.identities) < 2:
        return
    known: dict[tuple[tuple[int, ...], tuple[Stories, ...] | None], TableTest] = {}
    for phrase, found in counts.with_phrase.items():
        stories = None if counts.within is None else counts.within[phrase]
        tested = known.get((found, stories))
        if tested is None:
            rng = np.random.default_rng([seed, *found, *counts.documents])
            tested = _tested(found, counts.documents, stories, n_resamples, rng)
            known[found, stories] = tested
        yield Phrase(
            category=counts.category,
            phrase=phrase,
            counts=found,
            documents=counts.documents,
            scores=association_scores(found, counts.tokens),
            p=tested.p,
            p_exact=tested.p_exact,
            method=tested.method,
            sparse=tested.sparse,
            v=tested.v,
            undefined=_undefined(tested, counts, found),
        )


def _tested(
    found: tuple[int, ...],
    documents: tuple[int, ...],
    stories: tuple[Stories, ...] | None,
    n_resamples: int,
    rng: np.random.Generator,
) -> TableTest:
    """Return the test of one phrase; `stories` None takes documents as independent."""
    from equivox.metrics.badf.contingency import association_test
    from equivox.metrics.badf.within_stories import association_within_strata

    table = [[have, n - have] for have, n in zip(found, documents, strict=True)]
    if stories is None:
        exact = exact_p(found, documents)
        tested = association_test(table, n_resamples=n_resamples if exact is None else 1, rng=rng)
        if tested.method == "permutation" and exact is not None:
            # A permutation p is at least 1 / draws, too large after correction for thousands of tests.
            tested = replace(tested, p_exact=exact, method="exact")
        return tested
    tested = association_test(table, n_resamples=1, rng=rng)
    if tested.undefined is not None:
        return tested
    if not stories:
        return replace(tested, p_exact=1.0, method="within stories, exact")
    have, of, times = zip(*stories, strict=True)
    within = association_within_strata(have, of, times=times, n_resamples=n_resamples, rng=rng)
    return replace(tested, p_exact=within.p, method=f"within stories, {within.method}")


_MOST_TABLES = 300_000


def exact_p(counts: Sequence[int], documents: Sequence[int]) -> float | None:
    """Return the probability, under the null, of counts at least as uneven: over all tables with these margins.

    Tables are ordered by χ² and weighted by the multivariate hypergeometric distribution (Freeman and Halton 1951, for
    two outcomes); None if there are too many tables, or only one.

    All three of three stories in one of three groups of four, 3 · 4 of 220 ways:

    >>> p = exact_p([3, 0, 0], [4, 4, 4])
    >>> p is not None and round(p * 220, 6)
    12.0
    """
    from scipy.special import gammaln

    n, k = np.asarray(documents), len(documents)
    total, rest = sum(counts), int(n.sum()) - sum(counts)
    if total > rest:  # the documents without the phrase are fewer, and deviate as much
        return exact_p([of - have for have, of in zip(counts, documents, strict=True)], documents)
    if not total or (n == 0).any() or (total + 1) ** (k - 1) > _MOST_TABLES:
        return None
    first = np.indices((total + 1,) * (k - 1)).reshape(k - 1, -1)
    left = total - first.sum(axis=0)
    tables = np.vstack([first, left])[:, left >= 0]
    tables = tables[:, (tables <= n[:, None]).all(axis=0)]

    def ways(of: NDArray[Any], chosen: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1), dtype=np.float64)

    weights = np.exp(ways(n[:, None], tables).sum(axis=0) - ways(n.sum(), np.asarray(total)))
    expected = total * n / n.sum()
    uneven = ((tables - expected[:, None]) ** 2 / n[:, None]).sum(axis=0)
    observed = float(((np.asarray(counts) - expected) ** 2 / n).sum())
    return min(1.0, float(weights[uneven >= observed * (1 - 1e-9)].sum()))


def _undefined(tested: TableTest, counts: Counts, found: Sequence[int]) -> str | None:
    if tested.undefined is None:
        return None
    silent = [name for name, n in zip(counts.identities, counts.documents, strict=True) if not n]
    if silent:
        return f"no story of {', '.join(silent)} in this category"
    return "every story has it" if sum(found) == sum(counts.documents) else tested.undefined


def associations(phrases: Sequence[Phrase], identities: Sequence[str]) -> list[Association]:
    """Return the associations by the published rule, score > 0 and p ≤ .05, in the order of the phrases."""
    return [
        Association(identity=identity, place=place, phrase=phrase)
        for phrase in phrases
        for place, identity in enumerate(identities)
        if phrase.p <= LEVEL and phrase.scores[place] > 0
    ]


def summary(scores: Sequence[float], ps: Sequence[float]) -> tuple[int, float, float]:
    """Return one cell of Table 14: the number of associations, their mean score and their mean p, NaN if there is none.

    >>> summary([0.002, 0.004], [0.01, 0.03]), summary([], [])
    ((2, 0.003, 0.02), (0, nan, nan))
    """
    n = len(scores)
    return n, math.fsum(scores) / n if n else NAN, math.fsum(ps) / n if n else NAN


def summarized(found: Sequence[Association]) -> tuple[int, float, float]:
    """Return the `summary` of associations."""
    return summary([own.score for own in found], [own.phrase.p for own in found])
