"""Words are found whole and in any case, as a regular expression that says just that finds them."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from equivox.configs.vocabulary import AttributeVocabulary

WORDS = {
    "single": ("single", "Not married"),
    "single parent": ("single parent",),
    "time": ("time", "part-time", "o'clock"),
}
VOCABULARY = AttributeVocabulary(WORDS)
PIECES = [
    "single",
    "Single",
    "parent",
    "not MARRIED",
    "time",
    "part",
    "o’clock",
    "-",
    "_",
    " ",
    "x",
    "İ",
    "é",
    "ß",
    ".",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_mentions_are_those_of_a_plain_search(text: str) -> None:
    value_of = {word.lower(): value for value, words in WORDS.items() for word in words}
    either = "|".join(map(re.escape, sorted(value_of, key=len, reverse=True)))
    expected: dict[str, str] = {}
    for match in re.finditer(rf"(?<![\w-])(?:{either})(?![\w-])", text.replace("’", "'"), re.IGNORECASE):
        expected.setdefault(value_of[match.group().lower()], match.group())
    assert VOCABULARY.mentions(text) == list(expected.items())


def test_a_part_of_a_word_is_no_mention() -> None:
    assert VOCABULARY.mentions("xsingle singles part-time overtime") == [("time", "part-time")]
    assert VOCABULARY.mentions("a notmarried, Not Married SINGLE PARENT") == [
        ("single", "Not Married"),
        ("single parent", "SINGLE PARENT"),
    ]
