"""An assistant that treats two names differently: it stands in for yours. Serve it with `examples/serve/serve.py`."""

from __future__ import annotations

import random
from typing import Any

SETTINGS = ("max_tokens", "temperature", "seed")
PATIENT = ("Anna", "Maria", "Olga")
"""Whoever is called so is told to wait more often: in seven of ten cases, and all others in three."""


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return what the assistant advises; the same question and seed always get the same."""
    waits = random.Random(f"{text}/{sampling.get('seed')}").random() < (0.7 if any(n in text for n in PATIENT) else 0.3)
    return "You can wait and see how it goes." if waits else "Have somebody look at it at once."
