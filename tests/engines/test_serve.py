"""`examples/serve`: a function behind an OpenAI-compatible server on loopback, asked by the endpoint engine."""

from __future__ import annotations

import base64
import importlib.util
import io
import re
import sys
import threading
import wave
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import Cli
from made_requests import made_request

from equivox.configs import read_config_file
from equivox.core import media
from equivox.core.task import Sampling
from equivox.engines import MediaPart, ModelFile, Request, model_names
from equivox.engines.endpoint import EndpointEngine
from equivox.engines.simulated_numbers import speak

SETTINGS = ("max_tokens", "temperature", "seed")
SERVE = Path(__file__).resolve().parents[2] / "examples" / "serve"
Start = Callable[..., str]


def module(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"serve_{name}", SERVE / f"{name}.py")
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules[found.name] = made
    found.loader.exec_module(made)
    return made


@pytest.fixture
def start() -> Iterator[Start]:
    """Serve a function as the model `mine`; returns its URL."""
    serve, running = module("serve"), []

    def begin(answer: Callable[..., Any], **others: Any) -> str:
        server = serve.Server(SimpleNamespace(answer=answer, **others), "mine", 0)
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/v1"

    yield begin
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_function_that_speaks_answers_by_voice(start: Start) -> None:
    heard: list[Any] = []

    def answer(text: str, audio: Any, sampling: dict[str, Any]) -> Any:
        heard.append(sampling.get("voice"))
        return ("One two.", speak("One two.")) if "voice" in sampling else "One two."

    speaking = {
        "model_name": "mine",
        "base_url": start(answer, SPEAKS=True, SETTINGS=SETTINGS),
        "trust_media": True,
        "voice": "low",
    }
    asked = [replace(request(key="a"), spoken=True), request("Again?", key="b")]
    with EndpointEngine.from_args(speaking) as engine:
        found = {one.key: one for one in engine.generate(asked)}
    assert (found["a"].text, found["a"].sound) == ("One two.", speak("One two."))
    assert (found["b"].text, found["b"].sound) == ("One two.", None)
    assert sorted(map(str, heard)) == ["None", "low"]
    with EndpointEngine.from_args({**speaking, "base_url": start(lambda *given: "Hm.", SETTINGS=SETTINGS)}) as mute:
        (refused,) = mute.generate(asked[:1])
    assert refused.text is None and "does not speak" in str(refused.error)


def request(text: str = "Who speaks?", seconds: float = 0.0, key: str = "k", **sampling: Any) -> Request:
    parts: tuple[MediaPart, ...] = ()
    if seconds:
        buffer = io.BytesIO()
        # Another rate and two channels: equivox sends one channel at 16 kHz.
        soundfile.write(buffer, np.full((round(44_100 * seconds), 2), 0.25), 44_100, format="WAV")
        data = buffer.getvalue()
        parts = (MediaPart(kind="audio", sha256=media.sha256(data), name="clip.wav", load=lambda: data),)
    return made_request(5, *parts, key=key, text=text, sampling=Sampling(**({"max_new_tokens": 7} | sampling)))


def ask(url: str, *requests: Request, **options: Any) -> list[Any]:
    with EndpointEngine.from_args({"model_name": "mine", "base_url": url, "max_retries": 0} | options) as engine:
        engine.check(list(requests))
        return list(engine.generate(requests))


def test_a_clip_and_the_settings_reach_the_function(start: Start) -> None:
    seen: list[Any] = []

    def answer(text: str, audio: Any, sampling: dict[str, Any]) -> str:
        if audio is None:
            return "nothing"
        with wave.open(audio.path) as file:
            seen.append((file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()))
        seen.append((text, audio.seconds, sampling))
        return "a nurse speaks"

    url = start(answer, SETTINGS=("max_tokens", "temperature", "seed"))
    (response,) = ask(url, request(seconds=2.0))
    assert (response.text, response.error) == ("a nurse speaks", None)
    assert seen == [
        (1, 2, 16_000, 32_000),
        ("Who speaks?", 2.0, {"max_tokens": 7, "temperature": 0.0, "seed": 5}),
    ]
    # Two words and two seconds at 25.
    assert (response.media_items, response.media_tokens, response.prompt_tokens) == (1, 50, 52)
    (plain,) = ask(url, request())
    assert (plain.text, plain.media_items, plain.prompt_tokens) == ("nothing", 0, 2)


def test_audio_that_the_function_ignores_has_not_arrived(start: Start) -> None:
    url = start(lambda text, audio, sampling: "no idea", SETTINGS=("max_tokens", "temperature", "seed"))
    (response,) = ask(url, request(seconds=1.0))
    assert (response.text, response.media_items) == ("no idea", 0)


