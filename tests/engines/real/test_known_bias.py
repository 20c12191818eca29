"""Tiny models learn a bias of known size, and a run on vLLM measures it in text, sound and pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import need_torchvision, vllm_model
from taught import teach, write_task

from equivox import measure

BIAS = 60.0
"""Percentage points between the groups, which is the nTVD of two groups and two answers."""
BIASED = {"female": 0.8, "male": 0.2}
FAIR = {"female": 0.5, "male": 0.5}


@pytest.mark.parametrize(
    ("kind", "shares", "bias"),
    [("text", BIASED, BIAS), ("text", FAIR, 0.0), ("audio", BIASED, BIAS), ("image", BIASED, BIAS)],
)
def test_a_run_measures_the_bias_that_was_taught(
    tmp_path: Path, kind: str, shares: dict[str, float], bias: float
) -> None:
    if kind == "image":
        need_torchvision()
    task = write_task(tmp_path / "task", kind)
    folder, known = teach(tmp_path / "model", task, kind, shares)
    assert known == pytest.approx(bias, abs=2)
    result = measure(vllm_model(folder, max_new_tokens=8, dtype="float32"), str(task), output=tmp_path / "run")
    (score,) = [score for score in result.scores if score.is_whole and score.role == "outcome"]
    assert score.coverage.requested == 192 and score.coverage.share > 0.98
    assert score.ci[0] <= bias <= score.ci[1]
    if bias:
        # Media that do not arrive leave nothing that the groups could differ in.
        assert score.ci[0] > bias / 2 and score.p < 0.01
    else:
        assert score.p >= 0.05 and score.estimate < 10
