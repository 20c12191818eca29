"""Prompts and recordings that a server cut: counts of tokens as servers give them, and what a run then says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli
from hypothesis import given
from hypothesis import strategies as st

from equivox import open_run
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.scores import ScoringOptions
from equivox.run.cut_inputs import CutInput, find_cut_audio, find_cut_prompts
from equivox.run.pipeline import execute
from equivox.run.spec import RunSpec
from equivox.tasks.files import load_task_file

WORDS = np.arange(1000.0, 1400.0, 10.0)
SECONDS = np.array([5.0, 10.0, 20.0, 28.0, 60.0, 61.0])


@pytest.mark.parametrize(
    ("tokens", "words", "n"),
    [
        (1.3 * WORDS, WORDS, 0),
        (np.full(40, 512.0), WORDS, 40),  # fewer tokens than words
        (np.minimum(1.3 * WORDS, 1601.0), WORDS, 16),  # the count stops at the server's limit: 1,240 words and more
        (np.where(WORDS < 1390, 1.3 * WORDS, 900.0), WORDS, 1),
        (np.array([30.0, 30.0, 30.0]), np.array([20.0, 21.0, 24.0]), 0),  # short prompts are equal by chance
        (np.full(3, 700.0), np.array([500.0, 501.0, 502.0]), 0),  # so are prompts of nearly one length
        (np.full(9, 900.0), np.full(9, 600.0), 0),  # one prompt for every recording
    ],
)
def test_cut_prompts_are_found_by_their_counts(tokens: Any, words: Any, n: int) -> None:
    found = find_cut_prompts(tokens, words)
    assert (0 if found is None else found.n) == n


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=60), st.floats(1.0, 3.0))
def test_a_server_that_counts_every_token_cuts_nothing(words: list[int], per_word: float) -> None:
    sizes = np.array(words, dtype=float)
    assert find_cut_prompts(np.ceil(sizes * per_word) + 7, sizes) is None


@pytest.mark.parametrize(
    ("tokens", "seconds", "expected"),
    [
        (25 * SECONDS, SECONDS, None),
        (np.minimum(25 * SECONDS, 750), SECONDS, ("audio", 2, 750, 30.0)),
        (np.minimum(12.5 * SECONDS, 500), SECONDS, ("audio", 2, 500, 40.0)),
        (np.full(6, 1500.0), SECONDS, ("fixed", 6, 1500, None)),  # every clip is padded to one window
        (np.full(3, 75.0), np.array([3.0, 3.1, 3.2]), None),
        (np.array([]), np.array([]), None),
    ],
)
def test_cut_recordings_are_found_by_their_counts(tokens: Any, seconds: Any, expected: Any) -> None:
    found = find_cut_audio(tokens, seconds)
    if expected is None:
        assert found is None
        return
    assert isinstance(found, CutInput)
    assert (found.kind, found.n, found.tokens) == expected[:3]
    assert expected[3] is None or found.limit_s == pytest.approx(expected[3])


class Forgetful(Engine):
    """A server that keeps the last 300 tokens of a prompt, and counts them."""

    identity = EngineIdentity(engine="endpoint", model="m", revision="")

    def __init__(self, answer: Callable[[str], str], kept: int) -> None:
        self._answer, self._kept = answer, kept

    def generate(self, requests: Any) -> Any:
        for request in requests:
            yield self._respond(request)

    def _respond(self, request: Request) -> Response:
        words = request.text.split()
        text = self._answer(" ".join(words[-self._kept :]))
        return Response(key=request.key, text=text, prompt_tokens=min(len(words), self._kept), finish_reason="stop")


@pytest.mark.parametrize(
    ("kept", "reads_name", "outcome", "cut"),
    [
        (10_000, True, "difference", False),
        (10_000, False, "no_difference", False),
        (300, True, "no_result", True),  # the name is gone, and every answer is the same
        (450, True, "difference", True),  # a difference that is left stands
    ],
)
def test_a_cut_prompt_never_reads_as_fairness(
    tmp_path: Path, equivox: Cli, kept: int, reads_name: bool, outcome: str, cut: bool
) -> None:
    rows = [f'"{{name}} applies. {"We have more to say. " * 80}{"And more. " * (row % 40)}"' for row in range(60)]
    (tmp_path / "cvs.csv").write_text("\n".join(["text", *rows]))
    (tmp_path / "hire.yaml").write_text(
        "name: hire\ntable: cvs.csv\ngroup: gender\nswap: {name: {female: [Anna], male: [Jonas]}}\n"
        'questions: [{name: invite, text: "{text}", attributes: '
        "[{name: decision, asks: it, options: [invite, reject]}]}]\n"
    )

    def answer(read: str) -> str:
        return "reject" if reads_name and "Jonas" in read else "invite"

    options = ScoringOptions(n_resamples=199)
    spec = RunSpec(model="simulated:random", tasks=load_task_file(tmp_path / "hire.yaml"), output=tmp_path / "run")
    execute(replace(spec, options=options), engine=Forgetful(answer, kept))
    _, out, _ = equivox("score", tmp_path / "run")
    assert ("the server cut" in out) == cut
    score = next(one for one in open_run(tmp_path / "run").scores if one.is_whole and not one.subset)
    assert score.outcome == outcome
    assert ("the server cut" in str(score.undefined)) == (outcome == "no_result")
