"""Foreign text made safe for where it goes: a terminal, a spreadsheet, a comparison; numbers and lists in words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NEEDED = "\u200c\u200d\u200e\u200f\u061c"
"""Characters without width that words of some languages, and some emoji, need: joiners, and marks of a direction, which
turn no text beside them."""
_UNUSUAL = re.compile(r"[^ -~\n\t]")
_FORMS = re.compile("[\uff01-\uff0b\uff0d-\uffef\ufb1d-\ufdff\ufe70-\ufefc]+")
"""Letters, digits and signs of full or half width, and of a place in the word; not the comma, which parts clauses."""
_DIGIT = re.compile(r"[^\D0-9]")
_OPTIONAL = re.compile(
    "[\u00ad\u200c-\u200f\u061c\u202a-\u202e\u2060\u2066-\u2069\ufe00-\ufe0f\ufeff"  # signs that are not seen
    "\u0640\u064b-\u0652\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]"  # tatweel; Arabic and Hebrew vowels
)

NO_SPACES = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u309f\u3400-\u9fff]"
"""A letter of a script without spaces, beside which any word may end: Thai, Lao, Burmese, Khmer, hiragana, Chinese."""


def parsed_json(content: str | bytes) -> Any:
    r"""Return what a JSON text says.

    ValueError for one that is malformed, nested too deeply, or holds half of a surrogate pair, which no file can.

    >>> parsed_json('{"a": "\\ud83d\\ude00"}')
    {'a': '😀'}
    """
    try:
        document = json.loads(content)
        escapes = b"\\ud" in content.lower() if isinstance(content, bytes) else "\\ud" in content.lower()
        if escapes:
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"\\u{ord(error.object[error.start]):04x} is half of a character") from None
    return document


def visible(text: str) -> str:
    r"""Return `text` with control characters, and those that turn the direction of writing, written out.

    Line feeds and tabs stay, and so do a line's ends as Windows writes them, as line feeds.

    >>> print(visible("\x1b[2Jgone \u202eabc"))
    \x1b[2Jgone \u202eabc
    >>> visible("one\r\ntwo\rthree, \u200f(\u05d0)") == "one\ntwo\\rthree, \u200f(\u05d0)"
    True
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNUSUAL.sub(_written_out, text.replace("\r\n", "\n"))


def _written_out(found: re.Match[str]) -> str:
    sign = found[0]
    harmless = sign.isprintable() or sign in _NEEDED or unicodedata.category(sign) == "Zs"
    return sign if harmless else sign.encode("unicode_escape").decode("ascii")


def inert(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula.

    >>> inert("=1+1"), inert("a=1")
    ("'=1+1", 'a=1')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def inert_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a row, its texts and the names of its columns such that a spreadsheet takes none for a formula."""
    return {inert(name): inert(value) if isinstance(value, str) else value for name, value in record.items()}


def one_coding(text: str) -> str:
    r"""Return `text` in the one form of those that differ in coding alone, for comparing: the case stays.

    Accents are part of their letter (NFC), width and place in the word make no other letter, digits are 0 to 9; signs
    that are not seen, and vowels that Arabic and Hebrew leave to the writer, go.

    >>> one_coding("\uff29\uff34"), one_coding("cafe\u0301") == "caf\u00e9"
    ('IT', True)
    """
    if text.isascii():
        return text
    plain = _FORMS.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    plain = _DIGIT.sub(lambda digit: str(int(digit[0])), plain)
    return unicodedata.normalize("NFC", _OPTIONAL.sub("", plain))


def folded(text: str) -> str:
    """Return `text` in one coding and without case, for comparing; a Turkish capital I with a dot is an i."""
    return one_coding(text.casefold()).replace("i\u0307", "i")


def is_mark(sign: str) -> bool:
    """Return whether a character is part of the letter before it: an accent, or a vowel of Hindi or Thai."""
    return unicodedata.category(sign) in ("Mn", "Mc")


def how_many(n: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends in s.

    >>> how_many(1, "known pair"), how_many(2, "time"), how_many(3, "entry")
    ('1 known pair', '2 times', '3 entries')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def listed(items: Iterable[str], limit: int = 5) -> str:
    """Return the first few items as a list in words, with the number of further ones.

    >>> listed("abcdefg", limit=2)
    'a, b and 5 more'
    """
    items = list(items)
    more = f" and {len(items) - limit:,} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more
