"""Find tasks: built-in ones, families, task files, and those of installed packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from equivox.core.errors import UsageError, nearest
from equivox.core.plugins import TASKS, added, warned
from equivox.core.task import DataSource, Task
from equivox.core.task_checks import tasks_in
from equivox.tasks import ALL_TASKS, OPEN_FAMILIES


def builtin_tasks() -> dict[str, Task]:
    """Return every task by name: those of equivox, then those of installed packages."""
    return {**{task.name: task for task in ALL_TASKS}, **_added_tasks()[0]}


@cache
def _added_tasks() -> tuple[dict[str, Task], dict[str, str]]:
    """Return the tasks of installed packages by name, and for each name that is refused the reason.

    A name is refused if its entry point cannot be loaded, if two packages use it, or if its family is one of equivox.
    """
    plugins = added(TASKS, read=tasks_in)
    own, families = {task.name: task for task in ALL_TASKS}, {task.family for task in ALL_TASKS}
    refused = {name: plugin.refusal for name, plugin in plugins.items() if plugin.refusal}
    found: dict[str, tuple[str, Task]] = {}
    for plugin in plugins.values():
        for task in plugin.given or ():
            if own.get(task.name) is task:  # equivox adds its own tasks by an entry point, too
                continue
            package, first = found.setdefault(task.name, (plugin.package, task))
            if task.name in own:
                warned(f"{plugin.package} adds the task {task.name}, which equivox has; that of equivox is used")
            elif task.family in families:
                why = f"{plugin.package} adds {task.name} to a family of equivox, whose tasks are averaged; rename it"
                refused[task.name] = warned(why)
            elif first is not task:
                why = f"{package} and {plugin.package} both add the task {task.name}; uninstall one of them"
                refused[task.name] = warned(why)
    return {name: task for name, (_, task) in found.items() if name not in {*own, *refused}}, refused


def custom_tasks(tasks: Sequence[Task]) -> list[str]:
    """Return the names of the tasks whose prompt, metric or corpus does not come with equivox."""
    known = {(task.prompt.name, task.prompt.version, task.metric.name) for task in ALL_TASKS}
    return [
        task.name
        for task in tasks
        if task.data.table is not None or (task.prompt.name, task.prompt.version, task.metric.name) not in known
    ]


def open_task(name: str) -> Task | None:
    """Return the task called `name` of a family with a task for every domain of its corpus; None for other names.

    >>> task = open_task("spoken_stereoset:home_region")
    >>> (task.group, open_task("vibe_gender:novel")) if task else None
    (('home_region',), None)
    """
    family, _, domain = name.partition(":")
    if family not in OPEN_FAMILIES or not re.fullmatch(r"[a-z][a-z0-9_]*", domain):
        return None
    return OPEN_FAMILIES[family](family, domain)


def resolve_tasks(selection: str) -> list[Task]:
    """Return the tasks named in a comma-separated `selection`, each once, in the order named.

    An entry is a task (`vibe_gender:story`), a family (`vibe_gender`), a task on another domain of a family that takes
    any (`spoken_stereoset:accent`), a YAML file that declares tasks on a custom corpus, or a Python file with `TASKS`.
    Raises UsageError with the nearest names for other entries.
    """
    own = {task.name: task for task in ALL_TASKS}
    chosen: dict[str, Task] = {}
    tables: dict[str, DataSource] = {}
    for entry in filter(None, (part.strip() for part in selection.split(","))):
        if is_task_file(entry):
            found = open_task_file(Path(entry))
        elif entry in own:  # without the packages, one of which may be asking while it is imported
            found = [own[entry]]
        else:
            found = _found(entry)
        for task in found:
            if chosen.setdefault(task.name, task).fingerprint != task.fingerprint:
                raise UsageError(f"two different tasks are called {task.name}; give one of the files another `name`")
            rows = replace(task.data, in_prompts=())  # a corpus is opened once for all tasks that name it
            if rows.table is not None and tables.setdefault(rows.corpus, rows) != rows:
                raise UsageError(f"two different tables are called {rows.corpus}; give one of the files another `name`")
    if not chosen:
        raise UsageError(f"`tasks` names none, got {selection!r}; for example vibe_gender or vibe_gender:story")
    return list(chosen.values())


def _found(entry: str) -> list[Task]:
    """Return the tasks of a family, of an installed package, or on another domain; UsageError for other entries."""
    known, refused = builtin_tasks(), _added_tasks()[1]
    families = {task.family for task in known.values()}
    if entry in known:
        return [known[entry]]
    if entry in families:
        return [task for task in known.values() if task.family == entry]
    if task := open_task(entry):
        return [task]
    if reason := refused.get(entry) or refused.get(entry.partition(":")[0]):
        raise UsageError(reason)
    raise UsageError(
        f"unknown task {entry!r}{nearest(entry, [*known, *families])}; "
        "`equivox tasks` shows all; a custom task is given as a .yaml or .py file"
    )


def is_task_file(name: str) -> bool:
    """Return whether `name` ends as the name of a task file does: .yaml, .yml or .py."""
    return name.endswith((".yaml", ".yml", ".py"))


def open_task_file(path: Path) -> list[Task]:
    """Return the tasks in a task file that the user named; a Python file is executed.

    Runs that need code of these tasks can be read afterwards. Raises UsageError, naming the file and the field or
    the line, for anything missing or malformed.
    """
    from equivox.run.declarations import give
    from equivox.run.python_files import load_file
    from equivox.tasks.files import load_task_file

    if not is_task_file(str(path)):
        raise UsageError(f"{path} is not a task file (.yaml, .yml or .py); name one run at a time")
    if path.suffix == ".py":
        module = load_file(path)
        if not hasattr(module, "TASKS"):
            raise UsageError(f"task file {path} has no `TASKS`; give it TASKS = [my_task]")
        found = tasks_in(module.TASKS, f"`TASKS` of {path}")
    else:
        found = load_task_file(path)
    give(found)
    return found
