"""Two models compared by the continuations that they chose, context by context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from equivox.core.lazy import np
from equivox.core.metric import PairedTask, PairedValues
from equivox.core.samples import Row
from equivox.metrics.scoring import compare_sums
from equivox.metrics.spoken_stereoset.scorer import NOT_GENERATED, answer_of
from equivox.metrics.spoken_stereoset.tally import HITS


def compare_choices(name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator) -> PairedValues:
    """Compare a score of two models context by context."""
    return compare_sums(
        tasks,
        lambda row: row.answered,
        partial(_context_sums, name),
        lambda sums: np.asarray(100 * sums[..., 0] / sums[..., 1]),  # in percent, of hits and answers
        n_resamples,
        rng,
        n_sums=2,
        sizes=1,
        nothing="nothing that both models answered can be counted",
    )


def _context_sums(metric: str, rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Return hits and answers per context: for slbs of the meaningful choices, for slifs and slms of all answers."""
    found: dict[str, tuple[float, float]] = {}
    for row in rows:
        kind = answer_of(row).kind
        if kind == NOT_GENERATED or (metric == "slbs" and kind not in HITS["slms"]):
            continue
        hits, n = found.get(row.stratum, (0.0, 0.0))
        found[row.stratum] = hits + (kind in HITS[metric]), n + 1
    return found
