"""Documents as columns: one document holds the phrases of one story about one character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from equivox.annotate.merging import lemmas, unify
from equivox.core.columns import EncodedLabels, EncodedValues
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
        columns = ("category", "identity", "descriptor", "stratum", "phrases", "unified")
        return replace(self, story=self.story[mask], **{name: getattr(self, name).take(mask) for name in columns})

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


def documents_of(samples: Samples, characters: Sequence[str], segment: str, parsed: NDArray[np.bool_]) -> Documents:
    """Return the documents of all annotated stories (`parsed`); the characters of one story are adjacent."""
    identity, descriptor = (
        EncodedLabels.concatenated([samples.metadata(f"{name}{n}").take(parsed) for n in range(1, len(characters) + 1)])
        for name in ("identity_", "d")
    )
    there = descriptor.codes.reshape(len(characters), -1).T >= 0  # stories × characters
    story, character = np.nonzero(there)
    character_row = character * len(there) + story
    # The number of the document for each story and character, to assign phrases to it.
    document = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
    told = [samples.values(attribute, segment).take(parsed) for attribute in characters]
    names: dict[str, int] = {}
    lookups = [np.array([names.setdefault(name, len(names)) for name in own.names], dtype=np.int64) for own in told]
    codes = [lookup[own.codes] for lookup, own in zip(lookups, told, strict=True)]
    all_rows = np.concatenate([document[own.rows, number] for number, own in enumerate(told)])
    by_document = np.argsort(all_rows, kind="stable")
    phrases = EncodedValues(all_rows[by_document], np.concatenate(codes)[by_document], tuple(names), len(story))
    keys = np.array(samples.keys, dtype=object)[parsed]
    return Documents(
        story=story,
        keys=keys,  # type: ignore[arg-type]
        category=samples.metadata("category").take(parsed).take(story),
        identity=identity.take(character_row),
        descriptor=descriptor.take(character_row),
        stratum=_filled(samples.metadata("stratum").take(parsed)).take(story),
        phrases=phrases,
        unified=phrases,
    )


def _filled(labels: EncodedLabels) -> EncodedLabels:
    """Return labels with missing ones replaced by an empty text."""
    if not (labels.codes < 0).any():
        return labels
    return EncodedLabels(np.where(labels.codes < 0, len(labels.names), labels.codes), (*labels.names, ""))


def unify_phrases(documents: Documents, *, merge: Merge, encoder: str = "", threshold: float = 1.0) -> Documents:
    """Return the documents with `unified` filled in, category by category.

    The first wording represents all that are merged with it: `none` merges nothing, `lemma` merges equal dictionary
    forms, `embedding` similar meanings (arXiv 2508.01412, appendix G), by `equivox.annotate.merging`.
    """
    raw, place = documents.phrases, dict[str, int]()
    categories = documents.category.codes[raw.rows]
    lookup = np.full((len(documents.category.names), max(len(raw.names), 1)), -1, dtype=np.int64)
    for number in range(len(lookup)):
        met, first = np.unique(raw.codes[categories == number], return_index=True)
        found = leaders(tuple(raw.names[code] for code in met[np.argsort(first)]), merge, encoder, threshold)
        for code in met.tolist():
            lookup[number, code] = place.setdefault(found[raw.names[code]], len(place))
    return replace(documents, unified=replace(raw, codes=lookup[categories, raw.codes], names=tuple(place)))


def leaders(phrases: tuple[str, ...], merge: Merge, encoder: str, threshold: float) -> dict[str, str]:
    """Return the wording that represents each of `phrases`, which are in order of first occurrence."""
    if merge == "none":
        return {phrase: phrase for phrase in phrases}
    if merge == "lemma":
        first: dict[str, str] = {}
        return {phrase: first.setdefault(lemmas(phrase), phrase) for phrase in phrases}
    return _leaders_by_meaning(phrases, encoder, threshold)


@lru_cache(maxsize=64)  # the follow-up and the scores of one command ask for the same
def _leaders_by_meaning(phrases: tuple[str, ...], encoder: str, threshold: float) -> dict[str, str]:
    return dict(zip(phrases, unify(phrases, encoder, threshold), strict=True))
