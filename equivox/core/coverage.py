"""Coverage: how many of the requested responses a score uses, and at which stage the others were lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from equivox.core.notes import Note, NoteCode

STAGES = ("requested", "generated", "answered", "parsed", "used")
"""The counts of a coverage, in the order in which responses are lost."""
UNEVEN = 0.05
"""Where the shares of missing answers of two groups differ by this much, a score is marked."""
MOST_RARE = 0.2
"""The share of values left out as rare, or of `other`, above which a score says nothing without a finding."""
UNUSUAL = 0.05
"""Where this share of the responses did not end as usual, a score says so."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of responses, each a subset of the one before.

    Parameters
    ----------
    requested
        Planned requests.
    generated
        The engine returned text.
    answered
        The text is neither empty nor a refusal.
    parsed
        The annotator could annotate it.
    used
        It states at least one value of the scored attribute (for a task: of any of its outcome attributes).
    truncated, withheld, cut_in_thought
        Of the generated responses: those that the token limit cut off, those that the provider withheld, and those of
        the first kind that had not begun to answer.
    used_by_group, requested_by_group
        The first and last count within each group, so that a failure in one group alone is visible.
    """

    requested: int
    generated: int
    answered: int
    parsed: int
    used: int
    truncated: int = 0
    withheld: int = 0
    cut_in_thought: int = 0
    requested_by_group: Mapping[str, int] = field(default_factory=dict)
    used_by_group: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of the requested responses that is used; 0 when nothing was requested."""
        return self.used / self.requested if self.requested else 0.0

    @property
    def _shares(self) -> dict[str, float]:
        """The used share of each group that was asked about."""
        return {group: self.used_by_group.get(group, 0) / n for group, n in self.requested_by_group.items() if n}

    @property
    def worst(self) -> tuple[str, float]:
        """The group with the smallest used share, and that share; `("", 0.0)` without groups."""
        share, group = min(((share, group) for group, share in self._shares.items()), default=(0.0, ""))
        return group, share

    def shortfall(self, floor: float) -> Note | None:
        """Return why too little is used, or None if every group reaches `floor` (a share).

        >>> str(Coverage(requested=10, generated=10, answered=10, parsed=6, used=6, used_by_group={"f": 5, "m": 1},
        ...              requested_by_group={"f": 5, "m": 5}).shortfall(0.8))
        'too_few_usable: group m, share 0.2, needed 0.8'
        """
        group, share = self.worst
        if share >= floor:
            return None
        return Note(
            NoteCode.TOO_FEW_USABLE, {"group": group, "share": math.floor(1000 * share) / 1000, "needed": floor}
        )

    @property
    def uneven(self) -> Note | None:
        """Which group lost more answers than another; None if no two groups differ by 5 points or more.

        >>> str(Coverage(requested=20, generated=20, answered=20, parsed=17, used=17, used_by_group={"f": 10, "m": 7},
        ...              requested_by_group={"f": 10, "m": 10}).uneven)
        'uneven: group m, share 0.3, other f, other_share 0.0'
        """
        lost = [(round(1 - share, 6), group) for group, share in self._shares.items()]
        if not lost or max(lost)[0] - min(lost)[0] < UNEVEN:
            return None
        (most, group), (least, other) = max(lost), min(lost)
        return Note(NoteCode.UNEVEN, {"group": group, "share": most, "other": other, "other_share": least})

    def list_warnings(self) -> list[Note]:
        """Return how the responses ended, where 5 % or more of them did not end as usual."""
        counts = {
            NoteCode.CUT_OFF: self.truncated,
            NoteCode.CUT_IN_THOUGHT: self.cut_in_thought,
            NoteCode.WITHHELD: self.withheld,
        }
        return [
            Note(code, {"n": n, "of": self.generated})
            for code, n in counts.items()
            if n and n >= UNUSUAL * self.generated
        ]
