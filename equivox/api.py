"""The Python interface: `measure`, `import_responses`, `open_run`, and their `Result`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from equivox.core.errors import UsageError, nearest
from equivox.core.fields import refuse_unless
from equivox.core.lazy import pandas
from equivox.core.progress import Progress, no_progress
from equivox.core.requests import Engine
from equivox.core.scores import Outcome, Score
from equivox.core.task import Task
from equivox.core.task_checks import tasks_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = Literal["scores", "responses"]
"""The tables of `Result.to_pandas`."""

_PROGRESS = "a function that takes an `Event`"


def list_tasks() -> list[str]:
    """Return the names of all built-in tasks."""
    from equivox.tasks.registry import builtin_tasks

    return list(builtin_tasks())


def load_task(name: str) -> Task:
    """Return one task by its name, such as `vibe_gender:story`.

    Raises UsageError, with the nearest names, if there is no such task or the name means several.

    >>> task = load_task("vibe_gender:story")
    >>> task.dimension, task.cluster, task.attributes[0].name
    ('gender', 'speaker', 'occupation')
    """
    from equivox.tasks.registry import resolve_tasks

    refuse_unless(isinstance(name, str), "name", name, "the name of a task, such as vibe_gender:story")
    found = resolve_tasks(name)
    if len(found) != 1:
        raise UsageError(f"{name!r} is {len(found)} tasks ({found[0].name}, …); `measure` takes them all by that name")
    return found[0]


@dataclass(frozen=True)
class Result:
    """A scored run; all its content is read from `folder`.

    `annotator` is the one whose annotations and scores these are, None: the run's own.
    """

    folder: Path
    scores: Sequence[Score] = field(repr=False)
    annotator: str | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that is needed to repeat the run."""
        from equivox.run.manifest import read_manifest

        return read_manifest(self.folder)

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the run, as declared when it was made."""
        from equivox.run.declarations import read_tasks

        return read_tasks(self.folder)

    @property
    def undefined(self) -> dict[str, str]:
        """The reasons for undefined scores of whole tasks, by task and metric; empty if all are defined."""
        return {
            f"{score.task} {score.metric}": str(score.undefined_reason)
            for score in self.scores
            if score.is_whole and score.undefined_reason is not None
        }

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each task: `difference`, `no_difference`, `too_few_data` or `no_result`.

        A task that is described and not tested is left out.
        """
        from equivox.core.outcomes import decide_tasks

        return decide_tasks(self.scores)

    def figure(self, name: str) -> Figure:
        """Return a figure of the run as `equivox report --figure` names it: `forest:FAMILY`, `shares:TASK:ATTRIBUTE`.

        UsageError, with the figures that the run has, for one that it does not have.
        """
        from equivox.report.figures import figure_of

        refuse_unless(isinstance(name, str), "name", name, "the name of a figure, such as forest:FAMILY")
        return figure_of([self.folder], name, self.annotator)

    def __str__(self) -> str:
        """Return a line per task: its name, its outcome and what is behind it."""
        from equivox.compare.runs import open_comparison
        from equivox.report.verdict import write_lines

        return write_lines(open_comparison([self.folder], annotator=self.annotator).runs[0])

    def _repr_html_(self) -> str:
        """Return the opening of the run and its scores, as a notebook shows them."""
        from equivox.report.notebook import run_html

        return run_html(self.folder, self.annotator)

    def to_pandas(self, table: Table = "scores") -> pandas.DataFrame:
        """Return a table of the run.

        Parameters
        ----------
        table
            `scores`: a row per score, of tasks, attributes and breakdowns; undefined numbers are NaN, the reason is in
            `undefined_reason`. `responses`: a row per planned request with its group, cluster and stratum, its `status`
            (parsed, refused, empty, unparsed, failed or missing), the text, and for each attribute a column with lists
            of the annotated values.

        Returns
        -------
        pandas.DataFrame
            The table, which always has rows.
        """
        if table == "scores":
            from equivox.core.scores import COLUMNS

            return pandas.DataFrame([score.as_row() for score in self.scores])[list(COLUMNS)]
        if table == "responses":
            return self._responses()
        raise UsageError(
            f"`table` is one of {', '.join(get_args(Table))}, got {table!r}{nearest(str(table), get_args(Table))}"
        )

    def _responses(self) -> pandas.DataFrame:
        from equivox.run.declarations import read_tasks
        from equivox.run.scoring import open_samples
        from equivox.run.store import stored_texts

        tables: list[pandas.DataFrame] = []
        texts = stored_texts(self.folder)
        annotator = self.annotator or str(self.manifest["command"]["annotator"])
        samples = open_samples(self.folder, read_tasks(self.folder), annotator)
        for task, own in samples.items():
            whole = _plain_names(own.columns)
            table = own.read(list(whole)).rename_columns(list(whole.values())).to_pandas()
            table.insert(0, "task", task)
            table["text"] = table.pop("key").map(texts)
            tables.append(table)
        return pandas.concat(tables, ignore_index=True)


def _plain_names(columns: Sequence[str]) -> dict[str, str]:
    """Return the names of columns of samples in a table for users, without those of single segments.

    An attribute that is called like another column keeps its whole name.

    >>> _plain_names(["key", "group", "values.hobby", "values.group", "values.a.b", "metadata.place"])
    {'key': 'key', 'group': 'group', 'values.hobby': 'hobby', 'values.group': 'values.group', 'metadata.place': 'place'}
    """
    named = {column: column for column in columns if "." not in column}
    taken = {*named, "task", "text"}
    for column in columns:
        kind, dot, name = column.partition(".")
        if dot and (kind == "metadata" or (kind == "values" and "." not in name)):
            named[column] = column if name in taken else name
            taken.add(name)
    return named


