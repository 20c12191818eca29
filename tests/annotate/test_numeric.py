"""Numbers in answers: as rules, patterns, measures and models find them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from pydantic import ValidationError

from equivox.annotate import Annotation, Job
from equivox.annotate.model import _worked, prompt_text, read_again
from equivox.annotate.numeric import first_number, length_of, number_in, number_text, reads_itself
from equivox.annotate.rules import RulesAnnotator, rules_read
from equivox.annotate.schema import json_schema, read_values, response_form
from equivox.core.attributes import REFUSAL, Attribute, Number
from equivox.core.errors import UsageError
from equivox.core.segments import AnnotationScheme, _attributes_digest
from equivox.core.task import WorkedExample

SALARY = Attribute(name="salary", asks="the yearly salary", number=Number(unit="EUR", low=0, high=500_000))
LENGTH = Attribute(name="length", asks="the length", number=Number(measure="words"))
SCORE = Attribute(name="score", asks="the rating", number=Number(unit="of 10", pattern=r"[Ss]core: *([\d.]+)"))


def read(attribute: Attribute, text: str) -> Annotation:
    job = Job(key="k", response_key="r", task="t", segment=AnnotationScheme(attributes=(attribute,)).whole(text))
    (annotation,) = RulesAnnotator().annotate([job])
    return annotation


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I suggest 52,000 EUR.", 52_000),
        ("I suggest 52'000 CHF.", 52_000),
        ("between 1,234,567.50 and 2", 1_234_567.5),
        ("52 000 or so", 52_000),
        ("a loss of -3.5 points", -3.5),
        ("\u22124 degrees", -4),
        ("7,5 of 10", 7.5),
        ("around $60k a year", 60_000),
        ("1.2 million", 1_200_000),
        ("3 Thousand", 3_000),
        ("2.5m", 2_500_000),
        ("4 mn", 4_000_000),
        ("7bn", 7_000_000_000),
        ("1 billion", 1_000_000_000),
        ("5 men", 5),
        # A tenth, or a ten-thousandth, of what is said would be far below it.
        ("65 Tsd. €", 65_000),
        ("1,5 Mio. Euro", 1_500_000),
        ("2 Millionen", 2_000_000),
        ("₹12 LPA", 1_200_000),
        ("6.5 lakh rupees", 650_000),
        ("50 bin TL", 50_000),
        ("50 mille euros", 50_000),
        ("circa 52mila euro", 52_000),
        ("50 à 60 mille euros", 50_000),
        ("50 до 60 тысяч", 50_000),
        ("50 тысяч рублей", 50_000),
        ("15 triệu đồng", 15_000_000),
        ("Rp 8,5 juta", 8_500_000),
        ("1,5 millones de pesos", 1_500_000),
        ("2 bins", 2),
        ("2 crores", 20_000_000),
        ("年薪50万元", 500_000),
        ("500萬", 5_000_000),
        ("연봉 5,000만 원", 50_000_000),
        ("1.2億円", 120_000_000),
        ("6万5千", None),
        ("建议给予52000元", 52_000),
        ("ควรได้52,000บาท", 52_000),
        ("$65-70k", 65_000),
        ("1\u20132 million", 1_000_000),
        ("65 to 70k", 65_000),
        ("$65\u2014$70k", 65_000),
        ("60 bis 65 Tsd. Euro", 60_000),
        ("30到50万元", 300_000),
        ("800 to 1.2k", 800),
        ("7 tons, 70k", 7),
        ("between 60 and 70", 60),
        ("between $60 and $70k", 60_000),
        ("zwischen 60 und 70 Tsd. Euro", 60_000),
        ("grade 2 and 70k", 2),
        # 800 to 1,200: the end is the larger one, and said in another unit than the begin.
        ("800-1.2k", 800),
        ("$1,500-2k", 1_500),
        ("900\u20131,1 Mio", 900),
        ("2019-20k", 2_019),
        ("30~50万元", 300_000),
        ("3\uff5e5万", 30_000),
        ("a 3-4 m table", 3_000_000),
        ("grades 3-4", 3),
        ("9" * 400, None),
        ("in the A4 format", None),
        ("fifty thousand", None),
        ("EUR52,000", 52_000),
        ("1.234.567 EUR", 1_234_567),
        ("52.000,50 EUR", 52_000.5),
        ("-1.234,5", -1_234.5),
        ("1,23,456 rupees", 123_456),
        ("12,34,56,789", 123_456_789),
        ("about 1.5e6 EUR", 1_500_000),
        ("2E\u22123 g", 0.002),
        ("9e999", None),
        ("the 3e street", 3),
        # Digits that go on: no part of them is the number.
        ("on 3.5.2026", None),
        ("8,9,10", None),
        ("version 1.2.3", None),
    ],
)
def test_the_first_number_in_digits(text: str, value: float | None) -> None:
    found = first_number(text)
    assert (found[0] if found else None) == value


@pytest.mark.parametrize(
    ("text", "low", "high", "value"),
    [
        ("52.000 EUR", 0, 500_000, None),  # 52 and 52,000 are both possible
        ("52.000 EUR", None, None, None),
        ("52.000 EUR", 20_000, 500_000, 52_000),
        ("52.000 s", 0, 1_000, 52),
        ("-1.250", -10, 10, -1.25),
        ("52.000 EUR", 100, 500, 52),  # neither: it is counted as outside of the range
        ("0.125", 0, 1_000, 0.125),  # no thousands begin with 0
        ("52.00 EUR", 0, 500_000, 52),
        ("1.250 million", 0, None, 1_250_000),
    ],
)
def test_a_point_before_three_digits_may_part_thousands(
    text: str, low: float | None, high: float | None, value: float | None
) -> None:
    attribute = dataclasses.replace(SALARY, number=Number(unit="EUR", low=low, high=high))
    assert read(attribute, text).by_attribute().get("salary") == (None if value is None else (number_text(value),))


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [("1.8 m tall", "m", 1.8), ("1.5 to 2 m", "m", 1.5), ("300 K", "K", 300), ("3 m", "EUR", 3e6)],
)
def test_a_word_that_is_the_unit_scales_nothing(text: str, unit: str, value: float) -> None:
    found = number_in(text, Number(unit=unit))
    assert found is not None and found[0] == value


def test_numbers_are_stored_as_plain_texts_that_come_back() -> None:
    for value in (0.0, -0.5, 52_000.0, 1e20, 0.1 + 0.2, 1 / 3):
        assert float(number_text(value)) == value
    assert [number_text(value) for value in (52_000.0, 1e15 - 1, 1e15, -1e15)] == [
        "52000", "999999999999999", "1000000000000000.0", "-1000000000000000.0",
    ]  # fmt: skip


def test_lengths_by_hand() -> None:
    text = "Dr. Anna \u2014 excellent! Really?\nYes"
    # "Dr." ends in a point and counts as a sentence of its own; the dash is no word.
    assert length_of(text, "words") == 5
    assert length_of(text, "sentences") == 4
    assert length_of("Two. Three.", "characters") == 11


def test_rules_read_what_the_form_says() -> None:
    assert read(SALARY, "I would offer 52,000 EUR.").by_attribute()["salary"] == ("52000",)
    assert read(SALARY, "I would offer 900000 EUR.").by_attribute()["salary"] == ("900000",)
    assert read(SCORE, "7 years. Score: 8.5").by_attribute()["score"] == ("8.5",)
    assert read(LENGTH, "One two three.").by_attribute()["length"] == ("3",)


@pytest.mark.parametrize(
    ("attribute", "text", "status"),
    [
        (SALARY, "That depends.", "unparsed"),
        (SCORE, "8 of 10", "unparsed"),
        (SALARY, "I can't help with 52,000 EUR.", "refused"),
        (LENGTH, "I can't help with that.", "refused"),
        (LENGTH, " ", "empty"),
    ],
)
def test_what_has_no_number_is_never_zero(attribute: Attribute, text: str, status: str) -> None:
    found = read(attribute, text)
    assert found.status == status
    assert attribute.name not in found.by_attribute()


def test_a_model_is_asked_for_a_number_or_unstated() -> None:
    form = response_form((SALARY, REFUSAL))
    filled = form.model_validate({"refusal": "no", "salary": 52_000.5}, strict=True).model_dump()
    assert [(v.attribute, v.value) for v in read_values((SALARY, REFUSAL), filled)] == [
        ("salary", "52000.5"),
        ("refusal", "no"),
    ]
    unstated = form.model_validate({"refusal": "no", "salary": "unstated"}, strict=True).model_dump()
    assert [value.attribute for value in read_values((SALARY, REFUSAL), unstated)] == ["refusal"]
    # Outside of the range is still a number; what is outside is counted by the metric.
    form.model_validate({"refusal": "no", "salary": -4}, strict=True)
    schema = json_schema((SALARY, REFUSAL))["properties"]["salary"]
    assert schema["anyOf"] == [{"type": "number"}, {"const": "unstated", "type": "string"}]
    assert json.dumps(schema)


@pytest.mark.parametrize("given", [True, "52000", "high", None, float("nan"), float("inf"), [1.0]])
def test_what_is_no_number_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        response_form((SALARY, REFUSAL)).model_validate({"refusal": "no", "salary": given}, strict=True)


def test_a_model_is_not_asked_what_the_answer_itself_says() -> None:
    asked = prompt_text(AnnotationScheme(attributes=(SALARY,)).whole("A text."))
    assert "- salary (the yearly salary): a number in EUR, from 0 to 500,000, written in digits" in asked
    alone = prompt_text(AnnotationScheme(attributes=(LENGTH,)).whole("A text."))
    assert "- length" not in alone and "- refusal" in alone
    words = AnnotationScheme(attributes=(LENGTH,)).whole("Three short words")
    job = Job(key="k", response_key="r", task="t", segment=words)
    record = {"status": "parsed", "output": '{"refusal": "no"}', "attempts": 1}
    again = read_again(job, record)
    assert reads_itself((LENGTH, REFUSAL)) and not reads_itself((REFUSAL,)) and not reads_itself((SALARY, REFUSAL))
    assert again is not None and ("length", "3") in {(value.attribute, value.value) for value in again.values}


def test_a_worked_number_is_shown_as_a_number_and_one_that_is_not_stated_as_text() -> None:
    for values, shown in (({"salary": "52000"}, 52_000), ({}, "unstated")):
        example = WorkedExample(text="A text.", values=values)
        answer = _worked(example, (SALARY, REFUSAL)).partition("Answer: ")[2]
        assert json.loads(answer) == {"refusal": "no", "salary": shown}


def test_rules_read_no_free_text_where_everything_is_measured() -> None:
    from equivox.tasks.registry import builtin_tasks

    task = next(task for name, task in builtin_tasks().items() if name == "vibe_gender:advisory")
    measured = dataclasses.replace(task, annotation=AnnotationScheme(attributes=(LENGTH,)))
    free = dataclasses.replace(task, annotation=AnnotationScheme(attributes=(SALARY,)))
    assert not rules_read([measured]) and rules_read([free]) and rules_read([task])


def test_attributes_without_a_number_keep_their_identity() -> None:
    # The digest of these fields as they were before attributes could be numbers.
    from equivox.core.hashing import digest

    colour = Attribute(name="colour", asks="the colour", options=("red", "blue"))
    fields = dataclasses.asdict(colour)
    assert fields.pop("number") is None
    assert _attributes_digest((colour,)) == digest([fields])
    assert _attributes_digest((SALARY,)) != _attributes_digest(
        (dataclasses.replace(SALARY, number=Number(unit="USD", low=0, high=500_000)),)
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs its `unit`"),
        ({"unit": "EUR", "low": 5, "high": 5}, "low must be below high"),
        ({"unit": "EUR", "low": float("nan")}, "finite number"),
        ({"unit": "EUR", "pattern": "("}, "not a regular expression"),
        ({"measure": "words", "pattern": "x"}, "give one of the two"),
    ],
)
def test_a_number_that_makes_no_sense(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Number(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"options": ("a", "b")}, "leave out one of the two"),
        ({"count": 3}, "one answer gives one number"),
        ({"role": "echo"}, "only outcomes are numbers"),
    ],
)
def test_an_attribute_that_is_a_number_and_more(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(SALARY, **fields)


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("In 2020 Mila became a nurse.", 2020.0),
        ("He carries 12 bin bags.", 12.0),
        ("She orders 2 mille-feuilles.", 2.0),
        ("He drove 8 Mille Miglia races.", 8.0),
        ("Seit 2010 bin ich Lehrerin.", 2010.0),
        ("Mit 30 bin auch ich dabei.", 30.0),
        ("50 bin TL", 50_000.0),
        ("52 mila euro", 52_000.0),
        ("52 mille euros", 52_000.0),
    ],
)
def test_words_for_thousands_are_none_where_other_languages_have_them(said: str, number: float) -> None:
    found = first_number(said)
    assert found is not None and found[0] == number
