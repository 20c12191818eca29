"""A run's scores for the Hub's leaderboards: evaluation results for a model's repository.

One scalar per task, higher is better, with the evidence in its notes. A run that could mislead (undefined scores, low
coverage, data other than the published) is refused unless the user marks it so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from equivox.annotate.rules import FOR_SIMULATED, is_exact, misread_by_rules
from equivox.core.errors import UsageError, nearest
from equivox.core.files import write_text
from equivox.core.redact import redacted_text
from equivox.core.scores import Score, left_out_of, unusual_options
from equivox.core.task import CROSSED, Task
from equivox.core.variants import AS_DECLARED
from equivox.dataset_builders.corpus import SAMPLE
from equivox.engines import model_label
from equivox.integrations.hub.dataset_card import eval_file, submitted_metrics
from equivox.integrations.hub.dataset_folder import RECORD, folder_being_written, scalar, source_corpus
from equivox.integrations.hub.remote import check_repo
from equivox.integrations.hub.run_folder import refuse_unfinished
from equivox.labels.result import Audit, CorrectedScore, list_audits
from equivox.report.failures import lost_in
from equivox.report.notes import write_note
from equivox.report.numbers import p_value, score_interval, score_value
from equivox.run.declarations import read_tasks
from equivox.run.design import moved_tasks
from equivox.run.manifest import public_manifest, read_manifest
from equivox.run.scoring import read_scores, scored_with
from equivox.tasks.registry import custom_tasks

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

MARKS = ("undefined", "low-coverage", "modified-data")
"""Marks under which a run is submitted that would be refused otherwise."""

RESULTS = ".eval_results"
LEAST_HUB = "1.4"
"""The first version of huggingface_hub that writes entries of a leaderboard."""

_LEAST_COVERAGE = 0.8


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Settings of a submission.

    Attributes
    ----------
    model_repo
        The model's repository on the Hub.
    benchmark
        The data set's repository; `{corpus}` is replaced by the corpus's name.
    revision
        Commit of the data set's repository.
    source_url
        The address of the responses, such as a repository made by `equivox data push RUN`.
    marks
        The marks that are allowed instead of a refusal, see MARKS.
    min_coverage
        Share of responses that must be used in every group, at least the 80 % that a score needs.
    """

    run: Path
    model_repo: str
    benchmark: str
    output: Path
    revision: str | None = None
    source_url: str | None = None
    marks: frozenset[str] = frozenset()
    min_coverage: float = 0.95


