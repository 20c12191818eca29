"""Numbers in answers: as written, as a pattern finds them, or as the length of the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from unicodedata import normalize

from equivox.core.attributes import Attribute, Length, Number
from equivox.core.reasoning import split_reasoning
from equivox.core.segments import Value
from equivox.core.text import NO_SPACES, one_coding

_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6, "millions": 1e6, "bn": 1e9, "billion": 1e9,
    "tsd": 1e3, "tausend": 1e3, "mio": 1e6, "millionen": 1e6, "mrd": 1e9, "lakh": 1e5, "lakhs": 1e5, "lpa": 1e5,
    "crore": 1e7, "crores": 1e7, "万": 1e4, "萬": 1e4, "만": 1e4, "亿": 1e8, "億": 1e8, "억": 1e8,
    "千": 1e3, "천": 1e3, "百万": 1e6, "百萬": 1e6, "백만": 1e6, "千万": 1e7, "千萬": 1e7, "천만": 1e7, "兆": 1e12,
    "조": 1e12, "हजार": 1e3, "ह\u091c\u093cार": 1e3, "लाख": 1e5, "करोड़": 1e7, "พัน": 1e3, "หมื่น": 1e4, "แสน": 1e5,
    "ล้าน": 1e6, "ألف": 1e3, "الف": 1e3, "آلاف": 1e3, "مليون": 1e6, "مليار": 1e9, "אלף": 1e3, "מיליון": 1e6,
    "milyon": 1e6, "milyar": 1e9, "tys": 1e3, "mln": 1e6, "mld": 1e9, "тыс": 1e3, "млн": 1e6, "млрд": 1e9,
    "χιλιάδες": 1e3, "εκατομμύρια": 1e6, "тысяч": 1e3, "тысячи": 1e3, "тис": 1e3, "тисяч": 1e3, "tysięcy": 1e3,
    "bin": 1e3, "mille": 1e3, "mila": 1e3, "duizend": 1e3, "tusen": 1e3, "ribu": 1e3, "nghìn": 1e3, "ngàn": 1e3,
    "millones": 1e6, "milhões": 1e6, "milioni": 1e6, "miljoen": 1e6, "juta": 1e6, "triệu": 1e6, "tỷ": 1e9,
}  # fmt: skip
_ELSEWHERE = {
    "bin": r"(?-i:bin)(?! (?:ich|auch|bags?|boxes|collections?|days?|lids?|liners?|lorry|lorries|men)\b)",
    "mila": "(?-i:mila)", "mille": "(?-i:mille)(?!-)",
}  # fmt: skip
"""Words for thousands that say something else in English or German (bin bags, bin ich, Mila, mille-feuilles)."""
_SCALE = "|".join(
    word if word >= "\u0e00" else rf"{_ELSEWHERE.get(word, word)}(?!\w)"
    for word in sorted(_SCALES, key=len, reverse=True)
)
# A number does not begin within a word ("A4"), unless a currency's three letters stand before it ("EUR52,000"), or a
# sign of a script without spaces between words.
_SIGN = r"(?:(?<![\w.,])|(?<=\b[A-Z]{3})|(?<=[\u0e00-\u0e4e\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))[-\u2212]?"
_APART = "'\u2019 \u00a0\u2007\u2009\u202f"
_WRITTEN = re.compile(
    # With signs for thousands, which part three digits each, in India two; points are such signs if there are several,
    # or if decimals follow behind a comma; else plain digits.
    rf"(?P<thousands>{_SIGN}\d{{1,3}}(?:[,{_APART}]\d{{3}})+(?!\d)|{_SIGN}\d{{1,2}}(?:,\d\d)+,\d{{3}}(?!\d)"
    rf"|{_SIGN}\d{{1,3}}(?:\.\d{{3}}){{2,}}(?!\d)|{_SIGN}\d{{1,3}}(?:\.\d{{3}})+(?=,\d{{1,2}}(?![\d,]))|{_SIGN}\d+)"
    r"(?:(?P<point>\.\d+)|,(?P<comma>\d{1,2})(?![\d,]))?(?P<power>e[-+\u2212]?\d{1,3}(?!\w))?"
    # Of a range, such as 65-70k or $65 to $70k, the end says the scale of both; not of 800-1.2k.
    rf"(?:\s?(?P<scale>{_SCALE})|(?=\s?(?:[-\u2013\u2014~\uff5e至到]|(?:to|bis|à|tot|до|(?P<and>and|und))\b)\s?[$€£¥₹]?"
    rf"(?P<end>\d[\d.,]*)\s?(?P<both>{_SCALE})))?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|zwischen)\W*$", re.IGNORECASE)
_GOES_ON = re.compile(r"[.,'\u2019]?\d|\uff0c\d{3}(?!\d)")
_SECOND = re.compile(rf"\s\d+\s?(?P<scale>{_SCALE})", re.IGNORECASE)
_WIDE_COMMA = re.compile(r"(?<=[\uff10-\uff19])\uff0c(?=[\uff10-\uff19]{3}(?![\uff10-\uff19]))")
_EITHER_WAY = re.compile(r"[-\u2212]?[1-9]\d{0,2}\.\d{3}")
_SENTENCE_END = re.compile(
    r"[.!?\u2026\u061f\u06d4\u0589]+[\"'\u201d\u2019)\]]*(?:\s|$)|\n+"
    r"|[\u0964\u0965\u104b\u17d4\u3002\uff01\uff1f\uff61]+[\"'\u201d\u2019)\]\u300d\u300f\uff09]*"
)
_UNPARTED = {"words": re.compile(rf"{NO_SPACES}|[\u30a0-\u30ff]"), "sentences": re.compile("[\u0e00-\u0eff]")}
"""Letters of scripts that part no words, and those that end no sentence by a sign."""


def number_text(value: float) -> str:
    """Return a number as a plain decimal text, the form in which values of numbers are stored.

    >>> number_text(52000.0), number_text(-0.5), number_text(7)
    ('52000', '-0.5', '7')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def first_number(text: str, unit: str = "") -> tuple[float, str] | None:
    """Return the first number that a text states in digits, and as written; None if it states none.

    A comma, an apostrophe or a space parts thousands where three digits follow; a comma with one or two digits behind
    it is a decimal comma. One point is a decimal point: "52.000" is 52 (but see `number_in`). "k", "thousand",
    "million" and the like count, in some other languages, too, unless they are the `unit`, as does a power of ten
    ("1.5e6"). Digits that go on in another form, such as a date's, state no number.

    >>> first_number("About EUR 52,000 a year"), first_number("it is 7,5 or 8"), first_number("60k")
    ((52000.0, '52,000'), (7.5, '7,5'), (60000.0, '60k'))
    >>> first_number("EUR52 000"), first_number("on A4 paper"), first_number("on 3.5.2026")
    ((52000.0, '52 000'), None, None)
    """
    text = one_coding(_WIDE_COMMA.sub(",", text)).replace("\u066b", ".").replace("\u066c", ",")
    found = _WRITTEN.search(text)
    if found is None or _GOES_ON.match(text, found.end()):
        return None
    digits = re.sub(f"[.,{_APART}]", "", found["thousands"])
    digits += (found["point"] or (f".{found['comma']}" if found["comma"] else "")) + (found["power"] or "")
    value, scale = float(digits.replace("\u2212", "-")), found["scale"]
    ranges = found["both"] and (not found["and"] or _BETWEEN.search(text, 0, found.start()))
    if ranges and (end := first_number(found["end"])) is not None and value <= end[0]:
        scale = found["both"]
    second = _SECOND.match(text, found.end())
    if second and _scale(second["scale"], unit) < _scale(scale, unit):
        return None  # 3만 5천 is one number
    value *= _scale(scale, unit)
    return (value, found.group()) if math.isfinite(value) else None


