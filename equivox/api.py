"""equivox in a few lines of Python: `load_task`, `list_tasks`, `measure`, `open_run`, and the `Result` they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from equivox.core.errors import RequestError, nearest
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.scores import Score, ScoringOptions
from equivox.core.task import Task

if TYPE_CHECKING:
    import pandas

Table = Literal["scores", "responses"]
"""What `Result.to_pandas` can give."""


def list_tasks() -> list[str]:
    """Return the names of all built-in tasks."""
    from equivox.tasks.registry import builtin_tasks

    return list(builtin_tasks())


def load_task(name: str) -> Task:
    """Return one task by its name, such as `vibe_gender:story`.

    Raises RequestError, with the nearest names, where there is none or where the name is that of several.

    >>> task = load_task("vibe_gender:story")
    >>> task.dimension, task.cluster, task.attributes[0].name
    ('gender', 'speaker', 'occupation')
    """
    from equivox.tasks.registry import resolve_tasks

    found = resolve_tasks(name)
    if len(found) != 1:
        raise RequestError(
            f"{name!r} is {len(found)} tasks ({found[0].name}, …); `measure` takes them all by that name"
        )
    return found[0]


@dataclass(frozen=True)
class Result:
    """A run and what it scored; everything it says lies in `folder`."""

    folder: Path
    scores: Sequence[Score] = field(repr=False)

    @property
    def manifest(self) -> dict[str, Any]:
        """All that is needed to make the run again."""
        from equivox.run.manifest import read_manifest

        return read_manifest(self.folder)

    @property
    def undefined(self) -> dict[str, str]:
        """Why the scores of whole tasks that are no number are none: task and metric → the reason; empty is good."""
        return {
            f"{score.task} {score.name}": score.undefined
            for score in self.scores
            if score.is_whole and score.undefined is not None
        }

    def to_pandas(self, table: Table = "scores") -> pandas.DataFrame:
        """Return a table of the run.

        Parameters
        ----------
        table
            `scores`: a row per score, of tasks, attributes and breakdowns; undefined numbers are NaN, the reason is in
            `undefined`. `responses`: a row per planned request with its group, cluster and stratum, what became of it
            (`status`: parsed, refused, empty, unparsed, failed or missing), the text, and a column of lists per
            attribute with what was read.

        Returns
        -------
        pandas.DataFrame
            Never empty: a run has requests and scores.
        """
        import pandas

        if table == "scores":
            return pandas.DataFrame([score.as_row() for score in self.scores])
        if table == "responses":
            return pandas.DataFrame(self._response_rows())
        raise RequestError(
            f"`table` is one of {', '.join(get_args(Table))}, got {table!r}{nearest(table, get_args(Table))}"
        )

    def _response_rows(self) -> list[dict[str, Any]]:
        from equivox.run.pipeline import run_tasks
        from equivox.run.scoring import scoring_rows

        tasks = run_tasks(self.folder)
        annotator = str(self.manifest["command"]["annotator"])
        return [
            {
                "task": task,
                "item_id": row.item_id,
                "repeat": row.repeat,
                "group": row.group,
                "cluster": row.cluster,
                "stratum": row.stratum,
                **row.facts,
                "status": row.status,
                "text": row.text,
                **{name: list(values) for name, values in row.values.items()},
            }
            for task, rows in scoring_rows(self.folder, tasks, annotator).items()
            for row in rows
        ]


def measure(
    model: str | Engine,
    tasks: str | Task | Iterable[Task],
    *,
    output: str | Path,
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    annotator: str = "rules",
    arms: str = "declared",
    group: str | None = None,
    sampling: str = "as-declared",
    options: ScoringOptions | None = None,
    retry_failed: bool = False,
    progress: Progress = no_progress,
) -> Result:
    """Run or resume tasks on a model and return the result; the same as `equivox run` on the command line.

    Parameters
    ----------
    model
        As on the command line (`reference:biased`, `vllm:model_name=…`, a name or file of `configs/models`), or an
        engine of one's own, such as `equivox.FunctionEngine`, which stays open.
    tasks
        Names, families or task files, separated by commas; or tasks from `load_task`.
    output
        Where the run goes: a new or empty folder, or one with the same run, which is resumed.
    data
        `sample`, or the folder that `equivox data build` wrote into.
    limit, seed, annotator, arms, group, sampling, retry_failed
        As the options of `equivox run`.
    options
        How scores are computed.
    progress
        Called with stage, done and total.

    Raises
    ------
    RequestError
        What was asked for cannot be done; nothing was written.
    RunError
        The run could not go on; what was done is in `output`.
    """
    from equivox.core.variants import parse_arms, parse_group
    from equivox.run.pipeline import RunSpec, execute

    spec = RunSpec(
        model=model if isinstance(model, str) else f"{model.identity.engine}:{model.identity.model}",
        tasks=tasks if isinstance(tasks, str) else _names([tasks] if isinstance(tasks, Task) else list(tasks)),
        output=Path(output),
        data=None if data is None else str(data),
        limit=limit,
        seed=seed,
        group=None if group is None else parse_group(group),
        arms=parse_arms(arms),
        sampling=sampling,
        annotator=annotator,
        options=options or ScoringOptions(),
        retry_failed=retry_failed,
    )
    scores = execute(spec, engine=None if isinstance(model, str) else model, progress=progress)
    return Result(spec.output, scores)


def open_run(folder: str | Path) -> Result:
    """Return a scored run; RequestError where the folder holds none."""
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    read_manifest(Path(folder))
    return Result(Path(folder), read_scores(Path(folder)))


def _names(tasks: Sequence[Task]) -> str:
    """Return the names of tasks as a selection, once it is sure that the names mean these tasks."""
    from equivox.tasks.registry import resolve_tasks

    for task in tasks:
        if resolve_tasks(task.name) != [task]:
            raise RequestError(
                f"{task.name} was changed after it was loaded: a run must be able to find its tasks again; "
                "write what differs into a task file and give its path"
            )
    return ",".join(task.name for task in tasks)
