"""Writes a run as the files of lighteval 0.13, for programs that read lighteval's results.

results/<model>/results_<time>.json
    configuration, the flat numbers of every task (`equivox.integrations.flat`), hashes
details/<model>/<time>/details_<task>|0_<time>.parquet
    one row per request: `doc` (the request), `metric`, `model_response` (the response)

Averages over tasks (`<family>:_average|0`, `all`) are plain means of each number, as in lighteval: a mean of p-values
is not a p-value. One undefined number makes its average NaN.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from equivox.core.files import write_text, write_whole
from equivox.core.redact import redacted_text
from equivox.core.task import Task
from equivox.engines import Response
from equivox.integrations.asked import Made, requests_of
from equivox.integrations.flat import flat_metrics
from equivox.integrations.lighteval.rows import METRIC, delivery, document_row, metric_label
from equivox.run.annotating import stored_responses
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.pipeline import run_tasks
from equivox.run.scoring import read_scores

_GENERATION_PARAMETERS = (
    "num_blocks",
    "block_size",
    "early_stopping",
    "repetition_penalty",
    "frequency_penalty",
    "length_penalty",
    "presence_penalty",
    "max_new_tokens",
    "min_new_tokens",
    "seed",
    "stop_tokens",
    "temperature",
    "top_k",
    "min_p",
    "top_p",
    "truncate_prompt",
    "cache_implementation",
    "response_format",
)


def write_lighteval_results(
    folder: Path,
    output: Path,
    *,
    time: datetime,
    data: str | None = None,
    annotator: str | None = None,
    details: bool = True,
) -> list[Path]:
    """Write the scored run in `folder` below `output` in lighteval's layout, and return the written files.

    `time` names the files. `data` is where the corpora are now (by default where the run found them); they are needed
    because a run does not store prompts. Without `details` no corpus is needed, and only results are written.
    `annotator` names the annotator of the scores; None is the run's. Every file is written whole, details first, so
    that results never lack their details. Private content (`equivox.core.redact`) is removed. RequestError for a run
    without scores, and if the data are not those of the run.
    """
    stored = read_manifest(folder)
    manifest = public_manifest(stored)
    scores = read_scores(folder, annotator)
    tasks = run_tasks(folder)
    without = ", or leave the details out with `--no-details`"
    asked = requests_of(folder, tasks, stored, data, otherwise=without) if details else {}
    rows = {task.name: _details(folder, task, asked[task.name]) for task in tasks if details}
    name = model_folder(manifest)
    stamp = time.isoformat().replace(":", "-")
    numbers = {f"{t.name}|0": flat_metrics([score for score in scores if score.task == t.name]) for t in tasks}
    document = {
        "config_general": _general(manifest, tasks, name, time),
        "results": numbers | averages(numbers),
        "versions": {},
        "config_tasks": {f"{task.name}|0": _configuration(task, manifest) for task in tasks},
        **_summaries(rows),
    }
    written = []
    for task, of_task in rows.items():
        path = output / "details" / name / stamp / f"details_{task}|0_{stamp}.parquet"
        _write_details(path, of_task)
        written.append(path)
    path = output / "results" / name / f"results_{stamp}.json"
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False))
    return [*written, path]


def model_folder(manifest: Mapping[str, Any]) -> str:
    """Return the folder name of a run's model: `org/model`, the last part of a local path, or its spec.

    >>> model_folder({"identity": {"model": {"engine": "vllm", "model": "/models/tiny"}}})
    'tiny'
    """
    model = manifest["identity"]["model"]
    if model["engine"] == "simulated":
        return str(manifest["command"]["model"])
    path = PurePosixPath(model["model"])
    return path.name if path.is_absolute() else "/".join(part for part in path.parts if part != "..")


def averages(results: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the mean of each number over the tasks of a family, if it has several, and over all tasks.

    >>> averages({"a:x|0": {"ntvd": 10.0}, "a:y|0": {"ntvd": 20.0}, "b:z|0": {"m1": 0.5}})
    {'a:_average|0': {'ntvd': 15.0}, 'all': {'ntvd': 15.0, 'm1': 0.5}}
    """
    families: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    everything: dict[str, list[float]] = defaultdict(list)
    for task, numbers in results.items():
        families[f"{task.partition(':')[0]}:_average|0"].append(numbers)
        for name, value in numbers.items():
            everything[name].append(value)
    means = {
        family: {name: _mean(numbers[name] for numbers in members) for name in members[0]}
        for family, members in families.items()
        if len(members) > 1
    }
    return means | {"all": {name: _mean(values) for name, values in everything.items()}}


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.nan if any(map(math.isnan, listed)) else sum(listed) / len(listed)


