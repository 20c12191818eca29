"""The result of verifying a run, and how plain values are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from equivox.core.errors import DamageError
from equivox.core.lazy import pa
from equivox.run.manifest import NOT_LISTED

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Two numbers are equal within these; an addition in another order changes less."""
NO_HASHES = "files: the manifest states no hashes; the run was not scored to its end"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An entry of a run that scoring again does not give; `where` is its task or file, None means "not there"."""

    where: str
    what: str
    stated: Any
    recomputed: Any


@dataclass(kw_only=True)
class Verification:
    """The result of verifying a run.

    Attributes
    ----------
    manifest
        The SHA-256 of `manifest.json`, which names every other file by its hash.
    files, numbers
        How many files have the stated hash, and how many numbers are as recomputed.
    wrong_files
        What is wrong with a file, by its path.
    differences
        Every entry that differs.
    problems
        What else cannot be true of this run, a line each.
    not_verified
        What could not be recomputed, and why.
    remarks
        What was not checked because nobody requested it, and what the check rests on.
    """

    run: Path
    manifest: str = ""
    files: int = 0
    numbers: int = 0
    wrong_files: dict[str, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> Literal["verified", "verified in part", "differs"]:
        """`verified` only if everything was recomputed and nothing differs."""
        if self.wrong_files or self.problems or self.differences:
            return "differs"
        return "verified in part" if self.not_verified else "verified"

    @property
    def doubt(self) -> str | None:
        """Why the run's numbers are not to be used, in one line; None if all of them could be computed again."""
        wrong = [f"{name}: {why}" for name, why in self.wrong_files.items() if why != NOT_LISTED]
        differing = [
            f"{entry.where}, {entry.what}: {entry.stated} is stated, {entry.recomputed} is computed"
            for entry in self.differences[:1]
        ]
        missing = [reason for reason in self.not_verified if reason != NO_HASHES]
        return next(iter([*wrong, *self.problems, *differing, *missing]), None)

    def values(self, where: str, what: str, stated: Any, recomputed: Any) -> None:
        """Compare two plain values or columns, entry by entry, and note what differs."""
        if isinstance(stated, pa.ChunkedArray) and isinstance(recomputed, pa.ChunkedArray):
            if stated.type == recomputed.type and stated.equals(recomputed):
                number = pa.types.is_integer(stated.type) or pa.types.is_floating(stated.type)
                self.numbers += len(stated) - stated.null_count if number else 0
                return
            stated, recomputed = stated.to_pylist(), recomputed.to_pylist()
        if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
            for name in dict.fromkeys((*stated, *recomputed)):
                self.values(where, f"{what} {name}".strip(), stated.get(name), recomputed.get(name))
        elif isinstance(stated, list) and isinstance(recomputed, list) and len(stated) == len(recomputed):
            for number, (left, right) in enumerate(zip(stated, recomputed, strict=True), start=1):
                self.values(where, f"{what} {number}", left, right)
        elif equal(stated, recomputed):
            self.numbers += isinstance(stated, int | float) and not isinstance(stated, bool)
        else:
            self.differences.append(Difference(where=where, what=what, stated=stated, recomputed=recomputed))

    def add_damage(self, error: DamageError) -> None:
        """Note what is wrong with a file."""
        path = error.path
        name = path.relative_to(self.run).as_posix() if path.is_relative_to(self.run) else path.as_posix()
        self.wrong_files[name] = f"damaged: {error.why}"


def equal(left: Any, right: Any) -> bool:
    """Return whether two plain values are the same; missing numbers are the same.

    >>> equal(1.0, 1.0 + 1e-12), equal(float("nan"), None), equal(1.0, 1.001), equal("a", "a"), equal(None, 0.0)
    (True, True, False, True, False)
    """
    left, right = (None if isinstance(value, float) and math.isnan(value) else value for value in (left, right))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right)):
        return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(left == right)
