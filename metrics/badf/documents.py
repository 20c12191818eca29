"""Documents as columns: one document holds the phrases of one story about one character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from equivox.annotate.merging import lemmas, unify
from equivox.core.encoded import EncodedLabels, EncodedValues
from equivox.core.lazy import NDArray, np
from equivox.core.samples import Samples
from equivox.core.scores import Merge

Document = tuple[str, str, str, str, str, Sequence[str]]
"""One document: the key of its story, its category, identity, descriptor and stratum, and its phrases.

Descriptors with the same stratum can exchange identities.
"""


@dataclass(frozen=True, eq=False)
class Documents:
    """Any number of documents as columns.

    Attributes
    ----------
    story
        The number of each document's story; `keys[story]` is the key of its response.
    category, identity, descriptor, stratum
        Labels, one per document.
    phrases
        The phrases of each document, in the order of the story, including repeats.
    unified
        The same phrases, each under the wording that represents it.
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
    def of(cls, documents: Sequence[Document]) -> Documents:
        """Return documents as columns; each phrase represents itself."""
        keys, *labels, told = list(zip(*documents, strict=True)) or [()] * 6
        story, phrases = EncodedLabels.of(keys), EncodedValues.of(told)
        category, identity, descriptor, stratum = map(EncodedLabels.of, labels)
        return cls(story.codes, story.names, category, identity, descriptor, stratum, phrases, phrases)

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
        """Return the index of each document's identity in `identities`."""
        lookup = np.array([identities.index(name) for name in self.identity.names], dtype=np.int64)
        return lookup[self.identity.codes] if len(self) else np.zeros(0, dtype=np.int64)

    @cached_property
    def told(self) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
        """The distinct phrases of each document: documents, phrases, and names of phrases in order of first mention."""
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
        """The documents sorted by phrase, the start of each phrase, and each phrase's number."""
        rows, codes, names = self.told
        order = np.lexsort((rows, codes))
        starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
        return rows[order], starts, {name: number for number, name in enumerate(names)}

    def with_phrase(self, phrase: str) -> NDArray[np.int64]:
        """Return the numbers of the documents with a phrase, in order."""
        rows, starts, number = self.found
        if phrase not in number:
            return np.zeros(0, dtype=np.int64)
        place = number[phrase]
        return rows[starts[place] : starts[place + 1]]

    def unify(self, leaders: Mapping[str, Mapping[str, str]]) -> Documents:
        """Return the documents with `unified` filled in; `leaders`: category → phrase → representing wording."""
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
    """Return the documents of all annotated stories (`parsed`); the characters of one story are adjacent."""
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
    # The number of the document for each story and character, to assign phrases to it.
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
    """Return labels with missing ones replaced by an empty text."""
    if not (labels.codes < 0).any():
        return labels
    return EncodedLabels(np.where(labels.codes < 0, len(labels.names), labels.codes), (*labels.names, ""))


def leaders_of(documents: Documents, merge: Merge, encoder: str, threshold: float) -> dict[str, dict[str, str]]:
    """Return, for each category, the wording that represents each phrase: the first of the merged ones."""
    found = {}
    categories = documents.category.codes[documents.phrases.rows]
    for number, category in enumerate(documents.category.names):
        codes = documents.phrases.codes[categories == number]
        met, first = np.unique(codes, return_index=True)
        phrases = tuple(documents.phrases.names[code] for code in met[np.argsort(first)])
        found[category] = leaders(phrases, merge, encoder, threshold)
    return found


def unify_phrases(documents: Documents, *, merge: Merge, encoder: str = "", threshold: float = 1.0) -> Documents:
    """Return the documents with `unified` filled in, category by category.

    The first wording represents all that are merged with it: `none` merges nothing, `lemma` merges equal dictionary
    forms, `embedding` similar meanings (arXiv 2508.01412, appendix G), by `equivox.annotate.merging`.
    """
    return documents.unify(leaders_of(documents, merge, encoder, threshold))


_KNOWN: dict[tuple[tuple[str, ...], str, float], dict[str, str]] = {}
"""Cache of the latest leaders by meaning, for the follow-up and the scores of one command."""


def leaders(phrases: tuple[str, ...], merge: Merge, encoder: str, threshold: float) -> dict[str, str]:
    """Return the wording that represents each of `phrases`, which are in order of first occurrence."""
    if merge == "none":
        return {phrase: phrase for phrase in phrases}
    if merge == "lemma":
        first: dict[str, str] = {}
        return {phrase: first.setdefault(lemmas(phrase), phrase) for phrase in phrases}
    key = (phrases, encoder, threshold)
    if key not in _KNOWN:
        if len(_KNOWN) >= 64:
            _KNOWN.clear()
        _KNOWN[key] = dict(zip(phrases, unify(phrases, encoder, threshold), strict=True))
    return _KNOWN[key]
