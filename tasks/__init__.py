"""The benchmarks: one file each, declarations only."""

from __future__ import annotations

from equivox.task import Task
from equivox.tasks import spoken_stereoset, vibe

ALL_TASKS: tuple[Task, ...] = (*vibe.TASKS, *spoken_stereoset.TASKS)
"""Every built-in task, in the order in which `equivox tasks list` shows them."""
