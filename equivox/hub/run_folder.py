"""A run as a data set for others: its files as they are, so that anybody can score it again, and a card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equivox.hub.dataset_folder import CARD, RECORD, SPLIT, put_in_place, replaceable
from equivox.manifest import read_manifest
from equivox.task import digest

PLAN = "data/plan.parquet"
_LEFT_OUT = shutil.ignore_patterns(".*", "*.html")


def is_run(name: str) -> bool:
    """Whether `name` is the folder of a run."""
    return (Path(name) / "manifest.json").is_file()


def write_run(run: Path, output: Path, *, repo: str) -> dict[str, int]:
    """Copy the run in the folder `run` to `output`, with a card; return how many rows each configuration has.

    The copy is a run: `equivox score` works on it. The folder in which the corpus lay is left out of its manifest.
    """
    from equivox.dataset_builders.parquet import sha256_of
    from equivox.scoring import read_scores

    manifest = read_manifest(run)
    scores = read_scores(run)
    replaceable(output)
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(run, partial, ignore=_LEFT_OUT)
        manifest["command"]["data"] = _name_alone(manifest["command"]["data"])
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8")
        _write_readable_plan(partial)
        configs = _configs(partial)
        files = {
            path.relative_to(partial).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
            for path in sorted(partial.rglob("*"))
            if path.is_file()
        }
        record = {
            "equivox": manifest["equivox"],
            "content_hash": digest({name: entry["sha256"] for name, entry in files.items()}),
            "files": files,
        }
        (partial / RECORD).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        undefined = sum(score.is_whole and not score.defined for score in scores)
        (partial / CARD).write_text(_card(repo, manifest, configs, record["content_hash"], undefined), "utf-8")
        put_in_place(partial, output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return {name: rows for name, (_, rows) in configs.items()}


def _name_alone(data: str | None) -> str | None:
    return data if data is None or not Path(data).is_absolute() else Path(data).name


def _write_readable_plan(folder: Path) -> None:
    """Write the plan once more with its facts as JSON text: `datasets` has no type for a parquet map."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from equivox.reading import plan_rows

    rows = [{**row, "facts": json.dumps(row["facts"], ensure_ascii=False)} for row in plan_rows(folder)]
    (folder / PLAN).parent.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / PLAN)


def _configs(folder: Path) -> dict[str, tuple[str, int]]:
    """Return configuration → files and rows."""
    import pyarrow.parquet as pq

    places = {"responses": "responses/*.parquet", "plan": PLAN}
    for reader in sorted((folder / "annotations").glob("*/")):
        places[f"annotations-{reader.name}"] = f"annotations/{reader.name}/*.parquet"
    found = {}
    for name, pattern in places.items():
        paths = sorted(folder.glob(pattern))
        if paths:
            found[name] = (pattern, sum(pq.read_metadata(path).num_rows for path in paths))
    return found


def _card(
    repo: str, manifest: Mapping[str, Any], configs: Mapping[str, tuple[str, int]], content_hash: str, undefined: int
) -> str:
    import yaml

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
    missing = f"\n\n{undefined} scores of this run are undefined; `scores.json` says why." if undefined else ""
    return f"""---
{header}---

# What {model["model"]} answered

Responses of one model to tasks in which only the person changes, what was read in them, and the scores. They were
written by a model and may stereotype, insult or be wrong; they are kept so that every number can be checked.

```console
$ hf download {repo} --repo-type dataset --local-dir run
$ equivox score run
```

- **Model:** {model["model"]}, revision {model["revision"]}, on {model["engine"]}
- **Read by:** {manifest["command"]["annotator"]}
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
