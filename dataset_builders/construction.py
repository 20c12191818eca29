"""What the steps share that make a corpus with models: rewriting, labelling, filtering, describing, synthesizing.

A step has rows, asks a model about each, checks the answers, and writes what it can keep; what it leaves out is listed
with the reason. Its journal, a hidden file beside the output, holds every answer at once, so that a repeated call asks
only for what is missing. A failure is not stored: the next call asks again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from equivox.core.errors import UsageError
from equivox.core.files import write_text
from equivox.core.hashing import digest
from equivox.core.journal import Journal, read_journal
from equivox.core.progress import STOP_AFTER, Progress, no_progress, until_outage
from equivox.core.redact import cleaned
from equivox.core.requests import Engine, Request, request_key
from equivox.core.task import Sampling

ATTEMPTS = 3
"""How often a row is asked about until an answer can be kept."""
Row = Mapping[str, str]
_K = TypeVar("_K")


@dataclass(frozen=True, kw_only=True)
class Made:
    """The result of a step: its output with so many rows, and how much was left out for which reason.

    `of` says in words what the rows were made of, `listing` is the file that names what was left out, and `notes` are
    further remarks.
    """

    output: Path
    rows: int
    of: str
    left_out: Mapping[str, int]
    listing: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question to a model; `name` and `seed` make its seed, and `schema` is the form that the answer must have."""

    name: str
    text: str
    seed: int = 0
    schema: Mapping[str, Any] | None = None


class Step:
    """A step that is under way, with its output and its journal; leaving the `with` block closes the journal.

    `progress` gets an event for every question that was answered.
    """

    def __init__(self, output: Path, progress: Progress = no_progress) -> None:
        self.output = output
        self.progress = progress
        self.journal = Journal(output.with_name(f".{output.name}.answers.jsonl"))
        there = read_journal(self.journal.path) if self.journal.path.is_file() else []
        self.answers: dict[str, str] = {entry["key"]: entry["answer"] for entry in there}

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()


class Model:
    """A model that a step asks; `ask` sends only questions that have no stored answer.

    `errors` holds why a question got no answer in this process. UsageError for a simulated model: it answers tasks,
    and has no words of its own.
    """

    def __init__(self, step: Step, engine: Engine, *, what: str, sampling: Sampling) -> None:
        if engine.identity.reads_labels:
            raise UsageError(
                f"`model` {engine.identity.model!r} is simulated and cannot write texts; name a language model"
            )
        self.name = engine.identity.model
        self._step = step
        self._engine = engine
        self._what = what
        self._sampling = sampling
        self.errors: dict[str, str] = {}

    def answer(self, question: Question) -> str | None:
        """Return the stored answer to a question, None if there is none."""
        return self._step.answers.get(self._request(question).key)

    def ask(self, questions: Mapping[_K, Question]) -> dict[_K, str | None]:
        """Return the answer to each question, None without one; what has no stored answer is sent and stored at once.

        RunError when the engine can no longer answer; what was answered before is stored.
        """
        requests = {name: self._request(question) for name, question in questions.items()}
        pending = {r.key: r for r in requests.values() if r.key not in self._step.answers}
        if pending:
            self._engine.check(list(pending.values()))
            self._send(pending)
        return {name: self._step.answers.get(request.key) for name, request in requests.items()}

    def _send(self, pending: dict[str, Request]) -> None:
        total = len(pending)
        responses = self._engine.generate(list(pending.values()))
        for done, response in enumerate(until_outage(responses, self.name, STOP_AFTER), start=1):
            question = pending.pop(response.key).sample_id
            self.errors.pop(question, None)
            if response.text is None:
                self.errors[question] = cleaned(response.error or "the answer has no text")
            elif response.finish_reason == "content_filter":
                self.errors[question] = "the provider withheld the answer"
            else:
                # A server may leave the reasoning in front of the answer.
                text = response.text.rpartition("</think>")[2].strip()
                entry = {"key": response.key, "question": question, "model": self.name, "answer": text}
                self._step.journal.append(entry)
                self._step.answers[response.key] = text
            self._step.progress(self._engine.event(f"{self._what} questions", done, total))
        self.errors |= {request.sample_id: "the engine gave no response" for request in pending.values()}

    def _request(self, question: Question) -> Request:
        # A number of 31 bits is a seed for every server.
        seed = int(digest([question.seed, question.name])[:8], 16) >> 1
        request = Request(
            key="",
            task=self._what,
            sample_id=question.name,
            condition=self._what,
            text=question.text,
            sampling=self._sampling,
            seed=seed,
            schema=question.schema,
        )
        return replace(request, key=digest([request_key(self._engine.identity, request, seed), question.schema]))


def write_table(path: Path, header: Sequence[str], rows: Sequence[Row]) -> None:
    """Write rows as CSV, whole or not at all; a cell that a row lacks is empty, and what the header lacks is left."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())
