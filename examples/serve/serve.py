"""Serve a Python function as an OpenAI-compatible model: python serve.py PLUGIN.py --name NAME --port PORT.

PLUGIN.py has `answer(text, audio, sampling)`, which returns the model's answer as text, and optionally `load()`, which
is called once at the start, and `SETTINGS`, the names in `sampling` that it honours. `audio` is None, or an `Audio`.
A request with a setting that the function does not honour is refused, so that no setting is silently ignored. A model
that speaks has `SPEAKS = True`: asked for an answer by voice (`sampling["voice"]` names one) the function returns the
text and the bytes of a WAV file.

Only Python's standard library is needed (3.8 or newer), so this runs inside the environment that a model's authors ask
for. Requests are answered one at a time. A PLUGIN.py with `answer_all(texts, audios, sampling)`, which returns the
answers to several requests at once, gets up to `--batch` of those that wait and want the same, with no seed because
none of them samples.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import importlib.util
import io
import json
import os
import sys
import tempfile
import threading
import wave
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKENS_PER_SECOND = 25
KNOWN = ("max_tokens", "temperature", "top_p", "top_k", "frequency_penalty", "seed", "stop", "response_format")
"""Settings that a function can honour; all others of OpenAI's are refused."""
NEUTRAL: dict[str, Any] = {"top_p": 1.0, "top_k": 0, "frequency_penalty": 0.0, "n": 1, "stream": False}
"""Values that ask for nothing."""


class Refused(Exception):
    """A request that cannot be answered; the message says why in one line."""


class Audio:
    """One clip. It counts as used when the function reads `path`, so a function that ignores it is noticed."""

    def __init__(self, path: str, seconds: float) -> None:
        self._path = path
        self.seconds = seconds
        self.used = False

    @property
    def path(self) -> str:
        """The path of a WAV file: 16 bits, one channel, 16 kHz as equivox sends it."""
        self.used = True
        return self._path


class Job:
    """A request that waits for its answer; `used` counts the tokens of a clip that the function has read."""

    def __init__(self, text: str, clip: bytes | None, sampling: dict[str, Any]) -> None:
        self.text = text
        self.clip = clip
        self.sampling = sampling
        self.answer: Any = None
        self.used = 0
        self.error: Exception | None = None
        self.done = False

    def goes_with(self, other: Job) -> bool:
        """Return whether one call may answer both: both are greedy and want the same, with a clip or without one."""
        ours, theirs = ({**job.sampling, "seed": None, "clip": job.clip is None} for job in (self, other))
        return ours == theirs and ours.get("temperature") == 0


@contextmanager
def written(clip: bytes | None) -> Iterator[Audio | None]:
    """Write a clip to a file for as long as it is needed."""
    if clip is None:
        yield None
        return
    handle, path = tempfile.mkstemp(suffix=".wav")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(clip)
        yield Audio(path, seconds(clip))
    finally:
        os.unlink(path)


def parsed(
    body: dict[str, Any], settings: tuple[str, ...], speaks: bool = False
) -> tuple[str, bytes | None, dict[str, Any]]:
    """Return the text, the WAV file and the settings of a request; Refused for what would be ignored."""
    messages = body.get("messages")
    if not isinstance(messages, list) or len(messages) != 1 or messages[0].get("role") != "user":
        raise Refused("`messages` must be one user message")
    content = messages[0].get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list):
        raise Refused("`content` must be text or a list of parts")
    texts: list[str] = []
    clips: list[bytes] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind == "input_audio":
            clips.append(decoded(part["input_audio"].get("data", "")))
        else:
            raise Refused(f"a part of type {kind!r} is not taken; send text and input_audio")
    if len(clips) > 1:
        raise Refused(f"{len(clips)} clips in one request; this server takes one")
    sampling = {name: value for name, value in body.items() if name not in ("model", "messages") and value is not None}
    if "max_completion_tokens" in sampling:
        sampling["max_tokens"] = sampling.pop("max_completion_tokens")
    if "modalities" in sampling and sampling.pop("modalities") != ["text"]:
        voice = sampling.pop("audio", None)
        if not speaks:
            raise Refused("this model's function does not speak; ask for text")
        voice = voice.get("voice") if isinstance(voice, dict) else None
        sampling["voice"] = voice if isinstance(voice, str) else "default"
    for name in list(sampling):
        if name == "voice" and speaks:
            continue
        if name in NEUTRAL and sampling[name] == NEUTRAL[name]:
            del sampling[name]
        elif name not in KNOWN or name not in settings:
            raise Refused(f"`{name}` would be ignored: this model's function honours {', '.join(settings) or 'none'}")
    return "\n".join(texts), clips[0] if clips else None, sampling


def decoded(data: str) -> bytes:
    """Return the bytes of a base64 WAV of 16-bit samples; Refused for anything else."""
    try:
        clip = base64.b64decode(data, validate=True)
        seconds(clip)
    except (binascii.Error, wave.Error, EOFError, ValueError) as error:
        raise Refused(f"`input_audio` is no base64 WAV of 16-bit samples ({error})") from error
    return clip


def seconds(clip: bytes) -> float:
    """Return the length of a WAV file; ValueError unless its samples have 16 bits and there is one."""
    with wave.open(io.BytesIO(clip)) as file:
        if file.getsampwidth() != 2 or not file.getnframes():
            raise ValueError(f"{8 * file.getsampwidth()} bits, {file.getnframes()} samples")
        return file.getnframes() / file.getframerate()


