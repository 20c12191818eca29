"""Documents as columns: one document is what one story says of one character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.scores import Merge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equivox.core.samples import Samples


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document: its phrases, and the words that stand for them after unifying.

    `key` names the story; `stratum` is what a descriptor shares with those it may change identities with.
    """

    key: str
    category: str
    identity: str
    descriptor: str
    stratum: str
    phrases: tuple[str, ...]
    unified: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Documents:
    """Any number of documents as columns.

    Attributes
    ----------
    story
        The number of each document's story; `keys[story]` is the key of its response.
    category, identity, descriptor, stratum
        A label per document.
    phrases
        The phrases of each document, in the order told, repeats included.
    unified
        The same phrases, one by one, under the wording that stands for them.
    """

    story: NDArray[np.int64]
    keys: Sequence[str]
    category: EncodedLabels
    identity: EncodedLabels
    descriptor: EncodedLabels
    stratum: EncodedLabels
    phrases: EncodedValues
    unified: EncodedValues

    def __len__(self) -> int:
        return len(self.story)

    @classmethod
    def of(cls, documents: Sequence[Document] | Documents) -> Documents:
        """Return documents as columns; those that are columns already are returned as they are."""
        if isinstance(documents, Documents):
            return documents
        story = EncodedLabels.of([one.key for one in documents])
        return cls(
            story=story.codes,
            keys=story.names,
            category=EncodedLabels.of([one.category for one in documents]),
            identity=EncodedLabels.of([one.identity for one in documents]),
            descriptor=EncodedLabels.of([one.descriptor for one in documents]),
            stratum=EncodedLabels.of([one.stratum for one in documents]),
            phrases=EncodedValues.of([one.phrases for one in documents]),
            unified=EncodedValues.of([one.unified for one in documents]),
        )

    def rows(self) -> list[Document]:
        """Return the documents one by one."""
        columns = [c.texts() for c in (self.category, self.identity, self.descriptor, self.stratum)]
        return [
            Document(
                key=self.keys[story],
                category=category,
                identity=identity,
                descriptor=descriptor,
                stratum=stratum,
                phrases=tuple(phrases),
                unified=tuple(unified),
            )
            for story, category, identity, descriptor, stratum, phrases, unified in zip(
                self.story.tolist(), *columns, self.phrases.lists(), self.unified.lists(), strict=True
            )
        ]

    def in_category(self, category: str) -> Documents:
        """Return the documents of one category of places."""
        if category not in self.category.names:
            mask = np.zeros(len(self), dtype=bool)
        else:
            mask = self.category.codes == self.category.names.index(category)
        return Documents(
            story=self.story[mask],
            keys=self.keys,
            category=self.category.take(mask),
            identity=self.identity.take(mask),
            descriptor=self.descriptor.take(mask),
            stratum=self.stratum.take(mask),
            phrases=self.phrases.take(mask),
            unified=self.unified.take(mask),
        )

    def identity_codes(self, identities: Sequence[str]) -> NDArray[np.int64]:
        """Return each document's identity as its place in `identities`."""
        lookup = np.array([identities.index(name) for name in self.identity.names], dtype=np.int64)
        return lookup[self.identity.codes] if len(self) else np.zeros(0, dtype=np.int64)

    @cached_property
    def told(self) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
        """Each phrase of each document once: documents, phrases, and the phrases' names in order of first mention."""
        unified = self.unified
        if not len(unified.codes):
            return unified.rows, unified.codes, ()
        met, first = np.unique(unified.codes, return_index=True)
        order = np.argsort(first)
        place = np.zeros(len(unified.names), dtype=np.int64)
        place[met[order]] = np.arange(len(met))
        pairs = np.unique(unified.rows * len(met) + place[unified.codes])
        return pairs // len(met), pairs % len(met), tuple(unified.names[code] for code in met[order])

    @cached_property
    def found(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Mapping[str, int]]:
        """The documents of each phrase: documents sorted by phrase, where each phrase begins, each phrase's number."""
        rows, codes, names = self.told
        order = np.lexsort((rows, codes))
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        return rows[order], starts, {name: number for number, name in enumerate(names)}

    def with_phrase(self, phrase: str) -> NDArray[np.int64]:
        """Return the documents that have a phrase, in order."""
        rows, starts, number = self.found
        if phrase not in number:
            return np.zeros(0, dtype=np.int64)
        place = number[phrase]
        return rows[starts[place] : starts[place + 1]]

    def unify(self, leaders: Mapping[str, Mapping[str, str]]) -> Documents:
        """Return the documents with `unified` filled in: category → phrase → the wording that stands for it."""
        place: dict[str, int] = {}
        lookup = np.full((len(self.category.names), max(len(self.phrases.names), 1)), -1, dtype=np.int64)
        for number, category in enumerate(self.category.names):
            for code, phrase in enumerate(self.phrases.names):
                leader = leaders.get(category, {}).get(phrase)
                if leader is not None:
                    lookup[number, code] = place.setdefault(leader, len(place))
        codes = lookup[self.category.codes[self.phrases.rows], self.phrases.codes]
        return replace(self, unified=EncodedValues(self.phrases.rows, codes, tuple(place), len(self)))


