"""A stand-in for the Hub's HTTP API on the loopback: repositories in memory, and failures on demand.

It assumes of the real one:

- `POST /api/repos/create`: 409 where the repository is there already; private as asked for.
- `PUT /api/datasets/ID/settings`: sets `gated`.
- `POST /api/TYPEs/ID/preupload/REV`: tells for each file whether it goes with the commit (`regular`) or before it
  (`lfs`); parquet goes before it.
- `POST /ID.git/info/lfs/objects/batch` (git-lfs): an upload address for each object, none where it has the object.
- `POST /api/validate-yaml`: finds no fault with a card's header.
- `PUT` of the object's bytes to that address.
- `GET /api/TYPEs/ID/tree/REV`: the files that are there, in one page.
- `POST /api/TYPEs/ID/commit/REV`: lines of JSON (header, file, lfsFile, deletedFile); refused where an object is
  missing; with `create_pr=1` a pull request, which leaves the main branch as it is.
- `GET /api/TYPEs/ID/revision/REV`: the commit, the names of the files that are there, and of a model what its card
  states.
- `HEAD` and `GET /datasets/ID/resolve/REV/PATH`: a file, with its commit and its ETag.
- 401 without a known token, 403 where the token may not write, 404 for what is not there.

Not modelled: the xet protocol (switched off by HF_HUB_DISABLE_XET), multipart uploads, rate limits by time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

TOKEN = "hf_test"


@dataclass
class Repo:
    private: bool = False
    gated: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    pull_requests: list[dict[str, bytes]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    stated: dict[str, Any] = field(default_factory=dict)


@dataclass
class FakeHub:
    url: str = ""
    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    failures: list[tuple[re.Pattern[str], int, int]] = field(default_factory=list)
    """Pattern of `METHOD path`, status, and how many times it still answers so."""

    def fail(self, pattern: str, status: int, times: int = 1_000) -> None:
        self.failures.append((re.compile(pattern), status, times))

    def sent(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    def failure(self, request: str) -> int | None:
        for place, (pattern, status, times) in enumerate(self.failures):
            if times and pattern.search(request):
                self.failures[place] = (pattern, status, times - 1)
                return status
        return None


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        body = self._body()
        path = urlparse(self.path)
        request = f"{self.command} {path.path}"
        self.hub.requests.append(request)
        if status := self.hub.failure(request):
            return self._reply(status, {"error": f"asked to fail with {status}"})
        if self.command == "PUT" and path.path.startswith("/objects/"):
            oid = path.path.rpartition("/")[2]
            if hashlib.sha256(body).hexdigest() != oid:
                return self._reply(400, {"error": "the bytes are not those announced"})
            self.hub.objects[oid] = body
            return self._reply(200, {})
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            return self._reply(401, {"error": "Invalid username or password."})
        self._api(path.path, parse_qs(path.query), body)

    def _api(self, path: str, query: dict[str, list[str]], body: bytes) -> None:
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            kind = asked.get("type") or "model"
            url = f"{self.hub.url}/{'datasets/' if kind == 'dataset' else ''}{name}"
            if (kind, name) in self.hub.repos:
                return self._reply(409, {"url": url, "error": "You already created this repo"})
            self.hub.repos[kind, name] = Repo(
                private=asked.get("visibility") == "private" or bool(asked.get("private"))
            )
            return self._reply(200, {"url": url, "name": name})
        if path == "/api/validate-yaml":
            return self._reply(200, {"errors": [], "warnings": []})
        if found := re.fullmatch(r"/(datasets/)?([^/]+/[^/]+)\.git/info/lfs/objects/batch", path):
            objects = json.loads(body)["objects"]
            return self._reply(200, {"transfer": "basic", "objects": [self._object(entry) for entry in objects]})
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            return self._file(self.hub.repos.get(("dataset", found[1])), found[2])
        found = re.fullmatch(
            r"/api/(model|dataset)s/([^/]+/[^/]+)/(settings|preupload/.+|commit/.+|revision/.+|tree/.+)", path
        )
        repo = self.hub.repos.get((found[1], found[2])) if found else None
        if found is None or repo is None:
            return self._reply(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        if found[3] == "settings":
            repo.gated = json.loads(body)["gated"]
            return self._reply(200, {})
        if found[3].startswith("preupload"):
            files = [
                {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".parquet") else "regular",
                 "shouldIgnore": False, "oid": None}
                for f in json.loads(body)["files"]
            ]  # fmt: skip
            return self._reply(200, {"files": files})
        if found[3].startswith("tree"):
            there = [{"type": "file", "path": p, "size": len(c), "oid": "0" * 40} for p, c in repo.files.items()]
            return self._reply(200, there)
        if found[3].startswith("commit"):
            return self._commit(repo, found[1], found[2], body, pull_request="create_pr" in query)
        siblings = [{"rfilename": name} for name in repo.files]
        self._reply(200, {"id": found[2], "sha": "0" * 40, "siblings": siblings, **repo.stated})

    def _file(self, repo: Repo | None, name: str) -> None:
        if repo is None or name not in repo.files:
            return self._reply(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
        content = repo.files[name]
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha1(content, usedforsecurity=False).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def _object(self, entry: dict[str, Any]) -> dict[str, Any]:
        told = {"oid": entry["oid"], "size": entry["size"]}
        if entry["oid"] in self.hub.objects:
            return told
        return {**told, "actions": {"upload": {"href": f"{self.hub.url}/objects/{entry['oid']}"}}}

    def _commit(self, repo: Repo, kind: str, name: str, body: bytes, *, pull_request: bool) -> None:
        files: dict[str, bytes] = {}
        gone: set[str] = set()
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                repo.messages.append(value["summary"])
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "deletedFile":
                gone.add(value["path"])
            elif value["oid"] not in self.hub.objects:
                return self._reply(400, {"error": f"{value['path']} was not uploaded"})
            else:
                files[value["path"]] = self.hub.objects[value["oid"]]
        base = f"{self.hub.url}/{'datasets/' if kind == 'dataset' else ''}{name}"
        if pull_request:
            repo.pull_requests.append(files)
        else:
            repo.files = {path: content for path, content in repo.files.items() if path not in gone} | files
        self._reply(
            200,
            {
                "success": True,
                "commitOid": "1" * 40,
                "commitUrl": f"{base}/commit/{'1' * 40}",
                "pullRequestUrl": f"{base}/discussions/{len(repo.pull_requests)}" if pull_request else None,
            },
        )

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            content = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _reply(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """Serve an empty hub on the loopback."""
    hub = FakeHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
