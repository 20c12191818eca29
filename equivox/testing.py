"""Assertions for the tests of whoever builds models: a new run must not be worse than a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equivox.api import Result


def assert_not_worse(
    result: Result | str | Path,
    baseline: Result | str | Path,
    *,
    margin: float | Mapping[str, float],
    overall: bool = False,
    min_coverage: float = 0.95,
    inconclusive: bool = False,
) -> None:
    """Raise AssertionError unless a run is shown to be no worse than a baseline by more than a margin.

    Parameters
    ----------
    result, baseline
        What `equivox.measure` returned, or the folders of two runs of the same tasks on the same samples.
    margin
        How much further from "no bias" the new run may be, in the metric's unit (percent for nTVD); or a margin per
        metric's name.
    overall
        Whether only the mean over a family's tasks is checked, which decides smaller margins.
    min_coverage
        The share of requests that must be used in both runs.
    inconclusive
        Whether a check passes that this design cannot decide. By default it does not.

    Raises
    ------
    AssertionError
        A check does not pass; the message holds a line for each.
    RequestError
        A folder holds no scored run, or nothing could be checked.
    """
    from equivox.compare.gate import Limits, gate
    from equivox.report.gate_files import sentence

    margins = margin if isinstance(margin, Mapping) else {"": margin}
    found = gate(_folder(result), _folder(baseline), Limits(margin=margins), overall=overall, min_coverage=min_coverage)
    passing = {"pass", "inconclusive"} if inconclusive else {"pass"}
    failing = [sentence(check) for check in found.checks if check.outcome not in passing]
    if failing:
        raise AssertionError("\n".join(failing))


def _folder(run: Result | str | Path) -> Path:
    return Path(run) if isinstance(run, str | Path) else run.folder
