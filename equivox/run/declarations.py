"""The tasks of a run as JSON, so that it can be annotated and scored again without the file that declared them.

Data are stored by value. Code (a metric, a scheme's class, a function) is stored as `module:name`. It is imported from
equivox, from installed packages that have an entry point of equivox, and from Python task files that the run names,
but from nowhere else, so that opening somebody else's run does not execute code from it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.files import damaged, read_document, write_document
from equivox.core.metric import Metric
from equivox.core.plugins import plugin_packages
from equivox.core.task import Task

TASKS_FILE = "tasks.json"
FILE_MODULE = "equivox_task_files"
"""The package name for the modules of Python task files."""


def write_tasks(folder: Path, tasks: Sequence[Task]) -> None:
    """Write the tasks of a run; RequestError as `refuse_unstorable`."""
    write_document(folder / TASKS_FILE, _document(folder, tasks))


def refuse_unstorable(folder: Path, tasks: Sequence[Task]) -> None:
    """Raise RequestError for tasks that cannot be stored with a run in `folder`.

    Those are tasks whose name no file can have, and tasks with code that another process could not import or that lies
    in the folder itself.
    """
    _document(folder, tasks)


def _document(folder: Path, tasks: Sequence[Task]) -> dict[str, Any]:
    for task in tasks:
        if _has_no_file_name(task.name):
            raise RequestError(f"no file can be called after the task {task.name!r}; name it without slashes")
    files: dict[str, dict[str, str]] = {}
    encoded = [encode(task, files) for task in tasks]
    _refuse_code_inside(folder, files)
    return {"tasks": encoded, "files": files}


def read_tasks(folder: Path) -> list[Task]:
    """Return the tasks of the run in `folder`.

    RequestError for code that can no longer be imported or that the run brings along, DamageError for a task whose
    name no file can have: a run may come from somebody else.
    """
    path = folder / TASKS_FILE
    try:
        document = read_document(path)
    except FileNotFoundError:
        raise RequestError(f"{folder} has no {TASKS_FILE}: the run was stopped before it began; run it again") from None
    try:
        _refuse_code_inside(folder, document.get("files", {}))
        for entry in document["tasks"]:
            if _has_no_file_name(name := str(entry["name"])):
                raise damaged(path, f"no file can be called after its task {name!r}")
        return [decode(entry, document.get("files", {})) for entry in document["tasks"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise RequestError(
            f"{path} does not hold the tasks of a run ({type(error).__name__}: {error}); restore it, or make the run "
            "again"
        ) from error


def _refuse_code_inside(folder: Path, files: Mapping[str, Mapping[str, str]]) -> None:
    """Raise RequestError if the tasks need a Python file in the run's own folder, which comes with the run."""
    for known in files.values():
        path = Path(known.get("path", "")).resolve()
        if path.is_relative_to(folder.resolve()):
            raise RequestError(
                f"the code {path.name} is in the folder of the run, {folder}, and code that comes with a run is not "
                "executed; read it, and put it outside of that folder"
            )


def _has_no_file_name(name: str) -> bool:
    """Return whether no file can be called after the task `name`, or only one in another folder."""
    return not name or name.startswith(".") or any(sign in name for sign in "/\\\0")


