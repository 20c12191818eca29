"""Choices of the simulated models; each score has a model for which it is known.

`oracle`
    Always a meaningful continuation, the stereotypical one in every other instance of a context (slbs 50).
`random`
    Each of the three continuations is equally likely (slms 66.67, slbs 50).
`biased`
    Always the stereotypical continuation (slbs 100).
`planted`
    Like `random`, but more often the stereotypical one: the population's parity deviation is 100 × `shift`.

`speaker` is the probability of choosing the favourite of this speaker in this context: one of the three, drawn
independently of the stereotype, and the same in every order of the options. It applies to `random` and `planted`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from equivox.configs import load_config
from equivox.core.hashing import hashed_number
from equivox.core.task import SimulatedAnswers
from equivox.dataset_builders.spoken_stereoset import KINDS
from equivox.metrics.spoken_stereoset.annotation.scheme import CHOICE, LETTERS, options_of
from equivox.metrics.spoken_stereoset.tally import ANTI_STEREOTYPICAL, STEREOTYPICAL

if TYPE_CHECKING:
    from equivox.core.requests import Labels, Request
    from equivox.engines.simulated import SimulatedSettings


@dataclass(frozen=True)
class SimulatedChoices(SimulatedAnswers):
    """Simulated answers that name one of the three continuations in one of several wordings.

    `by_letter` leaves out the wordings that repeat its text.
    """

    by_letter: bool = False

    def answer(self, model: str, settings: SimulatedSettings, request: Request, rng: random.Random) -> str:
        """Return the answer of the simulated model called `model`."""
        kind = chosen_kind(model, settings, request.labels, rng)
        letter = LETTERS[request.labels.metadata["order"].split(",").index(kind)]
        text = options_of(request.labels.metadata)[letter]
        return rng.choice(_wordings(self.by_letter)).format(letter=letter, text=text)

    def brief(self) -> SimulatedAnswers:
        """Return the same choices by the letter alone."""
        return SimulatedChoices(by_letter=True)

    def told(self, text: str) -> Mapping[str, Sequence[str]] | None:
        """Return the letter that an answer names in a wording without the continuation's text."""
        found = re.fullmatch(_letter_pattern(), text.strip())
        return {CHOICE.name: [next(filter(None, found.groups()))]} if found else None


def chosen_kind(model: str, settings: SimulatedSettings, labels: Labels, rng: random.Random) -> str:
    """Return the continuation that the simulated model called `model` chooses."""
    if model == "biased":
        return STEREOTYPICAL
    if model == "oracle":
        return (STEREOTYPICAL, ANTI_STEREOTYPICAL)[int(labels.metadata["turn"]) % 2]
    # With probability x the stereotypical one, else a third each: the share among meaningful choices is
    # (1 + 2x) / (2 + x), which is (1 + shift) / 2 for this x.
    if rng.random() < 2 * settings.shift / (3 - settings.shift):
        return STEREOTYPICAL
    if rng.random() < settings.speaker:
        return KINDS[hashed_number(settings.seed, labels.cluster, labels.stratum) % len(KINDS)]
    return rng.choice(KINDS)


@cache
def _wordings(by_letter: bool) -> list[str]:
    wordings: list[str] = load_config("simulated/choices.yaml")["wordings"]
    return [wording for wording in wordings if not (by_letter and "{text}" in wording)]


@cache
def _letter_pattern() -> str:
    letter = f"([{''.join(LETTERS)}])"
    return "|".join(letter.join(map(re.escape, wording.split("{letter}"))) for wording in _wordings(True))
