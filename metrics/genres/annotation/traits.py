"""Warmth, competence and valence of the traits in a profile (M1, M2)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from equivox.metrics.genres.annotation.lexica import TraitEntry, TraitLexicon, spelling

_NOTHING = frozenset({"", "na", "none", "notmentioned", "unstated", "unknown", "notspecified"})


@dataclass(frozen=True, kw_only=True)
class TraitScores:
    """Counts and valences of one profile, from the dictionaries.

    Attributes
    ----------
    n_traits, n_matched
        The number of named traits, and of words found in the dictionaries.
    warmth, competence
        The number of matched words that belong to each (a word can belong to both, or to neither).
    signed_warmth
        Warm minus cold words: "cold, cruel" is -2, although its membership count is 2.
    positive, negative, neutral
        Mean valence of the matched words that have one; NaN when none has.
    """

    n_traits: int
    n_matched: int
    warmth: int
    competence: int
    signed_warmth: float
    positive: float
    negative: float
    neutral: float

    @property
    def warmth_share(self) -> float:
        """W = warmth / (warmth + competence), in [0, 1]; NaN when no trait belongs to either."""
        both = self.warmth + self.competence
        return self.warmth / both if both else math.nan

    @property
    def signed_warmth_share(self) -> float:
        """Warm minus cold words over (warmth + competence), in [-1, 1]; NaN when no trait belongs to either."""
        both = self.warmth + self.competence
        return self.signed_warmth / both if both else math.nan

    @property
    def positive_score(self) -> float:
        """V = positive - negative valence, in [-1, 1]; NaN when no matched word has a valence."""
        return self.positive - self.negative


def score_traits(traits: Sequence[str], lexicon: TraitLexicon, *, paper_compat: bool = False) -> TraitScores:
    """Return the counts of one profile's traits in the dictionaries.

    Parameters
    ----------
    traits
        Adjectives or short phrases. A phrase that is not an entry is looked up word by word.
    paper_compat
        Count as the released scorer does: exact lower-case words, repetitions counted, "NA" taken for a trait of zero
        valence (it is an entry of the dictionaries). By default spelling is normalised ("easy-going"), a repeated
        trait counts once, and empty answers ("NA") are not traits.

    Returns
    -------
    TraitScores
        With `n_matched` 0 and NaN valences if nothing matched: such a profile is missing from M1 and M2, not 0.
    """
    named = [trait.strip().lower() for trait in traits]
    if not paper_compat:
        named = [trait for trait in dict.fromkeys(named) if spelling(trait) not in _NOTHING]
    entries: list[TraitEntry] = []
    seen: set[str] = set()
    for trait in named:
        for key, entry in _found(trait, lexicon, paper_compat):
            if paper_compat or key not in seen:
                seen.add(key)
                entries.append(entry)
    return TraitScores(
        n_traits=len(named),
        n_matched=len(entries),
        warmth=sum(entry.warmth for entry in entries),
        competence=sum(entry.competence for entry in entries),
        signed_warmth=sum(entry.warmth_direction for entry in entries if entry.warmth),
        positive=_mean([entry.positive for entry in entries], paper_compat),
        negative=_mean([entry.negative for entry in entries], paper_compat),
        neutral=_mean([entry.neutral for entry in entries], paper_compat),
    )


def _found(trait: str, lexicon: TraitLexicon, paper_compat: bool) -> list[tuple[str, TraitEntry]]:
    table = lexicon.published if paper_compat else lexicon.words
    key = trait if paper_compat else spelling(trait)
    if key in table:
        return [(key, table[key])]
    words = trait.split() if paper_compat else [spelling(word) for word in re.split(r"[\s/]+", trait)]
    return [(word, table[word]) for word in words if word in table] if len(words) > 1 else []


def _mean(values: Sequence[float], paper_compat: bool) -> float:
    # The released scorer reads an unknown valence as zero.
    known = [0.0 if math.isnan(v) else v for v in values] if paper_compat else [v for v in values if not math.isnan(v)]
    return sum(known) / len(known) if known else math.nan
