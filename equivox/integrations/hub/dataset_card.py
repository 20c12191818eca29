"""What is said of a published corpus: its card, the file that declares its tasks as a benchmark, and `croissant.json`.

The last has the responsible-AI fields of the format Croissant; files and columns the Hub describes itself. A field that
neither the corpus's facts nor its tasks nor its rows state is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from equivox.core.lazy import datasets
from equivox.core.task import Task
from equivox.dataset_builders.base import Column, CorpusFacts
from equivox.dataset_builders.parquet import about_corpus, size_category

if TYPE_CHECKING:
    from equivox.integrations.hub.dataset_folder import RowSet

FRAMEWORK = "inspect-ai"
"""The value of `evaluation_framework`: the Hub accepts listed names alone, and equivox is not among them. The list is
`packages/tasks/src/eval.ts` of huggingface.js."""

OPEN_LICENCES = frozenset(
    {"apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-3.0", "cc-by-sa-4.0", "cc-by-sa-3.0", "odbl", "odc-by"}
)
"""Hub identifiers of licences that let anybody pass the data on; all other corpora get a gate."""

_CATEGORIES = {"audio": "audio-text-to-text", "image": "image-text-to-text", None: "text-generation"}


def config_name(task: str) -> str:
    """Return the name of a task without `:`, for configurations and file names.

    >>> config_name("vibe_gender:story")
    'vibe_gender-story'
    """
    return task.replace(":", "-").replace("@", "-at-")


def submitted_metrics(task: Task) -> dict[str, str]:
    """Return the id of a task's submitted scalar for each metric; a single one has the task's name.

    >>> from equivox.tasks.registry import builtin_tasks
    >>> submitted_metrics(builtin_tasks()["vibe_gender:story"])
    {'nTVD': 'vibe_gender-story'}
    """
    name = config_name(task.name)
    metrics = [measure.name for measure in task.metric.measures if measure.published is not None]
    return {metric: name if len(metrics) == 1 else f"{name}-{metric}" for metric in metrics}


def is_restricted(facts: CorpusFacts) -> bool:
    """Return whether the corpus's licence excludes some users or uses, or is not stated."""
    return facts.licence_id not in OPEN_LICENCES


def dataset_card(
    repo: str,
    facts: CorpusFacts,
    sets: Sequence[RowSet],
    features: Mapping[str, datasets.Features],
    sizes: Mapping[str, int],
    record: Mapping[str, Any],
) -> str:
    """Return the README: a YAML header for the Hub and `datasets`, and a description for people."""
    kind = next((medium.kind for rows in sets for task in rows.tasks for medium in task.media), None)
    stored = {
        rows.name: sum(f["bytes"] for file, f in record["files"].items() if file.startswith(f"data/{rows.name}/"))
        for rows in sets
    }
    configs, infos = [], []
    for rows in sets:
        for task in rows.tasks:
            named = {"config_name": config_name(task.name)}
            configs.append({**named, "data_files": [{"split": "test", "path": f"data/{rows.name}/test-*.parquet"}]})
            infos.append(
                {
                    **named,
                    "features": features[rows.name]._to_yaml_list(),
                    "splits": [
                        {"name": "test", "num_bytes": sizes[rows.name], "num_examples": len(rows.samples)},
                    ],
                    "download_size": stored[rows.name],
                    "dataset_size": sizes[rows.name],
                }
            )
    head: dict[str, Any] = {
        "pretty_name": facts.title,
        "license": facts.licence_id,
        **({"language": [facts.language]} if facts.language else {}),
        "task_categories": [_CATEGORIES[kind]],
        "size_categories": [size_category(max(len(rows.samples) for rows in sets))],
        "tags": [*([kind] if kind else []), "bias", "fairness", "benchmark", "equivox"],
        "configs": configs,
        "dataset_info": infos,
    }
    if is_restricted(facts):
        head |= gate(facts)
    header = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{header}---\n\n{_body(repo, facts, sets, record)}"


def gate(facts: CorpusFacts) -> dict[str, Any]:
    """Return the terms that users must accept before they see a restricted corpus."""
    return {
        "extra_gated_heading": f"{facts.title}: terms of use",
        "extra_gated_prompt": (
            f"Licence: {facts.licence}. You agree to keep to it, to use the data for research on bias in models, and "
            "not to identify the people in it." + (f" The terms are at {facts.homepage}." if facts.homepage else "")
        ),
        "extra_gated_fields": {
            "Name and institution": "text",
            "What the data are for": "text",
            "I agree to the terms above": "checkbox",
        },
    }


