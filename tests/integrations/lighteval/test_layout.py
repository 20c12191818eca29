"""Our own writer against a file that lighteval wrote of the same responses, key by key."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lighteval.pipeline", reason="these tests need lighteval: make test-lighteval")

from evaluating import MODEL_FILE, Evaluated

from equivox.integrations.hub.lighteval_layout import write_lighteval_results

TIME = datetime(2026, 1, 2, 3, 4, 5, 678900)
FREE = {
    # What one side alone knows, of its process or of where its data lie.
    "start_time",
    "end_time",
    "total_evaluation_time_secondes",
    "max_samples",
    "cache_dir",
    "hf_repo",
    "hf_revision",
    "model_definition_file_path",
    "equivox",
    # The run's name in ours, which are published; its place here in theirs.
    "equivox_run",
    # lighteval writes its default of 0; how equivox decodes is declared by each task, and stands below `equivox`.
    "temperature",
}


def differences(ours: Any, theirs: Any, where: str = "") -> list[str]:
    """Name every place in which two documents differ: another key, another type, another value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{where}.{key} only on one side" for key in (ours.keys() ^ theirs.keys()) - FREE]
        for key in (ours.keys() & theirs.keys()) - FREE:
            found += differences(ours[key], theirs[key], f"{where}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            d for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) for d in differences(a, b, f"{where}[{n}]")
        ]
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours) and math.isnan(theirs):
        return []
    if isinstance(ours, float) and isinstance(theirs, float):
        return [] if math.isclose(ours, theirs, rel_tol=1e-12) else [f"{where}: {ours} and {theirs}"]
    return [] if ours == theirs else [f"{where}: {ours!r} and {theirs!r}"]


@pytest.mark.parametrize(
    "tasks", ["vibe_gender:advisory,vibe_gender:story,spoken_stereoset:age", "badf_two_greedy:gender"]
)
def test_the_files_are_lightevals_key_by_key(lighteval: Callable[..., Evaluated], tmp_path: Path, tasks: str) -> None:
    import pyarrow.parquet as pq

    theirs = lighteval("custom", "simulated:planted?shift=0.4&fail=0.1", MODEL_FILE, tasks, limit=12)
    (folder,) = theirs.runs.iterdir()
    relative = folder.relative_to(tmp_path)
    *details, results = write_lighteval_results(relative, Path("ours"), time=TIME)
    name = "simulated:planted?shift=0.4&fail=0.1"
    assert results == Path("ours/results") / name / "results_2026-01-02T03-04-05.678900.json"
    assert theirs.results_file.parent.relative_to(theirs.output) == results.parent.relative_to("ours")
    their_results = json.loads(theirs.results_file.read_text("utf-8"))
    our_results = json.loads(results.read_text("utf-8"))
    assert list(our_results) == list(their_results)
    assert differences(our_results, their_results) == []
    sampling = our_results["config_general"]["model_config"]["equivox"]["sampling"]
    assert {sampling[task]["temperature"] for task in tasks.split(",")} <= {0.0, 1.0}
    for path in details:
        task = path.name.removeprefix("details_").partition("|")[0]
        (their_file,) = theirs.output.glob(f"details/*/*/details_{task}|0_*.parquet")
        assert their_file.parent.parent.name == path.parent.parent.name
        ours, original = pq.read_table(path), pq.read_table(their_file)
        assert ours.schema.remove_metadata() == original.schema.remove_metadata()
        by_position = sorted(original.to_pylist(), key=lambda row: row["doc"]["specific"]["position"])
        assert differences(ours.to_pylist(), by_position) == []


def test_another_corpus_is_refused(lighteval: Callable[..., Evaluated], tmp_path: Path) -> None:
    theirs = lighteval("custom", "simulated:oracle", MODEL_FILE, "badf_two_greedy:gender", limit=2)
    (folder,) = theirs.runs.iterdir()
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "identities: {gender: {pairs: matched, descriptors: {man: [Aldo], woman: [Berta]}}}\n"
        "locations: {home: [in a kitchen]}\n"
    )
    with pytest.raises(ValueError, match="the corpus badf is not the one that"):
        write_lighteval_results(folder, tmp_path / "ours", time=TIME, data=str(grid))
    assert not (tmp_path / "ours").exists()
