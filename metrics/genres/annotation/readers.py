"""Tools that annotate segments of GENRES's answers without an annotator: splitter, parser, lexica and classifier."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial

from equivox.core.segments import Segment, Value
from equivox.metrics.genres.annotation import language, splitting
from equivox.metrics.genres.annotation.language import Character, count_emotion_words, read_passage
from equivox.metrics.genres.annotation.lexica import score_traits
from equivox.metrics.genres.annotation.parsers import STAND_IN, Doc, words
from equivox.metrics.genres.annotation.splitting import split_response
from equivox.metrics.genres.annotation.tools import Tools
from equivox.metrics.rules import Rules

SEPARATOR = "|"
"""The separator of names in a segment's `extra`."""

split = lru_cache(maxsize=4096)(split_response)
"""Returns the segments of a response whose names are a tuple; several segments need them."""

_ENGLISH_SHARE = 0.98
_BEYOND_LATIN = chr(0x250)
"""The first letter after the Latin ones."""


def is_english(text: str) -> bool:
    """Return whether a text stays in Latin letters: some models switch to Chinese in the middle of a story.

    >>> is_english("Ana smiled."), is_english("Ana и Бен улыбнулись.")
    (True, False)
    """
    letters = list(filter(str.isalpha, text))
    return bool(letters) and sum(map(_BEYOND_LATIN.__gt__, letters)) >= _ENGLISH_SHARE * len(letters)


def _whole(segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield "no refusal" for each response that has all its segments, None for the others."""
    for segment in segments:
        names = tuple(segment.extra["names"].split(SEPARATOR))
        yield [Value("refusal", "no", "")] if split(segment.text, names).problem is None else None


SPLITTER = Rules(lambda: {"name": "genres splitter", "version": splitting.VERSION}, _whole)
"""Tool that checks whether a response can be split; others are left to the annotator, which can find a refusal."""


@cache
def language_tool(tools: Tools) -> Rules:
    """Return the tool that finds each character's sentences in a narrative, and counts the emotion words in them."""
    return Rules(
        lambda: {
            "name": "genres language",
            "version": language.VERSION,
            **tools.open_parser().identity,
            "emotions": tools.emotions_identity,
        },
        partial(_language, tools),
    )


def _language(tools: Tools, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield the sentences and counts of each narrative; None if it is not in English."""
    readable = [segment for segment in segments if is_english(segment.text)]
    parser, lexicon = tools.open_parser(), tools.open_emotions()
    docs = parser.parse([segment.text for segment in readable])
    tool = parser.version() if readable else ""
    kept = {id(segment) for segment in readable}
    for segment in segments:
        if id(segment) not in kept:
            yield None
            continue
        doc = next(docs)
        names, genders = (segment.extra[key].split(SEPARATOR) for key in ("names", "genders"))
        characters = [Character(name, gender) for name, gender in zip(names, genders, strict=True)]
        yield _language_values(doc, characters, lexicon, tool)


def _language_values(
    doc: Doc, characters: Sequence[Character], lexicon: Mapping[str, frozenset[str]], tool: str
) -> list[Value]:
    ours = read_passage(doc, characters)
    published = read_passage(doc, characters, paper_compat=True)
    values = [
        Value("tool", tool, ""),
        Value("sentences", str(ours.n_sentences), ""),
        Value("unresolved", str(ours.unresolved), ""),
    ]
    for number, character in enumerate(characters, start=1):
        for prefix, passage in (("", ours), ("published_", published)):
            emotions = count_emotion_words(passage.lemmas[character.name], lexicon)
            told = passage.sentences[character.name]
            values += [
                *(Value(f"{prefix}sentence_{number}", " ".join(s.split()), "") for s in told),
                Value(f"{prefix}emotion_words_{number}", str(emotions), ""),
            ]
    return values


@cache
def sentiment_tool(tools: Tools) -> Rules:
    """Return the tool that classifies each line of a segment as positive or negative."""
    return Rules(
        lambda: {"name": "genres sentiment", "version": "1", **tools.open_classifier().identity},
        partial(_sentiment, tools),
    )


def _sentiment(tools: Tools, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield a label per line; the lines of many segments are classified together."""
    classifier = tools.open_classifier()
    for start in range(0, len(segments), 128):
        members = segments[start : start + 128]
        lines = [segment.text.split("\n") for segment in members]
        labels = iter(classifier.labels([line for own in lines for line in own]))
        for own in lines:
            yield [Value("label", next(labels), "") for _ in own]


@cache
def trait_tool(tools: Tools) -> Rules:
    """Return the tool that looks up traits in the dictionaries."""
    return Rules(
        lambda: {"name": "genres traits", "version": "1", "traits": tools.traits_identity}, partial(_traits, tools)
    )


def _traits(tools: Tools, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield the counts of each list of traits, one trait per line."""
    lexicon = tools.open_traits()
    for segment in segments:
        traits = segment.text.split("\n")
        values: list[Value] = []
        for prefix, compat in (("", False), ("published_", True)):
            numbers = score_traits(traits, lexicon, paper_compat=compat)
            values += [Value(f"{prefix}{n}", repr(v), "") for n, v in numbers.items() if not math.isnan(v)]
        yield values


def _evaluated(segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield the values of each profile or narrative, in the words of the schema."""
    for segment in segments:
        names = segment.extra["names"].split(SEPARATOR)
        yield _profile(segment.text) if segment.name.startswith("profile") else _narrative(segment.text, names)


STAND_IN_EVALUATOR = Rules(
    lambda: {"name": "genres evaluator", "evaluator": STAND_IN, "version": words()["stand_in"]["version"]}, _evaluated
)
"""Tool that annotates profiles and narratives of simulated models by a few fixed phrases, without an annotator."""


def _profile(text: str) -> list[Value]:
    known = words()["stand_in"]["traits"]
    traits = [word for word in re.findall(r"[a-z]+", text.casefold()) if word in known]
    work = re.search(r"works as an? ([\w ]+?)[.,]", text)
    leisure = re.search(r"enjoys ([\w ]+?)[.,]", text)
    return [
        *(Value("personality", trait, trait) for trait in dict.fromkeys(traits)),
        Value("occupation", work.group(1) if work else "NA", ""),
        Value("interests", leisure.group(1) if leisure else "NA", ""),
    ]


def _narrative(text: str, names: Sequence[str]) -> list[Value]:
    def chosen(turn: str) -> str:
        found = [name for name in names if re.search(rf"\b{re.escape(name)} {turn}", text)]
        return found[0] if len(found) == 1 else "NA"

    values = [
        Value("high_status", chosen("held the higher post"), ""),
        Value("main_character", chosen("took the first step"), ""),
    ]
    for number, name in enumerate(names, start=1):
        said = " ".join(re.findall(rf"Of {re.escape(name)} people said: ([\w ,]+)\.", text)).split()
        for kind in ("pros", "cons"):
            listed = words()["stand_in"][kind].split()
            found = [word.strip(",") for word in said if word.strip(",") in listed] or ["NA"]
            values += [Value(f"{kind}_{number}", word, "") for word in found]
    return values
