"""A run in lighteval's files; `tests/integrations/lighteval` compares them key by key with those of lighteval."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from equivox.core.errors import RequestError
from equivox.core.scores import ScoringOptions
from equivox.engines import EngineIdentity
from equivox.integrations.hub.lighteval_layout import averages, model_folder, write_lighteval_results
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.registry import resolve_tasks

TIME = datetime(2026, 1, 2, 3, 4, 5)
STAMP = "2026-01-02T03-04-05"
TASKS = "spoken_stereoset_orders:gender,badf_two:race"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layout") / "run"
    spec = RunSpec(
        model="simulated:planted?shift=0.5&fail=0.05",
        tasks=resolve_tasks(TASKS),
        output=folder,
        data="sample",
        limit=6,
        conditions=("all",),
        options=ScoringOptions(n_resamples=99),
    )
    execute(spec)
    return folder


def test_one_file_of_results_and_one_of_details_per_task_and_condition(run: Path, tmp_path: Path) -> None:
    *details, results = write_lighteval_results(run, tmp_path, time=TIME)
    model = "simulated:planted?shift=0.5&fail=0.05"
    assert results == tmp_path / "results" / model / f"results_{STAMP}.json"
    names = [
        "spoken_stereoset_orders:gender",
        "spoken_stereoset_orders:gender@text_only",
        "spoken_stereoset_orders:gender@silence",
        "badf_two:race",
    ]
    assert details == [tmp_path / "details" / model / STAMP / f"details_{n}|0_{STAMP}.parquet" for n in names]
    assert all(path.is_file() for path in details)
    written = json.loads(results.read_text("utf-8"))
    assert [task for task in written["results"] if not task.endswith("_average|0")] == [f"{n}|0" for n in names] + [
        "all"
    ]
    stored = json.loads((run / "scores.json").read_text("utf-8"))["scores"]
    whole = {f"{s['task']}|0": s["value"] for s in stored if s["name"] == "slms" and not s["subset"]}
    assert len(whole) == 3
    for name, value in whole.items():
        assert written["results"][name]["slms"] == pytest.approx(math.nan if value is None else value, nan_ok=True)
    # 6 items in 6 orders
    rows = pq.read_table(details[0]).to_pylist()
    assert [row["doc"]["id"] for row in rows] == [str(number) for number in range(36)]
    failed = [row for row in rows if row["model_response"]["input"][0]["error"]]
    assert failed
    assert all(row["model_response"]["text"] == [""] and not row["metric"]["equivox"]["answered"] for row in failed)
    # The silence condition sent something else, and says so.
    sent = {row["doc"]["specific"]["media_sha256"] for row in pq.read_table(details[2]).to_pylist()}
    assert not sent & {row["doc"]["specific"]["media_sha256"] for row in rows}


def test_nothing_is_written_without_scores_or_with_other_data(run: Path, tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "identities: {race: {pairs: all, descriptors: {red: [Aldo], blue: [Berta]}}}\nlocations: {home: [kitchen]}\n"
    )
    with pytest.raises(RequestError):
        write_lighteval_results(run, tmp_path / "out", time=TIME, data=str(grid))
    with pytest.raises(RequestError, match=r"no scores-other\.json"):
        write_lighteval_results(run, tmp_path / "out", time=TIME, annotator="other")
    assert not (tmp_path / "out").exists()


def test_one_undefined_number_makes_its_average_undefined() -> None:
    mean = averages({"a:x|0": {"ntvd": 10.0, "q": 0.5}, "a:y|0": {"ntvd": math.nan, "q": 0.25}})
    assert math.isnan(mean["all"]["ntvd"])
    assert math.isnan(mean["a:_average|0"]["ntvd"])
    assert mean["all"]["q"] == 0.375


@pytest.mark.parametrize(
    ("model", "folder"),
    [("org/model-7b", "org/model-7b"), ("/models/org/tiny", "tiny"), ("../../elsewhere", "elsewhere"), ("gpt", "gpt")],
)
def test_folders_are_named_by_the_model_and_stay_below_the_output(model: str, folder: str) -> None:
    identity = EngineIdentity(engine="vllm", model=model, revision="1").as_dict()
    assert model_folder({"identity": {"model": identity}, "command": {"model": f"vllm:{model}"}}) == folder
