"""Annotation of a GENRES answer: evaluators annotate its profiles and narrative, tools its sentences and traits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equivox.core.errors import UsageError
from equivox.core.reasoning import split_reasoning
from equivox.core.segments import WHOLE, AnnotationScheme, AnnotatorPrompt, Segment, SegmentAnnotation, Status
from equivox.core.task import REFUSAL, Attribute, Task
from equivox.metrics.genres.annotation.readers import (
    SEPARATOR,
    SPLITTER,
    STAND_IN_EVALUATOR,
    language_tool,
    sentiment_tool,
    split,
    trait_tool,
)
from equivox.metrics.genres.annotation.tools import ANNOTATOR, Tools

SPLIT = "split"
"""The segment with the reason why a response could not be split; other responses do not have it."""

UNDECIDED = "NA"
"""The evaluator's answer if the passage does not tell, or both contribute equally."""

NOTHING = frozenset({"", "na", "n/a", "none", "none mentioned", "not mentioned", "unstated", "nothing"})
"""Entries of a list of pros or cons that mean there are none."""

PROFILE = (
    Attribute(name="personality", asks="the personality of the person, adjectives", count=30, at_least=0),
    Attribute(name="occupation", asks="the occupation of the person"),
    Attribute(name="interests", asks="the interests of the person", count=20, at_least=0),
)
"""The attributes of a profile, from figure 10."""

_LANGUAGE = tuple(
    Attribute(name=f"{prefix}{name}_{number}", asks=what, count=1000, at_least=0)
    for number in (1, 2)
    for prefix in ("", "published_")
    for name, what in (("sentence", "subject sentences"), ("emotion_words", "emotion words in them"))
)
_LABELS = (Attribute(name="label", asks="whether each sentence is positive", count=1000, at_least=0),)
_TRAITS = (Attribute(name="warmth_share", asks="warmth words among warmth and competence words"),)


def narrative_attributes(names: Sequence[str]) -> tuple[Attribute, ...]:
    """Return the attributes of a narrative, from figure 11; for a single character only the pros and cons."""
    lists = tuple(
        Attribute(name=f"{kind}_{number}", asks=f"the {kind} of {name}'s traits", count=20, at_least=0)
        for number, name in enumerate(names, start=1)
        for kind in ("pros", "cons")
    )
    if len(names) == 1:
        return lists
    options = (*names, UNDECIDED)
    return (
        Attribute(name="high_status", asks="who has the higher status", options=options),
        Attribute(name="main_character", asks="who contributes more", options=options),
        *lists,
    )


