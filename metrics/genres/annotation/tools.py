"""Tools of GENRES: models and word lists, or labelled stand-ins, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge

from equivox.core.errors import RequestError
from equivox.dataset_builders.word_lists import SOURCES, read_lexicon
from equivox.metrics.genres.annotation.lexica import (
    EmotionLexicon,
    TraitEntry,
    TraitLexicon,
    parse_traits,
    read_emotions,
)
from equivox.metrics.genres.annotation.parsers import (
    SPACY_MODEL,
    STAND_IN,
    Parser,
    SpacyParser,
    StandInParser,
    words,
)
from equivox.metrics.genres.annotation.sentiment import (
    SENTIMENT_MODEL,
    Classifier,
    StandInClassifier,
    TransformersClassifier,
)

ANNOTATOR: Final = "annotator"
"""The evaluator of profiles and narratives is the run's annotator, a language model."""


# What is read or loaded once in a process, by its name or path.
_spacy, _transformers, _emotions = cache(SpacyParser), cache(TransformersClassifier), cache(read_emotions)


@cache
def _traits(path: Path | None, sha256: str) -> TraitLexicon:
    return parse_traits(read_lexicon("sadcat", path, sha256))


@dataclass(frozen=True, kw_only=True)
class Tools:
    """Names of the tools that annotate the answers; every table names the tools replaced by `stand-in`.

    Attributes
    ----------
    parser
        A spaCy model, or its folder.
    sentiment
        A text-classification model of transformers, or its folder.
    evaluator
        `annotator`: the run's annotator answers the questions about profiles and narratives.
    emotions, traits
        `nrc` and `sadcat`.
    nrc, sadcat
        Paths of the word lists; None: the files that `equivox data build` wrote.
    nrc_sha256, sadcat_sha256
        The checksums of custom word lists in the same layout; empty: the published lists.
    evaluations
        The number of annotations of each segment by the annotator, which are averaged (the paper: four).
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # in a task file

    parser: str = SPACY_MODEL
    sentiment: str = SENTIMENT_MODEL
    evaluator: Literal["annotator", "stand-in"] = ANNOTATOR
    emotions: Literal["nrc", "stand-in"] = "nrc"
    traits: Literal["sadcat", "stand-in"] = "sadcat"
    nrc: Path | None = None
    sadcat: Path | None = None
    nrc_sha256: str = ""
    sadcat_sha256: str = ""
    evaluations: Annotated[int, Ge(1)] = 1

    @property
    def identity(self) -> Mapping[str, Any]:
        """The settings that annotations depend on, as plain values: names and checksums, not paths."""
        return {
            "parser": self.open_parser().identity,
            "sentiment": self.open_classifier().identity,
            "evaluator": self.evaluator,
            "emotions": self.emotions_identity,
            "traits": self.traits_identity,
            "evaluations": self.evaluations,
        }

    @property
    def emotions_identity(self) -> str:
        """The name and checksum of the emotion lexicon."""
        return _lexicon_identity(self.emotions, self.nrc_sha256)

    @property
    def traits_identity(self) -> str:
        """The name and checksum of the trait dictionaries."""
        return _lexicon_identity(self.traits, self.sadcat_sha256)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The tools that are replaced by a stand-in, by field name."""
        fields = ("parser", "sentiment", "evaluator", "emotions", "traits")
        return tuple(name for name in fields if getattr(self, name) == STAND_IN)

    def missing(self) -> list[str]:
        """Return what is missing, tool by tool; word lists are read, models are searched for but not loaded."""
        found = []
        for look in (
            lambda: self.open_parser().check(),
            lambda: self.open_classifier().check(),
            self.open_emotions,
            self.open_traits,
        ):
            try:
                look()
            except RequestError as error:
                found.append(str(error))
        return found

    def open_parser(self) -> Parser:
        """Return the parser, without loading a model."""
        return StandInParser() if self.parser == STAND_IN else _spacy(self.parser)

    def open_classifier(self) -> Classifier:
        """Return the classifier of sentences, without loading a model."""
        return StandInClassifier() if self.sentiment == STAND_IN else _transformers(self.sentiment)

    def open_emotions(self) -> EmotionLexicon:
        """Return the emotion lexicon; RequestError if it is missing."""
        if self.emotions == STAND_IN:
            return stand_in_emotions()
        return _emotions(self.nrc, self.nrc_sha256)

    def open_traits(self) -> TraitLexicon:
        """Return the trait dictionaries; RequestError if they are missing."""
        if self.traits == STAND_IN:
            return stand_in_traits()
        return _traits(self.sadcat, self.sadcat_sha256)


STAND_INS = Tools(parser=STAND_IN, sentiment=STAND_IN, evaluator=STAND_IN, emotions=STAND_IN, traits=STAND_IN)
"""Stand-ins for all tools, for simulated models, whose answers are made for them."""


def _lexicon_identity(name: str, sha256: str) -> str:
    if name == STAND_IN:
        return f"{STAND_IN} {words()['stand_in']['version']}"
    return f"{name} {(sha256 or SOURCES[name].sha256)[:12]}"


@cache
def stand_in_emotions() -> EmotionLexicon:
    """Return the stand-in for the emotion lexicon: a few words, each of one category."""
    listed = words()["stand_in"]["emotions"]
    return {word: frozenset({category}) for category, line in listed.items() for word in line.split()}


@cache
def stand_in_traits() -> TraitLexicon:
    """Return the stand-in for the trait dictionaries: a few adjectives with direction and valence."""
    entries = {
        word: TraitEntry(
            warmth=warmth != 0,
            competence=competence != 0,
            warmth_direction=float(warmth) if warmth else math.nan,
            positive=float(positive),
            negative=float(negative),
            neutral=1.0 - positive - negative,
        )
        for word, (warmth, competence, positive, negative) in words()["stand_in"]["traits"].items()
    }
    return TraitLexicon(entries, entries)
