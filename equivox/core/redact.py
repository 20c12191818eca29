"""Removal of credentials and local paths before a run is published."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

LEFT_OUT = "(left out)"

_SECRET = r"(?:api[_-]?key|access[_-]?key|token|secret|password|passwd|authorization|credential|cookie)s?"
_SECRET_NAME = re.compile(rf"(?:^|.*[^a-z]){_SECRET}|.*{_SECRET}", re.IGNORECASE)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>,;)}\]]+", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w:/.~-])(?:(?:~|[A-Za-z]:)[\\/](?:[\w.@+~ -]+[\\/])*|/(?=[\w.])(?:[\w.@+~ -]+[\\/])+)([\w.@+~-]*)"
)
_ENVIRONMENT_NAME = re.compile(rf".*{_SECRET}|.*_key", re.IGNORECASE)
_SHORTEST = 8


def redacted(value: Any, name: str = "") -> Any:
    """Return settings without private content, ready to be published; other content is unchanged.

    Text under a name such as `api_key` or `Authorization` is removed (numbers such as `max_tokens` stay), URLs lose
    user, password and query, paths are cut to their last part.

    >>> redacted({"base_url": "https://me:pw@host/v1?key=1", "headers": {"X-Api-Key": "abc"}, "model": "/home/me/tiny"})
    {'base_url': 'https://host/v1', 'headers': {'X-Api-Key': '(left out)'}, 'model': 'tiny'}
    """
    if isinstance(value, Mapping):
        return {key: redacted(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(entry, name) for entry in value]
    if not isinstance(value, str) or not value:
        return value
    return LEFT_OUT if _SECRET_NAME.fullmatch(name) else redacted_text(value)


def redacted_text(text: str) -> str:
    """Return `text` with its URLs cut to scheme, host and path, and its absolute paths to their last part.

    >>> redacted_text("No such file: '/home/me/clips/a.wav'"), redacted_text("and/or, 3/4")
    ("No such file: 'a.wav'", 'and/or, 3/4')
    """
    kept: list[str] = []

    def keep(url: re.Match[str]) -> str:
        kept.append(_public_url(url[0]))
        return f"\0{len(kept) - 1}\0"

    without = _PATH.sub(lambda path: path[1] or LEFT_OUT, _URL.sub(keep, text))
    return re.sub("\0(\\d+)\0", lambda place: kept[int(place[1])], without)


def _public_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return PurePath(parts.path).name
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def known_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the secrets in the environment, by name: the values of variables such as OPENAI_API_KEY.

    >>> known_secrets({"OPENAI_API_KEY": "sk-0123456789", "HOME": "/home/me", "API_KEY": "none"})
    {'OPENAI_API_KEY': 'sk-0123456789'}
    """
    return {
        name: value
        for name, value in (os.environ if environment is None else environment).items()
        if _ENVIRONMENT_NAME.fullmatch(name) and len(value) >= _SHORTEST and "/" not in value
    }
