"""Answers in other scripts: what differs in coding alone is one value, what differs in a letter is two."""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata

import pytest

from equivox.annotate.numeric import first_number, number_in, number_of
from equivox.annotate.schema import canonical, response_form
from equivox.configs.vocabulary import AttributeVocabulary
from equivox.core.attributes import Attribute, Length, Number
from equivox.core.columns import refuse_alike
from equivox.core.errors import UsageError
from equivox.labels.reading import label_of


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
    assert label_of("cafe\u0301", drink, "line 1") == ("café",)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1\u2009234,5 €", 1234.5), ("١٬٢٣٤", 1234), ("٣٫٥", 3.5), ("１２３，４５６円", 123456), ("１．５", 1.5),
        ("薪水是30，2年后再说", 30), ("－5", -5), ("５０〜６０", 50), ("5千円", 5000), ("3천만원", 3e7),
        ("5백만원", 5e6), ("300百万円", 3e8), ("1兆円", 1e12), ("5 लाख", 5e5), ("५० हज़ार", 5e4),
        ("2 करोड़", 2e7), ("5 ล้าน", 5e6),
        ("50 ألف", 5e4), ("5 الفائدة", 5), ("50 אלף ש\"ח", 5e4), ("2 MİLYON TL", 2e6), ("50 tys. zł", 5e4),
        ("3 mln", 3e6), ("50 тыс. руб.", 5e4), ("60k 70k", 60000),
        ("3만 5천원", None), ("2 crore 50 lakh", None), ("5，000元", None), ("三万五千", None),
    ],
)  # fmt: skip
def test_numbers_of_other_scripts_are_read_whole_or_are_missing(text: str, number: float | None) -> None:
    """The first digits alone were taken for the number: 1 for 1,234 in Arabic, 3 for 30 million in Korean."""
    found = first_number(text)
    assert (found and found[0]) == number


def test_a_point_before_three_digits_may_mean_two_numbers_in_every_script() -> None:
    assert number_in("٥٢.٠٠٠", Number(unit="EUR", low=0)) is None


@pytest.mark.parametrize(
    ("text", "words", "sentences"),
    [
        ("很好。下一个！对吗？", None, "3"), ("「はい。」次。", None, "2"), ("コーヒー", None, "1"),
        ("वह अच्छा है। वह गया।", "5", "2"), ("هل هو؟ نعم.", "3", "2"), ("สวัสดี ครับ", None, None),
        ("의사입니다. 네.", "2", "2"), ("Ask for 茶. Now!", "4", "2"),
    ],
)  # fmt: skip
def test_a_script_without_words_has_no_number_of_them(text: str, words: str | None, sentences: str | None) -> None:
    """Every Chinese answer had one word and one sentence: equal groups, whatever their answers' lengths."""

    def length(measure: Length) -> str | None:
        found = number_of(Attribute(name="x", asks="x", number=Number(unit="x", measure=measure)), text)
        return found and found.value

    assert (length("words"), length("sentences")) == (words, sentences)


def test_an_accent_and_its_letter_are_one_character() -> None:
    length = Attribute(name="x", asks="x", number=Number(unit="x", measure="characters"))
    for text in ("한국어", "café"):
        found = number_of(length, unicodedata.normalize("NFD", text))
        assert found is not None
        assert found.value == str(len(text))


def test_a_judge_that_writes_an_option_in_another_coding_chose_it() -> None:
    """Options from a Mac are decomposed: every answer of a judge that composes its accents was unparsed."""
    drink = Attribute(name="drink", asks="the drink", options=("cafe\u0301", "thé"))
    assert response_form((drink,)).model_validate({"drink": "café"}, strict=True).model_dump() == {
        "drink": "cafe\u0301"
    }
    with pytest.raises(ValueError, match="literal_error"):
        response_form((drink,)).model_validate({"drink": "cafe"}, strict=True)


@pytest.mark.parametrize(
    ("one", "other"), [("Ａ", "A"), ("İzmir", "izmir"), ("١", "1"), ("رجل", "رَجل"), ("é", "e\u0301")]
)
def test_groups_that_differ_in_writing_alone_are_refused(one: str, other: str) -> None:
    with pytest.raises(UsageError, match="differ in case, space, coding"):
        refuse_alike("group", [one, other])
    refuse_alike("group", ["बेटा", "बेटी", "医", "醫", "女性 female", "женщина (female)"])
    with pytest.raises(UsageError, match="Cyrillic and Latin letters: write it in one alphabet"):
        refuse_alike("group", ["male", "femal\u0435"])
