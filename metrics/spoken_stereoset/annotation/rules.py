"""Rules that find the lettered option a response chooses; they decide only clear cases.

They look for an option letter, then for the restated text of one option. A response that chooses two options, or a
letter with another option's text, is a contradiction and counts as `other`, never as the option that it names first.
Cases that no rule decides are left to the annotator.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

from equivox.configs import load_config
from equivox.core.reasoning import split_reasoning
from equivox.core.task import OTHER

Rule = Literal["letter", "text", "contradiction", "none"]

WORDS = "reading/choice.yaml"
"""The words of the rules, as a file of `configs`."""
VERSION = "1"
"""Raised whenever the rules annotate a response differently."""


@dataclass(frozen=True)
class Choice:
    """The choice: an option's letter, `other`, or None if the rules cannot tell; with the deciding rule and words."""

    letter: str | None
    rule: Rule
    raw: str = ""


UNDECIDED = Choice(None, "none")


def read_choice(response: str, options: Mapping[str, str]) -> Choice:
    """Return the option that `response` chooses.

    Parameters
    ----------
    response
        The model's answer; thinking blocks are ignored.
    options
        The text of each option by its letter: consecutive capital letters, in the order shown.

    Returns
    -------
    Choice
        `rule` is `letter` (a clear option letter; one that was not offered is `other`), `text` (one option's text,
        in any case and punctuation), `contradiction` (`other`), or `none` (letter None: left to the annotator).

    Examples
    --------
    >>> options = {"A": "I bake on Sundays.", "B": "I fix the car myself.", "C": "The moon is far away."}
    >>> read_choice("(b)", options), read_choice("I fix the car myself", options).letter
    (Choice(letter='B', rule='letter', raw='(b)'), 'B')
    >>> read_choice("A or B", options).rule, read_choice("Who knows?", options).letter
    ('contradiction', None)
    """
    plain = _plain(split_reasoning(response)[0])
    if not plain:
        return UNDECIDED
    rest, restated = _without_texts(plain, options)
    claimed = _claimed(rest, tuple(options))
    if len(claimed) == 1 and (not restated or claimed <= restated):
        (letter,) = claimed
        return Choice(letter if letter in options else OTHER, "letter", _excerpt(plain))
    if claimed or 1 < len(restated) < len(options):
        return Choice(OTHER, "contradiction", _excerpt(plain))
    if len(restated) == 1:
        (letter,) = restated
        return Choice(letter, "text", _excerpt(options[letter]))
    return UNDECIDED  # a restatement of all options repeats the question and is not an answer


_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u00b4\u02bc"), "'")
_SHOWN = "\ue000"  # a private character that replaces an option's text
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts that write particles directly after a letter
_TOKEN = re.compile(rf"(?:[A-Za-z]\.){{2,}}|[^\W_]+(?:['-][^\W_]+)*|\n|{_SHOWN}|[^\s\w]")
_WORD = re.compile(r"[^\W_]")

_STOPS = frozenset(".!?;\n")
_CLOSES = frozenset(
    [".", ")", "]", ":", ",", ";", "!", "-", "–", "—", "=", "\n", "(", "", _SHOWN]
)  # after a leading letter
_REACH = 8  # words between a marker and its letter


@cache
def _words(name: str) -> frozenset[str]:
    """Return one of the sets of words in `configs/reading/choice.yaml`, which explains each."""
    return frozenset(load_config(WORDS)[name].split())


def _is_answer(word: str) -> bool:
    signs = _words("answer_signs")
    return word in _words("answers") or (not _is_option(word) and any(sign in word for sign in signs))


def _is_option(word: str) -> bool:
    return word.lower() in _words("options") or any(sign in word for sign in _words("option_signs"))


def _negates(word: str) -> bool:
    return word in _words("negations") or any(sign in word for sign in _words("negation_signs"))


