"""Several models side by side: two compared on the same NEPs, and total bias scores, relative to a cohort of models.

Both are computed from sums over NEPs. The total bias score is Σ over M1 to M8 of the distance from the cohort's mean in
its standard deviations. The interval of a cohort of runs resamples the narrative pairs of each relationship, the same
for all models. Noise can only increase absolute distances, so the interval shows how stable the printed number is and
is not a test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from equivox.configs.published import published_paper
from equivox.core.errors import UsageError, nearest
from equivox.core.lazy import NDArray, np
from equivox.core.metric import CohortMember, CohortScore, PairedTask, PairedValues
from equivox.core.notes import NoteCode
from equivox.core.samples import Row
from equivox.core.scores import NAN
from equivox.metrics.genres.measures import METRIC_OF, NarrativeMeasure, neps_of
from equivox.metrics.genres.measures import METRICS as MEASURES
from equivox.metrics.genres.observations import observe, pairs_of
from equivox.metrics.scoring import aligned, compare_sums, rng_of

if TYPE_CHECKING:
    from equivox.metrics.genres.total_bias import TotalBias

    Floats = NDArray[np.float64]

METRICS = tuple(measure.name for measure in MEASURES)
"""The metrics in a total bias score."""

N_SUMS = 5
"""The number of sums that determine all eight metrics: NEPs, male, female, and the squares of both."""

READ_BY_STAND_INS = "annotated by stand-ins"
"""The beginning of the note on scores that stand-ins for the published tools annotated."""

NO_COHORT = (
    "no total bias score: it only exists relative to a cohort; "
    "`equivox compare RUN RUN …` compares runs, `--with published-…` adds the published models"
)

MAX_RESAMPLES = 2_000
_DEFINED = 0.9
"""The share of draws that must have a total for an interval to be given."""

Cohort = Mapping[str, Mapping[str, float]]
"""Model → metric → signed value."""

PUBLISHED = ("genres", "table_2")
"""The published table that holds the cohorts: one per evaluator, which is a block of the table."""


@cache
def published_cohorts() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Return the printed numbers of every published cohort, one per evaluator: cohort → model → column → number."""
    paper, name = PUBLISHED
    (table,) = (table for table in published_paper(paper).tables if table.name == name)
    return {
        str(block.select.cohort): {
            model: dict(zip(table.columns, (NAN if n is None else float(n) for n in numbers), strict=True))
            for model, numbers in block.published.items()
        }
        for block in table.blocks
    }


