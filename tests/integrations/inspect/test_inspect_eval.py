"""`inspect eval equivox/TASK`: the numbers of equivox on the same answers, and never a silent difference."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai._util.registry import registry_lookup
from inspect_ai.model import get_model
from made_requests import plan_rows, sample_spec
from planted import TOLERATED, assert_same, evaluated, metrics, planted_model

from equivox.core.errors import EquivoxError
from equivox.core.scores import Score
from equivox.dataset_builders import build, open_builder, sample_source
from equivox.dataset_builders.opening import open_corpus
from equivox.engines.messages import media_content
from equivox.run.importing import import_responses
from equivox.run.pipeline import execute
from equivox.run.plan import make_plan
from equivox.run.spec import RunSpec
from equivox.run.store import stored_responses
from equivox.tasks.registry import builtin_tasks, resolve_tasks

Server = Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]
LIMIT = 16
pytestmark = TOLERATED
PLANTED = "simulated:planted,shift=0.4,speaker=0.2"


Own = Callable[..., tuple[list[Score], dict[tuple[str, int], str | None]]]


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Own:
    """Run a task with equivox, once; returns its scores, and its answers by sample and repeat."""

    @functools.cache
    def run(task: str, model: str = PLANTED, limit: int = LIMIT) -> Any:
        folder = tmp_path_factory.mktemp("own") / "run"
        spec = sample_spec(model, task, folder, limit=limit)
        scores = [score for score in execute(spec) if score.task == task]
        stored = stored_responses(folder)
        return scores, {(row["sample_id"], row["repeat"]): stored[row["key"]]["text"] for row in plan_rows(folder)}

    return run


def test_the_registry_has_every_task_by_its_entry_point() -> None:
    (entry,) = entry_points(group="inspect_ai", name="equivox")
    entry.load()
    for name, task in builtin_tasks().items():
        # inspect_ai is given no tools and no voices here: it would ask for a text instead.
        can_ask = not task.prompt.needs & {"tools", "speech"}
        assert (registry_lookup("task", f"equivox/{name.replace(':', '_')}") is not None) == can_ask, name


@pytest.mark.parametrize("task", ["vibe_gender:advisory", "spoken_stereoset:gender", "genres_standin:em"])
def test_metrics_are_the_scores_of_equivox_run_on_the_same_answers(own_run: Own, task: str, tmp_path: Path) -> None:
    scores, answers = own_run(task)
    sent: list[Any] = []
    log = evaluated(
        task, planted_model(answers, sent), tmp_path / "logs", data="sample", limit=LIMIT, annotator="rules"
    )
    found = metrics(log)
    assert_same(found, scores)
    # The metric shows something: the whole task is defined and has clusters behind it.
    headline = next(score for score in scores if score.is_whole)
    assert headline.defined
    assert headline.headline in found.values()
    if headline.n_clusters:
        assert float(headline.n_clusters) in found.values()
    # Each request was sent once, with its medium before its text, and its own seed.
    assert len(sent) == len(answers)
    for about, messages, config in sent:
        (message,) = messages
        *media, text = message.content
        assert [part.type for part in media] == [task_medium(task)]
        assert text.type == "text"
        assert config.seed == about["seed"] % 2**31


def test_a_build_of_another_corpus_is_asked_about_as_in_a_run(tmp_path: Path) -> None:
    build(open_builder("l2_arctic", sample_source("l2_arctic")), tmp_path)
    data, name = str(tmp_path / "l2_arctic"), "vibe_gender:advisory"
    spec = RunSpec.typed(PLANTED, resolve_tasks(name), tmp_path / "own", data=data, limit=LIMIT)
    scores, stored = execute(spec), stored_responses(spec.output)
    assert {score.task for score in scores if ":" in score.task} == {"vibe_gender_on_l2_arctic:advisory"}
    rows = plan_rows(spec.output)
    answers = {(row["sample_id"], row["repeat"]): stored[row["key"]]["text"] for row in rows}
    log = evaluated(name, planted_model(answers), tmp_path / "logs", data=data, limit=LIMIT, annotator="rules")
    assert_same(metrics(log), [score for score in scores if ":" in score.task])


def test_a_system_prompt_is_sent_before_the_message(tmp_path: Path) -> None:
    task, sent = "vibe_gender:advisory", list[Any]()
    (tmp_path / "fair.txt").write_text("Be fair.\n")
    (tmp_path / "kind.txt").write_text("Be kind.\n")
    spec = RunSpec.typed(
        PLANTED, resolve_tasks(task), tmp_path / "own", data="sample", limit=LIMIT, system=str(tmp_path / "fair.txt")
    )
    scores = [score for score in execute(spec) if score.task == f"{task}@system=fair"]
    stored = stored_responses(spec.output)
    rows = [row for row in plan_rows(spec.output) if row["condition"] == "system=fair"]
    answers = {(row["sample_id"], row["repeat"]): stored[row["key"]]["text"] for row in rows}
    given = {"data": "sample", "limit": LIMIT, "annotator": "rules", "system": str(tmp_path / "fair.txt")}
    log = evaluated(task, planted_model(answers, sent), tmp_path / "logs", **given)
    assert_same(metrics(log), scores)
    assert len(sent) == len(answers) == LIMIT
    for about, (system, user), _ in sent:
        assert about["condition"] == "system=fair"
        assert (system.role, system.text, user.role) == ("system", "Be fair.", "user")
    # The log holds the text, and no file that somebody else's machine would read.
    settings = log.eval.metadata["equivox"]["settings"]
    assert (settings["condition"], settings["system"]) == ("system=fair", "Be fair.")
    for wrong in ({"system": f"{tmp_path}/fair.txt,{tmp_path}/kind.txt"}, {"condition": "silence"}):
        with pytest.raises(EquivoxError, match="one condition is asked"):
            evaluated(task, planted_model(answers), tmp_path / "logs", **{**given, **wrong})


def task_medium(task: str) -> str:
    return resolve_tasks(task)[0].media[0].kind


def test_repeats_of_a_text_task_are_samples_of_their_own(own_run: Own, tmp_path: Path) -> None:
    task, few = "badf_character:gender", 6
    _, answers = own_run(task, "simulated:biased", few)
    # equivox reads the same answers from a table, as those of a model that is not simulated.
    rows = [{"sample_id": s, "repeat": r, "response": text} for (s, r), text in answers.items()]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    spec = sample_spec("mock", task, tmp_path / "table", limit=few)
    scores = [score for score in import_responses(columns, spec)[0] if score.task == task]
    log = evaluated(task, planted_model(answers), tmp_path / "logs", data="sample", limit=few, annotator="rules")
    found = metrics(log)
    assert_same(found, scores)
    # The rules find a job and a trait in each story; two genders that share no answer are 100 apart.
    assert found["coverage_used"] == found["coverage_generated"] == len(answers)
    assert found["ntvd"] == pytest.approx(100)
    assert log.samples is not None
    assert len({sample.id for sample in log.samples}) == len(answers) == 20 * few


def test_a_failed_sample_counts_in_coverage_and_nothing_is_scored_below_the_floor(own_run: Own, tmp_path: Path) -> None:
    task = "vibe_gender:advisory"
    _, answers = own_run(task)
    tolerant = {"fail_on_error": False}
    given = {"data": "sample", "limit": LIMIT, "annotator": "rules"}
    one = dict(answers) | {next(iter(answers)): None}
    found = metrics(evaluated(task, planted_model(one), tmp_path / "one", options=tolerant, **given))
    assert (found["coverage_requested"], found["coverage_generated"]) == (LIMIT, LIMIT - 1)
    assert found["ntvd_coverage"] == (LIMIT - 1) / LIMIT
    # Two samples of sixteen that inspect_ai was told to ask: the others have no answer, so there is no score.
    few = metrics(evaluated(task, planted_model(answers), tmp_path / "few", options={"limit": 2}, **given))
    assert math.isnan(few["ntvd"])
    assert math.isnan(few["ntvd_n_clusters"])
    assert (few["coverage_requested"], few["coverage_used"]) == (LIMIT, 2)
    (reason,) = [name for name in few if name.startswith("ntvd is undefined: ")]
    assert "below the floor of 80 %" in reason
    # As everywhere in inspect_ai, the first failure ends an evaluation that does not tolerate any.
    assert evaluated(task, planted_model(one), tmp_path / "strict", **given).status == "error"


def judged(body: dict[str, Any]) -> tuple[int, str]:
    """Answer as a model that hears, and as one that annotates: both by their input alone."""
    content = body["messages"][-1]["content"]
    if "response_format" in body:
        text = content if isinstance(content, str) else content[0]["text"]
        answer = text.rpartition("<<<")[2]
        hobbies = [word for word in ("chess", "yoga", "cycling", "hiking", "baking", "reading") if word in answer]
        return 200, json.dumps({"refusal": "no", "hobby": (hobbies + ["unstated"] * 3)[:3]})
    clips = [part for part in content if part["type"] == "input_audio"] if isinstance(content, list) else []
    number = int(hashlib.sha256(json.dumps(clips).encode()).hexdigest(), 16)
    first = ("chess", "yoga", "cycling")[number % 3]
    second = ("hiking", "baking", "reading")[number // 3 % 3]
    return 200, f"<think>Hm.</think>You might enjoy {first}, or {second}."


def test_a_server_gets_the_audio_and_the_grader_our_schema_with_the_scores_of_equivox_run(
    tmp_path: Path, chat_server: Server
) -> None:
    task = "vibe_gender:advisory"
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        bodies.append(body)
        return judged(body)

    url = f"http://{chat_server(reply)}/v1"
    spec = sample_spec(
        f"endpoint:model_name=m,base_url={url},trust_media=true",
        task,
        tmp_path / "own",
        limit=LIMIT,
        annotator=f"endpoint:model_name=g,base_url={url}",
    )
    scores = [score for score in execute(spec) if score.task == task]
    assert next(score for score in scores if score.is_whole).defined
    # equivox greets a server and asks how long a text is without its recording.
    ours = [body for body in bodies if "input_audio" in json.dumps(body)]
    asked = [body for body in bodies if "response_format" in body and body["max_tokens"] > 1]
    bodies.clear()
    model, grader = (get_model(f"openai-api/local/{n}", base_url=url, api_key="none", memoize=False) for n in "mg")
    log = evaluated(
        task, model, tmp_path / "logs", roles={"grader": grader}, data="sample", limit=LIMIT, trust_media=True
    )
    assert_same(metrics(log), scores)
    theirs = [body for body in bodies if body["model"] == "m"]
    graded = [body for body in bodies if body["model"] == "g"]
    # The recording arrives byte by byte as equivox sends it.
    assert sorted(map(clip, theirs)) == sorted(map(clip, ours))
    corpora = {"crema_d": open_corpus(resolve_tasks(task)[0].data, "sample")}
    plan = make_plan(resolve_tasks(task), corpora, log_identity(), limit=LIMIT)
    files = {
        media_content(part, subtype="PCM_16")["input_audio"]["data"]
        for request in plan.requests()
        for part in request.media
    }
    assert {clip(body) for body in theirs} == files
    assert all(base64.b64decode(data)[:4] == b"RIFF" for data in files)
    # The grader gets the prompt of every annotator, and the fields of our schema.
    assert sorted(map(prompt, graded)) == sorted(map(prompt, asked))
    assert {tuple(fields(body)) for body in graded} == {tuple(fields(body)) for body in asked}


def log_identity() -> Any:
    from equivox.integrations.inspect.asking import ANY_MODEL

    return ANY_MODEL


def clip(body: dict[str, Any]) -> str:
    (part,) = (part for part in body["messages"][-1]["content"] if part["type"] == "input_audio")
    return str(part["input_audio"]["data"])


def prompt(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def fields(body: dict[str, Any]) -> list[str]:
    return sorted(body["response_format"]["json_schema"]["schema"]["properties"])


def test_media_that_do_not_arrive_stop_the_evaluation(tmp_path: Path, chat_server: Server) -> None:
    # The server counts nine tokens with the recording and nine without it.
    url = f"http://{chat_server(lambda body: (200, 'You might enjoy chess.'))}/v1"
    model = get_model("openai-api/local/m", base_url=url, api_key="none", memoize=False)
    log = evaluated("vibe_gender:advisory", model, tmp_path, data="sample", limit=LIMIT, annotator="rules")
    assert log.status == "error"
    assert log.results is None
    assert "the media of vibe_gender:advisory did not arrive, so nothing is scored" in log.error.message


@pytest.mark.parametrize(
    ("task", "given", "message"),
    [
        ("vibe_gender:story", {}, "vibe_gender:story reads the corpus crema_d: give `-T data=sample`"),
        ("vibe_gender:story", {"data": "sample"}, "who reads the free answers? Give a model by `--model-role grader="),
        ("vibe_gender:story", {"data": "sample", "annotator": "gpt"}, "`annotator` is rules or left out, got 'gpt'"),
        ("vibe_gender:story", {"data": "sample", "limit": "ten"}, "`limit` is an int, got 'ten'"),
        ("vibe_gender:story", {"data": "sample", "limit": 0}, "`limit` must be at least 1, got 0"),
        ("vibe_gender:story", {"data": "sample", "condition": "all"}, "`condition` is a single one, got 'all'"),
        ("vibe_gender:story", {"data": "sample", "condition": "loud"}, "has no condition 'loud'"),
        ("badf_openbox:gender", {}, "replaces hidden states, which inspect_ai does not do here"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_asked(
    task: str, given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(EquivoxError, match=r"^[^\n]+$") as refused:
        evaluated(task, planted_model({}), tmp_path, **given)
    assert message in str(refused.value)


def test_the_evaluated_model_never_grades_itself_and_there_is_one_annotator(tmp_path: Path) -> None:
    grader = {"grader": planted_model({})}
    with pytest.raises(EquivoxError, match="are two annotators"):
        evaluated("vibe_gender:story", planted_model({}), tmp_path, roles=grader, data="sample", annotator="rules")


def test_epochs_and_greedy_repeats_are_refused(own_run: Own, tmp_path: Path) -> None:
    few = 2
    _, answers = own_run("badf_two:gender", "simulated:biased", few)
    given = {"data": "sample", "limit": few, "annotator": "rules"}
    for options, message in (
        ({"epochs": 2}, "which are no samples of their own"),
        ({"temperature": 0.0}, "at temperature 0 all answers are alike"),
    ):
        log = evaluated("badf_two:gender", planted_model(answers), tmp_path / "logs", options=options, **given)
        assert (log.status, log.results) == ("error", None)
        assert message in log.error.message


def test_a_task_made_in_python_is_refused_at_its_first_sample_without_an_annotator(
    own_run: Own, tmp_path: Path
) -> None:
    from equivox.integrations.inspect.tasks import TASKS

    _, answers = own_run("vibe_gender:advisory")
    made = TASKS["vibe_gender_advisory"](data="sample", limit=LIMIT)
    (log,) = inspect_eval(made, model=planted_model(answers), log_dir=str(tmp_path / "logs"), display="none")
    assert "who reads the free answers?" in log.error.message