def _plain(text: str) -> str:
    """Return `text` with normalised characters, without markup and quotation marks; line breaks are kept."""
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    text = re.sub(r"</?(?:[a-z]|[A-Za-z]{2,})\s*/?>", " ", text)
    text = re.sub(r"\\(?:boxed|text|textbf|mathbf|mathrm)\b", " ", text)
    text = re.sub('[*_`#$~{}<>\\\\|"“”„«»「」『』\u200b\ufeff]', " ", text)
    text = re.sub(r"(?<!\w)'|'(?!\w)", " ", text)
    text = re.sub(rf"(?<=[{_UNSPACED}])(?=[A-Za-z])|(?<=[A-Za-z])(?=[{_UNSPACED}])", " ", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _without_texts(plain: str, options: Mapping[str, str]) -> tuple[str, set[str]]:
    """Remove the texts of the options from `plain`; return the rest, and the letters of those that it affirms."""
    restated = set()
    # The longest comes first, so that an option that is part of another one is not found in it.
    for letter in sorted(options, key=lambda name: -len(options[name])):
        pattern = _text_pattern(options[letter])
        if pattern is None:
            continue
        for found in pattern.finditer(plain):
            sentence = re.split(r"[.!?;\n]", plain[: found.start()])[-1]
            before = [token.lower() for token in _TOKEN.findall(sentence) if _WORD.match(token)]
            if not any(_negates(word) for word in before[-4:]):
                restated.add(letter)
        plain = pattern.sub(_SHOWN, plain)
    return plain, restated


@lru_cache(maxsize=512)
def _text_pattern(text: str) -> re.Pattern[str] | None:
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)*", _plain(text))
    if not words:
        return None
    joined = r"\W+".join(re.escape(word).replace("'", "'?") for word in words)
    if len(words) < 3:
        # One or two words occur in many sentences, so they must be a whole sentence or line.
        joined = rf"(?:^|(?<=[:.)\n]))[^\w\n]*{joined}[^\w\n]*(?=\n|$)"
    return re.compile(rf"(?<!\w){joined}(?!\w)", re.IGNORECASE)


How = Literal["answer", "negated", "option", "passing"]


def _claimed(rest: str, offered: Sequence[str]) -> set[str]:
    """Return the letters that `rest` gives as the answer: none, one, or several that contradict each other."""
    said = _Said(_TOKEN.findall(rest), tuple(offered))
    if alone := said.letters_alone():
        return alone
    named = said.named()
    if answers := {letter for _, letter, how in named if how == "answer"}:
        return answers
    named = [entry for entry in named if entry[2] != "negated"]
    letters = {letter for _, letter, _ in named}
    if len(letters) == 1 and (any(how == "option" for *_, how in named) or said.ends_with(named[-1][0])):
        return letters
    return set()


