"""Finding tasks by name: built-in ones, whole families, and files of one's own."""

from __future__ import annotations

from pathlib import Path

from equivox.errors import RequestError, nearest
from equivox.task import Task


def builtin_tasks() -> dict[str, Task]:
    """Return every built-in task by name."""
    from equivox.tasks import ALL_TASKS

    return {task.name: task for task in ALL_TASKS}


def resolve_tasks(selection: str) -> list[Task]:
    """Return the tasks named in a comma-separated `selection`, each once, in the order named.

    An entry is a task (`vibe_gender:story`), a family (`vibe_gender`) or a YAML file that declares tasks on a corpus
    of one's own. Raises RequestError with the nearest names for anything else.
    """
    known = builtin_tasks()
    families = {task.family for task in known.values()}
    chosen: dict[str, Task] = {}
    for entry in filter(None, (part.strip() for part in selection.split(","))):
        if entry.endswith((".yaml", ".yml")):
            from equivox.custom import load_task_file

            found = load_task_file(Path(entry))
        elif entry in known:
            found = [known[entry]]
        elif entry in families:
            found = [task for task in known.values() if task.family == entry]
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
