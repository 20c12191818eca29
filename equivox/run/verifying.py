"""Verify a run: check its hashes, score it again in a temporary folder, compare. The run is never written.

What needs no model is made again from the responses: the annotations of `rules` and of tools, the samples, a panel's
majority, the scores and their tables. A model's annotations are read again from its stored outputs; where there is no
output, the stored annotation is taken. An annotation belongs to one text, because its key is a hash of it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equivox.annotate import RULES, open_annotator
from equivox.annotate.model import read_again
from equivox.core.annotation import Annotation, Annotator, AnnotatorIdentity, Job
from equivox.core.errors import DamageError, EquivoxError, UsageError
from equivox.core.files import damaged, file_hash, read_document, read_table
from equivox.core.foreign_files import refuse_oversized
from equivox.core.progress import Progress, no_progress
from equivox.core.redact import LEFT_OUT
from equivox.core.requests import EngineIdentity
from equivox.core.scores import DEFAULT_OPTIONS, ScoringOptions
from equivox.core.segments import Value, check_tools
from equivox.core.task import Task
from equivox.core.version import __version__
from equivox.run.annotating import TOOLS, annotate
from equivox.run.declarations import TASKS_FILE, read_tasks
from equivox.run.live import refuse_unfinished
from equivox.run.manifest import (
    MANIFEST_FILE,
    changed_files,
    library_versions,
    read_manifest,
    run_files,
    stated_hashes,
)  # fmt: skip
from equivox.run.panel import PANEL, combine
from equivox.run.pipeline import open_corpora
from equivox.run.plan import PLAN_FILE, make_plan, read_plan
from equivox.run.scoring import follow_up, score, scores_path, stored_options, tables_folder
from equivox.run.store import (
    Store,
    annotators_of,
    response_schema,
    scheme_digest,
    stored_annotations,
    stored_annotator,
)  # fmt: skip
from equivox.run.verification import NO_HASHES, Difference, Verification

NOT_CHECKED = (
    "the requests, the corpora, the seed and the limit were not checked; `--data` names the data to check them against"
)
UNKNOWABLE = (
    "nothing in a run shows when and where it was made, by which names a server answered, how many tokens it counted, "
    "and whether its answers are a model's: these are as the run says"
)


def verify(run: Path, *, data: str | None = None, progress: Progress = no_progress) -> Verification:
    """Return what is true of the finished run in `run`; with `data`, its requests are made again from the corpus.

    UsageError if there is no run, if it is under way, or if `data` does not hold its corpora. Damage and changes are
    part of the result.
    """
    found = Verification(run=run)
    try:
        manifest = read_manifest(run)
        found.manifest = file_hash(run / MANIFEST_FILE)
        refuse_unfinished(run)
    except DamageError as error:
        found.add_damage(error)
        return found
    if not _check_files(found, manifest):
        found.not_verified.append("numbers: nothing is recomputed, because a file is damaged")
        return found
    with _noting(found, "numbers"):
        tasks = read_tasks(run)
        _check_identity(found, manifest, tasks)
        _check_responses(found)
        if data is None:
            found.remarks.append(NOT_CHECKED)
        else:
            _check_plan(found, manifest["identity"], tasks, data)
        _score_again(found, manifest["command"]["annotator"], tasks, progress)
    found.remarks.append(UNKNOWABLE)
    return found


class _WrongData(UsageError):
    """The data that the user named are not those of the run."""


@contextmanager
def _noting(found: Verification, what: str) -> Iterator[None]:
    """Note why `what` cannot be recomputed."""
    why = None
    try:
        yield
    except _WrongData:
        raise
    except DamageError as error:
        found.add_damage(error)
        why = "not all could be recomputed, because a file is damaged"
    except FileNotFoundError as error:
        found.problems.append(f"{Path(str(error.filename)).name} is missing, so that nothing can be recomputed from it")
    except EquivoxError as error:
        why = str(error)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        # The checksum of a document fits, and its entries are not those of a run.
        found.problems.append(f"the files do not hold what a run holds ({type(error).__name__}: {error})")
    if why is not None:
        found.not_verified.append(f"{what}: {why}")


def _check_files(found: Verification, manifest: Mapping[str, Any]) -> bool:
    """Compare the hashes of all files with those stated; return whether no file is damaged or takes too much memory."""
    found.wrong_files |= changed_files(found.run, manifest)
    readable = True
    for name, path in run_files(found.run).items():
        try:
            refuse_oversized(path)
            # Scoring reads some columns; the checksums are those of all. A published plan has none.
            if name.startswith(("annotations/", "responses/", "tables")) and path.suffix == ".parquet":
                read_table(path)
        except DamageError as error:
            found.add_damage(error)
            readable = False
    if (stated := stated_hashes(manifest)) is None:
        found.not_verified.append(NO_HASHES)
    else:
        found.files = len(stated.keys() - found.wrong_files.keys())
    return readable


def _check_identity(found: Verification, manifest: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Compare the stated model with its digest, which is part of each request's key, and the tasks with those here."""
    model = {name: value for name, value in manifest["identity"]["model"].items() if name != "digest"}
    if LEFT_OUT in json.dumps(model):
        found.remarks.append("the model's name and settings were not checked, because some settings are left out")
    elif EngineIdentity(**model).digest != manifest["identity"]["model"]["digest"]:
        found.not_verified.append(
            "the model: its stated name and settings do not give its stated digest; they were changed, or credentials "
            "or local paths were removed from them"
        )
    made_with = manifest.get("equivox")
    stated, here = manifest["identity"]["tasks"], {task.name: task.fingerprint for task in tasks}
    for name in dict.fromkeys((*stated, *here)):
        if made_with != __version__ and name in stated and name in here and stated[name] != here[name]:
            found.not_verified.append(
                f"{name}: equivox {made_with} made the run, {__version__} defines the task differently; verify it with "
                f"equivox {made_with}"
            )
        else:
            found.values(TASKS_FILE, f"fingerprint of {name}", stated.get(name), here.get(name))
    libraries = manifest.get("environment", {}).get("libraries", {}) | {"equivox": made_with}
    here = {**library_versions(), "equivox": __version__}
    for name in ("equivox", "numpy", "scipy"):
        if libraries.get(name, here[name]) != here[name]:
            found.remarks.append(f"{name} {libraries[name]} made the run, {here[name]} verified it; numbers may differ")


