"""Spoken StereoSet on real vLLM with a tiny audio model: what is answered is noise, what happens to it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import annotator_file, vllm_model

from equivox.core.scores import Score, ScoringOptions
from equivox.dataset_builders import SpokenStereoSet, build
from equivox.run.pipeline import annotate_run, execute, rescore
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations, stored_responses
from equivox.tasks.registry import resolve_tasks

FEW = ScoringOptions(n_resamples=199)
pytestmark = pytest.mark.usefixtures("kept")
RULES = {"letter", "text", "contradiction", "refusal", "empty", "unread"}


def spec_of(folder: str, tasks: str, data: str, output: Path, **further: Any) -> RunSpec:
    model = vllm_model(folder, max_new_tokens=16)
    return RunSpec(model=model, tasks=resolve_tasks(tasks), data=data, output=output, options=FEW, **further)


def table_of(path: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(path).to_pylist())


def table(folder: Path, task: str, name: str) -> list[dict[str, Any]]:
    return table_of(folder / "tables" / task / f"{name}.parquet")


def check_run(folder: Path, scores: list[Score], requested: dict[str, int]) -> None:
    """Everything asked was heard, answered, read by a named rule and counted; nothing noisy reads as a result."""
    stored = stored_responses(folder)
    assert len(stored) == sum(requested.values())
    assert all(record["error"] is None and record["text"] is not None for record in stored.values())
    assert all(record["media_items"] == 1 and record["media_tokens"] > 20 for record in stored.values())
    for task, n in requested.items():
        found = {score.metric: score for score in scores if score.task == task and score.is_whole}
        assert found["slifs"].coverage.requested == found["slifs"].coverage.used == n
        assert 0 <= found["slms"].value <= found["slifs"].value <= 100
        rules = table(folder, task.replace(":", "-"), "rules")
        assert {row["decided_by"] for row in rules} <= RULES
        assert sum(row["n"] for row in rules) == n
        whole = table(folder, task.replace(":", "-"), "choices")[0]
        assert sum(whole[k] for k in ("stereotypical", "anti_stereotypical", "irrelevant", "other")) == n
        if found["slifs"].value < 80:
            assert not found["slbs"].defined and not found["parity deviation"].defined


def test_all_orders_of_the_sample_and_its_transcripts(model: Callable[[str], str], tmp_path: Path) -> None:
    spec = spec_of(model("qwen2audio"), "spoken_stereoset_orders:age", "sample", tmp_path, limit=2)
    check_run(tmp_path, execute(spec), {"spoken_stereoset_orders:age": 12})
    # A second reader for what the rules leave: noise too, but under the schema, and told apart.
    reader = annotator_file(tmp_path / "reader.yaml", model("llama_long"), attempts=3, max_new_tokens=64)
    annotate_run(tmp_path, str(reader), FEW)
    rules = table_of(tmp_path / "tables-reader" / "spoken_stereoset_orders-age" / "rules.parquet")
    by_model = [record for record in stored_annotations(tmp_path, "reader").values() if record["output"] is not None]
    decided = sum(row["n"] for row in rules if row["decided_by"] in {"annotator", "refusal"})
    assert 0 < decided == sum(record["status"] in {"parsed", "refused"} for record in by_model)
    identity = json.loads((tmp_path / "manifest.json").read_text())["identity"]["model"]
    assert (identity["engine"], identity["model"]) == ("vllm", "qwen2audio")
    written = {"limit": 6, "conditions": ("text_only",)}
    execute(spec_of(model("qwen2audio"), "spoken_stereoset:age", "sample", tmp_path / "text", **written))
    assert [record["media_items"] for record in stored_responses(tmp_path / "text").values()] == [0] * 6


@pytest.mark.paper
def test_the_real_instances_from_build_to_scores(
    model: Callable[[str], str], reference_data: Path, tmp_path: Path
) -> None:
    build(SpokenStereoSet(reference_data / "spoken_stereoset" / "sample"), tmp_path / "data")
    folder = tmp_path / "run"
    requested = {"spoken_stereoset:gender": 10, "spoken_stereoset:age": 14}
    scores = execute(spec_of(model("qwen2audio"), "spoken_stereoset", str(tmp_path / "data"), folder))
    check_run(folder, scores, requested)
    # The same table from what is stored alone.
    kept = (folder / "scores.json").read_bytes()
    rescore(folder, options=FEW)
    assert (folder / "scores.json").read_bytes() == kept
