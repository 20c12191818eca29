"""What failed in a run: requests to the model, texts that the annotator could not do, and in which groups more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from equivox.core.scores import Score
from equivox.core.text import how_many, visible
from equivox.report.findings import round_half_up
from equivox.report.notes import write_note
from equivox.report.numbers import shortened
from equivox.run.store import count_annotation_failures

LOST_ROLES = ("refusal", "loss")
"""The roles of the scores that say whether groups lose answers unequally."""
WIDE = 5.0
"""The smallest gap, in percentage points, that is named where a test cannot tell it from chance."""


def request_failures(failures: Counter[str], shown: int) -> list[str]:
    """Return what requests to the model failed on, the most frequent `shown` errors first, and how many are left."""
    return _by_error("failed", failures, shown, "`responses` in the run")


def annotation_failures(annotator: str, failures: Counter[str], unreadable: Counter[str]) -> list[str]:
    """Return what an annotator failed on, by its errors, and how many of its replies could not be read."""
    lines = _by_error(f"{annotator} failed", failures, 5, f"`annotations/{annotator}` in the run")
    if unreadable:
        lines.append(f"{annotator}: {how_many(unreadable.total(), 'reply')} could not be read")
    return lines


def find_unreadable_reply(folder: Path, annotator: str) -> str | None:
    """Return a judge's most frequent unreadable reply in a run; None without one.

    It is one line of at most 80 characters, safe for a terminal. It may hold words of an answer.
    """
    _, unreadable = count_annotation_failures(folder, annotator)
    return next((shortened(visible(reply), 80) for reply, _ in unreadable.most_common(1)), None)


def _by_error(failed: str, failures: Counter[str], shown: int, where: str) -> list[str]:
    lines = [f"{failed} {how_many(count, 'time')}: {error}" for error, count in failures.most_common(shown)]
    if left := len(failures) - len(lines):
        lines.append(f"… and {how_many(left, 'other reason')}, see {where}")
    return lines


def lost_in(task: str, scores: Sequence[Score]) -> str:
    """Return which answers to a task, or a family, groups lose unequally, or may; empty if none.

    `scores` are all of the run. The largest gap of each way to lose an answer is named, those beyond chance first.
    """
    losses = [s for s in scores if s.role in LOST_ROLES and not s.subset and task in (s.task, s.family)]
    named: dict[str, str] = {}
    for score in sorted(losses, key=lambda score: (not score.found, -score.value if score.defined else 0.0)):
        if gap := _describe_gap(score):
            named.setdefault(str(score.attribute), f"{score.attribute}: {gap}")
    return "; ".join(named.values())


def _describe_gap(score: Score) -> str:
    """Return the shares of a way to lose answers by group; empty for a gap that is none, or small and not tested."""
    most, why = score.largest_shift, score.outcome == "too_few_data" or not score.defined
    if most is None or not (score.found or (why and most.high_share - most.low_share >= WIDE)):
        return ""
    high, low = (f"{round_half_up(share)} %" for share in (most.high_share, most.low_share))
    gap = f"{shortened(most.high_group)} {high} against {shortened(most.low_group)} {low}"
    reason = write_note(score.undefined_reason)
    chance = f", not tested: {reason}" if reason else ", which may be chance"
    return gap if score.found else f"{gap}{chance}"
