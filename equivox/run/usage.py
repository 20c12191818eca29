"""A run's use of servers: requests, tokens and cost, of the model and of each annotator that is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from equivox.core.files import read_document, write_document

USAGE_FILE = "usage.json"


def read_usage(folder: Path) -> dict[str, float]:
    """Return what was used of a server over all starts: requests, tokens, cost; empty if none was.

    `folder` is that of a run, or that of the annotations by one annotator.
    """
    try:
        return read_document(folder / USAGE_FILE)
    except FileNotFoundError:
        return {}


def add_usage(folder: Path, used: Mapping[str, float], before: Mapping[str, float] = MappingProxyType({})) -> None:
    """Add what an engine has `used` of a server, if anything, to that of earlier starts.

    `before` is what it had used when this work began; nothing by default.
    """
    since = {name: value - before.get(name, 0) for name, value in used.items()}
    if since.get("requests"):
        total = read_usage(folder)
        document = {name: value + total.get(name, 0) for name, value in since.items()}
        write_document(folder / USAGE_FILE, document)
