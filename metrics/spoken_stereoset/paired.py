"""Sums over contexts for slifs, slms and slbs, for comparisons of models with the same requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equivox.core.samples import Row
from equivox.metrics.spoken_stereoset.scorer import NOT_GENERATED, answer_of
from equivox.metrics.spoken_stereoset.tally import ANTI_STEREOTYPICAL, IRRELEVANT, STEREOTYPICAL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HITS = {
    "slifs": frozenset({STEREOTYPICAL, ANTI_STEREOTYPICAL, IRRELEVANT}),
    "slms": frozenset({STEREOTYPICAL, ANTI_STEREOTYPICAL}),
    "slbs": frozenset({STEREOTYPICAL}),
}


def context_sums(metric: str, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return hits and answers per context: for slbs of the meaningful choices, for slifs and slms of all answers."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        kind = answer_of(row).kind
        if kind == NOT_GENERATED or (metric == "slbs" and kind not in _HITS["slms"]):
            continue
        hits, n = found.get(row.stratum, (0.0, 0.0))
        found[row.stratum] = hits + (kind in _HITS[metric]), n + 1
    return found


def percent_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share in percent (…) from hits and answers (… x 2)."""
    import numpy as np

    return np.asarray(100 * sums[..., 0] / sums[..., 1])
