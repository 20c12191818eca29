"""Verbatim prompts of the papers' protocols, as data files that name their source."""

from __future__ import annotations

from importlib import resources

import yaml

from equivox.core.task import Prompt, WorkedExample
from equivox.core.variants import wordings_of


def load_prompts(name: str) -> dict[str, Prompt]:
    """Return the prompts of `tasks/prompts/<name>.yaml` by name."""
    document = yaml.safe_load(resources.files(__name__).joinpath(f"{name}.yaml").read_text("utf-8"))
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
    file = resources.files("equivox.tasks").joinpath("examples", f"{name}.yaml")
    return {
        key: tuple(WorkedExample.of(entry["text"], entry["values"]) for entry in entries)
        for key, entries in yaml.safe_load(file.read_text("utf-8"))["examples"].items()
    }


def load_wordings(name: str) -> dict[str, dict[str, str]]:
    """Return the interventions `wording=1`, … of `tasks/wordings/<name>.yaml`, by prompt name."""
    file = resources.files("equivox.tasks").joinpath("wordings", f"{name}.yaml")
    return {prompt: wordings_of(texts) for prompt, texts in yaml.safe_load(file.read_text("utf-8")).items()}
