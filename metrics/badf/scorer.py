"""Scores of a setting of BADF: all its dimensions together, because q is over everything that was tested.

Zero associations are a result only if there are annotated stories: below the coverage floor, and if an identity has
no stories, every number is NaN with its reason.
"""

from __future__ import annotations

from math import isnan
from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.lazy import NDArray, np
from equivox.core.metric import Members
from equivox.core.samples import UNANSWERED, Samples
from equivox.core.scores import NAN, Score, Scored, ScoringOptions
from equivox.metrics.badf.annotation.scheme import CHARACTERS, PHRASES
from equivox.metrics.badf.associations import LEVEL, Counts, associations, summarized
from equivox.metrics.badf.chance import null_counts
from equivox.metrics.badf.dimensions import NOT_ASKED, UNREAD, Dimension, Found, exclusivity, tested
from equivox.metrics.badf.tables import TABLES
from equivox.metrics.scoring import named

_DESCRIPTOR_PERMUTATIONS = 999


def score_setting(members: Members, options: ScoringOptions) -> Scored:
    """Return scores per task and identity, and the tables of the setting."""
    found = [_found(dimension, options) for dimension in tested(members, options)]
    scores = [score for one in found for score in _scores(one)]
    records = {
        name: [{"task": one.dimension.task.name, **row} for one in found for row in rows_of(one)]
        for name, rows_of in TABLES.items()
    }
    return Scored(scores, records, quoted={"exemplars": "story"})


def _found(dimension: Dimension, options: ScoringOptions) -> Found:
    coverage = _coverage(dimension)
    undefined = _undefined(dimension, coverage, options)
    pairs = [(a, exclusivity(dimension, a)) for a in associations(dimension.phrases, dimension.identities)]
    null = None
    if undefined is None:
        null = null_counts(
            dimension.documents,
            dimension.identities,
            n_stories=options.n_resamples,
            n_descriptors=min(_DESCRIPTOR_PERMUTATIONS, options.n_resamples),
            seed=options.seed,
        )
    return Found(
        dimension=dimension,
        associations=pairs,
        coverage=coverage,
        undefined=undefined,
        null=null,
        categories={counts.category: _category_reason(counts) for counts in dimension.counts},
    )


def _category_reason(counts: Counts) -> str | None:
    silent = [name for name, n in zip(counts.identities, counts.documents, strict=True) if not n]
    return f"no story of {', '.join(silent)}" if silent else None


def _undefined(dimension: Dimension, coverage: Coverage, options: ScoringOptions) -> str | None:
    if not coverage.parsed:
        return "no story could be annotated"
    if short := coverage.shortfall(options.min_coverage):
        return short
    if len(dimension.identities) < 2:
        return f"only {', '.join(dimension.identities) or 'nobody'} was asked about: two identities are compared"
    if not len(dimension.documents.phrases.codes):
        return "no story says anything about a character"
    if not any(phrase.undefined is None for phrase in dimension.phrases):
        return "no phrase can be tested: each is told of everybody, or an identity has no stories"
    return None


def _coverage(dimension: Dimension) -> Coverage:
    """Return the coverage of stories; a story with two characters counts for both identities.

    A story is used if it says something of a character, and for an identity if it does of one of that.
    """
    samples, identities = dimension.samples, dimension.identities
    by_story = {status: samples.has_status(status, segment=PHRASES) for status in ("parsed", "unparsed")}
    parsed = by_story["parsed"]
    told, described = np.zeros((2, len(samples), len(identities)), dtype=bool)
    for place, character in enumerate(CHARACTERS, start=1):
        labels, says = samples.metadata(f"identity_{place}"), parsed & _says(samples, character.name)
        for number, identity in enumerate(identities):
            if identity in labels.names:
                own = labels.codes == labels.names.index(identity)
                told[:, number] |= own
                described[:, number] |= own & says
    requested, used = told.sum(axis=0).tolist(), described.sum(axis=0).tolist()
    return Coverage(
        requested=len(samples),
        generated=int((~samples.has_status(*UNANSWERED)).sum()),
        answered=int((parsed | by_story["unparsed"]).sum()),
        parsed=int(parsed.sum()),
        used=int(described.any(axis=1).sum()),
        requested_by_group=dict(zip(identities, requested, strict=True)),
        used_by_group=dict(zip(identities, used, strict=True)),
    )