@pytest.mark.parametrize("hears", [True, False])
def test_a_run_stops_unless_the_function_hears(start: Start, equivox: Cli, tmp_path: Path, hears: bool) -> None:
    def answer(text: str, audio: Any, sampling: dict[str, Any]) -> str:
        if audio is not None and hears:
            Path(audio.path).read_bytes()
        return "You might enjoy chess, yoga or hiking."

    url = start(answer, SETTINGS=("max_tokens", "temperature", "top_p", "seed"))
    arguments = f"model_name=mine,base_url={url},modalities=[text,audio],max_retries=0"
    options = (
        "--data",
        "sample",
        "--limit",
        "12",
        "--scoring",
        "n_resamples=99",
        "--annotator",
        "rules",
        "--output",
        str(tmp_path / "run"),
    )
    code, out, err = equivox("run", f"endpoint:{arguments}", "vibe_gender:advisory", *options)
    if hears:
        # All answers are alike, so there is no score; but all were used.
        assert "every answer was the same" in out and "do not count" not in out
        assert "the server of the model received 12 requests" in out + err
    else:
        assert code != 0 and "mine used 0 of 1 media items" in err + out


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"frequency_penalty": 0.6}, "`frequency_penalty` would be ignored: this model's function honours max_tokens"),
        ({"logprobs": 2}, "`logprobs` would be ignored"),
        ({"stop": ("\n",)}, "`stop` would be ignored"),
        ({"top_k": 100}, "`top_k` would be ignored"),
    ],
)
def test_no_setting_is_ignored(start: Start, sampling: dict[str, Any], said: str) -> None:
    url = start(lambda *_: "chess", SETTINGS=("max_tokens", "temperature", "seed"))
    (response,) = ask(url, request(**sampling))
    assert response.text is None and said in str(response.error)


def test_one_bad_request_fails_alone(start: Start) -> None:
    def answer(text: str, audio: Any, sampling: dict[str, Any]) -> str:
        if "bad" in text:
            raise RuntimeError("CUDA out of memory")
        return "chess"

    url = start(answer, SETTINGS=("max_tokens", "temperature", "seed"))
    responses = ask(url, request("good"), request("bad"), request("good"))
    assert sorted(str(response.text) for response in responses) == ["None", "chess", "chess"]
    assert any("RuntimeError: CUDA out of memory" in str(response.error) for response in responses)


def test_only_16_bit_wav_is_taken() -> None:
    serve = module("serve")
    for subtype, fine in (("PCM_16", True), ("PCM_24", False), ("FLOAT", False)):
        buffer = io.BytesIO()
        soundfile.write(buffer, np.zeros(160), 16_000, format="WAV", subtype=subtype)
        data = base64.b64encode(buffer.getvalue()).decode()
        if fine:
            assert serve.seconds(serve.decoded(data)) == 0.01
        else:
            with pytest.raises(serve.Refused, match="is no base64 WAV of 16-bit samples"):
                serve.decoded(data)
    with pytest.raises(serve.Refused, match="is no base64 WAV"):
        serve.decoded("not base64")


def test_every_plug_in_of_a_model_file_is_there_and_says_what_is_missing() -> None:
    plugins = set()
    for name in model_names():
        words = read_config_file(ModelFile, name, "models").serve.split()
        plugins |= {Path(word).stem for word in words if word.startswith("examples/serve/")} - {"serve"}
    assert plugins == {"desta25_audio", "ltu_as", "qwen_audio_chat", "salmonn"}
    for plugin in plugins:
        made = module(plugin)
        assert callable(made.load) and callable(made.answer)
        if "FILL IN" in (SERVE / f"{plugin}.py").read_text():
            with pytest.raises(NotImplementedError, match=f"examples/serve/{plugin}.py"):
                made.load()


def test_the_first_example_answers(start: Start) -> None:
    echo = module("echo")
    (response,) = ask(start(echo.answer, SETTINGS=echo.SETTINGS), request(seconds=1.5))
    # A header of 44 bytes and 24,000 samples of two.
    assert (response.text, response.media_tokens) == ("I hear 1.5 seconds in 48044 bytes.", 38)


def test_what_servers_were_asked_is_told(chat_server: Callable[..., str], equivox: Cli, tmp_path: Path) -> None:
    address = chat_server(lambda body: (200, "You might enjoy chess."))
    model, judge = (f"endpoint:model_name={name},base_url=http://{address}/v1,max_retries=0" for name in "mj")
    _, out, err = equivox(
        *("run", model, "vibe_gender:advisory", "--data", "sample", "--limit", 4, "--scoring", "n_resamples=99"),
        *("--conditions", "text_only", "--annotator", judge, "--output", tmp_path / "run"),
    )
    told = re.findall(r"the server of (the \w+)[^:]*: \d+ prompt and \d+ completion tokens$", out, re.MULTILINE)
    assert told == ["the model", "the annotator"], (out, err)
    assert out.partition("the server of")[2].splitlines()[0] in equivox("status", tmp_path / "run")[1]
