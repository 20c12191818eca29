"""Verify a run: the hashes of its files, its requests, and every number, recomputed. The run is not written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from equivox.core.annotation import AnnotatorIdentity
from equivox.core.errors import DamageError, EquivoxError, UsageError
from equivox.core.files import file_hash, read_document, read_table
from equivox.core.foreign_files import refuse_oversized
from equivox.core.lazy import pc
from equivox.core.progress import Progress, no_progress
from equivox.core.redact import LEFT_OUT
from equivox.core.requests import EngineIdentity
from equivox.core.scores import DEFAULT_OPTIONS, ScoringOptions
from equivox.core.task import Task
from equivox.core.version import __version__
from equivox.run.annotating import TOOLS
from equivox.run.declarations import TASKS_FILE, read_tasks
from equivox.run.live import refuse_unfinished
from equivox.run.manifest import (
    MANIFEST_FILE,
    NOT_LISTED,
    changed_files,
    library_versions,
    read_manifest,
    run_files,
    stated_hashes,
)
from equivox.run.pipeline import open_corpora
from equivox.run.plan import make_plan, read_plan, request_seed
from equivox.run.recomputing import Compared, annotate_again, copied, is_panel
from equivox.run.scoring import score, scores_path, stored_options, tables_folder
from equivox.run.store import (
    Store,
    annotations_folder,
    annotators_of,
    response_schema,
    samples_note,
    samples_path,
    scheme_digest,
    stored_annotations,
    stored_annotator,
)

Outcome = Literal["verified", "verified in part", "differs"]

_NO_HASHES = "files: the manifest states no hashes; the run was not scored to its end"
UNKNOWABLE = (
    "nothing in a run shows when and where it was made, by which names a server answered, how many tokens it counted, "
    "and whether its answers are a model's: these are as the run says"
)
_FOREIGN = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""Errors of reading a document whose checksum fits and whose entries are not those of a run."""


@dataclass
class Verification(Compared):
    """The result of verifying one run: what was recomputed and compared, and what else was found.

    Attributes
    ----------
    manifest
        The SHA-256 of `manifest.json`, which names every other file by its hash.
    files
        The number of files whose hash is the stated one.
    wrong_files
        What is wrong with a file, by its path.
    problems
        What else cannot be true of this run, a line each.
    not_verified
        What could not be recomputed, and why.
    remarks
        What was not checked because it was not asked for, and what the check rests on.
    """

    run: Path = field(kw_only=True)
    manifest: str = ""
    files: int = 0
    wrong_files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """`verified` only if everything was recomputed and nothing differs."""
        if self.wrong_files or self.problems or self.differences:
            return "differs"
        return "verified in part" if self.not_verified else "verified"

    @property
    def doubt(self) -> str | None:
        """Why the run's numbers are not to be used, in one line; None if all of them could be computed again."""
        for name, why in self.wrong_files.items():
            if why != NOT_LISTED:
                return f"{name}: {why}"
        for problem in self.problems:
            return problem
        for one in self.differences:
            return f"{one.where}, {one.what}: {one.stated} is stated, {one.recomputed} is computed"
        return next((reason for reason in self.not_verified if reason != _NO_HASHES), None)


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
        _note_damage(found, error)
        return found
    if not _check_files(found, manifest):
        found.not_verified.append("numbers: nothing is recomputed, because a file takes more memory than any of a run")
        return found
    try:
        tasks = read_tasks(run)
        _check_model(found, manifest["identity"]["model"])
        _check_tasks(found, manifest, tasks)
        _check_responses(found)
        _check_settings(found, manifest["identity"], tasks)
        if data is not None:
            _check_plan(found, manifest, tasks, data)
        else:
            found.remarks.append(
                "the requests, the corpora and the limit were not checked against the data; --data says where the data "
                "are"
            )
        _recompute(found, manifest, tasks, progress)
    except DamageError as error:
        _note_damage(found, error)
        found.not_verified.append("numbers: not all could be recomputed, because a file is damaged")
    except FileNotFoundError as error:
        found.problems.append(f"{Path(str(error.filename)).name} is missing, so that nothing can be recomputed from it")
    except _Bad as error:
        raise UsageError(str(error)) from error
    except EquivoxError as error:
        found.not_verified.append(f"numbers: {error}")
    except _FOREIGN as error:
        found.problems.append(f"the files do not hold what a run holds ({type(error).__name__}: {error})")
    _note_versions(found, manifest)
    found.remarks.append(UNKNOWABLE)
    return found


