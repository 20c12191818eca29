"""Tasks of GENRES on custom elements, or with other tools, declared by a short YAML file.

benchmark: genres
name: my_pairs                   # the tasks are called my_pairs:cs, …
elements: pairs                  # optional: a folder with elements.yaml and custom images; else `--data`
relationships: [cs, mentoring]   # the four of the paper by default; needed with `elements`
single: false                    # optional: one character at a time, without an image
tools:                           # optional; `stand-in` for any of them is a labelled makeshift
  parser: en_core_web_sm         # a spaCy model or the folder of one
  sentiment: distilbert/distilbert-base-uncased-finetuned-sst-2-english
  evaluator: annotator           # the run's annotator
  emotions: nrc
  traits: sadcat
  nrc: lexica/NRC-Emotion-Lexicon-Wordlevel-v0.92.txt     # where word lists lie, from where the command is given
  sadcat: lexica/Full Dictionaries.csv
  evaluations: 4                 # annotations of each segment
system: [fair.txt]               # optional: files with a system prompt each, or {fair: its text}: conditions
card: Whose elements these are, and what they cannot say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from equivox.configs import read_config_file
from equivox.core.errors import UsageError, nearest
from equivox.core.task import Task
from equivox.core.variants import System, read_system_prompts, with_system_prompts
from equivox.dataset_builders.genres_protocol import ELEMENTS, RELATIONSHIPS
from equivox.metrics.genres.annotation.tools import Tools
from equivox.tasks.genres import TASKS, genres_task


class _GenresFile(BaseModel):
    """The fields of the file; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: Literal["genres"]
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    elements: Path | None = None
    relationships: tuple[str, ...] = ()
    single: bool = False
    tools: Tools = Tools()
    system: System = ()
    card: str = ""


def load_genres_file(path: Path) -> list[Task]:
    """Return the tasks in the file at `path`; UsageError, naming the field, for anything malformed."""
    declared = read_config_file(_GenresFile, str(path), "tasks")
    if any(task.family == declared.name for task in TASKS):
        raise UsageError(f"task file {path}: `name` {declared.name!r} is that of built-in tasks; choose another")
    if declared.elements is not None and not declared.relationships:
        raise UsageError(
            f"task file {path}: `relationships` is missing, which `elements` needs; name those of your elements"
        )
    if declared.elements is None:
        for relationship in declared.relationships:
            if relationship not in RELATIONSHIPS:
                raise UsageError(
                    f"task file {path}: unknown relationship {relationship!r}{nearest(relationship, RELATIONSHIPS)}; "
                    f"known: {', '.join(RELATIONSHIPS)}; others need `elements`"
                )
    table = None if declared.elements is None else path.parent / declared.elements / ELEMENTS
    system = read_system_prompts(declared.system, path.parent)
    return [
        with_system_prompts(
            genres_task(
                declared.name,
                relationship,
                tools=declared.tools,
                single=declared.single,
                table=table,
                card=declared.card or f"GENRES as declared in {path.name}.",
            ),
            system,
        )
        for relationship in declared.relationships or RELATIONSHIPS
    ]
