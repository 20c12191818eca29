"""The annotate stage: tools before the annotator, what is not asked for yet, and questions that were not answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Cli

from equivox.annotate import Annotation, Annotator, AnnotatorIdentity, Job, Value
from equivox.core.attributes import Number
from equivox.core.errors import RunError
from equivox.core.files import write_table
from equivox.core.metric import FollowUp, Members
from equivox.core.progress import Event
from equivox.core.scores import ScoringOptions
from equivox.core.segments import Segment
from equivox.core.task import REFUSAL, Attribute
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import EngineIdentity
from equivox.run.annotating import annotate, ask, run_jobs, stored_follow_ups
from equivox.run.live import read_usage
from equivox.run.pipeline import annotate_run, execute
from equivox.run.plan import make_plan
from equivox.run.scoring import follow_up, sample_rows, write_csv
from equivox.run.spec import RunSpec
from equivox.run.store import Store, annotation_schema, annotations_folder, count_annotation_failures
from equivox.tasks.registry import resolve_tasks

JOB = Attribute(name="job", asks="the job")
FEW = ScoringOptions(n_resamples=99)
IDENTITY = EngineIdentity(engine="fake", model="m", revision="1")


class Tool:
    """Reads `yes` and `no` as whether the text refuses, and cannot tell of anything else."""

    identity: Mapping[str, Any] = {"name": "tool", "version": 1}

    def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
        return [[Value("refusal", s.text, s.text)] if s.text in {"yes", "no"} else None for s in segments]


class Noting(Annotator):
    """An annotator that notes what it is asked, and reads nothing in it."""

    identity = AnnotatorIdentity(name="noting", version="1")

    def __init__(self, status: Any = "unparsed") -> None:
        self.status, self.asked = status, list[str]()

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        for job in jobs:
            self.asked.append(job.segment.text)
            yield job.annotated(self.status)


def test_a_tool_goes_first_and_the_annotator_gets_what_it_cannot_tell() -> None:
    annotator, tool = Noting(), Tool()
    jobs = [
        Job(key=f"{text} {alone}", response_key="r", task="t",
            segment=Segment(name="", text=text, attributes=(JOB, REFUSAL), tool=tool, alone=alone))
        for text in ("yes", "no", "perhaps", " ") for alone in (False, True)
    ]  # fmt: skip
    found = {annotation.key: annotation.status for annotation in run_jobs(jobs, annotator)}
    both = {"yes": "refused", "no": "parsed", "perhaps": "unparsed", " ": "empty"}
    assert found == {f"{text} {alone}": status for text, status in both.items() for alone in (False, True)}
    # What only the tool reads is not given to the annotator.
    assert annotator.asked == ["perhaps"]


class Odd(Annotator):
    """An annotator of which `then` changes what it yields about the second of three jobs."""

    identity = AnnotatorIdentity(name="odd", version="1")

    def __init__(self, then: Callable[[Annotation], Any]) -> None:
        self.then = then

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        for number, job in enumerate(jobs):
            fine = job.annotated("parsed", [Value("mood", "glad", "glad"), Value("job", "baker", "a baker")])
            said = self.then(fine) if number == 1 else fine
            if said != "passed over":
                yield said


def three_jobs() -> list[Job]:
    mood, pay = Attribute(name="mood", asks="the mood", options=("glad", "sad")), Number(unit="EUR")
    attributes = (JOB, mood, Attribute(name="pay", asks="the pay", number=pay))
    segment = Segment(name="", text="x", attributes=attributes)
    return [Job(key=key, response_key=key, task="t", segment=segment) for key in "abc"]


@pytest.mark.parametrize(
    "then",
    [
        lambda fine: "passed over",
        lambda fine: replace(fine, status="wonderful"),
        lambda fine: replace(fine, values=[Value("mood", "Glad", "glad")]),
        lambda fine: replace(fine, values=[Value("job", 5, "5")]),
        lambda fine: replace(fine, values=[("mood", "glad", "glad")]),
        lambda fine: replace(fine, values=[Value("moods", "glad", "glad")]),
        # What says nothing would be a value that all groups share: it is left out, or the annotation has failed.
        lambda fine: replace(fine, values=[Value("job", " ", "")]),
        lambda fine: replace(fine, values=[Value("job", "unstated", "")]),
        lambda fine: replace(fine, values=[Value("job", "\ud800", "")]),
        lambda fine: replace(fine, values=[Value("pay", "a lot", "a lot")]),
        lambda fine: replace(fine, values=[Value("pay", "nan", "nan")]),
        # One mood is asked for: which of the two counts?
        lambda fine: replace(fine, values=[Value("mood", "glad", "glad"), Value("mood", "sad", "sad")]),
    ],
)
def test_what_an_annotator_may_not_say_has_failed(then: Callable[[Annotation], Any]) -> None:
    found = {one.key: (one.status, len(one.values)) for one in run_jobs(three_jobs(), Odd(then))}
    assert found == {"a": ("parsed", 2), "b": ("failed", 0), "c": ("parsed", 2)}
    # What no option names is an answer, too.
    other = [Value("mood", "other", "hungry"), Value("job", "pilot", "pilot"), Value("pay", "5.5", "5.50")]
    kept = list(run_jobs(three_jobs(), Odd(lambda fine: replace(fine, values=other))))[1]
    assert (kept.status, kept.values) == ("parsed", other)


def broken(fine: Annotation) -> None:
    raise ValueError("broken\nin two lines")


@pytest.mark.parametrize(
    ("then", "told"),
    [
        (broken, "the annotator odd failed (ValueError: broken in two lines)"),
        (lambda fine: None, "the annotator odd yielded None, no annotation of what was left to annotate"),
        (lambda fine: replace(fine, key="a"), "the annotator odd yielded Annotation(key='a',"),
        (lambda fine: replace(fine, key="z"), "the annotator odd yielded Annotation(key='z',"),
    ],
)
def test_an_annotator_that_goes_wrong_is_one_line(then: Callable[[Annotation], Any], told: str) -> None:
    with pytest.raises(RunError) as found:
        list(run_jobs(three_jobs(), Odd(then)))
    assert str(found.value).startswith(told)


SCHEME = '''
"""A scheme of somebody's own. Cannot say: anything."""
from dataclasses import dataclass, replace

