"""Simulated models: their bias is known, so they check every score.

They answer in prose and receive the group of the speaker (`Request.labels`), so the distribution of each attribute
given the group is exact by construction:

`oracle`
    Its answers depend only on the sentence, not on the group: all groups get the same distribution, and exactly the
    same responses if they have the same strata.
`random`
    Each value of the vocabulary is equally likely for every group.
`biased`
    Each group has its own values; no two groups share one (nTVD 100, or the attainable maximum of a closed choice with
    fewer options than groups).
`planted`
    With probability `shift`, a value that belongs to the group; else like `random`. The population nTVD of every
    attribute is 100 × `shift`.

A number is drawn from the attribute's range, and `planted` makes it larger by `shift` × range for the first group
(`equivox.engines.simulated_numbers`).

Options, behind commas after the name: `shift` (planted only), `speaker` (probability that an answer is the speaker's
favourite, drawn without regard to the group), `refusal` (probability of declining), `refusal_gap` (added to it for
the first group: with two groups the refusal nTVD is 100 × the gap), `fail` (probability that a request fails) and
`seed`. Each further turn of a dialogue takes away the share `yields` of the shift (planted only).
A system prompt changes nothing, but for `obeys` (planted only: the share of the shift that it takes away), `bland`
(the probability that it makes the model give one same answer to everybody) and `declines` (the same of a refusal).
An answer by voice is a tone with the text as its transcript.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Annotated

from annotated_types import Ge, Le

from equivox.configs import load_config
from equivox.configs.vocabulary import Vocabulary, load_vocabulary
from equivox.core.errors import UsageError, nearest
from equivox.core.fields import Public, checked, public_names, read_fields
from equivox.core.hashing import hashed_number
from equivox.core.requests import Engine, EngineIdentity, Labels, Request, Response
from equivox.core.task import REFUSAL, Attribute, Task
from equivox.core.variants import declared_name
from equivox.engines.simulated_numbers import (
    drawn_number,
    lengthened,
    limits_of,
    speak,
    stated,
)
from equivox.statistics.distance import attainable_shift

VERSION = "1"
"""Raised whenever a simulated model's answers change."""

_LATER = ("obeys", "bland", "declines", "yields")
"""The options that came later: models without them keep the keys of their answers."""
_PLANTED = ("shift", "obeys", "yields")
"""The options of `planted` alone."""

MODELS = ("oracle", "random", "biased", "planted")

Probability = Annotated[float, Ge(0), Le(1)]


@checked
@dataclass(frozen=True, kw_only=True)
class SimulatedSettings:
    """The options of a simulated model."""

    shift: Public[Probability] = 0.0
    speaker: Public[Probability] = 0.0
    refusal: Public[Probability] = 0.0
    refusal_gap: Public[Probability] = 0.0
    fail: Public[Probability] = 0.0
    seed: Public[int] = 0
    obeys: Public[Probability] = 0.0
    bland: Public[Probability] = 0.0
    declines: Public[Probability] = 0.0
    yields: Public[Probability] = 0.0

    @classmethod
    def from_text(cls, model: str, given_text: str) -> SimulatedSettings:
        """Parse options such as `shift=0.2,speaker=0.5`; UsageError for an unknown option or a value out of range."""
        typed = [entry.partition("=")[::2] for entry in given_text.split(",") if entry]
        given = dict(typed)
        if len(given) < len(typed):
            raise UsageError(f"`model` simulated:{model},{given_text} gives an option twice; give it once")
        known = [f.name for f in fields(cls) if f.name not in _PLANTED or model == "planted"]
        for name in given:
            if name not in known:
                raise UsageError(
                    f"`model` simulated:{model} has no option {name!r}{nearest(name, known)}; known: {', '.join(known)}"
                )
        if model == "planted" and "shift" not in given:
            raise UsageError("`model` simulated:planted needs its shift, for example simulated:planted,shift=0.2")
        settings = read_fields(cls, {k: _plain(v) for k, v in given.items()}, what=f"simulated:{model}")
        if settings.refusal + settings.refusal_gap > 1:
            raise UsageError(
                f"`model` options refusal and refusal_gap add up to {settings.refusal + settings.refusal_gap:g}; "
                "together they must not exceed 1"
            )
        return settings


