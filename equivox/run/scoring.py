"""The score stage computes scores from the tables of samples. It opens no engine, no annotator and no response.

Multiple testing: each score has a q-value, with the tests of its run as one hierarchy. Other runs change no q.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from equivox.annotate import RULES
from equivox.core.annotation import Annotator
from equivox.core.errors import UsageError
from equivox.core.files import damaged, read_document, read_table, write_document, write_table, write_whole
from equivox.core.lazy import on_one_core, pa
from equivox.core.metric import Metric
from equivox.core.plain import split_by
from equivox.core.plugins import told_in_one_line
from equivox.core.progress import Event, Progress, no_progress
from equivox.core.samples import Row, Samples
from equivox.core.scores import DEFAULT_OPTIONS, Score, Scored, ScoringOptions, family_of, scoring_options
from equivox.core.segments import Segment, Status
from equivox.core.task import Task
from equivox.core.text import inert_record
from equivox.run.annotating import ask, count_answered, stored_follow_ups
from equivox.run.live import refuse_unfinished
from equivox.run.losses import loss_scores
from equivox.run.manifest import read_manifest, state_hashes
from equivox.run.response_checks import find_response_checks, list_cut_tasks
from equivox.run.store import file_name, samples_note, samples_path, scheme_digest, stored_annotator, stored_texts
from equivox.run.verdicts import add_outcomes


def open_samples(folder: Path, tasks: Sequence[Task], annotator: str) -> dict[str, Samples]:
    """Return the samples of each task as annotated by `annotator`; columns are read when they are needed.

    UsageError if `annotator` has not annotated the run, or if its annotations are stale because the annotation
    scheme changed or more responses came later.
    """
    identity = stored_annotator(folder, annotator)
    answered = count_answered(folder)
    again = f"give the run's command again, or `equivox annotate {folder} --annotator {annotator}`"
    found = {}
    for task in tasks:
        path = samples_path(folder, annotator, task.name)
        if not path.exists():
            raise UsageError(f"{folder}: {annotator} has not annotated all of {task.name}; {again}")
        described = samples_note(path)
        if described.get("scheme") != scheme_digest(task):
            raise UsageError(
                f"{folder}: the annotations of {task.name} by {annotator} are stale: this version annotates its "
                f"responses otherwise; annotate again: {again}"
            )
        if described.get("answered") != answered:
            raise UsageError(
                f"{folder}: the annotations of {task.name} by {annotator} are stale: there were "
                f"{described.get('answered')} responses then and there are {answered} now; {again}"
            )
        attributes = tuple(attribute.name for attribute in task.attributes)
        found[task.name] = Samples(path, annotator=identity, attributes=attributes)
    return found


def sample_rows(folder: Path, tasks: Sequence[Task], annotator: str) -> dict[str, list[Row]]:
    """Return the samples of each task as rows, for code that works on single responses."""
    return {name: list(samples.rows()) for name, samples in open_samples(folder, tasks, annotator).items()}


@on_one_core()
def score(
    folder: Path,
    tasks: Sequence[Task],
    annotator: str,
    options: ScoringOptions,
    *,
    others: Sequence[str] = (),
    progress: Progress = no_progress,
) -> list[Score]:
    """Compute, store and return all scores of the run in `folder`, from the annotations of `annotator`.

    `others` names further annotators whose annotations metrics can use too. Nothing is written before everything is
    computed. The manifest states the hashes of the run's files afterwards.
    """
    samples, merged = scoring_samples(folder, tasks, annotator, options, others=others)
    scores: list[Score] = []
    kept: dict[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {}
    progress(Event("score", 0, len(tasks)))
    for number, task in enumerate(tasks, start=1):
        scored = _scored([task], task.name, partial(task.metric.score, task, samples[task.name], options))
        endings = samples[task.name].endings()
        own = [*scored.scores, *loss_scores(task, samples[task.name], options)]
        scores += [replace(score, coverage=replace(score.coverage, **endings)) for score in own]  # type: ignore[arg-type]
        kept[task.name] = _tables(folder, scored, task.metric, task.name)
        progress(Event("score", number, len(tasks)))
    for family, members in families(tasks).items():
        metric = members[0].metric
        if metric.score_family is not None:
            asked = [(task, samples[task.name]) for task in members]
            scored = _scored(members, family, partial(metric.score_family, asked, options))
            scores += scored.scores
            kept[family] = _tables(folder, scored, metric, family)
    _refuse_unscored(tasks, scores)
    scores = with_q(list(map(_add_warnings, scores)))
    checks = find_response_checks(folder)
    cut = list_cut_tasks(checks)
    cut |= {task.family: cut[task.name] for task in tasks if task.name in cut}
    scores = add_outcomes(scores, tasks, samples, options, cut)
    document = {
        "annotator": stored_annotator(folder, annotator).as_dict(),
        "schemes": {task.name: scheme_digest(task) for task in tasks},
        "options": vars(options),
        "others": list(others),
        # Scores computed before a run was resumed have a smaller number here.
        "answered": count_answered(folder),
        "scores": [entry.as_dict() for entry in scores],
    }
    if merged or checks:
        kept[""] = {"open_values": merged, "response_checks": list(map(vars, checks))}
    _store_scores(scores_path(folder, annotator), document, kept)
    state_hashes(folder)
    return scores


def _scored(tasks: Sequence[Task], name: str, score: Callable[[], Scored]) -> Scored:
    """Return what the metric of `tasks` gives for `name`, which is a task or their family.

    A metric may be somebody's code. RunError for what goes wrong in it. UsageError for what is no score, or is one
    that could not be read again, or cannot be true: it would be read as a finding, or as one that shows no difference.
    """
    metric = f"the metric {tasks[0].metric.name}"
    with told_in_one_line(f"{metric}, on {name},"):
        scored = score()
    if not isinstance(scored, Scored):
        raise UsageError(f"{metric} returned {type(scored).__name__} for {name}; return `Scored([…])`")
    if not isinstance(scored.scores, Sequence) or not isinstance(scored.tables, Mapping):
        raise UsageError(f"{metric} returned {scored!r:.60} for {name}; return `Scored([…], {{…}})`")
    known = {name, *(task.name for task in tasks)}
    scores: dict[Hashable, Score] = {}
    for given in scored.scores:
        if not isinstance(given, Score):
            raise UsageError(f"{metric} gave {type(given).__name__} among the scores of {name}; give `Score`s")
        try:
            written = json.dumps(given.as_dict(), ensure_ascii=False).encode()
            one = Score.from_dict(json.loads(written))
        except (TypeError, ValueError) as error:  # RequestErrors and texts that no file can hold are ValueErrors
            raise UsageError(f"{metric} gave a score of {name} with a wrong field: {error}") from error
        if one.task not in known or one.condition != tasks[0].condition:
            raise UsageError(f"{metric} gave {name} a score of {one.task} ({one.condition}); give scores of {name}")
        if (unlike := _unlike_its_measure(one, tasks[0].metric)) is not None:
            raise UsageError(f"{metric}: {one.metric} of {one.attribute or one.task} {unlike}")
        if (told := one.impossible) is not None:
            raise UsageError(f"{metric}: {one.metric} of {one.attribute or one.task} {told}")
        of = one.task, one.attribute, one.metric, one.subset
        if of in scores:
            raise UsageError(f"{metric} gave {one.metric} of {one.attribute or one.task} twice; give it once")
        scores[of] = one
    return replace(scored, scores=list(scores.values()))


def _unlike_its_measure(score: Score, metric: Metric) -> str | None:
    """Return how a score is unlike what its metric declares, in words; None if it is as declared.

    Comparisons, the gate and boards go by the `Measure`, tables and figures by the score: both must mean one thing.
    """
    measure = metric.by_name.get(score.metric)
    if measure is None:
        stray = score.is_whole and score.role == "outcome"
        return (
            f"is none of its `measures`, {', '.join(metric.by_name)}; add a `Measure` of that name" if stray else None
        )
    if score.defined and measure.no_bias is not None and score.null_value != measure.no_bias:
        given = f"the `null_value` {score.null_value}, and its `Measure` the `no_bias` {measure.no_bias}"
        return f"has {given}; give both one number"
    return None


def _refuse_unscored(tasks: Sequence[Task], scores: Sequence[Score]) -> None:
    """Raise UsageError for a task without a score of its own or of its family, which would seem to be no finding."""
    whole = {score.task for score in scores if score.is_whole}
    for task in tasks:
        if not whole & {task.name, family_of(task.name)}:
            raise UsageError(
                f"the metric {task.metric.name} gave no score of {task.name} as a whole; return one with "
                "`attribute=None`, and with the reason in `undefined` where it cannot be known"
            )


def _tables(folder: Path, scored: Scored, metric: Metric, of: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the tables of a scorer, with the stored responses that it quotes; one that is not there is empty.

    RunError for a table that cannot be stored, UsageError for one whose name is not that of a file.
    """
    tables = dict(scored.tables)
    for name, rows in scored.tables.items():
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
            raise UsageError(f"the metric {metric.name} calls a table {name!r}; use letters, digits, _ and -")
        with told_in_one_line(f"the table {name} of the metric {metric.name}, on {of},"):
            tables[name] = list(rows)  # an iterator would be used up by the look at it
            if not all(isinstance(row, Mapping) for row in tables[name]):
                raise TypeError(
                    "its rows are no mappings of columns to values, as `to_dict('records')` of pandas gives"
                )
            if (column := scored.quoted.get(name)) is not None:
                texts = stored_texts(folder, sorted({row["key"] for row in tables[name]}))
                tables[name] = [{**row, column: texts.get(row["key"]) or ""} for row in tables[name]]
            if nested := [field.name for field in _arrow_table(tables[name]).schema if pa.types.is_nested(field.type)]:
                raise TypeError(f"the column {nested[0]} holds lists or mappings; use plain values")
    return tables


