"""The teacher: a simulated model that tells what to answer to each request, with the group or without it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from equivox.calibration.recipe import as_share
from equivox.core.requests import Request
from equivox.core.task import Task
from equivox.core.variants import SENDS
from equivox.engines.simulated import SimulatedEngine


def teacher_of(tasks: Sequence[Task], shift: float) -> SimulatedEngine:
    """Return the simulated planted model with a shift in percent."""
    return SimulatedEngine.from_spec(as_share(shift).removeprefix("simulated:"), tasks)


def answer_of(teacher: SimulatedEngine, request: Request, rng: random.Random) -> str:
    """Return what the student is to answer to `request`; another answer each time.

    In a control condition the person cannot be known: there the teacher answers as for a group drawn by lot.
    """
    labels = request.labels
    if not tells_group(request):
        labels = replace(labels, group=rng.choice(labels.groups))
    return teacher.answer(replace(request, labels=labels), rng)


def tells_group(request: Request) -> bool:
    """Return whether the group can be known from what is sent; it cannot in a control condition."""
    return request.condition in SENDS


def group_heard(request: Request) -> int:
    """Return the number of the group that a request's recording tells; the number of groups if it tells none."""
    groups = request.labels.groups
    return groups.index(request.labels.group) if tells_group(request) else len(groups)
