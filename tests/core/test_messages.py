"""What an engine is sent: media first, every sample as recorded, thinking kept apart, model arguments read."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from made_requests import made_request
from PIL import Image

from equivox.core import media
from equivox.core.errors import UsageError
from equivox.core.reasoning import split_reasoning
from equivox.core.yaml_files import parse_model_args
from equivox.engines import MediaPart, Request
from equivox.engines.messages import chat_messages


def request(*parts: MediaPart) -> Request:
    return made_request(1, *parts, text="Who is it?")


def part(data: bytes, kind: str = "audio") -> MediaPart:
    return MediaPart(kind=kind, sha256=media.sha256(data), name="clip", load=lambda: data)  # type: ignore[arg-type]


def wav(samples: np.ndarray, rate: int = 16_000) -> bytes:  # type: ignore[type-arg]
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", subtype="FLOAT")
    return buffer.getvalue()


def test_audio_comes_first_and_arrives_bit_for_bit() -> None:
    samples = np.random.default_rng(1).uniform(-1, 1, 4000).astype(np.float32)
    (message,) = chat_messages(request(part(wav(samples))))
    assert message["role"] == "user"
    assert [c["type"] for c in message["content"]] == ["input_audio", "text"]
    assert message["content"][1]["text"] == "Who is it?"
    sent, rate = soundfile.read(
        io.BytesIO(base64.b64decode(message["content"][0]["input_audio"]["data"])), dtype="float32"
    )
    assert rate == 16_000
    np.testing.assert_array_equal(sent, samples)


def test_other_rates_and_stereo_become_mono_16_khz() -> None:
    time = np.arange(44_100) / 44_100
    stereo = np.stack([np.sin(2 * np.pi * 440 * time), np.sin(2 * np.pi * 440 * time)], axis=1)
    (message,) = chat_messages(request(part(wav(stereo, 44_100))), subtype="PCM_16")
    info = soundfile.info(io.BytesIO(base64.b64decode(message["content"][0]["input_audio"]["data"])))
    assert (info.samplerate, info.channels, info.subtype, info.frames) == (16_000, 1, "PCM_16", 16_000)


def test_images_are_sent_as_they_are_and_other_formats_as_png() -> None:
    def encoded(format_: str) -> bytes:
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6), "red").save(buffer, format=format_)
        return buffer.getvalue()

    for format_, mime in (("PNG", "image/png"), ("JPEG", "image/jpeg")):
        (message,) = chat_messages(request(part(encoded(format_), "image")))
        url = message["content"][0]["image_url"]["url"]
        assert url == f"data:{mime};base64,{base64.b64encode(encoded(format_)).decode()}"
    (message,) = chat_messages(request(part(encoded("BMP"), "image")))
    assert message["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


def test_damaged_empty_and_enormous_images_are_named() -> None:
    buffer = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(buffer, format="PNG")
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(whole, format="PNG")
    for data, reason in (
        (b"", "empty"),
        (b"no image", "not a readable image"),
        (whole.getvalue()[:-600], "not a readable image"),
        (buffer.getvalue(), "10000 x 10000 pixels"),
    ):
        with pytest.raises(media.MediaError, match=f"clip.*{reason}"):
            chat_messages(request(part(data, "image")))


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        ("<think>a</think>x<think>b</think>y", "xy", "a\n\nb"),
        ("<THINK>a</THINK> x", "x", "a"),
        ("<thinking>a\nb</thinking>\n\nx", "x", "a\nb"),
        ("<think></think>x", "x", ""),
        ("I think </b> x", "I think </b> x", None),
        ("", "", None),
    ],
)
def test_thinking_is_kept_apart(text: str, answer: str, thinking: str | None) -> None:
    assert split_reasoning(text) == (answer, thinking)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a <think>b</think>c", "c"), ("<think>a <reasoning>b</reasoning> c", ""), ("<think>a</thinking>b", "b"),
        ("\u25c1think\u25b7a\u25c1/think\u25b7b", "b"), ("<thought>a</thought>b", "b"), ("\u25c1think\u25b7a", ""),
        ("<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>b", "<|begin_of_solution|>b"),
        ("a thought>b", "a thought>b"),
        ("a<think>b</think>c</think>d", "d"), ("[THINK]a[/THINK]b", "b"), ("[think] of me", "[think] of me"),
        ("<|channel|>analysis<|message|>Who", ""), ("<seed:think>a</seed:think>b", "b"),
        ("<think>" * 40_000, ""), ("</think>" * 40_000 + "a", "a"),
        # Gemma, gpt-oss without its special tokens, Cohere, Apertus, Kimi K3, Granite, Hunyuan, Ernie, K2.
        ("<|channel>thought\na<channel|>b", "b"), ("<|channel>thought\na", ""), ("a<channel|>b", "b"),
        ("analysisHm.assistantfinalb", "b"), ("analysisHm, maybe", ""), ("analysis of a assistantfinalb", "b"),
        ("Analysis: b", "Analysis: b"), ("analysis shows b", "analysis shows b"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", "b"),
        ("<|inner_prefix|>a<|inner_suffix|>b", "b"),
        ("<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>", "b"),
        ("Here is my thought process: a Here is my response: b", "b"), ("Here's my thought process: a", ""),
        ("Dear Anna. Here is my response: b", "Dear Anna. Here is my response: b"),
        ("<think>a</think><answer>b</answer>", "b"), ("<think>a</think><response>b</response>", "b"),
        ("<think_fast>a</think_fast>b", "b"), ("<mm:think>a</mm:think>b", "b"), ("<ifm|think>a</ifm|think>b", "b"),
    ],
)  # fmt: skip
def test_marks_of_thinking_in_any_order_take_no_longer_and_leave_no_thought(text: str, answer: str) -> None:
    """A text that begins to think again and again took a minute; what Mistral and gpt-oss write was no mark."""
    assert split_reasoning(text)[0] == answer


def test_model_arguments_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_text("model_parameters:\n  model_name: org/m\n  dtype: bfloat16\n")
    assert parse_model_args(str(file)) == {"model_name": "org/m", "dtype": "bfloat16"}
    file.write_text("model_name: org/m\n")
    assert parse_model_args(str(file)) == {"model_name": "org/m"}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"), ("org/model", "key=value"), ("a=1,a=2", "twice"), ("a={b: [1}", "bracket"),
        ("none.yaml", "none.yaml"), ("a=[1,}", "bracket|read"),
    ],
)  # fmt: skip
def test_wrong_model_arguments_are_one_line(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        parse_model_args(text)
