"""The experiments of `docs/experiments.md`: every command as printed, and what it prints."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from commands import Cli
from docs_pages import DOCS, ROOT, all_blocks, file_named

PAGE = DOCS / "experiments.md"


@contextmanager
def served(words: list[str], port: int) -> Iterator[None]:
    """Run a server of the page until the block is left; it listens at `port`."""
    words = [str(port) if word in ("8000", "8001") else word for word in words]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, words
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def test_every_command_prints_what_the_page_says(equivox: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ports = {"8000": str(free_port()), "8001": str(free_port())}
    printed, done = "", 0
    with ExitStack() as stack:
        for language, block in all_blocks(PAGE):
            if name := file_named(block):
                (tmp_path / name).write_text(block)
            for line in block.replace("\\\n", " ").splitlines() if language == "console" else []:
                words = shlex.split(line.removeprefix("$ ").partition("  #")[0])
                if words[0] == "python" and words[-1] == "&":
                    (port,) = (word for word in words if word in ports)
                    stack.enter_context(served(words[1:-1], int(ports[port])))
                elif words[0] == "python":
                    subprocess.run([sys.executable, *words[1:]], check=True)
                elif words[0] == "equivox":
                    for stated, port in ports.items():
                        words = [word.replace(f":{stated}/", f":{port}/") for word in words]
                    out = equivox.done(*words[1:])
                    printed += out
                    done += 1
            if language == "text":
                for line in block.strip().splitlines():
                    assert line.strip() in printed, line
    assert done == 11
