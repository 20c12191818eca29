"""Benchmarks of other kinds: no media, several ways to ask, responses read segment by segment, scores of a whole family."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from equivox.core.annotation import Value
from equivox.core.coverage import Coverage
from equivox.core.scores import Score, Scored, ScoringTable
from equivox.core.segments import WHOLE, Segment, SegmentAnnotation
from equivox.core.task import REFUSAL, Attribute, Column, DataSource, Prompt, Task
from equivox.dataset_builders import corpus as corpora
from equivox.dataset_builders.corpus import Corpus, text_sample
from equivox.engines import Request
from equivox.engines.simulated import SimulatedSettings
from equivox.run.annotating import READERS, stored_annotations

Cli = Callable[..., tuple[int, str, str]]
LETTER = Attribute(name="letter", asks="the letter", options=("A", "B"))
REASON = Attribute(name="reason", asks="the reason", count=3, at_least=0)
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


class TwoParts:
    """The letter by a rule alone; then, only where one was found, the rest by the annotator."""

    identity: Mapping[str, Any] = {"name": "two segments", "version": 1}

    def segments(
        self, task: Task, metadata: Mapping[str, str], text: str, done: Mapping[str, SegmentAnnotation]
    ) -> Sequence[Segment]:
        found = [Segment(name=WHOLE, text=text, attributes=(LETTER,), tool=LetterRule(), alone=True)]
        if WHOLE in done and done[WHOLE].status == "parsed":
            found.append(Segment(name=f"rest/{metadata['first']}", text=text[2:], attributes=(HOBBY, REFUSAL)))
        return found

    def asks(self, task: Task) -> Sequence[Segment]:
        return [Segment(name="rest/A", text="A text.", attributes=(HOBBY, REFUSAL))]


class ToyScript:
    """Says a letter and a hobby; item 3 says neither."""

    def answer(self, model: str, settings: SimulatedSettings, request: Request, rng: random.Random) -> str:
        if request.sample_id == "item3":
            return "nothing of the kind"
        return f"{request.labels.metadata['first']}: try chess"


def both_orders(columns: Mapping[str, Column], rng: random.Random) -> Sequence[Mapping[str, str]]:
    orders = [{"first": "A", "second": "B"}, {"first": "B", "second": "A"}]
    return orders if columns["orders"] == "both" else [rng.choice(orders)]


def toy_scores(task: Task, table: ScoringTable) -> Scored:
    used = [row for row in table.rows if row.status == "parsed"]
    coverage = Coverage(requested=len(table.rows), generated=len(table.rows), answered=len(used), parsed=len(used),
                        used=len(used), requested_by_group={}, used_by_group={})  # fmt: skip
    share = 100 * sum(row.values["letter"] == ("A",) for row in used) / len(used)
    hobbies = [{"item": row.sample_id, "hobby": segment.values["hobby"][0]}
               for row in used for name, segment in row.segments.items() if name]  # fmt: skip
    described = {"task": task.name, "condition": task.condition, "dimension": task.dimension, "role": "outcome", "unit": "percent",
                 "zero_means": "nobody says A", "target": 50.0, "coverage": coverage}  # fmt: skip
    first = Score(**described, name="share of A", attribute=None, value=share)
    segments = [Score(**described, name="share of A", attribute=None, subset=f"topic={topic}", value=share)
             for topic in sorted({row.metadata["topic"] for row in used})]  # fmt: skip
    return Scored([first, *segments], {"hobbies": hobbies})


def toy_overall(tables: Sequence[tuple[Task, ScoringTable]]) -> Scored:
    task, table = tables[0]
    score = toy_scores(task, table).scores[0]
    rows = sum(len(table.rows) for _, table in tables)
    return Scored([replace(score, task=task.family, name="rows", unit="count", value=float(rows))])


TASK = Task(
    name="toy:one",
    version=1,
    card="A toy.",
    data=DataSource(corpus="toy"),
    prompt=Prompt(name="toy", version=1, text="About {topic}: {first} or {second}?", source="here"),
    group=(),
    compares="A and B",
    cluster="topic",
    attributes=(LETTER, REFUSAL),
    media=(),
    condition="text",
    metadata=("topic",),
    presentations=both_orders,
    annotation=TwoParts(),
    simulate=ToyScript(),
    scorer=toy_scores,
    overall=toy_overall,
)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    items = tuple(
        text_sample(f"item{n}", {"topic": f"topic{n % 2}", "orders": "both" if n < 2 else "one"}) for n in range(4)
    )
    monkeypatch.setitem(corpora.OPENERS, "toy", lambda source, data: Corpus(name="toy", fingerprint="0", samples=items))
    monkeypatch.setattr("equivox.tasks.ALL_TASKS", (TASK, replace(TASK, name="toy:two")))


def test_a_text_benchmark_end_to_end(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out, err = equivox("run", "simulated:random", "toy", "--output", folder)
    assert code == 0, err
    plan = pq.read_table(folder / "plan.parquet").to_pylist()
    # Two items asked in both orders and two in one, for each of two tasks; all metadata are kept.
    assert len(plan) == 12
    asked = [dict(row["metadata"])["first"] for row in plan if row["task"] == "toy:one" and row["sample_id"] == "item0"]
    assert sorted(asked) == ["A", "B"]
    assert {dict(row["metadata"])["topic"] for row in plan} == {"topic0", "topic1"}
    assert len({(row["key"]) for row in plan}) == 12
    # The rule's readings lie apart; the annotator read only what the rule had found a letter in.
    read = list(stored_annotations(folder, "rules").values())
    assert {row["segment"] for row in read} == {"rest/A", "rest/B"}
    assert len(read) == 10
    rule = list(stored_annotations(folder, READERS).values())
    assert [row["status"] for row in rule].count("unparsed") == 2
    assert len(rule) == 12
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    assert [(s["task"], s["subset"]) for s in scores[:3]] == [
        ("toy:one", ""), ("toy:one", "topic=topic0"), ("toy:one", "topic=topic1")
    ]  # fmt: skip
    assert scores[-1]["task"] == "toy"
    assert scores[-1]["value"] == 12.0
    hobbies = (folder / "tables" / "toy-one" / "hobbies.csv").read_text().splitlines()
    assert hobbies[0] == '"item","hobby"'
    assert hobbies[1].endswith('"chess"')
    assert len(hobbies) == 6
    assert "share of A" in out
    assert "rows" in out


def test_what_is_stored_is_not_read_again(equivox: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert equivox("run", "simulated:random", "toy", "--output", folder)[0] == 0
    before, calls = (folder / "scores.json").read_text(), LetterRule.calls
    stale = folder / "tables" / "toy-one" / "of_before.csv"
    stale.write_text("left by an earlier scoring")
    for command in (["run", "simulated:random", "toy", "--output", folder], ["score", folder]):
        assert equivox(*command)[0] == 0
    assert LetterRule.calls == calls
    assert (folder / "scores.json").read_text() == before
    assert not stale.exists()
    assert (folder / "tables" / "toy-one" / "hobbies.csv").exists()


def test_arms_that_a_task_does_not_offer_are_refused(equivox: Cli, tmp_path: Path) -> None:
    code, _, err = equivox("run", "simulated:random", "toy", "--conditions", "silence", "--output", tmp_path / "run")
    assert code == 2
    assert "toy:one has no condition 'silence'; it offers text" in err
    assert not (tmp_path / "run").exists()
