"""Closed vocabularies: the values of each attribute, with the words for each value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from equivox.configs import load_config
from equivox.core.errors import UsageError
from equivox.core.task import Attribute, digest
from equivox.core.text import NO_SPACES, is_mark, one_coding

_WORDS_BETWEEN = r"(?: [^.,;:!?\n\u060c\u0964]{0,40}?|,[^.,;:!?\n]{0,40},)? "
_SIGNS_BETWEEN = r"[^.!?\n\u3002,\uff0c]{0,8}?"
"""What ` … ` and `…` stand for in a phrase: a few words of one clause; a few signs of a script without spaces."""


class _Words:
    """Words and phrases, as regular expressions, to be found in texts as whole words and in any case."""

    def __init__(self, words: Iterable[str]) -> None:
        # Longest first, so that "single parent" does not match "single".
        alternatives = "|".join(sorted(words, key=len, reverse=True))
        # In lower case and without a look behind, `re` skips to the first letters of the words: twice as fast.
        self._pattern = re.compile(rf"(?:{alternatives})(?!-|(?!{NO_SPACES})\w)")

    def found(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what was found in `text` from left to right: in lower case, and as written."""
        written, lower = _spelled(text)
        start = 0
        while match := self._pattern.search(lower, start):
            begin, start = match.span()
            if (begin and _continues(lower[begin - 1])) or is_mark(lower[start : start + 1] or " "):
                start = begin + 1
            else:
                yield match.group(), written[begin:start]


@lru_cache(maxsize=8)
def _spelled(text: str) -> tuple[str, str]:
    """Return `text` in one coding, as written and in lower case; many words are searched in one text."""
    written = one_coding(text).replace("\u2019", "'").replace("\u2018", "'")
    return written, _lower(written)


_QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|»[^«»\n]*«|「[^」\n]*」|『[^』\n]*』')
_LABEL = re.compile(r"\A\s*\w+\s*[:\uff1a]")


def _unquoted(text: str) -> str:
    """Return `text` without what stands in double quotation marks; "" if no word is left but a label ("Answer:")."""
    left = _QUOTED.sub(" ", text)
    return left if any(letter.isalpha() for letter in _LABEL.sub("", left)) else ""


def _lower(text: str) -> str:
    """Return `text` in lower case, letter by letter."""
    # The capital I with a dot of Turkish is the one sign whose lower case has two.
    return text.replace("\u0130", "i").lower()


def _continues(letter: str) -> bool:
    return letter in "_-" or ((letter.isalnum() or is_mark(letter)) and not re.match(NO_SPACES, letter))


@dataclass(frozen=True)
class AttributeVocabulary:
    """The values of one attribute with the words for each value, in the order of the file."""

    words: Mapping[str, tuple[str, ...]]

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The canonical values."""
        return tuple(self.words)

    @cached_property
    def _value_of(self) -> dict[str, str]:
        return {_lower(one_coding(word)): value for value, words in self.words.items() for word in words}

    @cached_property
    def _words(self) -> _Words:
        return _Words(map(re.escape, self._value_of))

    def mentions(self, text: str) -> list[tuple[str, str]]:
        """Return `(value, words as written)` for each value that `text` mentions, in order of first mention."""
        found: dict[str, str] = {}
        for word, written in self._words.found(text):
            found.setdefault(self._value_of[word], written)
        return list(found.items())


@dataclass(frozen=True)
class Refusals:
    """What declines a request in one language: phrases as regular expressions, and words of which each has one."""

    contains: tuple[str, ...]
    phrases: tuple[str, ...]

    @cached_property
    def _words(self) -> _Words:
        phrases = (one_coding(phrase).replace(" … ", _WORDS_BETWEEN) for phrase in self.phrases)
        return _Words(phrase.replace("…", _SIGNS_BETWEEN) for phrase in phrases)

    def found(self, text: str) -> bool:
        """Return whether `text` has one of the phrases."""
        return any(True for _ in self._words.found(text))


@dataclass(frozen=True)
class Vocabulary:
    """The vocabularies of all attributes, and what declines a request in each language."""

    attributes: Mapping[str, AttributeVocabulary]
    refusals: tuple[Refusals, ...]
    digest: str

    def knows(self, attribute: Attribute) -> bool:
        """Return whether there is a vocabulary of `attribute`."""
        return attribute.name in self.attributes

    def of(self, attribute: Attribute) -> AttributeVocabulary:
        """Return the vocabulary of `attribute`: its words, the packaged one, or its options; else UsageError."""
        known = self._found.get(id(attribute))
        if known is None or known[0] is not attribute:
            # The attribute is stored with its vocabulary, so that its id cannot be reused.
            known = self._found[id(attribute)] = attribute, self._find(attribute)
        return known[1]

    @cached_property
    def _found(self) -> dict[int, tuple[Attribute, AttributeVocabulary]]:
        return {}

    def _find(self, attribute: Attribute) -> AttributeVocabulary:
        packaged = self.attributes.get(attribute.name)
        if packaged and attribute.options and set(packaged.values) != set(attribute.options):
            packaged = None  # the packaged vocabulary belongs to another attribute of that name
        return _own_words(attribute) or packaged or _options(attribute)

    def declines(self, text: str) -> bool:
        """Return whether `text` declines the request with one of the listed phrases.

        What a person in a story says in quotation marks declines nothing, unless the text is nothing but that or a
        label ("Answer:") and that.
        """
        return self._has_phrase(text) and self._has_phrase(_unquoted(text) or text)

    def _has_phrase(self, text: str) -> bool:
        lower = _spelled(text)[1]
        # A loop is three times as fast as `any`, and most texts contain none of the words.
        for word, language in self._signs:  # noqa: SIM110
            if word in lower and language.found(text):
                return True
        return False

    @cached_property
    def _signs(self) -> list[tuple[str, Refusals]]:
        return [(word, language) for language in self.refusals for word in language.contains]


@cache
def load_vocabulary() -> Vocabulary:
    """Return the vocabularies of `configs/annotators/rules.yaml`."""
    document = load_config("annotators/rules.yaml")
    return Vocabulary(
        attributes={
            name: AttributeVocabulary({value: (value, *words) for value, words in values.items()})
            for name, values in document["attributes"].items()
        },
        refusals=tuple(Refusals(tuple(one["contains"]), tuple(one["phrases"])) for one in document["refusal"].values()),
        digest=digest(document),
    )


@cache
def _own_words(attribute: Attribute) -> AttributeVocabulary | None:
    return AttributeVocabulary(dict(attribute.words)) if attribute.words else None


@cache
def _options(attribute: Attribute) -> AttributeVocabulary:
    if attribute.options:
        return AttributeVocabulary({option: (option,) for option in attribute.options})
    raise UsageError(
        f"`annotator` rules has no vocabulary for the attribute {attribute.name!r}; give it `words`, "
        "or choose another annotator"
    )
