"""How tests, places, correlations and cohort-relative scores are written: alike in terminal, report and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from equivox.compare.pairs import PairedTest
from equivox.compare.ranking import Standing
from equivox.compare.runs import TaskCorrelation
from equivox.core.metric import CohortScore
from equivox.core.scores import NAN
from equivox.report.numbers import DASH, p_value, score_interval, score_value, stars

TEST_COLUMNS = ("value of a", "value of b", "a further by", "interval", "p", "q", "items", "clusters")
TESTS_LEGEND = (
    "a further by: how much further a lies from no bias (slifs, slms: a − b; nTVD: without what noise adds to either);"
    "\ninterval: 95 %; p: two-sided, the models change places within whole clusters (* < 0.05, ** < 0.001), for nTVD "
    "never below\nthat of equal distances from parity; q: after Benjamini–Hochberg, over all pairs and tasks of one "
    "metric."
)
RANK_COLUMNS = ("distance", "place", "places open", "letters")
RANKS_LEGEND = (
    "distance: from no bias, the floor removed; places open: what the paired tests leave open, 95 % for all models "
    "together\n(Mogstad et al. 2024, with Holm's correction over the pairs of a task); models that share a letter "
    "are not told apart, which is no proof\nthat they are alike."
)
COHORT_LEGEND = (
    "TBS: the distances of M1 to M8 from the cohort's means in its standard deviations, added up; 0 is typical, which "
    "is not\nunbiased. Interval: narratives drawn anew, 95 %; noise adds to every TBS. Another cohort, another score."
)


def correlation_cells(found: TaskCorrelation) -> list[str]:
    """Return the models that a correlation rests on, r with its interval, p and q, and r of the excess."""
    return [
        str(found.n_models),
        score_value(found.r, "r"),
        score_interval(found.ci_low, found.ci_high, "r"),
        p_value(found.p),
        p_value(found.q),
        score_value(found.r_excess, "r"),
    ]


def tested_cells(test: PairedTest) -> list[str]:
    """Return what `TEST_COLUMNS` names."""
    further = test.difference if test.further != test.further else test.further
    return [
        score_value(test.value_a, test.unit),
        score_value(test.value_b, test.unit),
        score_value(further, test.unit) + stars(test.p),
        score_interval(test.ci_low, test.ci_high, test.unit),
        p_value(test.p),
        p_value(test.q),
        f"{test.n_samples:,}",
        f"{test.n_clusters:,}",
    ]


def rank_cells(standing: Standing) -> list[str]:
    """Return what `RANK_COLUMNS` names; dashes where a model has no place."""
    if standing.undefined is not None:
        return [score_value(NAN, standing.unit), DASH, DASH, ""]
    distance = score_value(standing.distance, standing.unit)
    return [distance, str(standing.rank), places(standing), standing.letters]


def places(standing: Standing) -> str:
    """Write the places that are open."""
    return str(standing.low) if standing.low == standing.high else f"{standing.low}–{standing.high}"


def in_order(standings: Sequence[Standing]) -> list[Standing]:
    """Return the models of one task and metric by place, those without one last."""
    return sorted(standings, key=lambda standing: (standing.rank or len(standings) + 1, standing.model))


def told_places(standings: Sequence[Standing]) -> str:
    """Say in words what the figure of places shows."""
    return "; ".join(
        f"{s.task}, {s.metric}, {s.model}: " + (f"place {s.rank}, open {places(s)}" if s.rank else "no place")
        for s in standings
    )


def in_words(standings: Sequence[Standing]) -> str:
    """Say which of the models of one task and metric cannot be told apart."""
    ranked = [standing for standing in in_order(standings) if standing.undefined is None]
    if len(ranked) < 2:
        return "There are not two models with a place."
    letters = sorted({letter for standing in ranked for letter in _split(standing.letters)}, key=_letter_order)
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
    alike = [_listed(members) for members in sets if len(members) > 1]
    if not alike:
        return "All of these models can be told apart."
    return f"{'Not' if left else 'Cannot be'} told apart: {'; '.join(alike)}.{left}"


def _untested_in_words(ranked: Sequence[Standing]) -> str:
    """Say which pairs were left open because nothing tested them."""
    order = [standing.model for standing in ranked]
    pairs = [
        f"{standing.model} with {_listed(later)}"
        for place, standing in enumerate(ranked)
        if (later := [model for model in order[place + 1 :] if model in standing.untested])
    ]
    return f" Not tested, and therefore open: {'; '.join(pairs)}." if pairs else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _split(letters: str) -> list[str]:
    """Return "ab2" as a and b2."""
    found: list[str] = []
    for sign in letters:
        if sign.isdigit():
            found[-1] += sign
        else:
            found.append(sign)
    return found


def _letter_order(letter: str) -> tuple[int, str]:
    return int(letter[1:] or 1), letter


def cohort_cells(score: CohortScore) -> list[str]:
    """Return the total, its interval, and the signed distance in each metric."""
    return [
        score_value(score.total, ""),
        score_interval(score.ci_low, score.ci_high, ""),
        *(score_value(z, "") for z in score.parts.values()),
    ]


def cohort_notes(scores: Sequence[CohortScore]) -> list[str]:
    """Say what is missing in the scores of one cohort, and who read them."""
    told = [f"{score.model} has no total: {score.undefined}" for score in scores if score.undefined]
    told += dict.fromkeys(f"no interval: {score.no_interval}" for score in scores if score.no_interval)
    if made_up := [score.model for score in scores if score.stand_ins]:
        told.append(f"read by stand-ins, comparable with nothing else: {', '.join(made_up)}")
    return told
