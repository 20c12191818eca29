"""Remove what must not be written down with a run: credentials, and from what is published the paths of files too.

A value of a setting stays if its name, and those of the settings around it, are marked as public where the setting is
declared (`equivox.core.fields.Public`). Free text, such as a server's error, is searched for the secrets that this
process was given, and for what looks like one.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from equivox.core.errors import UsageError

LEFT_OUT = "(left out)"

_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]*://(?:[^\s/]*@)?[^\s'\"<>?#,;)}\]]*"
    r"(?:[?#][^\s\"<>]*?(?=['\"<>,;.)}\]]*(?:[\s\"<>]|$)))?",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?<![\w:/.~-])(?:(?:~|[A-Za-z]:)[\\/](?:[\w.@+~ -]+[\\/])*|/(?=[\w.])(?:[\w.@+~ -]+[\\/])+)([\w.@+~-]*)"
)
_SECRET = (
    r"(?:[\w-]*(?:api[_-]?key|access[_-]?key|secret|password|passwd|credential|authorization|cookie|signature)s?"
    r"|(?:[\w-]*[_-])?(?:key|token|auth|pass|pwd|sig|session(?:[_-]?id)?))"
)
_NAMED = re.compile(
    rf"(?<![\w-])(?P<name>[\"']?{_SECRET}[\"']?\s*[:=]\s*(?:(?:Bearer|Basic)\s+)?)"
    r"(?!\(left out\))(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&})\]\"']+)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+(?!\(left out\))[\w.~+/=-]{6,}", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{8,}|hf_\w{8,}|gh[pousr]_\w{8,}|github_pat_\w{8,}|xox[abprs]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|"
    r"AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|glpat-[\w-]{8,})"
)
_ENVIRONMENT_NAME = re.compile(
    "(?:.*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|AUTH|CREDENTIAL|COOKIE|SIGNATURE|SESSION_ID|API_?KEY)|"
    "(?:.*_)?(?:KEY|PASS))S?(?:_.*)?",
    re.IGNORECASE,
)
_SHORTEST = 8
"""Shorter values of the environment are no secrets: they would be found in every text."""
_SHORTEST_GIVEN = 4
_NO_KEYS = frozenset({"none", "null", "empty", "dummy", "test"})
"""Values that servers without keys get; as secrets they would be cut out of ordinary sentences."""

_given: set[str] = set()
"""The secrets that arguments of this process held. They are remembered so that no error text repeats one."""


def redacted(value: Any, public: Collection[str]) -> Any:
    """Return settings as they may be written down: without values that are not public, and without credentials in text.

    `public` names the settings whose values may be. Switches (true, false, null) stay whatever their name. URLs lose
    user, password and query.

    >>> settings = {"base_url": "https://me:pw@host/v1?key=1", "extra_body": {"X-Api-Key": 4711, "top_k": 5}}
    >>> redacted(settings, {"base_url", "extra_body", "top_k"})
    {'base_url': 'https://host/v1', 'extra_body': {'X-Api-Key': '(left out)', 'top_k': 5}}
    """
    return _redacted(value, public, set(), known=True)


def remember_secrets(settings: Any, public: Collection[str] = ()) -> None:
    """Remember what `redacted` leaves out of some settings, so that `cleaned` takes it out of every later text."""
    secrets: set[str] = set()
    _redacted(settings, public, secrets, known=True)
    long = {secret for secret in secrets if len(secret) >= _SHORTEST_GIVEN}
    _given.update(secret for secret in long if secret.lower() not in _NO_KEYS)


def _redacted(value: Any, public: Collection[str], secrets: set[str], *, known: bool) -> Any:
    """Return settings without what is private, which is added to `secrets`; `known` says that `value` is not."""
    if isinstance(value, Mapping):
        return {key: _redacted(entry, public, secrets, known=known and key in public) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(entry, public, secrets, known=known) for entry in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    if not known:
        secrets |= {str(value), str(value).removeprefix("Bearer ").removeprefix("Basic ")}
        return LEFT_OUT
    if not isinstance(value, str):
        return value
    secrets.update(secret for url in _URL.findall(value) for secret in _credentials(url))
    return without_credentials(value)


def _credentials(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    user = parts.netloc.rpartition("@")[0]
    if user:
        yield user
        yield from (unquote(user), *user.split(":", 1), *unquote(user).split(":", 1))
    yield from (value for _, value in parse_qsl(parts.query))


def cleaned(text: str) -> str:
    """Return `text` without the secrets of the environment and of the arguments, and without what looks like one.

    >>> cleaned("401 from https://me:pw@host/v1?key=1: bad header Authorization: Bearer abcdef123")
    '401 from https://host/v1 bad header Authorization: Bearer (left out)'
    """
    return without_credentials(without_secrets(text))


def without_secrets(text: str) -> str:
    """Return `text` without the secrets that are known: those of the environment and of the arguments."""
    for secret in sorted({*_given, *known_secrets().values()}, key=len, reverse=True):
        # As it may stand in a text: plain, quoted as in a URL, and in base64.
        encoded = base64.b64encode(secret.encode("utf-8", "replace")).decode()
        for form in dict.fromkeys((secret, quote(secret, safe=""), encoded)):
            text = text.replace(form, LEFT_OUT)
    return text


def without_credentials(text: str) -> str:
    """Return `text` with its URLs cut to scheme, host and path, and without what looks like a key or a password."""
    return _around_urls(text, _without_values)


def _around_urls(text: str, change: Callable[[str], str]) -> str:
    """Return `text` with its URLs cut to scheme, host and path, and with everything beside them as `change` returns it.

    `change` sees a number between two NULs in place of each URL; NULs of `text` itself are removed.
    """
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        url = _public_url(found[0])
        if "://" not in url:
            return url
        kept.append(url)
        return f"\0{len(kept) - 1}\0"

    changed = change(_URL.sub(keep, text.replace("\0", "")))
    return re.sub("\0(\\d+)\0", lambda place: kept[int(place[1])], changed)


def _without_values(text: str) -> str:
    return _SCHEME.sub(rf"\1 {LEFT_OUT}", _NAMED.sub(_without_value, _TOKEN.sub(LEFT_OUT, text)))


def _without_value(found: re.Match[str]) -> str:
    # Numbers of tokens are counts, and a name in capitals is that of a variable, not its value.
    value = found["value"].strip("\"'")
    counts = "token" in found["name"].lower() and re.fullmatch(r"[\d.]+", value)
    return found[0] if counts or not value or value in {"None", "null", "true", "false"} else found["name"] + LEFT_OUT


def redacted_text(text: str) -> str:
    """Return `text` without credentials, and with its absolute paths cut to their last part.

    >>> redacted_text("No such file: '/home/me/clips/a.wav'"), redacted_text("and/or, 3/4")
    ("No such file: 'a.wav'", 'and/or, 3/4')
    """
    return _around_urls(text, lambda rest: _PATH.sub(lambda path: path[1] or LEFT_OUT, _without_values(rest)))


def without_places(value: Any) -> Any:
    """Return settings that hold nothing private with the paths in them cut to their last part."""
    if isinstance(value, Mapping):
        return {key: without_places(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(entry) for entry in value]
    return redacted_text(value) if isinstance(value, str) else value


def _public_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return LEFT_OUT
    if parts.scheme == "file":
        return PurePath(parts.path).name
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def known_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the secrets in the environment of this process, such as the value of OPENAI_API_KEY, by name.

    >>> known_secrets({"OPENAI_API_KEY": "sk-0123456789", "HOME": "/home/me", "API_KEY": "none"})
    {'OPENAI_API_KEY': 'sk-0123456789'}
    """
    return {
        name: value
        for name, value in (os.environ if environment is None else environment).items()
        if _ENVIRONMENT_NAME.fullmatch(name) and len(value) >= _SHORTEST and not value.startswith(("/", "~", "."))
    }


def refuse_secrets(texts: Callable[[], Iterable[str]], what: str, further: Mapping[str, str] | None = None) -> None:
    """Raise UsageError if a text of `what` holds a secret of this process's environment, or a `further` one by name.

    `texts` returns the texts; it is not called where there are no secrets.
    """
    secrets = known_secrets() | dict(further or {})
    for text in texts() if secrets else ():
        for name, secret in secrets.items():
            if secret in text:
                raise UsageError(
                    f"{what} would hold a secret, {name}: nothing is written; take it out of the run, and change it "
                    "where it was given out"
                )
