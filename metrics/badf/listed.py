"""BADF of a list of associations, such as the released files: their number, mean score and mean p per identity."""

from __future__ import annotations

from typing import Any

from equivox.core.columns import Column, ColumnMetric, groups_of, row_coverage
from equivox.core.errors import RequestError
from equivox.core.scores import NAN
from equivox.metrics.badf.associations import LEVEL, summary

_FACT = {"yes": True, "no": False}


def measure(
    *,
    identities: Column,
    scores: Column,
    p_values: Column,
    exclusive: Column = (),
    min_coverage: float = 0.8,
) -> dict[str, Any]:
    """Return Table 14 of a list: associations, mean score and mean p, of all and of each identity.

    A row is one phrase of one identity in one category of places, with its score and its published p. Rows with a
    score up to 0 or a p above .05 are no associations. `exclusive` is YES for a fact of the identity, which is dropped,
    and NO otherwise; a row without it is kept. A row without score or p counts against coverage. NaN, with the reason
    in `undefined`, when too few rows of an identity are usable; the means of no associations are NaN.

    A list says nothing of the phrases that were tested and not kept: what chance gives is not known, nor is q.
    """
    who = groups_of("identities", identities)
    usable = [score is not None and p is not None for score, p in zip(scores, p_values, strict=True)]
    coverage = row_coverage(usable, who)
    reason = coverage.shortfall(min_coverage)
    kept: list[tuple[str, float, float]] = []
    facts = 0
    for identity, score, p, answer in zip(who, scores, p_values, exclusive, strict=True):
        is_fact = _fact(answer)
        if score is None or p is None:
            continue
        if not 0 <= p <= 1:
            raise RequestError(f"`p_values` holds {p:g} for {identity}: a p lies between 0 and 1")
        if score > 0 and p <= LEVEL:
            facts += is_fact
            if not is_fact:
                kept.append((identity, score, p))
    result: dict[str, Any] = {}
    everybody: list[str | None] = [None, *sorted(set(who))]
    for group in everybody:
        own = [(score, p) for name, score, p in kept if group in {None, name}]
        ending = "" if group is None else f"_{group}"
        names = [f"{name}{ending}" for name in ("associations", "mean_score", "mean_p")]
        cell = summary([score for score, _ in own], [p for _, p in own])
        result |= dict.fromkeys(names, NAN) if reason else dict(zip(names, cell, strict=True))
    return {
        **result,
        "exclusive": NAN if reason else facts,
        "n_rows": len(who),
        "coverage": coverage.share,
        "undefined": reason,
    }


def _fact(answer: str | None) -> bool:
    """Return whether a phrase was called a fact of its identity; what is not known is kept, as published."""
    if answer is None or answer.strip().lower() == "unparsed":
        return False
    if answer.strip().lower() not in _FACT:
        raise RequestError(f"`exclusive` holds {answer!r}: give YES or NO, nothing where it is not known")
    return _FACT[answer.strip().lower()]


METRIC = ColumnMetric(
    name="association_list",
    measure=measure,
    required={"identities": "text", "scores": "number", "p_values": "number"},
    optional={"exclusive": "text"},
    description=(
        "BADF of a list of associations, such as the released files: their number, mean score and mean p per identity "
        "(Table 14)."
    ),
    citation="arXiv:2508.01412",
    help={
        "identities": "the identity that the phrase is told more of",
        "scores": "the score of the phrase for that identity",
        "p_values": "its published p",
        "exclusive": "YES where the phrase is a fact of the identity, which drops it; NO otherwise",
    },
)
