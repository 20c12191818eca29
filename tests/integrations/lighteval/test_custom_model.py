"""`lighteval custom` with equivox's engines: the numbers of `equivox run`, from responses that are stored first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")

from evaluating import MODEL_FILE, Evaluated, assert_same, flat_by_task
from made_requests import sample_spec

from equivox.core.errors import EquivoxError
from equivox.run.manifest import read_manifest
from equivox.run.pipeline import execute, rescore
from equivox.run.store import stored_responses

Lighteval = Callable[..., Evaluated]
TASKS = (
    "vibe_gender:story,vibe_gender:advisory,spoken_stereoset:gender,spoken_stereoset:age,genres_standin:cs,"
    "genres_standin:em,badf_two:gender,badf_two:race"
)
LIMIT = 12


@pytest.mark.parametrize("model", ["simulated:planted,shift=0.3,speaker=0.2", "simulated:random,fail=0.15,refusal=0.1"])
def test_scores_are_those_of_equivox_run(lighteval: Lighteval, tmp_path: Path, model: str) -> None:
    evaluated = lighteval("custom", model, MODEL_FILE, TASKS, limit=LIMIT)
    spec = sample_spec(model, TASKS, tmp_path / "own", limit=LIMIT)
    expected = flat_by_task(execute(spec))
    assert set(expected) == {f"{name}|0" for name in TASKS.split(",")}
    assert_same(evaluated.results, expected)
    if "planted" in model:
        defined = [name for name, numbers in expected.items() if not all(map(math.isnan, list(numbers.values())[:3]))]
        assert len(defined) == len(expected)
    # The same run lies below EQUIVOX_RUNS, whole: its responses are those of `equivox run`, key by key.
    (folder,) = evaluated.runs.iterdir()
    assert stored_responses(folder) == stored_responses(tmp_path / "own")
    assert read_manifest(folder)["identity"] == read_manifest(tmp_path / "own")["identity"]
    assert_same(evaluated.results, flat_by_task(rescore(folder)))


def test_failures_say_nothing_and_are_never_answers(lighteval: Lighteval) -> None:
    evaluated = lighteval("custom", "simulated:oracle,fail=1", MODEL_FILE, "vibe_gender:advisory", limit=LIMIT)
    details = evaluated.details("vibe_gender:advisory")
    assert [row["model_response"]["text"] for row in details] == [[""]] * LIMIT
    assert all(row["model_response"]["input"][0]["error"] == "planted failure" for row in details)
    assert not any(row["metric"]["equivox"]["answered"] for row in details)
    numbers = evaluated.results["vibe_gender:advisory|0"]
    assert numbers["coverage_requested"] == LIMIT
    assert numbers["coverage_generated"] == numbers["ntvd_coverage"] == 0
    assert math.isnan(numbers["ntvd"])
    assert math.isnan(numbers["ntvd_p"])
    # Nor does the mean over tasks invent a number.
    assert math.isnan(evaluated.results["all"]["ntvd"])


def test_the_same_command_goes_on_where_it_stopped(lighteval: Lighteval) -> None:
    arguments = ("custom", "simulated:planted,shift=0.5", MODEL_FILE, "vibe_gender:casting")
    first = lighteval(*arguments, limit=LIMIT)
    (folder,) = first.runs.iterdir()
    stored = stored_responses(folder)
    written = {p: p.stat().st_mtime_ns for p in (folder / "responses").iterdir()}
    again = lighteval(*arguments, output="again", limit=LIMIT)
    assert {p: p.stat().st_mtime_ns for p in (folder / "responses").iterdir()} == written
    assert list(first.runs.iterdir()) == [folder]
    assert_same(again.results, {"vibe_gender:casting|0": first.results["vibe_gender:casting|0"]})
    # What is lost is asked again.
    for shard in written:
        shard.unlink()
    lighteval(*arguments, output="lost", limit=LIMIT)
    assert stored_responses(folder) == stored


def test_max_samples_is_a_run_of_its_own(lighteval: Lighteval) -> None:
    evaluated = lighteval("custom", "simulated:biased", MODEL_FILE, "badf_two:gender", "--max-samples", 7, limit=2)
    assert evaluated.results["badf_two:gender|0"]["coverage_requested"] == 7
    assert len(evaluated.details("badf_two:gender")) == 7


def test_a_model_that_is_none_is_one_sentence(lighteval: Lighteval) -> None:
    with pytest.raises(EquivoxError, match=r"unknown model 'my-model'.*EQUIVOX_MODEL_CONFIG says which model"):
        lighteval("custom", "my-model", MODEL_FILE, "vibe_gender:story", limit=LIMIT)


def test_hidden_states_are_refused_where_there_are_none(lighteval: Lighteval) -> None:
    with pytest.raises(EquivoxError, match="badf_openbox:gender replaces hidden states"):
        lighteval(
            "custom",
            "x",
            MODEL_FILE,
            "badf_openbox:gender",
            limit=2,
            model_config="endpoint:model_name=m,base_url=http://localhost:9/v1",
        )


def test_results_and_details_are_readable(lighteval: Lighteval) -> None:
    evaluated = lighteval("custom", "simulated:biased", MODEL_FILE, "genres_standin:cs", limit=4)
    written = json.loads(evaluated.results_file.read_text("utf-8"))
    configured = written["config_tasks"]["genres_standin:cs|0"]
    assert (configured["version"], configured["generation_size"]) == (1, 1024)
    assert Path(configured["hf_repo"]).is_dir()
    (row, *_) = evaluated.details("genres_standin:cs")
    assert row["doc"]["specific"]["needs"] == "image"
    assert row["doc"]["query"] == row["model_response"]["input"][0]["prompt"]
    assert row["model_response"]["input"][0]["media_items"] == 1


def test_lighteval_sees_one_model_in_the_file() -> None:
    # It takes the first subclass in alphabetical order, imported ones included.
    from lighteval.models.abstract_model import LightevalModel

    from equivox.integrations.lighteval import model as lighteval_model

    found = [value for value in vars(lighteval_model).values() if isinstance(value, type)]
    assert [v.__name__ for v in found if issubclass(v, LightevalModel) and v is not LightevalModel] == ["EquivoxModel"]
