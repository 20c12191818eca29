"""Backends that are not equivox's: text is scored as `equivox run` scores it, media that are not sent stop the task."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")

from evaluating import MODEL_FILE, Evaluated, assert_same, flat_by_task
from made_requests import sample_spec

from equivox.core.errors import EquivoxError
from equivox.dataset_builders.opening import open_corpus
from equivox.engines import EngineIdentity, open_engine
from equivox.engines.function import FunctionEngine
from equivox.integrations.lighteval.table import lighteval_tasks
from equivox.run.pipeline import execute
from equivox.run.plan import make_plan
from equivox.run.store import stored_responses

Lighteval = Callable[..., Evaluated]
REPLAY = Path(__file__).with_name("replay.py")
PAIRS = "badf_two:gender,badf_two:race"
SINGLES = "genres_single_standin:cs,genres_single_standin:em"


def answers_of(model: str, tasks: str, *, limit: int) -> dict[str, str]:
    """Return what a simulated model answers, by task and position; a request that fails has an empty answer."""
    chosen = [lighteval_tasks()[name] for name in tasks.split(",")]
    corpora = {task.data.corpus: open_corpus(task.data, "sample") for task in chosen}
    engine = open_engine(model, chosen)
    answers = {}
    for task in chosen:
        requests = make_plan([task], corpora, engine.identity, limit=limit).requests()
        texts = {response.key: response.text or "" for response in engine.generate(requests)}
        answers |= {f"{task.name}|0 {place}": texts[request.key] for place, request in enumerate(requests)}
    return answers


@pytest.fixture
def replayed(lighteval: Lighteval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Evaluated]:
    def call(answers: dict[str, str], tasks: str, *, limit: int | None, **settings: object) -> Evaluated:
        (tmp_path / "answers.json").write_text(json.dumps(answers), "utf-8")
        monkeypatch.setenv("REPLAY", str(tmp_path / "answers.json"))
        with monkeypatch.context() as patch:
            # Stories of simulated models have rules of their own, which no other engine's responses are annotated by.
            patch.setattr("equivox.run.annotating.SIMULATED", "lighteval")
            return lighteval("custom", "stock", REPLAY, tasks, limit=limit, **settings)

    return call


@pytest.mark.parametrize("tasks", [PAIRS, SINGLES])
@pytest.mark.parametrize("model", ["simulated:planted,shift=0.5", "simulated:random,fail=0.1"])
def test_scores_of_text_are_those_of_equivox_run(
    replayed: Callable[..., Evaluated], tmp_path: Path, tasks: str, model: str
) -> None:
    limit = 10
    evaluated = replayed(answers_of(model, tasks, limit=limit), tasks, limit=limit)
    spec = sample_spec(model, tasks, tmp_path / "own", limit=limit)
    expected = flat_by_task(execute(spec))
    assert_same(evaluated.results, expected)
    for numbers in expected.values():
        assert not math.isnan(next(iter(numbers.values())))
        # What failed came as an empty answer, and is not one.
        assert (numbers["coverage_generated"] < numbers["coverage_requested"]) == ("fail" in model)


@pytest.mark.paper
def test_scores_of_real_stories_are_those_of_equivox_run(
    replayed: Callable[..., Evaluated], tmp_path: Path, reference_data: Path
) -> None:
    stories = [
        json.loads(line)["response"]
        for line in (reference_data / "genres" / "responses" / "qwen2v5VL3b_mf_cs.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    told: dict[tuple[str, str], str] = {}
    answers = {}
    for name in SINGLES.split(","):
        task = lighteval_tasks()[name]
        corpora = {task.data.corpus: open_corpus(task.data, "sample")}
        identity = EngineIdentity(engine="none", model="none", revision="")
        for place, request in enumerate(make_plan([task], corpora, identity).requests()):
            story = stories[len(told) % len(stories)]
            told[request.sample_id, request.text] = answers[f"{name}|0 {place}"] = story
    evaluated = replayed(answers, SINGLES, limit=None)
    engine = FunctionEngine(lambda asked: told[asked.sample_id, asked.text], name="stories", revision="1")
    spec = sample_spec("stories", SINGLES, tmp_path / "own")
    expected = flat_by_task(execute(spec, engine=engine))
    assert_same(evaluated.results, expected)
    assert len(told) >= 32
    assert all(numbers["coverage_generated"] == len(told) / 2 for numbers in expected.values())


def test_thinking_is_no_answer(replayed: Callable[..., Evaluated]) -> None:
    answers = answers_of("simulated:biased", PAIRS, limit=2)
    thought = {place: f"<think>Whoever this is.</think>{text}" for place, text in answers.items()}
    plain = replayed(answers, PAIRS, limit=2)
    marked = replayed(thought, PAIRS, limit=2, runs="thought")
    stored = list(stored_responses(next((marked.output.parent / "thought").iterdir())).values())
    assert {record["thinking"] for record in stored} == {"Whoever this is."}
    assert_same(marked_results(marked), marked_results(plain, last=False))


def marked_results(evaluated: Evaluated, *, last: bool = True) -> dict[str, dict[str, float]]:
    files = sorted(evaluated.output.glob("results/**/results_*.json"))
    return dict(json.loads(files[-1 if last else 0].read_text("utf-8"))["results"])


def test_repeats_of_a_greedy_backend_count_once(
    replayed: Callable[..., Evaluated], caplog: pytest.LogCaptureFixture
) -> None:
    answers = answers_of("simulated:biased", PAIRS, limit=4)
    # The 20 repeats of an item stand next to each other.
    greedy = {place: answers[f"{place.split()[0]} {int(place.split()[1]) // 20 * 20}"] for place in answers}
    with caplog.at_level(logging.WARNING):
        numbers = replayed(greedy, PAIRS, limit=4).results["badf_two:gender|0"]
    # 4 items asked 20 times are 4 answers, not 80.
    assert numbers["coverage_requested"] == 4
    assert "badf_two:gender asks each sample 20 times, but all repeats have the same answer" in caplog.text
    assert "generation_parameters={temperature: 0.9, top_p: 1, frequency_penalty: 0.6}" in caplog.text


def test_why_a_score_is_undefined_is_logged(
    replayed: Callable[..., Evaluated], caplog: pytest.LogCaptureFixture
) -> None:
    silent = dict.fromkeys(answers_of("simulated:biased", PAIRS, limit=2), " \n")
    with caplog.at_level(logging.WARNING):
        numbers = replayed(silent, PAIRS, limit=2).results["badf_two:gender|0"]
    assert math.isnan(numbers["associations"])
    assert (numbers["coverage_requested"], numbers["coverage_generated"]) == (40, 0)
    assert "badf_two:gender: associations is undefined (NaN): no story could be annotated" in caplog.text
    assert "badf_two:gender: 40 of 40 requests have no answer; they count as failed" in caplog.text


@pytest.mark.parametrize(
    ("task", "needs"),
    [("genres_standin:cs", "image"), ("badf_openbox:gender", "hidden states"), ("vibe_gender:story", "audio")],
)
def test_what_a_backend_does_not_send_stops_the_task(
    lighteval: Lighteval, tmp_path: Path, task: str, needs: str
) -> None:
    with pytest.raises(
        EquivoxError, match=f"{task} needs {needs}, which this backend of lighteval does not send"
    ) as error:
        lighteval("custom", "stock", REPLAY, task, limit=2)
    assert str(MODEL_FILE) in str(error.value)
    assert not list(tmp_path.glob("out/results/**/*.json"))


def test_a_backend_that_never_reads_the_text_is_found_out_too(
    lighteval: Lighteval, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It answers without the prompt, and marks the document as if it had sent something.
    import lighteval.models.dummy.dummy_model as dummy
    from lighteval.models.model_output import ModelResponse

    def answers(self: object, docs: list[object]) -> list[ModelResponse]:
        for doc in docs:
            doc.arrived = True  # type: ignore[attr-defined]
        return [ModelResponse(text=["A nurse."]) for _ in docs]

    monkeypatch.setattr(dummy.DummyModel, "greedy_until", answers)
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters

    monkeypatch.setenv("EQUIVOX_DATA", "sample")
    monkeypatch.setenv("EQUIVOX_LIMIT", "4")
    pipeline = Pipeline(
        tasks="vibe_gender:story",
        pipeline_parameters=PipelineParameters(
            launcher_type=ParallelismManager.NONE, custom_tasks_directory="equivox.tasks"
        ),
        evaluation_tracker=EvaluationTracker(output_dir="out"),
        model_config=dummy.DummyModelConfig(seed=1),
    )
    with pytest.raises(EquivoxError, match="vibe_gender:story needs audio"):
        pipeline.evaluate()


def test_a_tiny_llama_through_accelerate(lighteval: Lighteval, model: Callable[[str], str]) -> None:
    arguments = f"model_name={model('llama')},max_length=640,batch_size=4"
    evaluated = lighteval("accelerate", arguments, "badf_two_greedy:gender", limit=4)
    details = evaluated.details("badf_two_greedy:gender")
    assert len(details) == 4
    assert all(row["model_response"]["text"][0] for row in details)
    numbers = evaluated.results["badf_two_greedy:gender|0"]
    assert (numbers["coverage_requested"], numbers["coverage_generated"]) == (4, 4)
    # Its words are noise: no story can be read, which is not the same as a story without associations.
    assert numbers["coverage_used"] == 0
    assert math.isnan(numbers["associations"])


def test_the_command_ends_with_one_sentence_and_another_exit_code(model: Callable[[str], str], tmp_path: Path) -> None:
    called = subprocess.run(
        [
            Path(sys.executable).with_name("lighteval"),
            "accelerate",
            f"model_name={model('llama')}",
            "vibe_gender:story",
            "--custom-tasks=equivox.tasks",
            "--output-dir=out",
        ],
        cwd=tmp_path,
        env={**os.environ, "EQUIVOX_DATA": "sample", "EQUIVOX_LIMIT": "4"},
        capture_output=True,
        text=True,
    )
    assert called.returncode == 1
    assert "Traceback" not in called.stderr
    last = called.stderr.rstrip().splitlines()[-1]
    assert last.startswith("equivox: vibe_gender:story needs audio, which this backend of lighteval does not send")
    assert "ntvd" not in called.stdout
    assert not (tmp_path / "out" / "results").exists()
