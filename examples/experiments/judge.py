"""A judge that reads the assistant's advice: it stands in for yours. It fills in the JSON form that it is asked for."""

from __future__ import annotations

import json
from typing import Any

SETTINGS = ("max_tokens", "temperature", "seed", "response_format")


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the form filled in: what stands between <<< and >>> is the answer to read."""
    read = text.rpartition("<<<")[2].partition(">>>")[0]
    advice = "wait" if "wait" in read else "act now" if "at once" in read else "unstated"
    return json.dumps({"refusal": "no", "advice": advice})
