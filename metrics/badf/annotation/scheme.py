"""Annotation of a story: four stages, each stored separately, from the story to short phrases about each character.

The opening of a response shows whether it declines; then phrases are extracted, refined, decomposed and refined again
(arXiv 2508.01412, Tables 9 to 12). A story that says nothing about its characters has no phrases; a story with a stage
that could not be parsed is unparsed. Stories of the simulated models have one form, which rules annotate; all others
are left to the annotator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from equivox.configs.vocabulary import load_vocabulary
from equivox.core.segments import (
    WHOLE,
    AnnotationScheme,
    AnnotatorPrompt,
    Segment,
    SegmentAnnotation,
    Status,
    Value,
)
from equivox.core.task import REFUSAL, Attribute, Prompt, Task
from equivox.metrics.rules import Rules

STAGES = ("extract", "refine", "decompose", "final")
"""The stages in order; the phrases of the last stage count."""
PHRASES = "phrases"
"""The segment with the final phrases of all stages; its status is that of the stages."""
MOST_PHRASES = 20
CHARACTERS = tuple(
    Attribute(name=f"character_{n}", asks=f"phrases about the {word} character", count=MOST_PHRASES, at_least=0)
    for n, word in ((1, "first"), (2, "second"))
)
"""The attributes of each stage: a list of phrases per character."""
EXCLUSIVE = Attribute(name="exclusive", asks="whether the phrase is exclusive to the identity", options=("YES", "NO"))
"""The answer of the exclusivity question (Table 13)."""

_ATTRIBUTES = {(first, n): (*CHARACTERS[:n], *((REFUSAL,) if first else ())) for first in (True, False) for n in (1, 2)}
"""The attributes of a stage; the key is whether it is the first stage, and the number of characters."""
_OPENING = 200
"""The length of the opening in characters: a refusal is in it, the dialogue of characters comes later."""


def name_of(descriptor: str) -> str:
    """Return the name of a character in a story.

    >>> name_of("Zhang, an Asian (male)"), name_of("Emily")
    ('Zhang', 'Emily')
    """
    return descriptor.partition(",")[0].strip()


def descriptors(metadata: Mapping[str, str]) -> list[str]:
    """Return the descriptors of a story's characters, one or two."""
    return [metadata[key] for key in ("d1", "d2") if metadata.get(key)]


@cache
def annotator_prompt(prompt: Prompt) -> AnnotatorPrompt:
    """Return a prompt of the protocol as an annotator's prompt."""
    return AnnotatorPrompt(name=prompt.name, version=prompt.version, text=prompt.text)


@dataclass(frozen=True, kw_only=True)
class StoryScheme(AnnotationScheme):
    """Scheme of the four stages; `prompts` holds the protocol's prompts by stage."""

    prompts: Mapping[str, Prompt]

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name and version, and the versions of the prompts."""
        versions = {stage: self.prompts[stage].version for stage in STAGES}
        return {"name": "BADF stages", "version": 1, "prompts": versions, "most": MOST_PHRASES}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the opening, then the next stage while the stage before was parsed and returned a phrase."""
        found = [Segment(name=WHOLE, text=text, attributes=(REFUSAL,), tool=_OPENING_TOOL, alone=True)]
        if WHOLE not in done or done[WHOLE].status != "parsed":
            return found
        people = descriptors(metadata)
        before: SegmentAnnotation | None = None
        for stage in STAGES:
            if before is not None and (before.status != "parsed" or not _any(before)):
                break
            found.append(self._segment(stage, people, text, "" if before is None else written(before, people)))
            if stage not in done:
                break
            before = done[stage]
        return found

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return one segment of each stage."""
        people = ["Emily", "John"]
        return [self._segment(stage, people, "A story.", "Emily: calm\nJohn: calm") for stage in STAGES]

    @property
    def in_parts(self) -> bool:
        """Whether scores rest on segments of an answer: True."""
        return True

    def sample(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> tuple[Status, Mapping[str, SegmentAnnotation]]:
        """Return the status, all stages, and the final phrases as one more segment."""
        status, kept = super().sample(task, metadata, text, done)
        return status, {**kept, PHRASES: phrases_of(status, metadata, done)}

    def _segment(self, stage: str, people: Sequence[str], story: str, phrases: str) -> Segment:
        fields_of = ", ".join(f"{a.name} is {d}" for a, d in zip(CHARACTERS, people, strict=False))
        extra = {
            "who": " and ".join(people),
            "names": "\n".join(map(name_of, people)),
            "story": story,
            "phrases": phrases,
            "fields_of": fields_of,
        }
        return Segment(
            name=stage,
            text=story if stage in {"extract", "refine"} else phrases,
            attributes=_ATTRIBUTES[stage == "extract", len(people)],
            prompt=annotator_prompt(self.prompts[stage]),
            extra=extra,
        )


def _any(reading: SegmentAnnotation) -> bool:
    return any(reading.values.get(attribute.name) for attribute in CHARACTERS)


def written(reading: SegmentAnnotation, people: Sequence[str]) -> str:
    """Return the phrases of a stage as text for the next stage's prompt: a line per character."""
    lines = []
    for attribute, descriptor in zip(CHARACTERS, people, strict=False):
        lines.append(f"{name_of(descriptor)}: {'; '.join(reading.values.get(attribute.name, ()))}".rstrip())
    return "\n".join(lines)


def phrases_of(
    status: Status, metadata: Mapping[str, str], segments: Mapping[str, SegmentAnnotation]
) -> SegmentAnnotation:
    """Return the final phrases of all stages, by character; `status` is that of the whole response.

    `parsed` with empty lists means that the story says nothing about its characters.
    """
    if status != "parsed":
        return SegmentAnnotation(status, {})
    last = SegmentAnnotation("unparsed", {})
    for number, stage in enumerate(STAGES):
        if number and not _any(last):
            break
        last = segments.get(stage, SegmentAnnotation("unparsed", {}))
        if last.status != "parsed":
            return SegmentAnnotation(last.status, {})
    people = descriptors(metadata)
    return SegmentAnnotation("parsed", {a.name: last.values.get(a.name, ()) for a in CHARACTERS[: len(people)]})


def _refusals(segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield yes or no for each response: whether its first words decline."""
    for segment in segments:
        declines = load_vocabulary().declines(segment.text.strip()[:_OPENING])
        yield [Value(REFUSAL.name, "yes" if declines else "no", "")]


_OPENING_TOOL = Rules(
    lambda: {"name": "BADF opening", "version": 1, "vocabulary": load_vocabulary().digest, "characters": _OPENING},
    _refusals,
)
