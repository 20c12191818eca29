"""The tasks of a run as JSON, so that it can be annotated and scored again without the file that declared them.

A run is data, whoever made it. The kinds in `KINDS` are stored by value and built again from it. Everything else (a
metric, a scheme with stages, presentations, simulated answers) is looked up, by exactly what is stored of it, among the
tasks that equivox and installed packages register and those that the user names in this process. Nothing is imported,
opened or called because a run says so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from equivox.core.attributes import Attribute, Number, WorkedExample
from equivox.core.errors import DamageError, UsageError
from equivox.core.fields import typed
from equivox.core.files import damaged, is_file_name, read_document, unreadable, write_document
from equivox.core.metric import Metric
from equivox.core.plugins import TASKS, added, plugin_packages
from equivox.core.segments import AnnotationScheme
from equivox.core.task import DataSource, Media, Patch, Prompt, Sampling, Task
from equivox.core.task_checks import tasks_in
from equivox.run.manifest import read_manifest

TASKS_FILE = "tasks.json"
FILE_MODULE = "equivox_task_files"
"""The package name for the modules of Python task files."""

KINDS = (
    *(Task, Prompt, Patch, Media, Sampling, DataSource),
    *(AnnotationScheme, Attribute, Number, WorkedExample),
)
"""The classes whose objects are built from the data of a run."""

_KINDS: Mapping[str, type] = {f"{kind.__module__}:{kind.__qualname__}": kind for kind in KINDS}

_given: dict[str, Any] = {}
"""What the tasks that the user named in this process consist of: what is stored of it → the object."""


def write_tasks(folder: Path, tasks: Sequence[Task]) -> None:
    """Write the tasks of a run; UsageError as `give`."""
    write_document(folder / TASKS_FILE, {"tasks": [encode(task, _given) for task in tasks]})


def give(tasks: Sequence[Task]) -> None:
    """Register tasks that the user named, so that runs that need their code can be read in this process.

    Raises UsageError for a task that cannot be stored: no file can have its name, or its code has no name.
    """
    for task in tasks:
        if not is_file_name(task.name):
            raise UsageError(f"the task name {task.name!r} cannot be a file name; remove the slashes")
        encode(task, _given)


def read_tasks(folder: Path) -> list[Task]:
    """Return the tasks of the run in `folder`, as declared when it was made.

    UsageError for a folder without a run and for code that is not registered here; DamageError for anything that is
    not the declaration of a task, and for a task whose name no file can have: a run may come from somebody else.
    """
    read_manifest(folder)
    path = folder / TASKS_FILE
    try:
        document = read_document(path)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} has no {TASKS_FILE}: the run stopped before its first request; run it again"
        ) from None
    try:
        tasks = [decode(entry) for entry in document["tasks"]]
    except DamageError:
        raise
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise damaged(path, f"it does not hold the tasks of a run: {type(error).__name__}: {error}") from error
    for task in tasks:
        if not isinstance(task, Task):
            raise damaged(path, f"it holds {type(task).__name__} where a task belongs")
        if not is_file_name(task.name):
            raise damaged(path, f"no file can be called after its task {task.name!r}")
    return tasks


def encode(value: Any, parts: dict[str, Any]) -> Any:
    """Return a task or a part of one as plain JSON values; what `decode` has to look up is added to `parts`."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Path):
        return {"$path": str(value.absolute())}
    if isinstance(value, Mapping):
        return {"$map": [[encode(k, parts), encode(v, parts)] for k, v in value.items()]}
    if isinstance(value, list | tuple | frozenset):
        return [encode(entry, parts) for entry in value]
    kind = type(value)
    if isinstance(value, Metric):
        encoded: dict[str, Any] = {"$code": _code(value, _modules_of(value), f"the metric {value.name}")}
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        encoded = {"$code": _code(value, [value.__module__], f"the function {value.__qualname__}")}
    else:
        encoded = {"$type": _code(kind, [kind.__module__], f"the class {kind.__qualname__}")}
        if dataclasses.is_dataclass(value):
            encoded |= {f.name: encode(getattr(value, f.name), parts) for f in dataclasses.fields(value) if f.init}
        elif vars(value):
            raise UsageError(
                f"{kind.__qualname__} cannot be stored with the run: make it a frozen dataclass, whose fields are "
                "its data"
            )
    if kind not in KINDS:
        parts[_stored(encoded)] = value
    return encoded


