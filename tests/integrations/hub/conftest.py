"""A stand-in for the Hub that every test here talks to, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A fresh hub on the loopback; huggingface_hub talks to it, with a token it knows, and never waits."""
    import fake_hub
    from huggingface_hub import constants
    from huggingface_hub.utils import _http

    with fake_hub.fake_hub() as served:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, served.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "no-tokens"))
        monkeypatch.setenv("HF_TOKEN", fake_hub.TOKEN)
        monkeypatch.setattr(_http.time, "sleep", lambda seconds: None)
        yield served
