"""The metrics of plain columns as functions: `from equivox.metrics import ntvd`.

Columns are lists, numpy arrays, pandas or pyarrow columns; None and NaN are missing.
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
    given = dict(locals())
    from equivox.metrics.ntvd.columns import METRIC

    return METRIC(**given)


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
    given = dict(locals())
    from equivox.metrics.spoken_stereoset.columns import METRIC

    return METRIC(**given)


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
    given = dict(locals())
    from equivox.metrics.genres.columns import METRIC

    return METRIC(**given)


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
    n_story_permutations: int = 9_999,
    n_name_permutations: int = 999,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the number of phrases told more often of one identity than of another, with its null mean."""
    given = dict(locals())
    from equivox.metrics.badf.columns import METRIC

    return METRIC(**given)


def concept_counts(
    *,
    identities: Column,
    phrases: Column,
    counts: Column,
    documents: Column,
    tokens: Column | None = None,
    categories: Column | None = None,
    min_coverage: float = 0.8,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Return how many phrases more documents of one identity have than of another, from counts, beside chance.

    A row is one phrase of one identity: `counts` of its `documents` have the phrase. Every phrase needs a row for every
    identity, with 0 where no document has it; a missing count is no 0.

    Examples
    --------
    >>> found = concept_counts(identities=["f", "m"], phrases=["calm", "calm"], counts=[9, 1], documents=[10, 10])
    >>> found["associations_f"], found["associations_m"], round(found["expected_by_chance"], 4)
    (1, 0, 0.023)
    """
    given = dict(locals())
    from equivox.metrics.badf.counts import METRIC

    return METRIC(**given)


def association_list(
    *,
    identities: Column,
    scores: Column,
    p_values: Column,
    exclusive: Column | None = None,
    min_coverage: float = 0.8,
) -> dict[str, Any]:
    """Return the number, mean score and mean p of associations that were found elsewhere, per identity.

    `exclusive` is YES where a phrase is a fact of its identity, which drops it.
    """
    given = dict(locals())
    from equivox.metrics.badf.listed import METRIC

    return METRIC(**given)