def decode(value: Any) -> Any:
    """Return the object that `encode` wrote; lists become tuples.

    Raises UsageError for what has to be looked up and is not registered, and for a value of the wrong type.
    """
    if isinstance(value, list):
        return tuple(decode(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    if "$path" in value:
        return Path(value["$path"])
    if "$map" in value:
        return {decode(k): decode(v) for k, v in value["$map"]}
    kind = _KINDS.get(str(value.get("$type")))
    if kind is None:
        return _find(value)
    return typed(kind, {name: decode(entry) for name, entry in value.items() if name != "$type"}, Metric=Metric)


def _find(value: Mapping[str, Any]) -> Any:
    """Return the registered object of which exactly `value` is stored."""
    stored = _stored(value)
    found = _given.get(stored)
    if found is None:
        found = _metric(str(value.get("$code")))
    if found is None:
        found = _registered().get(stored)
    if found is None:
        raise UsageError(_not_registered(str(value.get("$code", value.get("$type")))))
    return found


@cache
def _registered() -> Mapping[str, Any]:
    """Return what the tasks of equivox and of installed packages consist of: what is stored of it → the object."""
    parts: dict[str, Any] = {}
    for plugin in added(TASKS, read=tasks_in).values():
        encode(plugin.given, parts)
    return parts


def _metric(code: str) -> Metric | None:
    """Return the metric of equivox that is stored as `code`, or None; it needs no task that is registered.

    Only a folder of metrics that equivox has is imported, whatever the code says.
    """
    for folder in iter_modules(import_module("equivox.metrics").__path__):
        if folder.ispkg and code.startswith(f"equivox.metrics.{folder.name}."):
            metric = getattr(import_module(f"equivox.metrics.{folder.name}"), "METRIC", None)
            if isinstance(metric, Metric) and encode(metric, {}) == {"$code": code}:
                return metric
    return None


def _not_registered(name: str) -> str:
    """Return why code called `name` cannot be found, and what helps."""
    module = name.partition(":")[0]
    if module.startswith(f"{FILE_MODULE}."):
        file = f"{module.partition('.')[2].rpartition('_')[0]}.py"
        return (
            f"the run needs code of {file}, as it was when the run was made, and code is not looked for in a run; "
            f"name the file behind the run, as in `equivox score RUN {file}`"
        )
    top = module.partition(".")[0]
    if top == "equivox" or top in plugin_packages():
        return (
            f"the run names {name!r:.120} with settings that no registered task has; if they are of a task file of "
            "yours, name the file behind the run, as in `equivox score RUN my_tasks.yaml`; otherwise use the versions "
            "that made the run, which its manifest.json names"
        )
    return (
        f"the run names code of {module!r:.80}, which is neither equivox nor an installed package that adds tasks; "
        "install the package that it comes from"
    )


def _stored(encoded: Mapping[str, Any]) -> str:
    return json.dumps(encoded, sort_keys=True)


def _modules_of(metric: Metric) -> list[str]:
    """Return where a metric can be a global: the module of its function, `metric` beside it, the packages around it."""
    name = metric.score.__module__
    parts = name.split(".")
    around = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [name, f"{name.rpartition('.')[0]}.metric", *around[1:]]


def _code(value: Any, modules: Sequence[str], what: str) -> str:
    """Return `module:name` of a global object of equivox, of an installed package or of a task file."""
    for name in modules:
        module = sys.modules.get(name)
        members = vars(module).items() if module is not None else ()
        found = next((own for own, member in members if member is value), None)
        if found is None:
            continue
        top = name.partition(".")[0]
        if top not in {"equivox", FILE_MODULE} and top not in plugin_packages():
            break
        return f"{name}:{found}"
    raise UsageError(
        f"{what} cannot be imported by another process; define it by name at the top of a Python task file, "
        "or in a package with an entry point of equivox"
    )


def load_file(path: Path) -> ModuleType:
    """Execute a Python task file that the user named and return its module; UsageError, with the line, if it fails.

    The module's name holds a hash of the file's text, so that the name of code in a run means one text only.
    """
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise unreadable(f"the task file {path}", path, error) from error
    name = f"{FILE_MODULE}.{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"cannot read the task file {path}; check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UsageError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # `exit()` in it would end the command as if all were done
        del sys.modules[name]
        frames = reversed(traceback.extract_tb(error.__traceback__))
        line = next((frame.lineno for frame in frames if frame.filename == spec.origin), None)
        where = f"{path}, line {line}" if line else str(path)
        raise UsageError(f"task file {where}: {type(error).__name__}: {error}; correct it") from error
    return module