def _check_responses(found: Verification) -> None:
    """Note what no run holds: requests without a response, with several answers, or with a failure after an answer."""
    planned = set(read_plan(found.run)["key"].to_pylist())
    texts: dict[str, list[str | None]] = {key: [] for key in planned}
    for row in Store(found.run / "responses", response_schema()).every(("key", "text")).to_pylist():
        texts.setdefault(row["key"], []).append(row["text"])
    for key, stored in sorted(texts.items()):
        answers = {text for text in stored if text is not None}
        problem = (
            "is not in the plan" if key not in planned
            else "has no response" if not stored
            else "has several different answers" if len(answers) > 1
            # A failed request can be sent again, and its later record counts; an answered one is never sent again.
            else "has a failure that was stored after its answer" if answers and stored[-1] is None
            else None
        )  # fmt: skip
        if problem is not None:
            found.problems.append(f"request {key[:12]} {problem}")


def _check_plan(found: Verification, identity: Mapping[str, Any], tasks: Sequence[Task], data: str) -> None:
    """Make the requests again from the corpora and compare them with the plan, keys and groups included."""
    try:
        corpora = open_corpora(tasks, data, {})
        engine = EngineIdentity.from_public_dict(identity["model"])
        plan = make_plan(tasks, corpora, engine, limit=identity["limit"], seed=identity["seed"]).table
    except UsageError as error:
        raise _WrongData(str(error)) from error
    for name, corpus in corpora.items():
        found.values(name, "fingerprint of the corpus", identity["corpora"].get(name), corpus.fingerprint)
    stated, made = (
        {(row["task"], row["key"]): row for row in rows.to_pylist()} for rows in (read_plan(found.run), plan)
    )
    for task, key in dict.fromkeys((*stated, *made)):
        found.values(task, f"request {key[:12]}", stated.get((task, key)), made.get((task, key)))
    found.remarks.append(f"{len(stated.keys() & made.keys())} requests were made again from the data")


