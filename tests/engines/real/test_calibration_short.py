"""A calibration of speech on vLLM, and at length one of text, with models of little training: the chain is compared
with the model's own probabilities, so the model need not be taught well. `make calibration` runs the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

import torch
from calibrating import cache_of_models, settings
from made_requests import made_request

from equivox.calibration.checking import calibrate, train
from equivox.calibration.recipe import Effort
from equivox.calibration.student import Student
from equivox.tasks.registry import resolve_tasks

LITTLE = Effort(hearing=60, basics=70, answering=0)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[None]:
    yield from cache_of_models(tmp_path / "cache")


@pytest.mark.parametrize(
    ("name", "limit", "places"),
    [
        ("vibe_gender:candidate", 32, {"arrival", "hearing", "answering"}),
        pytest.param("badf_single:gender", 16, {"arrival", "answering"}, marks=pytest.mark.long),
    ],
)
def test_an_intact_chain_passes(tmp_path: Path, name: str, limit: int, places: set[str]) -> None:
    (task,) = resolve_tasks(name)
    asked = settings(task, tmp_path / "runs", limit=limit, effort=LITTLE, drawn=2 * limit)
    (line,) = calibrate(asked, train(asked))
    found = {finding.place: finding.passed for finding in line.findings}
    assert {place for place in places if found[place]} == places, line.findings
    assert False not in [found[place] for place in ("arrival", "hearing", "answering", "annotation") if place in found]


def test_answers_that_share_a_prompt_are_as_likely_as_alone() -> None:
    requests = [made_request(1), made_request(2)]
    asked = [(requests[0], ["B", "The answer is C.", "(A)"]), (requests[1], ["A", "I would go with B.", "C"])]
    student = Student(requests, [request.text for request in requests] + [text for _, own in asked for text in own], 0)
    with torch.no_grad():
        together = student.log_probabilities(asked)
        alone = [student.log_probabilities([(request, [text])])[0] for request, texts in asked for text in texts]
    assert len(together) == len(alone) == 6
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
