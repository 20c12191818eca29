"""With what GENRES reads answers: models and word lists, or labelled stand-ins, by their names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from equivox.annotate.tools.lexica import (
    SOURCES,
    EmotionLexicon,
    TraitEntry,
    TraitLexicon,
    parse_traits,
    read_emotions,
    read_lexicon,
)
from equivox.annotate.tools.parsers import SPACY_MODEL, STAND_IN, Parser, SpacyParser, StandInParser
from equivox.annotate.tools.sentiment import SENTIMENT_MODEL, Classifier, StandInClassifier, TransformersClassifier
from equivox.annotate.tools.words import words

ANNOTATOR = "annotator"
"""The evaluator of profiles and narratives is the run's annotator, a language model."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """Which tools read the answers; `stand-in` for any of them is a choice that every table names.

    Attributes
    ----------
    parser
        A spaCy model, or the folder of one.
    sentiment
        A text-classification model of transformers, or the folder of one.
    evaluator
        `annotator`: the run's annotator answers the questions about profiles and narratives.
    emotions, traits
        `nrc` and `sadcat`.
    nrc, sadcat
        Where the word lists lie; None: where `equivox data fetch` puts them.
    nrc_sha256, sadcat_sha256
        The checksums of custom word lists in the same layout; empty: the published ones.
    evaluations
        How often the annotator reads each segment; the readings of a segment are averaged (the paper: four).
    """

    parser: str = SPACY_MODEL
    sentiment: str = SENTIMENT_MODEL
    evaluator: str = ANNOTATOR
    emotions: str = "nrc"
    traits: str = "sadcat"
    nrc: Path | None = None
    sadcat: Path | None = None
    nrc_sha256: str = ""
    sadcat_sha256: str = ""
    evaluations: int = 1

    @property
    def identity(self) -> Mapping[str, Any]:
        """What readings depend on, as plain values: names and checksums, not places."""
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
        """The emotion lexicon by name and checksum."""
        return _lexicon_identity(self.emotions, self.nrc_sha256)

    @property
    def traits_identity(self) -> str:
        """The trait dictionaries by name and checksum."""
        return _lexicon_identity(self.traits, self.sadcat_sha256)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The tools that are replaced by a stand-in, by what they do."""
        fields = ("parser", "sentiment", "evaluator", "emotions", "traits")
        return tuple(name for name in fields if getattr(self, name) == STAND_IN)

    def check(self) -> None:
        """Raise RequestError for what is not there; word lists are read, models are looked for and not loaded."""
        self.open_parser().check()
        self.open_classifier().check()
        self.open_emotions()
        self.open_traits()

    def open_parser(self) -> Parser:
        """Return the parser; no model is loaded yet."""
        return StandInParser() if self.parser == STAND_IN else _spacy(self.parser)

    def open_classifier(self) -> Classifier:
        """Return the classifier of sentences; no model is loaded yet."""
        return StandInClassifier() if self.sentiment == STAND_IN else _transformers(self.sentiment)

    def open_emotions(self) -> EmotionLexicon:
        """Return the emotion lexicon; RequestError where it is not there."""
        if self.emotions == STAND_IN:
            return stand_in_emotions()
        return _emotions(self.nrc, self.nrc_sha256)

    def open_traits(self) -> TraitLexicon:
        """Return the trait dictionaries; RequestError where they are not there."""
        if self.traits == STAND_IN:
            return stand_in_traits()
        return _traits(self.sadcat, self.sadcat_sha256)


STAND_INS = Tools(parser=STAND_IN, sentiment=STAND_IN, evaluator=STAND_IN, emotions=STAND_IN, traits=STAND_IN)
"""No model and no lexicon: for simulated models, whose prose is made for them."""


def _lexicon_identity(name: str, sha256: str) -> str:
    if name == STAND_IN:
        return f"{STAND_IN} {words()['stand_in']['version']}"
    return f"{name} {(sha256 or SOURCES[name].sha256)[:12]}"


@cache
def _spacy(model: str) -> SpacyParser:
    return SpacyParser(model)


@cache
def _transformers(model: str) -> TransformersClassifier:
    return TransformersClassifier(model)


@cache
def _emotions(path: Path | None, sha256: str) -> EmotionLexicon:
    return read_emotions(path, sha256=sha256 or None)


@cache
def _traits(path: Path | None, sha256: str) -> TraitLexicon:
    return parse_traits(read_lexicon("sadcat", path, sha256=sha256 or None))


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
            competence_direction=float(competence) if competence else math.nan,
            positive=float(positive),
            negative=float(negative),
            neutral=1.0 - positive - negative,
        )
        for word, (warmth, competence, positive, negative) in words()["stand_in"]["traits"].items()
    }
    return TraitLexicon(entries, entries)
