"""Fixtures that several test modules share."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import typer
from commands import Cli

from equivox import cli
from equivox.core.errors import EquivoxError
from equivox.core.lazy import on_one_core

with contextlib.suppress(ImportError):  # the engine tests do without hypothesis
    from hypothesis import settings

    # The same examples everywhere; HYPOTHESIS_PROFILE=default looks for new ones.
    settings.register_profile("repeatable", derandomize=True, deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `slow_tests.txt` lists, by their names or by their files."""
    slow = set(Path(__file__).with_name("slow_tests.txt").read_text().split())
    for item in items:
        if item.nodeid.partition("[")[0] in slow or item.nodeid.partition("::")[0] in slow:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def reference_data() -> Path:
    """The folder of published data; tests that need it are skipped, with the reason, where it is absent."""
    folder = os.environ.get("EQUIVOX_REFERENCE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EQUIVOX_REFERENCE_DATA names no folder with the published data")
    return Path(folder)


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets that another test gave: they would be cut out of this test's texts."""
    monkeypatch.setattr("equivox.core.redact._given", set())


@pytest.fixture(scope="session", autouse=True)
def _one_core() -> Iterator[None]:
    """Compute on one core: tests run in several processes, whose threads would wait for each other."""
    with on_one_core():
        yield


@pytest.fixture(scope="session", autouse=True)
def _cycles_are_sought_as_in_a_command() -> Iterator[None]:
    """Look for cycles as rarely as the command line does, and not among the modules: tests call what is below it."""
    before = gc.get_threshold()
    gc.set_threshold(cli.CYCLES_AFTER, *before[1:])
    gc.freeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is kept in a folder that all processes of the tests share: they note thousands of runs."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQUIVOX_CACHE", str(shared / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Let files be written without waiting until the disk has them: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands() -> Iterator[None]:
    """Build the tree of commands once, as a user's process does; in this one each call of `cli.run` would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """Read the certificates of the machine once: each client of a server would, for a tenth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _errors_are_one_line() -> Iterator[None]:
    """Hold every error that equivox raises on purpose to one line, whichever test it is raised in."""

    def begin(error: EquivoxError, *given: object) -> None:
        assert not any("\n" in str(part) for part in given), given
        super(EquivoxError, error).__init__(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EquivoxError, "__init__", begin)
        yield


@pytest.fixture
def equivox(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line, run in this process."""
    return Cli(capsys)


@pytest.fixture(scope="module")
def connected() -> Iterator[None]:
    """One Ray for all tests of a module that need no other; starting it takes seconds."""
    from equivox.engines import cluster

    cluster.start(None, 4)
    yield
    cluster.end()
    with warnings.catch_warnings():
        # Ray leaves files and a process to the garbage collector.
        warnings.simplefilter("ignore")
        gc.collect()


Reply = Callable[[dict[str, Any]], tuple[int, str]]
"""Function of the body of a request that returns a status and a text: the answer, or the error if it is not 200."""


@pytest.fixture
def chat_server() -> Iterator[Callable[[Reply], str]]:
    """Start a loopback server of chat completions that answers by a function; returns its address, `127.0.0.1:PORT`."""
    with contextlib.ExitStack() as running:

        def start(reply: Reply) -> str:
            class Handler(BaseHTTPRequestHandler):
                def log_message(self, format: str, *args: Any) -> None:
                    """Say nothing."""

                def do_POST(self) -> None:
                    body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                    status, text = reply(body)
                    data = json.dumps(_completion(body, text) if status == 200 else _error(text)).encode()
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
            running.callback(http.server_close)
            running.callback(http.shutdown)
            return f"127.0.0.1:{http.server_address[1]}"

        yield start


def _completion(body: dict[str, Any], text: str) -> dict[str, Any]:
    contents = [message["content"] for message in body["messages"]]
    parts = [part.get("text", "") for content in contents if isinstance(content, list) for part in content]
    words = " ".join([*parts, *(content for content in contents if isinstance(content, str))]).split()
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": len(words), "completion_tokens": 9, "total_tokens": len(words) + 9}
    document = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**document, "choices": [choice], "usage": usage}


def _error(text: str) -> dict[str, Any]:
    return {"error": {"message": text}}


def write_tone(path: Path, *, seconds: float = 0.2, pitch: float = 220.0, rate: int = 16_000) -> None:
    """Write a short tone; different pitches make different content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(int(seconds * rate)) / rate
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * pitch * time), rate)


@pytest.fixture
def clip_corpus(tmp_path: Path) -> Callable[..., Path]:
    """Write a small corpus of tones with a CSV and a task file; returns the task file's path."""

    def make(
        *,
        groups: Sequence[str] = ("female", "male"),
        speakers_per_group: int = 4,
        sentences: int = 6,
        broken: Sequence[str] = (),
        extra: str = "",
    ) -> Path:
        lines = ["path,text,speaker,gender"]
        for g, group in enumerate(groups):
            for s in range(speakers_per_group):
                for t in range(sentences):
                    name = f"{group}{s}_{t}.wav"
                    write_tone(tmp_path / "clips" / name, pitch=100 + 200 * g + 20 * s + t)
                    if name in broken:
                        (tmp_path / "clips" / name).write_bytes(b"not audio at all")
                    lines.append(f"{name},Sentence number {t}.,{group}{s},{group}")
        (tmp_path / "clips.csv").write_text("\n".join(lines) + "\n")
        task_file = tmp_path / "voices.yaml"
        task_file.write_text(f"name: voices\ntable: clips.csv\nfolder: clips\ngroup: gender\nstrata: text\n{extra}")
        return task_file

    return make
