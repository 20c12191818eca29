"""The benchmarks: one file each, declarations only.

`TASKS_TABLE` holds the same tasks for lighteval (`--custom-tasks equivox.tasks`); it is made on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from equivox.core.errors import UsageError
from equivox.core.task import Task
from equivox.tasks import badf, genres, hiring, spoken_stereoset, vibe

ALL_TASKS: tuple[Task, ...] = (
    *vibe.TASKS,
    *spoken_stereoset.TASKS,
    *genres.TASKS,
    *badf.TASKS,
    *hiring.TASKS,
)
"""Every built-in task, in the order in which `equivox tasks` shows them."""

OPEN_FAMILIES: Mapping[str, Callable[[str, str], Task]] = {
    **dict.fromkeys(spoken_stereoset.FAMILIES, spoken_stereoset.stereoset_task),
    **dict.fromkeys(badf.SETTINGS, badf.badf_task),
    badf.CHARACTER: badf.character_task,
}
"""Families with a task for every domain of their corpus, such as `spoken_stereoset:accent` or `badf_two:age` in a
custom corpus; the function of family and domain returns the task."""

if not TYPE_CHECKING:  # with __getattr__ a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name != "TASKS_TABLE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from equivox.integrations.lighteval.table import tasks_table
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != "lighteval":
                raise
            raise UsageError(
                "TASKS_TABLE is for lighteval, which is not installed; "
                'install it in a checkout of equivox: pip install -c constraints-lighteval.txt ".[lighteval]"'
            ) from None
        return tasks_table()
