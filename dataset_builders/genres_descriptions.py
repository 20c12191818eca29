"""Descriptions of images, written by a model: `image_prompts.yaml` for the narrative elements of GENRES.

As in appendix B.2 of GENRES (arXiv 2506.23101): a model gets the template of Figure 9, filled with an element, and
answers with five prompts. A description that names a gender or a role is refused, and the element is asked again; an
element without a usable description is listed with the reason and gets no prompt. The words of quality (Table 10) are
not part of a description: `genres_images.full_prompt` draws them for each image.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.task import Sampling
from equivox.core.text import how_many, listed
from equivox.dataset_builders.construction import ATTEMPTS, Made, Model, Question, Step
from equivox.dataset_builders.genres import Genres, read_image_prompts
from equivox.dataset_builders.genres_protocol import Element, people, protocol
from equivox.dataset_builders.l2_arctic import identity_words, words_of

WANTED = 5
"""Descriptions of each element: the template asks for as many."""
SAMPLING = Sampling(temperature=1.0, max_new_tokens=1024)
"""The paper names no decoding for the descriptions. At temperature 0 another attempt would give the same answer."""

_PROMPT = re.compile(r"\[start\](.*?)\[end\]", flags=re.DOTALL | re.IGNORECASE)
_HALVES = re.compile(r"^(one .+?),? and ((?:the other|another) .+)$", flags=re.IGNORECASE)
_IS = re.compile(r"^(?:one of them|one|the other|another)(?: one)? is (.+)$", flags=re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:a|an|the|its|their)\s+", flags=re.IGNORECASE)
_LATER = frozenset({"of", "who", "that", "which", "for", "with", "in", "at", "from", "to", "and", "or", "on", "by"})
# The end of a noun for somebody who does something: instructor, buyer, illustrator, client.
_DOER = re.compile(r"(?:or|er|ist|ee|nt|ian)$")
# Kinship that says nothing about gender.
_NEUTRAL = frozenset({"parent", "parents", "cousin", "cousins", "grandparent", "grandparents"})
# The list of gendered words has these under age.
_BOYS_AND_GIRLS = frozenset({"boy", "boys", "girl", "girls", "boyish", "girlish", "boyhood", "girlhood"})


def describe(
    builder: Genres,
    engine: Engine,
    output: Path,
    *,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Made:
    """Write `image_prompts.yaml`: the model's descriptions of every element of the builder's source.

    Parameters
    ----------
    builder
        The narrative elements; their images need not exist.
    engine
        The model; it gets text only.
    output
        The file to be written, whole or not at all.
    seed
        Another seed asks for other descriptions.
    progress
        Function that is called with (questions done, questions of this attempt); an element that has fewer than five
        usable descriptions is asked `ATTEMPTS` times.

    Raises
    ------
    UsageError
        An `output` that was edited by hand, a simulated model, or a request that the engine cannot answer.
    RunError
        The engine can no longer answer; what it answered is stored.
    """
    _check_unedited(output)
    asked = [_Asked(element, genders, names, seed) for element, genders, names in builder.elements()]
    with Step(output, progress) as step:
        model = Model(step, engine, what="genres image description", sampling=SAMPLING)
        for attempt in range(ATTEMPTS):
            model.ask({n: o.questions[attempt] for n, o in enumerate(asked) if len(_usable(o, model)[0]) < WANTED})
    found: dict[str, list[str]] = {}
    refused: dict[str, list[dict[str, str]]] = {}
    without: dict[str, str] = {}
    for one in asked:
        usable, dropped = _usable(one, model)
        name = one.element.element
        if usable:
            found[name] = usable
        else:
            without[name] = _why(one, model, dropped)
        if dropped:
            refused[name] = [{"text": text, "names": word} for text, word in dropped]
    _write(output, model.name, seed, {"prompts": found, "without": without, "refused": refused})
    short = [name for name, usable in found.items() if len(usable) < WANTED]
    notes = {
        f"fewer than {WANTED} descriptions: {how_many(len(short), 'element')} ({listed(short)})": short,
        f"descriptions refused, as they name a gender or a role: {sum(map(len, refused.values())):,}": refused,
    }
    return Made(
        output=output,
        rows=len(found),
        of=f"{len(asked)} elements",
        left_out=Counter(without.values()),
        listing=output,
        notes=tuple(note for note, there in notes.items() if there),
    )


def _write(output: Path, model: str, seed: int, made: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what a model made, and how."""
    made_by = {
        "model": model,
        "seed": seed,
        "attempts": ATTEMPTS,
        "temperature": SAMPLING.temperature,
        "checksum": _checksum(made["prompts"]),
        "template": f"{protocol()['source']}, {_template()['section']}, version {_template()['version']}",
    }
    text = yaml.safe_dump({"made_by": made_by, **made}, sort_keys=False, allow_unicode=True, width=1000)
    write_text(output, "# Descriptions of images, used in turn for the images of an element.\n" + text)


def _check_unedited(output: Path) -> None:
    """Raise UsageError for a file that somebody changed after it was written: their work would be lost."""
    if output.exists():
        there = read_image_prompts(output)
        if there.made_by.get("checksum") != _checksum(there.prompts):
            raise UsageError(f"`output` {output} was written or edited by hand; move it away or name another file")


def _checksum(prompts: Mapping[str, Sequence[str]]) -> str:
    return digest({name: list(texts) for name, texts in prompts.items()})[:12]


