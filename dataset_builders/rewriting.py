"""Sentences about a person, rewritten by a model as what that person says: the first step of a corpus of continuations.

As in section 3.2 of Spoken StereoSet (arXiv 2408.07665): context and continuations become first person, and the words
must not tell the speaker's group. The paper's authors rewrote with GPT-4o and by hand and print no prompt; the prompts
here are ours (`tasks/prompts/spoken_stereoset.yaml`). A rewriting is kept if it is complete, in the first person, names
no group, and if a reader (a model) cannot tell the group from the context. What is left out is listed with the reason.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from equivox.core.errors import RequestError, RunError
from equivox.core.files import write_text
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.task import GREEDY, Sampling
from equivox.dataset_builders.asking import Asker, Question, answers_file
from equivox.dataset_builders.base import listed
from equivox.dataset_builders.spoken_stereoset import CONTINUATIONS
from equivox.dataset_builders.synthesis import read_texts

SAMPLING = Sampling(temperature=0.7, max_new_tokens=512)
"""The paper names no decoding for the rewriting. At temperature 0 another attempt would give the same answer."""
UNKNOWN = "cannot tell"
_TEXTS = ("context", *CONTINUATIONS)
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours|ourselves)\b", flags=re.IGNORECASE)

Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Rewriting:
    """The result: the table, its rows, and how many sentences were left out for which reason."""

    output: Path
    left_out_file: Path
    sentences: int
    rows: int
    left_out: Mapping[str, int]


def rewrite(
    sentences: Path,
    engine: Engine,
    output: Path,
    *,
    reader: Engine | None = None,
    swap: bool = False,
    seed: int = 0,
    attempts: int = 3,
    progress: Progress = no_progress,
) -> Rewriting:
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
    seed, attempts
        Another seed asks for other texts. A sentence is asked so many times until a rewriting can be kept.
    progress
        Function that is called with (questions done, questions of this attempt).

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
    if attempts < 1:
        raise RequestError(f"`attempts` is how often a sentence is asked, got {attempts}; give 1 or more")
    writer = Asker(engine, answers_file(output), what="rewriting", sampling=SAMPLING)
    guesser = Asker(reader or engine, answers_file(output), what="guess of the speaker", sampling=GREEDY)
    open_rows = dict(enumerate(rows))
    kept: dict[int, dict[str, str]] = {}
    why: dict[int, tuple[str, str]] = {}
    for attempt in range(attempts):
        asked = {place: _rewriting(row, domain, groups, seed, attempt) for place, row in open_rows.items()}
        writer.ask(list(asked.values()), "questions", progress)
        found: dict[int, dict[str, str]] = {}
        for place, question in asked.items():
            answer = writer.answer(question)
            if answer is None:
                why[place] = ("the model gave no answer", writer.errors.get(question.name, ""))
                continue
            texts, reason = _checked(answer, groups)
            if texts is None:
                why[place] = (reason, answer)
            else:
                found[place] = texts
        guesses = {place: _guess(texts["context"], domain, groups) for place, texts in found.items()}
        guesser.ask(list(guesses.values()), "questions", progress)
        for place, texts in found.items():
            problem = _readable(guesser.answer(guesses[place]), groups)
            if problem is None:
                kept[place] = texts
                del open_rows[place]
            else:
                why[place] = (problem, texts["context"])
    left_out = {place: why[place] for place in open_rows}
    header = [domain, *_TEXTS]
    file = left_out_file(output)
    listing = [
        {**rows[place], "reason": reason, "last": " ".join(last.split())}
        for place, (reason, last) in sorted(left_out.items())
    ]
    write_text(file, table([*header, "reason", "last"], listing))
    counts = Counter(reason for reason, _ in left_out.values())
    if not kept:
        raise RunError(f"none of {len(rows)} sentences could be kept ({listed(counts)}); {file} lists them")
    written: list[Row] = []
    for place, texts in sorted(kept.items()):
        group = rows[place][domain]
        written.append({domain: group, **texts})
        if swap:
            other = {
                domain: next(name for name in groups if name != group),
                "stereotypical": texts["anti-stereotypical"],
                "anti-stereotypical": texts["stereotypical"],
            }
            written.append({**texts, **other})
    write_text(output, table(header, written))
    return Rewriting(output=output, left_out_file=file, sentences=len(rows), rows=len(written), left_out=counts)


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


def read_object(answer: str) -> dict[str, Any]:
    r"""Return the JSON object in a model's answer, {} if there is none; code fences around it are accepted.

    >>> read_object('```json\n{"label": "irrelevant"}\n```'), read_object("irrelevant")
    ({'label': 'irrelevant'}, {})
    """
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def said_in(answer: str, field: str) -> str:
    """Return what a model says in one field of its answer, or the whole answer without one, in lower case."""
    return str(read_object(answer).get(field, answer)).strip().strip('".').casefold()


def left_out_file(output: Path) -> Path:
    """Return the file beside `output` that lists what is not in it, and why."""
    return output.with_name(f"{output.stem}.left_out.csv")


def form(fields: Mapping[str, Sequence[str] | None]) -> dict[str, Any]:
    """Return the JSON schema of an object of texts: any text, or one of those that a field lists."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "string"} | ({} if options is None else {"enum": list(options)})
            for name, options in fields.items()
        },
        "required": list(fields),
        "additionalProperties": False,
    }


@cache
def prompt(name: str) -> str:
    """Return the text of a prompt of the construction."""
    file = resources.files("equivox").joinpath("tasks", "prompts", "spoken_stereoset.yaml")
    return str(yaml.safe_load(file.read_text("utf-8"))["prompts"][name]["text"])


def table(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