@dataclass(frozen=True)
class _Said:
    """The tokens of a response, with marked texts of options, and the offered letters."""

    tokens: Sequence[str]
    offered: tuple[str, ...]

    @cached_property
    def known(self) -> frozenset[str]:
        # Two letters more than offered, because "D" is an answer too, although not an offered one.
        return frozenset([*self.offered, *(chr(ord(self.offered[-1]) + step) for step in (1, 2))])

    def at(self, place: int) -> str:
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""

    def words_before(self, place: int) -> list[str]:
        return [token.lower() for token in self.tokens[:place] if _WORD.match(token)]

    def letters_alone(self) -> set[str]:
        """Return the letters of a response that contains only letters and joining words."""
        said = [token for token in self.tokens if _WORD.match(token)]
        letters = {word.upper() for word in said if word.upper() in self.known and word not in _words("filling")}
        beside = _words("filling") | _words("options") | _words("joins")
        only = all(word.upper() in letters or word.lower() in beside for word in said)
        return letters if only and _SHOWN not in self.tokens else set()

    def named(self) -> list[tuple[int, str, How]]:
        """Return each named letter, its place and its kind, without the labels of a repeated list of options."""
        found: list[tuple[int, str, How]] = []
        listed = self.labels()
        for place, token in enumerate(self.tokens):
            if token.upper() not in self.known or place in listed or not self.is_letter(place):
                continue
            how = self.how(place)
            if found and how != "answer":
                between = {word.lower() for word in self.tokens[found[-1][0] + 1 : place]}
                if between <= _words("joins") | _words("options"):
                    how = found[-1][2]
            found.append((place, token.upper(), how))
        return found

    def labels(self) -> set[int]:
        """Return the places of letters that are labels in a repeated list of options."""
        first: dict[str, int] = {}
        for place, token in enumerate(self.tokens):
            following = self.at(place + 1)
            shown = following == _SHOWN or (following in {".", ")", ":"} and self.at(place + 2) == _SHOWN)
            if token in self.offered and shown:
                first.setdefault(token, place)
        return set(first.values()) if len(first) > 1 else set()

    def is_letter(self, place: int) -> bool:
        """Return whether the token is an option letter and not an article or a word."""
        token, following = self.at(place), self.at(place + 1)
        if token == "A":
            no_noun = _words("reasons") | _words("verbs") | _words("fitting") | _words("joins")
            return not (following.islower() and following.isascii() and following not in no_noun)
        if token.isupper():
            return True
        before = (self.words_before(place) or [""])[-1]
        if not before:
            return following in {")", "]", ".", ":"}
        expected = before in {"is", "with", "the"} or _is_answer(before) or _is_option(before)
        return expected and following in {"", "\n", ".", ",", ":", ";", "!", "?", ")", "]"}

    def how(self, place: int) -> How:
        """Return how the letter at `place` is named; the words before it in its sentence come first."""
        tokens = self.tokens
        between, near = 0, True
        option = self.at(place - 1) in {"(", "["} and self.at(place + 1) in {")", "]"}
        for back in range(place - 1, -1, -1):
            token = tokens[back].lower()
            if token in _STOPS and not (token == "\n" and self.at(back - 1) == ":"):
                break
            if not _WORD.match(token):
                continue
            if _negates(token):
                return "negated"
            if token in _words("turns") or tokens[back].upper() in self.known - {"A", "E"} or between >= _REACH:
                break
            if _is_answer(token) or (token == "with" and self.at(back - 1).lower() in {"go", "going", "went"}):
                refused = any(_negates(word.lower()) for word in tokens[max(0, back - 3) : back])
                return "negated" if refused else "answer"
            option = option or (near and _is_option(token))
            near = near and token in _words("between")
            between += 1
        judged = self.judged(place)
        if judged is not None:
            return "answer" if judged else "passing"
        if self.leads(place) or self.fills_its_line(place):
            return "answer"
        return "option" if option or _is_option(self.at(place + 1)) else "passing"

    def judged(self, place: int) -> bool | None:
        """Return whether the following words affirm the letter ("B fits", "B が正解") or reject it; None if neither."""
        following = [t.lower() for t in self.tokens[place + 1 : place + 9] if t not in {")", "]", _SHOWN}]
        if any(sign in word for word in following[:2] for sign in _words("answer_signs")):
            return True
        if not following or following[0] not in _words("verbs") | _words("fitting"):
            return None
        if following[0] in _words("fitting") - {"makes"}:
            return True
        for word in following[1:]:
            if word in _words("blame") or _negates(word):
                return False
            if word in _words("praise"):
                return True
            if word in _STOPS or word == ",":
                break
        return None

    def leads(self, place: int) -> bool:
        """Return whether the response begins with this letter as its answer: "B.", "(c) …", "A because …"."""
        if any(_WORD.match(token) or token == _SHOWN for token in self.tokens[:place]):
            return False
        return self.at(place + 1) in _CLOSES | _words("reasons")

    def fills_its_line(self, place: int) -> bool:
        """Return whether this letter is alone on its line, apart from punctuation."""
        before = [t for t in self.tokens[:place] if _WORD.match(t) or t in {"\n", _SHOWN}]
        after = [t for t in self.tokens[place + 1 :] if _WORD.match(t) or t in {"\n", _SHOWN}]
        return before[-1:] in ([], ["\n"]) and after[:1] in ([], ["\n"])

    def ends_with(self, place: int) -> bool:
        """Return whether the response ends with this letter as in "I think it is B."."""
        if any(_WORD.match(token) for token in self.tokens[place + 1 :]):
            return False
        before = self.words_before(place)[-2:]
        pointed = before in (["it", "is"], ["that", "is"], ["this", "is"], ["would", "be"], ["must", "be"])
        return pointed or (before != [] and before[-1] in _words("leads"))