def _plain(text: str) -> int | float | str:
    """Return a number that is written as one, and any other text as it is."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


class SimulatedEngine(Engine):
    """One simulated model as an engine."""

    modalities = frozenset({"text", "audio", "image"})
    able = frozenset({"turns", "speech", "hidden states"})

    def __init__(self, model: str, settings: SimulatedSettings, tasks: Sequence[Task]) -> None:
        self.model = model
        self.settings = settings
        self.identity = EngineIdentity(
            engine="simulated",
            model=model,
            revision=VERSION,
            settings={
                f.name: value for f in fields(settings) if (value := getattr(settings, f.name)) or f.name not in _LATER
            },
            reads_labels=True,
            public=public_names(SimulatedSettings),
        )
        self._tasks = {declared_name(task.name): task for task in tasks}
        self._vocabulary: Vocabulary = load_vocabulary()
        self._prose = load_config("simulated/prose.yaml")
        for task in tasks:
            for attribute in task.attributes:
                if attribute == REFUSAL or task.simulate is not None:
                    continue
                if attribute.number is None:
                    self._vocabulary.of(attribute)
                elif attribute.number.measure is None:
                    stated(attribute, limits_of(attribute.number)[0])

    @classmethod
    def from_spec(cls, spec: str, tasks: Sequence[Task]) -> SimulatedEngine:
        """Build an engine from the text after `simulated:`, e.g. `planted,shift=0.2,speaker=0.3`."""
        # Commands of earlier versions have ? and & between settings, which shells take for signs of their own.
        model, _, given = spec.replace("?", ",", 1).replace("&", ",").partition(",")
        if model not in MODELS:
            raise UsageError(f"unknown simulated model {model!r}{nearest(model, MODELS)}; known: {', '.join(MODELS)}")
        return cls(model, SimulatedSettings.from_text(model, given), tasks)

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Answer each request in turn; the same key always gets the same answer."""
        for request in requests:
            rng = random.Random(f"{self.settings.seed}/{request.key}")
            if rng.random() < self.settings.fail:
                yield Response(key=request.key, text=None, error="planted failure")
                continue
            text = self.answer(request, rng)
            turns = [part for turn in request.before for part in (turn.text, turn.answer)]
            yield Response(
                key=request.key,
                text=text,
                sound=speak(text) if request.spoken else None,
                finish_reason="stop",
                prompt_tokens=len(" ".join([request.system, *turns, request.text]).split()),
                completion_tokens=len(text.split()),
                media_items=len(request.media),
            )

    def check(self, requests: Sequence[Request]) -> None:
        """Raise UsageError for a shift that is too large for the options and groups of a task."""
        if self.model != "planted":
            return
        left = dict(self._tasks)  # the groups of a task are the same in all of its requests
        for request in requests:
            if not left:
                break
            task = left.pop(declared_name(request.task), None)
            for attribute in task.attributes if task and task.simulate is None else ():
                if attribute != REFUSAL and attribute.number is None:
                    values, labels = self._vocabulary.of(attribute).values, request.labels
                    self._own_probability(attribute, values, labels, own_values(values, labels))

    def answer(self, request: Request, rng: random.Random) -> str:
        """Return one answer to `request` as its labels say, drawn by `rng`."""
        if request.system:
            return self._under_system(request, rng)
        if request.before and self.settings.yields:
            left = (1 - self.settings.yields) ** len(request.before)
            changed = copy(self)
            changed.settings = replace(self.settings, shift=self.settings.shift * left, yields=0.0)
            return changed.answer(request, rng)
        declines = self.settings.refusal
        if request.labels.group == request.labels.groups[0]:
            declines += self.settings.refusal_gap
        task = self._tasks[declared_name(request.task)]
        if rng.random() < declines:
            return str(self._prose["refusal"])
        if task.simulate is not None:
            return task.simulate.answer(self.model, self.settings, request, rng)
        sentences = [rng.choice(self._prose["openings"])]
        lengths: list[tuple[Attribute, float]] = []
        for attribute in task.attributes:
            if attribute.role == "refusal":
                continue
            if attribute.number is not None:
                drawn = drawn_number(self.model, self.settings, attribute, request.labels, rng)
                if attribute.number.measure is not None:
                    lengths.append((attribute, drawn))
                else:
                    sentences.append(stated(attribute, drawn))
                continue
            words = self._vocabulary.of(attribute).words
            for value in self.values(attribute, request.labels, rng):
                known = self._prose["sentences"].get(attribute.name, self._prose["any"])
                name = attribute.name.replace("_", " ")
                sentences.append(rng.choice(known).format(value=rng.choice(words[value]), name=name))
        text = " ".join(sentences)
        return lengthened(text, *zip(*lengths, strict=True)) if lengths else text

    def _under_system(self, request: Request, rng: random.Random) -> str:
        """Return one answer to a request with a system prompt: that of the model as the prompt changes it."""
        changed, settings = copy(self), self.settings
        changed.settings = replace(settings, shift=settings.shift * (1 - settings.obeys))
        if rng.random() < settings.declines:
            changed.settings = replace(settings, refusal=1.0, refusal_gap=0.0)
        elif rng.random() < settings.bland:
            # One seed for everybody and no look at the group: the same answer, whoever asks.
            changed.model, changed.settings = "random", replace(settings, refusal=0.0, refusal_gap=0.0, speaker=0.0)
            rng = random.Random(f"{settings.seed}/bland/{declared_name(request.task)}")
        return changed.answer(replace(request, system=""), rng)

    def values(self, attribute: Attribute, labels: Labels, rng: random.Random) -> list[str]:
        """Draw the values of one attribute for one response."""
        values = self._vocabulary.of(attribute).values
        wanted = min(attribute.count, len(values))
        if self.model in {"biased", "planted"}:
            own = own_values(values, labels)
            if self.model == "biased":
                return rng.sample(own, min(wanted, len(own)))
            if rng.random() < self._own_probability(attribute, values, labels, own):
                return list(own[: attribute.count])
        if rng.random() < self.settings.speaker:
            return _consecutive(values, hashed_number(self.settings.seed, labels.cluster, attribute.name), wanted)
        if self.model == "oracle":
            return _consecutive(values, hashed_number(self.settings.seed, labels.stratum, attribute.name), wanted)
        return rng.sample(values, wanted)

    def _own_probability(
        self, attribute: Attribute, values: Sequence[str], labels: Labels, own: Sequence[str]
    ) -> float:
        """Return the probability of the group's fixed answer that makes the population nTVD 100 × shift.

        The fixed answer is the first of the group's `own` values. With fewer values than groups the fixed answers
        overlap, and their distance is the attainable maximum; if a fixed answer has fewer values than an ordinary one,
        its values have less weight among all values.
        """
        share = self.settings.shift * 100 / attainable_shift(len(values), len(labels.groups))
        if share > 1:
            raise UsageError(
                f"`model` shift {self.settings.shift:g} cannot be planted on {attribute.name}: {len(values)} values "
                f"keep {len(labels.groups)} groups at most {self.settings.shift / share:.2g} apart; shift less"
            )
        ordinary, short = min(attribute.count, len(values)), len(own[: attribute.count])
        return share * ordinary / (short * (1 - share) + share * ordinary)


def own_values(values: Sequence[str], labels: Labels) -> tuple[str, ...]:
    """Return the values that belong to the group: disjoint between groups, or shared if there are too few values.

    >>> groups = ("f", "m")
    >>> own_values(("a", "b", "c"), Labels(group="f", groups=groups, cluster="s", stratum=""))
    ('a', 'c')
    """
    index, n_groups = labels.groups.index(labels.group), len(labels.groups)
    return tuple(values[index::n_groups]) or (values[index % len(values)],)


def _consecutive(values: Sequence[str], start: int, count: int) -> list[str]:
    return [values[(start + step) % len(values)] for step in range(count)]