def published_cohort(name: str) -> dict[str, dict[str, float]]:
    """Return the signed metrics of a published cohort; UsageError for another name.

    >>> published_cohort("published-glm-4-9b")["Gemini"]["M3"]
    0.968
    """
    known = published_cohorts()
    if name not in known:
        raise UsageError(f"unknown cohort {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return {model: {m: row[m] for m in METRICS} for model, row in known[name].items()}


def compare_narratives(
    name: str, tasks: Sequence[PairedTask], n_resamples: int, rng: np.random.Generator
) -> PairedValues:
    """Compare a metric of two models, narrative pair by narrative pair."""
    return compare_sums(
        tasks,
        lambda row: "language" in row.segments,
        partial(nep_sums, name),
        partial(value_of_sums, name),
        n_resamples,
        rng,
        n_sums=N_SUMS,
        nothing="no narrative that both models told can be counted",
    )


def nep_sums(metric: str, rows: Sequence[Row]) -> dict[str, tuple[float, ...]]:
    """Return the contribution to the sums of each NEP in which `metric` is known for both characters."""
    return {
        pair.nep: (1.0, pair.male, pair.female, pair.male**2, pair.female**2)
        for pair in neps_of(pairs_of(observe(metric, rows)))
    }


def value_of_sums(metric: str, sums: Floats) -> Floats:
    """Return the metric (…) from sums over NEPs (… x 5), male minus female, in its unit; NaN without a NEP or spread.

    >>> import numpy as np
    >>> value_of_sums("M4", np.array([4.0, 3, 1, 3, 1])), value_of_sums("M8", np.array([4.0, 3, 1, 3, 1]))
    (array(50.), array(0.5))
    """
    found: NarrativeMeasure = METRIC_OF[metric]
    n, male, female, male_2, female_2 = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    n = np.where(n > 0, n, math.nan)
    gap = (male - female) / n
    if found.kind != "correlation":
        return np.asarray(gap * found.scale)
    # Gender is balanced within each NEP: its variance is 1/4 and its covariance with the outcome a quarter of the gap.
    variance = (male_2 + female_2) / (2 * n) - ((male + female) / (2 * n)) ** 2
    return np.asarray(gap / 2 / np.sqrt(np.where(variance > 1e-12, variance, math.nan)))


def total_bias(models: Cohort, *, published: str | None = None, fixed: bool = False) -> TotalBias:
    """Return the total bias score of every member of a cohort: `models`, and a published cohort if one is named.

    With `fixed`, the published models alone are the cohort: their printed scores stay as they are, and a model's score
    does not depend on which others are scored. NaN with the reason if the cohort has fewer than two models, a model
    lacks a metric, or all have the same value.
    """
    from equivox.metrics.genres.total_bias import total_bias_score

    beside = published_cohort(published) if published else {}
    if twice := sorted(set(models) & set(beside)):
        raise UsageError(f"the model {twice[0]!r} is in {published} already; give the run another name")
    everyone = {**beside, **models}
    if fixed:
        if published is None:
            raise UsageError("`fixed` needs a published cohort; name it with `--with published-…`")
        return total_bias_score(everyone, cohort=beside, cohort_name=f"{published}, fixed")
    own = f"{len(models)} run{'' if len(models) == 1 else 's'}"
    return total_bias_score(everyone, cohort=everyone, cohort_name=f"{published} and {own}" if published else own)


def cohort_scores(family: str, members: Sequence[CohortMember], n_resamples: int, seed: int) -> list[CohortScore]:
    """Return the total bias score of every member of a cohort; all members have all tasks of the family."""
    values = {
        member.model: {score.metric: score.value for score in member.scores if score.metric in METRICS}
        for member in members
    }
    found = total_bias(values)
    no_interval = next((member.unlike for member in members if member.unlike is not None), None)
    ends: dict[str, tuple[float, float]] = {}
    if no_interval is None and not found.undefined:
        ends = _intervals(members, min(n_resamples, MAX_RESAMPLES), [seed, family])
        if not ends:
            no_interval = "too many draws of the narratives leave a metric undefined"
    return [
        CohortScore(
            family=family,
            condition=member.scores[0].condition,
            cohort=f"{found.cohort}: {', '.join(found.members)}",
            members=found.members,
            model=member.model,
            name="TBS",
            total=found.total[member.model],
            ci_low=ends.get(member.model, (NAN, NAN))[0],
            ci_high=ends.get(member.model, (NAN, NAN))[1],
            parts=found.parts[member.model],
            stand_ins=any(note.code == NoteCode.STAND_INS for score in member.scores for note in score.notes),
            undefined=found.undefined.get(member.model),
            no_interval=no_interval,
        )
        for member in members
    ]


def _intervals(
    members: Sequence[CohortMember], n_resamples: int, seed: Sequence[object]
) -> dict[str, tuple[float, float]]:
    rng = rng_of("cohort", *map(str, seed))
    drawn: dict[str, list[Floats]] = {metric: [] for metric in METRICS}
    for place in range(len(members[0].samples)):
        rows = [list(member.samples[place][1].rows()) for member in members]
        neps = sorted({row.cluster for row in rows[0]})
        weights = rng.multinomial(len(neps), [1 / len(neps)] * len(neps), size=n_resamples).astype(np.float64)
        position = {nep: number for number, nep in enumerate(neps)}
        for metric in METRICS:
            sums = [nep_sums(metric, own) for own in rows]
            known = sorted({nep for own in sums for nep in own})
            columns = [position[nep] for nep in known]
            drawn[metric].append(np.stack([weights[:, columns] @ own for own in aligned(sums, N_SUMS)], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.stack([value_of_sums(metric, np.sum(parts, axis=0)) for metric, parts in drawn.items()], axis=2)
        z = (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, keepdims=True)
    totals = np.abs(z).sum(axis=2)
    totals = totals[np.isfinite(totals).all(axis=1)]
    if len(totals) < _DEFINED * n_resamples:
        return {}
    low, high = np.quantile(totals, [0.025, 0.975], axis=0)
    return {
        model: (float(low[number]), float(high[number]))
        for number, model in enumerate(member.model for member in members)
    }
