"""Verbatim prompts of the papers' protocols, as data files that name their source."""

from __future__ import annotations

from typing import Any

from equivox.core.task import Attribute, Prompt, WorkedExample
from equivox.core.variants import wordings_of
from equivox.core.yaml_files import packaged_yaml


def load_prompts(name: str) -> dict[str, Prompt]:
    """Return the prompts of `tasks/prompts/<name>.yaml` by name."""
    document = packaged_yaml(f"tasks/prompts/{name}.yaml")
    return {
        key: Prompt(
            name=f"{name}/{key}",
            version=entry["version"],
            text=entry["text"],
            source=f"{document['source']}, {entry['section']}",
        )
        for key, entry in document["prompts"].items()
    }


def load_examples(name: str) -> dict[str, tuple[WorkedExample, ...]]:
    """Return the worked examples for annotators in `tasks/examples/<name>.yaml`, by prompt name."""
    return {
        key: tuple(WorkedExample.of(entry["text"], entry["values"]) for entry in entries)
        for key, entries in packaged_yaml(f"tasks/examples/{name}.yaml")["examples"].items()
    }


def load_attributes(name: str) -> dict[str, tuple[Attribute, ...]]:
    """Return what is annotated in the answers, as `tasks/attributes/<name>.yaml` says, by prompt name."""

    def fields(entry: dict[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}

    document = packaged_yaml(f"tasks/attributes/{name}.yaml")
    return {prompt: tuple(Attribute(**fields(entry)) for entry in entries) for prompt, entries in document.items()}


def load_wordings(name: str) -> dict[str, dict[str, str]]:
    """Return the interventions `wording=1`, … of `tasks/wordings/<name>.yaml`, by prompt name."""
    document = packaged_yaml(f"tasks/wordings/{name}.yaml")
    return {prompt: wordings_of(texts) for prompt, texts in document.items()}
