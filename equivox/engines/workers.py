"""Workers: how many engines of one model answer at a time, and where."""

from __future__ import annotations

from dataclasses import dataclass

from equivox.core.errors import RequestError


@dataclass(frozen=True)
class Workers:
    """A number of engines of one model; `address` is that of a Ray cluster, None for this machine.

    RequestError for a number that is not 1 or more.
    """

    count: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise RequestError(f"`workers` must be a whole number of 1 or more, got {self.count!r}")

    @property
    def pooled(self) -> bool:
        """Whether engines run in a pool: there are several workers, or a cluster."""
        return self.count > 1 or self.address is not None
