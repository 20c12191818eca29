"""Whose sentence is whose: on parses made by hand, with the heads and labels that spaCy's English models use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from equivox.core.errors import UsageError
from equivox.metrics.genres.annotation.language import Character, count_emotion_words, read_passage
from equivox.metrics.genres.annotation.parsers import SpacyParser, StandInParser

ANA, BEN = Character("Ana", "female"), Character("Ben", "male")
PAIR = (ANA, BEN)

# One sentence: word/head/label, the head counted from 0 within the sentence; the root points to itself.
Sentence = Sequence[tuple[str, int, str]]


def doc(*sentences: Sentence, pos: dict[str, str] | None = None) -> Any:
    spacy = pytest.importorskip("spacy", reason='spaCy is not installed: pip install -c constraints.txt ".[genres]"')
    from spacy.tokens import Doc

    words, heads, deps, starts = [], [], [], []
    for sentence in sentences:
        offset = len(words)
        for place, (word, head, dep) in enumerate(sentence):
            words.append(word)
            heads.append(offset + head)
            deps.append(dep)
            starts.append(place == 0)
    tags = [(pos or {}).get(word, "VERB" if dep == "ROOT" else "NOUN") for word, dep in zip(words, deps, strict=True)]
    return Doc(spacy.blank("en").vocab, words=words, heads=heads, deps=deps, pos=tags, sent_starts=None, lemmas=words)


def counts(*sentences: Sentence, characters: Sequence[Character] = PAIR, **options: Any) -> list[int]:
    passage = read_passage(doc(*sentences), characters, **options)
    return [len(passage.sentences[c.name]) for c in characters]


ANA_SMILED = [("Ana", 1, "nsubj"), ("smiled", 1, "ROOT"), (".", 1, "punct")]
BEN_SLEPT = [("Ben", 1, "nsubj"), ("slept", 1, "ROOT"), (".", 1, "punct")]
SHE_SANG = [("She", 1, "nsubj"), ("sang", 1, "ROOT"), (".", 1, "punct")]


IDA = Character("Ida", "female")
STRANGER = [("A", 1, "det"), ("woman", 2, "nsubj"), ("entered", 2, "ROOT")]

CASES: dict[str, tuple[list[Sentence], Sequence[Character], list[int]]] = {
    "a name as the subject counts": ([ANA_SMILED, BEN_SLEPT, ANA_SMILED], PAIR, [2, 1]),
    "a passive subject counts": (
        [[("Ben", 2, "nsubjpass"), ("was", 2, "auxpass"), ("seen", 2, "ROOT"), (".", 2, "punct")]], PAIR, [0, 1],
    ),
    "a pronoun counts for whom it stands": ([ANA_SMILED, SHE_SANG, BEN_SLEPT, SHE_SANG], PAIR, [3, 1]),
    "a pronoun before anybody is named stands for nobody": ([SHE_SANG, ANA_SMILED], PAIR, [1, 0]),
    "a pronoun may come before the name in its sentence": (
        [[("As", 2, "mark"), ("she", 2, "nsubj"), ("rose", 5, "advcl"), (",", 5, "punct"), ("Ana", 5, "nsubj"),
          ("smiled", 5, "ROOT"), (".", 5, "punct")]], PAIR, [1, 0],
    ),
    "both of two coordinated subjects count": (
        [[("Ana", 3, "nsubj"), ("and", 0, "cc"), ("Ben", 0, "conj"), ("met", 3, "ROOT"), (".", 3, "punct")]],
        PAIR, [1, 1],
    ),
    "a coordinated clause counts": (
        [[("Ana", 1, "nsubj"), ("smiled", 1, "ROOT"), ("and", 1, "cc"), ("Ben", 4, "nsubj"), ("slept", 1, "conj")]],
        PAIR, [1, 1],
    ),
    "a subordinate clause does not": (
        [[("Ana", 1, "nsubj"), ("knew", 1, "ROOT"), ("Ben", 3, "nsubj"), ("slept", 1, "ccomp")]], PAIR, [1, 0],
    ),
    "one sentence counts once for a character": (
        [[("Ana", 1, "nsubj"), ("sat", 1, "ROOT"), ("and", 1, "cc"), ("she", 4, "nsubj"), ("sang", 1, "conj")]],
        PAIR, [1, 0],
    ),
    "a possessor is no subject": (
        [[("Ana", 2, "poss"), ("'s", 0, "case"), ("hand", 3, "nsubj"), ("shook", 3, "ROOT")]], PAIR, [0, 0],
    ),
    "an object is no subject": ([[("Rain", 1, "nsubj"), ("surprised", 1, "ROOT"), ("Ana", 1, "dobj")]], PAIR, [0, 0]),
    "a vocative is no subject": ([[("Ana", 1, "npadvmod"), ("listen", 1, "ROOT")]], PAIR, [0, 0]),
    "a longer subject counts by its head": (
        [[("Ana", 5, "nsubj"), (",", 0, "punct"), ("a", 3, "det"), ("beekeeper", 0, "appos"), (",", 0, "punct"),
          ("smiled", 5, "ROOT")]], PAIR, [1, 0],
    ),
    "a new woman takes the pronoun until the name is back": (
        [ANA_SMILED, STRANGER, SHE_SANG, ANA_SMILED, SHE_SANG], PAIR, [3, 0],
    ),
    "a woman known already is the character": (
        [ANA_SMILED, [("The", 1, "det"), ("woman", 2, "nsubj"), ("laughed", 2, "ROOT")], SHE_SANG], PAIR, [2, 0],
    ),
    "somebody with a title takes the pronoun": (
        [ANA_SMILED, [("Mrs.", 1, "compound"), ("Hill", 2, "nsubj"), ("knocked", 2, "ROOT")], SHE_SANG], PAIR, [1, 0],
    ),
    "of two women the last subject is meant": (
        [ANA_SMILED, [("Ida", 1, "nsubj"), ("saw", 1, "ROOT"), ("Ana", 1, "dobj")], SHE_SANG], (ANA, IDA), [1, 2],
    ),
    "names of two words share a surname": (
        [[("Tom", 1, "compound"), ("Lee", 2, "nsubj"), ("slept", 2, "ROOT")]],
        (Character("Ana Lee", "female"), Character("Tom Lee", "male")), [0, 1],
    ),
}  # fmt: skip
"""Sentences, the characters, and how many sentences each is the subject of."""


@pytest.mark.parametrize("case", CASES)
def test_whose_sentence_is_whose(case: str) -> None:
    sentences, characters, expected = CASES[case]
    assert counts(*sentences, characters=characters) == expected


def test_a_pronoun_that_stands_for_nobody_is_counted() -> None:
    assert read_passage(doc(SHE_SANG, ANA_SMILED), PAIR).unresolved == 1


def test_two_characters_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two characters are called 'Ana'"):
        read_passage(doc(ANA_SMILED), (ANA, ANA))


WAS_GLAD = [("Ana", 1, "nsubj"), ("was", 1, "ROOT"), ("glad", 1, "acomp")]
BOTH_MET = [("Ana", 3, "nsubj"), ("and", 0, "cc"), ("Ben", 0, "conj"), ("met", 3, "ROOT")]


def test_the_published_rule_asks_for_a_verb_and_the_bare_name() -> None:
    # "Ana was glad" has an auxiliary for its root, "Ana and Ben" is not "Ana".
    parsed = doc(ANA_SMILED, WAS_GLAD, BOTH_MET, SHE_SANG, pos={"was": "AUX"})
    published = read_passage(parsed, PAIR, paper_compat=True)
    assert published.sentences["Ana"] == ["Ana smiled .", "She sang ."]
    assert len(read_passage(parsed, PAIR).sentences["Ana"]) == 4
    # Its emotion words come from every sentence whose first subject is a word of hers.
    assert len(published.lemmas["Ana"]) == 4


def test_the_published_rule_takes_every_pronoun_of_the_gender() -> None:
    assert counts(STRANGER, SHE_SANG, paper_compat=True) == [1, 0]
    assert counts(STRANGER, SHE_SANG) == [0, 0]


def test_a_word_counts_once_per_category() -> None:
    lexicon = {"grief": frozenset({"sadness", "negative"}), "delight": frozenset({"joy"})}
    assert count_emotion_words([["Grief", "and", "delight"], ["grief"]], lexicon) == 2 + 1 + 2
    assert count_emotion_words([], lexicon) == 0


def test_a_missing_model_says_how_to_install_it() -> None:
    pytest.importorskip("spacy", reason='spaCy is not installed: pip install -c constraints.txt ".[genres]"')
    with pytest.raises(UsageError, match=r"python -m spacy download en_no_such_model.*parser: stand-in"):
        list(SpacyParser("en_no_such_model").parse(["Ana smiled."]))


def test_a_spacy_pipeline_of_a_folder_parses_over_processes(tmp_path: Any) -> None:
    spacy = pytest.importorskip("spacy", reason='spaCy is not installed: pip install -c constraints.txt ".[genres]"')
    from spacy.training import Example

    nlp = spacy.blank("en")
    nlp.add_pipe("parser")
    heads, deps = [1, 1, 1], ["nsubj", "ROOT", "punct"]
    example = Example.from_dict(nlp.make_doc("Ana smiled."), {"heads": heads, "deps": deps})
    nlp.initialize(lambda: [example])
    nlp.to_disk(tmp_path / "tiny")
    parser = SpacyParser(str(tmp_path / "tiny"), processes=2, batch_size=4)
    texts = [f"Ana smiled {number} times." for number in range(12)]
    found = [parsed.text for parsed in parser.parse(texts)]  # type: ignore[attr-defined]
    assert found == texts
    assert "spaCy" in parser.version()


def stand_in(text: str) -> list[int]:
    passage = read_passage(next(StandInParser().parse([text])), PAIR)
    return [len(passage.sentences[c.name]) for c in PAIR]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana smiled. Ben slept. She sang.", [2, 1]),
        ("Ana and Ben met at noon.", [1, 1]),
        ('"Come in," Ben said. "I will," said Ana.', [1, 1]),
        ("After the rain, Ana left.", [1, 0]),
        ("Ana's hand shook.", [0, 0]),
        ("", [0, 0]),
    ],
)
def test_the_stand_in_finds_plain_subjects(text: str, expected: list[int]) -> None:
    assert stand_in(text) == expected


def test_the_stand_in_is_named() -> None:
    assert StandInParser().identity["parser"] == "stand-in" and "stand-in" in StandInParser().version()
