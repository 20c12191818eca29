"""Engines for the tests of pools; workers import them from here."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from equivox.core.errors import UsageError
from equivox.core.requests import Engine, EngineIdentity, Request, Response


class Answering(Engine):
    """Answers each request with the process that it is in, after `delay` seconds."""

    modalities = frozenset({"text", "audio"})

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.identity = EngineIdentity(engine="answering", model="tiny", revision="1")

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for one in requests:
            yield self.answer(one)

    def answer(self, one: Request) -> Response:
        time.sleep(self.delay)
        heard = [hashlib.sha256(part.load()).hexdigest() for part in one.media]
        return Response(key=one.key, text=" ".join([str(os.getpid()), *heard]), media_items=len(heard))


class OnGpu(Answering):
    """Asks for a GPU of its own, which decides on which machine it runs."""

    gpus = 1


class FirstIsSlow(Answering):
    """The first process that opens it takes half a second for a request, the others take none."""

    def __init__(self, folder: str) -> None:
        super().__init__(-1)
        self._folder = Path(folder)

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        if self.delay < 0:
            try:
                (self._folder / "slow").touch(exist_ok=False)
                self.delay = 0.5
            except FileExistsError:
                self.delay = 0.01
        return super().generate(requests)


class Deadly(Answering):
    """A request whose text holds `word` kills the process; with `once`, only the first time."""

    def __init__(self, word: str, folder: str, *, once: bool) -> None:
        super().__init__(0.005)
        self._word, self._once, self._mark = word, once, Path(folder) / "died"

    def answer(self, one: Request) -> Response:
        if self._word in one.text and not (self._once and self._mark.exists()):
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(one)


class CannotLoad(Answering):
    """Opens, but cannot load its model."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        raise UsageError("tiny needs 80 GB, the GPU has 24; give it several (tensor_parallel_size)")


class Dying(Answering):
    """Is killed when it begins, as by a system without memory."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().generate(requests)


class Leaving(Answering):
    """Ends its process, as it thinks."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        raise SystemExit(0)


class OtherModel(Answering):
    """Is another version of its model wherever it is not opened first."""

    def __init__(self, driver: int) -> None:
        super().__init__()
        version = "1.0" if os.getpid() == driver else "2.0"
        self.identity = EngineIdentity(
            engine="answering", model="tiny", revision="1", settings={"vllm": version}, public=frozenset({"vllm"})
        )


class Batching(Answering):
    """Takes four requests before it answers any."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        batch: list[Request] = []
        for one in requests:
            batch.append(one)
            if len(batch) == 4:
                yield from map(self.answer, batch)
                batch = []
        yield from map(self.answer, batch)


class DeadlyBatching(Batching, Deadly):
    """Takes four requests before it answers any, and dies of one."""


class Forgetful(Answering):
    """Leaves every tenth request without an answer."""

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for one in requests:
            if not one.key.endswith("7"):
                yield self.answer(one)


class HereAlone:
    """Reads a clip in one process only, as if no other machine had the file."""

    def __init__(self, content: bytes) -> None:
        self._content, self._process = content, os.getpid()

    def __call__(self) -> bytes:
        if os.getpid() != self._process:
            raise FileNotFoundError("no such clip on this machine")
        return self._content