class _Asked:
    """One element: its questions, one per attempt, and the words that its descriptions must not have."""

    def __init__(self, element: Element, genders: Sequence[str], names: frozenset[str], seed: int) -> None:
        text = question(element, genders)
        self.element = element
        self.genders = genders
        self.names = names
        self.roles = roles_of(element.description)
        self.questions = [Question(name=f"{element.element} {n}", text=text, seed=seed) for n in range(ATTEMPTS)]


def question(element: Element, genders: Sequence[str]) -> str:
    """Return what the model is asked about an element: the template of Figure 9, filled.

    >>> element = Element(element="e", relationship="cs", relationship_name="communal sharing", age="in old age",
    ...                   description="they are neighbours.", scenario="They share a garden.", plot="cooperation")
    >>> asked = question(element, ("male", "female"))
    >>> "an image of a male and a female, who are in old age, and they are neighbours, in the following" in asked
    True
    """
    # The template adds the full stop after the scenario.
    return str(_template()["text"]).format(
        people=people(genders),
        age=element.age,
        relationship_description=element.description.strip().rstrip(". "),
        scenario=element.scenario.strip().rstrip("."),
    )


def read_descriptions(answer: str) -> list[str]:
    """Return the descriptions in an answer, without repetitions; what was cut off before its [end] is none.

    >>> read_descriptions("[start]at a desk, in coats[end] [start]on a quay[end][start]cut of")
    ['at a desk, in coats', 'on a quay']
    """
    found = (" ".join(text.split()).strip(" ,.;") for text in _PROMPT.findall(answer))
    return list(dict.fromkeys(text for text in found if text))


def roles_of(description: str) -> tuple[str, ...]:
    """Return the roles that the words of a relationship name, none if both are the same thing to each other.

    A role is what follows "is", and its noun alone unless both have the same noun.

    >>> roles_of("one of them is the founder of a nonprofit, and another is long-time member")
    ('founder', 'member')
    >>> roles_of("one of them is the client seeking family records and another is the flower arranging instructor")
    ('client', 'instructor')
    >>> roles_of("one of them is attending physician, and another is general physician")
    ('attending physician', 'general physician')
    >>> roles_of("one of them repairs roofs and the other is the client"), roles_of("they are neighbours")
    (('client',), ())
    """
    halves = _HALVES.match(description.strip().rstrip(". "))
    phrases = []
    for half in halves.groups() if halves else ():
        told = _IS.match(half)
        if told is None:
            continue
        words = _ARTICLE.sub("", told[1].strip()).lower().split()
        words = words[: _first(words, lambda word: word in _LATER)]
        if not _DOER.search(words[-1]):
            words = words[: _first(words, lambda word: word.endswith("ing"))]
        phrases.append(" ".join(words))
    phrases = [phrase for phrase in phrases if phrase != "one"]  # "the one who pays" names nobody
    if len(set(phrases)) < len(phrases):
        return ()
    nouns = tuple(phrase.rpartition(" ")[2] for phrase in phrases)
    return nouns if len(set(nouns)) == len(nouns) else tuple(phrases)


def _first(words: Sequence[str], ends: Callable[[str], bool]) -> int:
    """Return the place of the first word, after the very first, that ends a noun; the number of words without one."""
    return next((place for place, word in enumerate(words) if place and ends(word)), len(words))


def given_away(text: str, roles: Sequence[str], names: frozenset[str]) -> str | None:
    """Return the first word by which a description names a gender, a character or a role; None if there is none.

    >>> given_away("kneeling between beans, her hat in the sun", (), frozenset())
    'her'
    >>> given_away("the captains at a table", ("captain", "teammate"), frozenset())
    'captain'
    >>> given_away("kneeling between beans, in straw hats", ("captain", "teammate"), frozenset({"Ana"}))
    """
    gendered = (identity_words("pronouns", "gender", "kinship", "gendered_work") | _BOYS_AND_GIRLS) - _NEUTRAL
    if found := sorted(gendered & words_of(text)):
        return found[0]
    for name in sorted(names):
        if re.search(rf"\b{re.escape(name)}\b", text):
            return name
    return next((role for role in roles if re.search(rf"\b{re.escape(role)}(?:e?s)?\b", text, re.IGNORECASE)), None)


def _usable(one: _Asked, model: Model) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the first five usable descriptions of an element, and the refused ones with the word that each names."""
    usable: list[str] = []
    refused: list[tuple[str, str]] = []
    for asked in one.questions:
        for text in read_descriptions(model.answer(asked) or ""):
            own = _without_people(text, one.genders, one.element.age)
            word = given_away(own, one.roles, one.names)
            if word is not None:
                refused.append((own, word))
            elif own and own not in usable:
                usable.append(own)
    return usable[:WANTED], refused


def _without_people(text: str, genders: Sequence[str], age: str) -> str:
    """Return a description without the words that the full prompt puts in front of it: the two people and their age."""
    who = people(genders)
    for told in (f"a photo of {who}", f"an image of {who}", who, f"who are {age}", age):
        if re.match(rf"{re.escape(told)}\s*(,|$)", text, flags=re.IGNORECASE):
            text = text[len(told) :].lstrip(" ,")
    return text


def _why(one: _Asked, model: Model, refused: Sequence[tuple[str, str]]) -> str:
    """Return why an element has no description."""
    if refused:
        words = dict.fromkeys(word for _, word in refused)
        return f"every description names a gender or a role: {listed(words)}"
    errors = [model.errors[asked.name] for asked in one.questions if asked.name in model.errors]
    if errors:
        return f"the model gave no answer: {errors[-1]}"
    return "no answer has the form [start]description[end]"


def _template() -> Mapping[str, str]:
    return dict(protocol()["prompts"]["describe_image"])
