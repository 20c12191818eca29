"""Associations: the phrases that stories tell more often of one identity, by kind of place.

A document holds the phrases of one story about one character. Within a category of places, a phrase's documents are
counted per identity, tested and scored; all results are pure functions of the documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from equivox.core.lazy import NDArray, np
from equivox.core.scores import NAN
from equivox.metrics.badf.documents import Documents
from equivox.metrics.lazy import statistics

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
        `p_exact` after Benjamini-Hochberg over everything tested; NaN until `with_q`.
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
    table = np.bincount(codes * k + identity[rows], minlength=len(names) * k).reshape(len(names), k)
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
    members = np.bincount(stratum * k + identity, minlength=n_strata * k).reshape(n_strata, k)
    pairs, place = np.unique(codes * n_strata + stratum[rows], return_inverse=True)
    have = np.bincount(place * k + identity[rows], minlength=len(pairs) * k).reshape(len(pairs), k)
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


def phrase_tests(counts: Counts, *, n_resamples: int = 10_000, seed: int = 0) -> list[Phrase]:
    """Return the test of every phrase of a category; the same seed gives the same permutation p.

    A phrase in every document, or in a category in which an identity has no stories, has no test: its p is NaN with the
    reason, and it is in no family of tests. For a single identity the list is empty. If stories have several
    characters, a phrase that is told of all or of none of the characters of every story has the p_exact 1.
    """
    if len(counts.identities) < 2:
        return []
    known: dict[tuple[tuple[int, ...], tuple[Stories, ...] | None], statistics.Association] = {}
    phrases = []
    for phrase, found in counts.with_phrase.items():
        stories = None if counts.within is None else counts.within[phrase]
        tested = known.get((found, stories))
        if tested is None:
            rng = np.random.default_rng([seed, *found, *counts.documents])
            tested = _tested(found, counts.documents, stories, n_resamples, rng)
            known[found, stories] = tested
        phrases.append(
            Phrase(
                category=counts.category,
                phrase=phrase,
                counts=found,
                documents=counts.documents,
                scores=statistics.association_scores(found, counts.tokens),
                p=tested.p,
                p_exact=tested.p_exact,
                method=tested.method,
                sparse=tested.sparse,
                v=tested.v,
                undefined=_undefined(tested, counts, found),
            )
        )
    return phrases


def _tested(
    found: tuple[int, ...],
    documents: tuple[int, ...],
    stories: tuple[Stories, ...] | None,
    n_resamples: int,
    rng: np.random.Generator,
) -> statistics.Association:
    """Return the test of one phrase; `stories` None takes documents as independent."""
    table = [[have, n - have] for have, n in zip(found, documents, strict=True)]
    if stories is None:
        exact = exact_p(found, documents)
        tested = statistics.association_test(table, n_resamples=n_resamples if exact is None else 1, rng=rng)
        if tested.method == "permutation" and exact is not None:
            # A permutation p is at least 1 / draws, too large after correction for thousands of tests.
            tested = replace(tested, p_exact=exact, method="exact")
        return tested
    tested = statistics.association_test(table, n_resamples=1, rng=rng)
    if tested.undefined is not None:
        return tested
    if not stories:
        return replace(tested, p_exact=1.0, method="within stories, exact")
    have, of, times = zip(*stories, strict=True)
    within = statistics.association_within_strata(have, of, times=times, n_resamples=n_resamples, rng=rng)
    return replace(tested, p_exact=within.p, method=f"within stories, {within.method}")


_MOST_TABLES = 300_000

BLOCK_CELLS = 2**19
"""Counts in memory at a time when many permutations are tallied together."""


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


def _undefined(tested: statistics.Association, counts: Counts, found: Sequence[int]) -> str | None:
    if tested.undefined is None:
        return None
    silent = [name for name, n in zip(counts.identities, counts.documents, strict=True) if not n]
    if silent:
        return f"no story of {', '.join(silent)} in this category"
    return "every story has it" if sum(found) == sum(counts.documents) else tested.undefined


def with_q(phrases: Sequence[Phrase]) -> list[Phrase]:
    """Return the phrases with q over all that have a test."""
    q = statistics.adjust([phrase.p_exact for phrase in phrases])
    return [replace(phrase, q=own) for phrase, own in zip(phrases, q, strict=True)]


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


def chi2(counts: NDArray[np.int64], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return χ² of many phrases at once: `counts` (identities × phrases), `documents` (identities).

    With Yates' correction for two identities, as published; NaN if every document has the phrase, or none.
    """
    n, total = documents.sum(), counts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = documents[:, None] * total[None, :] / n
        off = np.abs(counts - expected)
        if len(documents) == 2:
            off = off - np.minimum(0.5, off)
        found = (off**2 / expected + off**2 / (documents[:, None] - expected)).sum(axis=0)
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class Tally:
    """Counts under one permutation of identities: associations by the published rule, and the sum of χ²."""

    n: int
    chi2: float

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n + other.n, self.chi2 + other.chi2)


