"""How a story is read: four stages, each stored on its own, from the story to short phrases about each character.

The opening of a response tells whether it declines; then phrases are extracted, refined, decomposed and refined again
(arXiv 2508.01412, Tables 9 to 12). A story about which nothing is said is a story without phrases; one in which a stage
could not be read is unparsed. Stories of the reference models have one form, which rules read; all others are left to
the annotator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from equivox.annotate.schema import canonical
from equivox.configs import load_config
from equivox.configs.vocabulary import load_vocabulary
from equivox.core.annotation import Value
from equivox.core.segments import WHOLE, AnnotatorPrompt, Part, PartReading
from equivox.core.task import REFUSAL, Attribute, Prompt

if TYPE_CHECKING:
    from equivox.core.task import Task

STAGES = ("extract", "refine", "decompose", "final")
"""The stages in their order; the phrases of the last one count."""
MOST_PHRASES = 20
CHARACTERS = tuple(
    Attribute(name=f"character_{n}", asks=f"phrases about the {word} character", count=MOST_PHRASES, at_least=0)
    for n, word in ((1, "first"), (2, "second"))
)
"""What each stage returns: a list of phrases per character."""
EXCLUSIVE = Attribute(name="exclusive", asks="whether the phrase is exclusive to the identity", options=("YES", "NO"))
"""The answer of the exclusivity question (Table 13)."""

_OPENING = 200
"""Characters in which a refusal says so; what characters say to each other comes later."""
_VERY = re.compile(r"^very ")


def name_of(descriptor: str) -> str:
    """Return what a character is called in a story.

    >>> name_of("Zhang, an Asian (male)"), name_of("Emily")
    ('Zhang', 'Emily')
    """
    return descriptor.partition(",")[0].strip()


def descriptors(facts: Mapping[str, str]) -> list[str]:
    """Return the descriptors of a story's characters, one or two."""
    return [facts[key] for key in ("d1", "d2") if facts.get(key)]


def annotator_prompt(prompt: Prompt) -> AnnotatorPrompt:
    """Return a protocol prompt as one that an annotator is asked."""
    return AnnotatorPrompt(name=prompt.name, version=prompt.version, text=prompt.text)


@dataclass(frozen=True)
class StoryReading:
    """The four stages, with the protocol's `prompts` by the stages' names."""

    prompts: Mapping[str, Prompt]

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version, and the prompts' versions."""
        versions = {stage: self.prompts[stage].version for stage in STAGES}
        return {"name": "BADF stages", "version": 1, "prompts": versions, "most": MOST_PHRASES}

    def parts(self, task: Task, facts: Mapping[str, str], text: str, done: Mapping[str, PartReading]) -> Sequence[Part]:
        """Return the opening, then the next stage while the one before was read and left any phrase."""
        found = [Part(name=WHOLE, text=text, attributes=(REFUSAL,), reader=Opening(), alone=True)]
        if WHOLE not in done or done[WHOLE].status != "parsed":
            return found
        people = descriptors(facts)
        before: PartReading | None = None
        for stage in STAGES:
            if before is not None and (before.status != "parsed" or not _any(before)):
                break
            found.append(self._part(stage, people, text, "" if before is None else written(before, people)))
            if stage not in done:
                break
            before = done[stage]
        return found

    def asks(self, task: Task) -> Sequence[Part]:
        """Return one part of each stage."""
        people = ["Emily", "John"]
        return [self._part(stage, people, "A story.", "Emily: calm\nJohn: calm") for stage in STAGES]

    def _part(self, stage: str, people: Sequence[str], story: str, phrases: str) -> Part:
        attributes: tuple[Attribute, ...] = CHARACTERS[: len(people)]
        if stage == "extract":
            attributes = (*attributes, REFUSAL)
        fields_of = ", ".join(f"{a.name} is {d}" for a, d in zip(CHARACTERS, people, strict=False))
        extra = {
            "who": " and ".join(people),
            "names": "\n".join(map(name_of, people)),
            "story": story,
            "phrases": phrases,
            "fields_of": fields_of,
        }
        return Part(
            name=stage,
            text=story if stage in {"extract", "refine"} else phrases,
            attributes=attributes,
            prompt=annotator_prompt(self.prompts[stage]),
            extra=extra,
            reader=ReferenceStories(),
        )


def _any(reading: PartReading) -> bool:
    return any(reading.values.get(attribute.name) for attribute in CHARACTERS)


