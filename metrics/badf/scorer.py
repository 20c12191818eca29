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
from equivox.core.notes import Note, describe_design, remark
from equivox.core.samples import UNANSWERED, Samples
from equivox.core.scores import NAN, Score, Scored, ScoringOptions
from equivox.metrics.badf.annotation.scheme import CHARACTERS, PHRASES
from equivox.metrics.badf.associations import LEVEL, Counts, associations, summarized
from equivox.metrics.badf.chance import null_counts
from equivox.metrics.badf.dimensions import NOT_ASKED, UNREAD, Dimension, Found, exclusivity, tested
from equivox.metrics.badf.tables import TABLES
from equivox.metrics.scoring import list_notes, named

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


def _undefined(dimension: Dimension, coverage: Coverage, options: ScoringOptions) -> Note | None:
    if not coverage.parsed:
        return remark("no story could be annotated")
    if short := coverage.shortfall(options.min_coverage):
        return short
    if len(dimension.identities) < 2:
        asked = ", ".join(dimension.identities) or "nobody"
        return remark(f"only {asked} was asked about: two identities are compared")
    if not len(dimension.documents.phrases.codes):
        return remark("no story says anything about a character")
    if not any(phrase.undefined is None for phrase in dimension.phrases):
        return remark("no phrase can be tested: each is told of everybody, or an identity has no stories")
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


def _named(found: Found, metric: str, unit: str, identity: str | None = None) -> dict[str, Any]:
    dimension = found.dimension
    return named(dimension.task) | {
        "metric": metric,
        "unit": unit,
        "subset": "" if identity is None else f"identity={identity}",
        "coverage": found.coverage,
        "n_units": len(set(dimension.documents.descriptor.codes.tolist())),
    }


def _tested_score(found: Found) -> Score:
    """Return the score of the number of associations before the exclusivity question, with its null mean."""
    null, reason = found.null, found.undefined
    if null is None:
        return Score(**_named(found, "associations tested", "count"), null_value=NAN, undefined_reason=reason)
    # Without permutations p has no smallest value.
    few, too_few = isnan(null.p_names_least), null.least_descriptors.too_few
    normal = remark("p over names supposes that names differ normally: they have too few permutations")
    return Score(
        **_named(found, "associations tested", "count"),
        value=float(null.observed),
        null_value=null.expected,
        estimate=null.observed - null.expected,
        p=null.p_names,
        notes=(describe_design(null_mean=null.expected), *([normal] if few else list_notes(too_few))),
    )


def _count_score(found: Found, identity: str | None) -> Score:
    names = _named(found, "associations", "count", identity)
    if found.undefined:
        return Score(**names, null_value=NAN, undefined_reason=found.undefined)
    unread = sum(known == UNREAD for _, known in found.associations)
    asked = any(known != NOT_ASKED for _, known in found.associations)
    notes: list[Note] = []
    if found.associations and not asked:
        annotator = found.dimension.samples.annotator
        name = annotator.name if annotator else "nobody"
        notes.append(remark(f"exclusivity was not asked: {name} keeps every association"))
    if unread:
        notes.append(remark(f"{unread} exclusivity answers could not be parsed: their associations are kept"))
    said = () if identity else tuple(notes)
    return Score(**names, value=float(len(found.kept(identity))), null_value=NAN, notes=said)


def _surviving_score(found: Found) -> Score:
    names = _named(found, "associations with q up to .05", "count")
    if found.undefined:
        return Score(**names, null_value=NAN, undefined_reason=found.undefined)
    return Score(**names, value=float(sum(a.phrase.q <= LEVEL for a in found.kept())), null_value=NAN)


def _mean_scores(found: Found, identity: str) -> list[Score]:
    kept = found.kept(identity)
    n, mean_score, mean_p = summarized(kept)
    surviving = 100 * sum(a.phrase.q <= LEVEL for a in kept) / n if n else NAN
    reason = found.undefined or (None if n else remark(f"there are no associations of {identity}"))
    return [
        Score(
            **_named(found, metric, unit, identity),
            value=NAN if reason else value,
            null_value=NAN,
            undefined_reason=reason,
        )
        for metric, unit, value in (
            ("mean score", "documents per phrase token", mean_score),
            ("mean p", "probability, uncorrected", mean_p),
            ("share with q up to .05", "percent of associations", surviving),
        )
    ]