def measure(
    model: str | Engine,
    tasks: str | Task | Iterable[Task],
    *,
    output: str | Path,
    progress: Progress = no_progress,
    **settings: Any,
) -> Result:
    """Run or resume tasks on a model and return the result, as `equivox run` does on the command line.

    Parameters
    ----------
    model
        A name as on the command line (`simulated:biased`, `vllm:model_name=…`, a name or file of `configs/models`), or
        an engine such as `equivox.FunctionEngine`, which stays open.
    tasks
        Names, families or task files (YAML or Python), separated by commas; or one or several `Task` objects.
    output
        The folder of the run: a new or empty one, or one with the same run, which is resumed.
    progress
        Function that is called with an `Event`: the stage, the number done, the total, and what failed.
    **settings
        The settings of a run by the names of the options of `equivox run`: `data`, `limit`, `seed`, `annotator`,
        `compare`, `conditions`, `system`, `sampling`, `retry_failed`, `redo_judge`, `stop_after`, `workers`,
        `ray_address`, `trust_remote_code`, see `equivox.run.spec.RunSpec`; and `options`, the `ScoringOptions`.

    Raises
    ------
    UsageError
        The request cannot be done; nothing was written.
    RunError
        The run could not go on; everything finished before is in `output`.
    """
    from equivox.annotate import annotator_name
    from equivox.engines import an_engine
    from equivox.run.pipeline import execute
    from equivox.run.spec import RunSpec

    refuse_unless(callable(progress), "progress", progress, _PROGRESS)
    engine = None if isinstance(model, str) else an_engine(model, "`model`")
    named = model if isinstance(model, str) else f"{model.identity.engine}:{model.identity.model}"
    spec = RunSpec.typed(named, _chosen(tasks), output, **settings)
    if spec.workers.pooled and engine is not None:
        raise UsageError("`workers` open a model by its name, an engine is open already; name the model, or leave it")
    scores = execute(spec, engine=engine, progress=progress)
    return Result(spec.output, scores, annotator_name(spec.annotator))


def _chosen(tasks: str | Task | Iterable[Task]) -> list[Task]:
    """Return tasks as they may be given: by names, one, or several."""
    from equivox.tasks.registry import resolve_tasks

    if isinstance(tasks, str):
        return resolve_tasks(tasks)
    given = list(tasks) if isinstance(tasks, Iterable) else tasks
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        raise UsageError(f"`tasks` gives a list of names; give them as one text, {','.join(map(str, given))!r}")
    return tasks_in(given, "`tasks`")


def import_responses(
    responses: Any,
    tasks: str | Task | Iterable[Task],
    *,
    model: str,
    output: str | Path,
    columns: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
    **settings: Any,
) -> Result:
    """Make a run of responses from elsewhere and return its result, as `equivox import` does on the command line.

    Parameters
    ----------
    responses
        A row per response: a file (CSV, TSV, JSON, JSON lines, parquet, Excel), a data frame, an Arrow table, a split
        of a data set of `datasets`, a list of records or columns.
    tasks
        The tasks, as for `measure`; a table about several tasks names them in a column `task`, unless the samples
        identify the task.
    model
        The name of the model; in tables it is `imported:MODEL`.
    output
        The folder of the run.
    columns
        Our name of a column → the table's, such as `{"response": "narrative", "sample_id": "image"}`. A row is
        matched by `sample_id`, or else by all columns that the task and the table share. Several rows of a sample are
        its repeats.
    progress, **settings
        As for `measure`. Without `data` the rows describe their samples if they have all columns that the task needs;
        otherwise a corpus that needs no folder is opened. `seed` is that of the requests that were answered, which
        orders what a task presents in random order.

    Raises
    ------
    UsageError
        The table cannot be read, or a row fits no sample or several; nothing was written.

    Notes
    -----
    A request without a row, and a row without a text, is a failed response, which is counted in coverage. For
    responses from elsewhere it is not known whether media reached the model.
    """
    from equivox.annotate import annotator_name
    from equivox.run.importing import import_responses as imported
    from equivox.run.spec import RunSpec

    given = {} if columns is None else columns
    refuse_unless(callable(progress), "progress", progress, _PROGRESS)
    refuse_unless(
        isinstance(given, Mapping) and all(isinstance(name, str) for name in (*given, *given.values())),
        "columns", columns, 'our name of a column → the table\'s, such as {"response": "narrative"}',
    )  # fmt: skip
    spec = RunSpec.typed(model, _chosen(tasks), output, **settings)
    scores, _ = imported(responses, spec, columns=columns, progress=progress)
    return Result(spec.output, scores, annotator_name(spec.annotator))


def open_run(folder: str | Path, *, tasks: str = "") -> Result:
    """Return the scored run in `folder`; a warning says what is not as it was when the run was scored.

    `tasks` names the task files, separated by commas, whose code the run needs. UsageError if there is no run, and
    for a folder that holds what no run holds.
    """
    from equivox.run.opening import open_run as opened
    from equivox.run.scoring import read_scores
    from equivox.tasks.registry import resolve_tasks

    refuse_unless(isinstance(folder, str | Path), "folder", folder, "the folder of a run, a text or a path")
    refuse_unless(isinstance(tasks, str), "tasks", tasks, "a text that names task files, separated by commas")
    if tasks:
        resolve_tasks(tasks)
    if (told := opened(Path(folder))) is not None:
        warnings.warn(told, stacklevel=2)
    return Result(Path(folder), read_scores(Path(folder)))