def write_submission(wish: Wish) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
    """Write all files of a submission to a folder, whole or not at all.

    Returns the scalars by task id, why others were left out, and the marks of the results with their reasons.
    UsageError if the run must not be submitted as it is, with the mark that would allow it.
    """
    _refuse_old_hub()
    if unknown := sorted(wish.marks - set(MARKS)):
        raise UsageError(f"`mark` is one of {', '.join(MARKS)}, got {unknown[0]!r}{nearest(unknown[0], MARKS)}")
    check_repo(wish.model_repo)
    if not _LEAST_COVERAGE <= wish.min_coverage <= 1:
        raise UsageError(
            f"`min-coverage` is a share from {_LEAST_COVERAGE:g}, the floor of every score, to 1, got "
            f"{wish.min_coverage:g}; to submit with less, `--mark low-coverage`"
        )
    if wish.source_url is not None and not wish.source_url.startswith(("https://", "http://")):
        raise UsageError(f"`source-url` is a page's address, https://…, got {wish.source_url!r}")
    tasks = {task.name: task for task in read_tasks(wish.run)}
    benchmarks = _benchmarks(wish, list(tasks.values()))
    manifest = public_manifest(read_manifest(wish.run))
    stored = read_scores(wish.run)
    scores = _submittable(tasks, stored)
    refuse_unfinished(wish.run)
    values = {task_id: scalar(tasks[score.task], score) for task_id, score in scores.items()}
    left_out = {
        task_id: write_note(score.undefined_reason) or "its estimate is not known"
        for task_id, score in scores.items()
        if not math.isfinite(values[task_id])
    }
    every = [task_id for task in tasks.values() for task_id in submitted_metrics(task).values()]
    left_out |= {task_id: "it was not scored" for task_id in every if task_id not in scores}
    short = {task_id: why for task_id, score in scores.items() if (why := _short(score, stored, wish.min_coverage))}
    marked = _judge(wish, manifest, tasks, scores, benchmarks, left_out, short)
    values = {task_id: value for task_id, value in values.items() if task_id not in left_out}
    if not values:
        raise UsageError(f"{wish.run} has no defined score to submit")
    defined = {task_id: scores[task_id] for task_id in values}
    with folder_being_written(wish.output, apart_from=wish.run) as partial:
        (partial / RESULTS).mkdir()
        lost = {task_id: lost_in(score.task, stored) for task_id, score in defined.items()}
        _write_entries(partial, wish, manifest, tasks, defined, values, benchmarks, marked, lost)
        for corpus in benchmarks:
            own = [task for task in tasks.values() if source_corpus(task) == corpus]
            write_text(partial / "benchmark" / corpus / "eval.yaml", eval_file(corpus, own))
        told = {task_id: lost[task_id] for task_id in lost if lost[task_id]}
        record = {"model": wish.model_repo, "values": values, "left_out": left_out, "marked": marked, "lost": told}
        (partial / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return values, left_out, marked


def _benchmarks(wish: Wish, tasks: Sequence[Task]) -> dict[str, str]:
    """Return the benchmark of each source corpus: the repository of its data set."""
    corpora = list(dict.fromkeys(source_corpus(task) for task in tasks))
    if len(corpora) > 1 and "{corpus}" not in wish.benchmark:
        raise UsageError(
            f"the run has {len(corpora)} corpora ({', '.join(corpora)}), each a benchmark of its own; "
            "write `{corpus}` in `benchmark`, as in org/equivox-{corpus}"
        )
    repos = {corpus: wish.benchmark.replace("{corpus}", corpus) for corpus in corpora}
    for repo in repos.values():
        check_repo(repo)
    return repos


def _refuse_old_hub() -> None:
    """Raise UsageError if the installed huggingface_hub cannot write entries of a leaderboard."""
    import huggingface_hub

    if not hasattr(huggingface_hub, "EvalResultEntry"):
        raise UsageError(
            f"`submit` needs huggingface_hub {LEAST_HUB} or newer, this is {huggingface_hub.__version__}; submit from "
            "another environment"
        )


def _submittable(tasks: Mapping[str, Task], scores: Sequence[Score]) -> dict[str, Score]:
    """Return the scores of whole tasks that have a scalar, by their submission id."""
    found = {}
    for score in scores:
        if score.is_whole and score.role == "outcome" and score.task in tasks:
            task_id = submitted_metrics(tasks[score.task]).get(score.metric)
            if task_id is not None:
                found[task_id] = score
    return found


def _short(score: Score, stored: Sequence[Score], floor: float) -> str | None:
    """Return why less than `floor` of a group's answers are in a score, or in an attribute of its mean; None if not."""
    parts = left_out_of(score, stored)
    lost = [
        f"{part.attribute} is not in the mean: {write_note(part.undefined_reason)}"
        for part in parts
        if part.coverage.shortfall(floor)
    ]
    return write_note(score.coverage.shortfall(floor)) or next(iter(lost), None)


def _judge(
    wish: Wish,
    manifest: Mapping[str, Any],
    tasks: Mapping[str, Task],
    scores: Mapping[str, Score],
    benchmarks: Mapping[str, str],
    left_out: Mapping[str, str],
    short: Mapping[str, str],
) -> dict[str, str]:
    """Return the reason for each mark; UsageError for the first reason that was not allowed."""
    reasons: dict[str, str] = {}
    if left_out:
        n = len({*scores, *left_out})
        task_id, why = next(iter(left_out.items()))
        reasons["undefined"] = f"{len(left_out)} of {n} scores are undefined, such as {task_id} ({why})"
    if told := [f"{task_id}: {reason}" for task_id, reason in short.items() if task_id not in left_out]:
        reasons["low-coverage"] = told[0]
    if changes := departures(manifest, tasks, wish, benchmarks):
        reasons["modified-data"] = "; ".join(changes)
    for mark, reason in reasons.items():
        if mark not in wish.marks:
            raise UsageError(
                f"the run is not submitted: {reason}; repeat it without this problem, or add `--mark {mark}`"
            )
    return reasons


def departures(
    manifest: Mapping[str, Any], tasks: Mapping[str, Task], wish: Wish, benchmarks: Mapping[str, str]
) -> list[str]:
    """Return the differences of the run's data and requests from the benchmark; empty if there are none."""
    command, identity = manifest["command"], manifest["identity"]
    found = []
    if command["data"] == SAMPLE:
        found.append("the data are the embedded sample")
    if identity["limit"] is not None:
        found.append(f"only {identity['limit']} samples per task were used")
    if custom := custom_tasks(list(tasks.values())):
        found.append(f"tasks that equivox does not come with: {', '.join(custom)}")
    if moved := moved_tasks(list(tasks.values())):
        found.append(f"tasks are asked of another corpus than their own: {', '.join(moved)}")
    if command["compare"]:
        named = ", ".join(CROSSED.join(columns) for columns in command["compare"])
        found.append(f"other columns are compared than the tasks declare ({named})")
    if command.get("sampling", AS_DECLARED) != AS_DECLARED:
        found.append(f"sampling is {command['sampling']}")
    conditions = sorted({task.condition for task in tasks.values() if "@" in task.name})
    if conditions:
        found.append(f"control conditions are in the run ({', '.join(conditions)})")
    found += map(redacted_text, unusual_options(scored_with(wish.run)).values())
    for corpus, repo in benchmarks.items():
        if (published := _published(wish, repo)) is None:
            continue
        for name in sorted({task.data.corpus for task in tasks.values() if source_corpus(task) == corpus}):
            if name not in published:
                found.append(f"{repo} names no fingerprint of {name}")
            elif identity["corpora"].get(name) != published[name]:
                found.append(f"{name} is not as in {repo}")
    return found


def _published(wish: Wish, repo: str) -> dict[str, str] | None:
    """Return the fingerprints in the record of a data set in a neighbouring folder; None if there is none.

    UsageError for a record that cannot be read.
    """
    path = wish.output.parent / repo.replace("/", "--") / RECORD
    if not path.is_file():
        return None
    try:
        return dict(json.loads(path.read_text("utf-8")).get("corpora", {}))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no record of a data set ({error}); write it again by `equivox data push`, or remove the folder"
        ) from None


