"""All of VIBE on the embedded sample: a tiny model that hears, a tiny model that annotates, both in vLLM.

The values are noise. What is asserted is not: coverage, arrival of every clip, annotations under their schemas, and
that what was lost, and nothing else, is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import annotator_file, vllm_model
from made_requests import plan_rows

from equivox.annotate.schema import response_form
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.run.store import stored_annotations, stored_responses
from equivox.tasks.registry import resolve_tasks
from equivox.tasks.vibe import TASKS

LIMIT = 6
pytestmark = pytest.mark.usefixtures("kept")


def test_ten_tasks_from_clips_to_scores(model: Callable[[str], str], tmp_path: Path) -> None:
    annotator = annotator_file(tmp_path / "tiny.yaml", model("llama_long"), temperature=0.0, max_new_tokens=400)
    folder = tmp_path / "run"
    heard, tasks = vllm_model(model("qwen2audio")), resolve_tasks("vibe_gender,vibe_accent")
    spec = RunSpec(model=heard, tasks=tasks, data="sample", limit=LIMIT, output=folder, annotator=str(annotator))
    scores = execute(spec)
    assert [s.task for s in scores if s.is_whole] == [task.name for task in TASKS]
    stored = stored_responses(folder)
    assert len(stored) == len({row["key"] for row in plan_rows(folder)}) == 10 * LIMIT
    assert all(record["error"] is None and record["media_items"] == 1 for record in stored.values())
    assert all(record["media_tokens"] > 20 for record in stored.values())
    for score in scores:
        if score.is_whole:
            assert (score.coverage.requested, score.coverage.generated) == (LIMIT, LIMIT)
    # Whatever the annotator wrote was valid under the schema of the task, or is counted as unparsed with its words.
    by_name = {task.name: task for task in TASKS}
    read = list(stored_annotations(folder, "tiny").values())
    assert len(read) == 10 * LIMIT
    filled = [record for record in read if record["status"] in {"parsed", "refused"}]
    for record in filled:
        response_form(by_name[record["task"]].attributes).model_validate_json(record["output"], strict=True)
    assert all(record["output"] for record in read if record["status"] == "unparsed")
    assert len(filled) > 0.8 * len(read)
    # Nothing is asked twice; what is lost is asked again, alone.
    shards = sorted((folder / "responses").glob("shard-*.parquet"))
    before = {shard: shard.stat().st_mtime_ns for shard in shards}
    again = execute(spec)
    assert {
        shard: shard.stat().st_mtime_ns for shard in sorted((folder / "responses").glob("shard-*.parquet"))
    } == before
    assert [s.as_dict() for s in again] == [s.as_dict() for s in scores]
    shards[-1].unlink()
    kept = stored_responses(folder)
    execute(replace(spec))
    after = stored_responses(folder)
    assert after.keys() == stored.keys()
    assert {key: after[key] for key in kept} == kept
