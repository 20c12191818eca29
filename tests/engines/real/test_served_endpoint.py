"""The endpoint engine against a real server: vLLM's own, with a tiny model of text, audio and images, on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from asking import answers, audio, image, need_torchvision, request, text_of, vllm_server

from equivox import cli
from equivox.annotate.model import ModelAnnotator
from equivox.core.annotation import Job
from equivox.core.errors import UsageError
from equivox.core.task import GREEDY
from equivox.engines.endpoint import EndpointEngine
from equivox.tasks.vibe import TASKS

pytestmark = pytest.mark.long  # a server takes a minute to start


@pytest.fixture(scope="module")
def served(model: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the tiny Qwen2.5-Omni and return the server's address."""
    need_torchvision()
    with vllm_server(model("qwen25omni"), tmp_path_factory.mktemp("server") / "log") as address:
        yield address


Opening = Callable[..., EndpointEngine]


@pytest.fixture
def endpoint(served: str) -> Iterator[Opening]:
    """Return a function that opens an engine on the server; it is closed after the test."""
    common = {"model_name": "tiny", "base_url": served, "max_concurrency": 4}
    with ExitStack() as opened:
        yield lambda **arguments: opened.enter_context(EndpointEngine.from_args(common | arguments))


def test_text_audio_and_image_arrive_by_the_servers_count(endpoint: Opening) -> None:
    plain, heard, seen, both = answers(
        endpoint(),
        request(0, "Who?"), request(1, "Who?", audio()), request(2, "Who?", image()),
        request(3, "Who?", image(), audio()),
    )  # fmt: skip
    assert all(text_of(response) is not None for response in (plain, heard, seen, both))
    assert plain.media_items == 0
    assert (heard.media_items, seen.media_items, both.media_items) == (1, 1, 2)
    assert heard.media_tokens and seen.media_tokens
    # What each takes alone, together: the chat template adds no tokens of its own for a second item.
    assert both.media_tokens == heard.media_tokens + seen.media_tokens
    assert heard.prompt_tokens == (plain.prompt_tokens or 0) + heard.media_tokens


def test_the_same_seed_says_the_same_and_another_something_else(endpoint: Opening) -> None:
    same = [request(n, seed=7, temperature=1.0, max_new_tokens=24) for n in range(3)]
    other = [request(3 + n, seed=100 + n, temperature=1.0, max_new_tokens=24) for n in range(3)]
    texts = [text_of(response) for response in answers(endpoint(), *same, *other)]
    assert len(set(texts[:3])) == 1
    assert len(set(texts)) > 2


def test_a_bad_request_fails_alone(endpoint: Opening) -> None:
    fine, long, corrupt = answers(
        endpoint(max_retries=0),
        request(0), request(1, "word " * 3000), request(2, "Who?", audio(b"RIFF and nothing")),
    )  # fmt: skip
    assert fine.error is None
    assert long.error is not None and "2048" in long.error
    assert corrupt.error is not None and corrupt.error.startswith("unusable media: clip.wav")


def test_a_model_behind_a_server_annotates_by_the_schema(endpoint: Opening) -> None:
    """Random weights fill the form with noise, but every form is valid."""
    task = next(task for task in TASKS if task.name == "vibe_gender:candidate")
    reader = ModelAnnotator("served", endpoint(), sampling=GREEDY)
    # The tiny server's context is counted in bytes: without worked examples the prompt fits.
    segments = [replace(task.annotation.whole(f"A junior novice, number {n}."), examples=()) for n in range(12)]
    jobs = [
        Job(key=f"k{n}", response_key=f"r{n}", task=task.name, segment=segment) for n, segment in enumerate(segments)
    ]
    readings = list(reader.annotate(jobs))
    assert len(readings) == 12
    assert {reading.status for reading in readings} <= {"parsed", "refused"}
    assert all(json.loads(reading.output or "") for reading in readings)


def test_an_unknown_model_is_refused_before_anything_is_written(endpoint: Opening, served: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not know the model other"):
        endpoint(model_name="other").check([])
    assert cli.run(
        ["run", f"endpoint:model_name=other,base_url={served}", "vibe_gender:advisory", "--data", "sample",
         "--annotator", "rules", "-o", str(tmp_path / "run")]
    ) == 2  # fmt: skip
    assert not (tmp_path / "run").exists()


def test_a_whole_speech_task_through_the_server(
    served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values are noise; that every clip arrived, was answered and counted is not."""
    code = cli.run(
        ["run", f"endpoint:model_name=tiny,base_url={served}", "vibe_gender:advisory", "--data", "sample",
         "--limit", "12", "--annotator", "rules", "--output", str(tmp_path / "run")]
    )  # fmt: skip
    out = capsys.readouterr().out
    # Noise names no hobby: nothing is usable, so the score is undefined and says so.
    assert code == 1
    assert "NO RESULT" in out and "12 of 12 answers do not count" in out and "failed" not in out
    assert cli.run(["status", str(tmp_path / "run")]) == 0
