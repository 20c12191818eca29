"""The dimensions of a setting of BADF: their stories, their tested phrases, and the associations found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from equivox.core.columns import EncodedLabels
from equivox.core.coverage import Coverage
from equivox.core.errors import UsageError
from equivox.core.lazy import np
from equivox.core.metric import Members
from equivox.core.notes import Note
from equivox.core.samples import Samples
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Segment
from equivox.core.task import Task
from equivox.metrics.badf.annotation.scheme import CHARACTERS, EXCLUSIVE, PHRASES, StoryScheme, annotator_prompt
from equivox.metrics.badf.associations import Association, Counts, Phrase, associations, count, phrase_tests
from equivox.metrics.badf.chance import Null
from equivox.metrics.badf.documents import Documents, documents_of, unify_phrases

YES, NO, UNREAD, NOT_ASKED = "yes", "no", "unparsed", "not asked"
"""The values of an association's exclusivity; only `yes` drops it."""


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One task of a setting: its stories, its documents and its tested phrases."""

    task: Task
    samples: Samples
    identities: tuple[str, ...]
    documents: Documents
    by_category: Mapping[str, Documents]
    counts: Sequence[Counts]
    phrases: Sequence[Phrase] = ()

    @cached_property
    def asked_as(self) -> Mapping[str, tuple[str, int]]:
        """The sample and the repeat of each story, by its key."""
        table = self.samples.read(["key", "sample_id", "repeat"])
        columns = (table[name].to_pylist() for name in ("key", "sample_id", "repeat"))
        return {key: (sample, repeat) for key, sample, repeat in zip(*columns, strict=True)}


def tested(members: Members, options: ScoringOptions) -> list[Dimension]:
    """Return every dimension of a setting with its tested phrases; q is over all of them."""
    dimensions = [_dimension(task, samples, options) for task, samples in members]
    counts = [own for dimension in dimensions for own in dimension.counts]
    every = iter(phrase_tests(*counts, n_resamples=options.n_resamples, seed=options.seed))
    done = []
    for dimension in dimensions:
        # A single identity has no tests.
        n = sum(len(own.with_phrase) for own in dimension.counts) if len(dimension.identities) > 1 else 0
        done.append(replace(dimension, phrases=list(islice(every, n))))
    return done


def _dimension(task: Task, samples: Samples, options: ScoringOptions) -> Dimension:
    parsed = samples.has_status("parsed", segment=PHRASES)
    documents = unify_phrases(
        documents_of(samples, [attribute.name for attribute in CHARACTERS], PHRASES, parsed),
        merge=options.merge,
        encoder=options.encoder,
        threshold=options.merge_threshold,
    )
    named = samples.metadata("identities").names
    met = {name for place in (1, 2) for name in samples.metadata(f"identity_{place}").names}
    identities = tuple(name for name in (named[0].split(",") if named else ()) if name in met)
    categories = _in_order(samples.metadata("category"))
    return Dimension(
        task=task,
        samples=samples,
        identities=identities,
        documents=documents,
        by_category={category: documents.in_category(category) for category in categories},
        counts=[count(documents, category, identities) for category in categories],
    )


def _in_order(labels: EncodedLabels) -> list[str]:
    """Return the labels in order of first occurrence."""
    met, first = np.unique(labels.codes, return_index=True)
    return [labels.names[code] for code in met[np.argsort(first)] if code >= 0]


def exclusivity_questions(members: Members, options: ScoringOptions) -> list[Segment]:
    """Return, for each association by the published rule, the question whether it is a fact (Table 13)."""
    return [
        exclusivity_question(dimension.task, association)
        for dimension in tested(members, options)
        for association in associations(dimension.phrases, dimension.identities)
    ]


def exclusivity_question(task: Task, association: Association) -> Segment:
    """Return the question about one association, which is the same for all settings and categories of places."""
    scheme = task.annotation
    if not isinstance(scheme, StoryScheme):
        raise UsageError(f"{task.name}: the metric badf needs the annotation scheme of BADF (StoryScheme)")
    extra = {"phrase": association.phrase.phrase, "identity": association.identity, "category": task.dimension}
    return Segment(
        name="exclusivity",
        text=association.phrase.phrase,
        attributes=(EXCLUSIVE,),
        prompt=annotator_prompt(scheme.prompts["exclusivity"]),
        extra=extra,
    )


def exclusivity(dimension: Dimension, association: Association) -> str:
    """Return the exclusivity of an association: yes, no, unparsed or not asked."""
    answer = dimension.samples.follow_up(exclusivity_question(dimension.task, association))
    if answer is None:
        return NOT_ASKED
    (said,) = answer.values.get(EXCLUSIVE.name, ("",)) or ("",)
    return {"YES": YES, "NO": NO}.get(said, UNREAD)


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of one dimension: its associations with their exclusivity, and the null of their number."""

    dimension: Dimension
    associations: Sequence[tuple[Association, str]]
    coverage: Coverage
    undefined: Note | None
    null: Null | None
    categories: Mapping[str, str | None]

    def kept(self, identity: str | None = None) -> list[Association]:
        """Return the associations, of one identity or all, that are not exclusive facts."""
        return [a for a, known in self.associations if known != YES and identity in {None, a.identity}]
