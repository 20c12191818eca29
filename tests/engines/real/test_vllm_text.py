"""vLLM itself, with a tiny Llama: seeds, isolation, flat memory, stopping, structured output, errors in one line."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import SMALL, answers, audio, request, text_of

from equivox.core.errors import UsageError
from equivox.engines import Request
from equivox.engines.vllm import VLLMEngine

SCHEMA = {
    "type": "object",
    "properties": {
        "refusal": {"enum": ["yes", "no"]},
        "hobby": {"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 3, "maxItems": 3},
        "gender": {"enum": ["female", "male", "other", "unstated"]},
        "reason": {"type": "string", "maxLength": 12},
    },
    "required": ["refusal", "hobby", "gender", "reason"],
    "additionalProperties": False,
}


def test_a_seed_says_the_same_alone_and_inside_a_batch(engine: Callable[..., Any]) -> None:
    llama = engine("llama")
    alone = text_of(answers(llama, request(0, seed=7, temperature=1.0))[0])
    crowd = [request(n, f"Story {n}", temperature=1.0) for n in range(1, 16)]
    batch = answers(llama, *crowd, request(0, seed=7, temperature=1.0))
    assert text_of(batch[-1]) == alone
    others = answers(llama, *[request(n, seed=100 + n, temperature=1.0) for n in range(16)])
    assert len({text_of(response) for response in others}) == 16


def test_prompts_that_fill_more_than_one_batch_keep_their_seeds(engine: Callable[..., Any]) -> None:
    """Sixteen prompts of 400 tokens exceed the 2,048 of a batch: taken in parts, vLLM would die on a CPU."""
    requests = [request(n, f"{n} " + "w " * 190, temperature=1.0) for n in range(16)]
    together = [text_of(response) for response in answers(engine("llama"), *requests)]
    assert [text_of(answers(engine("llama"), entry)[0]) for entry in requests[:3]] == together[:3]


def test_what_vllm_does_to_the_parameters_of_a_request_does_not_reach_the_next(engine: Callable[..., Any]) -> None:
    """vLLM gets parameters that it need not copy: those of another request, and ours, must be other objects."""
    given = {"stop_tokens": ["zz"], "stop_token_ids": [40]}
    llama = engine("llama", generation_parameters=given)
    before = json.dumps(dict(llama.arguments.sampling))
    mixed = [request(n, "Tell", temperature=1.0, logprobs=n % 2, stop=("a",)) for n in range(8)]
    together = [text_of(response) for response in answers(llama, *mixed)]
    assert [text_of(answers(llama, entry)[0]) for entry in mixed] == together
    assert json.dumps(dict(llama.arguments.sampling)) == before
    first, second = llama._sampling_params(mixed[0]), llama._sampling_params(mixed[0])
    assert first.stop == second.stop == ["zz"]
    assert first.stop is not second.stop
    assert first.stop is not llama.arguments.sampling["stop"]


def test_greedy_answers_ignore_the_seed(engine: Callable[..., Any]) -> None:
    texts = {text_of(response) for response in answers(engine("llama"), *[request(n) for n in range(4)])}
    assert len(texts) == 1
    # Keeping the likeliest token alone is greedy, whatever the temperature: top_k arrives.
    assert {text_of(answers(engine("llama"), request(9, temperature=1.0, top_k=1))[0])} == texts


def test_one_bad_request_fails_alone(engine: Callable[..., Any]) -> None:
    llama = engine("llama")
    good = [request(n, f"Story {n}") for n in range(3)]
    expected = [text_of(response) for response in answers(llama, *good)]
    bad = [
        request(10, "word " * 2500),
        request(11, "x", audio(name="silent.wav")),
        request(12, "x", schema={"type": "object", "properties": 3}),
        request(13, logprobs=500),
    ]
    mixed = answers(llama, bad[0], good[0], bad[1], good[1], bad[2], good[2], bad[3])
    assert [text_of(response) for response in mixed[1::2]] == expected
    too_long, not_multimodal, bad_schema, too_many = mixed[::2]
    assert all(response.text is None for response in mixed[::2])
    assert "item10: the prompt is longer than max_model_length=2048; raise it" in str(too_long.error)
    assert "item11: ValueError" in str(not_multimodal.error) and "multimodal" in str(not_multimodal.error)
    assert str(bad_schema.error).startswith("item12: ")
    assert str(too_many.error).startswith("item13: ") and "logprobs" in str(too_many.error)


def test_an_answer_stops_where_it_should(engine: Callable[..., Any]) -> None:
    llama = engine("llama")
    whole = answers(llama, request(0, max_new_tokens=24))[0]
    text = text_of(whole)
    assert (whole.finish_reason, whole.completion_tokens) == ("length", 24)
    stop = text[8:11]
    stopped = answers(llama, request(1, max_new_tokens=24, stop=(stop,)))[0]
    assert (stopped.text, stopped.finish_reason) == (text[: text.index(stop)], "stop")
    (cut,) = answers(llama, request(2, "w " * 980, max_new_tokens=500))
    assert cut.text is None and "by max_model_length=2048; raise it" in str(cut.error)


def test_logprobs_are_given_on_demand(engine: Callable[..., Any]) -> None:
    plain, asked = answers(engine("llama"), request(0), request(1, logprobs=3, max_new_tokens=5))
    assert plain.logprobs is None
    entries = json.loads(asked.logprobs)
    assert len(entries) == asked.completion_tokens == 5
    for entry in entries:
        # Greedy: the chosen token is the likeliest, and the three likeliest stand in order.
        likeliest = [top["logprob"] for top in entry["top_logprobs"]]
        assert entry["logprob"] == likeliest[0] and likeliest == sorted(likeliest, reverse=True)
        assert len(likeliest) == 3 and likeliest[0] < 0


@pytest.mark.long
def test_system_prompt_and_template_reach_the_prompt(engine: Callable[..., Any]) -> None:
    plain = answers(engine("llama"), request(0))[0]
    # <|im_start|>system\n…<|im_end|>\n in front: with BPE over single letters here, "Be brief." is at most 9 tokens.
    short = {"max_new_tokens": 3}
    told = answers(engine("llama", system_prompt="Be brief.", generation_parameters=short), request(0))[0]
    assert told.completion_tokens == 3
    assert 10 < told.prompt_tokens - plain.prompt_tokens < 25
    bare = answers(engine("llama", chat_template="{% for m in messages %}{{m.content}}{% endfor %}"), request(0))[0]
    assert bare.prompt_tokens < plain.prompt_tokens


def test_a_requests_system_prompt_is_sent_after_the_models_own(engine: Callable[..., Any]) -> None:
    asked = [replace(request(0), key="fair", system="Be fair."), request(0)]
    fair, plain = answers(engine("llama"), *asked)
    told = answers(engine("llama", system_prompt="Be fair."), asked[1])[0]
    # From the model's arguments or from the request: the same prompt, and the same answer.
    assert fair.prompt_tokens == told.prompt_tokens > plain.prompt_tokens
    both = answers(engine("llama", system_prompt="Be fair."), asked[0])[0]
    assert both.prompt_tokens > fair.prompt_tokens


def test_a_template_that_drops_the_system_prompt_is_refused(engine: Callable[..., Any]) -> None:
    deaf = engine("llama", chat_template="{% for m in messages if m.role == 'user' %}{{m.content}}{% endfor %}")
    deaf.check([request(0)])
    with pytest.raises(UsageError, match="drops the system prompt 'Be fair"):
        deaf.check([request(0), replace(request(1), system="Be fair.")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "banana"}, r"vLLM 0\S* cannot run llama: `dtype`: Input should be 'auto'.*got 'banana'"),
        ({"max_model_length": 99999}, r"max_model_len \(99999\) is greater than"),
        ({"tensor_parallel_size": 3}, r"attention heads \(2\) must be divisible by .* size \(3\)|World size \(3\)"),
        ({"quantization": "nonsense"}, r"`quantization`|[Uu]nknown quantization"),
    ],
)
def test_what_vllm_refuses_is_one_line_before_the_run(
    model: Callable[[str], str], arguments: dict[str, Any], message: str
) -> None:
    llama = VLLMEngine.from_args({"model_name": model("llama")} | SMALL | arguments)
    with pytest.raises(UsageError, match=message):
        llama.check([request(0)])


def test_what_the_model_cannot_do_is_said_before_the_run(engine: Callable[..., Any]) -> None:
    llama = engine("llama")
    llama.check([request(0, schema=SCHEMA)])
    with pytest.raises(UsageError, match=r"llama does not take audio \(it takes text\); choose another model"):
        llama.check([request(0, "x", audio())])
    with pytest.raises(UsageError, match=r"max_model_length is 2048, but test:task needs more than 30\d\d tokens"):
        llama.check([request(0, max_new_tokens=3000)])
    with pytest.raises(UsageError, match="asks for 50 logprobs per token, vLLM gives 20; add max_logprobs=50"):
        llama.check([request(0, logprobs=50)])
    with pytest.raises(UsageError, match="refuses a schema"):
        llama.check([request(0, schema={"type": "object", "properties": 3})])


def test_an_architecture_that_vllm_lacks_names_the_engines_that_have_it(
    model: Callable[[str], str], tmp_path: Path
) -> None:
    shutil.copytree(model("llama"), tmp_path / "strange")
    config = tmp_path / "strange" / "config.json"
    document = json.loads(config.read_text()) | {"architectures": ["JanusProForConditionalGeneration"]}
    config.write_text(json.dumps(document | {"model_type": "janus_pro"}))
    strange = VLLMEngine.from_args({"model_name": str(tmp_path / "strange")} | SMALL)
    with pytest.raises(
        UsageError, match=r"does not serve JanusPro\w+ of strange; use `equivox run transformers:…`, or"
    ):
        strange.check([request(0)])


def test_requests_are_taken_as_vllm_needs_them(engine: Callable[..., Any]) -> None:
    llama = engine("llama", max_num_seqs=4)
    taken = 0

    def many() -> Iterator[Request]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield request(number, max_new_tokens=4 + number % 5)

    given = 0
    for _ in llama.generate(many()):
        # At most the window of 4 x 4 is inside; what left vLLM in the same step may not be given yet.
        assert taken <= given + 16 + 1
        given += 1
    assert given == taken == 40


def test_an_abandoned_run_leaves_nothing_behind(engine: Callable[..., Any]) -> None:
    llama = engine("llama", max_num_seqs=4)
    running = llama.generate(request(n, max_new_tokens=64) for n in range(20))
    next(running)
    running.close()
    assert [response.key for response in llama.generate([request(50)])] == ["key50"]


@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=pytest.mark.long), 1.0])
def test_two_hundred_annotations_are_two_hundred_times_valid(engine: Callable[..., Any], temperature: float) -> None:
    import jsonschema

    requests = [
        request(n, f"Response {n}: I like chess.", schema=SCHEMA, temperature=temperature, max_new_tokens=256)
        for n in range(200)
    ]
    for response in answers(engine("llama", max_num_seqs=128), *requests):
        jsonschema.validate(json.loads(text_of(response)), SCHEMA)
        assert response.finish_reason == "stop"


@pytest.mark.long
def test_engines_one_after_another_give_their_memory_back(
    model: Callable[[str], str], engine: Callable[..., Any]
) -> None:
    # With a seed of vLLM's own, so that nothing else holds it; a greedy answer has no use for one.
    first = engine("llama", seed=1)
    texts = [text_of(answers(first, request(0))[0])]
    first.close()  # what the first engine of a process leaves behind is its libraries' code
    before = resident()
    for name in ("qwen2audio", "llama"):
        with VLLMEngine.from_args({"model_name": model(name)} | SMALL) as opened:
            for _ in range(2):
                texts.append(text_of(answers(opened, request(0))[0]))
                # The key-value cache alone is a gibibyte.
                assert resident() - before > 2**29
                opened.close()
                assert resident() - before < 2**27
    assert len(set(texts)) == 2


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
