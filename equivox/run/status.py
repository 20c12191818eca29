"""Progress of a run: for each task, the numbers of requests that were answered and annotated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equivox.core.errors import RequestError
from equivox.core.samples import TRUNCATED, WITHHELD
from equivox.core.task import Task
from equivox.run.plan import read_plan
from equivox.run.scoring import open_samples
from equivox.run.store import Store, response_schema
from equivox.run.stored import annotators_of


@dataclass(frozen=True, kw_only=True)
class RequestCounts:
    """The numbers of requests of one task that were made, answered, failed and are missing.

    `truncated` counts the answers that the token limit cut off, `withheld` those that the provider withheld.
    `annotated` counts the responses that each annotator could tell something of; an annotator whose annotations are
    stale or not complete is not in it.
    """

    task: str
    requested: int
    answered: int
    failed: int
    missing: int
    truncated: int
    withheld: int
    annotated: Mapping[str, int]


def count_requests(folder: Path, tasks: Sequence[Task]) -> list[RequestCounts]:
    """Return the counts of each of `tasks` of the run in `folder`."""
    import numpy as np
    import pyarrow.compute as pc

    plan = read_plan(folder).select(["task", "key"])
    responses = Store(folder / "responses", response_schema()).table(("key", "error", "finish_reason")).combine_chunks()
    found = []
    for task in tasks:
        keys = plan.filter(pc.equal(plan["task"], task.name))["key"]
        place = pc.index_in(keys, value_set=responses["key"].combine_chunks())
        errors = responses["error"].take(place)
        ended = pc.value_counts(responses["finish_reason"].take(place).drop_null()).to_pylist()
        endings = {entry["values"]: entry["counts"] for entry in ended}
        missing, failed = place.null_count, len(errors) - errors.null_count
        annotated = {}
        for name in annotators_of(folder):
            try:
                samples = open_samples(folder, [task], name)[task.name]
            except RequestError:
                continue
            annotated[name] = int(np.sum(samples.has_status("parsed", "refused", "empty")))
        found.append(
            RequestCounts(
                task=task.name,
                requested=len(keys),
                answered=len(keys) - missing - failed,
                failed=failed,
                missing=missing,
                truncated=endings.get(TRUNCATED, 0),
                withheld=endings.get(WITHHELD, 0),
                annotated=annotated,
            )
        )
    return found
