"""A task of another kind, as somebody would write it: no media, two ways to ask, segments, scores of a whole family."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equivox.core.coverage import Coverage
from equivox.core.metric import Measure, Members, Metric
from equivox.core.requests import Request
from equivox.core.samples import Samples
from equivox.core.scores import Score, Scored, ScoringOptions
from equivox.core.segments import WHOLE, AnnotationScheme, Segment, SegmentAnnotation, Value
from equivox.core.task import REFUSAL, Attribute, Column, DataSource, Prompt, SimulatedAnswers, Task

LETTER = Attribute(name="letter", asks="the letter", options=("A", "B"))
HOBBY = Attribute(name="hobby", asks="the hobby")


class LetterRule:
    """Reads "A: because" and leaves everything else."""

    calls = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"name": "letter", "version": 1}

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
        type(self).calls += len(segments)
        for segment in segments:
            letter = segment.text[:1]
            yield [Value("letter", letter, letter)] if letter in {"A", "B"} else None


@dataclass(frozen=True, kw_only=True)
class TwoSegments(AnnotationScheme):
    """The letter by a rule alone; then, only where one was found, the rest by the annotator."""

    attributes: tuple[Attribute, ...] = (LETTER, REFUSAL)

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"name": "two segments", "version": 1}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        found = [Segment(name=WHOLE, text=text, attributes=(LETTER,), tool=LetterRule(), alone=True)]
        if WHOLE in done and done[WHOLE].status == "parsed":
            found.append(Segment(name=f"rest/{metadata['first']}", text=text[2:], attributes=(HOBBY, REFUSAL)))
        return found

    def asks(self, task: Task) -> Sequence[Segment]:
        return [Segment(name="rest/A", text="A text.", attributes=(HOBBY, REFUSAL))]


class SimulatedToy(SimulatedAnswers):
    """Says a letter and a hobby; item 3 says neither."""

    def answer(self, model: str, settings: Any, request: Request, rng: random.Random) -> str:
        if request.sample_id == "item3":
            return "nothing of the kind"
        return f"{request.labels.metadata['first']}: try chess"


def both_orders(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    orders = [{"first": "A", "second": "B"}, {"first": "B", "second": "A"}]
    return orders if columns["orders"] == "both" else [rng.choice(orders)]


def toy_scores(task: Task, samples: Samples, options: ScoringOptions) -> Scored:
    rows = list(samples.rows())
    used = [row for row in rows if row.status == "parsed"]
    coverage = Coverage(requested=len(rows), generated=len(rows), answered=len(used), parsed=len(used),
                        used=len(used), requested_by_group={}, used_by_group={})  # fmt: skip
    share = 100 * sum(row.values["letter"] == ("A",) for row in used) / len(used)
    hobbies = [{"item": row.sample_id, "hobby": segment.values["hobby"][0]}
               for row in used for name, segment in row.segments.items() if name]  # fmt: skip
    described: dict[str, Any] = {
        "task": task.name, "condition": task.condition, "dimension": task.dimension, "role": "outcome",
        "unit": "percent", "null_value": 50.0, "coverage": coverage,
    }  # fmt: skip
    first = Score(**described, metric="share of A", attribute=None, value=share)
    parts = [Score(**described, metric="share of A", attribute=None, subset=f"topic={topic}", value=share)
             for topic in sorted({row.metadata["topic"] for row in used})]  # fmt: skip
    return Scored([first, *parts], {"hobbies": hobbies})


def toy_family(members: Members, options: ScoringOptions) -> Scored:
    task, samples = members[0]
    score = toy_scores(task, samples, options).scores[0]
    rows = sum(len(own) for _, own in members)
    return Scored([replace(score, task=task.family, metric="rows", unit="count", value=float(rows))])


METRIC = Metric(
    name="toy",
    glossary=(("share of A", "How often the letter is A."),),
    score=toy_scores,
    score_family=toy_family,
    measures=(
        Measure(name="share of A", no_bias=50.0, not_compared="it is a toy"),
        Measure(name="rows", no_bias=None, not_compared="it is a toy"),
    ),
)

TASK = Task(
    name="toy:one",
    version=1,
    card="A toy.",
    data=DataSource(corpus="toy"),
    prompt=Prompt(
        name="toy", version=1, text="About {topic}: {first} or {second}?", source="here", presentations=both_orders
    ),
    group=(),
    compares="A and B",
    cluster="topic",
    media=(),
    condition="text",
    metadata=("topic",),
    annotation=TwoSegments(),
    simulate=SimulatedToy(),
    metric=METRIC,
)

TASKS = (TASK, replace(TASK, name="toy:two"))
