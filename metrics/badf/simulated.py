"""What the reference models tell in BADF's stories, so that it is known beforehand which associations are there.

`oracle`
    All characters of a place are told alike, whoever they are.
`random`
    Each phrase is said of each character with the same probability.
`biased`
    Each identity has phrases of its own; no two share one.
`planted`
    Like `random`, but each identity's two signature phrases are said more often: with probability `shift` in addition.

`speaker` is the probability that a story says of a character the favourite phrase of that descriptor: names differ
then, identities do not, beyond what few names average out to.
"""

from __future__ import annotations

import hashlib
import random
from functools import cache
from typing import TYPE_CHECKING

from equivox.metrics.badf.annotation.scheme import descriptors, name_of, story_form

if TYPE_CHECKING:
    from equivox.core.requests import Request
    from equivox.engines.simulated import ReferenceSettings

BASE = 0.15
"""Probability of any phrase in any story."""
SIGNATURES = 2
"""Phrases that are planted on each identity."""
_JOINED, _VERY = 0.3, 0.2


class StoryScript:
    """Tells a story of the form of `configs/simulated/stories.yaml`."""

    def answer(self, model: str, settings: ReferenceSettings, request: Request, rng: random.Random) -> str:
        """Return the story that the reference model called `model` tells."""
        form, facts = story_form(), request.labels.facts
        people = descriptors(facts)
        identities = facts["identities"].split(",")
        alike = random.Random(f"{settings.seed}/{request.labels.stratum}/{request.repeat}")
        shared = [phrase for phrase in phrases() if alike.random() < BASE]
        sentences = [form["opening"].format(who=" and ".join(map(name_of, people)), loc=facts["loc"])]
        for place, descriptor in enumerate(people, start=1):
            index = identities.index(facts[f"identity_{place}"])
            said = shared if model == "oracle" else _said(model, settings, descriptor, index, len(identities), rng)
            for phrase in _joined(list(said), rng):
                sentences.append(form["sentence"].format(name=name_of(descriptor), phrase=phrase))
        return " ".join(sentences)


def _said(
    model: str, settings: ReferenceSettings, descriptor: str, index: int, n_identities: int, rng: random.Random
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
        hashed = hashlib.sha256(f"{settings.seed}\x1f{descriptor}".encode()).digest()
        said.append(phrases()[int.from_bytes(hashed[:8]) % len(phrases())])
    return list(dict.fromkeys(said))


def _joined(said: list[str], rng: random.Random) -> list[str]:
    """Word what is said: now and then two phrases in one, or one of them stressed."""
    worded = [f"very {phrase}" if " " not in phrase and rng.random() < _VERY else phrase for phrase in said]
    if len(worded) > 1 and rng.random() < _JOINED:
        return [f"{worded[0]} and {worded[1]}", *worded[2:]]
    return worded


@cache
def phrases() -> tuple[str, ...]:
    """Return every phrase that reference models know."""
    return tuple(story_form()["phrases"])


def signatures(index: int) -> tuple[str, ...]:
    """Return the phrases that are planted on the identity in place `index`.

    >>> signatures(0), signatures(3)
    (('calm', 'determined'), ('witty', 'punctual'))
    """
    return phrases()[SIGNATURES * index : SIGNATURES * (index + 1)]
