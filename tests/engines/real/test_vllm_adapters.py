"""Phi-4-multimodal hears and sees through adapters: vLLM must have chosen them, and a run must notice if it did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("vllm", reason="the engine tests need vLLM: make test-engine")

from asking import SMALL, answers, audio, image, need_torchvision, request, text_of, tone

from equivox.configs import read_config_file
from equivox.core.errors import RunError, UsageError
from equivox.engines import ModelFile
from equivox.engines.vllm import VLLMEngine

PUBLISHED = read_config_file(ModelFile, "phi-4-multimodal-instruct", "models").model_parameters
NAMES = ("enable_lora", "max_lora_rank", "max_loras", "default_mm_loras")
ADAPTED = {"trust_remote_code": True} | {name: PUBLISHED[name] for name in NAMES}
# The adapters are read from their files; the image encoder has too many weights to be kept in one.
TINY = SMALL | {"load_format": "dummy", "max_num_seqs": 4}


@pytest.fixture(scope="module")
def phi(model: Callable[[str], str]) -> Iterator[VLLMEngine]:
    need_torchvision()
    from vllm.model_executor.models import phi4mm

    whole = phi4mm.Idefics2VisionTransformer
    with pytest.MonkeyPatch.context() as patch:
        # One of the image encoder's 26 layers: an image takes a minute on one core otherwise.
        patch.setattr(
            phi4mm, "Idefics2VisionTransformer", lambda **given: whole(**given | {"num_hidden_layers_override": 1})
        )
        opened = VLLMEngine.from_args({"model_name": model("phi4mm")} | TINY | ADAPTED)
        yield opened
        opened.close()


@pytest.mark.long
def test_speech_and_images_arrive_through_their_adapters(phi: VLLMEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request(0), request(1, "Who?", audio(tone(2.0))), request(2, "Who?", image(448, 448)), request(3)]
    phi.check(requests)
    assert phi.modalities == {"text", "audio", "image"}
    chosen: list[str | None] = []
    require = phi._require_adapter
    monkeypatch.setattr(phi, "_require_adapter", lambda entry: (chosen.append(phi._worn), require(entry)))
    responses = answers(phi, *requests)
    # 2 s are 198 windows of 25 ms, one every 10 ms, in eights: 25 tokens. An image of one crop is twice 16 × 16 tokens,
    # with an end for each of their 16 rows and a separator: 545.
    assert [(r.media_items, r.media_tokens) for r in responses] == [(0, 0), (1, 25), (1, 545), (0, 0)]
    assert [name and name.rpartition("/")[2] for name in chosen] == [None, "speech-lora", "vision-lora", None]
    assert text_of(responses[0]) == text_of(responses[3])


def test_without_its_adapter_the_model_answers_otherwise_and_the_run_stops(
    phi: VLLMEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(1, "Who?", audio(tone(2.0)), logprobs=1)
    (adapted,) = answers(phi, asked)
    monkeypatch.setattr(phi._llm, "_resolve_mm_lora", lambda prompt, lora_request: lora_request)
    with pytest.raises(RunError, match="vLLM chose no adapter for the audio of item1 instead of speech-lora"):
        answers(phi, asked)
    monkeypatch.setattr(phi, "_require_adapter", lambda entry: None)
    (bare,) = answers(phi, asked)
    assert bare.error is None and bare.media_items == 1
    assert bare.logprobs != adapted.logprobs


def test_what_would_be_answered_without_an_adapter_is_refused(phi: VLLMEngine, model: Callable[[str], str]) -> None:
    with pytest.raises(UsageError, match="sends audio and image in one request"):
        phi.check([request(0, "Who?", audio(), image(448, 448))])
    bare = VLLMEngine.from_args({"model_name": model("phi4mm"), "trust_remote_code": True} | TINY)
    with pytest.raises(UsageError, match="trained with an adapter for audio, and default_mm_loras gives none"):
        bare.check([request(0, "Who?", audio())])
    assert bare._llm is None


def test_a_run_is_named_by_the_adapters_and_not_by_their_place(phi: VLLMEngine, model: Callable[[str], str]) -> None:
    assert phi.identity.settings["default_mm_loras"] == {"audio": "speech-lora", "image": "vision-lora"}
    assert model("phi4mm") not in str(phi.identity)


@pytest.mark.long
def test_granite_speech_hears_through_the_adapter_in_its_own_folder(
    model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    published = read_config_file(ModelFile, "granite-speech-3.3-8b", "models").model_parameters
    given = {name: published[name] for name in NAMES if name in published}
    asked = request(1, "Who?", audio(tone(2.0)), logprobs=1)
    with VLLMEngine.from_args({"model_name": model("granitespeech")} | SMALL | given) as granite:
        granite.check([request(0), asked])
        plain, adapted = answers(granite, request(0), asked)
        # 200 mel frames in pairs, 15 of which become 3 tokens: 7 windows of 3.
        assert [(r.media_items, r.media_tokens) for r in (plain, adapted)] == [(0, 0), (1, 21)]
        assert granite._worn == model("granitespeech")
        monkeypatch.setattr(granite._llm, "_resolve_mm_lora", lambda prompt, lora_request: lora_request)
        with pytest.raises(RunError, match=r"vLLM chose no adapter for the audio of item1 instead of \."):
            answers(granite, asked)
        monkeypatch.setattr(granite, "_require_adapter", lambda entry: None)
        assert answers(granite, asked)[0].logprobs != adapted.logprobs