def _score_again(found: Verification, annotator: str, tasks: Sequence[Task], progress: Progress) -> None:
    """Annotate and score a copy of the run that has only its responses, and compare every annotation and file."""
    run, names = found.run, annotators_of(found.run)
    if annotator not in names or not (run / "scores.json").is_file():
        found.problems.append(f"the run has no scores by its annotator {annotator}; `equivox score` computes them")
    with TemporaryDirectory(prefix="equivox-verify-") as made:
        copy = Path(made)
        for name in (MANIFEST_FILE, TASKS_FILE, PLAN_FILE):
            shutil.copyfile(run / name, copy / name)
        (copy / "responses").mkdir()
        for path in run.glob("responses/[!.]*"):
            shutil.copyfile(path, copy / "responses" / path.name)
        options: dict[str, ScoringOptions] = {}
        for name in sorted(names, key=lambda name: (name == PANEL, name)):
            with _noting(found, f"all numbers by {name}"):
                options[name] = _annotate_again(found, copy, name, tasks, [*options], progress)
        scored = []
        for name in options:
            with _noting(found, f"all numbers by {name}"):
                if (path := scores_path(run, name)).is_file():
                    others = read_document(path)["others"]
                    if absent := [other for other in others if other not in options]:
                        raise UsageError(f"they use annotations by {absent[0]}, not recomputed")
                    score(copy, tasks, name, options[name], others=others, progress=progress)
                scored.append(name)
        for name in (*options, TOOLS):
            _compare_annotations(found, copy, name)
        _compare_files(found, copy, [name for name in names if name not in scored])


def _annotate_again(
    found: Verification, copy: Path, name: str, tasks: Sequence[Task], before: Sequence[str], progress: Progress
) -> ScoringOptions:
    """Annotate a copy of the run as its annotator `name` did; return the options that the scores were computed with.

    `before` names the annotators that the copy has already. UsageError where this is not possible.
    """
    run, identity = found.run, stored_annotator(found.run, name)
    if identity.name != name:
        raise damaged(run / "annotations" / name / "annotator.json", f"it is of the annotator {identity.name!r}")
    options = _read_options(found, identity, tasks)
    if name == PANEL and "members" in identity.settings:
        members = [str(member) for member in identity.settings["members"]]
        if absent := [member for member in members if member not in before]:
            raise UsageError(f"its member {absent[0]} cannot be recomputed")
        combine(copy, tasks, members)
        return options
    check_tools(tasks)
    annotator = open_annotator(RULES)
    if annotator.identity != identity:
        annotator = Replayed(identity, stored_annotations(run, name))
        how = "read again from its stored outputs" if annotator.is_model else "taken as they are stored"
        found.remarks.append(f"the annotations by {name} were {how}; {name} received no request")
    engine = str(read_manifest(copy)["identity"]["model"]["engine"])
    annotate(copy, tasks, annotator, engine=engine, progress=progress)
    follow_up(copy, tasks, annotator, options)
    return options


def _read_options(found: Verification, identity: AnnotatorIdentity, tasks: Sequence[Task]) -> ScoringOptions:
    """Return the options that an annotator's scores were computed with, the defaults if there are no scores.

    UsageError if the annotation of a task means something else in this version.
    """
    options = DEFAULT_OPTIONS
    if (path := scores_path(found.run, identity.name)).is_file():
        document = read_document(path)
        found.values(path.name, "annotator", document["annotator"], identity.as_dict())
        try:
            options = stored_options(document["options"])
        except UsageError as error:
            raise damaged(path, f"no run was scored with its options: {error}") from error
        for task in tasks:
            if document["schemes"].get(task.name, scheme_digest(task)) != scheme_digest(task):
                raise UsageError(f"the annotation of {task.name} has changed since; use the equivox that made the run")
    else:
        found.remarks.append(f"the annotations by {identity.name} have no scores")
    return options


