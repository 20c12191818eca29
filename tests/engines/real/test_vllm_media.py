"""Speech and images through the same path as text, what of them arrived, and clips that must not be cut."""

from __future__ import annotations

import dataclasses
import io
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import answers, audio, image, need_torchvision, request, text_of, tone

from equivox.core.errors import UsageError
from equivox.engines import MediaPart


def audio_tokens(seconds: float) -> int:
    """Return Qwen2-Audio's tokens for a clip: 100 mel frames a second, halved by a convolution and by a pooling."""
    frames = round(seconds * 100)
    halved = (frames - 1) // 2 + 1
    return (halved - 2) // 2 + 1


def test_a_clip_arrives_with_as_many_tokens_as_its_length_makes(engine: Callable[..., Any]) -> None:
    listener = engine("qwen2audio")
    listener.check([request(0, "x", audio())])
    assert listener.modalities == {"text", "audio"}
    plain = answers(listener, request(0))[0]
    assert (plain.media_items, plain.media_tokens) == (0, 0)
    for number, seconds in enumerate((0.5, 1.0, 7.3, 30.0)):
        (response,) = answers(listener, request(number, "Who are you?", audio(tone(seconds))))
        assert (response.media_items, response.media_tokens) == (1, audio_tokens(seconds))
        # Beside the clip's own tokens only <|audio_bos|> and <|audio_eos|> were added.
        assert response.prompt_tokens == plain.prompt_tokens + audio_tokens(seconds) + 2


def test_another_voice_changes_the_answer_and_the_same_voice_does_not(engine: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    clips = [audio(noise(rng)) for _ in range(4)]
    requests = [request(n, "Who?", clips[n % 4], logprobs=1) for n in range(8)]
    responses = answers(engine("qwen2audio"), *requests)
    heard = [response.logprobs for response in responses]
    assert len(set(heard[:4])) == 4
    assert [text_of(r) for r in responses[:4]] == [text_of(r) for r in responses[4:]]


def noise(rng: np.random.Generator) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, rng.uniform(-0.5, 0.5, 16_000), 16_000, format="WAV", subtype="FLOAT")
    return buffer.getvalue()


def test_clips_that_cannot_be_heard_whole_fail_alone(engine: Callable[..., Any]) -> None:
    listener = engine("qwen2audio")
    good = request(0, "Who?", audio())
    expected = text_of(answers(listener, good)[0])
    responses = answers(
        listener,
        request(1, "Who?", audio(b"RIFF\x00\x00", "corrupt.wav")),
        request(2, "Who?", audio(tone(0.0), "empty.wav")),
        request(3, "Who?", audio(tone(30.5), "long.wav")),
        good,
    )
    assert text_of(responses[3]) == expected
    assert [response.text for response in responses[:3]] == [None] * 3
    assert "item1: MediaError: corrupt.wav: " in str(responses[0].error)
    assert responses[1].error == "item2: MediaError: empty.wav: empty (0 samples)"
    assert responses[2].error == "item3: long.wav: 30.5 s of audio, qwen2audio hears the first 30 s"


def test_the_longest_clip_can_be_set(engine: Callable[..., Any]) -> None:
    (response,) = answers(engine("qwen2audio", max_audio_seconds=0.6), request(0, "Who?", audio()))
    assert "1.0 s of audio, qwen2audio hears the first 0.6 s" in str(response.error)


