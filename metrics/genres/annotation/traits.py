"""Warmth, competence and valence of the traits in a profile (M1, M2)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from equivox.metrics.genres.annotation.lexica import TraitEntry, TraitLexicon, spelling

_NOTHING = frozenset({"", "na", "none", "notmentioned", "unstated", "unknown", "notspecified"})


def score_traits(traits: Sequence[str], lexicon: TraitLexicon, *, paper_compat: bool = False) -> dict[str, float]:
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
    n_traits, n_matched
        The number of named traits, and of words found in the dictionaries.
    warmth, competence
        The number of matched words that belong to each (a word can belong to both, or to neither).
    signed_warmth
        Warm minus cold words: "cold, cruel" is -2, although its membership count is 2.
    positive, negative, neutral
        Mean valence of the matched words that have one; NaN when none has: such a profile is missing from M2, not 0.
    warmth_share, signed_warmth_share
        W = warmth / (warmth + competence), in [0, 1], and the same of signed warmth, in [-1, 1]; NaN when no trait
        belongs to either: such a profile is missing from M1, not 0.
    positive_score
        V = positive - negative valence, in [-1, 1].
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
    warmth, competence = sum(entry.warmth for entry in entries), sum(entry.competence for entry in entries)
    signed = sum(entry.warmth_direction for entry in entries if entry.warmth)
    both = warmth + competence
    positive, negative, neutral = (
        _mean([getattr(entry, kind) for entry in entries], paper_compat) for kind in ("positive", "negative", "neutral")
    )
    return {
        "n_traits": len(named),
        "n_matched": len(entries),
        "warmth": warmth,
        "competence": competence,
        "signed_warmth": signed,
        "positive": positive,
        "negative": negative,
        "neutral": neutral,
        "warmth_share": warmth / both if both else math.nan,
        "signed_warmth_share": signed / both if both else math.nan,
        "positive_score": positive - negative,
    }


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
