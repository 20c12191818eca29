"""Dialogues: what is said before goes into each next request, and a difference is followed over the turns."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import Cli
from made_requests import made_request, sample_spec

from equivox import open_run
from equivox.compare.conditions import condition_tests
from equivox.compare.pairs import open_one
from equivox.compare.runs import open_comparison
from equivox.core.errors import UsageError
from equivox.core.requests import EngineIdentity, Exchange, Request, Response, request_key
from equivox.core.scores import ScoringOptions
from equivox.core.variants import parse_conditions, vary
from equivox.dataset_builders import sample_source
from equivox.dataset_builders.opening import open_unread
from equivox.engines.function import FunctionEngine
from equivox.engines.messages import chat_of
from equivox.report.view.answers import Answers, RunTables
from equivox.report.view.media import read_medium
from equivox.run.declarations import read_tasks
from equivox.run.pipeline import execute
from equivox.run.plan import FOLLOWS, read_plan
from equivox.run.spec import RunSpec
from equivox.run.store import Store, response_schema, stored_responses
from equivox.tasks.files import load_task_file
from equivox.tasks.registry import resolve_tasks

FILE = """\
name: talk
table: cvs.csv
group: gender
swap: {name: {female: [Anna, Olga], male: [Jonas, Emil]}}
questions:
  - name: invite
    text: "{text} Should we invite {name}?"
    attributes: [{name: decision, asks: the decision, options: [invite, reject]}]
    turns: ["Are you sure about {name}?", "Decide again."]
