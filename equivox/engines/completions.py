"""What OpenAI-compatible servers send: texts in parts, a voice, counts, each in the forms that there are."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from equivox.core.endings import WITHHELD, ending
from equivox.core.media import MOST_SOUND_BYTES, MediaError, container_of


def said(content: Any) -> str:
    """Return what a server sent as content as one text: a text, the texts of its parts, or whatever it is."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(said(part.get("text") if isinstance(part, dict) else part) for part in content)
    return content if isinstance(content, str) else str(content)


def parts(content: Any, name: str) -> str:
    """Return what the parts of a content have under a name, such as their thinking; empty if it has no parts."""
    told = [said(part.get(name)) for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n\n".join(filter(None, told))


def spoken(choices: Sequence[Any]) -> tuple[bytes, str]:
    """Return the sound of a spoken answer and its transcript, empty if the server gives none.

    OpenAI puts both into the first choice; vLLM-Omni puts the sound into a choice of its own. MediaError for an answer
    without sound, or with one that is no audio file: a text in its place would pass for a voice that said little.
    """
    for choice in choices:
        audio = getattr(choice.message, "audio", None)
        if audio is None:
            continue
        encoded = str(_field(audio, "data") or "")
        if len(encoded) > 2 * MOST_SOUND_BYTES:
            raise MediaError(f"the spoken answer is longer than {MOST_SOUND_BYTES / 2**20:g} MiB")
        try:
            sound = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise MediaError("the spoken answer is not in base64") from None
        if container_of(sound) is None:
            raise MediaError("the spoken answer is no audio file (wav, flac, ogg or mp3)")
        return sound, said(_field(audio, "transcript"))
    raise MediaError("the server answered without a voice; ask one whose model speaks, or leave `spoken` out")


def _field(part: Any, name: str) -> Any:
    """Return a field of what a server sent, as an object or as a mapping; None if it is not there."""
    return part.get(name) if isinstance(part, dict) else getattr(part, name, None)


def count(given: Any) -> int:
    """Return a count of tokens; 0 where the server sent none that is one."""
    return given if type(given) is int and 0 <= given < 2**53 else 0


def withheld(error: Any) -> bool:
    """Return whether an error says that the provider's filter turned a prompt away, so that no model read it.

    Azure says so in the error or in one inside of it, which LiteLLM hands on in a place of its own; OpenRouter quotes
    the words that were flagged.
    """
    said: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    handed_on, quoted = said.get("provider_specific_fields"), said.get("metadata")
    inside = [one.get("innererror") for one in (said, handed_on) if isinstance(one, Mapping)]
    codes = [one.get(name) for one in (said, *inside) if isinstance(one, Mapping) for name in ("code", "type")]
    flagged = isinstance(quoted, Mapping) and "flagged_input" in quoted
    return flagged or WITHHELD in [ending(code) for code in codes if isinstance(code, str)]
