"""Engines that take their time and write down when each of their processes held a model; workers import them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.requests import Engine, EngineIdentity, Request, Response

LONGEST_S = 120.0
LOG = "EQUIVOX_TEST_LOG"
"""The environment variable that names the folder of the log; workers get it from the driver."""


def one_engine(scheme: str, arguments: Mapping[str, Any]) -> Slow:
    """Return a test engine in the place of the one that a run file names."""
    return Slow(str(arguments["model_name"]), float(arguments.get("delay", 0.02)), str(arguments.get("until", "")))


class Slow(Engine):
    """Answers after `delay` seconds: a form with values that depend on the text, or a sentence.

    One request, of all that the processes of a model answer, takes until a process holds the model `until`. The model
    `broken` cannot load.
    """

    modalities = frozenset({"text", "audio", "image"})

    def __init__(self, model: str, delay: float, until: str) -> None:
        self.identity = EngineIdentity(engine="slow", model=model, revision="1")
        self._delay, self._until = delay, until
        self._began = 0.0

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        self._began = self._began or time.time()
        (Path(os.environ[LOG]).parent / f"held-{self.identity.model}").touch()
        if self.identity.model == "broken":
            raise RequestError("broken needs 80 GB, the GPU has 24")
        for one in requests:
            self._wait()
            text = f"A sentence about {one.key[:4]}." if one.schema is None else form(one)
            yield Response(key=one.key, text=text, completion_tokens=8, media_items=len(one.media))

    def _wait(self) -> None:
        until, self._until = self._until, ""
        time.sleep(self._delay)
        if until:
            folder, end = Path(os.environ[LOG]).parent, time.monotonic() + LONGEST_S
            with contextlib.suppress(FileExistsError):
                (folder / f"once-{self.identity.model}").touch(exist_ok=False)
                while not (folder / f"held-{until}").exists() and time.monotonic() < end:
                    time.sleep(0.05)

    def close(self) -> None:
        if self._began:
            line = f"{self.identity.model} {self._began} {time.time()}\n"
            (Path(os.environ[LOG]) / f"{os.getpid()}-{self._began}").write_text(line)
            self._began = 0.0


def form(request: Request) -> str:
    """Return the form of an annotator, filled by a hash of the prompt."""
    filled = {}
    for name, node in (request.schema or {})["properties"].items():
        single = node.get("items", node)
        chosen = int(hashlib.sha256(f"{name} {request.text}".encode()).hexdigest(), 16)
        options = single.get("enum", ["baker", "nurse", "pilot"])
        value = "no" if name == "refusal" else options[chosen % len(options)]
        filled[name] = [f"{value} {number}" for number in range(node["minItems"])] if "items" in node else value
    return json.dumps(filled)


Spans = dict[str, list[tuple[float, float]]]


def spans(folder: Path) -> Spans:
    """Return when each process held each model: (from, to)."""
    found: Spans = defaultdict(list)
    for file in folder.iterdir():
        model, began, ended = file.read_text().split()
        found[model].append((float(began), float(ended)))
    return found


def most_at_once(found: Spans) -> int:
    """Return how many processes held a model at the same time at most."""
    changes = sorted(change for own in found.values() for a, b in own for change in ((a, 1), (b, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def overlap(found: Spans, first: str, second: str) -> bool:
    """Return whether one process held the first model while another one held the second."""
    return any(a < d and c < b for a, b in found[first] for c, d in found[second])
