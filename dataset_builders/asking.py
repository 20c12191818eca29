"""Questions to a model that help to make a corpus: every answer is stored at once, so that a stopped call goes on.

The answers are in a hidden file of JSON lines beside the output. A failure is not stored: the next call asks again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.files import refused
from equivox.core.hashing import digest
from equivox.core.outage import STOP_AFTER, until_outage
from equivox.core.progress import Progress, no_progress
from equivox.core.redact import cleaned
from equivox.core.requests import Engine, Labels, Request, request_key
from equivox.core.task import Sampling

_NOBODY = Labels(group="", groups=(), cluster="", stratum="")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question to a model; `name` and `seed` make its seed, and `schema` is the form that the answer must have."""

    name: str
    text: str
    seed: int = 0
    schema: Mapping[str, Any] | None = None


class Asker:
    """A model and the file of its answers; `ask` sends only questions that have no stored answer.

    `errors` holds why a question got no answer in this process. RequestError for a simulated model: it answers tasks,
    and has no words of its own.
    """

    def __init__(
        self, engine: Engine, stored: Path, *, what: str, sampling: Sampling, stop_after: int = STOP_AFTER
    ) -> None:
        if engine.identity.reads_labels:
            raise RequestError(
                f"`model` {engine.identity.model!r} is a simulated model and writes no text of its own; name a "
                "language model"
            )
        self._engine = engine
        self._stored = stored
        self._what = what
        self._sampling = sampling
        self._stop_after = stop_after
        self._answers = read_answers(stored)
        self.errors: dict[str, str] = {}

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._engine.identity.model

    def answer(self, question: Question) -> str | None:
        """Return the stored answer to a question, None if there is none."""
        return self._answers.get(self._request(question).key)

    def ask(self, questions: Sequence[Question], stage: str, progress: Progress = no_progress) -> None:
        """Send the questions that have no stored answer, and store each answer as soon as it is there.

        `progress` is told of each answer under the name `stage`. RunError when the engine can no longer answer;
        what was answered before is stored.
        """
        pending = {}
        for question in questions:
            request = self._request(question)
            if request.key not in self._answers:
                pending[request.key] = (question, request)
        requests = [request for _, request in pending.values()]
        if not requests:
            return
        self._engine.check(requests)
        responses = until_outage(self._engine.generate(requests), self.model, self._stop_after)
        for done, response in enumerate(responses, start=1):
            question, _ = pending.pop(response.key)
            self.errors.pop(question.name, None)
            if response.text is None:
                self.errors[question.name] = cleaned(response.error or "the answer has no text")
            elif response.finish_reason == "content_filter":
                self.errors[question.name] = "the provider withheld the answer"
            else:
                # A server may leave the reasoning in front of the answer.
                text = response.text.rpartition("</think>")[2].strip()
                self._store(response.key, question.name, text)
            progress(self._engine.event(stage, done, len(requests)))
        for question, _ in pending.values():
            self.errors[question.name] = "the engine gave no response"

    def _store(self, key: str, name: str, text: str) -> None:
        line = json.dumps({"key": key, "question": name, "model": self.model, "answer": text})
        try:
            self._stored.parent.mkdir(parents=True, exist_ok=True)
            with self._stored.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise refused(self._stored, error) from error
        self._answers[key] = text

    def _request(self, question: Question) -> Request:
        # A number of 31 bits is a seed for every server.
        seed = int(digest([question.seed, question.name])[:8], 16) >> 1
        request = Request(
            key="",
            task=self._what,
            sample_id=question.name,
            repeat=0,
            condition=self._what,
            media=(),
            text=question.text,
            sampling=self._sampling,
            seed=seed,
            labels=_NOBODY,
            schema=question.schema,
        )
        return replace(request, key=digest([request_key(self._engine.identity, request, seed), question.schema]))


def read_answers(path: Path) -> dict[str, str]:
    """Return the stored answers by key; a last line that was cut short is removed from the file.

    RequestError, naming the line, for any other line that is not an answer.
    """
    if not path.is_file():
        return {}
    data = path.read_bytes()
    whole, _, rest = data.rpartition(b"\n")
    if rest:
        # Without this the next answer would be written behind half a line.
        with path.open("r+b") as file:
            file.truncate(len(data) - len(rest))
    answers: dict[str, str] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            entry = json.loads(line)
            answers[str(entry["key"])] = str(entry["answer"])
        except (ValueError, KeyError, TypeError):
            raise RequestError(f"{path}, line {number}: not a stored answer; delete the line or the file") from None
    return answers


def answers_file(output: Path) -> Path:
    """Return the hidden file beside `output` that holds the model's answers."""
    return output.with_name(f".{output.name}.answers.jsonl")
