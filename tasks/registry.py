"""Finding tasks by name: built-in ones, whole families, and files of one's own."""

from __future__ import annotations

import re
from pathlib import Path

from equivox.core.errors import RequestError, nearest
from equivox.core.task import Task


def builtin_tasks() -> dict[str, Task]:
    """Return every built-in task by name."""
    from equivox.tasks import ALL_TASKS

    return {task.name: task for task in ALL_TASKS}


def open_task(name: str) -> Task | None:
    """Return the task called `name` of a family that has one for every domain of its corpus; None for other names.

    >>> task = open_task("spoken_stereoset:home_region")
    >>> (task.group, open_task("vibe_gender:novel")) if task else None
    (('home_region',), None)
    """
    from equivox.tasks import OPEN_FAMILIES

    family, _, domain = name.partition(":")
    if family not in OPEN_FAMILIES or not re.fullmatch(r"[a-z][a-z0-9_]*", domain):
        return None
    return OPEN_FAMILIES[family](family, domain)


def resolve_tasks(selection: str) -> list[Task]:
    """Return the tasks named in a comma-separated `selection`, each once, in the order named.

    An entry is a task (`vibe_gender:story`), a family (`vibe_gender`), a task on another domain of a family that takes
    any (`spoken_stereoset:accent`), or a YAML file that declares tasks on a corpus of one's own. Raises RequestError
    with the nearest names for anything else.
    """
    known = builtin_tasks()
    families = {task.family for task in known.values()}
    chosen: dict[str, Task] = {}
    for entry in filter(None, (part.strip() for part in selection.split(","))):
        if entry.endswith((".yaml", ".yml")):
            from equivox.tasks.files import load_task_file

            found = load_task_file(Path(entry))
        elif entry in known:
            found = [known[entry]]
        elif entry in families:
            found = [task for task in known.values() if task.family == entry]
        elif task := open_task(entry):
            found = [task]
        else:
            raise RequestError(
                f"unknown task {entry!r}{nearest(entry, [*known, *families])}; "
                "`equivox tasks list` shows all; a task of one's own is given as a .yaml file"
            )
        for task in found:
            if chosen.setdefault(task.name, task) != task:
                raise RequestError(f"two different tasks are called {task.name}; give one of the files another `name`")
    if not chosen:
        raise RequestError(f"`tasks` names none, got {selection!r}; for example vibe_gender or vibe_gender:story")
    return list(chosen.values())