def tally(counts: NDArray[np.int64], documents: NDArray[np.int64]) -> Tally:
    """Return the tally of `counts` (identities × phrases); zero if an identity has no documents."""
    if not counts.shape[1] or (documents == 0).any():
        return Tally(0, 0.0)
    kept, found = _kept(counts, documents)
    return Tally(int(kept.sum()), float(found.sum()))


def _kept(counts: NDArray[np.int64], documents: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the mask of associations by the published rule (identities × phrases), and χ² of each phrase."""
    from scipy.special import chdtri

    least = counts[::-1] if len(counts) == 2 else counts.min(axis=0, keepdims=True)
    found = np.nan_to_num(chi2(counts, documents), nan=0.0)
    significant = found >= chdtri(len(documents) - 1, LEVEL)
    return (counts > least) & significant[None, :], found


def _tallies(
    counts: NDArray[np.int32], expected: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the tallies of many permutations at once: `counts` is identities × phrases × permutations."""
    from scipy.special import chdtri

    off = np.abs(counts - expected[:, :, None])
    if len(counts) == 2:
        off -= np.minimum(0.5, off)
    found = np.einsum("ipb,ip->pb", off**2, weight)
    least = counts[::-1] if len(counts) == 2 else counts.min(axis=0, keepdims=True)
    kept = (counts > least) & (found >= chdtri(len(counts) - 1, LEVEL))[None]
    return kept.sum(axis=(0, 1)), found.sum(axis=0)


def kept_by_chance(total: int, documents: Sequence[int], *, n_resamples: int, seed: int) -> float:
    """Return how many associations the published rule keeps on average of a phrase that says nothing of identity.

    The phrase is in `total` of all documents, and every choice of them is equally likely. Exact for two identities;
    for more, the mean of `n_resamples` draws. Zero where an identity has no documents.

    In five of ten documents, all of one identity in 2 of 252 ways; no other way is significant:

    >>> round(kept_by_chance(5, [5, 5], n_resamples=1, seed=0) * 252, 9)
    2.0
    """
    from scipy.stats import hypergeom

    of = np.asarray(documents, dtype=np.int64)
    if (of == 0).any():
        return 0.0
    if len(of) == 2:
        first = np.arange(max(0, total - of[1]), min(total, of[0]) + 1)
        kept, _ = _kept(np.stack([first, total - first]), of)
        return float((kept.sum(axis=0) * hypergeom.pmf(first, of.sum(), of[0], total)).sum())
    rng = np.random.default_rng([seed, total, *documents])
    kept, _ = _kept(rng.multivariate_hypergeometric(of, total, size=n_resamples).T, of)
    return float(kept.sum()) / n_resamples


@dataclass(frozen=True, kw_only=True, eq=False)
class Null:
    """What permutations of identities over stories and over descriptors say of the number of associations.

    p-values compare the sum of χ² over all phrases, which, unlike the count, still grows when most phrases pass.

    Attributes
    ----------
    observed
        The tally of the stories as they are.
    expected
        The mean count by chance if stories are exchangeable; NaN if no permutation over stories was drawn.
    p_stories
        The p-value of permutations over stories, for these descriptors; NaN if none were drawn.
    p_descriptors
        The p-value of permutations over descriptors, for the identities; NaN if there is only one.
    least_descriptors
        The smallest p that permutations over descriptors can give, and the number of distinct ones.
    p_few
        The p-value over descriptors by `equivox.statistics.few_clusters_p`; NaN where permutations can give a p of .05,
        or where it cannot be computed either.
    """

    observed: Tally
    expected: float
    p_stories: float
    p_descriptors: float
    least_descriptors: statistics.LeastP
    p_few: float

    @property
    def p_names_least(self) -> float:
        """The smallest value that `p_names` can have; NaN if it supposes a distribution instead of permutations."""
        return self.least_descriptors.p if math.isnan(self.p_few) else NAN

    @property
    def p_names(self) -> float:
        """The p-value that decides over descriptors.

        Where permutations are too few for a p of .05, it is `p_few`, unless another permutation is further out.
        """
        if math.isnan(self.p_few):
            return self.p_descriptors
        furthest = self.p_descriptors <= self.least_descriptors.p * (1 + 1e-9)
        return self.p_few if furthest else max(self.p_few, self.p_descriptors)


def null_counts(
    documents: Documents,
    identities: Sequence[str],
    *,
    n_stories: int,
    n_descriptors: int,
    seed: int,
) -> Null:
    """Return the counts of associations under permutations of identities.

    Over stories: the characters of one story exchange identities; single characters exchange within their category.
    Over descriptors: descriptors of one stratum exchange identities in all their stories. All permutations are
    enumerated if there are no more than `n_descriptors`; with few descriptors there are few, and p cannot be small.
    """
    from equivox.statistics.permutation import all_labellings, random_labellings

    rng = np.random.default_rng([seed, 14])
    blocks = [block for block in _blocks(documents, identities) if block.n_phrases]
    none = Tally(0, 0.0)
    observed = sum((block.tally(block.identity) for block in blocks), none)
    n_by_chance, stories = np.zeros(n_stories, dtype=np.int64), np.zeros(n_stories)
    for block in blocks:
        found, chi2s = block.permutations(n_stories, rng)
        n_by_chance, stories = n_by_chance + found, stories + chi2s
    units, identity, stratum, sizes = _descriptors(documents, identities)
    least = statistics.least_p(sizes, n_resamples=max(1, n_descriptors))
    every = least.n_permutations <= n_descriptors
    drawn = []
    if n_descriptors and least.n_permutations > 1:
        labels = all_labellings(sizes) if every else random_labellings(sizes, n_descriptors, rng)
        for row in labels.astype(np.int64):
            permuted = np.zeros(len(documents.descriptor.names), dtype=np.int64)
            permuted[units] = row
            drawn.append(sum((block.of_descriptors(permuted) for block in blocks), none).chi2)
    return Null(
        observed=observed,
        expected=float(n_by_chance.mean()) if n_stories else NAN,
        p_stories=_p(stories, observed, every=False),
        p_descriptors=_p(np.array(drawn), observed, every=every),
        least_descriptors=least,
        p_few=statistics.few_clusters_p(_shares(blocks, units), identity, stratum) if least.too_few else NAN,
    )


def _p(null: NDArray[np.float64], observed: Tally, *, every: bool) -> float:
    if not len(null):
        return NAN
    # Permutations that only rename the identities give the same sum, up to rounding.
    as_far = int((null >= observed.chi2 * (1 - 1e-9)).sum())
    return as_far / len(null) if every else (1 + as_far) / (1 + len(null))


def _shares(blocks: Sequence[_Block], units: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each descriptor's documents with each phrase, in standard deviations of one document."""
    found = [np.empty((len(units), 0))]
    for block in blocks:
        counts, documents = (own[units] for own in block.by_descriptor)
        mean = counts.sum(axis=0) / max(1, documents.sum())
        varies = (mean > 0) & (mean < 1)
        if documents.all():
            own = counts[:, varies] / documents[:, None]
            found.append(own / np.sqrt(mean * (1 - mean))[varies])
    return np.concatenate(found, axis=1)


def _descriptors(
    documents: Documents, identities: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the descriptors in the order of their strata, the identity and the stratum of each, and strata's sizes.

    The sizes are how many descriptors of each identity each stratum has.
    """
    place = np.array([identities.index(name) for name in documents.identity.names], dtype=np.int64)
    codes = (documents.stratum.codes, documents.descriptor.codes, place[documents.identity.codes])
    found = np.unique(np.stack(codes), axis=1)
    # A descriptor with two identities keeps the last, as in a loop over documents.
    last = np.append((found[:2, 1:] != found[:2, :-1]).any(axis=0), True)
    stratum, descriptor, identity = found[:, last]
    _, code = np.unique(stratum, return_inverse=True)
    flat = np.bincount(code * len(identities) + identity, minlength=(int(code.max()) + 1) * len(identities))
    return descriptor, identity, code.astype(np.int64), flat.astype(np.int64).reshape(-1, len(identities))


@dataclass(frozen=True, eq=False)
class _Block:
    """The documents of one category: their phrases, identities, stories and descriptors."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    n_phrases: int
    identity: NDArray[np.int64]
    strata: NDArray[np.int64] | None
    descriptor: NDArray[np.int64]
    n_descriptors: int
    n_identities: int

    def tally(self, identity: NDArray[np.int64]) -> Tally:
        """Return the tally of phrases if document i has the identity `identity[i]`."""
        flat = np.bincount(
            identity[self.rows] * self.n_phrases + self.codes, minlength=self.n_identities * self.n_phrases
        )
        documents = np.bincount(identity, minlength=self.n_identities)
        return tally(flat.reshape(self.n_identities, self.n_phrases), documents)

    @cached_property
    def by_descriptor(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of documents with each phrase by descriptor, and the number of documents of each descriptor."""
        flat = np.bincount(
            self.descriptor[self.rows] * self.n_phrases + self.codes, minlength=self.n_descriptors * self.n_phrases
        )
        return flat.reshape(self.n_descriptors, -1), np.bincount(self.descriptor, minlength=self.n_descriptors)

    def of_descriptors(self, identity: NDArray[np.int64]) -> Tally:
        """Return the tally of phrases if descriptor d has the identity `identity[d]`."""
        counts, documents = self.by_descriptor
        of = np.zeros((self.n_identities, self.n_descriptors), dtype=np.int64)
        of[identity, np.arange(self.n_descriptors)] = 1
        return tally(of @ counts, of @ documents)

    def permutations(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the number of associations and the sum of χ² under `n` permutations over stories."""
        from scipy import sparse

        documents = np.bincount(self.identity, minlength=self.n_identities)
        found, chi2s = np.zeros(n, dtype=np.int64), np.zeros(n)
        if not documents.all():
            return found, chi2s
        told = sparse.csr_array(
            (np.ones(len(self.codes), dtype=np.int32), (self.codes, self.rows)),
            shape=(self.n_phrases, len(self.identity)),
        )
        total: NDArray[np.int64] = np.asarray(told.sum(axis=1))
        expected = documents[:, None] * total / documents.sum()
        with np.errstate(divide="ignore"):
            weight = 1 / expected + 1 / (documents[:, None] - expected)
        weight[~np.isfinite(weight)] = 0.0  # every document has the phrase
        step = max(1, BLOCK_CELLS // max(len(self.identity), self.n_phrases))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            labels = self._labels(part.stop - start, rng)
            counts = np.empty((self.n_identities, self.n_phrases, labels.shape[1]), dtype=np.int32)
            for identity in range(self.n_identities - 1):
                counts[identity] = told @ (labels == identity).astype(np.int32)
            counts[-1] = total[:, None] - counts[:-1].sum(axis=0)
            found[part], chi2s[part] = _tallies(counts, expected, weight)
        return found, chi2s

    def _labels(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw `n` permutations of the identities within strata, documents × permutations."""
        if self.strata is not None and (np.bincount(self.strata) == 2).all():
            pairs = np.argsort(self.strata, kind="stable").reshape(-1, 2)
            one, other = self.identity[pairs].T
            swap = rng.integers(0, 2, size=(len(pairs), n), dtype=np.int8) == 1
            labels = np.empty((len(self.identity), n), dtype=np.int64)
            labels[pairs[:, 0]] = np.where(swap, other[:, None], one[:, None])
            labels[pairs[:, 1]] = np.where(swap, one[:, None], other[:, None])
            return labels
        strata = np.zeros_like(self.identity) if self.strata is None else self.strata
        # Sorting by stratum and a random number permutes the identities within each stratum.
        order = np.argsort(strata[:, None] + rng.random((len(strata), n)), axis=0)
        labels = np.empty((len(strata), n), dtype=np.int64)
        labels[np.argsort(strata, kind="stable")] = self.identity[order]
        return labels


def _blocks(documents: Documents, identities: Sequence[str]) -> list[_Block]:
    _, first = np.unique(documents.category.codes, return_index=True)
    blocks = []
    for place in np.sort(first):
        own = documents.in_category(documents.category.names[documents.category.codes[place]])
        rows, codes, names = own.told
        blocks.append(
            _Block(
                rows=rows,
                codes=codes,
                n_phrases=len(names),
                identity=own.identity_codes(identities),
                strata=story_strata(own.story),
                descriptor=own.descriptor.codes,
                n_descriptors=len(own.descriptor.names),
                n_identities=len(identities),
            )
        )
    return blocks
