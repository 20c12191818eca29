"""Texts that change what is said to a model, as interventions: system prompts in files, and other wordings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from equivox.core.errors import RequestError

LONGEST = 20_000
"""The most characters of a system prompt; what is longer is rather another file, named by mistake."""

System = str | tuple[str, ...] | dict[str, str]
"""Text files with a system prompt each, or the prompts themselves by their names: a field of task and run files."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def read_system_prompts(files: str, folder: Path | None = None) -> dict[str, str]:
    """Return the texts of the files that commas separate, by their names without ending; white space around is removed.

    Paths begin in `folder`. RequestError for a file that is missing, empty, too long or no text, for a name that no
    condition can have, and for two files of one name.
    """
    found: dict[str, str] = {}
    for file in filter(None, map(str.strip, files.split(","))):
        path = (folder or Path()) / file
        name = path.stem
        if name in found:
            raise RequestError(f"`system` names two files called {name!r} ({files}); rename one of them")
        found[name] = checked_system_prompt(name, _read(path), str(path))
    if not found:
        raise RequestError(f"`system` names no file, got {files!r}; name text files, separated by commas")
    return found


def system_prompts_in(given: str | tuple[str, ...] | Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the system prompts that a task or run file at `path` names or holds, by their names.

    Paths begin in its folder. RequestError as `read_system_prompts`.
    """
    if isinstance(given, Mapping):
        return {name: checked_system_prompt(name, text, f"in the file {path}") for name, text in given.items()}
    files = given if isinstance(given, str) else ",".join(given)
    return read_system_prompts(files, path.parent) if given else {}


def checked_system_prompt(name: str, text: str, where: str) -> str:
    """Return a system prompt without the white space around it; RequestError, naming `where`, for one that is none."""
    if problem := text_problem(name, text):
        raise RequestError(f"`system` {where}{problem}")
    return text.strip()


def text_problem(name: str, text: str) -> str:
    """Return what is wrong with the text of an intervention or with its name, to be put behind it; empty if nothing."""
    if not _NAME.fullmatch(name):
        return f": a condition is called after {name!r}; use at most 60 letters (A to Z), digits, _ and -"
    if "\0" in text:
        return " is not a text; give a text file in UTF-8"
    if not text.strip():
        return " is empty; write what is to be said"
    if len(text) > LONGEST:
        return f" has {len(text):,} characters, more than the {LONGEST:,} of a prompt; shorten it, or check the path"
    return ""


def _read(path: Path) -> str:
    """Return the text of a file, as much of it as tells whether it is too long."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(LONGEST + 1)
            return text if len(text) <= LONGEST else text + file.read(100 * LONGEST)
    except UnicodeDecodeError:
        raise RequestError(f"`system` {path} is not a text; give a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"`system` {path} cannot be read: {reason}; name a text file") from None