from equivox.annotate import Value
from equivox.core.segments import AnnotationScheme
from equivox.tasks.vibe import TASKS as VIBE

ADVISORY = next(task for task in VIBE if task.name == "vibe_gender:advisory")

class Tool:
    identity = {"name": "own", "version": 1}

    def read(self, segments):
        return READ

def ways(columns, rng):
    return WAYS

@dataclass(frozen=True, kw_only=True)
class Own(AnnotationScheme):
    @property
    def identity(self):
        return {"name": "own", "version": 1}

    def segments(self, task, metadata, text, done):
        return SEGMENTS

SCHEME = Own(attributes=ADVISORY.attributes)
PROMPT = replace(ADVISORY.prompt, presentations=ways)
TASKS = [replace(ADVISORY, name="own:advisory", card=__doc__, annotation=SCHEME, prompt=PROMPT)]
'''
PARTS = {
    "READ": "[[Value('hobby', 'chess', 'chess')] for segment in segments]",
    "WAYS": "[{}]",
    "SEGMENTS": "[] if done else [replace(self.whole(text), tool=Tool())]",
}


@pytest.mark.parametrize(
    ("part", "code", "told"),
    [
        (
            "SEGMENTS",
            "None",
            "the annotation scheme of own:advisory failed (TypeError: 'NoneType' object is not iterable",
        ),
        ("READ", "exit(0)", "the annotation scheme of own:advisory failed (SystemExit: 0); stored responses are kept"),
        ("READ", "[[]]", "the annotation scheme of own:advisory failed (ValueError: zip() argument 2 is shorter"),
        ("WAYS", "1 / 0", "`presentations` of own:advisory failed (ZeroDivisionError: division by zero)"),
        ("WAYS", "[]", "`presentations` of own:advisory gave [] for "),
        ("WAYS", "[{'first': 1}]", "`presentations` of own:advisory gave [{'first': 1}] for "),
    ],
)
def test_code_of_a_task_that_goes_wrong_is_one_line(
    tmp_path: Path, equivox: Cli, part: str, code: str, told: str
) -> None:
    text = SCHEME
    for name, fine in PARTS.items():
        text = text.replace(name, code if name == part else fine)
    (tmp_path / "own.py").write_text(text)
    asked = ("run", "simulated:random", tmp_path / "own.py", "--data", "sample", "--limit", 4, "--output")
    code_, out, err = equivox(*asked, tmp_path / "run")
    assert (code_, out, err.count("\n")) == (1 if "failed (" in told else 2, "", 1)
    assert told in err


@pytest.mark.parametrize("value", [Value("job", " ", ""), Value("job", 5, "5"), Value("mood", "happy", "happy")])
def test_what_a_tool_may_not_say_has_failed(value: Value) -> None:
    class Odd(Tool):
        def read(self, segments: Sequence[Segment]) -> Iterable[Sequence[Value] | None]:
            # Which rule decided is no attribute, and may be said.
            return [[Value("job", "baker", "a baker"), Value("rule", "words", "")], [value], None]

    jobs = [replace(job, segment=replace(job.segment, tool=Odd())) for job in three_jobs()]
    found = {one.key: (one.status, len(one.values)) for one in run_jobs(jobs, Noting())}
    assert found == {"a": ("parsed", 2), "b": ("failed", 0), "c": ("unparsed", 0)}


def test_what_was_not_asked_yet_is_missing_and_has_not_failed(tmp_path: Path) -> None:
    (task,) = resolve_tasks("vibe_gender:advisory")
    plan = make_plan([task], {"crema_d": open_corpus(task.data, "sample")}, IDENTITY, limit=4)
    write_table(tmp_path / "plan.parquet", plan.table)
    annotate(tmp_path, [task], Noting(), engine="fake")
    assert [row.status for row in sample_rows(tmp_path, [task], "noting")[task.name]] == ["missing"] * 4


def test_metadata_of_some_samples_are_kept_for_them(tmp_path: Path) -> None:
    (task,) = resolve_tasks("vibe_gender:advisory")
    corpus = open_corpus(task.data, "sample")
    samples = [
        replace(sample, columns={**sample.columns, "note": "first" if place == 0 else None, "empty": None})
        for place, sample in enumerate(corpus.samples)
    ]
    noted = replace(task, metadata=("note", "empty"))
    plan = make_plan([noted], {"crema_d": replace(corpus, samples=tuple(samples))}, IDENTITY)
    write_table(tmp_path / "plan.parquet", plan.table)
    annotate(tmp_path, [noted], Noting(), engine="fake")
    rows = sample_rows(tmp_path, [noted], "noting")[task.name]
    assert {row.sample_id: dict(row.metadata) for row in rows if row.metadata} == {
        samples[0].sample_id: {"note": "first"}
    }


def test_a_failed_annotation_is_asked_again_on_request_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = resolve_tasks("vibe_gender:advisory")
    execute(RunSpec(model="simulated:random", tasks=[task], output=tmp_path, data="sample", limit=4, options=FEW))
    seen: list[Event] = []
    annotate(tmp_path, [task], Noting("failed"), engine="simulated", progress=seen.append)
    # A response is done when it has no further question; a fifth of the round is kept for finding out.
    assert [(event.done, event.total, event.failed) for event in seen] == [
        (0, 0, 0), (0, 4, 0), (0, 4, 1), (1, 4, 2), (2, 4, 3), (3, 4, 4), (4, 4, 4),
    ]  # fmt: skip
    annotator = Noting("parsed")
    monkeypatch.setattr("equivox.run.pipeline.open_annotator", lambda name, workers: annotator)
    asked = []
    for again in (
        lambda: annotate(tmp_path, [task], annotator, engine="simulated"),
        lambda: annotate_run(tmp_path, "noting", FEW),
        lambda: annotate_run(tmp_path, "noting", FEW, redo={"failed"}),
        lambda: annotate_run(tmp_path, "noting", FEW, redo={"failed"}),
    ):
        again()
        asked.append(len(annotator.asked))
    assert asked == [0, 0, 4, 4]
    assert {row.status for row in sample_rows(tmp_path, [task], "noting")[task.name]} == {"parsed"}


def test_a_question_about_a_finding_is_asked_once_and_its_answer_is_kept(tmp_path: Path) -> None:
    def question(text: str) -> Segment:
        return Segment(name="why", text=text, attributes=(JOB,))

    class Counted(Noting):
        usage: Mapping[str, float] = {}

        def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
            for annotation in super().annotate(jobs):
                self.usage = {"requests": 2 + len(self.asked)}
                yield annotation

    seen: list[Event] = []
    annotator = Counted("parsed")
    annotator.usage = {"requests": 2}  # of an earlier stage
    ask(tmp_path, [question("one"), question("two"), question("one")], annotator, progress=seen.append)
    assert annotator.asked == ["one", "two"]
    assert [(event.stage, event.done, event.total) for event in seen] == [("follow up", n, 2) for n in range(3)]
    ask(tmp_path, [question("two"), question("three")], annotator)
    assert annotator.asked == ["one", "two", "three"]
    folder = annotations_folder(tmp_path, "noting")
    assert len(stored_follow_ups(tmp_path, "noting")) == 3 and read_usage(folder) == {"requests": 3}
    assert {path.name for path in folder.glob("*-0*")} == {"shard-000001.parquet", "shard-000002.parquet"}


def test_an_annotator_that_is_no_rule_is_asked_about_the_findings_of_a_family(tmp_path: Path) -> None:
    def questions(members: Members, options: ScoringOptions) -> list[Segment]:
        return [
            Segment(name="why", text=f"{task.name}: {len(samples)}", attributes=(JOB,)) for task, samples in members
        ]

    (task,) = resolve_tasks("vibe_gender:advisory")
    asking = replace(task, metric=replace(task.metric, follow_up=FollowUp(questions=questions)))
    plan = make_plan([task], {"crema_d": open_corpus(task.data, "sample")}, IDENTITY, limit=4)
    write_table(tmp_path / "plan.parquet", plan.table)
    for annotator, tasks in ((Noting(), [task]), (Noting(), [asking])):
        annotate(tmp_path, tasks, annotator, engine="fake")
        follow_up(tmp_path, tasks, annotator, FEW)
        assert annotator.asked == (["vibe_gender:advisory: 4"] if tasks == [asking] else [])


def test_a_question_that_failed_has_no_answer(tmp_path: Path) -> None:
    with Store(annotations_folder(tmp_path, "judge"), annotation_schema()) as store:
        for key, response, status in (("a", "", "parsed"), ("b", "", "failed"), ("c", "r", "parsed")):
            job = Job(key=key, response_key=response, task="t", segment=Segment(name="q", text="", attributes=(JOB,)))
            store.append(job.annotated(status).as_record())  # type: ignore[arg-type]
    assert set(stored_follow_ups(tmp_path, "judge")) == {"a"}
    # An annotator that somebody added may say nothing of why it failed; that it failed counts.
    assert count_annotation_failures(tmp_path, "judge")[0] == {"no reason given": 1}


@pytest.mark.parametrize("task", ["badf_two:gender"])
def test_rules_are_asked_no_questions_about_findings(task: str, tmp_path: Path) -> None:
    seen: list[Event] = []
    tasks = resolve_tasks(task)
    execute(RunSpec(model="simulated:biased", tasks=tasks, output=tmp_path, data="sample", limit=8, options=FEW),
            progress=seen.append)  # fmt: skip
    assert {event.stage for event in seen} == {"generate", "annotate", "score"}


def test_a_table_has_the_columns_of_all_its_rows(tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", [{"a": 1}, {"a": 2, "b": "x"}])
    assert (tmp_path / "table.csv").read_text().splitlines() == ['"a","b"', "1,", '2,"x"']
