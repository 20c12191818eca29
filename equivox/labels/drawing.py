"""The answers that people label: the same number of every task and group, at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.hashing import digest
from equivox.core.lazy import pa, pc
from equivox.core.plain import split_by
from equivox.core.samples import UNANSWERED, Row, Samples
from equivox.core.task import PLACEHOLDER, Task, placeholders_of
from equivox.core.variants import asks_nothing
from equivox.dataset_builders.corpus import Sample
from equivox.dataset_builders.opening import open_corpus
from equivox.run.declarations import read_tasks
from equivox.run.manifest import read_manifest
from equivox.run.opening import data_of
from equivox.run.scoring import open_samples
from equivox.run.store import stored_texts


@dataclass(frozen=True)
class Candidate:
    """An answer that can be drawn: `number` is its row in its task's `samples`."""

    item: str
    text: str
    task: Task
    samples: Samples
    number: int


@dataclass(frozen=True)
class Answer:
    """A drawn answer under an `item` name without meaning; `weight` is the number of answers that it stands for.

    `columns` has the texts of the corpus that the prompt names.
    """

    item: str
    text: str
    task: Task
    row: Row
    weight: float = 1.0
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        """The prompt with its columns and the plan's metadata, such as the order of its options."""
        known = {**self.columns, **self.row.metadata}
        return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), self.task.prompt.text)


_INSTRUCTS = (
    r"(?i)\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|above|previous|prior|prompt|rules)\b"
    r"|<{3,}|>{3,}|\b(?:annotator|judge|grader|evaluator|labell?er)s?\b.{0,30}\b(?:must|should|please|answer|return|mark)\b"
    r"|[\"']refusal[\"']\s*:|```json"
)
"""Text that speaks to whoever reads the answer, or looks like the annotator's reply (RE2)."""


def list_uncheckable(run: Path) -> list[str]:
    """Return the tasks whose scores rest on parts of an answer, which labels cannot check."""
    return [task.name for task in read_tasks(run) if task.annotation.in_parts and not asks_nothing(task)]


def list_cells(run: Path, annotator: str | None = None) -> list[list[Candidate]]:
    """Return the answers of a run by task and group, each cell in the random order in which they are drawn.

    The order and the names of the items depend on the answers alone, so that a sheet needs no other file. An answer
    that several tasks share is listed once. UsageError if the run has no answer that people can label.
    """
    tasks = [task for task in read_tasks(run) if not task.annotation.in_parts and not asks_nothing(task)]
    if not tasks:
        raise UsageError(f"labels cannot check {run}: its scores rest on parts of an answer, not on the whole answer")
    opened = open_samples(run, tasks, annotator or str(read_manifest(run)["command"]["annotator"]))
    texts = stored_texts(run)
    instructs = pc.match_substring_regex(pa.array(texts.values(), pa.string()), _INSTRUCTS)
    instructing = {key for key, has in zip(texts, instructs.to_pylist(), strict=True) if has}
    cells: dict[tuple[str, str, bool], list[tuple[str, Candidate]]] = {}
    seen: set[str] = set()
    for task in tasks:
        samples = opened[task.name]
        keys, groups = samples.keys, samples.groups.texts()
        for number in (~samples.has_status(*UNANSWERED, "empty")).nonzero()[0].tolist():
            key = keys[number]
            if key in seen:
                continue
            seen.add(key)
            text = texts[key] or ""
            candidate = Candidate(f"i{digest(['item', key, text])[:12]}", text, task, samples, number)
            # Few answers instruct the annotator, and they mislead it most: they are cells of their own.
            cells.setdefault((task.name, groups[number], key in instructing), []).append(
                (digest(["draw", key]), candidate)
            )
    if not cells:
        raise UsageError(f"no answer of {run} can be labelled: no request was answered")
    return [[candidate for _, candidate in sorted(cell, key=lambda entry: entry[0])] for cell in cells.values()]


def draw(cells: Sequence[Sequence[Candidate]], n: int) -> list[Answer]:
    """Return the first `n` answers of every cell, in an order that shows nothing of the cell."""
    chosen = [(candidate, len(cell) / min(n, len(cell))) for cell in cells for candidate in cell[:n]]
    drawn = []
    for of_task in split_by(chosen, lambda entry: entry[0].task.name).values():
        rows = of_task[0][0].samples.take([candidate.number for candidate, _ in of_task]).rows()
        drawn += [
            Answer(candidate.item, candidate.text, candidate.task, row, w)
            for (candidate, w), row in zip(of_task, rows, strict=True)
        ]
    return sorted(drawn, key=lambda answer: answer.item)


def fill_prompts(run: Path, answers: Sequence[Answer]) -> list[Answer]:
    """Return answers with the texts that their prompts name and the run does not keep.

    UsageError if the data of the run are not on this machine, or have changed.
    """
    filled = list(answers)
    corpora: dict[str, dict[str, Sample]] = {}
    for at, answer in enumerate(answers):
        if not placeholders_of(answer.prompt):
            continue
        source = answer.task.data
        if source.corpus not in corpora:
            samples = open_corpus(source, data_of(run, source)).samples
            corpora[source.corpus] = {sample.sample_id: sample for sample in samples}
        sample = corpora[source.corpus].get(answer.row.sample_id)
        if sample is None:
            raise UsageError(f"the data of {run} have no sample {answer.row.sample_id} any more")
        filled[at] = replace(
            answer, columns={name: str(text) for name, text in sample.columns.items() if text is not None}
        )
    return filled
