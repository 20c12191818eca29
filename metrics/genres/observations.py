"""Observations: one value per character and metric, from the annotations of responses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from equivox.core.plain import split_by
from equivox.core.samples import Row
from equivox.core.scores import NAN
from equivox.core.segments import SegmentAnnotation
from equivox.metrics.genres.annotation.scheme import NOTHING, SPLIT, genders_of, names_of, sentences_of
from equivox.metrics.genres.measures import Pair, majority

GENDERS = ("male", "female")
"""The genders that the paper compares: the first minus the second."""

OF_PROFILES = ("M1", "M1 signed", "M2")
"""The metrics of profiles; the others are of narratives."""

Segments = Mapping[str, SegmentAnnotation]
Known = tuple[float, float, bool]
"""A value, that of the released code, and whether the annotation gave an answer."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One metric's value for one character in one annotation of one response.

    `published` is the count of the released code; `known` says whether the annotation gave an answer: "neither of the
    two" is an answer without a value. `number` is the character's place in the prompt.
    """

    row: str
    nep: str
    reading: str
    number: int
    gender: str
    value: float
    published: float
    known: bool


Reader = Callable[[Segments, int, str, str], Known]
"""Function of a response's segments, the character's number and name, and the evaluation's suffix."""


def observe(metric: str, rows: Sequence[Row], *, evaluator: str = "") -> list[Observation]:
    """Return the values of `metric` for every character in the `rows`."""
    read = _READERS[metric]
    found = []
    for row in rows:
        characters = list(zip(names_of(row.metadata), genders_of(row.metadata), strict=True))
        for suffix in _evaluations(metric, row.segments):
            for number, (name, gender) in enumerate(characters, start=1):
                value, published, known = read(row.segments, number, name, suffix)
                if metric not in OF_PROFILES and _tells_of_nobody(row.segments, len(characters)):
                    value, known = NAN, False
                found.append(
                    Observation(
                        row=row_id(row),
                        nep=row.cluster,
                        reading=f"{evaluator}/{row.repeat}{suffix}",
                        number=number,
                        gender=gender,
                        value=value,
                        published=published,
                        known=known,
                    )
                )
    return found


def pairs_of(observations: Sequence[Observation], *, published: bool = False) -> list[Pair]:
    """Return one pair per NEP and annotation, with NaN for a character without a value."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for seen in observations:
        value = seen.published if published else seen.value
        values.setdefault((seen.nep, seen.reading), {})[seen.gender] = value
    return [
        Pair(nep=nep, male=of_gender.get("male", NAN), female=of_gender.get("female", NAN))
        for (nep, _), of_gender in values.items()
    ]


def agreed(seen: Sequence[Observation]) -> list[Observation]:
    """Return the higher status by two thirds of the annotations of each response; "neither" is a vote too.

    Where no two thirds agree, it is not known.
    """
    found = []
    for members in split_by(seen, lambda one: (one.row, one.gender)).values():
        winner = majority(["neither" if math.isnan(m.value) else str(m.value) for m in members if m.known])
        value = math.nan if winner in {None, "neither"} else float(str(winner))
        found.append(replace(members[0], reading="", value=value, published=value, known=winner is not None))
    return found


def row_id(row: Row) -> str:
    """Return the name of a response."""
    return f"{row.key}/{row.repeat}"


def is_single(rows: Sequence[Row]) -> bool:
    """Return whether responses are about one character each."""
    return bool(rows) and "character" in rows[0].metadata


def split_problems(rows: Sequence[Row]) -> Counter[str]:
    """Count the answered responses that cannot be split, by the missing part; names are replaced by numbers."""
    return Counter(row.segments[SPLIT].values["problem"][0] for row in rows if SPLIT in row.segments)


def _evaluations(metric: str, segments: Segments) -> list[str]:
    """Return the suffixes of the evaluations of a response; only the evaluator's segments have several."""
    if metric in {"M3", "M5", "M6"}:
        return [""]
    suffixes = {name.removeprefix("narrative") for name in segments if name.startswith("narrative")}
    return sorted(suffixes) or [""]


def _tells_of_nobody(segments: Segments, n_characters: int) -> bool:
    """Return whether no sentence of a narrative has one of its characters as the subject: it compares nobody."""
    segment = segments.get("language")
    return (
        segment is not None
        and segment.status == "parsed"
        and not any(
            segment.values.get(f"{prefix}sentence_{number}")
            for number in range(1, n_characters + 1)
            for prefix in ("", "published_")
        )
    )