def test_a_clip_of_consecutive_requests_is_decoded_once(engine: Callable[..., Any]) -> None:
    read: list[int] = []

    def noted(number: int) -> MediaPart:
        clip = audio(tone(0.5, 200 + 10 * number))
        return dataclasses.replace(clip, load=lambda: read.append(number) or clip.load())  # type: ignore[func-returns-value]

    clips = [noted(number) for number in range(3)]
    requests = [request(n, f"Question {n}?", clips[n // 4]) for n in range(12)]
    listener = engine("qwen2audio")
    together = answers(listener, *requests)
    assert sorted(read) == [0, 1, 2]
    assert [text_of(answers(listener, entry)[0]) for entry in requests] == [text_of(each) for each in together]


def test_an_image_for_a_model_that_only_listens_is_refused(engine: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"qwen2audio does not take image \(it takes audio, text\)"):
        engine("qwen2audio").check([request(0, "x", image())])


def test_media_are_read_shortly_before_their_request_is_sent_and_on_another_thread(
    engine: Callable[..., Any],
) -> None:
    read: list[int] = []
    places: set[str] = set()

    def noted(number: int) -> MediaPart:
        clip = audio(tone(0.5, 200 + 10 * number))

        def load() -> bytes:
            read.append(number)
            places.add(threading.current_thread().name)
            return clip.load()

        return dataclasses.replace(clip, load=load)

    listener = engine("qwen2audio", max_num_seqs=2)
    for given, _ in enumerate(listener.generate(request(n, "Who?", noted(n)) for n in range(12))):
        assert len(read) <= given + 4 + 1
    assert sorted(read) == list(range(12))
    assert threading.current_thread().name not in places
    assert not media_threads()


def test_no_thread_remains_after_a_damaged_clip_or_a_stopped_generator(engine: Callable[..., Any]) -> None:
    listener = engine("qwen2audio", max_num_seqs=2)
    requests = [request(n, "Who?", audio(tone(0.5, 200 + 10 * n))) for n in range(12)]
    requests[1] = request(1, "Who?", audio(b"RIFF", "corrupt.wav"))
    responses = answers(listener, *requests)
    assert [n for n, response in enumerate(responses) if response.error is not None] == [1]
    assert not media_threads()
    generator = listener.generate(requests)
    next(generator)
    generator.close()
    assert not media_threads()
    assert text_of(answers(listener, requests[0])[0]) == text_of(responses[0])


def media_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("equivox-media")]


def test_text_speech_and_images_go_one_way(engine: Callable[..., Any]) -> None:
    need_torchvision()
    omni = engine("qwen25omni")
    requests = [
        request(0, "Who?"),
        request(1, "Who?", audio()),
        request(2, "Who?", image()),
        request(3, "Who?", audio(), image()),
        request(4, "Who?", image(), image(seed=1)),
    ]
    omni.check(requests)
    assert {"text", "audio", "image"} <= omni.modalities
    responses = answers(omni, *requests)
    assert all(response.error is None for response in responses)
    # 56 x 84 pixels are 4 x 6 patches of 14, merged two by two: 2 x 3 = 6 tokens; one second of speech is 25.
    assert [(r.media_items, r.media_tokens) for r in responses] == [(0, 0), (1, 25), (1, 6), (2, 31), (2, 12)]
    for entry, response in zip(requests, responses, strict=True):
        assert text_of(answers(omni, entry)[0]) == text_of(response)


@pytest.mark.long
def test_audio_flamingo_3_hears_one_clip_at_a_time(engine: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="takes at most 1 audio per request, test:task sends 2"):
        engine("audioflamingo3").check([request(0, "Who?", audio(), audio(tone(2.0)))])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "media", "tokens"),
    [
        # 56 x 84 pixels are 2 x 3 tokens, 56 x 112 are 2 x 4.
        ("qwen25vl", [[image()], [image(), image(112, 56, seed=1)]], [6, 14]),
        # Patches of 16 pixels, merged two by two: 2 x 3 tokens, and 2 x 4.
        ("qwen3vl", [[image(96, 64)], [image(96, 64), image(128, 64, seed=1)]], [6, 14]),
        # 100 mel frames are halved three times, rounded up: 13 tokens a second. The image has 2 x 3.
        ("qwen3omni", [[audio()], [audio(tone(2.0)), image(96, 64)]], [13, 32]),
        # 4 x 4 patches of 14 pixels, pooled to the 4 tokens of the configuration (256 as published).
        ("gemma3", [[image()], [image(), image(seed=1)]], [4, 8]),
        # Published: 188 tokens for a clip of any length up to 30 s, 256 for an image.
        ("gemma3n", [[audio()], [audio(tone(3.0, 400))], [image()]], [188, 188, 256]),
        # 100 mel frames a second, halved by a convolution and by a pooling.
        ("audioflamingo3", [[audio()], [audio(tone(2.0))]], [25, 50]),
    ],
)
def test_media_arrive_with_as_many_tokens_as_the_model_makes_of_them(
    engine: Callable[..., Any], name: str, media: list[list[MediaPart]], tokens: list[int]
) -> None:
    need_torchvision()
    own = engine(name)
    requests = [request(0), *(request(n, "Who?", *parts) for n, parts in enumerate(media, start=1))]
    own.check(requests)
    assert {"text", *(part.kind for parts in media for part in parts)} <= own.modalities
    plain, *responses = answers(own, *requests)
    assert (plain.media_items, plain.media_tokens) == (0, 0)
    assert [(r.media_items, r.media_tokens) for r in responses] == list(zip(map(len, media), tokens, strict=True))
    # Other media, another answer.
    assert len({text_of(response) for response in responses}) == len(media)


@pytest.mark.long
def test_qwen_3_answers_without_thinking(engine: Callable[..., Any]) -> None:
    silent = engine("qwen3", chat_template_kwargs={"enable_thinking": False})
    silent.check([request(0)])
    thinking = len("<think></think>")
    response = answers(silent, request(0))[0]
    assert text_of(response) is not None
    # The tokenizer has a token per letter for what it was not trained on.
    assert response.prompt_tokens == answers(engine("qwen3"), request(0))[0].prompt_tokens + thinking


@pytest.mark.long
def test_a_model_that_vllm_does_not_run_is_sent_to_transformers(model: Callable[[str], str]) -> None:
    from asking import SMALL

    from equivox.engines.vllm import VLLMEngine

    need_torchvision()
    for name, architecture in (
        ("janus", "JanusForConditionalGeneration"),
        ("mllama", "MllamaForConditionalGeneration"),
    ):
        with pytest.raises(UsageError, match=f"does not serve {architecture} of {name}; use `equivox run transf"):
            VLLMEngine.from_args({"model_name": model(name)} | SMALL).check([request(0, "Who?", image())])
