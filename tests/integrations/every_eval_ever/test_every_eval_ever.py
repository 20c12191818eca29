"""`equivox submit --to every-eval-ever`: valid by the published schema, nothing unknown a number, nothing private."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_requests import sample_spec

from equivox.core.coverage import Coverage
from equivox.core.scores import Score, ScoringOptions
from equivox.dataset_builders.opening import open_corpus
from equivox.integrations.every_eval_ever.results import distance, interval_of, missing
from equivox.run.pipeline import execute
from equivox.run.scoring import read_scores
from equivox.run.store import stored_texts
from equivox.tasks.registry import builtin_tasks

Command = Callable[..., tuple[int, str, str]]
TASK = "vibe_gender:advisory"
LIMIT = 16
HOBBIES = ("chess", "yoga", "golf", "baking")
SECRET = "sk-0123456789abcdef"


def schema(name: str) -> jsonschema.Draft7Validator:
    document = json.loads(Path(__file__).with_name(f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft7Validator.check_schema(document)
    return jsonschema.Draft7Validator(document)


def made(folder: Path, model: str, tasks: str = TASK, **changes: Any) -> Path:
    execute(sample_spec(model, tasks, folder, **{"limit": LIMIT, "options": ScoringOptions(n_resamples=99), **changes}))
    return folder


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a defined score, shared by tests that do not change it."""
    return made(tmp_path_factory.mktemp("shared") / "run", "simulated:planted,shift=0.4")


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def exported(
    equivox: Command, run: Path, out: Path, *given: object
) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Export a run, check the files against the published schemas and against each other, and return their content."""
    code, printed, err = equivox("submit", run, "--to", "every-eval-ever", "-o", out, *given)
    assert (code, err) == (0, "")
    (path,) = out.rglob("*.json")
    (beside,) = out.rglob("*.jsonl")
    assert str(path) in printed and str(beside) in printed
    document = json.loads(path.read_text("utf-8"), parse_constant=refuse)
    content = beside.read_bytes()
    rows = [json.loads(line, parse_constant=refuse) for line in content.decode().splitlines()]
    schema("eval").validate(document)
    row_schema = schema("instance_level_eval")
    for row in rows:
        row_schema.validate(row)
        assert (row["evaluation_id"], row["model_id"]) == (document["evaluation_id"], document["model_info"]["id"])
    # The collection checks these relations too, and refuses files that break them.
    detailed = document["detailed_evaluation_results"]
    assert detailed["file_path"] == beside.relative_to(out).as_posix()
    assert detailed["checksum"] == hashlib.sha256(content).hexdigest()
    assert detailed["total_rows"] == len(rows)
    assert beside.name == f"{path.stem}_samples.jsonl"
    for result in document["evaluation_results"]:
        most = result["metric_config"]["max_score"]
        assert 0 <= result["score_details"]["score"] <= (float("inf") if most == "Infinity" else most)
    return document, rows, path.read_text("utf-8") + content.decode()


def test_scores_are_written_with_interval_number_and_coverage(planted: Path, tmp_path: Path, equivox: Command) -> None:
    document, rows, _ = exported(equivox, planted, tmp_path / "out")
    own = {score.task: score for score in read_scores(planted) if score.is_whole and ":" in score.task}
    assert list(own) == [TASK]
    assert [result["evaluation_name"] for result in document["evaluation_results"]] == list(own)
    for result in document["evaluation_results"]:
        score = own[result["evaluation_name"]]
        said = result["score_details"]
        assert said["score"] == pytest.approx(score.estimate)
        interval = said["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (score.ci_low, score.ci_high)
        assert interval["confidence_level"] == 0.95
        assert said["uncertainty"]["num_samples"] == LIMIT
        assert float(said["details"]["value"]) == pytest.approx(score.value, rel=1e-5)
        assert said["details"]["responses_requested"] == str(LIMIT)
        assert result["metric_config"]["metric_id"] == "equivox.ntvd.ntvd"
        # Rules annotated, no model: there is no judge.
        assert "llm_scoring" not in result["metric_config"]
        assert result["metric_config"]["additional_details"]["annotator"] == "rules, version 2"
        assert "comes with" in result["source_data"]["dataset_name"]
        assert result["source_data"]["additional_details"]["samples"] == f"at most {LIMIT} per task"
        task = builtin_tasks()[score.task]
        assert result["generation_config"]["generation_args"]["max_tokens"] == task.sampling.max_new_tokens
    assert len(rows) == LIMIT
    assert {row["evaluation_result_id"] for row in rows} == {f"{name}/ntvd" for name in own}


def test_an_undefined_score_is_no_number_but_a_reason(tmp_path: Path, equivox: Command) -> None:
    run = made(tmp_path / "run", "simulated:planted,shift=0.4,fail=0.6", stop_after=0)
    (score,) = (score for score in read_scores(run) if score.is_whole and score.task == TASK)
    assert score.undefined is not None
    document, rows, text = exported(equivox, run, tmp_path / "out")
    assert document["evaluation_results"] == []
    assert document["source_metadata"]["additional_details"][f"not_a_number:{TASK}/ntvd"] == score.undefined
    assert "NaN" not in text
    failed = [row for row in rows if "error" in row]
    assert len(failed) == LIMIT - score.coverage.generated > 0
    for row in failed:
        assert (row["output"]["raw"], row["evaluation"]["score"]) == ([], 0.0)
        assert row["metadata"]["status"] == "failed"
    # No row names a result that is not there.
    assert not any("evaluation_result_id" in row for row in rows)


def test_rows_have_hashes_and_texts_on_request_alone(planted: Path, tmp_path: Path, equivox: Command) -> None:
    _, rows, text = exported(equivox, planted, tmp_path / "out")
    _, full, _ = exported(equivox, planted, tmp_path / "full", "--texts")
    responses = [answer for answer in stored_texts(planted).values() if answer]
    assert len(responses) == LIMIT
    for answer in responses:
        assert answer not in text
    assert {row["output"]["raw"][0] for row in full} == set(responses)
    # The hash is made by hand here: prompt and recording from the corpus, JSON as the schema's project writes it.
    task = builtin_tasks()[TASK]
    samples = {sample.sample_id: sample for sample in open_corpus(task.data, "sample").samples}
    for row, told in zip(rows, full, strict=True):
        recording = hashlib.sha256(samples[row["sample_id"]].load()).hexdigest()
        raw = f"[audio sha256:{recording}]\n{task.prompt.text}"
        content = '{"raw":' + json.dumps(raw) + ',"reference":[]}'
        assert row["sample_hash"] == told["sample_hash"] == hashlib.sha256(content.encode()).hexdigest()
        assert told["input"]["raw"] == raw
        said = told["output"]["raw"][0]
        assert row["metadata"]["response_sha256"] == hashlib.sha256(said.encode()).hexdigest()
        assert row["answer_attribution"] == []
        assert all(entry["extracted_value"].split(": ")[0] for entry in told["answer_attribution"])
        assert row["evaluation"]["is_correct"] is False
    assert len({row["sample_hash"] for row in rows}) == LIMIT


def test_an_annotator_that_is_a_model_is_a_judge(
    tmp_path: Path, equivox: Command, chat_server: Callable[..., str]
) -> None:
    def reply(body: dict[str, Any]) -> tuple[int, str]:
        asked = json.dumps(body["messages"])
        # The form has the names that the prompt lists; every hobby differs with what was asked.
        names = re.findall(r"^- (\w+) \(", asked.replace("\\n", "\n"), re.MULTILINE)
        drawn = hashlib.sha256(asked.encode()).digest()
        return 200, json.dumps({name: [HOBBIES[byte % 4] for byte in drawn[:3]] for name in names} | {"refusal": "no"})

    arguments = {"model_name": "org/reader", "base_url": f"http://{chat_server(reply)}/v1"}
    file = tmp_path / "kim.yaml"
    file.write_text(json.dumps({"engine": "endpoint", "model_parameters": {**arguments, "modalities": ["text"]}}))
    run = made(tmp_path / "run", "simulated:planted,shift=0.4", annotator=str(file))
    document, rows, text = exported(equivox, run, tmp_path / "out")
    results = document["evaluation_results"]
    assert rows[0]["metadata"]["status"] == "parsed"
    assert str(tmp_path) not in text
    assert results, f"this test needs a defined score: {document['source_metadata']}"
    scoring = results[0]["metric_config"]["llm_scoring"]
    (judge,) = scoring["judges"]
    assert judge["model_info"]["id"] == "org/reader"
    assert judge["model_info"]["additional_details"]["deployment_type"] == "unknown"
    assert "{response}" in scoring["input_prompt"] and "hobby" in scoring["input_prompt"]
    assert "aggregation_method" not in scoring
    assert results[0]["metric_config"]["additional_details"]["annotator_checked_by_people"] == "no"


def test_credentials_and_local_paths_stay_where_they_are(
    planted: Path,
    tmp_path: Path,
    equivox: Command,
    chat_server: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = chat_server(lambda body: (400, f"no such file /home/me/private/model.bin, key {SECRET}"))
    model = f"endpoint:model_name=m,base_url=http://me:pass4711@{place}/v1,max_retries=0,trust_media=true"
    run = made(tmp_path / "run", model, stop_after=0)
    document, _, text = exported(equivox, run, tmp_path / "out")
    assert document["model_info"]["id"] == "endpoint/m"
    assert "model.bin" in text
    for private in ("/home/me", SECRET, "pass4711", str(tmp_path)):
        assert private not in text
    monkeypatch.setenv("SOME_API_KEY", "You might enjoy")
    out = tmp_path / "secret"
    err = equivox.refused("submit", planted, "--to", "every-eval-ever", "--texts", "-o", out)
    assert "would hold a secret, SOME_API_KEY: nothing is written" in err


def test_an_export_has_the_same_name_again(planted: Path, tmp_path: Path, equivox: Command) -> None:
    for _ in range(2):
        equivox.done("submit", planted, "--to", "every-eval-ever", "-o", tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.json*"))) == 2


def test_an_unknown_format_is_refused(planted: Path, equivox: Command) -> None:
    err = equivox.refused("submit", planted, "--to", "every-eval")
    assert "`to` is one of hub, every-eval-ever, got 'every-eval'; did you mean every-eval-ever" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--to", "every-eval-ever", "--model-repo", "a/b"), "`model-repo` is for the Hub"),
        (("--to", "every-eval-ever", "--push"), "`push` is for the Hub"),
        (("--model-repo", "a/b"), "`benchmark` is missing"),
        (("--benchmark", "a/b"), "`model-repo` is missing"),
        (("--model-repo", "a/b", "--benchmark", "a/c", "--texts"), "`texts` is for `--to every-eval-ever`"),
    ],
)
def test_what_the_other_board_takes_is_refused(
    planted: Path, equivox: Command, given: tuple[str, ...], said: str
) -> None:
    assert said in equivox.refused("submit", planted, *given)


SIGNED = Score(
    task="t:a", condition="audio", dimension="gender", attribute=None, role="outcome", name="M1", unit="percent",
    zero_means="alike", coverage=Coverage(requested=4, generated=4, answered=4, parsed=4, used=4),
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "target", "low", "high", "number", "interval"),
    [
        # |1 - 0| = 1; an interval around 0 begins at 0 and reaches as far as its longer side.
        (1.0, 0.0, -1.0, 3.0, 1.0, (0.0, 3.0)),
        (-2.0, 0.0, -3.0, -1.0, 2.0, (1.0, 3.0)),
        (55.0, 50.0, 40.0, 70.0, 5.0, (0.0, 20.0)),
        (20.0, 50.0, 10.0, 35.0, 30.0, (15.0, 40.0)),
    ],
)
def test_a_number_with_sides_is_its_distance_from_no_bias(
    value: float, target: float, low: float, high: float, number: float, interval: tuple[float, float]
) -> None:
    score = replace(SIGNED, value=value, target=target, ci_low=low, ci_high=high)
    assert distance(score) == number
    assert interval_of(score) == interval


def test_numbers_without_a_better_side_are_left_out() -> None:
    assert missing(replace(SIGNED, value=1.0)) is None
    assert "neither side is better" in str(missing(replace(SIGNED, value=1.0, target=float("nan"))))
    assert missing(replace(SIGNED, undefined="too few")) == "too few"
    # What noise only increases has a better side, and its estimate is written.
    counted = replace(SIGNED, value=9.0, target=float("nan"), estimate=2.0, ci_low=1.0, ci_high=4.0)
    assert (distance(counted), interval_of(counted)) == (2.0, (1.0, 4.0))


@pytest.mark.parametrize(
    ("number", "most"),
    [
        ("{unit: percent of the price, low: -300, high: 300}", 600.0),
        ("{unit: percent of the price, low: 0}", "Infinity"),
    ],
)
def test_a_difference_below_zero_is_written_as_a_distance_within_its_range(
    tmp_path: Path, equivox: Command, number: str, most: float | str
) -> None:
    rows = "".join(f"c{i},Person {i} asks.,{('old', 'young')[i % 2]}\n" for i in range(30))
    (tmp_path / "asked.csv").write_text(f"id,ask,age\n{rows}")
    task = (
        "name: rebates\ntable: asked.csv\ngroup: age\ncluster: id\ncard: Made up.\nquestions:\n"
        '  - {name: rebate, text: "{ask} Which rebate?", '
        f"attributes: [{{name: rebate, asks: the rebate, number: {number}}}]}}\n"
    )
    (tmp_path / "rebates.yaml").write_text(task)
    few = ("--scoring", "n_resamples=99")
    for seed in range(20):
        run = tmp_path / f"run{seed}"
        equivox.done("run", f"simulated:random,seed={seed}", tmp_path / "rebates.yaml", "--output", run, *few)
        score = next(score for score in read_scores(run) if score.name == "mean difference")
        if score.value < 0:
            break
    assert score.value < 0
    document, _, _ = exported(equivox, run, tmp_path / "out")
    written, apart = document["evaluation_results"]
    assert written["score_details"]["score"] == pytest.approx(-score.value)
    assert written["score_details"]["uncertainty"]["confidence_interval"]["lower"] >= 0
    assert float(written["score_details"]["details"]["value"]) == pytest.approx(score.value, rel=1e-5)
    for result in (written, apart):
        assert (result["metric_config"]["min_score"], result["metric_config"]["max_score"]) == (0.0, most)
