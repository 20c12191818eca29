"""Associations by chance: how many the published rule keeps when identities are permuted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from equivox.core.columns import cross_count
from equivox.core.lazy import NDArray, np
from equivox.core.scores import NAN
from equivox.metrics.badf.associations import LEVEL, story_strata
from equivox.metrics.badf.documents import Documents
from equivox.metrics.scoring import statistics

BLOCK_CELLS = 2**19
"""Counts in memory at a time when many permutations are tallied together."""


def by_the_rule(
    counts: NDArray[np.integer[Any]], documents: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which phrases the published rule associates with whom, and χ² of each phrase, under many permutations.

    `counts` is identities × phrases × permutations, where a permutation changes no phrase's number of documents; the
    first result has this shape, χ² that of phrases × permutations. It has Yates' correction for two identities, as
    published, and is 0 if every document has the phrase, or none. `documents` counts those of each identity.
    """
    from scipy.special import chdtri

    total = counts[:, :, 0].sum(axis=0)
    expected = documents[:, None] * total / documents.sum()
    with np.errstate(divide="ignore"):
        weight = 1 / expected + 1 / (documents[:, None] - expected)
    weight[~np.isfinite(weight)] = 0.0  # every document has the phrase, or none
    off = np.abs(counts - expected[:, :, None])
    if len(counts) == 2:
        off -= np.minimum(0.5, off)
    found = np.einsum("ipb,ip->pb", off**2, weight)
    least = counts[::-1] if len(counts) == 2 else counts.min(axis=0, keepdims=True)
    return (counts > least) & (found >= chdtri(len(documents) - 1, LEVEL))[None], found


def tally(counts: NDArray[np.integer[Any]], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of associations and the sum of χ², 2 × permutations; zeros if an identity has no documents."""
    if not counts.shape[1] or (documents == 0).any():
        return np.zeros((2, counts.shape[2]))
    kept, found = by_the_rule(counts, documents)
    return np.stack([kept.sum(axis=(0, 1)), found.sum(axis=0)])


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
        kept, _ = tally(np.stack([first, total - first])[:, None], of)
        return float((kept * hypergeom.pmf(first, of.sum(), of[0], total)).sum())
    rng = np.random.default_rng([seed, total, *documents])
    kept, _ = tally(rng.multivariate_hypergeometric(of, total, size=n_resamples).T[:, None], of)
    return float(kept.sum()) / n_resamples


@dataclass(frozen=True, kw_only=True, eq=False)
class Null:
    """What permutations of identities over stories and over descriptors say of the number of associations.

    p-values compare the sum of χ² over all phrases, which, unlike the count, still grows when most phrases pass.

    Attributes
    ----------
    observed
        The number of associations in the stories as they are.
    expected
        The mean count by chance if stories are exchangeable; NaN if no permutation over stories was drawn.
    p_stories
        The p-value of permutations over stories, for these descriptors; NaN if none were drawn.
    p_descriptors
        The p-value of permutations over descriptors, for the identities; NaN if there is only one.
    least_descriptors
        The smallest p that permutations over descriptors can give, and the number of distinct ones.
    p_few
        The p-value over descriptors by `few_clusters_p`; NaN where permutations can give a p of .05,
        or where it cannot be computed either.
    """

    observed: int
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
    from equivox.metrics.badf.few_names import few_clusters_p
    from equivox.statistics.permutation import all_labellings, random_labellings

    rng = np.random.default_rng([seed, 14])
    blocks = [block for block in _blocks(documents, identities) if block.n_phrases]
    observed, chi2 = sum((block.tally() for block in blocks), np.zeros((2, 1)))[:, 0]
    n_by_chance, stories = sum((block.permutations(n_stories, rng) for block in blocks), np.zeros((2, n_stories)))
    units, identity, stratum, sizes = _descriptors(documents, identities)
    least = statistics.compute_least_p(sizes, n_resamples=max(1, n_descriptors))
    every = least.n_permutations <= n_descriptors
    drawn = []
    if n_descriptors and least.n_permutations > 1:
        labels = all_labellings(sizes) if every else random_labellings(sizes, n_descriptors, rng)
        for row in labels.astype(np.int64):
            permuted = np.zeros(len(documents.descriptor.names), dtype=np.int64)
            permuted[units] = row
            drawn.append(sum(block.of_descriptors(permuted)[1, 0] for block in blocks))
    return Null(
        observed=int(observed),
        expected=float(n_by_chance.mean()) if n_stories else NAN,
        p_stories=_p(stories, chi2, every=False),
        p_descriptors=_p(np.array(drawn), chi2, every=every),
        least_descriptors=least,
        p_few=few_clusters_p(_shares(blocks, units), identity, stratum) if least.too_few else NAN,
    )


def _p(null: NDArray[np.float64], observed: float, *, every: bool) -> float:
    if not len(null):
        return NAN
    # Permutations that only rename the identities give the same sum, up to rounding.
    as_far = int((null >= observed * (1 - 1e-9)).sum())
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
    codes = (documents.stratum.codes, documents.descriptor.codes, documents.identity_codes(identities))
    found = np.unique(np.stack(codes), axis=1)
    # A descriptor with two identities keeps the last, as in a loop over documents.
    last = np.append((found[:2, 1:] != found[:2, :-1]).any(axis=0), True)
    stratum, descriptor, identity = found[:, last]
    _, code = np.unique(stratum, return_inverse=True)
    sizes = cross_count(code, identity, (int(code.max()) + 1, len(identities)))
    return descriptor, identity, code.astype(np.int64), sizes


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

    @cached_property
    def documents(self) -> NDArray[np.int64]:
        """The number of documents of each identity."""
        return np.bincount(self.identity, minlength=self.n_identities)

    def tally(self) -> NDArray[np.float64]:
        """Return the tally of phrases of the documents as they are."""
        counts = cross_count(self.identity[self.rows], self.codes, (self.n_identities, self.n_phrases))
        return tally(counts[:, :, None], self.documents)

    @cached_property
    def by_descriptor(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of documents with each phrase by descriptor, and the number of documents of each descriptor."""
        counts = cross_count(self.descriptor[self.rows], self.codes, (self.n_descriptors, self.n_phrases))
        return counts, np.bincount(self.descriptor, minlength=self.n_descriptors)

    def of_descriptors(self, identity: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the tally of phrases if descriptor d has the identity `identity[d]`."""
        counts, documents = self.by_descriptor
        of = np.zeros((self.n_identities, self.n_descriptors), dtype=np.int64)
        of[identity, np.arange(self.n_descriptors)] = 1
        return tally((of @ counts)[:, :, None], of @ documents)

    def permutations(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the tallies under `n` permutations over stories."""
        from scipy import sparse

        found = np.zeros((2, n))
        if not self.documents.all():
            return found
        told = sparse.csr_array(
            (np.ones(len(self.codes), dtype=np.int32), (self.codes, self.rows)),
            shape=(self.n_phrases, len(self.identity)),
        )
        total: NDArray[np.int64] = np.asarray(told.sum(axis=1))
        step = max(1, BLOCK_CELLS // max(len(self.identity), self.n_phrases))
        for start in range(0, n, step):
            part = slice(start, min(n, start + step))
            labels = self._labels(part.stop - start, rng)
            counts = np.empty((self.n_identities, self.n_phrases, labels.shape[1]), dtype=np.int32)
            for identity in range(self.n_identities - 1):
                counts[identity] = told @ (labels == identity).astype(np.int32)
            counts[-1] = total[:, None] - counts[:-1].sum(axis=0)
            found[:, part] = tally(counts, self.documents)
        return found

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
