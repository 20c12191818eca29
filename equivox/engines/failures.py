"""Failures of a server in one line: what to do about one, and whether every other request meets it too."""

from __future__ import annotations

import re
from collections.abc import Container

from equivox.core.errors import UsageError
from equivox.core.redact import cleaned, without_credentials

FATAL = frozenset({401, 402, 403, 404, 429, 502, 503})
"""Statuses by which a server refuses every request alike: no key, money, permission or model; too busy to the last."""
_INSTEAD = {
    "max_tokens": "token_limit_field=max_completion_tokens",
    "seed": "send_seed=false",
    "temperature": "`--sampling temperature=1`, or `sampling` of an annotator's file",
    "response_format": "structured=json_object, or none",
    "input_audio": "audio_part=audio_url",
}
"""What may be given in place of a setting that a server does not take."""
_NOT_TAKEN = re.compile(
    r"unsupported|unrecognized|unknown|unavailable|extra inputs|not (?:support|permit|allow)|is allowed", re.IGNORECASE
)
_MARKUP = re.compile(r"(?is)<(style|script)\b.*?</\1>|<[^>]*>")


def describe_failure(error: BaseException) -> str:
    """Return an error as one short line: its type, its first words without credentials, and what may help."""
    from equivox.engines.servers import NotAnAnswer, Refused

    # The client calls every broken connection alike; what caused the error says why.
    words = f"{error} {error.__cause__}" if error.__cause__ else str(error)
    if isinstance(error, Refused) or isinstance(error.__cause__, NotAnAnswer):
        return cleaned(" ".join(str(error.__cause__ or error).split()))[:300]
    if words.startswith("Error code: ") and " - " not in words and (body := getattr(error, "body", None)):
        words += f" - {_MARKUP.sub(' ', str(body))}"
    text = cleaned(" ".join(words.split()))
    line = f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
    return f"{line}; try {instead}" if (instead := _find_other_setting(error)) else line


def find_fatal_cause(error: BaseException) -> str | None:
    """Return the name of a failure that every other request meets too, None for any other."""
    import httpx2

    if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
        return "insufficient_quota"
    if getattr(error, "status_code", None) in FATAL:
        return f"HTTP {getattr(error, 'status_code', '')}"
    if isinstance(error.__cause__, httpx2.TransportError):
        return "no connection"
    return getattr(error, "fatal", None)


def refuse_greeting(error: Exception, url: str, sent: Container[str], key_variable: str) -> None:
    """Raise UsageError, naming the server, if no other request would be answered; else return.

    The server may be overloaded, refuse a one-token answer, or send what is none: the requests will show.
    """
    import openai

    from equivox.engines.servers import NotAnAnswer, Refused

    place, why = without_credentials(url), describe_failure(error)
    reasons: list[tuple[bool, str]] = [
        (isinstance(error, Refused), f"{place}: {why}"),
        (
            isinstance(error, openai.APIConnectionError) and not isinstance(error.__cause__, NotAnAnswer),
            f"no server answers at {place} ({why}); check base_url and that it runs",
        ),
        (
            isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError),
            f"{place} refuses the key ({why}); set the environment variable {key_variable}",
        ),
        (
            isinstance(error, openai.NotFoundError),
            f"{place} does not know the model ({why}); check model_name and base_url (it ends in /v1)",
        ),
        (bool(_find_other_setting(error, sent)), f"{place} refuses the settings of this run ({why})"),
    ]
    for applies, message in reasons:
        if applies:
            raise UsageError(message) from error


def _find_other_setting(error: BaseException, sent: Container[str] = _INSTEAD) -> str:
    """Return what may help where a server says that it does not take a setting that was sent; else empty."""
    reply = str(getattr(error, "body", "")) if getattr(error, "status_code", None) in (400, 422) else ""
    found = (instead for name, instead in _INSTEAD.items() if name in sent and re.search(rf"\b{name}\b", reply))
    return next(found, "") if _NOT_TAKEN.search(reply) else ""
