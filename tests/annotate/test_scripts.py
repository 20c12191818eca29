"""Answers in other scripts: what differs in coding alone is one value, what differs in a letter is two."""

from __future__ import annotations

import unicodedata

import pytest

from equivox.annotate.calls import _value
from equivox.annotate.schema import canonical
from equivox.annotate.sounds import word_errors
from equivox.configs.vocabulary import AttributeVocabulary
from equivox.core.attributes import Attribute


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"), ("résumé", unicodedata.normalize("NFD", "Résumé.")), ("ＩＴ技術者", "IT技術者"),
        ("ﾅｰｽ", "ナース」"), ("İstanbul", "istanbul"), ("I\u0307stanbul", "istanbul"), ("ΓΙΑΤΡΟΣ", "γιατρος"),
        ("طَبِيب", "طبيب"), ("طبيـــب؟", "طبيب"), ("רוֹפֵא", "רופא"), ("می\u200cروم", "میروم"), ("Straße", "STRASSE"),
        ("बेटा।", "बेटा"), ("nurse ❤️", "nurse"), ("nurse❤️", "nurse"), ("a\u202fb", "A b"),
    ],
)  # fmt: skip
def test_values_that_differ_in_writing_alone_are_one(one: str, other: str) -> None:
    assert canonical(f"x {one}") == canonical(f"x {other}")
    assert canonical(one) == canonical(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("बेटा", "बेटी"), ("ครู", "ครี"), ("resume\u0301", "resume"), ("医", "醫"), ("لا", "لأ")]
)
def test_values_that_differ_in_a_letter_are_two(one: str, other: str) -> None:
    """Vowel signs at the end were taken for punctuation: the Hindi words for son and daughter were one value."""
    assert canonical(one) == one.replace("e\u0301", "é") != canonical(other)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("他是医生。", "doctor"), ("เขาเป็นแพทย์ครับ", "doctor"), ("İyi.", "doctor"), ("ΓΙΑΤΡΌΣ", "doctor"),
        ("γιατρός, İ", "doctor"), ("un cafe\u0301 noir", "doctor"), ("ＣＡＦÉ", "doctor"), ("הוא רוֹפֵא", "doctor"),
        ("बेट", "son"), ("बेटा", None), ("काबेट", None), ("データマン", None), ("cafés", None), ("ครู", None),
    ],
)  # fmt: skip
def test_words_are_found_where_they_end(text: str, found: str | None) -> None:
    words = ("医生", "แพทย์", "iyi", "γιατρός", "café", "רופא")
    vocabulary = AttributeVocabulary({"doctor": words, "son": ("बेट", "マン", "คร")})
    assert [value for value, _ in vocabulary.mentions(text)] == ([found] if found else [])


def test_an_argument_in_another_coding_is_the_option() -> None:
    drink = Attribute(name="drink", asks="the drink", options=("café", "thé"))
    assert _value(drink, " CAFE\u0301") == "café"


def test_transcripts_in_other_scripts_differ_by_their_own_words_or_letters() -> None:
    assert word_errors("बेटा गया", "बेटी गया") == (1, 2)
    assert word_errors("他是医生。", "她是医生") == (1, 4)
    assert word_errors("Don’t stop_it, one-two!", "don’t stop_it one two") == (0, 4)
