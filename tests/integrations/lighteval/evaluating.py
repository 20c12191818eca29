"""What one call of lighteval leaves, and how it is compared with what `equivox run` gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from equivox.core.scores import Score
from equivox.integrations.flat import flat_metrics
from equivox.integrations.lighteval import MODEL_FILE

__all__ = ["MODEL_FILE", "Evaluated", "assert_same", "flat_by_task"]


@dataclass(frozen=True)
class Evaluated:
    """Files that one call of lighteval left: its results, the details of each task, and equivox's runs."""

    output: Path
    runs: Path

    @property
    def results_file(self) -> Path:
        (file,) = self.output.glob("results/**/results_*.json")
        return file

    @property
    def results(self) -> dict[str, dict[str, float]]:
        return dict(json.loads(self.results_file.read_text("utf-8"))["results"])

    def details(self, task: str) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        (file,) = self.output.glob(f"details/**/details_{task}|0_*.parquet")
        return list(pq.read_table(file).to_pylist())


def flat_by_task(scores: list[Score]) -> dict[str, dict[str, float]]:
    names = {score.task for score in scores if ":" in score.task}
    return {f"{name}|0": flat_metrics([score for score in scores if score.task == name]) for name in names}


def assert_same(found: dict[str, dict[str, float]], expected: dict[str, dict[str, float]]) -> None:
    for task, numbers in expected.items():
        assert found[task].keys() == numbers.keys()
        for name, value in numbers.items():
            assert found[task][name] == pytest.approx(value, rel=0, abs=1e-12, nan_ok=True), (task, name)
