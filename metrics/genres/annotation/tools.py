"""Tools of GENRES: models and word lists, or labelled stand-ins, by name; the classifiers of sentences (M6)."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from annotated_types import Ge

from equivox.core.errors import UsageError
from equivox.core.lazy import torch
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

ANNOTATOR: Final = "annotator"
"""The evaluator of profiles and narratives is the run's annotator, a language model."""

SENTIMENT_MODEL = "distilbert/distilbert-base-uncased-finetuned-sst-2-english"
SENTIMENT_REVISION = "714eb0f"
"""The revision of the paper's classifier that transformers pins."""

POSITIVE, NEGATIVE = "positive", "negative"


class TransformersClassifier:
    """A text-classification model of transformers, on a GPU if there is one; it labels sentences in batches.

    Batches contain sentences of similar length. Raises UsageError if the model is missing or has no label for
    "positive".
    """

    def __init__(
        self, model: str = SENTIMENT_MODEL, *, revision: str | None = SENTIMENT_REVISION, batch_size: int = 64
    ) -> None:
        self._model = model
        self._revision = revision if model == SENTIMENT_MODEL else None
        self._batch_size = batch_size
        self._loaded: Any = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model and its revision."""
        return {"sentiment": self._model, "revision": self._revision}

    def check(self) -> None:
        """Raise UsageError, saying how to install them, if transformers or torch is missing."""
        if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
            raise _missing()

    def labels(self, sentences: Sequence[str]) -> list[str]:
        """Return one label per sentence; sentences that are too long for the model are cut."""
        tokenizer, model, positive = self._pipeline()
        found = [NEGATIVE] * len(sentences)
        order = sorted(range(len(sentences)), key=lambda n: len(sentences[n]))
        for start in range(0, len(order), self._batch_size):
            members = order[start : start + self._batch_size]
            batch = tokenizer([sentences[n] for n in members], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                best = model(**batch.to(model.device)).logits.argmax(dim=-1).tolist()
            for n, label in zip(members, best, strict=True):
                found[n] = POSITIVE if label == positive else NEGATIVE
        return found

    def _pipeline(self) -> tuple[Any, Any, int]:
        if self._loaded is None:
            try:
                from transformers import AutoModelForSequenceClassification, AutoTokenizer

                device = "cuda" if torch.cuda.is_available() else "cpu"
            except ModuleNotFoundError:
                raise _missing() from None
            try:
                tokenizer = AutoTokenizer.from_pretrained(self._model, revision=self._revision)
                model = AutoModelForSequenceClassification.from_pretrained(self._model, revision=self._revision)
            except (OSError, ValueError) as error:
                reason = str(error).strip().splitlines()[0]
                raise UsageError(
                    f"the sentiment model {self._model!r} cannot be opened ({reason}); get it with "
                    f"`hf download {self._model}`, or name a folder that holds one"
                ) from None
            labels = {int(n): str(label).lower() for n, label in model.config.id2label.items()}
            positive = [n for n, label in labels.items() if label in {"positive", "pos", "label_1"}]
            if len(positive) != 1:
                raise UsageError(
                    f"the sentiment model {self._model!r} has no label that says positive, got {list(labels.values())}"
                )
            self._loaded = tokenizer, model.to(device).eval(), positive[0]
        return self._loaded  # type: ignore[no-any-return]


def _missing() -> UsageError:
    return UsageError(
        "the sentiment of sentences needs transformers; install it in a checkout of equivox: "
        '`pip install -c constraints.txt ".[genres]"`, '
        "or choose the word list with `sentiment: stand-in`"
    )


class StandInClassifier:
    """Classifier by short word lists: a sentence is positive if it has more positive words than negative ones.

    It shows that the pipeline runs; its labels say nothing about real sentences.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name that is shown with every figure that depends on it."""
        return {"sentiment": STAND_IN, "version": words()["stand_in"]["version"]}

    def check(self) -> None:
        """Do nothing: no installation is needed."""

    def labels(self, sentences: Sequence[str]) -> list[str]:
        """Return one label per sentence."""
        good, bad = (frozenset(words()["stand_in"][name].split()) for name in (POSITIVE, NEGATIVE))
        found = []
        for sentence in sentences:
            named = re.findall(r"\w+", sentence.casefold())
            found.append(POSITIVE if sum((w in good) - (w in bad) for w in named) > 0 else NEGATIVE)
        return found


Classifier = TransformersClassifier | StandInClassifier


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
            except UsageError as error:
                found.append(str(error))
        return found

    def open_parser(self) -> Parser:
        """Return the parser, without loading a model."""
        return StandInParser() if self.parser == STAND_IN else _spacy(self.parser)

    def open_classifier(self) -> Classifier:
        """Return the classifier of sentences, without loading a model."""
        return StandInClassifier() if self.sentiment == STAND_IN else _transformers(self.sentiment)

    def open_emotions(self) -> EmotionLexicon:
        """Return the emotion lexicon; UsageError if it is missing."""
        if self.emotions == STAND_IN:
            return stand_in_emotions()
        return _emotions(self.nrc, self.nrc_sha256)

    def open_traits(self) -> TraitLexicon:
        """Return the trait dictionaries; UsageError if they are missing."""
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
