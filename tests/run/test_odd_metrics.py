"""A metric that gives no number, no reason or no score of its task is refused: nothing of it reads as no difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equivox.report.verdicts import in_unit

Cli = Callable[..., tuple[int, str, str]]
TASKS = '''
"""A task with a metric of its own. Cannot say: anything."""
import math
from dataclasses import replace

from equivox.core.metric import Measure, Metric
from equivox.core.scores import Score, Scored
from equivox.tasks.vibe import TASKS as VIBE


def score_odd(task, samples, options):
    coverage = samples.coverage(samples.has_status("parsed"))
    known = dict(
        task=task.name, condition=task.condition, dimension=task.dimension, attribute=None, role="outcome", name="odd",
        unit="points", coverage=coverage, zero_means="nothing", p_cluster=0.5,
    )
    return RETURNED


ODD = Metric(name="odd", score=score_odd, measures=(Measure(name="odd", no_bias=0.0, not_compared="none"),))
ADVISORY = next(task for task in VIBE if task.name == "vibe_gender:advisory")
TASKS = [replace(ADVISORY, name="odd:advisory", card=__doc__, metric=ODD)]
'''


@pytest.mark.parametrize(
    ("returned", "told"),
    [("Scored([Score(**known, value=math.inf)])", "odd gave odd:advisory neither a number (odd is inf) nor a reason"),
     ("Scored([Score(**known)])", "neither a number (odd is nan) nor a reason; say in `undefined`"),
     ("[Score(**known, value=1.0)]", "odd returned list for odd:advisory; return `Scored([…])`"),
     ("None", "odd returned NoneType for odd:advisory"),
     ("Scored([])", "odd gave no score of odd:advisory as a whole; return one with `attribute=None`"),
     ('Scored([Score(**known | {"attribute": "hobby"}, value=1.0)])', "no score of odd:advisory as a whole")],
)  # fmt: skip
def test_an_odd_metric_is_refused_in_one_line(tmp_path: Path, equivox: Cli, returned: str, told: str) -> None:
    file = tmp_path / "odd_tasks.py"
    file.write_text(TASKS.replace("RETURNED", returned))
    code, out, err = equivox(
        *("run", "simulated:random", file, "--data", "sample", "--limit", 4, "--output", tmp_path / "run")
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not (tmp_path / "run" / "scores.json").exists()


def test_percentage_points_are_no_percent() -> None:
    assert in_unit(52.08, "percentage points") == "52 percentage points"
