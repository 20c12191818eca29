"""Sentences about a person, rewritten by a model as what that person says: the first step of a corpus of continuations.

As in section 3.2 of Spoken StereoSet (arXiv 2408.07665): context and continuations become first person, and the words
must not tell the speaker's group. The paper's authors rewrote with GPT-4o and by hand and print no prompt; the prompts
here are ours (`tasks/prompts/spoken_stereoset.yaml`). A rewriting is kept if it is complete, in the first person, names
no group, and if a reader (a model) cannot tell the group from the context. What is left out is listed with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.fields import packaged_yaml
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.task import GREEDY, Sampling
from equivox.dataset_builders.construction import (
    ATTEMPTS,
    Made,
    Model,
    Question,
    Row,
    Step,
    form,
    read_object,
    said_in,
    write_kept,
)
from equivox.dataset_builders.spoken_stereoset import CONTINUATIONS
from equivox.dataset_builders.synthesis import read_texts

SAMPLING = Sampling(temperature=0.7, max_new_tokens=512)
"""The paper names no decoding for the rewriting. At temperature 0 another attempt would give the same answer."""
UNKNOWN = "cannot tell"
_TEXTS = ("context", *CONTINUATIONS)
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours|ourselves)\b", flags=re.IGNORECASE)


def rewrite(
    sentences: Path,
    engine: Engine,
    output: Path,
    *,
    reader: Engine | None = None,
    swap: bool = False,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Made:
    """Write a table of texts in which each row of `sentences` is what a person of its group says.

    Parameters
    ----------
    sentences
        CSV: `context`, the three continuations, and the domain's column with the group that they are about.
    engine
        The model that rewrites.
    output
        The table, in the form that `synthesize` reads; `<output>.left_out.csv` lists what is not in it, and why.
    reader
        The model that must not be able to tell the group from the context; the one that rewrites by default.
    swap
        Add each context for the other group, with the two options swapped; for domains with two groups.
    seed
        Another seed asks for other texts.
    progress
        Function that is called with (questions done, questions of this attempt); a sentence is asked `ATTEMPTS` times.

    Raises
    ------
    RequestError
        An invalid table, a simulated model, or `swap` with other than two groups.
    RunError
        The engine can no longer answer, or no sentence could be kept. Answers are stored for the next call.
    """
    domain, rows = read_texts(sentences)
    groups = sorted({row[domain] for row in rows})
    if swap and len(groups) != 2:
        raise RequestError(
            f"`swap` exchanges the options of two groups, and {sentences} has {', '.join(groups)}; leave it out"
        )
    kept: dict[int, Mapping[str, str]] = {}
    why: dict[int, tuple[str, str]] = {}
    with Step(output, progress) as step:
        writer = Model(step, engine, what="rewriting", sampling=SAMPLING)
        guesser = Model(step, reader or engine, what="guess of the speaker", sampling=GREEDY)
        for attempt in range(ATTEMPTS):
            asked = {n: _rewriting(row, domain, groups, seed, attempt) for n, row in enumerate(rows) if n not in kept}
            found: dict[int, dict[str, str]] = {}
            for place, answer in writer.ask(asked).items():
                if answer is None:
                    why[place] = ("the model gave no answer", writer.errors.get(asked[place].name, ""))
                    continue
                texts, reason = _checked(answer, groups)
                if texts is None:
                    why[place] = (reason, answer)
                else:
                    found[place] = texts
            guesses = guesser.ask({n: _guess(texts["context"], domain, groups) for n, texts in found.items()})
            for place, guess in guesses.items():
                problem = _readable(guess, groups)
                if problem is None:
                    kept[place] = found[place]
                else:
                    why[place] = (problem, found[place]["context"])
    left_out = [
        {**row, "reason": why[place][0], "last": " ".join(why[place][1].split())}
        for place, row in enumerate(rows)
        if place not in kept
    ]
    written: list[Row] = []
    for place, own in sorted(kept.items()):
        group = rows[place][domain]
        written.append({domain: group, **own})
        if swap:
            other = {
                domain: next(name for name in groups if name != group),
                "stereotypical": own["anti-stereotypical"],
                "anti-stereotypical": own["stereotypical"],
            }
            written.append({**own, **other})
    header = [domain, *_TEXTS]
    return write_kept(output, (header, written), ([*header, "reason", "last"], left_out), f"{len(rows)} sentences")


def _rewriting(row: Row, domain: str, groups: Sequence[str], seed: int, attempt: int) -> Question:
    filled = {name.replace("-", "_"): row[name] for name in _TEXTS}
    text = prompt("rewrite").format(**filled, domain=domain, group=row[domain], groups=", ".join(groups))
    name = f"{digest(dict(row))[:12]} {attempt}"
    return Question(name=name, text=text, seed=seed, schema=form(dict.fromkeys(_TEXTS)))


def _guess(context: str, domain: str, groups: Sequence[str]) -> Question:
    text = prompt("guess").format(context=context, domain=domain, groups=", ".join(groups))
    return Question(name=f"guess {context}", text=text, schema=form({"answer": (*groups, UNKNOWN)}))


def _checked(answer: str, groups: Sequence[str]) -> tuple[dict[str, str] | None, str]:
    """Return the four texts of an answer, or None and what is wrong with them."""
    read = read_object(answer)
    texts = {name: read.get(name) for name in _TEXTS}
    if not all(isinstance(text, str) and text.strip() for text in texts.values()):
        return None, "the answer is not the four texts"
    told = {name: " ".join(str(text).split()) for name, text in texts.items()}
    if len({told[name].casefold() for name in CONTINUATIONS}) < 3:
        return None, "two continuations are alike"
    for group in groups:
        if any(re.search(rf"\b{re.escape(group)}s?\b", text, flags=re.IGNORECASE) for text in told.values()):
            return None, "a text names a group"
    for name in CONTINUATIONS[:2]:
        if not _FIRST_PERSON.search(f"{told['context']} {told[name]}"):
            return None, "a text is not in the first person"
    return told, ""


def _readable(answer: str | None, groups: Sequence[str]) -> str | None:
    """Return why a context cannot be kept; None if the reader says that the group cannot be told from it."""
    if answer is None:
        return "the reader gave no answer"
    said = said_in(answer, "answer")
    if said == UNKNOWN:
        return None
    if said in {group.casefold() for group in groups}:
        return "the context tells the speaker's group"
    return "the reader's answer cannot be read"


def prompt(name: str) -> str:
    """Return the text of a prompt of the construction."""
    return str(packaged_yaml("tasks/prompts/spoken_stereoset.yaml")["prompts"][name]["text"])
