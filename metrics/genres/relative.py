"""Total bias scores of the compared runs, relative to all of them, with the uncertainty of the narratives asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from equivox.compare.pairs import OpenedRun, refusal, tasks_of
from equivox.core.scores import NAN, Score
from equivox.core.task import digest
from equivox.metrics.genres.cohort import METRICS, total_bias
from equivox.metrics.genres.paired import aligned, nep_sums, value_of_sums
from equivox.metrics.genres.scorer import READ_BY_STAND_INS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_RESAMPLES = 2_000
_DEFINED = 0.9
"""The share of draws in which a total must exist for its interval to be given."""


@dataclass(frozen=True, kw_only=True)
class CohortScore:
    """A model's total bias score; it means nothing without the cohort that it is relative to.

    Attributes
    ----------
    cohort
        Its name; `members` are its models.
    total
        Σ over M1 to M8 of the distance from the cohort's mean in its standard deviations. Zero is typical, which is not
        unbiased; NaN where `undefined` says why.
    parts
        The signed distances that it adds up.
    ci_low, ci_high
        95 % percentile interval with the NEPs of each relationship drawn anew, the same for all models. Absolute
        distances only grow with noise: the interval says how far the printed number moves, and is no test.
    no_interval
        Why there is none.
    stand_ins
        Whether stand-ins for the published tools read the narratives: such scores compare with nothing else.
    """

    family: str
    arm: str
    cohort: str
    members: tuple[str, ...]
    model: str
    total: float = NAN
    ci_low: float = NAN
    ci_high: float = NAN
    parts: Mapping[str, float] = field(default_factory=dict)
    stand_ins: bool = False
    undefined: str | None = None
    no_interval: str | None = None


def cohort_scores(opened: Sequence[OpenedRun], *, n_resamples: int = 10_000, seed: int = 0) -> list[CohortScore]:
    """Return the total bias score of every run in every family of GENRES that at least two runs have as a whole."""
    found = []
    families: dict[str, dict[str, list[Score]]] = {}
    for one in opened:
        for score in one.run.scores:
            if score.is_whole and score.name in METRICS and ":" not in score.task:
                families.setdefault(score.task, {}).setdefault(one.run.model, []).append(score)
    for family, members in families.items():
        if len(members) > 1:
            own = [one for one in opened if one.run.model in members]
            found += _of_family(family, members, own, min(n_resamples, MAX_RESAMPLES), seed)
    return found


def _of_family(
    family: str, members: Mapping[str, Sequence[Score]], opened: Sequence[OpenedRun], n_resamples: int, seed: int
) -> list[CohortScore]:
    values = {model: {score.name: score.value for score in scores} for model, scores in members.items()}
    found = total_bias(values)
    tasks = tasks_of(opened[0], family)
    reasons = (refusal(opened[0], other, tasks) for other in opened[1:])
    no_interval = next(filter(None, reasons), None)
    if no_interval is None and not found.undefined:
        ends = _intervals([one.run.model for one in opened], opened, tasks, n_resamples, [seed, family])
        if not ends:
            no_interval = "too many draws of the narratives leave a metric undefined"
    else:
        ends = {}
    return [
        CohortScore(
            family=family,
            arm=scores[0].arm,
            cohort=f"{found.cohort}: {', '.join(found.members)}",
            members=found.members,
            model=model,
            total=found.total[model],
            ci_low=ends.get(model, (NAN, NAN))[0],
            ci_high=ends.get(model, (NAN, NAN))[1],
            parts=found.parts[model],
            stand_ins=any(note.startswith(READ_BY_STAND_INS) for score in scores for note in score.notes),
            undefined=found.undefined.get(model),
            no_interval=no_interval,
        )
        for model, scores in members.items()
    ]


def _intervals(
    models: Sequence[str], opened: Sequence[OpenedRun], tasks: Sequence[str], n_resamples: int, seed: Sequence[object]
) -> dict[str, tuple[float, float]]:
    import numpy as np

    rng = np.random.default_rng(int(digest(["cohort", *map(str, seed)])[:16], 16))
    drawn: dict[str, list[Floats]] = {metric: [] for metric in METRICS}
    for task in tasks:
        rows = [list(one.asked[task].rows.values()) for one in opened]
        neps = sorted({row.cluster for row in rows[0]})
        weights = rng.multinomial(len(neps), [1 / len(neps)] * len(neps), size=n_resamples).astype(np.float64)
        place = {nep: number for number, nep in enumerate(neps)}
        for metric in METRICS:
            sums = [nep_sums(metric, own) for own in rows]
            known = sorted({nep for own in sums for nep in own})
            columns = [place[nep] for nep in known]
            drawn[metric].append(np.stack([weights[:, columns] @ own for own in aligned(sums)], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.stack([value_of_sums(metric, np.sum(parts, axis=0)) for metric, parts in drawn.items()], axis=2)
        z = (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, keepdims=True)
    totals = np.abs(z).sum(axis=2)
    totals = totals[np.isfinite(totals).all(axis=1)]
    if len(totals) < _DEFINED * n_resamples:
        return {}
    low, high = np.quantile(totals, [0.025, 0.975], axis=0)
    return {model: (float(low[number]), float(high[number])) for number, model in enumerate(models)}


def missing_cohort(scores: Sequence[Score]) -> str | None:
    """Say why GENRES scores have no total bias score; None where they have one, or where there are none."""
    tasks = {score.task for score in scores if score.is_whole and score.name in METRICS}
    if not tasks or any(":" not in task for task in tasks):
        return None
    return "no total bias score: it needs M1 to M8 over several relationships, and the runs asked about one"