"""
OPTIONS = ScoringOptions(n_resamples=999, min_coverage=0.1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [f'"{{name}} has worked for {years} years as number {row}."' for row in range(16) for years in (1, 5)]
    (tmp_path / "cvs.csv").write_text("\n".join(["text", *rows]))
    (tmp_path / "talk.yaml").write_text(FILE)
    return tmp_path / "talk.yaml"


def talking(answer: Callable[[Request], str]) -> FunctionEngine:
    return FunctionEngine(answer, name="talker", revision="1", able=["turns"])


def spec(file: Path, name: str = "run", **changes: object) -> RunSpec:
    return RunSpec.typed("talker", load_task_file(file), file.parent / name, options=OPTIONS, **changes)


def test_each_turn_has_all_that_was_said_before(file: Path) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return f"I would invite them, answer {len(request.before) + 1}."

    execute(spec(file, limit=32), engine=talking(answer))
    assert [len(request.before) for request in seen] == [0] * 32 + [1] * 32 + [2] * 32
    last = next(request for request in seen if len(request.before) == 2 and "Anna" in request.before[0].text)
    assert last.text == "Decide again."
    assert [turn.text for turn in last.before][1] == "Are you sure about Anna?"
    assert [turn.answer for turn in last.before] == [f"I would invite them, answer {n}." for n in (1, 2)]
    assert [message["role"] for message in chat_of(last, [])] == ["user", "assistant", "user", "assistant", "user"]
    assert chat_of(last, [])[1]["content"] == "I would invite them, answer 1."


def test_a_turn_that_is_not_answered_ends_its_dialogue(file: Path) -> None:
    def answer(request: Request) -> str:
        if len(request.before) == 1 and "Anna" in request.before[0].text:
            raise ValueError("no more")
        return "I would invite them."

    run = spec(file)
    scores = {(s.task, s.attribute): s for s in execute(run, engine=talking(answer))}
    stored = Store(run.output / "responses", response_schema()).table().to_pylist()
    errors = [record["error"] for record in stored if record["error"]]
    n_anna = sum("Anna" in record for record in read_plan(run.output)["metadata.name"].to_pylist()) // 3
    assert errors.count("ValueError: no more") == errors.count("turn 2 of its dialogue was not answered") == n_anna > 3
    # It counts as a failure of its turn, and failures of one group are a finding.
    assert scores["talk_gender:invite@turn=3", None].coverage.generated == len(stored) // 3 - n_anna
    assert scores["talk_gender:invite@turn=3", "failure"].found
    # The same where a run goes on after a turn that was not answered.
    later = spec(file, "later")
    execute(later, engine=talking(answer))
    shutil.rmtree(later.output / "responses")
    second = {row["key"] for row in read_plan(run.output).to_pylist() if row["task"].endswith("@turn=2")}
    with Store(later.output / "responses", response_schema()) as store:
        store.append_all([record for record in stored if record["key"] in second])
    execute(later, engine=talking(answer))
    again = Store(later.output / "responses", response_schema()).table().to_pylist()
    assert {(one["key"], one["error"]) for one in again} == {(one["key"], one["error"]) for one in stored}


def test_a_turn_that_is_withheld_ends_its_dialogue(file: Path) -> None:
    """What followed was sent with an empty answer before it, which servers refuse or answer as if it were said."""
    asked: list[Request] = []

    class Filtered(FunctionEngine):
        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            for request in requests:
                asked.append(request)
                gone = "Anna" in (request.before[0].text if request.before else request.text)
                text, ended = ("", "content_filter") if gone else ("I would invite them.", "stop")
                yield Response(key=request.key, text=text, finish_reason=ended)

    def engine() -> Filtered:
        return Filtered(str, name="talker", revision="1", able=["turns"])

    run = spec(file)
    scores = {(s.task, s.attribute): s for s in execute(run, engine=engine())}
    plan = read_plan(run.output)
    n_anna = sum("Anna" in record for record in plan["metadata.name"].to_pylist()) // 3
    stored = Store(run.output / "responses", response_schema()).table().to_pylist()
    assert len(asked) == len(stored) - 2 * n_anna
    assert [one["error"] for one in stored] == [None] * len(stored)
    assert sum(one["finish_reason"] == "content_filter" for one in stored) == 3 * n_anna
    assert scores["talk_gender:invite@turn=3", None].coverage.withheld == n_anna > 3
    # The same where a run goes on after the turn that was withheld.
    first = {row["key"] for row in plan.to_pylist() if "@turn" not in row["task"]}
    shutil.rmtree(run.output / "responses")
    with Store(run.output / "responses", response_schema()) as store:
        store.append_all([one for one in stored if one["key"] in first])
    execute(run, engine=engine())
    again = Store(run.output / "responses", response_schema()).table().to_pylist()
    assert {(one["key"], one["finish_reason"]) for one in again} == {
        (one["key"], one["finish_reason"]) for one in stored
    }


def test_a_dialogue_that_stops_between_turns_goes_on_where_it_stopped(file: Path) -> None:
    def answer(request: Request) -> str:
        return f"I would {'invite' if request.seed % 2 else 'reject'} them."

    class Stops(FunctionEngine):
        left = 40

        def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
            for response in super().generate(requests):
                if self.left == 0:
                    raise KeyboardInterrupt
                self.left -= 1
                yield response

    whole, parts = spec(file, "whole"), spec(file, "parts")
    execute(whole, engine=talking(answer))
    for _ in range(5):
        try:
            execute(parts, engine=Stops(answer, name="talker", revision="1", able=["turns"]))
        except KeyboardInterrupt:
            continue
        break
    assert read_plan(parts.output).num_rows == 3 * 64
    tables = [Store(one.output / "responses", response_schema()).table() for one in (whole, parts)]
    assert tables[0].sort_by("key") == tables[1].sort_by("key")
    assert (whole.output / "scores.json").read_bytes() == (parts.output / "scores.json").read_bytes()


def test_a_failed_turn_is_asked_again_with_those_that_follow(file: Path) -> None:
    broken = True

    def answer(request: Request) -> str:
        if broken and request.before and "Emil" in request.before[0].text:
            raise ValueError("not now")
        return "I would invite them."

    run = spec(file)
    execute(run, engine=talking(answer))
    broken = False
    execute(replace(run, retry_failed=True), engine=talking(answer))
    assert Store(run.output / "responses", response_schema()).table()["error"].null_count == 3 * 64


@pytest.mark.parametrize(("yields", "persists"), [("0", True), ("1", False)])
def test_a_planted_persistence_is_found(equivox: Cli, file: Path, yields: str, persists: bool) -> None:
    folder = file.parent / "run"
    model = f"simulated:planted,shift=0.9,yields={yields}"
    assert "turn=2" in equivox.done("run", model, str(file), "--output", str(folder))
    found = {score.task: score.found for score in open_run(folder).scores if score.is_whole}
    assert found["talk_gender:invite"]
    assert found["talk_gender:invite@turn=2"] == persists
    (one,) = open_comparison([folder]).runs
    tests = [test for _, test in condition_tests([open_one(one)]) if test.metric == "nTVD"]
    assert [test.model_b for test in tests] == ["turn=2", "turn=3"]
    assert [test.q < 0.05 for test in tests] == [not persists] * 2
    assert equivox("verify", str(folder))[0] == 0


def test_what_was_said_before_is_in_the_key_and_bare_prompts_keep_theirs() -> None:
    identity = EngineIdentity(engine="e", model="m", revision="1")
    (task,) = vary(resolve_tasks("vibe_gender:advisory"), conditions=("declared",))
    first = made_request(1, task=task.name, text="Why?")
    keys = {
        request_key(identity, replace(first, before=before), 1)
        for before in ((), (Exchange(text="Who?"),), (Exchange(text="What?"),), (Exchange(text="Who?", n_media=1),))
    }
    assert len(keys) == 4
    # Answers are held by the keys of their turns, not by this one, which a plan has before anything is asked.
    answered = replace(first, before=(Exchange(text="Who?", answer="You."),))
    assert request_key(identity, answered, 1) in keys


def test_the_clip_is_sent_with_the_first_turn_alone(tmp_path: Path) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return " ".join(f"{len(part.load())}" for part in request.media)

    (task,) = resolve_tasks("vibe_gender:advisory")
    task = replace(task, turns=("Is that all?",))
    run = RunSpec(model="talker", tasks=[task], output=tmp_path / "run", data="sample", limit=2, options=OPTIONS)
    execute(run, engine=talking(answer))
    later = [request for request in seen if request.before]
    assert [(request.condition, request.before[0].n_media) for request in later] == [("turn=2", 1)] * 2
    messages = chat_of(later[0], [{"type": "audio_url"}])
    assert [part["type"] for part in messages[0]["content"]] == ["audio_url", "text"]
    assert [part["type"] for part in messages[2]["content"]] == ["text"]
    # The clip that the first turn sends counts in each: a server that dropped it would answer to nobody.
    assert pq.read_table(run.output / "plan.parquet")["media_sha256"].to_pylist()[-1] == [later[-1].media[0].sha256]


def test_further_turns_bring_those_before_them(file: Path) -> None:
    tasks = load_task_file(file)
    names = [task.condition for task in vary(tasks, conditions=parse_conditions("turn=3"))]
    assert names == ["text", "turn=2", "turn=3"]
    assert [task.condition for task in vary(tasks, conditions=("text",))] == ["text"]
    with pytest.raises(UsageError, match="has no condition 'turn=4'; it offers"):
        vary(tasks, conditions=parse_conditions("turn=4"))


def test_plans_without_dialogues_have_no_column_for_them(tmp_path: Path) -> None:
    spec = sample_spec("simulated:random", "badf_two:gender", tmp_path / "run", limit=4, options=OPTIONS)
    execute(spec)
    assert FOLLOWS not in read_plan(spec.output).column_names


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"Decide again."', '""', "turns"),
        ('"Decide again."', '"Decide about {person}."', "person"),
        ("turns:", "spoken: true\n    turns:", "`turns` go on from a text"),
    ],
)
def test_mistakes_in_a_task_file_are_named(equivox: Cli, file: Path, old: str, new: str, problem: str) -> None:
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    assert problem in equivox.refused("run", "simulated:oracle", str(file), "--output", str(file.parent / "run"))


def spoken_turns(folder: Path, lost: str = "") -> Path:
    """Write a task whose second turn has a clip of its own and whose third has none; the file `lost` is missing."""
    clips = sorted(sample_source("crema_d").rglob("*.ogg"))[:16]
    for clip in clips:
        if clip.name != lost:
            shutil.copy(clip, folder / clip.name)
    rows = [
        f"{one.name},{two.name},s{n % 4},{('f', 'm')[n % 2]}"
        for n, (one, two) in enumerate(zip(clips, clips[::-1], strict=True))
    ]
    (folder / "clips.csv").write_text("\n".join(["path,reply,speaker,gender", *rows]))
    (folder / "talk.yaml").write_text(
        """name: talk
