"""Evaluations inside inspect_ai whose answers are known: a mock model that gives planted answers by sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.log._samples import sample_active
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from equivox.core.scores import Score
from equivox.integrations.flat import flat_metrics

TOLERATED = [
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]
"""Warnings of inspect_ai itself: it calls tenacity by an old name, and leaves streams to the garbage collector."""

Answers = Mapping[tuple[str, int], str | None]
"""The sample's id in the corpus and the repeat → the answer; None fails."""


def planted_model(answers: Answers, sent: list[Any] | None = None) -> Model:
    """Return a mock model that answers each sample as planted; messages are added to `sent`."""

    def answer(messages: list[Any], tools: list[Any], choice: Any, config: Any) -> ModelOutput:
        active = sample_active()
        about = active.sample.metadata or {}
        text = answers[about["sample_id"], about["repeat"]]
        if text is None:
            raise ValueError("planted failure")
        if sent is not None:
            sent.append((about, messages, config))
        output = ModelOutput.from_content("mockllm", text)
        # Without a usage the mock would count tokens with a file from the network.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def evaluated(
    task: str, model: Model, folder: Path, *, roles: Any = None, options: Any = None, **given: Any
) -> EvalLog:
    """Evaluate a task by its name in the registry and return the log."""
    name = f"equivox/{task.replace(':', '_')}"
    (log,) = inspect_eval(
        name, model=model, task_args=given, model_roles=roles, log_dir=str(folder), display="none", **(options or {})
    )
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    """Return the metrics of a finished log by name."""
    assert log.status == "success", log.error
    (found,) = log.results.scores
    return {name: float(metric.value) for name, metric in found.metrics.items()}


def assert_same(found: Mapping[str, float], scores: Sequence[Score]) -> None:
    """Every flat number of `scores` is among the metrics, to 1e-12; NaN is NaN."""
    expected = flat_metrics(scores)
    assert expected
    assert set(expected) <= set(found)
    for name, value in expected.items():
        same = math.isnan(found[name]) if math.isnan(value) else abs(found[name] - value) <= 1e-12
        assert same, (name, found[name], value)