def documents_of(samples: Samples, characters: Sequence[str], segment: str, parsed: NDArray[np.bool_]) -> Documents:
    """Return the documents of all stories that are annotated (`parsed`), the characters of one story together."""
    n_stories = int(parsed.sum())
    stories = np.arange(n_stories)
    number = np.cumsum(parsed) - 1
    labels: dict[str, list[NDArray[np.int64]]] = {name: [] for name in ("story", "place")}
    told: list[tuple[int, EncodedValues]] = []
    met: dict[str, list[EncodedLabels]] = {"identity": [], "descriptor": []}
    for place, attribute in enumerate(characters, start=1):
        identity = samples.metadata(f"identity_{place}").take(parsed)
        descriptor = samples.metadata(f"d{place}").take(parsed)
        there = descriptor.codes >= 0
        labels["story"].append(stories[there])
        labels["place"].append(np.full(int(there.sum()), place))
        met["identity"].append(identity.take(there))
        met["descriptor"].append(descriptor.take(there))
        told.append((place, samples.values(attribute, segment)))
    story, place_of = np.concatenate(labels["story"]), np.concatenate(labels["place"])
    order = np.lexsort((place_of, story))
    # The document of each story and place, by which its phrases are found.
    document = np.full((n_stories, len(characters) + 1), -1, dtype=np.int64)
    document[story[order], place_of[order]] = np.arange(len(order))
    names: dict[str, int] = {}
    rows, codes = [], []
    for place, values in told:
        kept = parsed[values.rows]
        lookup = np.array([names.setdefault(name, len(names)) for name in values.names], dtype=np.int64)
        rows.append(document[number[values.rows[kept]], place])
        codes.append(lookup[values.codes[kept]] if len(lookup) else values.codes[kept])
    all_rows, all_codes = np.concatenate(rows), np.concatenate(codes)
    by_document = np.argsort(all_rows, kind="stable")
    phrases = EncodedValues(all_rows[by_document], all_codes[by_document], tuple(names), len(order))
    keys = np.array(samples.keys, dtype=object)[parsed]
    return Documents(
        story=story[order],
        keys=keys,  # type: ignore[arg-type]
        category=samples.metadata("category").take(parsed).take(story[order]),
        identity=EncodedLabels.concatenated(met["identity"]).take(order),
        descriptor=EncodedLabels.concatenated(met["descriptor"]).take(order),
        stratum=_filled(samples.metadata("stratum").take(parsed)).take(story[order]),
        phrases=phrases,
        unified=phrases,
    )


def _filled(labels: EncodedLabels) -> EncodedLabels:
    """Return labels with an empty text where one is missing."""
    if not (labels.codes < 0).any():
        return labels
    return EncodedLabels(np.where(labels.codes < 0, len(labels.names), labels.codes), (*labels.names, ""))


def leaders_of(documents: Documents, merge: Merge, encoder: str, threshold: float) -> dict[str, dict[str, str]]:
    """Return, for each category, the wording that stands for each phrase: the first one met of those merged."""
    from equivox.metrics.badf.associations import leaders

    found = {}
    categories = documents.category.codes[documents.phrases.rows]
    for number, category in enumerate(documents.category.names):
        codes = documents.phrases.codes[categories == number]
        met, first = np.unique(codes, return_index=True)
        phrases = tuple(documents.phrases.names[code] for code in met[np.argsort(first)])
        found[category] = leaders(phrases, merge, encoder, threshold)
    return found
