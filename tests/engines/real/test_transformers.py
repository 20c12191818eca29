"""The transformers engine: the same tokens as vLLM for the same checkpoint, and the same contract."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import answers, audio, image, need_torchvision, on_gpu, request, text_of, tone

from equivox.core.errors import UsageError
from equivox.core.requests import Exchange
from equivox.engines.transformers import TransformersEngine


def slow(model: Callable[[str], str], name: str, **arguments: Any) -> TransformersEngine:
    return TransformersEngine.from_args({"model_name": model(name), "dtype": "float32"} | arguments)


def prompts(name: str) -> list[Any]:
    requests = [request(n, f"Tell me story {n}.", max_new_tokens=32, logprobs=1) for n in range(4)]
    if name != "llama":
        clips = [audio(tone(1 + 0.3 * n, 200 + 50 * n)) for n in range(3)]
        requests += [request(10 + n, "Who?", clip, max_new_tokens=32, logprobs=1) for n, clip in enumerate(clips)]
    if name == "qwen25omni":
        requests += [request(20, "Who?", image(), max_new_tokens=32, logprobs=1)]
        requests += [request(21, "Who?", audio(), image(), max_new_tokens=32, logprobs=1)]
    return requests


def test_the_turns_of_a_dialogue_are_sent_as_vllm_sends_them(
    model: Callable[[str], str], engine: Callable[..., Any]
) -> None:
    before = (Exchange(text="Who speaks?", n_media=1, answer="A nurse."), Exchange(text="Sure?", answer="Yes."))
    asked = [replace(request(0, "Why?", audio(), max_new_tokens=16), key=f"turns {len(own)}", before=own)
             for own in ((), before[:1], before)]  # fmt: skip
    with slow(model, "qwen2audio") as listener:
        expected = answers(listener, *asked)
    found = answers(engine("qwen2audio", dtype="float32"), *asked)
    for one, other in zip(found, expected, strict=True):
        assert text_of(one) == text_of(other)
        assert (one.prompt_tokens, one.media_items) == (other.prompt_tokens, other.media_items)
        assert one.media_items == 1
    lengths = [response.prompt_tokens or 0 for response in found]
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize(
    "name", ["qwen2audio", *(pytest.param(name, marks=pytest.mark.long) for name in ("qwen25omni", "llama"))]
)
def test_greedy_tokens_are_those_of_vllm(model: Callable[[str], str], engine: Callable[..., Any], name: str) -> None:
    if name == "qwen25omni":
        need_torchvision()
    requests = prompts(name)
    with slow(model, name) as reference:
        expected = answers(reference, *requests)
    with slow(model, name, batch_size=4) as batched:
        assert [text_of(r) for r in answers(batched, *requests)] == [text_of(r) for r in expected]
    found = answers(engine(name, dtype="float32"), *requests)
    for one, other in zip(found, expected, strict=True):
        assert text_of(one) == text_of(other)
        for field in ("finish_reason", "prompt_tokens", "completion_tokens", "media_items", "media_tokens"):
            assert getattr(one, field) == getattr(other, field), field
        tokens, reference_tokens = json.loads(one.logprobs or ""), json.loads(other.logprobs or "")
        for token, reference_token in zip(tokens, reference_tokens, strict=False):
            assert token["logprob"] == pytest.approx(reference_token["logprob"], abs=1e-3 if on_gpu() else 1e-4)


def test_a_seed_says_the_same_again_and_another_something_else(model: Callable[[str], str]) -> None:
    with slow(model, "llama", batch_size=4) as llama:
        texts = [text_of(r) for r in answers(llama, *[request(n, seed=n // 2, temperature=1.0) for n in range(8)])]
    assert texts[::2] == texts[1::2]
    assert len(set(texts)) == 4


def test_a_requests_system_prompt_is_sent_as_vllm_sends_it(
    model: Callable[[str], str], engine: Callable[..., Any]
) -> None:
    asked = [replace(request(0, max_new_tokens=16), key="fair", system="Be fair."), request(0, max_new_tokens=16)]
    with slow(model, "llama") as llama:
        fair, plain = answers(llama, *asked)
    with slow(model, "llama", system_prompt="Be fair.") as told:
        assert text_of(answers(told, asked[1])[0]) == text_of(fair)
    assert (fair.prompt_tokens or 0) > (plain.prompt_tokens or 0)
    (other,) = answers(engine("llama", dtype="float32"), asked[0])
    assert (text_of(other), other.prompt_tokens) == (text_of(fair), fair.prompt_tokens)
    template = "{% for m in messages if m.role == 'user' %}{{m.content}}{% endfor %}"
    with (
        slow(model, "llama", chat_template=template) as deaf,
        pytest.raises(UsageError, match="drops the system prompt"),
    ):
        deaf.check(asked)


def test_one_bad_request_fails_alone(model: Callable[[str], str]) -> None:
    good = [request(n, f"Story {n}", audio(tone(1 + n))) for n in range(3)]
    with slow(model, "qwen2audio", batch_size=8) as listener:
        expected = [text_of(r) for r in answers(listener, *good)]
        responses = answers(
            listener,
            good[0],
            request(10, "x", audio(b"RIFF", "corrupt.wav")),
            good[1],
            request(11, "x", audio(tone(30.5), "long.wav")),
            good[2],
            request(12, "x " * 5000),
        )
    assert [text_of(r) for r in responses[::2]] == expected
    assert "item10: MediaError: corrupt.wav" in str(responses[1].error)
    assert "long.wav: 30.5 s of audio, qwen2audio hears the first 30 s" in str(responses[3].error)
    assert "are longer than max_model_length=4096" in str(responses[5].error)


def test_an_answer_stops_where_it_should(model: Callable[[str], str]) -> None:
    with slow(model, "llama") as llama:
        text = text_of(answers(llama, request(0, max_new_tokens=24))[0])
        stop = text[8:11]
        (stopped,) = answers(llama, request(1, max_new_tokens=24, stop=(stop,)))
        assert (stopped.text, stopped.finish_reason) == (text[: text.index(stop)], "stop")
        # Greedy repeats itself until each repetition costs.
        (penalised,) = answers(llama, request(2, max_new_tokens=24, frequency_penalty=2.0, logprobs=1))
        tokens = [entry["token"] for entry in json.loads(penalised.logprobs or "")]
        assert len(set(tokens)) > 20


def test_media_that_the_model_has_no_place_for_are_not_counted(model: Callable[[str], str]) -> None:
    with slow(model, "llama") as llama:
        assert answers(llama, request(0, "x", audio()))[0].media_items == 0


def test_what_it_cannot_do_is_said_before_the_run(model: Callable[[str], str]) -> None:
    llama = slow(model, "llama")
    llama.check([request(0)])
    with pytest.raises(UsageError, match="cannot hold an answer to a schema; annotate with `vllm:`"):
        llama.check([request(0, schema={"type": "object"})])
    with pytest.raises(UsageError, match=r"llama does not take audio \(it takes text\)"):
        llama.check([request(0, "x", audio())])
    with pytest.raises(UsageError, match="max_model_length is 4096, but test:task needs more than"):
        llama.check([request(0, max_new_tokens=5000)])


@pytest.mark.parametrize(("name", "tokens"), [("janus", 4), ("mllama", 1)])
def test_each_image_of_a_model_that_vllm_lacks_is_counted(model: Callable[[str], str], name: str, tokens: int) -> None:
    need_torchvision()
    requests = [request(0), request(1, "Who?", image()), request(2, "Who?", image(), image(84, 112, seed=1))]
    for size in (1, 2):
        with slow(model, name, batch_size=size) as seer:
            seer.check(requests)
            responses = answers(seer, *requests, *[request(3, "Who?", image(seed=2), image(seed=3))])
        assert [response.error for response in responses] == [None] * 4
        counted = [(response.media_items, response.media_tokens) for response in responses]
        assert counted == [(0, 0), (1, tokens), (2, 2 * tokens), (2, 2 * tokens)]
