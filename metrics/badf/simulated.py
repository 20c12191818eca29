"""Stories of the simulated models for BADF, whose associations are known.

`oracle`
    All characters of a place are described with the same phrases.
`random`
    Each phrase describes each character with the same probability.
`biased`
    Each identity has its own phrases; no two identities share one.
`planted`
    Like `random`, but each identity's two signature phrases occur more often: with probability `shift` in addition.

`speaker` is the probability that a story describes a character with the favourite phrase of that descriptor: then names
differ, but identities differ only as much as few names do not average out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from equivox.annotate.schema import canonical
from equivox.configs import load_config
from equivox.core.hashing import hashed_number
from equivox.core.segments import Segment, SegmentTool, Value
from equivox.core.task import REFUSAL, SimulatedAnswers
from equivox.metrics.badf.annotation.scheme import CHARACTERS, STAGES, descriptors, name_of
from equivox.metrics.rules import Rules

if TYPE_CHECKING:
    from equivox.core.requests import Request
    from equivox.engines.simulated import SimulatedSettings

story_form: Callable[[], Mapping[str, Any]] = partial(load_config, "simulated/stories.yaml")
"""The form of the simulated models' stories, and their phrases."""
BASE = 0.15
"""The probability of each phrase in a story."""
SIGNATURES = 2
"""The number of phrases that are planted on each identity."""
_JOINED, _VERY = 0.3, 0.2
_STRESSED = re.compile(r"^very ")


class SimulatedStories(SimulatedAnswers):
    """Simulated answers: stories in the form of `configs/simulated/stories.yaml`."""

    def answer(self, model: str, settings: SimulatedSettings, request: Request, rng: random.Random) -> str:
        """Return a story of the simulated model called `model`."""
        form, metadata = story_form(), request.labels.metadata
        people = descriptors(metadata)
        identities = metadata["identities"].split(",")
        alike = random.Random(f"{settings.seed}/{request.labels.stratum}/{request.repeat}")
        shared = [phrase for phrase in phrases() if alike.random() < BASE]
        sentences = [form["opening"].format(who=" and ".join(map(name_of, people)), loc=metadata["loc"])]
        for place, descriptor in enumerate(people, start=1):
            index = identities.index(metadata[f"identity_{place}"])
            said = shared if model == "oracle" else _said(model, settings, descriptor, index, len(identities), rng)
            for phrase in _joined(list(said), rng):
                sentences.append(form["sentence"].format(name=name_of(descriptor), phrase=phrase))
        return " ".join(sentences)

    def tool(self, segment: Segment) -> SegmentTool | None:
        """Return the rules that annotate a stage of a simulated story."""
        return TOOL if segment.name in STAGES else None


def _said(
    model: str, settings: SimulatedSettings, descriptor: str, index: int, n_identities: int, rng: random.Random
) -> list[str]:
    if model == "biased":
        return [phrase for phrase in phrases()[index::n_identities] if rng.random() < 2 * BASE]
    own = signatures(index) if model == "planted" else ()
    said = []
    for phrase in phrases():
        probability = BASE + (1 - BASE) * settings.shift if phrase in own else BASE
        if rng.random() < probability:
            said.append(phrase)
    if rng.random() < settings.speaker:
        said.append(phrases()[hashed_number(settings.seed, descriptor) % len(phrases())])
    return list(dict.fromkeys(said))


def _joined(said: list[str], rng: random.Random) -> list[str]:
    """Return the wording of phrases: sometimes two are joined, or one is stressed."""
    worded = [f"very {phrase}" if " " not in phrase and rng.random() < _VERY else phrase for phrase in said]
    if len(worded) > 1 and rng.random() < _JOINED:
        return [f"{worded[0]} and {worded[1]}", *worded[2:]]
    return worded


@cache
def phrases() -> tuple[str, ...]:
    """Return all phrases of the simulated models."""
    return tuple(story_form()["phrases"])


def signatures(index: int) -> tuple[str, ...]:
    """Return the phrases that are planted on identity number `index`.

    >>> signatures(0), signatures(3)
    (('calm', 'determined'), ('witty', 'punctual'))
    """
    return phrases()[SIGNATURES * index : SIGNATURES * (index + 1)]


def _annotated(segments: Sequence[Segment]) -> Iterator[Sequence[Value] | None]:
    """Yield the phrases of each segment whose story has the form of simulated models, None for any other text.

    The stages differ like real ones: joined phrases are extracted as one and then split, and "very" is dropped last.
    """
    for segment in segments:
        names = tuple(segment.extra["names"].split("\n"))
        told = told_of(segment.extra["story"], names)
        if told is None:
            yield None
            continue
        given = told
        if segment.name != "extract":
            lines = segment.extra["phrases"].splitlines()
            given = [[p for p in line.partition(": ")[2].split("; ") if p] for line in lines]
        values = [
            Value(attribute.name, phrase, phrase)
            for attribute, phrases in zip(CHARACTERS, given, strict=False)
            for phrase in dict.fromkeys(after(segment.name, phrases))
        ]
        yield [*values, Value(REFUSAL.name, "no", "")] if segment.name == "extract" else values


def after(stage: str, phrases: Sequence[str]) -> list[str]:
    """Return the phrases after a stage.

    >>> after("decompose", ["very calm and witty"]), after("final", ["very calm"])
    (['very calm', 'witty'], ['calm'])
    """
    if stage == "decompose":
        return [piece for phrase in phrases for piece in phrase.split(" and ")]
    if stage == "final":
        return [canonical(_STRESSED.sub("", phrase)) for phrase in phrases]
    return list(phrases)


@lru_cache(maxsize=16_384)
def told_of(story: str, names: tuple[str, ...]) -> list[list[str]] | None:
    """Return the phrases of a simulated story about each of `names`; None if a sentence has another form."""
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


def _pattern(template: str, **groups: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{\w+\})", template)
    return re.compile("".join(groups[p[1:-1]] if p.startswith("{") else re.escape(p) for p in pieces))


TOOL = Rules(lambda: {"name": "BADF reference stories", "version": 1, "form": story_form()["version"]}, _annotated)
"""The tool that annotates the stories of simulated models."""