class _Bad(UsageError):
    """A request of the user's that cannot be done."""


def _check_files(found: Verification, manifest: Mapping[str, Any]) -> bool:
    """Compare the hashes of all files with those stated, and read each file's own checksums.

    Return whether all of them can be read again; a file that would take too much memory is not read.
    """
    readable = True
    stated = stated_hashes(manifest)
    if stated is None:
        found.not_verified.append(_NO_HASHES)
    found.wrong_files |= changed_files(found.run, manifest)
    for name, path in run_files(found.run).items():
        try:
            refuse_oversized(path)
        except DamageError as error:
            _note_damage(found, error)
            readable = False
            continue
        try:
            if found.wrong_files.get(name) != NOT_LISTED:
                _read(name, path)
        except DamageError as error:
            _note_damage(found, error)
        except EquivoxError as error:
            found.wrong_files[name] = str(error)
        found.files += stated is not None and name not in found.wrong_files
    return readable


def _read(name: str, path: Path) -> None:
    """Raise DamageError for a file that does not fit its own checksum; a published plan and CSVs have none."""
    if name.startswith(("annotations/", "responses/", "tables", "plan")) and path.suffix == ".parquet":
        read_table(path)
    elif path.suffix == ".json":
        read_document(path)


def _note_damage(found: Verification, error: DamageError) -> None:
    """Note what is wrong with a file, which was read in the run or in its copy, unless it was found damaged before."""
    name = error.path.relative_to(found.run).as_posix() if error.path.is_relative_to(found.run) else str(error.path)
    name = next((known for known in found.wrong_files if name.endswith(known)), name)
    if not found.wrong_files.get(name, "").startswith("damaged"):
        found.wrong_files[name] = f"damaged: {error.why}"


def _check_model(found: Verification, stated: Mapping[str, Any]) -> None:
    """Compare the stated model with its digest, which is part of the key of every request."""
    named = {name: value for name, value in stated.items() if name != "digest"}
    if EngineIdentity(**named).digest == stated["digest"]:
        return
    if LEFT_OUT in json.dumps(named):
        found.remarks.append("the model's name and settings were not checked, because some settings are left out")
    else:
        found.not_verified.append(
            "the model: its stated name and settings do not give its stated digest; they were changed, or credentials "
            "or local paths were removed from them"
        )


