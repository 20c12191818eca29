"""The requests of a stored run, made again from its corpora: a run stores no prompts and no media."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equivox.core.errors import RequestError
from equivox.core.task import Task
from equivox.dataset_builders.corpus import table_in
from equivox.engines import EngineIdentity, Request
from equivox.run.opening import data_of
from equivox.run.pipeline import open_corpora
from equivox.run.plan import make_plan, read_plan


def requests_of(
    folder: Path, tasks: Sequence[Task], manifest: Mapping[str, Any], data: str | None
) -> dict[str, list[tuple[str, Request]]]:
    """Return the run's requests by task, each with its group.

    `manifest` is the stored one of the run in `folder`; `data` says where the corpora are now (None: where the run
    found them). RequestError if they are not there or are not those of the run.
    """
    identity = manifest["identity"]
    tasks = [dataclasses.replace(task, data=table_in(task.data, data)) for task in tasks]
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