@dataclass
class Replayed(Annotator):
    """Annotator that repeats what is stored of another annotator, and reads a model's outputs again.

    A text of which nothing is stored has failed.
    """

    identity: AnnotatorIdentity
    records: Mapping[str, Mapping[str, Any]] = field(repr=False)

    @property
    def is_model(self) -> bool:
        """Whether the annotations have outputs in the form that equivox requests from models."""
        return {"engine", "prompt", "attempts"} <= set(self.identity.settings)

    def annotate(self, jobs: Iterable[Job]) -> Iterator[Annotation]:
        """Yield the stored annotation of each job, and a failed one for a job without."""
        for job in jobs:
            record = self.records.get(job.key)
            if record is None:
                yield job.annotated("failed", output="no annotation is stored for this text", attempts=0)
                continue
            again = read_again(job, record) if self.is_model else None
            values = [Value(**value) for value in record["values"]]
            yield again or job.annotated(record["status"], values, output=record["output"], attempts=record["attempts"])


def _compare_annotations(found: Verification, copy: Path, name: str) -> None:
    """Compare the stored annotations by `name` with those made again, by the keys of the texts they belong to."""
    stored, again = stored_annotations(found.run, name), stored_annotations(copy, name)
    for key, record in again.items():
        if key in stored or record["response_key"]:
            what = f"{record['task']}, response {record['response_key'][:12]}, {record['segment'] or 'whole'}:"
            found.values(f"annotations/{name}", what, _as_values(stored.get(key)), _as_values(record))


def _as_values(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if record is None else {"status": record["status"], "values": record["values"]}


def _compare_files(found: Verification, copy: Path, unscored: Sequence[str]) -> None:
    """Compare the samples, scores and tables of a run with those of its copy; those by `unscored` are left out."""
    left_out = []
    for name in unscored:
        scores = scores_path(found.run, name)
        left_out += [f"annotations/{name}/", scores.name, f"{tables_folder(scores).name}/"]
    for name in dict.fromkeys((*run_files(found.run), *run_files(copy))):
        computed = name.startswith(("scores", "tables")) or "/samples/" in name
        if not computed or not name.endswith((".parquet", ".json", ".csv")) or name.startswith(tuple(left_out)):
            continue
        with _noting(found, name):
            stated, again = _read_values(found.run / name), _read_values(copy / name)
            if stated is None or again is None:
                there = [None if values is None else "a file" for values in (stated, again)]
                found.differences.append(Difference(where=name, what="", stated=there[0], recomputed=there[1]))
                continue
            if name.endswith(".parquet"):
                found.values(name, "columns", [*stated], [*again])
                stated, again = ({key: own[key] for key in stated if key in again} for own in (stated, again))
            found.values(name, "", stated, again)


def _read_values(path: Path) -> Any:
    """Return the lines of a CSV, the columns of a table or the numbers of a document of scores; None without file."""
    if not path.is_file():
        return None
    if path.suffix == ".parquet":
        table = read_table(path)
        return dict(zip(table.column_names, table.columns, strict=True))
    if path.suffix == ".csv":
        return {"line": path.read_text("utf-8", errors="replace").split("\n")}
    document = read_document(path)
    scores: dict[str, list[Any]] = {}
    for entry in document["scores"]:
        named = [entry.get(part) for part in ("task", "metric", "attribute", "subset")]
        scores.setdefault(" ".join(str(part) for part in named if part), []).append(entry)
    # Scores that nothing tells apart are compared in their order.
    return {"answered": document.get("answered")} | {
        name if number == 1 else f"{name} {number}": entry
        for name, entries in scores.items()
        for number, entry in enumerate(entries, start=1)
    }
