"""Thirty secrets of many shapes are given to a run; no byte that is written holds one of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from commands import Cli

ChatServer = Callable[[Callable[[dict[str, Any]], tuple[int, str]]], str]

ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-environmentkey0001", "MY_GATEWAY_KEY": "plain0002environment",
    "HF_TOKEN": "hf_environment0003", "AWS_SECRET_ACCESS_KEY": "aws/environ+ment0004",
    "DB_PASSWORD": "pass word;),'0005", "PROXY_AUTH": "environmentauth0006",
    "SITE_COOKIE": "cookie=environment0007",
}  # fmt: skip
URL = {"user": "person0008", "password": "p;w),'0009", "query": "query0010"}
BODY = {
    "authorization": {"value": "Bearer body0011"}, "X-Auth": "body0012", "key": "body0013", "pass": 40140014,
    "pwd": "body0015", "sig": "body0016", "session_id": "body0017",
    "tenant": {"model": "body0018", "list": ["body0019", {"top_k": "body0020"}]},
    "number": 0.210021, "auth": {"user": {"name": "body0022"}},
}  # fmt: skip
GIVEN = ["body00" + str(number) for number in (11, 12, 13, 15, 16, 17, 18, 19, 20, 22)] + ["40140014", "0.210021"]
SERVERS = {
    "bearer": "Bearer server0023server", "json": '{"error": {"api_key": "server0024"}}', "url": "http://a:server0025@h/x",
    "query": "see https://h/x?signature=server0026,", "token": "hf_server0027server", "slack": "xoxb-server0028server",
    "jwt": "eyJserver0029x.eyJserver0029x.server0029", "cookie": "Set-Cookie: server0030",
}  # fmt: skip
MARKS = (
    *ENVIRONMENT.values(), *URL.values(), *GIVEN,
    "server0023", "server0024", "server0025", "server0026", "server0027", "server0028", "server0029", "server0030",
)  # fmt: skip


@pytest.fixture
def server(chat_server: ChatServer) -> str:
    """A server that answers most of what it is asked, and repeats every secret it can in its errors."""
    told = [
        *SERVERS.values(), *ENVIRONMENT.values(), *URL.values(), *GIVEN,
        *(quote(secret, safe="") for secret in ENVIRONMENT.values()),
        *(base64.b64encode(secret.encode()).decode() for secret in ENVIRONMENT.values()),
    ]  # fmt: skip
    asked = iter(range(10**6))

    def reply(body: dict[str, Any]) -> tuple[int, str]:
        number = next(asked)
        if number % 4 or body["messages"][0]["content"] == "Hello.":
            return 200, f"A {('nurse', 'teacher')[number % 7 % 2]} called Kim, 30 years old."
        return 400, f"no: {told[number // 4 % len(told)]}"

    return f"http://{URL['user']}:{URL['password']}@{chat_server(reply)}/v1?key={URL['query']}"


def found_in(folder: Path, marks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Every place of a mark in the bytes of files, and in the texts of their columns."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data += json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False, default=str).encode()
            forms = {mark: (mark, quote(mark, safe=""), base64.b64encode(mark.encode()).decode()) for mark in marks}
            found += [(path.name, mark) for mark in marks if any(form.encode() in data for form in forms[mark])]
    return found


def test_no_secret_is_written_anywhere(
    server: str, tmp_path: Path, equivox: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(MARKS) == 30
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    model = tmp_path / "private models" / "mine.yaml"
    model.parent.mkdir()
    arguments = {
        "model_name": "m", "base_url": server, "api_key_env": "MY_GATEWAY_KEY", "max_retries": 0, "trust_media": True,
        "extra_body": BODY, "max_concurrency": 2,
    }  # fmt: skip
    model.write_text(json.dumps({"engine": "endpoint", "model_parameters": arguments}))
    judge = tmp_path / "judge.yaml"
    judge.write_text(json.dumps({"engine": "endpoint", "attempts": 1, "model_parameters": arguments}))
    monkeypatch.chdir(tmp_path)
    said = []
    common = ("vibe_gender:story", "--data", "sample", "--limit", 96, "--scoring", "n_resamples=99,min_coverage=0.01")
    said.append(equivox("run", model, *common, "--annotator", "rules", "-o", "runs/file"))
    inline = ",".join(
        f"{name}={json.dumps(value).replace(chr(34), '')}" for name, value in arguments.items() if name != "base_url"
    )
    address = server.replace(URL["password"], quote(URL["password"], safe=""))
    said.append(
        equivox("run", f"endpoint:{inline},base_url={address}", *common, "--annotator", "rules", "-o", "runs/inline")
    )
    said.append(equivox("annotate", "runs/file", "--annotator", judge))
    said.append(equivox("status", "runs/file"))
    said.append(equivox("report", "runs/file", "runs/inline", "-o", "out/report.html"))
    said.append(equivox("leaderboard", "runs", "-o", "out/board"))
    said.append(equivox("compare", "runs/file", "runs/inline", "--tables", "out/csv", "--resamples", 99))
    said.append(equivox("data", "push", "runs/file", "--repo", "org/run", "-o", "out/hub"))
    marks = [word for mark in ("undefined", "low-coverage", "modified-data") for word in ("--mark", mark)]
    where = ("--model-repo", "org/m", "--benchmark", "org/e-{corpus}", "-o", "out/submission")
    said.append(equivox("submit", "runs/file", *where, *marks))
    for folder in ("runs", "out"):
        assert found_in(tmp_path / folder, MARKS) == []
    for _, out, err in said:
        assert [mark for mark in MARKS if mark in out + err] == []
    assert [err for code, _, err in said if code not in {0, 1}] == []
    assert (tmp_path / "runs" / "file" / "responses").is_dir() and len(said) == 9
    for name in ("report.html", "board/index.html", "hub/manifest.json"):
        assert (tmp_path / "out" / name).is_file(), said
    # What is published does not say where it lay.
    assert found_in(tmp_path / "out", (str(tmp_path), "private models")) == []
    (stored,) = [json.loads(path.read_text()) for path in (tmp_path / "runs" / "file").glob("manifest.json")]
    settings = stored["identity"]["model"]["settings"]
    assert settings["extra_body"]["tenant"] == {"model": "(left out)", "list": ["(left out)", {"top_k": "(left out)"}]}


def test_arguments_that_are_not_written_down_still_tell_runs_apart(server: str, tmp_path: Path, equivox: Cli) -> None:
    def run(mode: str) -> tuple[int, str, str]:
        body = f"extra_body={{mode_of_server: {mode}}}"
        address = server.replace(URL["password"], "pw")
        arguments = f"model_name=m,base_url={address},{body},max_retries=0,trust_media=true"
        return equivox(
            "run", f"endpoint:{arguments}", "vibe_gender:story", "--data", "sample", "--limit", 8,
            "-o", tmp_path / "run", "--annotator", "rules", "--scoring", "n_resamples=99", "--stop-after", 0,
        )  # fmt: skip

    assert run("fast")[0] == 1
    code, _, err = run("slow")
    assert code == 2 and "holds another run" in err and "does not store" in err
    assert run("fast")[0] == 1