def _check_tasks(found: Verification, manifest: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    stated = manifest["identity"]["tasks"]
    fresh = {task.name: task.fingerprint for task in tasks}
    for name in sorted({*stated, *fresh}):
        if stated.get(name) == fresh.get(name):
            continue
        if name in stated and name in fresh and manifest.get("equivox") != __version__:
            found.not_verified.append(
                f"{name}: equivox {manifest.get('equivox')} made the run, {__version__} defines the task differently; "
                f"verify it with equivox {manifest.get('equivox')}"
            )
        else:
            found.values(TASKS_FILE, f"fingerprint of {name}", stated.get(name), fresh.get(name))


def _check_responses(found: Verification) -> None:
    """Note what no run of equivox holds: requests without a response, with several, or with a failure after one."""
    planned = read_plan(found.run)["key"].unique()
    rows = Store(found.run / "responses", response_schema()).every(("key", "text"))
    keys, answered = rows["key"].to_pylist(), rows["text"].is_valid().to_pylist()
    # A failed request that was asked again has two records, of which the later counts; an answer is never asked again.
    last = dict(zip(keys, answered, strict=True))
    answers = rows.filter(pc.is_valid(rows["text"])).group_by(["key", "text"]).aggregate([])["key"].to_pylist()
    for wrong, what in (
        (set(keys) - set(planned.to_pylist()), "response(s) to requests that are not in the plan"),
        (set(planned.to_pylist()) - set(keys), "planned request(s) without a response"),
        ({key for key, count in Counter(answers).items() if count > 1}, "request(s) with several different responses"),
        ({key for key in answers if not last[key]}, "request(s) with a failure that was stored after an answer"),
    ):
        if wrong:
            found.problems.append(f"{len(wrong)} {what}: {_listed(sorted(wrong))}")


def _check_settings(found: Verification, identity: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Compare the stated seed, limit and tasks with the plan."""
    plan = read_plan(found.run).select(["task", "sample_id", "repeat", "seed"]).to_pylist()
    stated = set(identity["tasks"])
    if other := sorted(stated ^ {row["task"] for row in plan}):
        found.problems.append(f"the manifest and the plan do not have the same tasks: {', '.join(other[:3])}")
    ordered = {task.name for task in tasks if task.prompt.presentations is not None}
    wrong = [
        row["sample_id"]
        for row in plan
        if row["task"] not in ordered and row["seed"] != request_seed(identity["seed"], row["sample_id"], row["repeat"])
    ]
    if wrong:
        found.problems.append(
            f"{len(wrong)} request(s) have seeds that the stated seed {identity['seed']} does not give: "
            f"{', '.join(sorted(set(wrong))[:3])}"
        )
    samples: dict[str, set[str]] = {}
    for row in plan:
        samples.setdefault(row["task"], set()).add(row["sample_id"])
    most = max(map(len, samples.values()), default=0)
    if identity["limit"] is not None and most > identity["limit"]:
        found.problems.append(f"a task has {most} samples where the limit is stated as {identity['limit']}")


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(key[:12] for key in keys[:3]) + (" …" if len(keys) > 3 else "")


def _check_plan(found: Verification, manifest: Mapping[str, Any], tasks: Sequence[Task], data: str) -> None:
    """Make the requests again from the corpora and compare them with the plan, keys and groups included."""
    identity = manifest["identity"]
    try:
        corpora = open_corpora(tasks, data, {})
        engine = EngineIdentity.from_public_dict(identity["model"])
        fresh = make_plan(tasks, corpora, engine, limit=identity["limit"], seed=identity["seed"]).table
    except UsageError as error:
        raise _Bad(str(error)) from error
    for name, corpus in corpora.items():
        found.values(name, "fingerprint of the corpus", identity["corpora"].get(name), corpus.fingerprint)
    stated, made = (
        {(row["task"], row["key"]): row for row in plan.to_pylist()} for plan in (read_plan(found.run), fresh)
    )
    for left, what in (
        (sorted({*stated} - {*made}), "request(s) in the plan that these data do not give"),
        (sorted({*made} - {*stated}), "request(s) that these data give and the plan lacks"),
    ):
        if left:
            found.problems.append(f"{len(left)} {what}: {_listed([key for _, key in left])}")
    for key in stated.keys() & made.keys():
        found.values(key[0], f"plan, {made[key]['sample_id']}:", stated[key], made[key])
    found.remarks.append(f"{len(stated.keys() & made.keys())} requests were made again from the data")


def _recompute(found: Verification, manifest: Mapping[str, Any], tasks: Sequence[Task], progress: Progress) -> None:
    """Compute annotations, samples, scores and tables again in a copy of the run, and compare the two trees."""
    run = found.run
    names = annotators_of(run)
    if str(manifest["command"]["annotator"]) not in names or not (run / "scores.json").is_file():
        found.problems.append(
            f"the run has no scores by its annotator {manifest['command']['annotator']}; `equivox score` computes them"
        )
    known = {scores_path(run, name).name for name in names}
    known |= {tables_folder(run / name).name for name in known}
    for path in sorted([*run.glob("scores*.json"), *run.glob("tables*/")]):
        if path.name not in known:
            found.problems.append(f"{path.name} is of an annotator whose annotations are not in the run")
    identities = {name: stored_annotator(run, name) for name in names}
    annotated: dict[str, ScoringOptions] = {}
    with copied(run) as folder:
        for name in sorted(names, key=lambda name: is_panel(identities[name])):
            with _noting(found, name):
                options = _options_of(found, name, identities[name], tasks)
                how = annotate_again(
                    run, folder, tasks, identities[name], options, annotated=list(annotated), progress=progress
                )
                annotated[name] = options
                found.remarks += [how] if how else []
        for name in annotated:
            with _noting(found, name):
                _score_again(found, folder, tasks, name, annotated, progress)
        for name in (*annotated, TOOLS):
            _compare_annotations(found, folder, name)
        for name in annotated:
            scores = scores_path(folder, name)
            places = (annotations_folder(folder, name) / "samples", scores, tables_folder(scores))
            found.trees(run, folder, [path.relative_to(folder) for path in places if path.exists()])


@contextmanager
def _noting(found: Verification, name: str) -> Iterator[None]:
    """Note why the numbers by an annotator cannot be recomputed; damage is the file's."""
    try:
        yield
    except DamageError:
        raise
    except EquivoxError as error:
        found.not_verified.append(f"all numbers by {name}: {error}")


def _options_of(found: Verification, name: str, identity: AnnotatorIdentity, tasks: Sequence[Task]) -> ScoringOptions:
    """Return the options that one annotator's scores were computed with, the defaults if there are no scores.

    UsageError if its numbers cannot be recomputed.
    """
    if identity.name != name:
        found.problems.append(f"annotations/{name} is by {identity.name!r}, as its annotator.json says")
        raise UsageError("its annotations come from another annotator")
    path = scores_path(found.run, name)
    options = DEFAULT_OPTIONS
    paths = {task.name: samples_path(found.run, name, task.name) for task in tasks}
    annotated = {task: samples_note(own).get("scheme") for task, own in paths.items() if own.exists()}
    if path.is_file():
        document = read_document(path)
        found.values(path.name, "annotator", document["annotator"], identity.as_dict())
        try:
            options = stored_options(document["options"])
        except EquivoxError as error:
            found.problems.append(f"the options in {path.name} are none that it can have been scored with: {error}")
            raise
        stated = {task.name: document["schemes"].get(task.name) for task in tasks}
    else:
        found.remarks.append(f"the annotations by {name} have no scores")
        stated = {}
    for task in tasks:
        current = scheme_digest(task)
        if {annotated.get(task.name, current), stated.get(task.name, current)} != {current}:
            raise UsageError(f"the annotation of {task.name} has changed since; use the equivox that made the run")
    return options


def _score_again(
    found: Verification,
    folder: Path,
    tasks: Sequence[Task],
    name: str,
    annotated: Mapping[str, ScoringOptions],
    progress: Progress,
) -> None:
    """Score one annotator's annotations again, with the other annotators that its scores used."""
    path = scores_path(found.run, name)
    if not path.is_file():
        return
    document = read_document(path)
    others = document.get("others", [])
    if "others" not in document and len(annotated) > 1:
        found.remarks.append(f"the scores by {name} do not say which other annotators they used; none is assumed")
    if absent := [other for other in others if other not in annotated]:
        raise UsageError(f"they use annotations by {absent[0]}, not recomputed")
    score(folder, tasks, name, annotated[name], others=others, progress=progress)


def _compare_annotations(found: Verification, folder: Path, name: str) -> None:
    """Compare the stored annotations by `name` with those made again, by the keys of the texts they belong to."""
    stored, fresh = stored_annotations(found.run, name), stored_annotations(folder, name)
    where = f"annotations/{name}"
    for key, record in fresh.items():
        what = f"{record['task']}, response {record['response_key'][:12]}, {record['segment'] or 'whole'}"
        if key in stored:
            for entry in ("status", "values"):
                if stored[key][entry] != record[entry]:
                    found.values(where, what, _told(stored[key]), _told(record))
                    break
        elif record["response_key"]:
            found.values(where, what, "no annotation of this text", _told(record))
    answered = Store(found.run / "responses", response_schema()).filled("text")
    with_text = set(answered.filter(answered["text"])["key"].to_pylist())
    left = sorted({record["response_key"] for key, record in stored.items() if key not in fresh} - with_text - {""})
    if left:
        found.problems.append(f"{len(left)} response(s) that {name} annotated are not in the run: {_listed(left)}")


def _told(record: Mapping[str, Any]) -> str:
    values = ", ".join(f"{value['attribute']}={value['value']}" for value in record["values"])
    return f"{record['status']}{': ' if values else ''}{values}"


def _note_versions(found: Verification, manifest: Mapping[str, Any]) -> None:
    """Note which versions made the run, if they are not those that recompute it."""
    stated = dict(manifest.get("environment", {}).get("libraries", {})) | {"equivox": manifest.get("equivox")}
    here = {**library_versions(), "equivox": __version__}
    other = [
        f"{n} {stated[n]} (here {here[n]})"
        for n in ("equivox", "numpy", "scipy")
        if n in stated and stated[n] != here.get(n)
    ]
    if other:
        found.remarks.append(f"the run was made with {', '.join(other)}; a difference can come from that")
