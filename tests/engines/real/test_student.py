"""The student of calibration: answers that share a prompt are as likely as alone."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the engine tests need torch: make test-engine")
import torch
from made_requests import made_request

from equivox.calibration.student import Student


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
