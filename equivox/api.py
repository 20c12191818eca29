"""equivox in a few lines of Python: `measure`, `import_responses`, `open_run`, and the `Result` they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    def tasks(self) -> list[Task]:
        """The tasks of the run, as they were when it was made."""
        from equivox.run.pipeline import run_tasks

        return run_tasks(self.folder)

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
            return self._responses()
        raise RequestError(
            f"`table` is one of {', '.join(get_args(Table))}, got {table!r}{nearest(table, get_args(Table))}"
        )

    def _responses(self) -> pandas.DataFrame:
        import pandas

        from equivox.run.annotating import stored_texts
        from equivox.run.pipeline import run_tasks
        from equivox.run.scoring import open_samples

        tables = []
        texts = stored_texts(self.folder)
        samples = open_samples(self.folder, run_tasks(self.folder), str(self.manifest["command"]["annotator"]))
        for task, own in samples.items():
            whole = {name: _plain(name) for name in own.columns if _plain(name)}
            table = own.read(list(whole)).rename_columns(list(whole.values())).to_pandas()
            table.insert(0, "task", task)
            table["text"] = table.pop("key").map(texts)
            tables.append(table)
        return pandas.concat(tables, ignore_index=True)


def _plain(column: str) -> str:
    """Return the name of a column of samples in a table for people; empty for those of single segments."""
    kind, dot, name = column.partition(".")
    if not dot:
        return column
    return name if kind == "metadata" or (kind == "values" and "." not in name) else ""


def measure(
    model: str | Engine,
    tasks: str | Task | Iterable[Task],
    *,
    output: str | Path,
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    annotator: str = "rules",
    conditions: str = "declared",
    group: str | None = None,
    sampling: str = "as-declared",
    options: ScoringOptions | None = None,
    retry_failed: bool = False,
    stop_after: int = 20,
    progress: Progress = no_progress,
) -> Result:
    """Run or resume tasks on a model and return the result; the same as `equivox run` on the command line.

    Parameters
    ----------
    model
        As on the command line (`simulated:biased`, `vllm:model_name=…`, a name or file of `configs/models`), or an
        engine, such as `equivox.FunctionEngine`, which stays open.
    tasks
        Names, families or task files (YAML or Python), separated by commas; or a `Task`, or several.
    output
        Where the run goes: a new or empty folder, or one with the same run, which is resumed.
    data
        `sample`, or the folder that `equivox data build` wrote into.
    limit, seed, annotator, conditions, group, sampling, retry_failed, stop_after
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
    from equivox.core.variants import parse_conditions, parse_group
    from equivox.run.pipeline import RunSpec, execute
    from equivox.tasks.registry import resolve_tasks

    chosen = resolve_tasks(tasks) if isinstance(tasks, str) else [tasks] if isinstance(tasks, Task) else list(tasks)
    spec = RunSpec(
        model=model if isinstance(model, str) else f"{model.identity.engine}:{model.identity.model}",
        tasks=chosen,
        output=Path(output),
        data=None if data is None else str(data),
        limit=limit,
        seed=seed,
        group=None if group is None else parse_group(group),
        conditions=parse_conditions(conditions),
        sampling=sampling,
        annotator=annotator,
        options=options or ScoringOptions(),
        retry_failed=retry_failed,
        stop_after=stop_after,
    )
    scores = execute(spec, engine=None if isinstance(model, str) else model, progress=progress)
    return Result(spec.output, scores)


def import_responses(
    responses: Any,
    tasks: str | Task | Iterable[Task],
    *,
    model: str,
    output: str | Path,
    columns: Mapping[str, str] | None = None,
    match: Sequence[str] = (),
    data: str | Path | None = None,
    seed: int = 0,
    annotator: str = "rules",
    conditions: str = "declared",
    group: str | None = None,
    options: ScoringOptions | None = None,
    progress: Progress = no_progress,
) -> Result:
    """Return the result of responses that were made elsewhere; the same as `equivox import` on the command line.

    Parameters
    ----------
    responses
        A row per response: a file (CSV, TSV, JSON, JSON lines, parquet), a data frame, an Arrow table, a list of
        records or columns.
    tasks
        What was asked, as for `measure`; a table about several tasks says which in a column `task`, unless the samples
        tell.
    model
        What the model is called; in tables it is `imported:MODEL`.
    output
        Where the run goes.
    columns
        Our name of a column → the table's, such as `{"response": "narrative", "sample_id": "image"}`.
    match
        The columns that tell which sample a row is about; `sample_id` by default, or else the columns of the task that
        the table has. Several rows of one sample are its repeats.
    data
        The corpus, as for `measure`. None: the rows describe their samples, where they have all columns that the task
        needs; a corpus that needs no folder is opened otherwise.
    seed
        The seed of the requests that were answered, which orders what a task presents in random order.
    annotator, conditions, group, options, progress
        As for `measure`.

    Raises
    ------
    RequestError
        The table cannot be read, or a row is about no sample or about several; nothing was written.

    Notes
    -----
    A request without a row, and a row without a text, is a failed response: it is counted in coverage. Whether media
    reached the model cannot be known of responses made elsewhere.
    """
    from equivox.core.variants import parse_conditions, parse_group
    from equivox.run.importing import import_responses as imported
    from equivox.run.pipeline import RunSpec
    from equivox.tasks.registry import resolve_tasks

    chosen = resolve_tasks(tasks) if isinstance(tasks, str) else [tasks] if isinstance(tasks, Task) else list(tasks)
    spec = RunSpec(
        model=model,
        tasks=chosen,
        output=Path(output),
        data=None if data is None else str(data),
        seed=seed,
        group=None if group is None else parse_group(group),
        conditions=parse_conditions(conditions),
        annotator=annotator,
        options=options or ScoringOptions(),
    )
    return Result(spec.output, imported(responses, spec, columns=columns, match=match, progress=progress).scores)


def open_run(folder: str | Path) -> Result:
    """Return a scored run; RequestError where the folder holds none."""
    from equivox.run.manifest import read_manifest
    from equivox.run.scoring import read_scores

    read_manifest(Path(folder))
    return Result(Path(folder), read_scores(Path(folder)))
