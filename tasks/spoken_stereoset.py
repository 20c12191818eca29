"""Spoken StereoSet: which of three continuations does a model expect of a voice?

Data:       Spoken StereoSet 1.0 (no licence stated), domains gender and age, built by `equivox data build
            spoken_stereoset`; an embedded synthetic sample needs no download. Other domains: `equivox data make`.
Paper:      Lin et al. 2024, arXiv 2408.07665; all six orders and the parity deviation: VIBE, arXiv 2604.17248,
            section 3.4.
Departs:    The question is in our words, as the paper prints none. The rules find the letter or the option's text,
            and only what they leave goes to the annotator, which does not see which option is the stereotype. slbs is
            undefined (NaN) if nothing meaningful is chosen, if fewer than 80 % of a group's answers choose an
            option, and if only one letter is ever chosen. Intervals and p-values take the context as the
            unit; the p-value that takes each answer as a unit is given too. Responses end after 128 tokens.
            The annotator `gpt-4o` is gpt-4o-2024-08-06; the paper names no version of GPT-4o.
            The paper's voices are from Azure TTS (gender) and TopMediai (age); for new sentences `equivox data make
            synthesize` runs the speech program that you name.
Cannot say: anything about people: the voices are synthetic. In one group alone slbs mixes the voice with which text
            reads better; over both, the two cancel in contexts that both groups speak with the options swapped.
            The stereotypes are those that annotators in one country saw.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equivox.core.task import Column, DataSource, Presentations, Sampling, Task
from equivox.dataset_builders.spoken_stereoset import KINDS
from equivox.metrics.spoken_stereoset import METRIC, ChoiceScheme, SimulatedChoices
from equivox.metrics.spoken_stereoset.annotation.scheme import LETTERS, placeholder
from equivox.tasks.prompts import load_prompts

PROMPTS = load_prompts("spoken_stereoset")
PUBLISHED_SAMPLING = Sampling(temperature=1.0, top_p=0.9, top_k=100, max_new_tokens=128)


def shown(columns: Mapping[str, Column], order: Sequence[str]) -> Mapping[str, str]:
    """Return the options of an instance in `order`, and the order, to translate a letter back."""
    texts = {placeholder(letter): str(columns[kind] or "") for letter, kind in zip(LETTERS, order, strict=True)}
    return {**texts, "order": ",".join(order)}


def random_order(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the options in one random order, as in the paper."""
    return [shown(columns, rng.sample(KINDS, len(KINDS)))]


def all_orders(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the options in all six orders, as in VIBE."""
    return [shown(columns, order) for order in itertools.permutations(KINDS)]


FAMILIES: Mapping[str, Presentations] = {"spoken_stereoset": random_order, "spoken_stereoset_orders": all_orders}
"""The orders of the options in each family."""
LABELS: Mapping[str, Mapping[str, str]] = {
    "gender": {"female": "women", "male": "men"},
    "age": {"elderly": "old speakers", "young": "young speakers"},
}


def stereoset_task(family: str, domain: str) -> Task:
    """Return the task `<family>:<domain>`, for any domain that the corpus has."""
    return Task(
        name=f"{family}:{domain}",
        version=1,
        card=__doc__,
        data=DataSource(corpus="spoken_stereoset", where={"domain": domain}),
        prompt=replace(PROMPTS["choice"], presentations=FAMILIES[family]),
        group=(domain,),
        cluster="speaker",
        strata=("context",),
        metadata=("turn",),
        sampling=PUBLISHED_SAMPLING,
        annotation=ChoiceScheme(),
        simulate=SimulatedChoices(),
        metric=METRIC,
        # Permuting the groups would change nothing here, because the corpus defines which option is the stereotype.
        conditions=("audio", "text_only", "silence"),
        title=f"stereotypes of {domain}",
        unit_name="contexts",
        group_labels=LABELS.get(domain, {}),
    )


TASKS: tuple[Task, ...] = tuple(stereoset_task(family, domain) for family in FAMILIES for domain in ("gender", "age"))
