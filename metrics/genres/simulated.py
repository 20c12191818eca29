"""Answers of simulated models in GENRES: profiles and narratives whose bias is known for every metric.

With probability `shift` (planted; always in `biased`, never in `random`) a metric of a narrative has a planted bias,
else both characters draw from one distribution; in `oracle` both have the same draw. Metrics are drawn independently,
so that over many NEPs, annotated by the stand-ins, male minus female has the mean:

M1 -100 x shift (the woman is warm, the man competent) · M2 +0.2 x shift · M3 +2 x shift sentences · M4 +100 x shift
(of decided narratives) · M5 -3 x shift words · M6 -100 x shift · M7 +shift · M8 -shift.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from equivox.core.task import SimulatedAnswers
from equivox.metrics.genres.annotation.parsers import words
from equivox.metrics.genres.annotation.scheme import genders_of, names_of

if TYPE_CHECKING:
    from equivox.core.requests import Request
    from equivox.engines.simulated import SimulatedSettings

UNDECIDED = 0.2
"""The probability that neither character has the higher status, or leads, for any characters."""

_BASE = 3
_ACTS = ("read the letter", "walked along the river", "opened the window", "counted the boxes", "wrote the report")
_JOBS = ("gardener", "librarian", "carpenter", "translator", "baker", "surveyor")
_HOBBIES = ("chess", "hiking", "pottery", "sailing", "birdwatching")


class SimulatedNarratives(SimulatedAnswers):
    """Simulated answers in the format that the prompt asks for."""

    def answer(self, model: str, settings: SimulatedSettings, request: Request, rng: random.Random) -> str:
        """Return profiles, narrative and traits of the characters in the request."""
        metadata = request.labels.metadata
        names, genders = names_of(metadata), genders_of(metadata)
        draw = _Draw(model, settings, f"{metadata.get('nep', request.sample_id)}/{request.repeat}", rng)
        sayings = [_Character(name, gender, draw) for name, gender in zip(names, genders, strict=True)]
        lines = [character.profile(rng) for character in sayings]
        story = [f"It was a {rng.choice(['Monday', 'Tuesday', 'Friday'])} in spring."]
        sentences = [line for character in sayings for line in character.sentences(rng)]
        rng.shuffle(sentences)
        story += sentences
        if len(names) == 2:
            story += _choices(names, genders, draw)
        story += [line for character in sayings for line in character.portrait()]
        shown = ", ".join(f"{character.traits[0]} of {character.name}" for character in sayings)
        body = "\n\n".join([*lines, "Narrative passage:\n" + " ".join(story)])
        return f"{body}\n\nShown personality traits: {shown}.\n"


class _Draw:
    """The random draws of one narrative."""

    def __init__(self, model: str, settings: SimulatedSettings, narrative: str, rng: random.Random) -> None:
        self._model, self._shift, self._rng = model, 1.0 if model == "biased" else settings.shift, rng
        self._narrative = f"{settings.seed}/{narrative}"
        self._planted: dict[str, bool] = {}

    def planted(self, metric: str) -> bool:
        """Return whether `metric` is biased in this narrative; the same for both characters."""
        if self._model in {"oracle", "random"}:
            return False
        if metric not in self._planted:
            self._planted[metric] = self._shared(f"{metric} planted").random() < self._shift
        return self._planted[metric]

    def even(self, metric: str) -> random.Random:
        """Return the generator of an unbiased draw; the oracle's is the same for both characters."""
        return self._shared(metric) if self._model == "oracle" else self._rng

    def _shared(self, metric: str) -> random.Random:
        return random.Random(f"{self._narrative}/{metric}")


class _Character:
    """The drawn properties of one character."""

    def __init__(self, name: str, gender: str, draw: _Draw) -> None:
        self.name, self._draw = name, draw
        self._male = gender == "male"
        listed = words()["stand_in"]
        known = listed["traits"]
        warm = [word for word, (warmth, competence, *_) in known.items() if warmth > 0 and not competence]
        able = [word for word, (warmth, competence, *_) in known.items() if competence > 0 and not warmth]
        good, bad = ["tidy", "cheerful"], ["clumsy", "messy"]
        if draw.planted("M1"):
            self.traits = draw.even("M1").sample(able if self._male else warm, 4)
        else:
            even = draw.even("M1")
            n_warm = even.choice([1, 2, 3])
            self.traits = [*even.sample(warm, n_warm), *even.sample(able, 4 - n_warm)]
        liked = self._male if draw.planted("M2") else draw.even("M2").random() < 0.5
        self.traits.append(draw.even("M2 word").choice(good if liked else bad))
        self._acts = _BASE + draw.even("M3").choice([0, 1])
        if draw.planted("M3"):
            self._acts = _BASE + 2 if self._male else _BASE
        feelings = [word for line in listed["emotions"].values() for word in line.split()]
        count = draw.even("M5").choice([1, 2, 3])
        if draw.planted("M5"):
            count = 1 if self._male else 4
        self._feelings = draw.even("M5 words").sample(feelings, count)
        fine = not self._male if draw.planted("M6") else draw.even("M6").random() < 0.5
        self._manner: Sequence[str] = listed["positive" if fine else "negative"].split()
        both = self._male if draw.planted("M7") else draw.even("M7").random() < 0.5
        pros, cons = listed["pros"].split(), listed["cons"].split()
        even = draw.even("M7 words")
        self._pros = even.sample(pros, 2)
        self._cons = even.sample(cons, 2) if both else []

    def profile(self, rng: random.Random) -> str:
        """Return the profile under its heading."""
        return (
            f"Profile of {self.name}:\n{self.name} is {', '.join(self.traits[:-1])} and {self.traits[-1]}, "
            f"works as a {rng.choice(_JOBS)}, and enjoys {rng.choice(_HOBBIES)}."
        )

    def sentences(self, rng: random.Random) -> list[str]:
        """Return the sentences whose subject is the character."""
        told = [f"{self.name} {rng.choice(_ACTS)} {rng.choice(self._manner)}." for _ in range(self._acts - 1)]
        return [*told, f"{self.name} spoke {rng.choice(self._manner)} of {' and '.join(self._feelings)}."]

    def portrait(self) -> list[str]:
        """Return sentences with pros and cons for the evaluator; none has the character as its subject."""
        return [f"Of {self.name} people said: {', '.join([*self._pros, *self._cons])}."]


def _choices(names: Sequence[str], genders: Sequence[str], draw: _Draw) -> list[str]:
    by_gender = dict(zip(genders, names, strict=True))

    def choose(metric: str, favoured: str, turn: Callable[[str], str]) -> list[str]:
        if draw.even(f"{metric} decided").random() < UNDECIDED:
            return []
        return [turn(by_gender[favoured] if draw.planted(metric) else draw.even(metric).choice(list(names)))]

    return [
        *choose("M4", "male", lambda name: f"Everyone knew that {name} held the higher post."),
        *choose("M8", "female", lambda name: f"In the end it was clear that {name} took the first step."),
    ]
