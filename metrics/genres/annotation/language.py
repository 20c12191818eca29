"""Sentences whose subject is a character (M3, and with it M5 and M6).

The input is a parse by spaCy or in the same form. A sentence counts for a character if a subject of its main clause,
active or passive, is the character's name or a pronoun for the character; of two coordinated subjects both count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equivox.core.errors import UsageError
from equivox.metrics.genres.annotation.parsers import Doc, Token, words

VERSION = "1"
"""Raised whenever the rules give other results for the same parse."""

SUBJECTS = frozenset({"nsubj", "nsubjpass", "nsubj:pass"})
"""Dependency labels of subjects, in the schemes of ClearNLP and Universal Dependencies."""

PRONOUNS: Mapping[str, tuple[str, ...]] = {"male": ("he",), "female": ("she",)}
"""The subject pronouns by gender; "they" is left out, because it most often means both characters."""

_PUBLISHED_WORDS: Mapping[str, tuple[str, ...]] = {
    "female": ("she", "her", "hers", "herself", "She", "Her", "Hers", "Herself"),
    "male": ("he", "him", "his", "himself", "He", "Him", "His", "Himself"),
}


@dataclass(frozen=True)
class Character:
    """A character that the prompt names; `gender` determines the pronouns for them, "" for none."""

    name: str
    gender: str = ""

    @property
    def words(self) -> frozenset[str]:
        """The words of the name."""
        return frozenset(self.name.split())


@dataclass(frozen=True, kw_only=True)
class Passage:
    """The subject sentences in a narrative.

    Attributes
    ----------
    sentences
        By name, the sentences that have the character as their subject.
    lemmas
        By name, the words of the sentences in which emotion words are counted: of the same sentences, except with
        `paper_compat`.
    n_sentences
        The number of all sentences.
    unresolved
        The number of subject pronouns of a character's gender that mean somebody else, or could mean two characters.
    """

    sentences: Mapping[str, Sequence[str]]
    lemmas: Mapping[str, Sequence[Sequence[str]]]
    n_sentences: int
    unresolved: int


def read_passage(doc: Doc, characters: Sequence[Character], *, paper_compat: bool = False) -> Passage:
    """Return the subject sentences of `characters` in a parsed narrative.

    Parameters
    ----------
    paper_compat
        Count as the released code does: the root must be tagged as a verb ("Ana was happy" has none), the words of
        the whole first subject must be the name or one of the gender's pronouns, and nothing is resolved. Emotion
        words are then counted in the sentences whose first subject anywhere is one of those words.

    Raises
    ------
    UsageError
        Two characters have the same name.
    """
    if len({character.name for character in characters}) != len(characters):
        raise UsageError(f"two characters are called {characters[0].name!r}; give each a name of their own")
    resolver = _Resolver(characters)
    sentences: dict[str, list[str]] = {character.name: [] for character in characters}
    counted: dict[str, list[list[str]]] = {character.name: [] for character in characters}
    every = list(doc.sents)
    for sentence in every:
        tokens = list(sentence)
        if paper_compat:
            whose, felt = _as_published(sentence.root, tokens, characters)
        else:
            whose = felt = resolver.subjects(sentence.root, tokens)
        for name in whose:
            sentences[name].append(sentence.text.strip())
        for name in felt:
            counted[name].append([token.lemma_ for token in tokens])
    return Passage(sentences=sentences, lemmas=counted, n_sentences=len(every), unresolved=resolver.unresolved)


def _main_subjects(root: Token) -> Iterable[Token]:
    """Yield the heads of the subjects of the main clause and of clauses coordinated with it, and their conjuncts."""
    clauses = [root]
    for clause in clauses:
        for child in clause.children:
            if child.dep_ == "conj":
                clauses.append(child)
            elif child.dep_ in SUBJECTS:
                yield child
                yield from _conjuncts(child)


def _conjuncts(token: Token) -> Iterable[Token]:
    for child in token.children:
        if child.dep_ == "conj":
            yield child
            yield from _conjuncts(child)


class _Resolver:
    """Remembers the person mentioned last, by gender, while the words of a passage are processed in order."""

    def __init__(self, characters: Sequence[Character]) -> None:
        self._characters = characters
        self._named_by: dict[str, list[Character]] = {}
        for character in characters:
            for word in character.words:
                self._named_by.setdefault(word, []).append(character)
        self._gender_of = {word: gender for gender, words in PRONOUNS.items() for word in words}
        self._others = {gender: frozenset(line.split()) for gender, line in words()["others"].items()}
        self._new, self._titles = frozenset(words()["new"].split()), frozenset(words()["titles"].split())
        self._last: dict[str, Character | None] = {}
        self.unresolved = 0

    def subjects(self, root: Token, tokens: Sequence[Token]) -> list[str]:
        """Return the names of the characters who are subjects of a sentence, each once; its words are processed."""
        subjects = {token.i for token in _main_subjects(root)}
        whose: dict[str, None] = {}
        for token in tokens:
            named = self.see(token)
            if token.i in subjects and (character := named or self.pronoun(token, tokens)) is not None:
                whose[character.name] = None
        return list(whose)

    def see(self, token: Token) -> Character | None:
        """Return the character that `token` names, if any, and remember the mentioned person."""
        character = self._named(token)
        if character is not None:
            if self._alone(character.gender) or token.dep_ in SUBJECTS or character.gender not in self._last:
                self._last[character.gender] = character
            return character
        if token.dep_ in SUBJECTS:
            for gender, others in self._others.items():
                if token.text.casefold() in others or self._title(token) in others:
                    determiners = {child.text.casefold() for child in token.children if child.dep_ in {"det", "nummod"}}
                    if determiners & self._new or self._title(token):
                        self._last[gender] = None
        return None

    def pronoun(self, token: Token, sentence: Sequence[Token]) -> Character | None:
        """Return the character that the subject pronoun `token` refers to; None for other people."""
        gender = self._gender_of.get(token.text.casefold())
        of_gender = [c for c in self._characters if gender is not None and c.gender == gender]
        if not of_gender:
            return None
        if gender in self._last:
            character = self._last[gender]
        else:
            # "As she rose, Ana smiled": the name comes later in the sentence.
            later = {c.name: c for t in sentence if t.i > token.i for c in of_gender if t.text in c.words}
            character = next(iter(later.values())) if len(later) == 1 else None
        self.unresolved += character is None
        return character

    def _title(self, token: Token) -> str:
        """Return the title before a name ("Mrs." of "Mrs. Hill"), or ""."""
        before = [child.text.casefold() for child in token.children if child.dep_ == "compound"]
        return next((word for word in before if word in self._titles), "")

    def _alone(self, gender: str) -> bool:
        return sum(character.gender == gender for character in self._characters) == 1

    def _named(self, token: Token) -> Character | None:
        candidates = self._named_by.get(token.text, [])
        if len(candidates) > 1:
            around = {child.text for child in token.children} | {token.head.text}
            candidates = [c for c in candidates if (c.words - {token.text}) & around]
        return candidates[0] if len(candidates) == 1 else None


def _as_published(root: Token, tokens: Sequence[Token], characters: Sequence[Character]) -> tuple[list[str], list[str]]:
    """Return the names of whom a sentence counts for, and of those for whom its emotion words do."""
    subject = next((c for c in root.children if c.dep_ in SUBJECTS and c.i < root.i), None)
    phrase = "" if subject is None or root.pos_ != "VERB" else " ".join(t.text for t in subject.subtree)
    first = next((token.text for token in tokens if token.dep_ in SUBJECTS), "")
    own_words = {c.name: {c.name, *_PUBLISHED_WORDS.get(c.gender, ())} for c in characters}
    told, felt = ([name for name, own in own_words.items() if words in own] for words in (phrase, first))
    return told, felt


def count_emotion_words(lemmas: Iterable[Sequence[str]], lexicon: Mapping[str, frozenset[str]]) -> int:
    """Count emotion words: each occurrence counts once per category that the word has.

    >>> count_emotion_words([["Calm", "and", "glad"], ["calm"]],
    ...                     {"calm": frozenset({"positive", "trust"}), "glad": frozenset({"joy"})})
    5
    """
    return sum(len(lexicon.get(lemma.lower(), ())) for sentence in lemmas for lemma in sentence)