def _write_entries(
    folder: Path,
    wish: Wish,
    manifest: Mapping[str, Any],
    tasks: Mapping[str, Task],
    scores: Mapping[str, Score],
    values: Mapping[str, float],
    benchmarks: Mapping[str, str],
    marked: Mapping[str, str],
    lost: Mapping[str, str],
) -> None:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    audits = list_audits(wish.run, str(manifest["command"]["annotator"]))
    compared = {corpus: _published(wish, repo) is not None for corpus, repo in benchmarks.items()}
    by_corpus: dict[str, list[EvalResultEntry]] = {}
    for task_id, score in scores.items():
        task = tasks[score.task]
        corpus = source_corpus(task)
        by_corpus.setdefault(corpus, []).append(
            EvalResultEntry(
                dataset_id=benchmarks[corpus],
                task_id=task_id,
                value=round(values[task_id], 6),
                dataset_revision=wish.revision,
                date=manifest["created"],
                source_url=wish.source_url,
                source_name=None if wish.source_url is None else "responses and annotations",
                notes=notes_of(
                    score, task, manifest, marked, compared=compared[corpus], audits=audits, lost=lost[task_id]
                ),
            )
        )
    for corpus, entries in by_corpus.items():
        text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=110)
        (folder / RESULTS / f"equivox-{corpus}.yaml").write_text(text, "utf-8")


_NOT_AUDITED = ", annotator not audited"
_ONLY_NOISE = "no more than noise gives by itself, which does not prove fairness"


def _corrected(score: Score, found: CorrectedScore) -> str:
    if found.undefined:
        return f"not corrected by people's labels: {write_note(found.undefined)}"
    interval = score_interval(*found.ci, score.unit)
    return f"with people's labels {score_value(found.corrected, score.unit)}, interval {interval}"


def notes_of(
    score: Score,
    task: Task,
    manifest: Mapping[str, Any],
    marked: Mapping[str, str],
    *,
    compared: bool,
    audits: Sequence[Audit] = (),
    lost: str = "",
) -> str:
    """Return one line about a scalar: its score, its evidence and its marks.

    `compared` says whether the data were compared with the published ones; `audits` are those kept with the run;
    `lost` says which answers the groups lose unequally.
    """
    coverage, identity = score.coverage, manifest["identity"]
    null_mean = f", null mean {score_value(score.null_mean, score.unit)}" if score.null_mean == score.null_mean else ""
    estimate = f"estimate {score_value(score.headline, score.unit)}, " if score.estimate == score.estimate else ""
    group, share = coverage.worst
    least = f", {100 * share:.0f} % in {group}, the least" if share < 1 else ""
    model, told_as = identity["model"], manifest["command"]["model"]
    label, annotator = model_label(str(told_as)), str(manifest["command"]["annotator"])
    by = told_as if model["engine"] == "simulated" else f"{model['engine']}:{model['model']} {model['revision'][:12]}"
    told = [
        f"value = {task.metric.by_name[score.metric].published_help}",
        *([_ONLY_NOISE] if score.unbiased <= 0 else []),
        f"{estimate}{score.metric} {score_value(score.value, score.unit)}{null_mean}, interval "
        f"{score_interval(score.ci[0], score.ci[1], score.unit)}, p {p_value(score.p)} over "
        f"{score.n_units} units, q {p_value(score.q)}",
        *([f"TOO FEW DATA: {write_note(score.hidden_by)}".rstrip(": ")] if score.outcome == "too_few_data" else []),
        f"{coverage.used} of {coverage.requested} responses used{least}",
        *filter(None, map(write_note, score.notes)),
        *([f"GROUPS LOSE ANSWERS UNEQUALLY: {lost}"] if lost else []),
        f"answered by {by.rstrip()}",
        f"annotated by {annotator}" + ("" if is_exact(label, annotator) or audits else _NOT_AUDITED),
        *(audit.summary for audit in audits),
        *(_corrected(score, found) for audit in audits if (found := audit.of(score)) is not None),
        *([f"READ BY RULES: {FOR_SIMULATED}"] if misread_by_rules(label, annotator, [task]) else []),
        f"data {task.data.corpus} {identity['corpora'][task.data.corpus][:12]}"
        + ("" if compared else ", not compared with the published"),
        f"equivox {manifest['equivox']}, {task.name} version {task.version}, seed {identity['seed']}",
        *(f"{mark.upper()}: {reason}" for mark, reason in marked.items()),
    ]
    return "; ".join(told)
