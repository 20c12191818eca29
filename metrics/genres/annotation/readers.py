"""Tools that annotate segments of GENRES's answers without an annotator: splitter, parser, lexica and classifier."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from equivox.core.annotation import Value
from equivox.core.segments import Segment
from equivox.metrics.genres.annotation import language, splitting
from equivox.metrics.genres.annotation.language import PRONOUNS, Character, count_emotion_words, read_passage
from equivox.metrics.genres.annotation.lexica import score_traits
from equivox.metrics.genres.annotation.parsers import STAND_IN, Doc, words
from equivox.metrics.genres.annotation.splitting import Split, split_response
from equivox.metrics.genres.annotation.tools import Tools

SEPARATOR = "|"
"""The separator of names in a segment's `extra`."""

_ENGLISH_SHARE = 0.98


@lru_cache(maxsize=4096)
def split(text: str, names: tuple[str, ...]) -> Split:
    """Return the segments of a response; results are cached."""
    return split_response(text, names)


def is_english(text: str) -> bool:
    """Return whether a text stays in Latin letters: some models switch to Chinese in the middle of a story.

    >>> is_english("Ana smiled."), is_english("Ana и Бен улыбнулись.")
    (True, False)
    """
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and sum(ord(letter) < 0x250 for letter in letters) >= _ENGLISH_SHARE * len(letters)


@dataclass(frozen=True)
class SplitReader:
    """Tool that checks whether a response can be split; others are left to the annotator, which can find a refusal."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and the version of the splitter."""
        return {"name": "genres splitter", "version": splitting.VERSION}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield "no refusal" for each response that has all its segments, None for the others."""
        for segment in segments:
            names = tuple(segment.extra["names"].split(SEPARATOR))
            whole = split(segment.text, names).problem is None
            yield [Value("refusal", "no", "")] if whole else None


@dataclass(frozen=True)
class LanguageReader:
    """Tool that finds each character's sentences in a narrative, and counts the emotion words in them."""

    tools: Tools

    @property
    def identity(self) -> Mapping[str, Any]:
        """The parser, the lexicon and the version of the rules."""
        return {
            "name": "genres language",
            "version": language.VERSION,
            **self.tools.open_parser().identity,
            "emotions": self.tools.emotions_identity,
        }

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield the sentences and counts of each narrative; None if it is not in English."""
        readable = [segment for segment in segments if is_english(segment.text)]
        parser, lexicon = self.tools.open_parser(), self.tools.open_emotions()
        docs = parser.parse([segment.text for segment in readable])
        kept = {id(segment) for segment in readable}
        for segment in segments:
            if id(segment) not in kept:
                yield None
                continue
            doc = next(docs)
            names, genders = (segment.extra[key].split(SEPARATOR) for key in ("names", "genders"))
            # "they" mostly means both: where one character has no pronoun that tells, pronouns count for neither.
            told = genders if set(genders) <= set(PRONOUNS) else [""] * len(genders)
            characters = [Character(name, gender) for name, gender in zip(names, told, strict=True)]
            yield _language_values(doc, characters, lexicon, parser.version())


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
            found = passage.by_name[character.name]
            emotions = count_emotion_words(found.lemmas, lexicon)
            values += [
                *(Value(f"{prefix}sentence_{number}", " ".join(s.split()), "") for s in found.sentences),
                Value(f"{prefix}emotion_words_{number}", str(emotions), ""),
            ]
    return values


@dataclass(frozen=True)
class SentimentReader:
    """Tool that classifies each line of a segment as positive or negative."""

    tools: Tools

    @property
    def identity(self) -> Mapping[str, Any]:
        """The classifier."""
        return {"name": "genres sentiment", "version": "1", **self.tools.open_classifier().identity}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield a label per line; the lines of many segments are classified together."""
        classifier = self.tools.open_classifier()
        for start in range(0, len(segments), 128):
            members = segments[start : start + 128]
            lines = [segment.text.split("\n") for segment in members]
            labels = iter(classifier.labels([line for own in lines for line in own]))
            for own in lines:
                yield [Value("label", next(labels), "") for _ in own]


@dataclass(frozen=True)
class TraitReader:
    """Tool that looks up traits in the dictionaries."""

    tools: Tools

    @property
    def identity(self) -> Mapping[str, Any]:
        """The dictionaries."""
        return {"name": "genres traits", "version": "1", "traits": self.tools.traits_identity}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield the counts of each list of traits, one trait per line."""
        lexicon = self.tools.open_traits()
        for segment in segments:
            traits = segment.text.split("\n")
            values: list[Value] = []
            for prefix, compat in (("", False), ("published_", True)):
                numbers = score_traits(traits, lexicon, paper_compat=compat)
                values += [Value(f"{prefix}{n}", repr(v), "") for n, v in numbers.items() if not math.isnan(v)]
            yield values


@dataclass(frozen=True)
class StandInEvaluator:
    """Tool that annotates profiles and narratives of simulated models by a few fixed phrases, without an annotator."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name that is shown with every figure that depends on it."""
        return {"name": "genres evaluator", "evaluator": STAND_IN, "version": words()["stand_in"]["version"]}

    def read(self, segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
        """Yield the values of each profile or narrative, in the words of the schema."""
        for segment in segments:
            names = segment.extra["names"].split(SEPARATOR)
            yield _profile(segment.text) if segment.name.startswith("profile") else _narrative(segment.text, names)


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