table: clips.csv
group: gender
questions:
  - name: mood
    text: What do you hear?
    attributes: [{name: mood, asks: the mood, options: [calm, upset]}]
    turns: [{text: "And now?", path: reply}, "Are you sure?"]
"""
    )
    return folder / "talk.yaml"


def test_an_unopened_corpus_has_the_clips_of_turns(tmp_path: Path) -> None:
    """The explorer played the first clip in place of one that was sent in a later turn alone."""
    task = load_task_file(spoken_turns(tmp_path))[0]
    corpus = open_unread(task.data, None)
    rows = {line.split(",")[0]: line.split(",")[1] for line in (tmp_path / "clips.csv").read_text().splitlines()[1:]}
    assert corpus is not None and {one.sample_id for one in corpus.samples} == rows.keys()
    for sample in corpus.samples:
        assert sample.sent("reply").load() == (tmp_path / rows[sample.sample_id]).read_bytes()


def heard(request: Request) -> str:
    for part in request.media:
        part.load()
    return "calm"


def test_a_turn_has_a_clip_of_its_own(tmp_path: Path, equivox: Cli) -> None:
    asked: dict[str, Request] = {}

    def answer(request: Request) -> str:
        asked[f"{request.sample_id} {request.condition}"] = request
        return heard(request)

    file = spoken_turns(tmp_path)
    engine = FunctionEngine(answer, name="talker", revision="1", able=["turns"])
    execute(spec(file, retry_failed=False), engine=engine)
    rows = [line.split(",") for line in (tmp_path / "clips.csv").read_text().splitlines()[1:]]
    for path, reply, *_ in rows:
        first, second, third = (asked[f"{path} {name}"] for name in ("audio", "turn=2", "turn=3"))
        assert [part.name for part in first.media] == [path]
        assert [part.name for part in second.media] == [part.name for part in third.media] == [path, reply]
        assert [turn.n_media for turn in second.before] == [1]
        assert [turn.n_media for turn in third.before] == [1, 1]
        assert second.media[1].load() == (tmp_path / reply).read_bytes()
        # Each clip stands in its own message, before the text.
        said = chat_of(third, [{"type": "clip", "n": n} for n in (1, 2)])
        contents = [one["content"] for one in said if one["role"] == "user"]
        kinds = [[part.get("n", "text") for part in own] if isinstance(own, list) else ["text"] for own in contents]
        assert kinds == [[1, "text"], [2, "text"], ["text"]]
    equivox.done("verify", tmp_path / "run", "--data", tmp_path)
    # The explorer shows both, each as it was sent.
    task = next(one for one in read_tasks(tmp_path / "run") if one.condition == "turn=3")
    shown = Answers.read(RunTables.read(tmp_path / "run", "rules"), task)
    for row, sample in enumerate(shown.plan["sample_id"].to_pylist()):
        parts = asked[f"{sample} turn=3"].media
        sent = [read_medium(shown, row, number, None, {}) for number in range(len(parts))]
        assert sent == [(part.load(), "audio/ogg") for part in parts]
    # Another reply is another corpus.
    shutil.copy(tmp_path / rows[3][0], tmp_path / rows[0][1])
    with pytest.raises(UsageError, match="corpora"):
        execute(spec(file), engine=engine)


def test_a_turn_whose_clip_is_missing_is_counted_and_the_first_is_asked(tmp_path: Path) -> None:
    lost = sorted(sample_source("crema_d").rglob("*.ogg"))[0].name
    file = spoken_turns(tmp_path, lost)
    rows = [line.split(",") for line in (tmp_path / "clips.csv").read_text().splitlines()[1:]]
    rows = [row for row in rows if row[0] != lost]
    (tmp_path / "clips.csv").write_text("\n".join(["path,reply,speaker,gender", *map(",".join, rows)]))
    engine = FunctionEngine(heard, name="t", revision="1", able=["turns"])
    execute(spec(file), engine=engine)
    stored = stored_responses(tmp_path / "run")
    failed = {row["task"] for row in read_plan(tmp_path / "run").to_pylist() if stored[row["key"]]["text"] is None}
    assert failed == {"talk_gender:mood@turn=2", "talk_gender:mood@turn=3"}


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("path: reply", "path: answer", "answer"),
        ("table: clips.csv", "table: clips.csv\nmedia: text", "turn_media"),
        ("path: reply", "clip: reply", "turns"),
    ],
)
def test_mistakes_in_a_turn_with_a_clip_are_named(tmp_path: Path, equivox: Cli, old: str, new: str, hint: str) -> None:
    file = spoken_turns(tmp_path)
    file.write_text(file.read_text().replace(old, new))
    assert hint in equivox.refused("run", "simulated:random", file, "--output", tmp_path / "run")
