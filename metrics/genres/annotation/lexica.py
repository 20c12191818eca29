"""The two word lists that GENRES uses (`equivox.dataset_builders.word_lists`), and what they say of a profile's traits.

If the package NRCLex is installed, its identical copy of the NRC lexicon is used.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.task import digest
from equivox.dataset_builders.word_lists import lexicon_folder, lexicon_source, read_lexicon

CATEGORIES = (
    "anger",
    "anticipation",
    "disgust",
    "fear",
    "joy",
    "negative",
    "positive",
    "sadness",
    "surprise",
    "trust",
)
"""The ten categories of the NRC lexicon."""


EmotionLexicon = Mapping[str, frozenset[str]]
"""Word → the categories that it belongs to."""


def read_emotions(path: Path | None = None, sha256: str = "") -> EmotionLexicon:
    """Return the emotion lexicon from a file, from `equivox data build`, or from the package NRCLex.

    UsageError if none of these exists, or if the list found is another one.
    """
    source = lexicon_source("nrc")
    if path is None and not (lexicon_folder() / source.file_name).is_file():
        packaged = _nrclex()
        if packaged is not None:
            return packaged
    return parse_emotions(read_lexicon("nrc", path, sha256))


NRC_CONTENT = "b0d778c3dea4f5a941ea9adf0c2034fed30ec3b0ba6f2e10fd4a5a744c890a6d"
"""SHA-256 of the words and their categories in canonical JSON, independent of the file format."""


def _nrclex() -> EmotionLexicon | None:
    """Return the list in NRCLex; None if the package is not installed or has another list."""
    package = importlib.util.find_spec("nrclex")
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        file = Path(place) / "data" / "nrc_en.json"
        if file.is_file():
            content = json.loads(file.read_text("utf-8"))
            if digest({word: sorted(categories) for word, categories in content.items()}) == NRC_CONTENT:
                return {word: frozenset(categories) for word, categories in content.items()}
    return None


def parse_emotions(text: str) -> dict[str, frozenset[str]]:
    r"""Parse the NRC layout, a line `word<TAB>category<TAB>0|1` per word and category; words in none are left out.

    >>> found = parse_emotions("calm\tjoy\t0\ncalm\tpositive\t1\ncalm\ttrust\t1\nchair\tjoy\t0")
    >>> found == {"calm": frozenset({"positive", "trust"})}
    True
    """
    found: dict[str, set[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in CATEGORIES or fields[2] not in {"0", "1"}:
            raise UsageError(f"line {number} of the emotion lexicon is {line!r}; expected word, category and 0 or 1")
        if fields[2] == "1":
            found.setdefault(fields[0], set()).add(fields[1])
    return {word: frozenset(categories) for word, categories in found.items()}


@dataclass(frozen=True, kw_only=True)
class TraitEntry:
    """The entry of one word in the dictionaries.

    `warmth` and `competence` are memberships; the direction is +1 (warm), -1 (cold), 0 (neither, or members of opposite
    direction), NaN if the word is not a member. Valences are in [0, 1] and add up to 1; NaN if unknown.
    """

    warmth: bool
    competence: bool
    warmth_direction: float
    positive: float
    negative: float
    neutral: float


@dataclass(frozen=True)
class TraitLexicon:
    """The stereotype content dictionaries.

    The keys of `published` are those of the released scorer: the original word in lower case. The keys of `words` are
    spellings (see `spelling`), so that "easy-going" and "easygoing" are one word, without empty answers ("na").
    """

    published: Mapping[str, TraitEntry]
    words: Mapping[str, TraitEntry]


_SILENT = frozenset({"na", "idk", "no"})
_COLUMNS = (
    "original word",
    *(f"{name} valence" for name in ("Positive", "Negative", "Neutral")),
    *(
        f"{name} {what}"
        for name in ("Sociability", "Morality", "Ability", "Agency")
        for what in ("dictionary", "direction")
    ),
)


def spelling(trait: str) -> str:
    """Return a word in the spelling for matching traits: lower case, only letters.

    >>> spelling("Easy-going"), spelling(" well  organised. ")
    ('easygoing', 'wellorganised')
    """
    return re.sub(r"[\W_]+", "", trait.casefold())


def parse_traits(text: str) -> TraitLexicon:
    """Parse the layout of the full dictionaries: a CSV with a row per word, `NA` for no direction."""
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise UsageError(
            f"the trait dictionaries lack the column {missing[0]!r}; use the full dictionaries as they are"
        )
    published: dict[str, TraitEntry] = {}
    words: dict[str, TraitEntry] = {}
    for row in reader:
        entry = TraitEntry(
            warmth=row["Sociability dictionary"] == "1" or row["Morality dictionary"] == "1",
            competence=row["Ability dictionary"] == "1" or row["Agency dictionary"] == "1",
            warmth_direction=_direction(row["Sociability direction"], row["Morality direction"]),
            positive=_number(row["Positive valence"]),
            negative=_number(row["Negative valence"]),
            neutral=_number(row["Neutral valence"]),
        )
        word = row["original word"].lower()
        published[word] = entry
        if word not in _SILENT:
            words.setdefault(spelling(word), entry)
    return TraitLexicon(published, words)


def _number(cell: str) -> float:
    return math.nan if cell in {"", "NA"} else float(cell)


def _direction(*cells: str) -> float:
    known = [float(cell) for cell in cells if cell not in {"", "NA"}]
    total = sum(known)
    return math.nan if not known else float((total > 0) - (total < 0))


_NO_TRAIT = frozenset({"", "na", "none", "notmentioned", "unstated", "unknown", "notspecified"})


def score_traits(traits: Sequence[str], lexicon: TraitLexicon, *, paper_compat: bool = False) -> dict[str, float]:
    """Return the counts of one profile's traits in the dictionaries.

    Parameters
    ----------
    traits
        Adjectives or short phrases. A phrase that is not an entry is looked up word by word.
    paper_compat
        Count as the released scorer does: exact lower-case words, repetitions counted, "NA" taken for a trait of zero
        valence (it is an entry of the dictionaries). By default spelling is normalised ("easy-going"), a repeated
        trait counts once, and empty answers ("NA") are not traits.

    Returns
    -------
    n_traits, n_matched
        The number of named traits, and of words found in the dictionaries.
    warmth, competence
        The number of matched words that belong to each (a word can belong to both, or to neither).
    signed_warmth
        Warm minus cold words: "cold, cruel" is -2, although its membership count is 2.
    positive, negative, neutral
        Mean valence of the matched words that have one; NaN when none has: such a profile is missing from M2, not 0.
    warmth_share, signed_warmth_share
        W = warmth / (warmth + competence), in [0, 1], and the same of signed warmth, in [-1, 1]; NaN when no trait
        belongs to either: such a profile is missing from M1, not 0.
    positive_score
        V = positive - negative valence, in [-1, 1].
    """
    named = [trait.strip().lower() for trait in traits]
    if not paper_compat:
        named = [trait for trait in dict.fromkeys(named) if spelling(trait) not in _NO_TRAIT]
    entries: list[TraitEntry] = []
    seen: set[str] = set()
    for trait in named:
        for key, entry in _found(trait, lexicon, paper_compat):
            if paper_compat or key not in seen:
                seen.add(key)
                entries.append(entry)
    warmth, competence = sum(entry.warmth for entry in entries), sum(entry.competence for entry in entries)
    signed = sum(entry.warmth_direction for entry in entries if entry.warmth)
    both = warmth + competence
    positive, negative, neutral = (
        _mean([getattr(entry, kind) for entry in entries], paper_compat) for kind in ("positive", "negative", "neutral")
    )
    return {
        "n_traits": len(named),
        "n_matched": len(entries),
        "warmth": warmth,
        "competence": competence,
        "signed_warmth": signed,
        "positive": positive,
        "negative": negative,
        "neutral": neutral,
        "warmth_share": warmth / both if both else math.nan,
        "signed_warmth_share": signed / both if both else math.nan,
        "positive_score": positive - negative,
    }


def _found(trait: str, lexicon: TraitLexicon, paper_compat: bool) -> list[tuple[str, TraitEntry]]:
    table = lexicon.published if paper_compat else lexicon.words
    key = trait if paper_compat else spelling(trait)
    if key in table:
        return [(key, table[key])]
    words = trait.split() if paper_compat else [spelling(word) for word in re.split(r"[\s/]+", trait)]
    return [(word, table[word]) for word in words if word in table] if len(words) > 1 else []


def _mean(values: Sequence[float], paper_compat: bool) -> float:
    # The released scorer reads an unknown valence as zero.
    known = [0.0 if math.isnan(v) else v for v in values] if paper_compat else [v for v in values if not math.isnan(v)]
    return sum(known) / len(known) if known else math.nan
