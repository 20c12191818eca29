"""The benchmarks: one file each, declarations only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equivox.task import Task
from equivox.tasks import badf, genres, spoken_stereoset, vibe

ALL_TASKS: tuple[Task, ...] = (*vibe.TASKS, *spoken_stereoset.TASKS, *genres.TASKS, *badf.TASKS)
"""Every built-in task, in the order in which `equivox tasks list` shows them."""

OPEN_FAMILIES: Mapping[str, Callable[[str, str], Task]] = {
    **dict.fromkeys(spoken_stereoset.FAMILIES, spoken_stereoset.stereoset_task),
    **dict.fromkeys(badf.SETTINGS, badf.badf_task),
}
"""Families with a task for every domain that their corpus has, such as `spoken_stereoset:accent` or `badf_two:age` in a
corpus of one's own: family and domain → the task."""
