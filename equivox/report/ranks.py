"""Ranks in words: their order, their intervals, and which models are told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from equivox.compare.ranking import Rank
from equivox.core.text import how_many
from equivox.report.verdicts import listed

MOST_SETS = 3
"""Up to this many sets of models that are not told apart are listed; of more, the pairs told apart are counted."""


def rank_interval(rank: Rank) -> str:
    """Format the rank interval."""
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


def in_order(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the ranks of one task and metric in order, models without a rank last."""
    return sorted(ranks, key=lambda rank: (rank.rank or len(ranks) + 1, rank.model))


def told_apart(ranks: Sequence[Rank]) -> str:
    """Return a sentence about the models of one task and metric that cannot be told apart."""
    ranked = [rank for rank in in_order(ranks) if rank.undefined is None]
    if len(ranked) < 2:
        return "There are not two models with a rank."
    every = {letter for rank in ranked for letter in _split(rank.letters)}
    letters = sorted(every, key=lambda letter: (int(letter[1:] or 1), letter))
    sets = [[s.model for s in ranked if letter in _split(s.letters)] for letter in letters]
    left = _untested_in_words(ranked)
    if all(len(s.untested) == len(ranked) - 1 for s in ranked):
        return "None of these models was tested with another: which is nearer is open."
    if ranked[0].too_few:
        return f"No two of these models could have been told apart, however they differ: {ranked[0].too_few}.{left}"
    if len(sets) == 1:
        return (
            f"No test tells two of these models apart.{left}" if left else "No two of these models can be told apart."
        )
    alike = [listed(members, most=len(members)) for members in sets if len(members) > 1]
    if not alike:
        return "All of these models can be told apart."
    if len(alike) > MOST_SETS:
        pairs = list(combinations(ranked, 2))
        apart = sum(set(_split(one.letters)).isdisjoint(_split(other.letters)) for one, other in pairs)
        which = "those without a common letter in the table of ranks"
        return f"{apart} of {how_many(len(pairs), 'pair')} are told apart: {which}.{left}"
    return f"{'Not' if left else 'Cannot be'} told apart: {'; '.join(alike)}.{left}"


def _untested_in_words(ranked: Sequence[Rank]) -> str:
    """Return a sentence about the pairs without a test."""
    order = [rank.model for rank in ranked]
    pairs = [
        f"{rank.model} with {listed(later, most=len(later))}"
        for place, rank in enumerate(ranked)
        if (later := [model for model in order[place + 1 :] if model in rank.untested])
    ]
    return f" Not tested, and therefore open: {'; '.join(pairs)}." if pairs else ""


def _split(letters: str) -> list[str]:
    """Split letters such as "ab2" into a and b2."""
    return re.findall(r"\D\d*", letters)
