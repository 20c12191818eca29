"""Parsers of English: spaCy, and a labelled stand-in of a few rules that needs no model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

from equivox.configs import load_config
from equivox.core.errors import UsageError

WITHOUT = "run `genres_standin`, whose rules need no model (in a task file: `parser: stand-in`)"
"""What works without spaCy."""
SPACY_MODEL = "en_core_web_sm"
"""The spaCy model of the paper."""

words: Callable[[], Mapping[str, Any]] = partial(load_config, "tools/words.yaml")
"""Packaged word lists; `stand_in` replaces a model or a lexicon if a user asks for it."""

_FEW = 200
"""With fewer texts than this, starting further processes costs more time than it saves."""


@dataclass(eq=False)
class Token:
    """One word of a parse, with the attributes of spaCy's tokens; the head of the root is the root."""

    i: int
    text: str
    dep_: str = "dep"
    pos_: str = "X"
    lemma_: str = ""
    head: Token = field(default=None, repr=False)  # type: ignore[assignment]
    children: list[Token] = field(default_factory=list, repr=False)

    @property
    def subtree(self) -> list[Token]:
        """Return this word and all words that depend on it, in order."""
        found = [self]
        for token in found:
            found.extend(token.children)
        return sorted(found, key=lambda token: token.i)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a parse; the root is the word that all others depend on."""

    text: str
    tokens: Sequence[Token]
    root: Token

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)


@dataclass(frozen=True)
class Doc:
    """A parsed text: one of the stand-in, or one of spaCy, which has the same attributes."""

    sents: Sequence[Sentence]


class SpacyParser:
    """A spaCy pipeline with a dependency parser; texts go through it in batches, many of them over several processes.

    `model` is an installed package or a folder. Named entity recognition is off.
    """

    def __init__(self, model: str = SPACY_MODEL, *, processes: int | None = None, batch_size: int = 32) -> None:
        self._model = model
        self._processes = processes
        self._batch_size = batch_size
        self._loaded: Any = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model's name."""
        return {"parser": "spacy", "model": self._model}

    def check(self) -> None:
        """Raise UsageError, saying how to install it, if spaCy or the model is missing."""
        spacy = _spacy()
        if not spacy.util.is_package(self._model) and not (Path(self._model) / "meta.json").is_file():
            raise self._missing()

    def _missing(self) -> UsageError:
        return UsageError(
            f"spaCy has no model {self._model!r}; install it with `python -m spacy download {self._model}`, "
            f"name a folder that holds one, or {WITHOUT}"
        )

    def version(self) -> str:
        """Return the names and versions of the model and of spaCy."""
        meta = self._pipeline().meta
        return f"{meta.get('lang', '')}_{meta.get('name', '')} {meta.get('version', '')} (spaCy {version('spacy')})"

    def parse(self, texts: Sequence[str]) -> Iterator[Doc]:
        """Yield one `spacy.tokens.Doc` per text; memory holds one batch at a time."""
        pipeline = self._pipeline()
        processes = self._processes or (_cores() if len(texts) >= _FEW else 1)
        return cast(Iterator[Doc], pipeline.pipe(texts, batch_size=self._batch_size, n_process=processes))

    def _pipeline(self) -> Any:
        if self._loaded is None:
            try:
                self._loaded = _spacy().load(self._model, exclude=["ner"])
            except OSError:
                raise self._missing() from None
            if "parser" not in self._loaded.pipe_names:
                raise UsageError(f"the spaCy model {self._model!r} has no parser; use one that has, {SPACY_MODEL}")
        return self._loaded


def _spacy() -> Any:
    try:
        import spacy
    except ModuleNotFoundError:
        raise UsageError(
            "the parser needs spaCy; install it in a checkout of equivox: "
            f'`pip install -c constraints.txt ".[genres]"`, or {WITHOUT}'
        ) from None
    return spacy


def _cores() -> int:
    return max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


STAND_IN: Final = "stand-in"
"""The name of the rules that replace a model, in settings and in tables."""


