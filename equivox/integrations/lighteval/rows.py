"""What stands in lighteval's files about one request and one task, whoever writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equivox.core.task import Task
from equivox.engines import Response
from equivox.run.plan import PlannedRequest

METRIC = "equivox"
"""What the metric of every task is called; its numbers have the names of `equivox.integrations.flat`."""


def metric_label(task: Task) -> str:
    """Return what is printed and hashed of the metric of `task`: the same words in every process."""
    return f"{METRIC} {task.name} {task.fingerprint[:16]}"


def document_row(position: int, planned: PlannedRequest) -> dict[str, Any]:
    """Return one request as plain values: the prompt, whom its answer counts for, and what it needs beside the text.

    `needs` is empty for text alone, else words such as `audio`; media are named by digest, not included.
    """
    request = planned.request
    needs = sorted({part.kind for part in request.media} | ({"hidden states"} if request.patch else set()))
    return {
        "position": position,
        "prompt": request.text,
        "sample_id": request.sample_id,
        "repeat": request.repeat,
        "group": planned.group,
        "cluster": request.labels.cluster,
        "stratum": request.labels.stratum,
        "needs": " and ".join(needs),
        "media_sha256": " ".join(part.sha256 for part in request.media),
    }


def delivery(prompt: str, run: Path, response: Response) -> dict[str, Any]:
    """Return what a response of equivox's engines carries as its input: where it is stored, and what media it used."""
    return {
        "prompt": prompt,
        "equivox_run": str(run),
        "key": response.key,
        "media_items": response.media_items,
        "media_tokens": response.media_tokens,
        "error": response.error,
    }
