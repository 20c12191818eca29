"""The explorer's server: parts of files, names it answers to, headers, recordings, and what it takes from others."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Cli, csv_rows, write_rows
from starlette.testclient import TestClient
from test_view_data import make

from equivox.core.files import read_document, write_document
from equivox.report.view.server import PAGE, POLICY, ROUTES, Explorer, application
from equivox.run.manifest import hashes_of, state_hashes

VENDOR = Path(str(PAGE / "vendor"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("view") / "run", "planted,shift=0.3")


def opened(runs: list[Path], scratch: Path, **settings: Any) -> TestClient:
    """Return a client of an explorer of the runs that builds its tables in the folder `scratch`."""
    scratch.mkdir(exist_ok=True)
    return TestClient(application(Explorer(runs, scratch, **settings)), base_url="http://localhost:8000")


@pytest.fixture
def client(run: Path, tmp_path: Path) -> Iterator[TestClient]:
    with opened([run], tmp_path) as client:
        yield client


def a_table(client: TestClient) -> str:
    document = client.get("/view.json").json()
    return str(document["tables"] + document["runs"][0]["tasks"][0]["file"])


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
        assert client.get("/index.html", headers={"host": host}).status_code == 200
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost@evil"):
        for path in ("/index.html", "/view.json", "/" + a_table(client)):
            answer = client.get(path, headers={"host": host})
            assert (answer.status_code, answer.headers["content-type"][:10]) == (421, "text/plain"), host


def test_every_answer_has_the_headers(client: TestClient) -> None:
    for path in ("/", "/index.html", "/view.js", "/view.json", "/media/none", "/nowhere", "/" + a_table(client)):
        headers = client.get(path, follow_redirects=False).headers
        assert headers["content-security-policy"] == f"{POLICY}; frame-ancestors 'none'", path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_the_page_states_its_policy_itself_and_holds_no_script_of_its_own() -> None:
    page = (PAGE / "index.html").read_text()
    assert f'content="{POLICY}"' in page
    assert "unsafe" not in POLICY and "*" not in POLICY
    assert re.findall(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|javascript:", page) == []
    for script in PAGE.rglob("*.js"):
        if "vendor" not in script.parts:
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc", script.read_text()
            )
            assert found == [], script


def test_parts_of_tables(client: TestClient, run: Path) -> None:
    path = a_table(client)
    whole = client.get(path).content
    assert whole[:4] == whole[-4:] == b"PAR1"
    part = client.get(path, headers={"range": "bytes=4-13"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (
        206,
        whole[4:14],
        f"bytes 4-13/{len(whole)}",
    )
    end = client.get(path, headers={"range": "bytes=-8"})
    assert (end.status_code, end.content) == (206, whole[-8:])
    # What is longer than the file, as the page asks for small files.
    assert client.get(path, headers={"range": f"bytes=-{1 << 19}"}).content == whole
    assert client.get(path, headers={"range": "bytes=99999999-"}).status_code == 416


def test_recordings_by_the_hash_of_what_was_sent(client: TestClient, run: Path) -> None:
    plan = pq.read_table(run / "plan.parquet").to_pylist()
    sha256 = plan[0]["media_sha256"][0]
    answer = client.get(f"/media/{sha256}")
    assert (answer.status_code, answer.headers["content-type"], answer.content[:4]) == (200, "audio/ogg", b"OggS")
    part = client.get(f"/media/{sha256}", headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"OggS")
    for wrong in ("0" * 64, "../../manifest.json", "..%2f..%2fmanifest.json", sha256[:-1], sha256 + ".ogg"):
        assert client.get(f"/media/{wrong}").status_code == 404, wrong


def test_a_corpus_that_is_gone_is_said(run: Path, tmp_path: Path) -> None:
    with opened([run], tmp_path, data=str(tmp_path / "gone")) as client:
        sha256 = pq.read_table(run / "plan.parquet").to_pylist()[0]["media_sha256"][0]
        answer = client.get(f"/media/{sha256}")
        assert answer.status_code == 404 and "--data" in answer.text
        assert str(tmp_path) not in answer.text


def test_nothing_outside_of_the_page_and_its_tables_is_served(client: TestClient) -> None:
    built = a_table(client).split("/")[1]
    for path in (
        "/data/../run/manifest.json", f"/data/{built}/..%2f..%2frun%2fmanifest.json", f"/data/{built}/view.json",
        "/../server.py", "/%2e%2e/server.py", "/vendor/../../server.py", "/data/data9/run0-task0.parquet",
    ):  # fmt: skip
        assert client.get(path).status_code == 404, path
    for path in ("/view.json", "/index.html"):
        assert client.post(path).status_code == 405


def test_a_page_that_was_installed_by_links_is_served(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = shutil.copytree(str(PAGE), tmp_path / "linked", copy_function=os.symlink)
    page: Any = ROUTES[-1]
    monkeypatch.setattr(page.app, "all_directories", [linked])
    assert [client.get(path).status_code for path in ("/", "/view.css", "/gone.css")] == [200, 200, 404]


def test_the_tables_are_built_anew_when_a_run_is_scored(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    scores = (folder / "scores.json").read_bytes()
    (folder / "scores.json").unlink()
    with opened([folder], tmp_path / "scratch") as client:
        before = client.get("/view.json").json()
        assert not before["runs"][0]["scored"]
        assert client.get("/view.json").json()["tables"] == before["tables"]
        (folder / "scores.json").write_bytes(scores)
        after = client.get("/view.json").json()
        assert after["runs"][0]["scored"] and after["tables"] != before["tables"]
        # A page that was open goes on.
        assert client.get(before["tables"] + before["runs"][0]["tasks"][0]["file"]).status_code == 200


def test_a_damaged_run_is_said(run: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    client = opened([folder], tmp_path)
    text = (folder / "scores.json").read_text()
    (folder / "scores.json").write_text(text.replace('"value"', '"valve"', 1))
    with client:
        answer = client.get("/view.json")
        assert answer.status_code == 409 and "scores.json" in answer.json()["problem"]


def screen(runs: list[Path], scratch: Path, where: str) -> dict[str, Any]:
    """Return the content of a screen of tables."""
    with opened(runs, scratch) as client:
        answer = client.get(f"/results/{where}")
        assert answer.status_code == 200
        return dict(answer.json())


def screens(run: Path, scratch: Path) -> list[str]:
    with opened([run], scratch) as client:
        return list(client.get("/view.json").json()["runs"][0]["screens"])


def test_labels_kept_with_a_run_are_a_screen(run: Path, tmp_path: Path, equivox: Cli) -> None:
    assert screens(run, tmp_path / "before") == ["gate"]
    found = screen([run], tmp_path / "before", "labels/0")
    assert "no labels of people are kept" in found["problem"]
    folder, sheet = shutil.copytree(run, tmp_path / "run"), tmp_path / "sheet"
    equivox.done("label", "draw", folder, "--n", 6, "--no-media", "--output", sheet)
    rows = csv_rows(sheet / "sheet.csv")
    for row in rows:
        row["label"] = "unstated" if row["attribute"] == "hobby" else "no"
    write_rows(sheet / "labels-ana.csv", rows)
    equivox.done("label", "score", sheet, "--store")
    assert screens(folder, tmp_path / "after") == ["labels", "gate"]
    found = screen([folder], tmp_path / "after", "labels/0")
    agreement, corrected = found["tables"]
    assert agreement["caption"] == "The annotator against 1 person (person-1), 12 responses"
    stated = {one["attribute"]: one for one in read_document(folder / "audit/answers/audit.json")["attributes"]}
    for row in agreement["rows"]:
        assert row[:3] == [row[0], str(stated[row[0]]["n"]), f"{stated[row[0]]['agreement']:.2f}"]
    assert stated["hobby"]["agreement"] < 50 and corrected["columns"][5] == "corrected"
    assert any("people say 'unstated', the annotator" in remark for remark in agreement["remarks"])
    # A run that came from elsewhere leads to no other folder.
    key = read_document(folder / "audit/answers/key.json")
    for entry in key.values():
        entry["run"] = str(run)
    write_document(folder / "audit/answers/key.json", key)
    assert "are about another run" in screen([folder], tmp_path / "after", "labels/0")["problem"]


def test_a_gate_is_a_screen_with_the_outcomes_of_the_command(run: Path, tmp_path: Path, equivox: Cli) -> None:
    other = make(tmp_path / "other", "biased")
    code, _, _ = equivox("gate", other, "--baseline", run, "--margin", "5", "--json", tmp_path / "gate.json")
    checks = json.loads((tmp_path / "gate.json").read_text())["checks"]
    found = screen([run, other], tmp_path / "one", "gate/1?margin=5&baseline=0")
    assert code == 3
    assert [row[0] for row in found["tables"][0]["rows"]] == [check["outcome"] for check in checks]
    assert "worse" in {check["outcome"] for check in checks}
    found = screen([run, other], tmp_path / "one", "gate/1?max=100")
    assert [row[:2] for row in found["tables"][0]["rows"]] == [["pass", "vibe_gender:advisory"]]
    for where, reason in {
        "gate/0": "nothing is checked",
        "gate/0?margin=5": "open its run beside this one",
        "gate/0?margin=5&baseline=7": "open its run beside this one",
        "gate/0?margin=five&baseline=1": "`margin` is a number",
        "gate/0?margin=5&baseline=0": "the new run itself",
        "gate/9?max=5": "no such run",
        "other/0": "no such screen",
    }.items():
        found = screen([run, other], tmp_path / "one", where)
        assert reason in found["problem"], where


def test_a_forged_run_passes_no_gate_in_the_page(run: Path, tmp_path: Path) -> None:
    forged = shutil.copytree(run, tmp_path / "forged")
    document = read_document(forged / "scores.json")
    for score in document["scores"]:
        score |= {"value": 0.0, "estimate": 0.0, "ci_low": 0.0, "ci_high": 0.0}
    write_document(forged / "scores.json", document)
    state_hashes(forged)
    found = screen([forged], tmp_path / "scratch", "gate/0?max=5")
    assert "its numbers are not what its answers give" in found["problem"]


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


def test_a_run_is_not_written_by_looking_at_it(run: Path, client: TestClient) -> None:
    before = hashes_of(run)
    for path in ("/view.json", "/" + a_table(client)):
        client.get(path)
    assert hashes_of(run) == before


def test_a_port_that_is_taken_is_one_line(run: Path, equivox: Cli) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, out, err = equivox("view", run, "--no-open", "--port", taken.getsockname()[1])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--port" in err


def test_every_file_is_the_one_that_was_published() -> None:
    stated = json.loads((VENDOR / "vendor.json").read_text())
    files = {name: digest for package in stated["packages"] for name, digest in package["files"].items()}
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    assert there - {"vendor.json", "README.md"} == set(files)
    for name, digest in files.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_every_package_has_its_version_and_its_licence() -> None:
    for package in json.loads((VENDOR / "vendor.json").read_text())["packages"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert package["integrity"].startswith("sha512-")
        licence = (VENDOR / package["folder"] / "LICENSE").read_text()
        assert package["licence"] == "MIT" and "Permission is hereby granted, free of charge" in licence


def test_every_module_imports_only_what_is_there() -> None:
    root = Path(str(PAGE))
    for script in root.rglob("*.js"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", script.read_text(), flags=re.DOTALL)
        for name in re.findall(r"""(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']""", text):
            assert name.startswith("."), (script, name)
            assert (script.parent / name).resolve().is_file(), (script, name)