def _store_scores(
    path: Path, document: Mapping[str, Any], tables: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
) -> None:
    """Write a document of scores to `path`, and the tables behind them by task or family, in place of earlier ones."""
    written = set()
    for name, members in tables.items():
        for table, records in members.items():
            file = tables_folder(path) / file_name(name) / f"{table}.parquet"
            write_table(file, _arrow_table(records))
            write_csv(file.with_suffix(".csv"), records)
            written |= {file, *([file.with_suffix(".csv")] if records else [])}
    # Tables that only an earlier scoring wrote are removed, so that they are not taken for results of this one.
    for left in tables_folder(path).rglob("*.*"):
        if left.suffix in {".parquet", ".csv"} and left not in written:
            left.unlink()
    write_document(path, document)


def _add_warnings(score: Score) -> Score:
    """Return the score of a task with what its coverage warns about; any other score unchanged."""
    if not score.is_whole:
        return score
    warnings = score.coverage.list_warnings()
    if (uneven := score.coverage.uneven) is not None and score.defined:
        warnings.append(uneven)
    return replace(score, notes=(*score.notes, *warnings)) if warnings else score


def scoring_samples(
    folder: Path, tasks: Sequence[Task], annotator: str, options: ScoringOptions, *, others: Sequence[str] = ()
) -> tuple[dict[str, Samples], list[dict[str, Any]]]:
    """Return the samples of each task as they are scored, and which open values count as which."""
    from equivox.annotate.merging import merge_samples

    own, merged = merge_samples(open_samples(folder, tasks, annotator), tasks, options)
    further = {name: merge_samples(open_samples(folder, tasks, name), tasks, options)[0] for name in others}
    answers = stored_follow_ups(folder, annotator)
    return {
        name: replace(
            samples,
            others={other: tables[name] for other, tables in further.items()},
            follow_ups=answers,
        )
        for name, samples in own.items()
    }, merged


