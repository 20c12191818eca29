"""The metrics of plain columns as functions: `from equivox.metrics.columns import ntvd`.

Columns are lists, numpy arrays, pandas or pyarrow columns; None and NaN are missing. The functions have the names of
the metrics' folders, which Python keeps for those folders in `equivox.metrics` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equivox.core.scores import DEFAULT_ENCODER, DEFAULT_MERGE_THRESHOLD, Merge

Column = Sequence[Any]


def ntvd(
    *,
    groups: Column,
    values: Column,
    clusters: Column | None = None,
    strata: Column | None = None,
    min_count: int | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the distance between groups' answers with its evidence; NaN with the reason in `undefined`.

    Parameters
    ----------
    groups
        The group of each response; none may be missing.
    values
        The answer of each response: one value, or a list of values; missing answers count against coverage.
    clusters, strata
        The unit that carries the group, and the stratum; without `clusters` each response is a cluster.
    min_count, min_coverage, n_resamples, confidence, seed
        As for `equivox.statistics.distribution_shift`; `min_coverage` is the share of answers that every group needs.

    Examples
    --------
    >>> found = ntvd(groups=["f"] * 8 + ["m"] * 8, values=["tea"] * 8 + ["tea", "ale"] * 4, n_resamples=99)
    >>> found["ntvd"], found["n_used"]
    (50.0, 16)
    """
    from equivox.metrics.ntvd.columns import METRIC

    return METRIC(
        groups=groups,
        values=values,
        clusters=clusters,
        strata=strata,
        min_count=min_count,
        min_coverage=min_coverage,
        n_resamples=n_resamples,
        confidence=confidence,
        seed=seed,
    )


def spoken_stereoset(
    *,
    kinds: Column,
    contexts: Column | None = None,
    letters: Column | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return slifs, slms and slbs with their evidence, from the kind of continuation that each answer chose.

    `kinds` holds stereotypical, anti_stereotypical, irrelevant or other, None if nothing was generated; `contexts` is
    the unit with several requests, `letters` the option that was named.
    """
    from equivox.metrics.spoken_stereoset.columns import METRIC

    return METRIC(
        kinds=kinds,
        contexts=contexts,
        letters=letters,
        min_coverage=min_coverage,
        n_resamples=n_resamples,
        confidence=confidence,
        seed=seed,
    )


def genres(
    *,
    metrics: Column,
    pairs: Column,
    male: Column,
    female: Column,
    cohort: str | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Return M1 to M8, male minus female, from one row per annotation of one narrative pair."""
    from equivox.metrics.genres.columns import METRIC

    return METRIC(
        metrics=metrics,
        pairs=pairs,
        male=male,
        female=female,
        cohort=cohort,
        min_coverage=min_coverage,
        n_resamples=n_resamples,
        confidence=confidence,
        seed=seed,
    )


def concept_associations(
    *,
    identities: Column,
    phrases: Column,
    names: Column | None = None,
    categories: Column | None = None,
    stories: Column | None = None,
    merge: Merge = "none",
    encoder: str = DEFAULT_ENCODER,
    merge_threshold: float = DEFAULT_MERGE_THRESHOLD,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    n_story_permutations: int = 199,
    n_name_permutations: int = 999,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the number of phrases told more often of one identity than of another, with its null mean."""
    from equivox.metrics.badf.columns import METRIC

    return METRIC(
        identities=identities,
        phrases=phrases,
        names=names,
        categories=categories,
        stories=stories,
        merge=merge,
        encoder=encoder,
        merge_threshold=merge_threshold,
        min_coverage=min_coverage,
        n_resamples=n_resamples,
        n_story_permutations=n_story_permutations,
        n_name_permutations=n_name_permutations,
        seed=seed,
    )
