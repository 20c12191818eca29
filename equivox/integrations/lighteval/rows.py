"""Rows of lighteval's files about one request and one task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equivox.core.task import Task
from equivox.engines import Request, Response

METRIC = "equivox"
"""The name of every task's metric; its numbers have the names of `equivox.integrations.flat`."""


def metric_label(task: Task) -> str:
    """Return the text that lighteval prints and hashes for the metric of `task`; it is equal in every process."""
    return f"{METRIC} {task.name} {task.fingerprint[:16]}"


def document_row(position: int, group: str, request: Request) -> dict[str, Any]:
    """Return one request as plain values: the prompt, the group and the media that it needs.

    `needs` is empty for text only, else words such as `audio`; media are named by digest, not included.
    """
    needs = sorted({part.kind for part in request.media} | ({"hidden states"} if request.patch else set()))
    return {
        "position": position,
        "prompt": request.text,
        "sample_id": request.sample_id,
        "repeat": request.repeat,
        "group": group,
        "cluster": request.labels.cluster,
        "stratum": request.labels.stratum,
        "needs": " and ".join(needs),
        "media_sha256": " ".join(part.sha256 for part in request.media),
    }


def delivery(prompt: str, run: Path, response: Response) -> dict[str, Any]:
    """Return the input of a response from an equivox engine: where it is stored and which media it used."""
    return {
        "prompt": prompt,
        "equivox_run": str(run),
        "key": response.key,
        "media_items": response.media_items,
        "media_tokens": response.media_tokens,
        "error": response.error,
    }
