"""The form that an annotator fills in, made from a task's attributes: a JSON schema and its validation.

Closed choices become enumerations with `other` and `unstated`; open attributes become texts of limited length; an
attribute with several values becomes a list of exactly that many. Every length is limited, so that constrained decoding
ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from equivox.annotate.numeric import number_text
from equivox.core.segments import Value
from equivox.core.task import OTHER, UNSTATED, Attribute
from equivox.core.text import folded, is_mark, one_coding

LONGEST = 60
"""The largest number of characters in an open value; a short noun phrase has fewer."""

NOT_STATED = frozenset(
    [UNSTATED, "n/a", "na", "null", "unspecified", "not applicable", "not given"]
    + [f"{how} {said}" for how in ("not", "none") for said in ("stated", "specified", "mentioned", "provided")]
)
"""Open values by which models say that a text states none, in spite of the form's own word for it."""

_QUOTES = " \t\n\"'`\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb"
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_ARTICLE = re.compile(r"^(?:an?|the)\s+")


@cache
def response_form(attributes: tuple[Attribute, ...]) -> type[BaseModel]:
    """Return the pydantic model of an annotation by `attributes`; unknown, missing or overlong fields are refused."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    # The refusal comes first, because the other fields depend on it.
    for attribute in sorted(attributes, key=lambda a: a.role != "refusal"):
        single: Any
        if attribute.role == "refusal":
            single = _make_choice(attribute.options)
        elif attribute.number is not None:
            # A number outside of the range is kept, so that it can be counted apart.
            single = Annotated[float, Field(allow_inf_nan=False)] | Literal[UNSTATED]
        elif attribute.options:
            single = _make_choice((*attribute.options, OTHER, UNSTATED))
        else:
            single = Annotated[str, Field(min_length=1, max_length=LONGEST)]
        kind = single
        if attribute.is_list:
            fewest = attribute.count if attribute.at_least is None else attribute.at_least
            kind = Annotated[list[single], Field(min_length=fewest, max_length=attribute.count)]
        fields[attribute.name] = (kind, Field(description=attribute.asks))
    return create_model("Annotation", __config__=ConfigDict(extra="forbid"), **fields)


def _make_choice(options: tuple[str, ...]) -> Any:
    """Return the type of a choice between some options.

    Case, quotes and a final full stop of a reply do not count.
    """
    from pydantic import BeforeValidator

    exact = {one_coding(option): option for option in options}
    # Options that differ in nothing else are told apart by their case.
    counts = Counter(map(_normalize_option, options))
    similar = {key: option for option in options if counts[key := _normalize_option(option)] == 1}

    def find(reply: Any) -> Any:
        if not isinstance(reply, str):
            return reply
        return exact.get(one_coding(reply)) or similar.get(_normalize_option(reply), reply)

    return Annotated[Literal[options], BeforeValidator(find)]


def _normalize_option(text: str) -> str:
    """Return an option without case, quotes around it and a final full stop.

    >>> _normalize_option(' "Invite." '), _normalize_option("yes.")
    ('invite', 'yes')
    """
    return folded(one_coding(text)).strip(_QUOTES).removesuffix(".").strip(_QUOTES)


def json_schema(attributes: tuple[Attribute, ...]) -> dict[str, Any]:
    """Return the JSON schema of an annotation by `attributes`, without references or titles."""
    schema: dict[str, Any] = _without_titles(response_form(attributes).model_json_schema())
    return schema


def _without_titles(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _without_titles(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}
    return [_without_titles(entry) for entry in node] if isinstance(node, list) else node


def read_values(attributes: Sequence[Attribute], filled: Mapping[str, Any]) -> list[Value]:
    """Return the stated values of a valid form, canonical and as written; unstated values are left out.

    A value given twice in a list counts once. "N/A" and the like (`NOT_STATED`) are no open values; "none" and
    "unknown" are some, because a text may say them.
    """
    values: dict[tuple[str, str], Value] = {}
    for attribute in attributes:
        given = filled[attribute.name]
        for raw in given if isinstance(given, list) else [given]:
            if isinstance(raw, int | float):
                value = raw = number_text(raw)
            else:
                value = raw if attribute.options else canonical(raw)
            if value and (value != UNSTATED if attribute.options else value not in NOT_STATED):
                values.setdefault((attribute.name, value), Value(attribute.name, value, raw))
    return list(values.values())


def canonical(text: str) -> str:
    """Return an open value in a common form: lower case, no article, no outer punctuation, single spaces, one coding.

    >>> canonical("  The Jazz   Musician. "), canonical("an ER-nurse"), canonical("…")
    ('jazz musician', 'er-nurse', '')
    """
    plain = " ".join(folded(text).split())
    return _ARTICLE.sub("", _EDGES.sub(_of_the_last_letter, plain))


def _of_the_last_letter(edge: re.Match[str]) -> str:
    """Return the vowel signs and accents with which an edge begins: they belong to the letter before it."""
    return "".join(takewhile(is_mark, edge[0])) if edge.start() else ""
