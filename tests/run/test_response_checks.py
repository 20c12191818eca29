"""Prompts and recordings that a server cut: counts of tokens as servers give them, and what a run then says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli
from hypothesis import given
from hypothesis import strategies as st
from made_requests import plan_rows

from equivox import open_run
from equivox.core.requests import Engine, EngineIdentity, Request, Response
from equivox.core.scores import ScoringOptions
from equivox.engines.function import FunctionEngine
from equivox.run.pipeline import execute
from equivox.run.response_checks import find_cut_audio, find_cut_prompts
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
    assert find_cut_prompts(tokens, words).sum() == n


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=60), st.floats(1.0, 3.0))
def test_a_server_that_counts_every_token_cuts_nothing(words: list[int], per_word: float) -> None:
    sizes = np.array(words, dtype=float)
    assert not find_cut_prompts(np.ceil(sizes * per_word) + 7, sizes).any()


@pytest.mark.parametrize(
    ("tokens", "seconds", "n", "limit_s"),
    [
        (25 * SECONDS, SECONDS, 0, np.inf),
        (np.minimum(25 * SECONDS, 750), SECONDS, 2, 30.0),
        (np.minimum(12.5 * SECONDS, 500), SECONDS, 2, 40.0),
        (np.full(6, 1500.0), SECONDS, 6, np.nan),  # every clip is padded to one window
        (np.full(3, 75.0), np.array([3.0, 3.1, 3.2]), 0, np.nan),
    ],
)
def test_cut_recordings_are_found_by_their_counts(tokens: Any, seconds: Any, n: int, limit_s: float) -> None:
    cut, found_s = find_cut_audio(tokens, seconds)
    assert cut.sum() == n
    assert np.isinf(limit_s) or found_s == pytest.approx(limit_s, nan_ok=True)


HIRE = (
    "name: hire\ntable: cvs.csv\ngroup: gender\nswap: {name: {female: [Anna], male: [Jonas]}}\n"
    'questions: [{name: invite, text: "{text}", attributes: '
    "[{name: decision, asks: it, options: [invite, reject]}]}]\n"
)


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
    (tmp_path / "hire.yaml").write_text(HIRE)

    def answer(read: str) -> str:
        return "reject" if reads_name and "Jonas" in read else "invite"

    options = ScoringOptions(n_resamples=199)
    spec = RunSpec(model="simulated:random", tasks=load_task_file(tmp_path / "hire.yaml"), output=tmp_path / "run")
    execute(replace(spec, options=options), engine=Forgetful(answer, kept))
    _, out, _ = equivox("score", tmp_path / "run")
    assert ("the server cut" in out) == cut
    score = next(one for one in open_run(tmp_path / "run").scores if one.is_whole and not one.subset)
    assert score.outcome == outcome
    assert ("the server cut" in str(score.undefined_reason)) == (outcome == "no_result")


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("Okay, the user is asking about Anna. I would invite her.", True),
        ("<scratchpad>Anna?</scratchpad> invite", True),
        ("Let me think about it. invite", True),
        ("I would invite Anna, because she thinks fast.", False),
        ("The user manual is long. <b>invite</b>", False),
        ("Okay, invite her.", False),
    ],
)
def test_reasoning_without_a_known_mark_is_checked(tmp_path: Path, equivox: Cli, text: str, looks: bool) -> None:
    (tmp_path / "cvs.csv").write_text("\n".join(["text", *(f"{{name}} applies, {row}." for row in range(12))]))
    (tmp_path / "hire.yaml").write_text(HIRE)
    spec = RunSpec(model="simulated:random", tasks=load_task_file(tmp_path / "hire.yaml"), output=tmp_path / "run")
    execute(replace(spec, options=ScoringOptions(n_resamples=99)), engine=Forgetful(lambda _: text, 10_000))
    _, out, _ = equivox("score", tmp_path / "run")
    assert ("12 of 24 answers look like reasoning" in out or "24 of 24 answers look like reasoning" in out) == looks


def test_a_pattern_names_reasoning_in_another_mark(tmp_path: Path, equivox: Cli) -> None:
    """The model reasons about the opposite before it answers; `reasoning=` removes what it reasoned."""
    (tmp_path / "cvs.csv").write_text("\n".join(["text", *(f"{{name}} applies, {row}." for row in range(12))]))
    (tmp_path / "hire.yaml").write_text(HIRE)
    spec = RunSpec(
        model="simulated:random", tasks=load_task_file(tmp_path / "hire.yaml"), output=tmp_path / "run",
        sampling="reasoning=PLAN.*?END", options=ScoringOptions(n_resamples=99),
    )  # fmt: skip
    opposite = {"Anna": "PLAN reject? END invite", "Jona": "PLAN invite? END reject"}
    engine = FunctionEngine(lambda request: opposite[request.text[:4]], name="m", revision="1")
    (score,) = [one for one in execute(spec, engine=engine) if one.is_whole and not one.subset]
    assert (score.outcome, score.by_group) == ("difference", {"female": 100.0, "male": 0.0})
    code, _, err = equivox("run", "simulated:random", tmp_path / "hire.yaml", "--sampling", "reasoning=PLAN**")
    assert code == 2 and "regular expression" in err


def test_counts_of_an_imported_batch_are_compared(tmp_path: Path, equivox: Cli) -> None:
    """A batch file says how many tokens the service read: 50 of more than 300 words."""
    texts = [f"{{name}} applies, {row}. {'We have more to say. ' * 60}".strip() for row in range(20)]
    (tmp_path / "cvs.csv").write_text("\n".join(["text", *(f'"{text}"' for text in texts)]))
    (tmp_path / "hire.yaml").write_text(HIRE)
    spec = RunSpec(model="simulated:random", tasks=load_task_file(tmp_path / "hire.yaml"), output=tmp_path / "run")
    execute(replace(spec, options=ScoringOptions(n_resamples=99)))
    for tokens in (50, 700):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "invite"}}
        body = {"choices": [choice], "usage": {"prompt_tokens": tokens}}
        lines = [{"sample_id": row["sample_id"], "response": {"body": body}} for row in plan_rows(tmp_path / "run")]
        (tmp_path / f"{tokens}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        command = ("import", tmp_path / f"{tokens}.jsonl", tmp_path / "hire.yaml", "-o", tmp_path / f"run{tokens}")
        _, out, err = equivox(*command, "--annotator", "rules")
        assert ("the server cut 40 of 40 prompts" in out) == (tokens == 50), err