def _details(folder: Path, task: Task, asked: Sequence[Made]) -> list[dict[str, dict[str, Any]]]:
    responses = stored_responses(folder)
    run = Path(folder.resolve().name)
    rows = []
    for place, group, request in asked:
        stored = responses.get(request.key) or {"key": request.key, "text": None, "error": "not generated"}
        response = Response(**{**stored, "error": stored["error"] and redacted_text(stored["error"])})
        text = response.text or ""
        rows.append(
            {
                "doc": _doc(task, document_row(place, group, request)),
                "metric": {METRIC: {"position": place, "answered": bool(text.strip())}},
                "model_response": {
                    "input": [delivery(request.text, run, response)],
                    "input_tokens": [],
                    "text": [text],
                    "output_tokens": [],
                    "text_post_processed": [text],
                    "reasonings": [response.thinking],
                    "logprobs": [],
                    "argmax_logits_eq_gold": [],
                    "logits": None,
                    "unconditioned_logprobs": None,
                    "truncated_tokens_count": 0,
                    "padded_tokens_count": 0,
                },
            }
        )
    return rows


def _doc(task: Task, row: dict[str, str | int]) -> dict[str, Any]:
    return {
        "query": row.pop("prompt"),
        "choices": [""],
        "gold_index": 0,
        "instruction": None,
        "images": None,
        "specific": row,
        "unconditioned_query": None,
        "original_query": None,
        "id": str(row["position"]),
        "task_name": f"{task.name}|0",
        "fewshot_samples": [],
        "sampling_methods": ["GENERATIVE"],
        "fewshot_sorting_class": None,
        "generation_size": task.sampling.max_new_tokens,
        "stop_sequences": list(task.sampling.stop),
        "use_logits": False,
        "num_samples": 1,
        "generation_grammar": None,
    }


def _write_details(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    table = Dataset.from_list([dict(row) for row in rows])
    write_whole(path, lambda temporary: table.to_parquet(str(temporary)))


def _general(manifest: Mapping[str, Any], tasks: Sequence[Task], name: str, time: datetime) -> dict[str, Any]:
    """Return the general configuration; null for entries that a run does not know (durations) or tasks declare."""
    return {
        "lighteval_sha": "?",
        "num_fewshot_seeds": 1,
        "max_samples": manifest["identity"]["limit"],
        "job_id": "0",
        "start_time": None,
        "end_time": None,
        "total_evaluation_time_secondes": None,
        "model_config": {
            "model_name": name,
            "generation_parameters": dict.fromkeys(_GENERATION_PARAMETERS),
            "system_prompt": None,
            "cache_dir": None,
            "equivox": {
                "version": manifest["equivox"],
                "created": manifest["created"],
                "written": time.isoformat(),
                "sampling": {task.name: dataclasses.asdict(task.sampling) for task in tasks},
                **manifest["identity"]["model"],
            },
        },
        "model_name": name,
    }


def _configuration(task: Task, manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": task.name,
        "prompt_function": "document",
        "hf_repo": task.data.corpus,
        "hf_subset": "default",
        "metrics": [
            {
                "metric_name": METRIC,
                "higher_is_better": False,
                "category": "GENERATIVE",
                "sample_level_fn": metric_label(task),
                "corpus_level_fn": metric_label(task),
                "batched_compute": False,
            }
        ],
        "solver": None,
        "scorer": None,
        "sample_fields": None,
        "sample_to_fewshot": None,
        "filter": None,
        "hf_revision": manifest["identity"]["corpora"][task.data.corpus],
        "hf_filter": None,
        "hf_avail_splits": ["test"],
        "evaluation_splits": ["test"],
        "few_shots_split": "test",
        "few_shots_select": None,
        "generation_size": task.sampling.max_new_tokens,
        "generation_grammar": None,
        "stop_sequence": list(task.sampling.stop),
        "num_samples": None,
        "original_num_docs": -1,
        "effective_num_docs": -1,
        "must_remove_duplicate_docs": False,
        "num_fewshots": 0,
        "version": task.version,
    }


def _summaries(details: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return lighteval's hashes of prompts, inputs and outputs, by task and over all, which identify a run."""
    counts = {"truncated": 0, "non_truncated": 0, "padded": 0, "non_padded": 0}
    by_task = {}
    for name, rows in details.items():
        nothing = [_hash(str([])) for _ in rows]
        by_task[f"{name}|0"] = {
            "hash_examples": _hash("".join(sorted(_hash(row["doc"]["query"]) for row in rows))),
            "hash_full_prompts": _hash(""),
            "hash_input_tokens": _hash("".join(nothing)),
            "hash_cont_tokens": _hash("".join(nothing)),
        }
    kinds = ("hash_examples", "hash_full_prompts", "hash_input_tokens", "hash_cont_tokens")
    together = {kind: _hash("".join(hashes[kind] for _, hashes in sorted(by_task.items()))) for kind in kinds}
    return {
        "summary_tasks": {name: {"hashes": hashes, **counts} for name, hashes in by_task.items()},
        "summary_general": {"hashes": together, **counts},
    }


def _hash(text: str) -> str:
    import xxhash

    return str(xxhash.xxh64(text.encode()).hexdigest())