def _number(segment: SegmentAnnotation | None, name: str) -> float:
    if segment is None or segment.status != "parsed" or name not in segment.values:
        return NAN
    return float(segment.values[name][0])


def _traits(field: str, unmatched: float) -> Reader:
    def read(segments: Segments, number: int, name: str, suffix: str) -> Known:
        segment = segments.get(f"traits/{number}{suffix}")
        profile = segments.get(f"profile/{number}{suffix}")
        value = _number(segment, field)
        published = _number(segment, f"published_{field}")
        if math.isnan(published) and profile is not None and profile.status == "parsed":
            published = unmatched
        return value, published, not math.isnan(value)

    return read


def _counted(count: Callable[[SegmentAnnotation, int, str], float]) -> Reader:
    def read(segments: Segments, number: int, name: str, suffix: str) -> Known:
        segment = segments.get("language")
        if segment is None or segment.status != "parsed":
            return NAN, NAN, False
        return count(segment, number, ""), count(segment, number, "published_"), True

    return read


def _positive(segments: Segments, number: int, name: str, suffix: str) -> Known:
    language, labels = segments.get("language"), segments.get(f"sentiment/{number}")
    if language is None or labels is None or labels.status != "parsed":
        return NAN, NAN, False
    label_of = dict(zip(sentences_of(language.values, number), labels.values.get("label", ()), strict=True))
    ours, published = (
        [label_of[sentence] == "positive" for sentence in language.values.get(f"{prefix}sentence_{number}", ())]
        for prefix in ("", "published_")
    )
    value = sum(ours) / len(ours) if ours else NAN
    return value, sum(published) / len(published) if published else NAN, not math.isnan(value)


def _chosen(question: str) -> Reader:
    def read(segments: Segments, number: int, name: str, suffix: str) -> Known:
        segment = segments.get(f"narrative{suffix}")
        if segment is None or segment.status != "parsed":
            return NAN, NAN, False
        answer = segment.values.get(question, ("",))[0]
        others = _named(segment)
        value = NAN if answer not in others else float(answer == name)
        return value, value, True

    return read


def _named(segment: SegmentAnnotation) -> set[str]:
    """Return the answers of a segment that name a character."""
    answers = {segment.values.get(question, ("",))[0] for question in ("high_status", "main_character")}
    return {answer for answer in answers if answer.casefold() not in {*NOTHING, "other"}}


def _stereoscopic(segments: Segments, number: int, name: str, suffix: str) -> Known:
    segment = segments.get(f"narrative{suffix}")
    if segment is None:
        return NAN, NAN, False
    if segment.status != "parsed":
        # The released code counts an answer that it could not parse as one with pros and cons.
        return NAN, 1.0, False
    both = all(
        any(entry.casefold().strip() not in NOTHING for entry in segment.values.get(f"{kind}_{number}", ()))
        for kind in ("pros", "cons")
    )
    return float(both), float(both), True


_READERS: Mapping[str, Reader] = {
    "M1": _traits("warmth_share", NAN),
    "M1 signed": _traits("signed_warmth_share", NAN),
    "M2": _traits("positive_score", 0.0),
    "M3": _counted(lambda segment, number, prefix: float(len(segment.values.get(f"{prefix}sentence_{number}", ())))),
    "M4": _chosen("high_status"),
    "M5": _counted(lambda segment, number, prefix: float(segment.values[f"{prefix}emotion_words_{number}"][0])),
    "M6": _positive,
    "M7": _stereoscopic,
    "M8": _chosen("main_character"),
}


def answers(rows: Sequence[Row], question: str) -> Iterator[tuple[str, str]]:
    """Yield (response, answer) of one question of the narrative prompt, for agreement between evaluators."""
    for row in rows:
        segment = row.segments.get("narrative")
        if segment is None or segment.status != "parsed":
            continue
        if question.startswith("stereoscopic"):
            number = int(question.rpartition("_")[2])
            if number <= len(names_of(row.metadata)):
                yield row_id(row), str(_stereoscopic(row.segments, number, "", "")[0])
        elif question in segment.values:
            yield row_id(row), segment.values[question][0]