@dataclass(frozen=True, kw_only=True)
class Questions:
    """The prompts of the evaluators, and their questions by relationship and kind of plot."""

    profile: AnnotatorPrompt
    narrative: AnnotatorPrompt
    single: AnnotatorPrompt
    high_status: Mapping[str, str]
    main_character: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class GenresScheme(AnnotationScheme):
    """Scheme for answers about one character or two.

    Segments: `""` (whether the response can be split, else whether it refuses), `profile/1`, `profile/2` and
    `narrative` (by the evaluator; a second evaluation is `narrative#2`), `language`, `sentiment/1`, `traits/1` and so
    on (by the tools). A response that cannot be split has no further segments.
    """

    tools: Tools
    questions: Questions

    @property
    def identity(self) -> Mapping[str, Any]:
        """The name, the version and the tools."""
        return {"name": "genres", "version": 1, **self.tools.identity}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        """Return the segments that can be annotated next."""
        names, genders = names_of(metadata), genders_of(metadata)
        text = split_reasoning(text)[0]
        told = {"names": SEPARATOR.join(names), "genders": SEPARATOR.join(genders)}
        if WHOLE not in done:
            return [Segment(name=WHOLE, text=text, attributes=(REFUSAL,), extra=told, tool=SPLITTER)]
        found = split(text, names)
        if done[WHOLE].status != "parsed" or found.problem is not None:
            return []
        segments = [
            Segment(
                name="language",
                text=found.narrative,
                attributes=_LANGUAGE,
                extra=told,
                tool=language_tool(self.tools),
                alone=True,
            )
        ]
        for again in range(1, self.tools.evaluations + 1):
            segments += self._asked(found.profiles, found.narrative, names, metadata, told, again)
        return [segment for segment in [*segments, *self._later(len(names), done)] if segment.name not in done]

    def _asked(
        self,
        profiles: Mapping[str, str],
        narrative: str,
        names: Sequence[str],
        metadata: Mapping[str, str],
        told: Mapping[str, str],
        again: int,
    ) -> Iterator[Segment]:
        """Yield the segments for the evaluator in one evaluation."""
        suffix = "" if again == 1 else f"#{again}"
        rules = STAND_IN_EVALUATOR if self.tools.evaluator != ANNOTATOR else None
        for number, name in enumerate(names, start=1):
            yield Segment(
                name=f"profile/{number}{suffix}",
                text=profiles[name],
                attributes=PROFILE,
                prompt=self.questions.profile,
                extra=told,
                tool=rules,
                alone=rules is not None,
            )
        asked = {f"name_{number}": name for number, name in enumerate(names, start=1)}
        if len(names) == 2:
            known = self.questions.high_status
            own = metadata.get("high_status_question") or known.get(metadata["relationship"])
            asked |= {
                "high_status_question": own or known["cs"],
                "main_character_question": self.questions.main_character[metadata["plot"]],
            }
        yield Segment(
            name=f"narrative{suffix}",
            text=narrative,
            attributes=narrative_attributes(names),
            prompt=self.questions.narrative if len(names) == 2 else self.questions.single,
            extra={**told, **asked},
            tool=rules,
            alone=rules is not None,
        )

    def _later(self, n_characters: int, done: Mapping[str, SegmentAnnotation]) -> Iterator[Segment]:
        """Yield the segments that depend on earlier annotations."""
        for name, reading in done.items():
            kind, _, rest = name.partition("/")
            if kind == "profile" and reading.status == "parsed":
                traits = [t for t in reading.values.get("personality", ()) if t.casefold() not in NOTHING]
                if traits:
                    yield Segment(
                        name=f"traits/{rest}",
                        text="\n".join(traits),
                        attributes=_TRAITS,
                        tool=trait_tool(self.tools),
                        alone=True,
                    )
        language = done.get("language")
        if language is None or language.status != "parsed":
            return
        for number in range(1, n_characters + 1):
            if sentences := sentences_of(language.values, number):
                yield Segment(
                    name=f"sentiment/{number}",
                    text="\n".join(sentences),
                    attributes=_LABELS,
                    tool=sentiment_tool(self.tools),
                    alone=True,
                )

    def sample(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> tuple[Status, Mapping[str, SegmentAnnotation]]:
        """Return the status and all segments, including the reason why a response could not be split."""
        status, kept = super().sample(task, metadata, text, done)
        problem = split(split_reasoning(text)[0], names_of(metadata)).problem
        if problem is None or status in {"refused", "empty"}:
            return status, kept
        for number, name in enumerate(names_of(metadata), start=1):
            problem = problem.replace(f"no profile of {name}", f"no profile of character {number}")
        return status, {**kept, SPLIT: SegmentAnnotation("unparsed", {"problem": (problem,)})}

    @property
    def in_parts(self) -> bool:
        """Whether scores rest on segments of an answer: True."""
        return True

    def stage_of(self, segment: str) -> str:
        """Return the stage of a segment; a second evaluation has none, as the first has the same text."""
        return "" if "#" in segment else super().stage_of(segment)

    def missing_tools(self) -> list[str]:
        """Return which of parser, classifier and word lists are missing, and what helps."""
        return self.tools.missing()

    def asks(self, task: Task) -> Sequence[Segment]:
        """Return one segment of every kind that an annotator can receive."""
        whole = Segment(name=WHOLE, text="A text.", attributes=(REFUSAL,), tool=SPLITTER)
        if self.tools.evaluator != ANNOTATOR:
            return [whole]
        names = ("Ana",) if "{character}" in task.prompt.text else ("Ana", "Ben")
        metadata = {"relationship": "cs", "plot": "conflict"}
        texts = dict.fromkeys(names, "A text.")
        return [whole, *self._asked(texts, "A text.", names, metadata, {"names": SEPARATOR.join(names)}, 1)]


def names_of(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the characters in the order of the prompt."""
    return (metadata["character"],) if "character" in metadata else (metadata["name_1"], metadata["name_2"])


def genders_of(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the characters' genders, in the order of `names_of`; UsageError for two that are no man and woman."""
    if "character" in metadata:
        return (metadata["gender"],)
    genders = metadata["gender_1"], metadata["gender_2"]
    if sorted(genders) != ["female", "male"]:
        # Corpora of 0.3.0 may hold such pairs; they would enter the means of men and women.
        raise UsageError(
            f"NEP {metadata.get('nep', '')!r} is about {genders[0]} and {genders[1]} characters; GENRES compares a man "
            "and a woman: build the corpus without other pairs"
        )
    return genders


def sentences_of(values: Mapping[str, tuple[str, ...]], number: int) -> list[str]:
    """Return the sentences of a character for the classifier, by our rules and by the published ones, each once."""
    both = (*values.get(f"sentence_{number}", ()), *values.get(f"published_sentence_{number}", ()))
    return list(dict.fromkeys(both))
