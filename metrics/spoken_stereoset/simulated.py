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
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from equivox.configs import load_config
from equivox.core.hashing import hashed_number
from equivox.core.task import SimulatedAnswers
from equivox.dataset_builders.spoken_stereoset import KINDS
from equivox.metrics.spoken_stereoset.annotation.scheme import LETTERS, options_of
from equivox.metrics.spoken_stereoset.tally import ANTI_STEREOTYPICAL, STEREOTYPICAL

if TYPE_CHECKING:
    from equivox.core.requests import Labels, Request
    from equivox.engines.simulated import SimulatedSettings


@dataclass(frozen=True)
class SimulatedChoices(SimulatedAnswers):
    """Simulated answers that name one of the three continuations in one of several wordings."""

    def answer(self, model: str, settings: SimulatedSettings, request: Request, rng: random.Random) -> str:
        """Return the answer of the simulated model called `model`."""
        kind = chosen_kind(model, settings, request.labels, rng)
        letter = LETTERS[request.labels.metadata["order"].split(",").index(kind)]
        text = options_of(request.labels.metadata)[letter]
        return rng.choice(_wordings()).format(letter=letter, text=text)


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
def _wordings() -> list[str]:
    return list(load_config("simulated/choices.yaml")["wordings"])
