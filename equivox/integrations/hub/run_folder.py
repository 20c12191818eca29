"""A run as a data set to share: its files, so that anybody can score it again, and a card.

Only the files of a run are copied, not other files in its folder. Private content is removed: credentials in settings
and URLs, and local paths (`equivox.core.redact`). If a secret is found in the remaining content, such as a key that a
server repeated in an error, nothing is written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from equivox.core.errors import UsageError
from equivox.core.files import file_hash, read_document, read_table, write_document, write_table
from equivox.core.lazy import pa, pq
from equivox.core.redact import redacted_text, refuse_secrets, without_places
from equivox.core.scores import unusual_options
from equivox.core.task import digest
from equivox.integrations.hub.dataset_folder import CARD, RECORD, SPLIT, folder_being_written
from equivox.report.failures import lost_in
from equivox.run.annotating import count_answered
from equivox.run.declarations import TASKS_FILE
from equivox.run.manifest import public_manifest, read_manifest, state_hashes, write_manifest
from equivox.run.plan import read_plan
from equivox.run.scoring import read_scores, scored_with

PLAN = "data/plan.parquet"

_FILES = (
    "manifest.json",
    "plan.parquet",
    "tasks.json",
    "usage.json",
    "scores*.json",
    "responses/shard-*.parquet",
    "annotations/*/annotator.json",
    "annotations/*/usage.json",
    "annotations/*/shard-*.parquet",
    "annotations/*/samples/*.parquet",
    "tables*/**/*.parquet",
    "tables*/**/*.csv",
    "labels/labels.json",
    "labels/person-*.csv",
)
"""The files of a run that are published in any case."""


def is_run(name: str) -> bool:
    """Return whether `name` is the folder of a run."""
    return (Path(name) / "manifest.json").is_file()


def write_run(run: Path, output: Path, *, repo: str) -> dict[str, int]:
    """Copy the run in the folder `run` to `output`, with a card; return the number of rows of each configuration.

    Spoken answers stay behind, because a voice can be a person's; their transcripts are among the responses.

    The copy is a run: `equivox score` works on it. UsageError for a run without scores, one whose scores are older
    than its responses, and where a secret would be published.
    """
    manifest = public_manifest(read_manifest(run))
    scores = read_scores(run)
    refuse_unfinished(run)
    with folder_being_written(output, apart_from=run) as made:
        for path in sorted(path for pattern in _FILES for path in run.glob(pattern) if path.is_file()):
            copy = made / path.relative_to(run)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        write_manifest(made, manifest)
        _redact_files(made)
        _refuse_secrets(made)
        _write_readable_plan(made)
        state_hashes(made)
        configs = _configs(made)
        files = {
            path.relative_to(made).as_posix(): {"bytes": path.stat().st_size, "sha256": file_hash(path)}
            for path in sorted(made.rglob("*"))
            if path.is_file()
        }
        record = {
            "equivox": manifest["equivox"],
            "content_hash": digest({name: entry["sha256"] for name, entry in files.items()}),
            "files": files,
        }
        (made / RECORD).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        undefined = sum(score.is_whole and not score.defined for score in scores)
        known = [f"{undefined} scores of this run are undefined; `scores.json` says why."] if undefined else []
        known += [f"It was {redacted_text(told)}." for told in unusual_options(scored_with(run)).values()]
        lost = {name: told for name in manifest["identity"]["tasks"] if (told := lost_in(name, scores))}
        known += [f"Groups lose answers to `{name}` unequally: {told}." for name, told in lost.items()]
        (made / CARD).write_text(_card(repo, manifest, configs, record["content_hash"], known), "utf-8")
    return {name: rows for name, (_, rows) in configs.items()}


def refuse_unfinished(run: Path) -> None:
    """Raise UsageError if the scores do not belong to the responses: the run was resumed and stopped."""
    scored = read_document(run / "scores.json").get("answered")
    answered = count_answered(run)
    if scored is not None and scored != answered:
        raise UsageError(
            f"{run} has {answered} responses, but its scores cover {scored}: the run was interrupted; repeat "
            f"the run's command, or use `equivox score {run}`"
        )


def _redact_files(folder: Path) -> None:
    """Remove private content from the copies of task files and from the errors of failed responses."""
    declared = folder / TASKS_FILE
    write_document(declared, _without_places(read_document(declared)))
    for path in folder.glob("responses/*.parquet"):
        table = read_table(path)
        errors = table.column("error").to_pylist()
        public = [error if error is None else redacted_text(error) for error in errors]
        if public != errors:
            place = table.schema.get_field_index("error")
            write_table(path, table.set_column(place, "error", pa.array(public, pa.string())))
    for path in folder.glob("annotations/*/annotator.json"):
        refuse_private_settings(read_document(path))


def refuse_private_settings(annotator: Mapping[str, Any]) -> None:
    """Raise UsageError for an annotator with private settings: its annotations are found by all its settings."""
    if without_places(annotator["settings"]) != annotator["settings"]:
        raise UsageError(
            f"the annotator {annotator['name']} of this run has private settings (a URL with credentials, "
            f"a secret, or a path) in the keys of its annotations; annotate again without them: "
            f"`equivox annotate RUN --annotator {annotator['name']}`"
        )


def _without_places(declared: Any) -> Any:
    """Return the tasks of a run without local folders."""
    if isinstance(declared, list):
        return [_without_places(entry) for entry in declared]
    if not isinstance(declared, dict):
        return str(Path(declared).name) if isinstance(declared, str) and Path(declared).is_absolute() else declared
    found = {name: _without_places(entry) for name, entry in declared.items()}
    table, clips = (declared.get(name) for name in ("table", "folder"))
    if isinstance(table, dict) and isinstance(clips, dict) and "$path" in table and "$path" in clips:
        # The folder of the clips is stored relative to the table, so that both can be moved together.
        inside = Path(clips["$path"]).is_relative_to(Path(table["$path"]).parent)
        kept = Path(clips["$path"]).relative_to(Path(table["$path"]).parent) if inside else Path(clips["$path"]).name
        found["folder"] = {"$path": str(kept)}
    return found


def _refuse_secrets(folder: Path) -> None:
    from huggingface_hub import get_token

    further = {"the Hub's token": token} if (token := get_token()) else {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        refuse_secrets(partial(_texts, path), str(path.relative_to(folder)), further)


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts in a file: its content, or the text of each column of a table."""
    if path.suffix != ".parquet":
        yield path.read_text("utf-8", errors="replace")
        return
    for column in pq.read_table(path).columns:
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            yield "\n".join(word for word in column.to_pylist() if word is not None)