class Server(ThreadingHTTPServer):
    """The server of one model."""

    daemon_threads = True

    def __init__(self, plugin: ModuleType, name: str, port: int, host: str = "127.0.0.1", batch: int = 8) -> None:
        self.plugin = plugin
        self.name = name
        # A function that names no settings honours the length alone, which every answer has.
        self.settings: tuple[str, ...] = tuple(getattr(plugin, "SETTINGS", ("max_tokens",)))
        self.speaks = bool(getattr(plugin, "SPEAKS", False))
        self.batch = batch if hasattr(plugin, "answer_all") else 1
        self.waiting: list[Job] = []
        self.one_at_a_time = threading.Lock()
        super().__init__((host, port), Handler)

    def wait(self, job: Job) -> None:
        """Answer a job, and with it others that wait; or find that another thread has answered it."""
        self.waiting.append(job)
        with self.one_at_a_time:
            if job.done:
                return
            others = [one for one in list(self.waiting) if one is not job and one.goes_with(job)]
            jobs = [job, *others[: self.batch - 1]]
            self.answer(jobs)
            for one in jobs:
                one.done = True
                self.waiting.remove(one)

    def answer(self, jobs: list[Job]) -> None:
        """Answer all `jobs` in one call; if it fails, each alone, so that a bad one does not spoil the others."""
        try:
            self.call(jobs)
        except Exception as error:  # a model can fail in any way
            if len(jobs) == 1:
                jobs[0].error = error
                return
            for one in jobs:
                self.answer([one])

    def call(self, jobs: list[Job]) -> None:
        """Ask the plug-in once for the answers to all `jobs`."""
        with ExitStack() as files:
            audios = [files.enter_context(written(job.clip)) for job in jobs]
            if len(jobs) == 1:
                answers = [self.plugin.answer(jobs[0].text, audios[0], jobs[0].sampling)]
            else:
                answers = self.plugin.answer_all([job.text for job in jobs], audios, jobs[0].sampling)
            if len(answers) != len(jobs):
                raise ValueError(f"`answer_all` returned {len(answers)} answers to {len(jobs)} requests")
            for job, answer, audio in zip(jobs, answers, audios):  # noqa: B905 - Python 3.8 knows no `strict`
                job.answer = answer
                job.used = max(1, round(TOKENS_PER_SECOND * audio.seconds)) if audio is not None and audio.used else 0

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return OpenAI's completion for a request."""
        if body.get("model") != self.name:
            raise LookupError(f"this server has the model {self.name}, not {body.get('model')}")
        text, clip, sampling = parsed(body, self.settings, self.speaks)
        job = Job(text, clip, sampling)
        self.wait(job)
        if job.error is not None:
            raise job.error
        answer, used = job.answer, job.used
        message: dict[str, Any] = {"role": "assistant"}
        if "voice" in sampling:
            answer, sound = answer
            encoded = base64.b64encode(sound).decode()
            message["audio"] = {"id": "audio", "data": encoded, "transcript": answer, "expires_at": 0}
        if not isinstance(answer, str):
            raise TypeError(f"`answer` must return text, it returned {type(answer).__name__}")
        # Words, and 25 per second of audio that was read: a proof that it arrived, not the model's own count.
        prompt, completion = len(text.split()) + used, len(answer.split())
        return {
            "object": "chat.completion",
            "model": self.name,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {**message, "content": answer}}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"audio_tokens": used},
            },
        }


class Handler(BaseHTTPRequestHandler):
    """The two addresses of the API that are needed."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Answer /v1/models."""
        self.reply(200, {"object": "list", "data": [{"id": self.server.name, "object": "model"}]})

    def do_POST(self) -> None:
        """Answer /v1/chat/completions."""
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            if self.path.rstrip("/") != "/v1/chat/completions":
                raise LookupError(f"there is no {self.path}")
            if not isinstance(body, dict):
                raise Refused("the body must be an object")
            document, status = self.server.complete(body), 200
        except LookupError as error:
            document, status = problem(error), 404
        except (Refused, json.JSONDecodeError) as error:
            document, status = problem(error), 400
        except Exception as error:  # a model can fail in any way; the next request is answered
            document, status = problem(error), 422
        self.reply(status, document)

    def reply(self, status: int, document: dict[str, Any]) -> None:
        """Send a JSON document."""
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def problem(error: Exception) -> dict[str, Any]:
    """Return an error as OpenAI's servers write it."""
    return {"error": {"message": " ".join(f"{type(error).__name__}: {error}".split()), "type": "invalid_request_error"}}


def plugged(path: str) -> ModuleType:
    """Return the module of a file that has a function `answer`."""
    found = importlib.util.spec_from_file_location("plugin", path)
    if found is None or found.loader is None or not os.path.isfile(path):
        sys.exit(f"{path} is no Python file; name one that has answer(text, audio, sampling)")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    if not callable(getattr(module, "answer", None)):
        sys.exit(f"{path} has no function answer(text, audio, sampling); write one, README.md shows how")
    return module


def main() -> None:
    """Load the model of a plug-in and serve it until it is stopped."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("plugin")
    options.add_argument("--name", required=True, help="the model_name of the requests")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--batch", type=int, default=8, help="the most requests that one call of answer_all gets")
    given = options.parse_args()
    plugin = plugged(given.plugin)
    if hasattr(plugin, "load"):
        plugin.load()
    with Server(plugin, given.name, given.port, given.host, given.batch) as server:
        sys.stderr.write(f"{given.name} at http://{given.host}:{server.server_port}/v1\n")
        server.serve_forever()


if __name__ == "__main__":
    main()
