"""SALMONN: a place to fill in. Its repository has no package and no published weights of one piece.

Clone https://github.com/bytedance/SALMONN, download what its README names (Whisper, BEATs, Vicuna, the checkpoint),
and put its folder into PYTHONPATH. Its `cli_inference.py` shows how the model is loaded and asked; write that into
the two functions below. Set the settings that you pass on in SETTINGS.
"""

from __future__ import annotations

from typing import Any

SETTINGS = ("max_tokens",)


def load() -> None:
    """Load the model."""
    # FILL IN: SALMONN.from_config(...) and the Whisper feature extractor, as cli_inference.py does.
    raise NotImplementedError("examples/serve/salmonn.py: write into load() what cli_inference.py of SALMONN does")


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text about a clip."""
    if audio is None:
        raise ValueError("SALMONN takes no request without audio")
    # FILL IN: prepare_one_sample(audio.path, …), then model.generate(…), as cli_inference.py does.
    raise NotImplementedError("examples/serve/salmonn.py: write into answer() what cli_inference.py of SALMONN does")
