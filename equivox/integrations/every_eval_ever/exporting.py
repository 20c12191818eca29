"""A run as files of Every Eval Ever: `data/equivox/OWNER/MODEL/UUID.json` and `UUID_samples.jsonl`.

Credentials and local paths are removed, as in a run that is pushed to the Hub.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.files import write_text
from equivox.core.redact import refuse_secrets
from equivox.integrations.every_eval_ever.responses import MEANING, SCHEMA, response_rows
from equivox.integrations.every_eval_ever.results import UNKNOWN, ScoredRun
from equivox.integrations.hub.run_folder import refuse_private_settings, refuse_unfinished

COLLECTION = "equivox"


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