def _body(repo: str, facts: CorpusFacts, sets: Sequence[RowSet], record: Mapping[str, Any]) -> str:
    about = [
        *about_corpus(facts),
        *(f"**Fingerprint of {name}:** `{found}`" for name, found in record["corpora"].items()),
        f"**Content hash of the files:** `{record['content_hash']}` (`equivox.json` has one per file)",
    ]
    tasks = [
        f"| `{config_name(task.name)}` | {task.dimension or 'none'} | {task.cluster} | {len(rows.samples):,} | "
        f"{', '.join(submitted_metrics(task))} |"
        for rows in sets
        for task in rows.tasks
    ]
    prompts = [
        f"### {task.name}\n\n{task.prompt.source}, version {task.prompt.version}:\n\n{_quoted(task.prompt.text)}"
        for rows in sets
        for task in rows.tasks
    ]
    first = config_name(sets[0].tasks[0].name)
    loading = f'from datasets import load_dataset\n\nrows = load_dataset("{repo}", "{first}", split="test")'
    columns = [f"| `{column.name}` | {column.meaning} ({column.role}) |" for column in facts.columns]
    sections = [
        f"# {facts.title}\n\nWhat does a model do differently when only the person changes? The samples of "
        f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} of equivox, a configuration each. Tasks that use the "
        "same samples share their files.",
        "\n".join(f"- {line}" for line in about),
        f"```python\n{loading}\n```",
        "## Tasks\n\n| configuration | compares | unit that carries the group | rows | scores |\n"
        "|---|---|---|---:|---|\n" + "\n".join(tasks),
        "## What is asked\n\n" + "\n\n".join(prompts),
        *(["## Columns\n\n| column | meaning |\n|---|---|\n" + "\n".join(columns)] if columns else []),
        "## Differences from what is published\n\n"
        + ("\n".join(f"- {note}" for note in record["notes"][:50]) or "None."),
        "## What it cannot say\n\n" + ("\n".join(f"- {line}" for line in facts.cannot_say) or "Nothing is stated."),
    ]
    return "\n\n".join(sections) + "\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def eval_file(title: str, tasks: Sequence[Task]) -> str:
    """Return `eval.yaml`: the benchmark's tasks, an entry for every scalar that results may be submitted for."""
    document = {
        "name": f"equivox: {title}",
        "description": "What a model does differently when only the person changes. Higher is better. Evaluated by "
        "equivox; inspect-ai stands for it, because the Hub does not list equivox.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {"id": task_id, "config": config_name(task.name), "split": "test"}
            for task in tasks
            for task_id in submitted_metrics(task).values()
        ],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


CROISSANT = "croissant.json"
CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")
CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def croissant(repo: str, facts: CorpusFacts, sets: Sequence[RowSet], record: Mapping[str, Any]) -> str:
    """Return `croissant.json` of a corpus: what it is, and the fields of the responsible-AI extension."""
    sources = [text for text in (facts.citation, facts.paper, facts.homepage) if text]
    told = {
        "citeAs": facts.citation or facts.paper,
        "sameAs": facts.homepage,
        "rai:dataCollection": f"Collected by the authors of the corpus, not by equivox. See {'; '.join(sources)}."
        if sources
        else "Not stated.",
        "rai:dataCollectionRawData": facts.homepage,
        "rai:dataAnnotationProtocol": [_told(column) for column in facts.columns],
        "rai:dataPreprocessingProtocol": list(record["notes"][:50]),
        "rai:dataUseCases": [f"{task.name}: compares {task.dimension}" for rows in sets for task in rows.tasks],
        "rai:dataBiases": _balance(facts, sets),
        "rai:personalSensitiveInformation": [_told(column) for column in facts.columns if column.role == "demographic"],
        "rai:dataLimitations": list(facts.cannot_say),
    }
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": repo.rpartition("/")[2],
        "description": f"{facts.title}: the samples of {sum(len(rows.tasks) for rows in sets)} tasks of equivox, which "
        "measure what a model does differently when only the person changes.",
        "url": f"https://huggingface.co/datasets/{repo}",
        "license": facts.licence_id if facts.licence_id != "unknown" else facts.licence,
        "version": f"{facts.version}.0.0",
        **{name: value for name, value in told.items() if value},
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _told(column: Column) -> str:
    return f"{column.name}: {column.meaning}"


def _balance(facts: CorpusFacts, sets: Sequence[RowSet]) -> list[str]:
    """Return the number of rows with each value of each demographic column with at most 20 values."""
    samples = {sample.sample_id: sample for rows in sets for sample in rows.samples}.values()
    lines = []
    for name in facts.demographics:
        counts = Counter(
            "not known" if (value := sample.columns.get(name)) in (None, "") else str(value) for sample in samples
        )
        if 0 < len(counts) <= 20:
            told = ", ".join(f"{value} {n:,}" for value, n in sorted(counts.items()))
            lines.append(f"Rows by {name}: {told}.")
    return lines