def families(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Group tasks by family and condition; the keys are `family` or `family@condition`."""
    return split_by(tasks, lambda task: family_of(task.name))


def read_records(folder: Path, task: str, table: str, annotator: str | None = None) -> list[dict[str, Any]] | None:
    """Return the rows of a table of `task` in the run in `folder`; None where it has none."""
    tables = tables_folder(scores_path(folder, annotator))
    try:
        return list(read_table(tables / file_name(task) / f"{table}.parquet").to_pylist())
    except FileNotFoundError:
        return None


def remove_scores(path: Path) -> None:
    """Remove stored scores and their tables, if they are there; `path` is one of `scores_path`."""
    shutil.rmtree(tables_folder(path), ignore_errors=True)
    path.unlink(missing_ok=True)


def tables_folder(scores: Path) -> Path:
    """Return the folder of the tables behind the scores in the file `scores`."""
    return scores.parent / scores.stem.replace("scores", "tables", 1)


def _arrow_table(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with the columns of all rows; pyarrow would take only those of the first row."""
    columns = dict.fromkeys(column for record in records for column in record)
    return pa.Table.from_pylist([{column: record.get(column) for column in columns} for record in records])


def write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of plain values as CSV, whole or not at all; without rows nothing is written."""
    from pyarrow import csv

    if records:
        table = _arrow_table([inert_record(dict(record)) for record in records])
        write_whole(path, lambda temporary: csv.write_csv(table, temporary))


def follow_up(
    folder: Path,
    tasks: Sequence[Task],
    annotator: Annotator,
    options: ScoringOptions,
    *,
    redo: Collection[Status] = (),
    progress: Progress = no_progress,
) -> None:
    """Ask `annotator` the tasks' questions about their findings that have no answer yet; each answer is stored.

    Answers with a status in `redo` are asked for again.

    The annotator `rules` is not asked, because rules cannot answer such questions.
    """
    asking = [(members, one) for members in families(tasks).values() if (one := members[0].metric.follow_up)]
    if not asking or annotator.identity.name == RULES:
        return
    samples, _ = scoring_samples(folder, tasks, annotator.identity.name, options)
    segments: list[Segment] = []
    for members, asked in asking:
        with told_in_one_line(f"the follow-up of the metric {members[0].metric.name}"):
            segments += asked.questions([(task, samples[task.name]) for task in members], options)
    ask(folder, segments, annotator, redo=redo, progress=progress)


def scores_path(folder: Path, annotator: str | None) -> Path:
    """Return the path of the scores: `scores.json` for the run's annotator or None, `scores-<name>.json` for others."""
    own = annotator is None or annotator == read_manifest(folder)["command"]["annotator"]
    return folder / ("scores.json" if own else f"scores-{annotator}.json")


def read_scores(folder: Path, annotator: str | None = None) -> list[Score]:
    """Return the latest scores of the run in `folder`, from its annotator or another one.

    UsageError if there are none; DamageError for entries that are no scores.
    """
    path = scores_path(folder, annotator)
    try:
        document = read_document(path)
    except FileNotFoundError:
        refuse_unfinished(folder)
        raise UsageError(f"{folder} has no {path.name}; compute it with `equivox score {folder}`") from None
    try:
        return [Score.from_dict(record) for record in document["scores"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, f"it does not hold scores: {error}") from None


def scored_with(folder: Path, annotator: str | None = None) -> ScoringOptions:
    """Return the options of the scores by `annotator`, or of the run's own if it has none; the defaults without scores.

    DamageError if the scores cannot be read, and UsageError for options that no run was scored with.
    """
    own = str(read_manifest(folder)["command"]["annotator"])
    for name in (annotator or own, own):
        if (path := scores_path(folder, name)).exists():
            return stored_options(read_document(path)["options"])
    return DEFAULT_OPTIONS


def stored_options(stored: Mapping[str, Any]) -> ScoringOptions:
    """Return the options in a document of scores; UsageError for those that no run was scored with."""
    return scoring_options(**{"merge": DEFAULT_OPTIONS.merge, **stored})


def with_q(scores: Sequence[Score]) -> list[Score]:
    """Return the scores of a run with `q`.

    The family is the run: its whole tasks, conditions and metrics are corrected for one another by Holm's method. The
    attributes in a task's mean, and each kind of breakdown of a task, stand below its score: their q is never below its
    q (`equivox.statistics.adjust_hierarchy`). An attribute that no mean contains, such as a refusal, stands beside the
    tasks. A score without a p-value keeps q NaN and counts nowhere.
    """
    from equivox.statistics import adjust_hierarchy

    named = {str(place): score for place, score in enumerate(scores)}
    q = adjust_hierarchy({name: score.p for name, score in named.items()}, _below(named))
    return [replace(score, q=q[name]) for name, score in named.items()]


def _below(named: dict[str, Score]) -> list[tuple[str, list[str]]]:
    """Return the families below the scores of tasks: the attributes of a mean, and each kind of breakdown."""
    wholes = {_task(score): name for name, score in named.items() if score.is_whole}
    families: dict[tuple[str, str], list[str]] = {}
    for name, score in named.items():
        first = wholes.get(_task(score))
        if first is None or score.is_whole:
            continue
        if score.attribute is None or score.subset or score.attribute in named[first].parts:
            families.setdefault((first, score.subset.partition("=")[0]), []).append(name)
    return [(first, family) for (first, _), family in families.items()]


def _task(score: Score) -> tuple[str, str, str]:
    return score.task, score.condition, score.metric