def _scale(word: str | None, unit: str) -> float:
    plain = (word or "").lower().replace("i\u0307", "i")
    return 1.0 if plain == unit.lower() else _SCALES.get(plain, 1.0)


def number_in(text: str, number: Number) -> tuple[float, str] | None:
    """Return the first number that a text states, and as written; None if it states none, or may mean two.

    "52.000" may be 52 or, as in German, 52,000. The one in the range of `number` is meant; None where both are in it.

    >>> number_in("52.000 EUR", Number(unit="EUR", low=1000)), number_in("52.000 EUR", Number(unit="EUR", low=0))
    ((52000.0, '52.000'), None)
    """
    found = first_number(text, number.unit)
    if found is None or not _EITHER_WAY.fullmatch(found[1]):
        return found
    value, written = found
    possible = [meant for meant in (value, round(1000 * value)) if number.holds(meant)]
    return None if len(possible) > 1 else (float(*possible or [value]), written)


def length_of(text: str, measure: Length) -> int | None:
    """Return how long a text is: words between white space, sentences by their ends or lines, or characters.

    None where most letters are of a script that has no such parts: words of Chinese, Japanese, Thai, Lao, Burmese and
    Khmer, sentences of Thai and Lao. An accent and its letter are one character where Unicode has them as one.

    >>> [length_of("Well done. Next one, please!", measure) for measure in ("words", "sentences", "characters")]
    [5, 2, 28]
    """
    if measure == "characters":
        return len(normalize("NFC", text))
    if not text.isascii() and 2 * len(_UNPARTED[measure].findall(text)) > sum(map(str.isalpha, text)):
        return None
    parts = text.split() if measure == "words" else _SENTENCE_END.split(text)
    return sum(any(sign.isalnum() for sign in part) for part in parts)


def number_of(attribute: Attribute, text: str) -> Value | None:
    """Return the number of an answer without a model: measured, found by the pattern, or the first one stated.

    The answer is what stands after the model's thoughts. None where it states no number.
    """
    number = attribute.number
    if number is None:
        raise TypeError(f"{attribute.name} is no number")
    answer = split_reasoning(text)[0].strip()
    if number.measure is not None:
        length = length_of(answer, number.measure)
        return None if length is None else Value(attribute.name, number_text(length), "")
    if number.pattern:
        answer = number.found_in(answer)
    stated = number_in(answer, number)
    return None if stated is None else Value(attribute.name, number_text(stated[0]), stated[1])


def asked_of(attributes: Sequence[Attribute]) -> tuple[Attribute, ...]:
    """Return the attributes that an annotator is asked about: all but lengths and numbers that a pattern finds."""
    return tuple(one for one in attributes if one.number is None or one.number.needs_annotator)


def reads_itself(attributes: Sequence[Attribute]) -> bool:
    """Return whether lengths and patterns are all there is to be found in an answer, apart from refusals."""
    return all(one.role == "refusal" for one in asked_of(attributes)) and len(attributes) > 1
