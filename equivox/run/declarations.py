"""The tasks of a run as JSON, so that it can be annotated and scored again without the file that declared them.

A run is data, whoever made it. Tasks are built again from it. Code in them (a metric, a scheme with stages,
presentations, simulated answers) is looked up, by exactly what is stored of it, among the tasks that equivox and
installed packages register and those that the user names in this process. Nothing is imported, opened or called because
a run says so.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from equivox.core.errors import UsageError
from equivox.core.fields import complaint
from equivox.core.files import damaged, is_file_name, read_document, write_document
from equivox.core.metric import Metric
from equivox.core.plugins import TASKS, added, plugin_packages
from equivox.core.segments import AnnotationScheme
from equivox.core.task import Task
from equivox.core.task_checks import tasks_in
from equivox.run.manifest import read_manifest
from equivox.run.python_files import FILE_MODULE

TASKS_FILE = "tasks.json"

Kind = TypeVar("Kind")

_TASKS = TypeAdapter(list[Task])
_SCHEME = TypeAdapter(AnnotationScheme)
_WHOLE = f"{AnnotationScheme.__module__}:{AnnotationScheme.__qualname__}"
"""The scheme without stages, which is data."""

_given: dict[str, Any] = {}
"""The code of the tasks that the user named in this process: what is stored of it → the object."""


def write_tasks(folder: Path, tasks: Sequence[Task]) -> None:
    """Write the tasks of a run; UsageError as `give`."""
    write_document(folder / TASKS_FILE, {"tasks": encode(tasks, _given)})


def give(tasks: Sequence[Task]) -> None:
    """Register tasks that the user named, so that runs that need their code can be read in this process.

    Raises UsageError for a task that cannot be stored: no file can have its name, or its code has no name.
    """
    for task in tasks:
        if not is_file_name(task.name):
            raise UsageError(f"the task name {task.name!r} cannot be a file name; remove the slashes")
    encode(tasks, _given)


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
        tasks = decode(document.get("tasks"))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    for task in tasks:
        if not is_file_name(task.name):
            raise damaged(path, f"no file can be called after its task {task.name!r}")
    return tasks


def encode(tasks: Sequence[Task], code: dict[str, Any]) -> Any:
    """Return tasks as plain JSON values; the code in them is added to `code`, by what is stored of it."""
    try:
        return _TASKS.serializer.to_python(list(tasks), mode="json", context=partial(store_code, code))
    except PydanticSerializationError as error:
        raise error.__cause__ or error from None


def decode(stored: Any) -> list[Task]:
    """Return the tasks that `encode` wrote.

    Raises UsageError for code that is not registered, and for a value of the wrong type.
    """
    return _read(_TASKS, stored)


def _read(kind: TypeAdapter[Kind], stored: Any) -> Kind:
    try:
        return kind.validate_json(json.dumps(stored), context=find_code)
    except ValidationError as error:
        raise UsageError(complaint(error)) from None


def store_code(code: dict[str, Any], value: Any) -> Any:
    """Return `module:name` of a function, a class or a metric, or the class and the fields of another object."""
    kind = type(value)
    if isinstance(value, Metric):
        stored: Any = _name(value, _modules_of(value), f"the metric {value.name}")
    elif isinstance(value, type) or hasattr(value, "__qualname__"):
        stored = _name(value, [value.__module__], f"the function {value.__qualname__}")
    else:
        if not dataclasses.is_dataclass(value) and vars(value):
            raise UsageError(
                f"{kind.__qualname__} cannot be stored with the run: make it a frozen dataclass, whose fields are its "
                "data"
            )
        fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        own = {field.name: getattr(value, field.name) for field in fields if field.init}
        stored = {"$type": _name(kind, [kind.__module__], f"the class {kind.__qualname__}")} | to_jsonable_python(
            own, fallback=partial(store_code, code)
        )
    code[json.dumps(stored)] = value
    return stored


def find_code(stored: Any) -> Any:
    """Return the registered object of which exactly `stored` is stored; a scheme without stages is made of it.

    UsageError for what is not registered.
    """
    if isinstance(stored, dict) and stored.get("$type") == _WHOLE:
        fields = {name: value for name, value in stored.items() if name != "$type"}
        return _read(_SCHEME, fields)
    key = json.dumps(stored)
    found = _given.get(key) or _metric(stored) or _registered().get(key)
    if found is None:
        raise UsageError(_not_registered(str(stored.get("$type") if isinstance(stored, dict) else stored)))
    return found


@cache
def _registered() -> dict[str, Any]:
    """Return the code of the tasks of equivox and of installed packages: what is stored of it → the object."""
    code: dict[str, Any] = {}
    for plugin in added(TASKS, read=tasks_in).values():
        encode(plugin.given or (), code)
    return code


def _metric(name: Any) -> Metric | None:
    """Return the metric of equivox called `name`, or None; it needs no task that is registered.

    Only a folder of metrics that equivox has is imported, whatever the name says.
    """
    for folder in iter_modules(import_module("equivox.metrics").__path__):
        if folder.ispkg and str(name).startswith(f"equivox.metrics.{folder.name}."):
            metric = getattr(import_module(f"equivox.metrics.{folder.name}"), "METRIC", None)
            if isinstance(metric, Metric) and store_code({}, metric) == name:
                return metric
    return None


def _not_registered(name: str) -> str:
    """Return why code called `name` is not looked up, and what helps."""
    module = name.partition(":")[0]
    top, _, file = module.partition(".")
    if top == FILE_MODULE and file:
        file = f"{file.rpartition('_')[0]}.py"
        return (
            f"the run needs code of {file}, as it was when the run was made; name the file behind the run, as in "
            f"`equivox score RUN {file}`"
        )
    if top == "equivox" or top in plugin_packages():
        return (
            f"the run names {name!r:.120} with settings that no registered task has; name the task file that has them "
            "behind the run, as in `equivox score RUN my_tasks.yaml`, or use the version that made the run"
        )
    return (
        f"the run names code of {module!r:.80}, which is neither equivox nor an installed package that adds tasks; "
        "install the package that it comes from"
    )


def _modules_of(metric: Metric) -> list[str]:
    """Return where a metric can be a global: the module of its function, `metric` beside it, the packages around it."""
    name = metric.score.__module__
    parts = name.split(".")
    around = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [name, f"{name.rpartition('.')[0]}.metric", *around[1:]]


def _name(value: Any, modules: Sequence[str], what: str) -> str:
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
