"""Calls of tools as the answer of a model: the one form in which they are stored, and its reading.

An answer with tools is a JSON text, whatever the engine:
`{"content": "what was said beside", "calls": [{"name": "decide", "arguments": {"decision": "invite"}}]}`.
Arguments that are no JSON object stay the text that the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from equivox.core.attributes import Attribute
from equivox.core.text import parsed_json

ONE, NONE, MALFORMED, SEVERAL = "one", "none", "malformed", "several"
CALL = Attribute(
    name="call",
    asks="whether the answer is one call that can be used",
    options=(ONE, NONE, MALFORMED, SEVERAL),
    role="echo",
)
"""The attribute of every answer with tools: an answer that is not one usable call has no other value but this."""

_MOST = 1000
"""Calls of one answer that are kept; more are counted as several all the same."""


class Call(NamedTuple):
    """One call as a model made it: the tool's name, and its arguments, as a JSON text or where they are no JSON."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with tools: what was said beside the calls, and the calls."""

    content: str
    calls: tuple[Call, ...] = ()

    @property
    def text(self) -> str:
        """The answer as it is stored; an empty text for one that says nothing and calls nothing.

        >>> Answer("", (Call("decide", '{"decision": "invite"}'),)).text
        '{"content": "", "calls": [{"name": "decide", "arguments": {"decision": "invite"}}]}'
        """
        if not self.content.strip() and not self.calls:
            return ""
        calls = [{"name": call.name, "arguments": _plain(call.arguments)} for call in self.calls[:_MOST]]
        return json.dumps({"content": self.content, "calls": calls}, ensure_ascii=False)

    @classmethod
    def of(cls, text: str) -> Answer:
        """Return the answer in a stored text; a text of another form says something and calls nothing.

        >>> Answer.of("Invite her.")
        Answer(content='Invite her.', calls=())
        """
        try:
            record = parsed_json(text)
        except ValueError:
            return cls(text)
        if not isinstance(record, dict) or not isinstance(record.get("calls"), list):
            return cls(text)
        calls = [entry if isinstance(entry, dict) else {} for entry in record["calls"][:_MOST]]
        content = record.get("content")
        return cls(
            content if isinstance(content, str) else "",
            tuple(Call(str(entry.get("name", "")), _plain(entry.get("arguments", ""))) for entry in calls),
        )


def _plain(arguments: Any) -> Mapping[str, Any] | str:
    """Return arguments as a JSON object, or as the text that they are."""
    if isinstance(arguments, Mapping):
        return arguments
    try:
        found = parsed_json(str(arguments))
    except ValueError:
        return str(arguments)
    return found if isinstance(found, dict) else str(arguments)
