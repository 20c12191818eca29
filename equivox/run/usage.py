"""A run's use of servers: requests, tokens and cost, of the model and of each annotator that is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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


def usage_of(engine: object) -> dict[str, float]:
    """Return what `engine` has used of a server since it was opened; empty if it does not say."""
    usage = getattr(engine, "usage", None)
    return {} if usage is None else dict(vars(usage))


def add_usage(folder: Path, engine: object, before: Mapping[str, float] | None = None) -> None:
    """Add the usage that `engine` reports, if any, to that of earlier starts.

    `before` is what it had used when this work began; nothing by default.
    """
    began = before or {}
    since = {name: value - began.get(name, 0) for name, value in usage_of(engine).items()}
    if since.get("requests"):
        total = read_usage(folder)
        document = {name: value + total.get(name, 0) for name, value in since.items()}
        write_document(folder / USAGE_FILE, document)
