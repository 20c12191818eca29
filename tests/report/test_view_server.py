"""The explorer's server: names it answers to, headers, recordings, and what it takes from others."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from starlette.testclient import TestClient
from test_view_data import TASK, make

from equivox.report.view.server import FRAMES, HEADERS, Explorer, application
from equivox.run.manifest import hashes_of

PAGE = resources.files("equivox.report.page")
ANSWERS = f"/answers?task=0/{TASK}"
MEDIUM = f"/media?task=0/{TASK}&row=0&number=0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("view") / "run", "planted,shift=0.3")


def opened(runs: list[Path], **settings: Any) -> TestClient:
    """Return a client of an explorer of the runs."""
    return TestClient(application(Explorer(runs, **settings)), base_url="http://localhost:8000")


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[TestClient]:
    with opened([run]) as client:
        yield client


@pytest.mark.parametrize("numbers", [[signal.SIGINT] * 2, [signal.SIGTERM]])
def test_a_server_ends_without_a_traceback_however_often_it_is_told(run: Path, numbers: list[int]) -> None:
    # A process that was started in the background ignores interrupts.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import equivox.cli as cli; "
    )
    command = [sys.executable, "-c", f"{program}cli.main(sys.argv[1:])", "view", str(run), "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "Ctrl-C ends it" in server.stdout.readline()
    for number in numbers:
        server.send_signal(number)
    assert (server.communicate(timeout=60)[1], server.returncode) == ("", 0)


def test_only_names_of_this_machine_are_answered(client: TestClient) -> None:
    for host in ("127.0.0.1", "localhost:8000", "[::1]:8000"):
        assert client.get("/", headers={"host": host}).status_code == 200
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost@evil"):
        for path in ("/", ANSWERS, MEDIUM):
            answer = client.get(path, headers={"host": host})
            assert (answer.status_code, answer.headers["content-type"][:10]) == (421, "text/plain"), host


def test_every_answer_has_the_headers(client: TestClient) -> None:
    for path in ("/", ANSWERS, MEDIUM, "/answers", "/media", "/nowhere"):
        headers = client.get(path, follow_redirects=False).headers
        policy = FRAMES if path == "/" else f"default-src 'none'; {FRAMES}"
        assert {**HEADERS, "content-security-policy": policy}.items() <= headers.items(), path
        assert "access-control-allow-origin" not in headers
    assert client.get("/", headers={"host": "evil.example"}).headers["x-frame-options"] == "DENY"


def test_the_page_states_its_policy_and_holds_no_script_but_its_own(client: TestClient) -> None:
    page = client.get("/").text
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "*" not in policy
    assert "http:" not in policy and "https:" not in policy
    assert re.findall(r"<[^>]*\s(?:on\w+|style)=|javascript:|<script\s", page) == []
    script = PAGE.joinpath("page.js").read_text("utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc", script)


def test_recordings_of_a_request_and_their_parts(client: TestClient) -> None:
    answer = client.get(MEDIUM)
    assert (answer.status_code, answer.headers["content-type"], answer.content[:4]) == (200, "audio/ogg", b"OggS")
    whole = answer.content
    for asked, part in (("0-3", whole[:4]), ("4-", whole[4:]), (f"0-{10**9}", whole)):
        answer = client.get(MEDIUM, headers={"range": f"bytes={asked}"})
        assert (answer.status_code, answer.content) == (206, part)
    assert client.get(MEDIUM, headers={"range": "bytes=99999999-"}).status_code == 416
    for row, number in (("96", "0"), ("-1", "0"), ("0", "1"), ("x", "0"), ("../../manifest.json", "0"), ("0", "")):
        assert client.get(f"/media?task=0/{TASK}&row={row}&number={number}").status_code == 404, (row, number)


def test_a_corpus_that_is_gone_is_said(run: Path, tmp_path: Path) -> None:
    with opened([run], data=str(tmp_path / "gone")) as client:
        answer = client.get(MEDIUM)
        assert answer.status_code == 404 and "--data" in answer.text
        assert str(tmp_path) not in answer.text


def test_nothing_else_is_served_and_nothing_is_taken(client: TestClient) -> None:
    for path in ("/../run/manifest.json", "/%2e%2e/server.py", "/index.html", "/page.js", "/media/x", "/answers/0"):
        assert client.get(path).status_code == 404, path
    for path in ("/", ANSWERS, MEDIUM):
        assert client.post(path).status_code == 405


def test_a_run_is_opened_again_when_it_is_scored_and_a_damaged_one_is_said(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    scores = (folder / "scores.json").read_text()
    (folder / "scores.json").unlink()
    with opened([folder]) as client:
        assert "not scored yet" in client.get("/").text
        (folder / "scores.json").write_text(scores)
        assert "not scored yet" not in client.get("/").text
        (folder / "scores.json").write_text(scores.replace('"value"', '"valve"', 1))
        answer = client.get("/")
        assert answer.status_code == 404 and "scores.json" in answer.text and str(tmp_path) not in answer.text


def test_a_run_is_not_written_by_looking_at_it(run: Path, client: TestClient) -> None:
    before = hashes_of(run)
    for path in ("/", ANSWERS, MEDIUM):
        client.get(path)
    assert hashes_of(run) == before


def test_a_port_that_is_taken_is_one_line(run: Path, equivox: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, out, err = equivox("view", run, "--no-open", "--port", taken.getsockname()[1])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--port" in err


USED = {"requests": 30, "prompt_tokens": 3000, "completion_tokens": 600, "cost": 0.25}
"""What an engine used of a server."""


def test_what_an_annotator_used_is_stored_beside_its_annotations(run: Path, tmp_path: Path) -> None:
    from equivox.annotate import Annotator, open_annotator
    from equivox.run.annotating import annotate
    from equivox.run.declarations import read_tasks
    from equivox.run.live import read_usage

    folder = shutil.copytree(run, tmp_path / "run")
    rules = open_annotator("rules")

    used = Counter(USED)

    class Judge(Annotator):
        identity, usage = rules.identity, used

        def annotate(self, jobs: Any) -> Any:
            used["requests"] += 5
            return rules.annotate(jobs)

    shutil.rmtree(folder / "annotations")
    annotate(folder, read_tasks(folder), Judge(), engine="simulated")
    # What the engine had used before this run's annotation is not this run's.
    assert read_usage(folder / "annotations" / "rules")["requests"] == used["requests"] - 30 > 0
