"""Entry points: tasks, engines, dataset builders and annotators from other installed packages."""

from __future__ import annotations

from functools import cache
from typing import Any

from equivox.core.errors import RequestError

TASKS, ENGINES, DATASET_BUILDERS, ANNOTATORS = (
    "equivox.tasks",
    "equivox.engines",
    "equivox.dataset_builders",
    "equivox.annotators",
)
"""The groups of entry points.

`equivox.tasks`
    A `Task`, or a list of them.
`equivox.engines`
    A function of the model arguments (a mapping, or the text after the colon) that returns an engine.
`equivox.dataset_builders`
    A `Builder` class, or a function of a `DataSource` and `--data` that returns a `Corpus`.
`equivox.annotators`
    A function without arguments that returns an annotator.
"""
GROUPS = (TASKS, ENGINES, DATASET_BUILDERS, ANNOTATORS)


@cache
def added(group: str) -> dict[str, tuple[str, Any]]:
    """Return the objects that installed packages add to a group: name → the package's name and the object.

    Raises RequestError, naming the package, for an entry point that cannot be loaded or a name that two packages use.
    """
    from importlib.metadata import entry_points

    found: dict[str, tuple[str, Any]] = {}
    for entry in entry_points(group=group):
        package = entry.dist.name if entry.dist else entry.module
        if entry.name in found:
            raise RequestError(
                f"the packages {found[entry.name][0]} and {package} both add {entry.name!r} to {group}; "
                "uninstall one of them"
            )
        try:
            found[entry.name] = package, entry.load()
        except Exception as error:  # a foreign module raises whatever it raises
            raise RequestError(
                f"the package {package} adds {entry.name!r} to {group}, which cannot be loaded "
                f"({type(error).__name__}: {error}); update or uninstall it"
            ) from error
    return found


@cache
def plugin_packages() -> frozenset[str]:
    """Return the top-level modules of the installed packages with entry points of equivox."""
    from importlib.metadata import entry_points

    return frozenset(entry.module.partition(".")[0] for group in GROUPS for entry in entry_points(group=group))
