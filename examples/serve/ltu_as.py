"""LTU-AS: a place to fill in. Its authors publish code and weights, and no package.

Clone https://github.com/YuanGong/ltu, follow its README for LTU-AS, and write into the two functions below how its
inference script loads the model and asks it. LTU-AS hears a clip and reads a Whisper transcript of it. The transcriber
of the script changes answers, so keep it. Set the settings that you pass on in SETTINGS.
"""

from __future__ import annotations

from typing import Any

SETTINGS = ("max_tokens",)


def load() -> None:
    """Load the model."""
    # FILL IN
    raise NotImplementedError("examples/serve/ltu_as.py: write into load() what the inference script of LTU-AS does")


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text about a clip."""
    # FILL IN, with audio.path
    raise NotImplementedError("examples/serve/ltu_as.py: write into answer() what the inference script of LTU-AS does")
