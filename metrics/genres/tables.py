"""Tables of a GENRES run: splitting, levels by gender and pair, agreement between evaluators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equivox.core.samples import Row
from equivox.metrics.genres.annotation.scheme import genders_of
from equivox.metrics.genres.measures import METRICS
from equivox.metrics.genres.observations import answers, is_mixed, is_single, observe, split_problems

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
    """Return each metric's mean by gender and kind of pair; same-gender pairs are only in this table."""
    lines: list[dict[str, Any]] = []
    for metric in METRICS:
        by_kind: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            pair = " + ".join(sorted(genders_of(row.metadata)))
            for gender, value in _levels(metric.name, row, pairwise=metric.name in {"M4", "M8"}):
                by_kind.setdefault((pair, gender), []).append(value * metric.scale)
        for (pair, gender), values in sorted(by_kind.items()):
            mean = math.fsum(values) / len(values)
            named = {"task": name, "metric": metric.name, "pair": pair, "gender": gender}
            lines.append({**named, "mean": mean, "readings": len(values)})
    return lines


def _levels(metric: str, row: Row, *, pairwise: bool) -> Iterator[tuple[str, float]]:
    if is_mixed(row):
        if pairwise and is_single([row]):
            return
        rows = [row]
    elif pairwise:
        return
    else:
        rows = [_as_single(row, number) for number in (1, 2)]
    for observation in observe(metric, rows):
        if not math.isnan(observation.value):
            yield observation.gender, observation.value


def _as_single(row: Row, number: int) -> Row:
    """Return a row as if it were about one of its two characters."""
    segments = {}
    for name, segment in row.segments.items():
        stem, _, rest = name.partition("/")
        if rest.startswith(str(number)):
            segments[f"{stem}/1{rest[1:]}"] = segment
        elif not rest:
            own = {key: values for key, values in segment.values.items() if not key.endswith(f"_{3 - number}")}
            segments[name] = replace(segment, values={_renumbered(key, number): values for key, values in own.items()})
    return replace(
        row,
        metadata={"character": row.metadata[f"name_{number}"], "gender": row.metadata[f"gender_{number}"]},
        segments=segments,
    )


def _renumbered(key: str, number: int) -> str:
    return f"{key.removesuffix(f'_{number}')}_1" if key.endswith(f"_{number}") else key


SHARES = {"warmth share": "M1", "stereoscopic": "M7", "high status": "M4"}
"""The attributes of `distribution_table`, and the metrics that they are the distributions of."""

_BINS = ("no warmth word", "below 25 %", "25 to 50 %", "50 to 75 %", "75 % and more", "warmth words only")


def distribution_table(name: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return how profiles and narratives are distributed: a row per attribute, value and gender.

    `warmth share` is that of a profile's trait words (Figures 4 and 12), `stereoscopic` whether a character has pros
    and cons (Figures 1 and 8), `high status` who of the two has it (Figure 6), which has no gender of its own.
    `percent` is of the characters, or narratives, about which the annotation says something.
    """
    lines: list[dict[str, Any]] = []
    for attribute, metric in SHARES.items():
        counts: dict[str, Counter[str]] = {}
        if metric == "M4" and is_single(rows):
            continue  # the question is which of two characters
        for seen in observe(metric, rows):
            if not seen.known:
                continue
            if metric != "M4":
                told = _warmth_bin(seen.value) if metric == "M1" else ("yes" if seen.value else "no")
                if not math.isnan(seen.value):
                    counts.setdefault(seen.gender, Counter())[told] += 1
            elif seen.gender == "male":
                who = "neither" if math.isnan(seen.value) else ("male" if seen.value else "female")
                counts.setdefault("all narratives", Counter())[who] += 1
        values = [
            value
            for value in (*_BINS, "yes", "no", "male", "female", "neither")
            if any(value in own for own in counts.values())
        ]
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


def _warmth_bin(share: float) -> str:
    """Return the bin of a share of warmth words, 0 to 1."""
    if share <= 0:
        return _BINS[0]
    return _BINS[-1] if share >= 1 else _BINS[1 + int(4 * share)]


def agreement_table(name: str, evaluators: Sequence[Sequence[Row]]) -> list[dict[str, Any]]:
    """Return Krippendorff's alpha (nominal) of two or more evaluators, question by question; empty for one."""
    from equivox.statistics import krippendorff_alpha

    lines: list[dict[str, Any]] = []
    for question in QUESTIONS if len(evaluators) > 1 else ():
        given: list[Mapping[str, str]] = [dict(answers(rows, question)) for rows in evaluators]
        units = sorted({key for own in given for key in own})
        if units:
            found = krippendorff_alpha([[own.get(key) for own in given] for key in units])
            counted = {"evaluators": len(evaluators), "alpha": found.alpha, "responses": found.n_pairable_units}
            lines.append({"task": name, "question": question, **counted, "undefined": found.undefined or ""})
    return lines
