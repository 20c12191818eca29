"""A run as files of Every Eval Ever: `data/equivox/OWNER/MODEL/UUID.json` and `UUID_samples.jsonl`.

The first holds the scores, the second a row per response: hashes of what was asked and answered, on request the texts
too. Credentials and local paths are removed, as in a run that is pushed to the Hub.

The schema wants `score` and `is_correct` of every row. equivox scores whole tasks, and no answer is right or wrong: so
`score` says whether the response enters the score of its task (1) or is lost (0), `is_correct` is always false, and
`MEANING` says so beside them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.files import write_text
from equivox.core.redact import redacted_text, refuse_secrets
from equivox.core.samples import Row
from equivox.core.task import Task
from equivox.dataset_builders.corpus import table_in
from equivox.engines import EngineIdentity, Request
from equivox.integrations.every_eval_ever.results import UNKNOWN, ScoredRun, missing, result_id
from equivox.integrations.hub.run_folder import refuse_private_settings, refuse_unfinished
from equivox.run.opening import data_of
from equivox.run.pipeline import open_corpora
from equivox.run.plan import make_plan, read_plan
from equivox.run.scoring import sample_rows
from equivox.run.store import stored_responses

COLLECTION = "equivox"

MEANING = {
    "score": "1: the response is annotated and enters the scores of its task; 0: it is lost, see `metadata.status`",
    "is_correct": "says nothing: no answer is right or wrong, and the schema requires a value",
    "sample_hash": "of the text sent, after a line with the SHA-256 of each recording or image",
}
"""The meaning of a row's fields, kept beside the reference to the rows."""

SCHEMA = "0.3.0"
"""The version of the schema."""

NOT_INCLUDED = "(not included)"


def write_evaluation(run: Path, out: Path, *, data: str | None = None, texts: bool = False) -> list[Path]:
    """Write the scored run in the folder `run` below the folder `out`, and return the two written files.

    `data` says where the corpora are now (None: where the run found them), because samples are known by hashes of what
    was sent. `texts` includes prompts, responses and annotated values. RequestError, before
    anything is written, for a run without scores, for other data, and where a secret would be written.
    """
    if out.is_file():
        raise RequestError(f"`--out` {out} is a file; give a folder")
    scored = ScoredRun(run)
    refuse_unfinished(run)
    refuse_private_settings(scored.annotator.as_dict())
    # A line break within a text is escaped by JSON; the others that str.splitlines knows are escaped by ASCII.
    rows = "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in response_rows(scored, data, texts=texts))
    owner, _, model = scored.model["id"].partition("/")
    place = Path("data", COLLECTION, owner, model.replace("/", "_"))
    name = str(uuid.UUID(bytes=hashlib.sha256(scored.identifier.encode()).digest()[:16], version=4))
    samples = place / f"{name}_samples.jsonl"
    document = _document(scored) | {
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(rows.encode()).hexdigest(),
            "total_rows": rows.count("\n"),
            "additional_details": MEANING,
        }
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    refuse_secrets(lambda: (text, rows), f"the export of {run}")
    paths = [out / place / f"{name}.json", out / samples]
    write_text(paths[1], rows)
    write_text(paths[0], text)
    return paths


def _document(run: ScoredRun) -> dict[str, Any]:
    made = int(datetime.fromisoformat(run.manifest["created"]).timestamp())
    return {
        "schema_version": SCHEMA,
        "evaluation_id": run.identifier,
        "evaluation_timestamp": str(made),
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": "equivox",
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
            "additional_details": {
                "evaluator_relationship": "not stated: a run does not know who made it",
                **{f"not_a_number:{name}": why for name, why in run.left_out().items()},
            },
        },
        "eval_library": {
            "name": "equivox",
            "version": str(run.manifest["equivox"]),
            "additional_details": {
                "annotator": run.annotator.name,
                "command": json.dumps(run.manifest["command"], ensure_ascii=False),
                "limit": str(run.manifest["identity"]["limit"]),
            },
        },
        "model_info": run.model,
        "evaluation_results": run.results(),
    }


def response_rows(run: ScoredRun, data: str | None, *, texts: bool) -> Iterator[dict[str, Any]]:
    """Yield a row per response, task by task; `texts` includes prompts, responses, reasoning and annotated values.

    `data` says where the corpora are now (None: where the run found them), because hashes are of the texts sent.
    RequestError if the corpora are not there or are not those of the run.
    """
    asked = _requests(run, data)
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


def _requests(run: ScoredRun, data: str | None) -> dict[str, list[tuple[str, Request]]]:
    """Return the run's requests by task, each with its group, made again: a run stores no prompts and no media."""
    folder, identity = run.folder, run.stored["identity"]
    tasks = [dataclasses.replace(task, data=table_in(task.data, data)) for task in run.tasks]
    try:
        where = data if data is not None else next(iter({data_of(folder, task.data) for task in tasks}), None)
        corpora = open_corpora(tasks, where, {})
    except RequestError as error:
        raise RequestError(
            f"{error}; the text and the media of each request need the corpus: give its folder with `--data` (for a "
            f"custom task file, the folder of that file)"
        ) from error
    for name, corpus in corpora.items():
        if corpus.fingerprint != identity["corpora"][name]:
            raise RequestError(
                f"the corpus {name} is not the one that {folder} was made with; name the folder that holds it as `data`"
            )
    engine = EngineIdentity.from_public_dict(identity["model"])
    plan = make_plan(tasks, corpora, engine, limit=identity["limit"], seed=identity["seed"])
    kept = read_plan(folder)
    stored = set(zip(kept["task"].to_pylist(), kept["key"].to_pylist(), strict=True))
    found: dict[str, list[tuple[str, Request]]] = {task.name: [] for task in tasks}
    for row, request in plan.described():
        if (row["task"], request.key) in stored:
            found[row["task"]].append((row["group"], request))
    if {(name, request.key) for name, members in found.items() for _, request in members} != stored:
        raise RequestError(
            f"the requests of {folder} cannot be made again: it is a copy without its model's private settings, or was "
            f"made elsewhere; take the run itself"
        )
    return found
