"""Code of other installed packages: what they add by entry points, and how it is called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from equivox.core.errors import EquivoxError, RunError, UsageError, one_line
from equivox.core.hashing import digest
from equivox.core.redact import cleaned
from equivox.core.text import visible

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    A function of the model arguments (a mapping) that returns an engine.
`equivox.dataset_builders`
    A `Builder` class, or a function of a `DataSource` and `--data` that returns a `Corpus`.
`equivox.annotators`
    A function without arguments that returns an annotator.
"""
GROUPS = (TASKS, ENGINES, DATASET_BUILDERS, ANNOTATORS)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """One name that an installed package adds: its object, or in `refusal` the reason why nobody can use it."""

    package: str
    given: Any = None
    refusal: str = ""

    def use(self) -> Any:
        """Return the object; UsageError with the reason if the name is refused."""
        if self.refusal:
            raise UsageError(self.refusal)
        return self.given


@contextmanager
def told_in_one_line(named: str) -> Iterator[None]:
    """Raise RunError, in one line without secrets, for whatever goes wrong in a plug-in: it is somebody's code.

    MemoryError passes: the command line says what to do about it.
    """
    try:
        yield
    except (EquivoxError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        said = cleaned(str(error))
        reason = f"{type(error).__name__}: {one_line(said)}" if said else type(error).__name__
        # `contextmanager` would take an error that a StopIteration causes for that StopIteration, and let it pass.
        cause = None if isinstance(error, StopIteration) else error
        raise RunError(
            f"{named} failed ({reason}); stored responses are kept; --debug shows where it failed"
        ) from cause


class _Opened(Protocol):
    """An engine or an annotator, as far as it is checked and freed."""

    @property
    def named(self) -> str: ...

    def check(self, asked: Any, /) -> None: ...

    def close(self) -> None: ...


Opened = TypeVar("Opened", bound=_Opened)


@contextmanager
def freed(opened: Opened) -> Iterator[Opened]:
    """Yield an engine or an annotator and close it on exit. Raise RunError if closing fails."""
    with afterwards(partial(close, opened)):
        yield opened


@contextmanager
def afterwards(do: Callable[[], None]) -> Iterator[None]:
    """Call `do` at the end, whatever happens before.

    An error before it is raised again: an engine that failed often cannot be closed either.
    """
    try:
        yield
    except BaseException as error:
        try:
            do()
        except EquivoxError as second:
            error.add_note(str(second))
        raise
    do()


def check(opened: _Opened, asked: Any) -> None:
    """Let an engine check requests, or an annotator tasks; RunError, in one line, for what goes wrong in that."""
    with told_in_one_line(opened.named):
        opened.check(asked)


def close(opened: _Opened) -> None:
    """Close an engine or an annotator; RunError, in one line, for what goes wrong in that."""
    with told_in_one_line(opened.named):
        opened.close()


def refuse_odd_identity(identity: Any, what: str) -> None:
    """Raise UsageError for the identity of `what`, an engine or an annotator, that cannot be written down."""
    from equivox.core.fields import typed

    try:
        typed(type(identity), {own.name: getattr(identity, own.name) for own in fields(identity)})
        digest(identity.as_dict())
    except (TypeError, ValueError, RecursionError) as error:  # a UsageError is a ValueError
        raise UsageError(f"{what} has a wrong `identity`: {error}") from error


def a_function(given: Any, where: str) -> Any:
    """Return a function or a class; UsageError for any other object."""
    if not callable(given):
        raise UsageError(f"{where} gives {given!r:.60}, not a function")
    return given


@cache
def added(
    group: str, taken: Collection[str] = frozenset(), read: Callable[[Any, str], Any] = a_function
) -> dict[str, Plugin]:
    """Return what installed packages add to a group, by name.

    A name is refused, with one warning, if its object cannot be loaded or if two packages use it; every other name
    works. A name in `taken` is one of equivox, which stays what it is. `read` receives an object and its origin, and
    returns what is used of it; it raises UsageError for an object of the wrong kind.
    """
    from importlib.metadata import entry_points

    by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        if entry.name in taken:
            warned(f"{_package(entry)} adds {entry.name!r} to {group}, which equivox has; that of equivox is used")
        else:
            by_name.setdefault(entry.name, []).append(entry)
    return {name: _plugin(group, entries, read) for name, entries in by_name.items()}


def warned(reason: str) -> str:
    """Return a reason, on one line, after a warning that gives it."""
    reason = visible(" ".join(reason.split()))
    _LOG.warning("warning: %s", reason)
    return reason


def _plugin(group: str, entries: list[EntryPoint], read: Callable[[Any, str], Any]) -> Plugin:
    """Return the plug-in of one name, for which there should be one entry point."""
    name, packages = entries[0].name, " and ".join(map(_package, entries))
    if len(entries) > 1:
        why = f"{packages} all add {name!r} to {group}; uninstall all but one"
        return Plugin(package=packages, refusal=warned(why))
    try:
        return Plugin(package=packages, given=read(entries[0].load(), f"the entry point {name} of {packages}"))
    except (Exception, SystemExit) as error:  # a foreign module raises whatever it raises
        why = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        refusal = f"{packages} adds {name!r} to {group}, which cannot be loaded ({why}); update or uninstall it"
        return Plugin(package=packages, refusal=warned(refusal))


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name if entry.dist else entry.module}"


@cache
def plugin_packages() -> frozenset[str]:
    """Return the top-level modules of the installed packages with entry points of equivox."""
    from importlib.metadata import entry_points

    return frozenset(entry.module.partition(".")[0] for group in GROUPS for entry in entry_points(group=group))
