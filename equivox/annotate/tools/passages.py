"""What a parser returns: a document of sentences of tokens, in the words of spaCy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Token(Protocol):
    """One word of a parse, as spaCy's tokens have it."""

    i: int
    text: str
    dep_: str
    pos_: str
    lemma_: str

    @property
    def head(self) -> Token:
        """The word that this one depends on; itself for the root."""
        ...

    @property
    def children(self) -> Iterable[Token]:
        """The words that depend on this one, in order."""
        ...

    @property
    def subtree(self) -> Iterable[Token]:
        """All words that depend on this one, itself included, in order."""
        ...


class Sentence(Protocol):
    """One sentence of a parse."""

    @property
    def text(self) -> str:
        """Its words as written."""
        ...

    @property
    def root(self) -> Token:
        """The word that the others depend on."""
        ...

    def __iter__(self) -> Iterable[Token]: ...


class Doc(Protocol):
    """A parsed text."""

    @property
    def sents(self) -> Iterable[Sentence]:
        """Its sentences, in order."""
        ...
