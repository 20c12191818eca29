"""Images for elements: the loop with painters and judges of our own, and the pipelines with tiny random weights."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, csv_rows

from equivox.core.errors import UsageError
from equivox.dataset_builders import open_builder, sample_source
from equivox.dataset_builders.genres_images import (
    LOG,
    ImageSettings,
    _pipelines,
    clip_cosine,
    generate_images,
    paint,
    wanted_images,
)

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

ELEMENTS = """\
elements:
  - {id: quay, relationship: cs, age: in old age, description: they are neighbours, scenario: They miss a boat.,
     plot: conflict, images: [images/quay_1.png, images/quay_2.png, images/quay_3.png],
     image_prompts: ["waiting on a quay, in raincoats", "looking at a clock"]}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "elements.yaml").write_text(ELEMENTS)
    return tmp_path / "own"


@dataclass
class Painter:
    """Paints a plain colour that depends on the seed; stops after `paints` images."""

    paints: int = 1000
    asked: list[tuple[str, int]] = field(default_factory=list)

    def paint(self, prompt: str, seed: int) -> Any:
        if len(self.asked) == self.paints:
            raise KeyboardInterrupt
        self.asked.append((prompt, seed))
        return Image.new("RGB", (8, 8), (seed % 256, seed // 256 % 256, 7))


@dataclass
class Judge:
    """Gives the cosines in turn."""

    cosines: list[float]

    def cosine(self, image: Any, prompt: str) -> float:
        return self.cosines.pop(0)


def lines(folder: Path) -> list[dict[str, str]]:
    return csv_rows(folder / LOG)


def test_the_first_good_image_is_kept_and_every_attempt_noted(source: Path) -> None:
    wanted, there = wanted_images(open_builder("genres", source))  # type: ignore[arg-type]
    assert there == 0 and [path.name for path, _ in wanted] == ["quay_1.png", "quay_2.png", "quay_3.png"]
    first, second, third = [prompt for _, prompt in wanted]
    assert first.startswith("a photo of a male and a female, in old age, waiting on a quay, in raincoats, ")
    assert second.split(", ")[2] == "looking at a clock" and "waiting" in third
    painter = Painter()
    # 0.249 is refused, 0.25 is kept: the threshold itself is good enough.
    judge = Judge([0.249, 0.25, 0.3, 0.1, 0.2, 0.4])
    assert generate_images(wanted, painter.paint, judge.cosine, ImageSettings()) == []
    noted = lines(source / "images")
    assert [line["kept"] for line in noted] == ["False", "True", "True", "False", "False", "True"]
    assert len({line["seed"] for line in noted}) == 6
    assert len(open_builder("genres", source).clips()) == 3


def test_a_stopped_run_goes_on_with_the_next_attempt(source: Path) -> None:
    wanted, _ = wanted_images(open_builder("genres", source))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        generate_images(wanted, Painter(paints=3).paint, Judge([0.3, 0.1, 0.1]).cosine, ImageSettings())
    assert sorted(path.name for path in (source / "images").iterdir()) == [LOG, "quay_1.png"]
    again, there = wanted_images(open_builder("genres", source))  # type: ignore[arg-type]
    assert there == 1 and len(again) == 2
    painter = Painter()
    generate_images(again, painter.paint, Judge([0.3, 0.3]).cosine, ImageSettings())
    seeds = [line["seed"] for line in lines(source / "images")]
    assert len(seeds) == 5 == len(set(seeds))  # no attempt is made twice


def test_what_no_attempt_is_good_enough_for_is_given_up_and_named(source: Path) -> None:
    wanted, _ = wanted_images(open_builder("genres", source))  # type: ignore[arg-type]
    settings = ImageSettings(attempts=2)
    assert generate_images(wanted, Painter().paint, Judge([0.0, 0.0, 0.9, 0.0, 0.9]).cosine, settings) == ["quay_1.png"]
    again, _ = wanted_images(open_builder("genres", source))  # type: ignore[arg-type]
    assert generate_images(again, Painter().paint, Judge([]).cosine, settings) == ["quay_1.png"]
    with pytest.raises(UsageError, match="1 of 3 images are missing"):
        open_builder("genres", source).clips()


def test_a_missing_prompt_is_named(source: Path) -> None:
    (source / "elements.yaml").write_text(ELEMENTS.split(",\n     image_prompts")[0] + "}\n")
    with pytest.raises(UsageError, match=r"quay_1.png is missing and has no prompt"):
        wanted_images(open_builder("genres", source))  # type: ignore[arg-type]


def test_only_genres_has_images_to_make(equivox: Cli, tmp_path: Path) -> None:
    err = equivox.refused(
        "data", "build", "crema_d", "--source", sample_source("crema_d"), "--output", tmp_path, "--generate-images"
    )
    assert "is for genres" in err


# Tiny pipelines of the real classes, with random weights.


def clip_vocabulary(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(n) for n in range(33, 127)]
    vocabulary = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: n for n, word in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = 'diffusers is not installed: pip install -c constraints.txt ".[genres-images]"'
    diffusers = pytest.importorskip("diffusers", reason=reason)
    import torch
    from transformers import (
        CLIPConfig,
        CLIPImageProcessor,
        CLIPModel,
        CLIPProcessor,
        CLIPTextConfig,
        CLIPTextModel,
        CLIPTextModelWithProjection,
        CLIPTokenizer,
        CLIPVisionConfig,
    )

    folder = tmp_path_factory.mktemp("pipelines")
    clip_vocabulary(folder / "words")
    words = CLIPTokenizer.from_pretrained(folder / "words", model_max_length=77)
    text = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4,
            "vocab_size": len(words), "projection_dim": 32, "bos_token_id": words.bos_token_id,
            "eos_token_id": words.eos_token_id, "pad_token_id": words.eos_token_id, "hidden_act": "gelu"}  # fmt: skip
    torch.manual_seed(0)
    unet = {"block_out_channels": (32, 64), "layers_per_block": 1, "sample_size": 8, "in_channels": 4,
            "out_channels": 4, "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"), "attention_head_dim": (2, 4),
            "use_linear_projection": True, "addition_embed_type": "text_time", "addition_time_embed_dim": 8,
            "transformer_layers_per_block": (1, 1)}  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=[32, 64], in_channels=3, out_channels=3, latent_channels=4, sample_size=64,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
    )  # fmt: skip
    second = CLIPTextModelWithProjection(CLIPTextConfig(**text)).eval()
    shared = {
        "vae": vae, "text_encoder_2": second, "tokenizer_2": words,
        "scheduler": diffusers.EulerDiscreteScheduler(beta_schedule="scaled_linear", timestep_spacing="leading"),
    }  # fmt: skip
    base = diffusers.StableDiffusionXLPipeline(
        unet=diffusers.UNet2DConditionModel(
            **unet, cross_attention_dim=64, projection_class_embeddings_input_dim=32 + 6 * 8
        ),
        text_encoder=CLIPTextModel(CLIPTextConfig(**text)).eval(),
        tokenizer=words,
        **shared,
    )
    base.save_pretrained(folder / "base")
    refiner = diffusers.StableDiffusionXLImg2ImgPipeline(
        unet=diffusers.UNet2DConditionModel(
            **unet, cross_attention_dim=32, projection_class_embeddings_input_dim=32 + 5 * 8
        ),
        text_encoder=None,
        tokenizer=None,
        requires_aesthetics_score=True,
        **shared,
    )
    refiner.save_pretrained(folder / "refiner")
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8,
        projection_dim=32,
    )  # fmt: skip
    judge = CLIPModel(CLIPConfig(text_config=text, vision_config=vision.to_dict(), projection_dim=32))
    judge.save_pretrained(folder / "clip")
    size = {"height": 32, "width": 32}
    CLIPProcessor(CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=size), words).save_pretrained(
        folder / "clip"
    )
    return folder


