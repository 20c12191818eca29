"""Tables of a GENRES run: splitting, levels by gender and pair, agreement between evaluators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.core.samples import Row
from equivox.metrics.genres.annotation.scheme import genders_of
from equivox.metrics.genres.measures import CHOICES, METRICS
from equivox.metrics.genres.observations import Observation, agreed, answers, is_single, observe, split_problems
from equivox.metrics.scoring import statistics

QUESTIONS = ("high_status", "main_character", "stereoscopic_1", "stereoscopic_2")
"""The evaluators' questions whose agreement is reported; the last two ask for pros and cons of each character."""


def splitting_table(name: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the numbers of answered and of split responses, and the reasons for the others."""
    problems = split_problems(rows)
    answered = sum(row.answered and row.status not in {"refused", "empty"} for row in rows)
    language = [row.segments["language"] for row in rows if "language" in row.segments]
    counts = {
        "responses": len(rows),
        "answered": answered,
        "split": answered - sum(problems.values()),
        **{f"not split: {problem}": count for problem, count in problems.most_common()},
        "narratives that stay in English": sum(segment.status == "parsed" for segment in language),
    }
    return [{"task": name, "what": what, "count": count} for what, count in counts.items()]


def level_table(name: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return each metric's mean by gender and kind of pair."""
    lines: list[dict[str, Any]] = []
    for metric in METRICS:
        by_kind: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            genders = sorted(genders_of(row.metadata))
            if metric.name in CHOICES and len(genders) < 2:
                continue  # the question is which of two genders
            for seen in observe(metric.name, [row]):
                if not math.isnan(seen.value):
                    by_kind.setdefault((" + ".join(genders), seen.gender), []).append(seen.value * metric.scale)
        for (pair, gender), values in sorted(by_kind.items()):
            mean = math.fsum(values) / len(values)
            named = {"task": name, "metric": metric.name, "pair": pair, "gender": gender}
            lines.append({**named, "mean": mean, "readings": len(values)})
    return lines


SHARES = {"warmth share": "M1", "stereoscopic": "M7", "high status": "M4"}
"""The attributes of `distribution_table`, and the metrics that they are the distributions of."""

_BINS = ("no warmth word", "below 25 %", "25 to 50 %", "50 to 75 %", "75 % and more", "warmth words only")


EVALUATOR, MAJORITY = "all narratives", "two thirds of the evaluators"
"""Groups of `high status`: by the evaluator of the scores, and by two thirds of all evaluators."""


def distribution_table(name: str, rows: Sequence[Row], others: Sequence[Sequence[Row]] = ()) -> list[dict[str, Any]]:
    """Return how profiles and narratives are distributed: a row per attribute, value and gender.

    `warmth share` is that of a profile's trait words (Figures 4 and 12), `stereoscopic` whether a character has pros
    and cons (Figures 1 and 8), `high status` who of the two has it (Figure 6), which has no gender of its own.
    With `others`, the same rows by further evaluators, it is given by two thirds of all, too: over the narratives on
    which two thirds agree. `percent` is of the characters, or narratives, about which the annotation says something.
    """
    lines: list[dict[str, Any]] = []
    for attribute, metric in SHARES.items():
        counts: dict[str, Counter[str]] = {}
        if metric == "M4" and is_single(rows):
            continue  # the question is which of two characters
        seen = observe(metric, rows)
        if metric == "M4":
            every = [*seen, *(one for own in others for one in observe(metric, own))]
            for group, own in {EVALUATOR: seen, **({MAJORITY: agreed(every)} if others else {})}.items():
                counts[group] = Counter(_higher(one) for one in own if one.known and one.gender == "male")
        else:
            for one in seen:
                if one.known and not math.isnan(one.value):
                    told = _warmth_bin(one.value) if metric == "M1" else ("yes" if one.value else "no")
                    counts.setdefault(one.gender, Counter())[told] += 1
        counts = {group: own for group, own in counts.items() if own}
        # A share of 0 is one of the three of a bar, so that it has a row too.
        values = ["male", "female", "neither"]
        if metric != "M4":
            values = [value for value in (*_BINS, "yes", "no") if any(value in own for own in counts.values())]
        lines += [
            {
                "task": name,
                "attribute": attribute,
                "value": value,
                "group": group,
                "n": own[value],
                "percent": 100 * own[value] / own.total(),
            }
            for value in values
            for group, own in sorted(counts.items())
        ]
    return lines


def _higher(seen: Observation) -> str:
    return "neither" if math.isnan(seen.value) else ("male" if seen.value else "female")


def _warmth_bin(share: float) -> str:
    """Return the bin of a share of warmth words, 0 to 1."""
    if share <= 0:
        return _BINS[0]
    return _BINS[-1] if share >= 1 else _BINS[1 + int(4 * share)]


def agreement_table(name: str, evaluators: Sequence[Sequence[Row]]) -> list[dict[str, Any]]:
    """Return Krippendorff's alpha (nominal) of two or more evaluators, question by question; empty for one."""
    lines: list[dict[str, Any]] = []
    for question in QUESTIONS if len(evaluators) > 1 else ():
        given: list[Mapping[str, str]] = [dict(answers(rows, question)) for rows in evaluators]
        units = sorted({key for own in given for key in own})
        if units:
            found = statistics.krippendorff_alpha([[own.get(key) for own in given] for key in units])
            counted = {"evaluators": len(evaluators), "alpha": found.alpha, "responses": found.n_pairable_units}
            lines.append({"task": name, "question": question, **counted, "undefined": found.undefined or ""})
    return lines
