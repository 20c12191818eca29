"""Texts of continuations, made with models: rewritten as what a person says, labelled, and filtered by agreement.

As in section 3.2 of Spoken StereoSet (arXiv 2408.07665). First, context and continuations become first person, and the
words must not tell the speaker's group. The paper's authors rewrote with GPT-4o and by hand and print no prompt; the
prompts here are ours (`tasks/prompts/spoken_stereoset.yaml`). A rewriting is kept if it is complete, in the first
person, names no group, and if a reader (a model) cannot tell the group from the context. What is left out is listed
with the reason.

Then of each continuation at least five annotators say whether it shows a stereotype of the speaker, breaks one, or is
unrelated; a context is discarded for a speaker's group if less than half of the annotators call one of its
continuations what it is meant to be. The paper's annotators are people who hear the voice. Models get the group in
words. A label that is missing or cannot be read is missing: it is no agreement.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equivox.core.errors import RunError, UsageError
from equivox.core.hashing import digest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.task import GREEDY, Sampling
from equivox.core.text import listed
from equivox.core.yaml_files import packaged_yaml
from equivox.dataset_builders.base import read_rows
from equivox.dataset_builders.construction import ATTEMPTS, Made, Model, Question, Row, Step, write_table
from equivox.dataset_builders.spoken_stereoset import CONTINUATIONS, KINDS
from equivox.dataset_builders.spoken_stereoset import LABELS as _OURS
from equivox.dataset_builders.synthesis import LABELLED, read_texts

SAMPLING = Sampling(temperature=0.7, max_new_tokens=512)
"""The paper names no decoding for the rewriting. At temperature 0 another attempt would give the same answer."""
UNKNOWN = "cannot tell"
_TEXTS = ("context", *CONTINUATIONS)
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours|ourselves)\b", flags=re.IGNORECASE)
LABELS = {theirs: _OURS[kind] for theirs, kind in zip(CONTINUATIONS, KINDS, strict=True)}
"""The annotators' name of each kind of continuation, by the column of the table of texts."""
LEAST_ANNOTATORS = 5
LEAST_AGREEMENT = 0.5


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
    UsageError
        An invalid table, a simulated model, or `swap` with other than two groups.
    RunError
        The engine can no longer answer, or no sentence could be kept. Answers are stored for the next call.
    """
    domain, rows = read_texts(sentences)
    groups = sorted({row[domain] for row in rows})
    if swap and len(groups) != 2:
        raise UsageError(
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
    said = [{domain: rows[place][domain], **own} for place, own in sorted(kept.items())]
    written = [row for own in said for row in (own, *([_of_the_other(own, domain, groups)] if swap else ()))]
    header = [domain, *_TEXTS]
    return write_kept(output, (header, written), ([*header, "reason", "last"], left_out), f"{len(rows)} sentences")


def _of_the_other(row: Row, domain: str, groups: Sequence[str]) -> Row:
    """Return what a person of the other group says: the same context, with the two options swapped."""
    return {
        **row,
        domain: next(name for name in groups if name != row[domain]),
        "stereotypical": row["anti-stereotypical"],
        "anti-stereotypical": row["stereotypical"],
    }


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


@dataclass(frozen=True)
class _Item:
    """One continuation of one context for one group."""

    domain: str
    row: Row
    kind: str

    @property
    def name(self) -> str:
        return digest([self.domain, self.row[self.domain], self.row["context"], self.row[self.kind]])[:12]


def _items(texts: Path) -> tuple[str, list[dict[str, str]], dict[str, _Item]]:
    domain, rows = read_texts(texts)
    items: dict[str, _Item] = {}
    for row in rows:
        if len({row[kind] for kind in CONTINUATIONS}) < len(CONTINUATIONS):
            raise UsageError(f"{texts}: two continuations of {row['context']!r} are alike; change one")
        for kind in CONTINUATIONS:
            item = _Item(domain, row, kind)
            items.setdefault(item.name, item)
    return domain, rows, items


def label(texts: Path, annotators: Sequence[Engine], output: Path, *, progress: Progress = no_progress) -> Made:
    """Write the labels of models: a row per annotator and continuation, with an empty label where there is none.

    `output` is a CSV in the form of `sheet`; `left_out` counts the labels that are missing, per annotator. Each engine
    is closed when its labels are there. UsageError for an invalid table, a simulated model, or the same model twice;
    RunError if an engine can no longer answer.
    """
    domain, _, items = _items(texts)
    written: list[Row] = []
    with Step(output, progress) as step:
        models = [Model(step, engine, what="label", sampling=GREEDY) for engine in annotators]
        if twice := [name for name, n in Counter(model.name for model in models).items() if n > 1]:
            raise UsageError(f"the model {twice[0]} is named twice, and its labels would be alike; name other models")
        for engine, model in zip(annotators, models, strict=True):
            try:
                found = model.ask({name: _question(item, model.name) for name, item in items.items()})
            finally:
                engine.close()  # the next model may need this one's memory
            for name, item in _shuffled(items, model.name):
                said = said_in(found[name], "label")
                known = said if said in LABELS.values() else ""
                written.append({**_shown(name, item), "annotator": model.name, "label": known})
    write_table(output, _header(domain), written)
    missing = Counter(f"no label by {row['annotator']}" for row in written if not row["label"])
    return Made(output=output, rows=len(written) - missing.total(), of=f"{len(written):,} labels", left_out=missing)


def sheet(texts: Path, output: Path, *, seed: int = 0) -> int:
    """Write an empty sheet of labels for one person, in random order, and return the number of its rows.

    It does not say what a continuation is meant to be. UsageError for a file that exists: no labels are overwritten.
    """
    if output.exists():
        raise UsageError(f"`output` {output} exists and may hold labels; name a new file")
    domain, _, items = _items(texts)
    write_table(output, _header(domain), [_shown(name, item) for name, item in _shuffled(items, str(seed))])
    return len(items)


def _header(domain: str) -> list[str]:
    return ["item", "annotator", domain, "context", "continuation", "label"]


def _shown(name: str, item: _Item) -> dict[str, str]:
    return {
        "item": name,
        item.domain: item.row[item.domain],
        "context": item.row["context"],
        "continuation": item.row[item.kind],
    }


def _shuffled(items: Mapping[str, _Item], by: str) -> list[tuple[str, _Item]]:
    return sorted(items.items(), key=lambda entry: digest([by, entry[0]]))


def _question(item: _Item, annotator: str) -> Question:
    options = [item.row[kind] for kind in CONTINUATIONS]
    # The same order for the three questions about a context, another one for another annotator.
    random.Random(f"{annotator} {item.row['context']} {item.row[item.domain]}").shuffle(options)
    text = prompt("label").format(
        domain=item.domain,
        group=item.row[item.domain],
        context=item.row["context"],
        continuation=item.row[item.kind],
        first=options[0],
        second=options[1],
        third=options[2],
    )
    return Question(name=item.name, text=text, schema=form({"label": tuple(LABELS.values())}))


def keep_agreed(
    texts: Path,
    labels: Sequence[Path],
    output: Path,
    *,
    least_annotators: int = LEAST_ANNOTATORS,
    least_agreement: float = LEAST_AGREEMENT,
) -> Made:
    """Write the texts whose continuations enough annotators call what they are meant to be, with all labels.

    Parameters
    ----------
    texts
        The table of texts.
    labels
        The labels of models or people: CSV with `item` and `label`, one row per annotator and continuation. The
        annotator is the column `annotator`, or the file's name where it is empty.
    output
        The table of the texts that stay, with `labels` and `annotators` as the corpus stores them; `synthesize` reads
        it. `<output>.left_out.csv` holds the others with the reason.
    least_annotators, least_agreement
        The labels that each continuation needs, and the share of them that must be right. In the paper 5 and 0.5;
        exactly the share is enough.

    Raises
    ------
    UsageError
        An invalid table, and a label or item that is not on the sheet, with its line.
    RunError
        No text stays; the list of those left out was written.
    """
    if least_annotators < 1 or not 0 < least_agreement <= 1:
        raise UsageError(
            f"`least_annotators` is 1 or more and `least_agreement` in (0, 1], got {least_annotators} and "
            f"{least_agreement:g}; the paper has 5 and 0.5"
        )
    domain, rows, items = _items(texts)
    votes = _votes(labels, items)
    kept: list[Row] = []
    left_out: list[Row] = []
    for row in rows:
        own = {kind: votes.get(_Item(domain, row, kind).name, {}) for kind in CONTINUATIONS}
        right = {kind: sum(vote == LABELS[kind] for vote in own[kind].values()) for kind in CONTINUATIONS}
        given = {kind: len(own[kind]) for kind in CONTINUATIONS}
        if reason := _not_agreed(right, given, least_annotators, least_agreement):
            counted = {f"agreement {kind}": f"{right[kind]} of {given[kind]}" for kind in CONTINUATIONS}
            left_out.append({**row, "reason": reason, **counted})
        else:
            who = sorted(set().union(*own.values()))
            told = {LABELS[kind]: [own[kind][name] for name in who if name in own[kind]] for kind in CONTINUATIONS}
            kept.append({**row, "labels": json.dumps(told), "annotators": json.dumps(who)})
    header = [domain, "context", *CONTINUATIONS]
    reasons = [*header, "reason", *(f"agreement {kind}" for kind in CONTINUATIONS)]
    return write_kept(output, ([*header, *LABELLED], kept), (reasons, left_out), f"{len(rows)} texts")


def _not_agreed(right: Mapping[str, int], given: Mapping[str, int], least: int, agreement: float) -> str:
    """Return why a text does not stay, from the right ones among the labels of each continuation; empty if it does."""
    if min(given.values()) < least:
        return f"fewer than {least} labels of a continuation"
    # 3 of 5 and 0.6 must be equal: the comparison is one of whole numbers but for the share itself.
    low = [kind for kind in CONTINUATIONS if right[kind] < agreement * given[kind] - 1e-9]
    return f"less than {100 * agreement:g} % call the {low[0]} continuation that" if low else ""


def _votes(files: Sequence[Path], items: Mapping[str, _Item]) -> dict[str, dict[str, str]]:
    """Return the label of each item by annotator; empty labels are left out."""
    votes: dict[str, dict[str, str]] = {}
    for file in files:
        for number, row in enumerate(read_rows(file, ("item", "label")), start=1):
            said = row["label"].casefold()
            if not said:
                continue
            if row["item"] not in items:
                raise UsageError(f"{file}, row {number}: no continuation {row['item']!r} is in the table of texts")
            if said not in LABELS.values():
                raise UsageError(
                    f"{file}, row {number}: `label` is {', '.join(LABELS.values())} or empty, got {row['label']!r}"
                )
            who = row.get("annotator") or file.stem
            own = votes.setdefault(row["item"], {})
            if who in own:
                raise UsageError(f"{file}, row {number}: {who} has labelled {row['item']} already; remove one label")
            own[who] = said
    return votes


def write_kept(
    output: Path, kept: tuple[Sequence[str], Sequence[Row]], left_out: tuple[Sequence[str], Sequence[Row]], what: str
) -> Made:
    """Write the rows that stay, and `<output>.left_out.csv` with the others and their `reason`; each with its header.

    `what` says how many rows of what kind there were. RunError if none stays; the list was written.
    """
    listing = output.with_name(f"{output.stem}.left_out.csv")
    write_table(listing, *left_out)
    reasons = Counter(row["reason"] for row in left_out[1])
    if not kept[1]:
        raise RunError(f"none of {what} could be kept ({listed(reasons)}); {listing} lists them")
    write_table(output, *kept)
    return Made(output=output, rows=len(kept[1]), of=what, left_out=reasons, listing=listing)


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


def said_in(answer: str | None, field: str) -> str:
    """Return what a model says in one field of its answer, or the whole answer without one, in lower case."""
    return "" if answer is None else str(read_object(answer).get(field, answer)).strip().strip('".').casefold()


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


def prompt(name: str) -> str:
    """Return the text of a prompt of the construction."""
    return str(packaged_yaml("tasks/prompts/spoken_stereoset.yaml")["prompts"][name]["text"])
