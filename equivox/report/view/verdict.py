"""The verdict in words: the opening that the report has too, as plain values for the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equivox.compare.runs import ComparedRun, open_comparison
from equivox.core.errors import RequestError
from equivox.core.redact import without_places
from equivox.report.opening import Opening, opening_of, opening_of_one


def verdict_of(run: ComparedRun) -> dict[str, Any] | None:
    """Return the opening of one run; None if it is not scored."""
    return _plain(opening_of_one(run)) if run.scores else None


def verdict_of_pair(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the opening of the first two of some runs, tested against each other; empty if they cannot be.

    The paired test takes some seconds.
    """
    from equivox.compare.ranking import judge

    pair = list(folders[:2])
    if len(pair) < 2 or not all((folder / "scores.json").is_file() for folder in pair):
        return {}
    try:
        comparison = open_comparison(pair)
        return _plain(opening_of(comparison, judge(comparison)))
    except RequestError as error:
        return dict(without_places({"problem": str(error)}))


def _plain(found: Opening) -> dict[str, Any]:
    shown = {
        "question": found.question,
        "answer": found.answer,
        "sentences": list(found.sentences),
        "trust": [{"text": one.text, "mark": one.mark} for one in found.trust],
    }
    return dict(without_places(shown))
