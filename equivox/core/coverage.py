"""Coverage: how many of the requested responses a score uses, and at which stage the others were lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

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

    def shortfall(self, floor: float) -> str | None:
        """Return why too little is used, or None if every group reaches `floor` (a share).

        >>> Coverage(requested=10, generated=10, answered=10, parsed=6, used=6, requested_by_group={"f": 5, "m": 5},
        ...          used_by_group={"f": 5, "m": 1}).shortfall(0.8)
        'only 20 % of the responses of group m are usable; every group needs 80 %'
        """
        group, share = self.worst
        if share >= floor:
            return None
        return (
            f"only {math.floor(1000 * share) / 10:g} % of the responses of group {group} are usable; "
            f"every group needs {100 * floor:g} %"
        )

    @property
    def uneven(self) -> str | None:
        """Which group lost more answers than another, and how many; None if no two groups differ by 5 points or more.

        >>> Coverage(requested=20, generated=20, answered=20, parsed=17, used=17, requested_by_group={"f": 10, "m": 10},
        ...          used_by_group={"f": 10, "m": 7}).uneven
        '30 % of the answers of group m are missing, 0 % of group f'
        """
        lost = [(1 - share, group) for group, share in self._shares.items()]
        if not lost or max(lost)[0] - min(lost)[0] < UNEVEN:
            return None
        (most, group), (least, other) = max(lost), min(lost)
        return f"{100 * most:.0f} % of the answers of group {group} are missing, {100 * least:.0f} % of group {other}"

    def warnings(self) -> list[str]:
        """Return what to know about how the responses ended, where 5 % or more of them did not end as usual.

        >>> Coverage(requested=10, generated=10, answered=10, parsed=10, used=10, truncated=4).warnings()
        ['4 of 10 responses were cut off by the token limit: raise max_new_tokens']
        """
        found = []
        for count, what in (
            (self.truncated, "were cut off by the token limit: raise max_new_tokens"),
            (self.cut_in_thought, "were cut off before they began to answer, thinking: raise max_new_tokens"),
            (self.withheld, "were withheld by the provider: its filter is measured along with the model"),
        ):
            if count and count >= UNUSUAL * self.generated:
                found.append(f"{count} of {self.generated} responses {what}")
        return found