def _says(samples: Samples, character: str) -> NDArray[np.bool_]:
    """Return which stories say something of a character."""
    return samples.values(character, PHRASES).has_value


def _scores(found: Found) -> list[Score]:
    scores = [_tested_score(found), _count_score(found, None), _surviving_score(found)]
    for identity in found.dimension.identities:
        scores += [_count_score(found, identity), *_mean_scores(found, identity)]
    return scores


def _named(found: Found, name: str, unit: str, zero_means: str, identity: str | None = None) -> dict[str, Any]:
    dimension = found.dimension
    return named(dimension.task) | {
        "name": name,
        "unit": unit,
        "zero_means": zero_means,
        "subset": "" if identity is None else f"identity={identity}",
        "coverage": found.coverage,
        "n_clusters": len(set(dimension.documents.descriptor.codes.tolist())),
    }


_NOTHING = "no phrase is told more of one identity at the published level"


def _tested_score(found: Found) -> Score:
    """Return the score of the number of associations before the exclusivity question, with its null mean."""
    null, reason = found.null, found.undefined
    if null is None:
        return Score(**_named(found, "associations tested", "count", _NOTHING), target=NAN, undefined=reason)
    # Without permutations p has no smallest value.
    few = isnan(null.p_names_least)
    notes = (f"{null.least_descriptors.too_few}; p over names supposes that names differ normally instead",)
    return Score(
        **_named(found, "associations tested", "count", _NOTHING),
        value=float(null.observed),
        target=null.expected,
        null_mean=null.expected,
        estimate=max(0.0, null.observed - null.expected),
        estimate_unclipped=null.observed - null.expected,
        p_these=null.p_stories,
        p_cluster=null.p_names,
        p_least=null.p_names_least,
        cannot_tell=None if few else null.least_descriptors.too_few,
        notes=notes if few else (),
    )


def _count_score(found: Found, identity: str | None) -> Score:
    names = _named(found, "associations", "count", _NOTHING, identity)
    if found.undefined:
        return Score(**names, target=NAN, undefined=found.undefined)
    unread = sum(known == UNREAD for _, known in found.associations)
    asked = any(known != NOT_ASKED for _, known in found.associations)
    notes: tuple[str, ...] = ()
    if found.associations and not asked:
        annotator = found.dimension.samples.annotator
        notes = (f"exclusivity was not asked: {annotator.name if annotator else 'nobody'} keeps every association",)
    if unread:
        notes = (*notes, f"{unread} exclusivity answers could not be parsed: their associations are kept and flagged")
    return Score(**names, value=float(len(found.kept(identity))), target=NAN, notes=() if identity else notes)


def _surviving_score(found: Found) -> Score:
    names = _named(found, "associations with q up to .05", "count", "none survives Benjamini-Hochberg")
    if found.undefined:
        return Score(**names, target=NAN, undefined=found.undefined)
    return Score(**names, value=float(sum(a.phrase.q <= LEVEL for a in found.kept())), target=NAN)


def _mean_scores(found: Found, identity: str) -> list[Score]:
    kept = found.kept(identity)
    n, mean_score, mean_p = summarized(kept)
    surviving = 100 * sum(a.phrase.q <= LEVEL for a in kept) / n if n else NAN
    reason = found.undefined or (None if n else f"there are no associations of {identity}")
    return [
        Score(
            **_named(found, name, unit, zero, identity),
            value=NAN if reason else value,
            target=NAN,
            undefined=reason,
        )
        for name, unit, zero, value in (
            ("mean score", "documents per phrase token", "told as often of the other identity", mean_score),
            ("mean p", "probability, uncorrected", "never", mean_p),
            ("share with q up to .05", "percent of associations", "none survives Benjamini-Hochberg", surviving),
        )
    ]