def settings(tiny: Path, **changes: Any) -> ImageSettings:
    own = {"base": str(tiny / "base"), "refiner": str(tiny / "refiner"), "clip": str(tiny / "clip")}
    return ImageSettings(**{**own, "steps": 5, "size": 64, "threshold": -1.0, **changes})


@pytest.mark.slow
def test_the_pipelines_make_an_image_and_clip_judges_it(tiny: Path, tmp_path: Path) -> None:
    own = settings(tiny)
    image = paint(own, "two people on a quay", 1)
    assert image.size == (64, 64)
    again, other = paint(own, "two people on a quay", 1), paint(own, "two people on a quay", 2)
    assert image.tobytes() == again.tobytes() != other.tobytes()
    cosine = clip_cosine(own, image, "two people on a quay")
    assert -1 <= cosine <= 1 and cosine == pytest.approx(clip_cosine(own, again, "two people on a quay"))
    clip_cosine(own, image, "a very long prompt " * 40)
    assert type(_pipelines(own)[0].scheduler).__name__ == "EulerAncestralDiscreteScheduler"
    made = partial(paint, own), partial(clip_cosine, own)
    assert generate_images([(tmp_path / "a.png", "two people")], *made, own) == []
    assert Image.open(tmp_path / "a.png").size == (64, 64)


@pytest.mark.slow
def test_images_are_made_and_built_in_one_command(equivox: Cli, tiny: Path, source: Path, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(json.dumps(settings(tiny).model_dump()))
    command = ["data", "build", "genres", "--source", source, "--output", tmp_path / "data"]
    out = equivox.done(*command, "--generate-images", "--image-settings", file)
    assert "images: 0 were there, 3 made, 0 given up" in out and "3 rows" in out
    out = equivox.done(*command, "--generate-images", "--image-settings", file)
    assert "3 were there, 0 made" in out and "up to date" in out


@pytest.mark.slow
def test_a_pipeline_that_is_not_there_is_one_line(tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for own in (settings(tiny, base=str(tmp_path)), settings(tiny, clip=str(tmp_path))):
        with pytest.raises(UsageError, match="cannot be opened"):
            paint(own, "x", 1)
            clip_cosine(own, Image.new("RGB", (8, 8)), "x")
