"""Tasks on a corpus of one's own: a folder of clips, a CSV that lists them, and a short YAML file.

name: my_voices              # the tasks are called my_voices_gender:story, …
table: clips.csv             # columns path, text, speaker and any demographic column
group: gender                # the column compared; several are crossed
folder: clips                # optional: where the paths start; the table's folder by default
columns: {text: transcript}  # optional: our name → the table's, where they differ
where: {split: test}         # optional: only rows with these values
cluster: speaker             # optional: the unit that carries the group
strata: text                 # optional: the columns held equal between groups
prompts: [story, advisory]   # optional: which prompts of VIBE; all five by default
card: Who recorded this, under which licence, and what it cannot say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from equivox.configs import read_config_file
from equivox.errors import RequestError
from equivox.task import DataSource, Task


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class TaskFile(BaseModel):
    """The fields of a task file; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    table: Path
    group: Names = Field(min_length=1)
    folder: Path | None = None
    columns: dict[str, str] = {}
    where: dict[str, str | list[str]] = {}
    cluster: str = "speaker"
    strata: Names = ()
    prompts: Names = ()
    card: str = ""


def load_task_file(path: Path) -> list[Task]:
    """Return the tasks that the YAML file at `path` declares.

    Raises RequestError, naming the file and the field, for anything missing, unknown or malformed.
    """
    return _tasks(read_config_file(TaskFile, str(path), "tasks"), path)


def _tasks(declared: TaskFile, path: Path) -> list[Task]:
    from equivox.tasks.vibe import PROMPTS, vibe_task

    for prompt in declared.prompts:
        if prompt not in PROMPTS:
            raise RequestError(f"task file {path}: unknown prompt {prompt!r}; known: {', '.join(PROMPTS)}")
    data = DataSource(
        corpus=declared.name,
        table=path.parent / declared.table,
        folder=None if declared.folder is None else path.parent / declared.folder,
        columns=declared.columns,
        where=declared.where,
    )
    return [
        vibe_task(
            f"{declared.name}_{'_'.join(declared.group)}",
            prompt,
            data=data,
            group=declared.group,
            strata=declared.strata,
            cluster=declared.cluster,
            card=declared.card or f"Corpus declared in {path.name}, with the prompts of VIBE (arXiv 2604.17248).",
        )
        for prompt in declared.prompts or PROMPTS
    ]
