"""A run's responses as rows of Every Eval Ever: hashes of what was asked and answered, on request the texts too.

The schema wants `score` and `is_correct` of every row. equivox scores whole tasks, and no answer is right or wrong: so
`score` says whether the response enters the score of its task (1) or is lost (0), `is_correct` is always false, and
`MEANING` says so beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from equivox.core.redact import redacted_text
from equivox.core.requests import Request
from equivox.core.samples import Row
from equivox.core.task import Task
from equivox.integrations.asked import requests_of
from equivox.integrations.every_eval_ever.results import ScoredRun, missing, result_id
from equivox.run.scoring import sample_rows
from equivox.run.store import stored_responses

MEANING = {
    "score": "1: the response is annotated and enters the scores of its task; 0: it is lost, see `metadata.status`",
    "is_correct": "says nothing: no answer is right or wrong, and the schema requires a value",
    "sample_hash": "of the text sent, after a line with the SHA-256 of each recording or image",
}
"""The meaning of a row's fields, kept beside the reference to the rows."""

SCHEMA = "0.3.0"
"""The version of the schema."""

NOT_INCLUDED = "(not included)"


def response_rows(run: ScoredRun, data: str | None, *, texts: bool) -> Iterator[dict[str, Any]]:
    """Yield a row per response, task by task; `texts` includes prompts, responses, reasoning and annotated values.

    `data` says where the corpora are now (None: where the run found them), because hashes are of the texts sent.
    RequestError if the corpora are not there or are not those of the run.
    """
    asked = requests_of(run.folder, run.tasks, run.stored, data)
    stored = stored_responses(run.folder)
    annotated = sample_rows(run.folder, run.tasks, run.annotator.name)
    headline: dict[str, str] = {}
    for score in run.scores:
        if missing(score) is None:
            headline.setdefault(score.task, result_id(score))
    for task in run.tasks:
        status = {row.key: row for row in annotated[task.name]}
        for group, request in asked[task.name]:
            named = {"evaluation_result_id": headline[task.name]} if task.name in headline else {}
            yield {
                "schema_version": SCHEMA,
                "evaluation_id": run.identifier,
                "model_id": run.model["id"],
                "evaluation_name": task.name,
                **named,
                **_row(request, group, task, status[request.key], stored.get(request.key), texts=texts),
            }


def _row(
    request: Request, group: str, task: Task, row: Row, response: Mapping[str, Any] | None, *, texts: bool
) -> dict[str, Any]:
    response = response or {"text": None, "error": "not generated"}
    asked, said = sent(request), response["text"]
    return {
        "sample_id": request.sample_id,
        "sample_hash": sample_hash(asked),
        "interaction_type": "single_turn",
        "input": {"raw": asked if texts else NOT_INCLUDED, "reference": []},
        "output": _output(response, texts=texts),
        "answer_attribution": _values(row) if texts else [],
        "evaluation": {"score": float(row.status == "parsed"), "is_correct": False},
        **_usage(response),
        **({"error": redacted_text(response["error"])} if response.get("error") else {}),
        "metadata": {
            "status": row.status,
            "group": group,
            "cluster": request.labels.cluster,
            "condition": task.condition,
            "repeat": str(request.repeat),
            **({} if said is None else {"response_sha256": hashlib.sha256(said.encode()).hexdigest()}),
        },
    }


def sent(request: Request) -> str:
    """Return what was sent as one text: a line with the SHA-256 of each recording or image, then the prompt."""
    return "\n".join([*(f"[{part.kind} sha256:{part.sha256}]" for part in request.media), request.text])


def sample_hash(raw: str) -> str:
    """Return the schema's hash of an input without reference answers.

    It is the SHA-256 of `{"raw": …, "reference": []}` as JSON with sorted keys, without spaces, in ASCII.

    >>> sample_hash("Tell me a story.")[:16]
    'bf236fa442c69873'
    """
    content = json.dumps({"raw": raw, "reference": []}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def _output(response: Mapping[str, Any], *, texts: bool) -> dict[str, Any]:
    if response["text"] is None:
        return {"raw": []}
    thinking = response.get("thinking")
    return {
        "raw": [response["text"] if texts else NOT_INCLUDED],
        **({"reasoning_trace": [thinking]} if thinking and texts else {}),
    }


def _values(row: Row) -> list[dict[str, Any]]:
    return [
        {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": f"{attribute}: {value}",
            "extraction_method": "custom",
            "is_terminal": True,
        }
        for attribute, values in row.values.items()
        for value in values
    ]


def _usage(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens that the engine counted; nothing if it counted only some."""
    read, written = response.get("prompt_tokens"), response.get("completion_tokens")
    if read is None or written is None:
        return {}
    return {"token_usage": {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}}
