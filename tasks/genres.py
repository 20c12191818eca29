"""GENRES: how does a model tell of a man and a woman who meet in one story?

Data:       `Savannah-y7/Genres` (CC BY-NC 4.0): 1,440 narrative elicitation pairs (NEPs) of an image and a text, built
            by `equivox data build genres`; an embedded sample of our own drawings and scenarios; custom elements
            (`elements.yaml`). Word lists: `equivox data build nrc`, `… sadcat`.
Paper:      GENRES, arXiv 2506.23101, sections 3 and 4, appendices A to C.
Compares:   the two characters of a story, male minus female, on M1 to M8. The NEP is the unit of every test.
Departs:    Each of these is a fault of the released code; the paper's number is given too, as `arithmetic=published`.
            M1: words count by membership, so "cold, cruel" is warm; the signed share is given too. Repeated traits
            count once, "NA" is ignored. M2: a profile without a known trait is missing, not 0. M3: the subject may be
            more than the bare name, and a sentence whose verb is "be" counts; pronouns are resolved. M5 counts in the
            sentences of M3. M7: an answer that could not be parsed is missing, not stereoscopic. M7, M8: p over NEPs,
            not over every character of every repetition. Overall means are of NEPs, not of rounded means. A response
            is split at its headings, not where a name is first mentioned; one that cannot be split is counted.
            These are choices of equivox. Decoding is greedy, with at most 1,024 tokens; the paper follows each model's
            guidelines. The prompt ends with "Shown personality traits", as released; Figure 3 lacks this line.
            A conflict "centers around", as in the released prompts; appendix B.1 prints "center around".
            Evaluators answer with lists under a schema, where Figures 10 and 11 ask for words separated by commas.
            An evaluation has at most 512 tokens, and four evaluations have temperature 0.7; the paper states neither.
            The evaluator GLM-4-9B is the form that its authors converted for transformers.
            The prompt of `genres_single` is equivox's wording, as the paper prints none for its Figure 1.
            `equivox reproduce genres` leaves Figure 1 out. New images are made without torch.compile, which changes
            only the speed. Gemini 2.0 Flash is switched off, so the paper's cohort cannot be measured again, and no
            total bias score is subtracted from a published one.
Cannot say: whether a story does harm; anything about people. A total bias score says how
            unlike its cohort a model is, not how biased. Narratives that slip out of English have no M3, M5 and M6.
            In `genres_standin` short lists and rules of our own replace evaluator, parser, classifier and word lists:
            for simulated models only.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from equivox.core.segments import AnnotatorPrompt
from equivox.core.task import IMAGE, Column, DataSource, Prompt, Sampling, Task
from equivox.dataset_builders.genres_protocol import RELATIONSHIPS, protocol
from equivox.metrics.genres import METRIC, GenresScheme, SimulatedNarratives
from equivox.metrics.genres.annotation.scheme import Questions
from equivox.metrics.genres.annotation.tools import STAND_INS, Tools
from equivox.tasks.prompts import load_prompts

PROMPTS = load_prompts("genres")
KEEPS = ("nep", "element", "relationship", "plot", "high_status_question")
CHARACTERS = ("name_1", "gender_1", "name_2", "gender_2")
SAMPLING = Sampling(max_new_tokens=1024)


def _asked(name: str) -> AnnotatorPrompt:
    prompt = PROMPTS[name]
    return AnnotatorPrompt(name=prompt.name, version=prompt.version, text=prompt.text)


QUESTIONS = Questions(
    profile=_asked("read_profile"),
    narrative=_asked("read_narrative"),
    single=_asked("read_single"),
    high_status=protocol()["high_status_questions"],
    main_character=protocol()["main_character_questions"],
)


def each_character(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    """Return the two presentations of a NEP with only one of its characters."""
    return [{"character": str(columns[f"name_{n}"]), "gender": str(columns[f"gender_{n}"])} for n in (1, 2)]


def genres_task(
    family: str,
    relationship: str,
    *,
    tools: Tools,
    single: bool = False,
    table: Path | None = None,
    card: str = __doc__,
) -> Task:
    """Return the task `<family>:<relationship>`, annotated with `tools`; `table` is a custom `elements.yaml`."""
    corpus = f"genres_{relationship}" if table is None else f"{family}_{relationship}"
    prompt: Prompt = replace(
        PROMPTS["single" if single else "narrative"],
        without_media="",
        presentations=each_character if single else None,
    )
    return Task(
        name=f"{family}:{relationship}",
        version=1,
        card=card,
        data=DataSource(corpus=corpus, builder="genres", table=table, where={"relationship": relationship}),
        prompt=prompt,
        group=(),
        compares="gender",
        cluster="nep",
        metadata=KEEPS if single else (*KEEPS, *CHARACTERS),
        media=() if single else (IMAGE,),
        condition="text" if single else "image",
        sampling=SAMPLING,
        annotation=GenresScheme(tools=tools, questions=QUESTIONS),
        simulate=SimulatedNarratives(),
        metric=METRIC,
        title=RELATIONSHIPS.get(relationship, ""),
        unit_name="scenes",
        group_labels={"female": "women", "male": "men"},
    )


TASKS: tuple[Task, ...] = tuple(
    genres_task(family, relationship, tools=tools, single=single)
    for family, tools, single in (
        ("genres", Tools(), False),
        ("genres_single", Tools(), True),
        ("genres_standin", STAND_INS, False),
        ("genres_single_standin", STAND_INS, True),
    )
    for relationship in RELATIONSHIPS
)
"""Tasks with two characters and an image, with one character and only text, and both with stand-ins for tools."""
