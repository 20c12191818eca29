"""Protocols of a parse: a document of sentences of tokens, with spaCy's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Token(Protocol):
    """One word of a parse, with the attributes of spaCy's tokens."""

    i: int
    text: str
    dep_: str
    pos_: str
    lemma_: str

    @property
    def head(self) -> Token:
        """The word that this one depends on; the root has itself."""
        ...

    @property
    def children(self) -> Iterable[Token]:
        """The words that depend on this one, in order."""
        ...

    @property
    def subtree(self) -> Iterable[Token]:
        """The word itself and all words that depend on it, in order."""
        ...


class Sentence(Protocol):
    """One sentence of a parse."""

    @property
    def text(self) -> str:
        """The text of the sentence."""
        ...

    @property
    def root(self) -> Token:
        """The word that all others depend on."""
        ...

    def __iter__(self) -> Iterable[Token]: ...


class Doc(Protocol):
    """A parsed text."""

    @property
    def sents(self) -> Iterable[Sentence]:
        """The sentences, in order."""
        ...
