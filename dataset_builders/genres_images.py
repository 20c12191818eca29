"""Images for narrative elements: made by a diffusion model, kept if CLIP finds them close to their prompt.

As in appendix B.2 of GENRES (arXiv 2506.23101): Stable Diffusion XL, base and refiner (Euler ancestral, 40 steps,
guidance 7.0, the base for the first 80 % of the noise), and a filter by CLIP ViT-L/14 at a cosine of 0.25. The authors'
last step, looking at every image, is not automated: `images.csv` in the folder of the images lists them.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import read_config_file
from equivox.core.errors import UsageError
from equivox.core.files import write_whole
from equivox.core.lazy import torch
from equivox.core.progress import Event, Progress, no_progress
from equivox.dataset_builders.genres import Genres

LOG = "images.csv"
"""A file in the folder of the images: every attempt with prompt, seed, cosine, and whether it was kept."""


class ImageSettings(BaseModel):
    """Settings of the generation of images; a YAML file can give other values, unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str = "stabilityai/stable-diffusion-xl-base-1.0"
    refiner: str = "stabilityai/stable-diffusion-xl-refiner-1.0"
    clip: str = "openai/clip-vit-large-patch14"
    steps: int = Field(default=40, ge=1)
    guidance: float = Field(default=7.0, ge=0)
    base_share: float = Field(default=0.8, gt=0, lt=1)
    size: int = Field(default=1024, ge=64, multiple_of=8)
    threshold: float = Field(default=0.25, ge=-1, le=1)
    attempts: int = Field(default=20, ge=1)
    seed: int = 0


def read_image_settings(path: Path | None) -> ImageSettings:
    """Return the settings in a YAML file; without a file, those of the paper."""
    return ImageSettings() if path is None else read_config_file(ImageSettings, str(path), "genres")


def wanted_images(builder: Genres) -> tuple[list[tuple[Path, str]], int]:
    """Return the images that a source names but lacks, with their prompts, and the number of existing images.

    UsageError if a missing image has no prompt.
    """
    wanted, there = [], 0
    for path, description in builder.image_prompts():
        if path.is_file():
            there += 1
        elif description is None:
            raise UsageError(
                f"{builder.relative(path)} is missing and has no prompt; give its element `image_prompts`, or let a "
                "model write them with `equivox data make describe`"
            )
        else:
            wanted.append((path, description))
    return wanted, there


def generate_images(
    wanted: Sequence[tuple[Path, str]],
    paint: Callable[[str, int], Any],
    cosine_of: Callable[[Any, str], float],
    settings: ImageSettings,
    *,
    progress: Progress = no_progress,
) -> list[str]:
    """Make every image in `wanted`, given by path and prompt; return the names of those without a good enough attempt.

    `paint` makes an image from a prompt, the same for the same seed; `cosine_of` says how close it is to the prompt.
    The first attempt that reaches the threshold is kept. An image is written whole or not at all, and each attempt is
    logged in the same folder at once, so that a stopped run resumes with the next attempt.
    """
    given_up = []
    for number, (path, prompt) in enumerate(wanted, start=1):
        path.parent.mkdir(parents=True, exist_ok=True)
        tried = sum(attempt["image"] == path.name for attempt in _logged(path.parent / LOG))
        for attempt in range(tried, settings.attempts):
            seed = int(hashlib.sha256(f"{settings.seed}/{path.name}/{attempt}".encode()).hexdigest()[:8], 16)
            image = paint(prompt, seed)
            cosine = cosine_of(image, prompt)
            good = cosine >= settings.threshold
            if good:
                write_whole(path, partial(image.save, format="PNG"))
            line = {"image": path.name, "attempt": attempt, "seed": seed, "cosine": cosine, "kept": good}
            _log(path.parent / LOG, line | {"prompt": prompt})
            if good:
                break
        if not path.is_file():
            given_up.append(path.name)
        progress(Event("images", number, len(wanted)))
    return given_up


def _logged(path: Path) -> Iterator[dict[str, str]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _log(path: Path, attempt: Mapping[str, object]) -> None:
    new = not path.is_file()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(attempt))
        if new:
            writer.writeheader()
        writer.writerow(attempt)


_EXTRA = (
    "diffusers makes the images; install it in a checkout of equivox: "
    '`pip install -c constraints.txt ".[genres-images]"`'
)


@contextmanager
def _opening(name: str) -> Iterator[None]:
    """Turn the errors of a model that cannot be loaded into a UsageError."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"the image model {name!r} cannot be opened ({reason}); get it first") from None


def paint(settings: ImageSettings, prompt: str, seed: int) -> Any:
    """Return one image by Stable Diffusion XL, the same for the same seed; the refiner continues the base's result.

    Both are loaded for the first image, through diffusers.
    """
    base, refiner = _pipelines(settings)
    common = {
        "prompt": prompt,
        "num_inference_steps": settings.steps,
        "guidance_scale": settings.guidance,
        "generator": torch.Generator("cpu").manual_seed(seed),
    }
    size, share = settings.size, settings.base_share
    latent = base(**common, height=size, width=size, denoising_end=share, output_type="latent").images
    return refiner(**common, image=latent, denoising_start=share).images[0]


@cache
def _pipelines(settings: ImageSettings) -> list[Any]:
    """Return the base and the refiner of Stable Diffusion XL."""
    try:
        from diffusers import (
            EulerAncestralDiscreteScheduler,
            StableDiffusionXLImg2ImgPipeline,
            StableDiffusionXLPipeline,
        )

        cuda = torch.cuda.is_available()
    except ModuleNotFoundError:
        raise UsageError(_EXTRA) from None
    options = {"torch_dtype": torch.float16 if cuda else torch.float32, "use_safetensors": True}
    loaded = []
    for kind, name in (
        (StableDiffusionXLPipeline, settings.base),
        (StableDiffusionXLImg2ImgPipeline, settings.refiner),
    ):
        with _opening(name):
            pipeline = kind.from_pretrained(name, **options)
        pipeline.scheduler = EulerAncestralDiscreteScheduler.from_config(pipeline.scheduler.config)
        pipeline.set_progress_bar_config(disable=True)
        loaded.append(pipeline.to("cuda" if cuda else "cpu"))
    return loaded


def clip_cosine(settings: ImageSettings, image: Any, prompt: str) -> float:
    """Return CLIP's cosine of image and prompt; a prompt that is too long for CLIP is cut.

    CLIP is loaded for the first image, through transformers.
    """
    processor, model = _clip(settings.clip)
    given = processor(text=[prompt], images=image, return_tensors="pt", padding=True, truncation=True)
    with torch.inference_mode():
        found = model(**given.to(model.device))
    return float(torch.nn.functional.cosine_similarity(found.image_embeds, found.text_embeds)[0])


@cache
def _clip(name: str) -> tuple[Any, Any]:
    """Return CLIP's processor and its model."""
    try:
        from transformers import CLIPModel, CLIPProcessor

        device = "cuda" if torch.cuda.is_available() else "cpu"
    except ModuleNotFoundError:
        raise UsageError(_EXTRA) from None
    with _opening(name):
        model = CLIPModel.from_pretrained(name)
        processor = CLIPProcessor.from_pretrained(name)
    return processor, model.to(device).eval()