def encode(value: Any, files: dict[str, dict[str, str]]) -> Any:
    """Return a task or a part of one as plain JSON values; Python task files that it needs are added to `files`."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Path):
        return {"$path": str(value.absolute())}
    if isinstance(value, Mapping):
        return {"$map": [[encode(k, files), encode(v, files)] for k, v in value.items()]}
    if isinstance(value, list | tuple | frozenset):
        return [encode(entry, files) for entry in value]
    if isinstance(value, Metric):
        return {"$code": _code(value, _modules_of(value), files, f"the metric {value.name}")}
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return {"$code": _code(value, [value.__module__], files, f"the function {value.__qualname__}")}
    kind = type(value)
    named = _code(kind, [kind.__module__], files, f"the class {kind.__qualname__}")
    if dataclasses.is_dataclass(value):
        fields = {f.name: encode(getattr(value, f.name), files) for f in dataclasses.fields(value) if f.init}
        return {"$type": named, **fields}
    if vars(value):
        raise RequestError(
            f"{kind.__qualname__} cannot be stored with the run: make it a frozen dataclass, whose fields are its data"
        )
    return {"$type": named}


def decode(value: Any, files: Mapping[str, Mapping[str, str]]) -> Any:
    """Return the object that `encode` wrote; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode(entry, files) for entry in value)
    if not isinstance(value, dict):
        return value
    if "$path" in value:
        return Path(value["$path"])
    if "$map" in value:
        return {decode(k, files): decode(v, files) for k, v in value["$map"]}
    if "$code" in value:
        return _find(value["$code"], files)
    kind = _find(value["$type"], files)
    if not isinstance(kind, type):
        raise RequestError(f"{value['$type']} is not a class any more; install the version that made the run")
    return kind(**{name: decode(entry, files) for name, entry in value.items() if name != "$type"})


def _modules_of(metric: Metric) -> list[str]:
    """Return the modules where a metric can be a global: the module of its function and the packages around it."""
    name = metric.score.__module__
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def _code(value: Any, modules: Sequence[str], files: dict[str, dict[str, str]], what: str) -> str:
    """Return `module:name` of a global object."""
    for name in modules:
        module = sys.modules.get(name)
        found = _name_in(module, value) if module is not None else None
        if found is None:
            continue
        if name.startswith(f"{FILE_MODULE}."):
            path = Path(str(getattr(module, "__file__", "")))
            files[name] = {"path": str(path.absolute()), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        elif not _trusted(name):
            break
        return f"{name}:{found}"
    raise RequestError(
        f"{what} cannot be found again by another process: give it a name of its own at the top of a Python task file "
        "(my_tasks.py), or of a package with an entry point of equivox"
    )


def _name_in(module: ModuleType, value: Any) -> str | None:
    named = getattr(value, "__qualname__", "")
    if named and _attribute(module, named) is value:
        return str(named)
    return next((name for name, member in vars(module).items() if member is value), None)


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _find(reference: str, files: Mapping[str, Mapping[str, str]]) -> Any:
    module_name, _, name = reference.partition(":")
    if module_name.startswith(f"{FILE_MODULE}."):
        module = _file_module(module_name, files)
    elif _trusted(module_name):
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise RequestError(f"the run needs {reference}, which cannot be imported ({error}); install it") from error
    else:
        raise RequestError(
            f"the run names code of {module_name}, which is neither equivox nor an installed package with an entry "
            "point of equivox; install the package that it comes from"
        )
    found = _attribute(module, name)
    if found is None:
        raise RequestError(f"the run needs {reference}, which is not there any more; install the version that made it")
    return found


def _file_module(name: str, files: Mapping[str, Mapping[str, str]]) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    known = files.get(name, {})
    path = Path(known.get("path", ""))
    if not path.is_file():
        raise RequestError(
            f"the run needs {path.name or name}, which is not at {path.parent} any more; put the file back there"
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != known["sha256"]:
        raise RequestError(f"{path} was changed since the run was made; restore it, or make the run again")
    return load_file(path)


def load_file(path: Path) -> ModuleType:
    """Execute a Python task file and return its module; RequestError, with the line, if it fails."""
    name = f"{FILE_MODULE}.{path.stem}_{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise RequestError(f"cannot read the task file {path}; check the path")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except RequestError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        line = next((f.lineno for f in reversed(_frames(error)) if f.filename == str(path)), None)
        where = f"{path}, line {line}" if line else str(path)
        raise RequestError(f"task file {where}: {type(error).__name__}: {error}; correct it") from error
    return module


def _frames(error: BaseException) -> list[Any]:
    import traceback

    return list(traceback.extract_tb(error.__traceback__))


def _trusted(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "equivox" or top in plugin_packages()