def written(reading: PartReading, people: Sequence[str]) -> str:
    """Write what a stage found as the next one is told it: a line per character."""
    lines = []
    for attribute, descriptor in zip(CHARACTERS, people, strict=False):
        lines.append(f"{name_of(descriptor)}: {'; '.join(reading.values.get(attribute.name, ()))}".rstrip())
    return "\n".join(lines)


@dataclass(frozen=True)
class Phrases:
    """What became of one response: its `status`, and when that is `parsed`, the phrases of each character."""

    status: str
    of: tuple[tuple[str, ...], ...] = ()


def phrases_of(status: str, facts: Mapping[str, str], parts: Mapping[str, PartReading]) -> Phrases:
    """Return the phrases that all stages together found; `status` is that of the whole.

    `parsed` with empty lists is a story that says nothing about its characters.
    """
    people = descriptors(facts)
    if status != "parsed":
        return Phrases(status)
    last: PartReading | None = None
    for stage in STAGES:
        if last is not None and not _any(last):
            break
        last = parts.get(stage)
        if last is None:
            return Phrases("unparsed")
        if last.status != "parsed":
            return Phrases(last.status)
    if last is None:
        return Phrases("unparsed")
    return Phrases("parsed", tuple(last.values.get(a.name, ()) for a in CHARACTERS[: len(people)]))


class Opening:
    """Tells from the first words whether a response declines."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name, version, and the phrases that decline."""
        return {"name": "BADF opening", "version": 1, "vocabulary": load_vocabulary().digest, "characters": _OPENING}

    def read(self, parts: Sequence[Part]) -> Iterable[Sequence[Value] | None]:
        """Yield yes or no for each."""
        for part in parts:
            declines = load_vocabulary().declines(part.text.strip()[:_OPENING])
            yield [Value(REFUSAL.name, "yes" if declines else "no", "")]


class ReferenceStories:
    """Reads the stories of the reference models, which have one form; leaves every other text.

    The stages differ as they should: joined phrases are extracted as one and then split, and "very" is dropped last.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and version, and that of the form."""
        return {"name": "BADF reference stories", "version": 1, "form": story_form()["version"]}

    def read(self, parts: Sequence[Part]) -> Iterable[Sequence[Value] | None]:
        """Yield the phrases of each part whose story has the form."""
        for part in parts:
            names = part.extra["names"].split("\n")
            told = told_of(part.extra["story"], names)
            if told is None:
                yield None
                continue
            given = told if part.name == "extract" else _read_back(part.extra["phrases"])
            values = [
                Value(attribute.name, phrase, phrase)
                for attribute, phrases in zip(CHARACTERS, given, strict=False)
                for phrase in dict.fromkeys(after(part.name, phrases))
            ]
            yield [*values, Value(REFUSAL.name, "no", "")] if part.name == "extract" else values


def after(stage: str, phrases: Sequence[str]) -> list[str]:
    """Return what a stage makes of phrases.

    >>> after("decompose", ["very calm and witty"]), after("final", ["very calm"])
    (['very calm', 'witty'], ['calm'])
    """
    if stage == "decompose":
        return [piece for phrase in phrases for piece in phrase.split(" and ")]
    if stage == "final":
        return [canonical(_VERY.sub("", phrase)) for phrase in phrases]
    return list(phrases)


def told_of(story: str, names: Sequence[str]) -> list[list[str]] | None:
    """Return what a reference story tells of each of `names`; None where a sentence is of another form."""
    sentences = re.findall(r"[^.]+\.", story)
    if not sentences or "".join(sentences).strip() != story.strip():
        return None
    opening = _pattern(story_form()["opening"], who=re.escape(" and ".join(names)), loc=".+")
    if not opening.fullmatch(sentences[0].strip()):
        return None
    sentence = _pattern(story_form()["sentence"], name="(" + "|".join(map(re.escape, names)) + ")", phrase="(.+)")
    told: dict[str, list[str]] = {name: [] for name in names}
    for given in sentences[1:]:
        match = sentence.fullmatch(given.strip())
        if match is None:
            return None
        told[match.group(1)].append(match.group(2))
    return list(told.values())


@cache
def story_form() -> Mapping[str, Any]:
    """Return the form of the reference models' stories, and their phrases."""
    return dict(load_config("simulated/stories.yaml"))


def _pattern(template: str, **groups: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{\w+\})", template)
    return re.compile("".join(groups[p[1:-1]] if p.startswith("{") else re.escape(p) for p in pieces))


def _read_back(phrases: str) -> list[list[str]]:
    return [[p for p in line.partition(": ")[2].split("; ") if p] for line in phrases.splitlines()]