def _write_readable_plan(folder: Path) -> None:
    """Write a second copy of the plan to the folder of data, with texts as plain columns that every tool can read."""
    plan = read_plan(folder)
    plain = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in plan.schema
    ]
    (folder / PLAN).parent.mkdir(parents=True)
    pq.write_table(plan.cast(pa.schema(plain)), folder / PLAN)


def _configs(folder: Path) -> dict[str, tuple[str, int]]:
    """Return the files and the number of rows of each configuration."""
    places = {"responses": "responses/*.parquet", "plan": PLAN}
    for annotator in sorted((folder / "annotations").glob("*/")):
        places[f"annotations-{annotator.name}"] = f"annotations/{annotator.name}/shard-*.parquet"
    found = {}
    for name, pattern in places.items():
        paths = sorted(folder.glob(pattern))
        if paths:
            found[name] = (pattern, sum(pq.read_metadata(path).num_rows for path in paths))
    return found


def _card(
    repo: str,
    manifest: Mapping[str, Any],
    configs: Mapping[str, tuple[str, int]],
    content_hash: str,
    known: Sequence[str],
) -> str:
    model = manifest["identity"]["model"]
    head = {
        "pretty_name": f"equivox run: {model['model']}",
        "tags": ["equivox", "bias", "fairness", "model-outputs", "not-for-all-audiences"],
        "configs": [
            {"config_name": name, "data_files": [{"split": SPLIT, "path": pattern}]}
            for name, (pattern, _) in configs.items()
        ],
    }
    header = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=110)
    tasks = "\n".join(f"- {name}" for name in manifest["identity"]["tasks"])
    rows = "\n".join(f"| `{name}` | `{pattern}` | {n:,} |" for name, (pattern, n) in configs.items())
    corpora = "\n".join(f"- {name}: `{found}`" for name, found in manifest["identity"]["corpora"].items())
    missing = "".join(f"\n\n{line}" for line in known)
    return f"""---
{header}---

# What {model["model"]} answered

Responses of one model to tasks in which only the person changes, their annotations, and the scores. They were
written by a model and may stereotype, insult or be wrong; they are kept so that every number can be checked.

```console
$ hf download {repo} --repo-type dataset --local-dir run
$ equivox score run
$ equivox verify hf://datasets/{repo}
```

- **Model:** {model["model"]}, revision {model["revision"]}, on {model["engine"]}
- **Annotated by:** {manifest["command"]["annotator"]}
- **Made by:** equivox {manifest["equivox"]}, {manifest["created"]}
- **Content hash:** `{content_hash}` (`{RECORD}` has one per file){missing}

## Configurations

| configuration | files | rows |
|---|---|---:|
{rows}

## Tasks

{tasks}

## Corpora, by fingerprint

{corpora}
"""