class StandInParser:
    """A few rules instead of a parser, so that everything else can run without a model.

    A sentence has one subject phrase: the first word or coordinated words, capitalised or a pronoun, at its beginning,
    after an introduction and a comma, or next to the verb of saying of a quotation. It misses phrases as subjects, and
    takes some objects for subjects: its figures show that the pipeline runs, not what a model does.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name that is shown with every figure that depends on it."""
        return {"parser": STAND_IN, "version": "1"}

    def check(self) -> None:
        """Do nothing: no installation is needed."""

    def version(self) -> str:
        """Return the name and version of the rules."""
        return "stand-in rules 1, no parser"

    def parse(self, texts: Sequence[str]) -> Iterator[Doc]:
        """Yield one parse per text."""
        for text in texts:
            yield _parse(text)


Parser = SpacyParser | StandInParser

_SENTENCE = re.compile(r"(?<=[.!?])(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)[\"”’']*\s+(?=[\"“\u2018'A-Z])|\n+")
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|[^\w\s]")


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(words()["stand_in"][name].split())


def _parse(text: str) -> Doc:
    sentences: list[Sentence] = []
    position = 0
    for piece in _SENTENCE.split(text):
        piece = piece.strip()
        found = [m.group() for m in _WORD.finditer(piece)]
        if not found:
            continue
        tokens = [Token(position + n, word, lemma_=_lemma(word)) for n, word in enumerate(found)]
        position += len(tokens)
        root = _root(tokens)
        for token in tokens:
            token.head = root if token is not root else token
            if token is not root:
                root.children.append(token)
        root.dep_, root.pos_ = "ROOT", "VERB"
        for token in _subject(tokens):
            if token is not root:
                token.dep_, token.pos_ = "nsubj", "PROPN"
        sentences.append(Sentence(piece, tokens, root))
    return Doc(sentences)


def _root(tokens: Sequence[Token]) -> Token:
    subject = _subject(tokens)
    after = [token for token in tokens if subject and token.i > subject[-1].i and token.text[0].isalpha()]
    return after[0] if after else next((t for t in tokens if t not in subject), tokens[-1])


def _subject(tokens: Sequence[Token]) -> list[Token]:
    quotes = [n for n, token in enumerate(tokens) if token.text in '"“”']
    if len(quotes) >= 2:
        # "…," Ana said. / "…," said Ana.
        after = tokens[quotes[1] + 1 :]
        if len(after) >= 2 and after[0].text.casefold() in _listed("said") and _may_be_subject(after[1]):
            return [after[1]]
        if found := _phrase(after, 0):
            return found
        before = tokens[: quotes[0]]
        return _phrase(before, 0)
    if quotes:
        tokens = [token for token in tokens if token.text not in '"“”']
    if tokens and tokens[0].text.casefold() in _listed("introduces"):
        comma = next((n for n, token in enumerate(tokens) if token.text == ","), None)
        return _phrase(tokens, comma + 1) if comma is not None else []
    return _phrase(tokens, 0)


def _phrase(tokens: Sequence[Token], start: int) -> list[Token]:
    """Return the words of the subject that begins at `start`: one, or several joined by "and"."""
    if start >= len(tokens) or not _may_be_subject(tokens[start]):
        return []
    found = [tokens[start]]
    n = start + 1
    while n + 1 < len(tokens) and tokens[n].text.casefold() == "and" and _may_be_subject(tokens[n + 1]):
        found.append(tokens[n + 1])
        n += 2
    return found


def _may_be_subject(token: Token) -> bool:
    word = token.text
    if word.endswith(("'s", "’s", "'", "’")):
        return False
    return word.casefold() in _listed("pronouns") or (
        word[0].isupper() and word.casefold() not in _listed("introduces")
    )


@lru_cache(maxsize=1 << 16)
def _lemma(word: str) -> str:
    """Strip the most common endings.

    >>> [_lemma(word) for word in ("Smiles", "worried", "hoping", "glass", "cities")]
    ['smile', 'worry', 'hope', 'glass', 'city']
    """
    low = word.casefold()
    for ending, instead in (("ies", "y"), ("ied", "y")):
        if low.endswith(ending) and len(low) > len(ending) + 1:
            return low[: -len(ending)] + instead
    if low.endswith("s") and not low.endswith(("ss", "us", "is")) and len(low) > 3:
        return low[:-1]
    for ending in ("ing", "ed"):
        stem = low.removesuffix(ending)
        if stem != low and len(stem) > 2 and re.search("[aeiouy]", stem):
            if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz":
                return stem[:-1]
            return stem + "e" if re.fullmatch(r".*[^aeiou][aeiou][^aeiouwxy]", stem) else stem
    return low
